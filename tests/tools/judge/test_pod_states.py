"""Pods that are being deleted do not wait; what they hold is soon free. Room is kept for pods with a nominated node."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.tools.judge.reading import read_snapshot

Data = dict[str, Any]
GPU = "nvidia.com/gpu"
RACK = "topology.kubernetes.io/rack"
DELETED = {"deletionTimestamp": "2026-11-30T00:00:00Z", "deletionGracePeriodSeconds": 30}


def _node(name: str, gpus: int, rack: str = "r0") -> Data:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, RACK: rack}}
    room = {"cpu": "64", "pods": "110", GPU: str(gpus)}
    return {
        "kind": "Node",
        "metadata": meta,
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def _pod(
    name: str, gpus: int, node: str | None = None, *, phase: str = "", meta: Data | None = None, **spec: Any
) -> Data:
    box = {"name": "c", "resources": {"requests": {"cpu": "1", GPU: str(gpus)}}}
    spec |= {"containers": [box], **({} if node is None else {"nodeName": node})}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", **(meta or {})},
        "spec": spec,
        "status": {"phase": phase or ("Pending" if node is None else "Running")},
    }


def _judged(folder: Path, *items: Data, objectives: list[str] | None = None) -> schedgap.Judgement:
    """The judgement with names; the one with numbers in place of names says the same."""
    path = folder / "snapshot.json"
    path.write_text(json.dumps({"kind": "List", "items": items}))
    numbered = schedgap.judge(path, objectives=objectives)
    named = schedgap.judge(path, names=True, objectives=objectives)
    assert (numbered.verdict, numbered.counts) == (named.verdict, named.counts)
    assert [_without_names(one.line()) for one in numbered.lost] == [_without_names(one.line()) for one in named.lost]
    facts = replace(read_snapshot(path).facts, closed={}, unlabelled={})
    assert not re.search(r"ml/|'n\d?'|r0|r1", repr(facts)), facts
    return named


def _without_names(line: str) -> str:
    return re.sub(r"ml/\w+|(gang|running|node)-\d+|\bn\d?\b", "NAME", line)


def test_a_pod_that_is_deleted_before_it_has_a_node_does_not_wait(tmp_path: Path) -> None:
    """kube-scheduler skips it, so a free node beside it is no loss."""
    found = _judged(tmp_path, _node("n", 8), _pod("p", 8, meta=DELETED))
    assert found.verdict == "no gang waits in what was read" and not found.lost
    assert found.unread["pods that have no node and are being deleted"] == 1


def test_a_deleted_workload_does_not_wait(tmp_path: Path) -> None:
    template = {"spec": _pod("p", 8)["spec"]}
    workload = {
        "kind": "Workload",
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "metadata": {"name": "w", "namespace": "ml"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}]},
    }
    assert [one.gang for one in _judged(tmp_path, _node("n", 8), workload).lost] == ["ml/w"]
    workload["metadata"] |= DELETED
    assert _judged(tmp_path, _node("n", 8), workload).verdict == "no gang waits in what was read"


def test_what_a_deleted_pod_holds_is_not_free_and_soon_will_be(tmp_path: Path) -> None:
    items = [_node("n0", 8), _node("n1", 8), _pod("old", 8, "n0", meta=DELETED), _pod("keep", 4, "n1")]
    found = _judged(tmp_path, *items, _pod("p", 8, priority=5))
    assert found.verdict.endswith("1 gang cannot be placed by anyone now unless pods that are being deleted have gone")
    assert found.counts == "2 nodes, 1 gang, 2 pods running, 1 of them being deleted"
    (lost,) = found.lost
    assert lost.line().endswith("8 are wanted; admitted once ml/old has gone, which is being deleted")
    told = lost.to_dict()
    assert (told["being_deleted_first"], told["moves"], told["price"]) == (
        ["ml/old"],
        {"preempted": [], "moved": {}},
        0,
    )


def test_a_pod_of_low_priority_waits_for_what_is_deleted_as_well(tmp_path: Path) -> None:
    """It ends nothing, and old goes without it."""
    items = [_node("n", 8), _pod("old", 8, "n", meta=DELETED, priority=9), _pod("p", 8)]
    (lost,) = _judged(tmp_path, *items).lost
    assert "admitted once ml/old has gone, which is being deleted" in lost.line()
    assert "nothing of lower priority runs, so nothing may be ended" in lost.line()


def test_both_are_told_where_both_are_needed_and_neither_without_need(tmp_path: Path) -> None:
    node, old, keep = _node("n", 8), _pod("old", 4, "n", meta=DELETED), _pod("keep", 4, "n")
    other = [_node("m", 4), _pod("late", 4, "m", meta=DELETED)]
    (lost,) = _judged(tmp_path, node, old, keep, *other, _pod("p", 8, priority=5)).lost
    assert "admitted by ending ml/keep, price 10 (the least, as one engine proves), once ml/old has gone" in lost.line()
    assert lost.price == 10 and lost.moves_proven
    blocked = _pod("q", 8, priority=5)
    found = _judged(tmp_path, node, old, keep, *other, blocked, _pod("r", 4, priority=5))
    assert found.verdict.endswith(
        "2 gangs cannot be placed by anyone now unless running pods are moved or ended (1 of these) or pods that are "
        "being deleted have gone (1 of these)"
    )


def test_new_pods_of_a_gang_are_not_bound_to_where_its_deleted_ones_are(tmp_path: Path) -> None:
    notes = {"kueue.x-k8s.io/podset-required-topology": RACK}
    gang = {"labels": {"kueue.x-k8s.io/pod-group-name": "g"}, "annotations": notes}
    old = [_pod(f"old{k}", 4, "n0", meta={**gang, **DELETED}) for k in range(2)]
    new = [_pod(f"new{k}", 4, meta=gang) for k in range(2)]
    found = _judged(tmp_path, _node("n0", 8), _node("n1", 8, "r1"), *old, *new)
    assert found.reached == 8 and found.verdict.startswith("8 of 8 waiting GPUs could run now")


def test_a_bound_pod_that_is_deleted_is_no_decision(tmp_path: Path) -> None:
    found = _judged(tmp_path, _node("n", 8), _pod("old", 8, "n", phase="Pending", meta=DELETED), _pod("p", 8))
    assert (found.placed, found.reached, found.waiting) == (0, 0, 8)


def test_what_goes_anyhow_is_not_ended_by_a_decision(tmp_path: Path) -> None:
    """With moves as an objective the best decision ends keep, which frees a node now."""
    items = [_node("n0", 8), _node("n1", 8), _pod("old", 8, "n0", meta=DELETED), _pod("keep", 4, "n1")]
    found = _judged(tmp_path, *items, _pod("p", 8, priority=5), objectives=["weight", "moves"])
    assert "8 of 8 waiting GPUs could run now after ending 1 running pod" in found.verdict
    assert (found.best.solution or {})["preempted"] == ["ml/keep"]
    only_old = [item for item in items if item["metadata"]["name"] != "n1" and item["metadata"]["name"] != "keep"]
    found = _judged(tmp_path, *only_old, _pod("p", 8, priority=5), objectives=["weight", "moves"])
    assert (found.reached, found.most) == (0, 0)


def _nominated(name: str, gpus: int, node: str, **spec: Any) -> Data:
    made = _pod(name, gpus, **spec)
    made["status"]["nominatedNodeName"] = node
    return made


def test_room_of_a_nominated_pod_is_not_said_to_be_free(tmp_path: Path) -> None:
    """It waits for what was preempted for it; kube-scheduler keeps the rest of the node for it, too."""
    items = [_node("n", 8), _pod("old", 4, "n", meta=DELETED), _nominated("p", 8, "n", priority=9), _pod("q", 4)]
    found = _judged(tmp_path, *items)
    assert found.verdict.startswith("0 to 4 of 12 waiting GPUs could run now, the scheduler placed 0: ")
    assert "1 gang fits but for room that is kept for pods with a nominated node" in found.verdict
    assert "1 gang cannot be placed by anyone now unless pods that are being deleted have gone" in found.verdict
    (line,) = [lost.line() for lost in found.lost if lost.gang == "ml/p"]
    assert "admitted once ml/old has gone, which is being deleted" in line
    assert found.counts.endswith("1 pod running, 1 of them being deleted")


def test_a_pod_that_is_about_to_start_on_its_nominated_node_is_not_lost(tmp_path: Path) -> None:
    found = _judged(tmp_path, _node("n", 8), _nominated("p", 8, "n"))
    assert found.verdict.startswith("0 to 8 of 8 waiting GPUs could run now, the scheduler placed 0: 1 gang fits but")
    assert found.verdict.endswith("may be about to start on the nominated node")


def test_a_nomination_takes_no_room_of_what_is_bound_already(tmp_path: Path) -> None:
    items = [_node("n", 8), _pod("a", 4, "n", phase="Pending"), _nominated("p", 8, "n", priority=9)]
    found = _judged(tmp_path, *items, _pod("q", 2))
    assert found.world.feasible and found.placed == 4 and (found.reached, found.most) == (4, 8)


def test_a_nomination_for_a_node_that_is_not_listed_says_nothing(tmp_path: Path) -> None:
    found = _judged(tmp_path, _node("n", 8), _nominated("p", 8, "gone"))
    assert (found.reached, found.most, found.reading) == (8, 8, "kept")


def test_a_pod_whose_first_containers_run_has_started(tmp_path: Path) -> None:
    """It stays where it is: no other decision puts it elsewhere."""
    begun = _pod("a", 4, "n0", phase="Pending")
    begun["status"]["initContainerStatuses"] = [{"name": "load", "state": {"running": {"startedAt": "2026-11-29"}}}]
    found = _judged(tmp_path, _node("n0", 8), _node("n1", 4), begun, _pod("p", 8))
    assert (found.placed, found.reached, found.waiting) == (0, 0, 8)
    begun["status"]["initContainerStatuses"][0]["state"] = {"waiting": {"reason": "PodInitializing"}}
    assert _judged(tmp_path, _node("n0", 8), _node("n1", 4), begun, _pod("p", 8)).reached == 12


def test_a_pod_with_rules_that_are_not_read_is_not_said_to_move(tmp_path: Path) -> None:
    job = {"ownerReferences": [{"kind": "Job", "name": "j", "controller": True}]}
    items = [_node("n0", 8), _node("n1", 4), _pod("p", 8)]
    (lost,) = _judged(tmp_path, *items, _pod("a", 4, "n0", meta=job)).lost
    assert "admitted by moving ml/a to n1" in lost.line()
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"x": "y"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    (lost,) = _judged(tmp_path, *items, _pod("a", 4, "n0", meta=job, affinity=apart)).lost
    assert lost.moves is None and not lost.moves_proven and "admit" not in lost.line()


def test_a_static_pod_is_not_ended(tmp_path: Path) -> None:
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    items = [_node("n", 8), _pod("p", 8, priority=9)]
    (lost,) = _judged(tmp_path, *items, _pod("a", 4, "n")).lost
    assert "admitted by ending ml/a" in lost.line()
    (lost,) = _judged(tmp_path, *items, _pod("a", 4, "n", meta=mirror)).lost
    assert "admitted" not in lost.line()


@pytest.mark.parametrize("scheduler", ["kai-scheduler", "volcano", "yunikorn"])
def test_whom_a_scheduler_with_queues_may_end_is_not_guessed(tmp_path: Path, scheduler: str) -> None:
    items = [_node("n", 8), _pod("a", 8, "n"), _pod("p", 8, priority=9, schedulerName=scheduler)]
    found = _judged(tmp_path, *items)
    assert found.verdict.endswith("cannot be placed by anyone now unless its scheduler ends running pods")
    (lost,) = found.lost
    assert f"whom {scheduler} may end for it is not read; no moves admit it" in lost.line()
