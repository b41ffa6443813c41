"""What gangs that ask for the same are told apart by, and how many tasks of an array may start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap


def _pod(name: str, node: str | None = None, **spec: Any) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": "8"}
    box = {"name": "c", "resources": {"requests": amounts, "limits": amounts}}
    owner = {"kind": "Job", "name": name, "uid": name, "controller": True, "apiVersion": "batch/v1"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "d", "uid": name, "ownerReferences": [owner]},
        "spec": {"containers": [box], **({"nodeName": node} if node else {}), **spec},
        "status": {"phase": "Running" if node else "Pending"},
    }


def test_whom_a_pod_may_end_is_not_told_of_another_that_asks_for_the_same(tmp_path: Path) -> None:
    pods = [
        _pod("low", "n1", priority=0),
        _pod("gentle", priority=100, preemptionPolicy="Never"),
        _pod("other", priority=100),
    ]
    lines = _lines(tmp_path / "pods.json", [_node("n1"), *pods])
    gentle, other = (next(line for line in lines if name in line) for name in ("gentle", "other"))
    assert "preemptionPolicy is Never" in gentle
    assert "admitted by ending" in other and "Never" not in other


def _node(name: str, **spec: Any) -> dict[str, Any]:
    room = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
    meta = {"name": name, "labels": {"pool": name}}
    return {"kind": "Node", "apiVersion": "v1", "metadata": meta, "spec": spec, "status": {"allocatable": room}}


def _lines(path: Path, items: list[dict[str, Any]]) -> list[str]:
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return [lost.line() for lost in schedgap.judge(path, names=True).lost]


def test_the_cause_of_a_refusal_is_not_that_of_another_gang_that_asks_for_the_same(tmp_path: Path) -> None:
    """The same node refuses one pod for its selector, the other for a taint."""
    taint = {"key": "team", "value": "b", "effect": "NoSchedule"}
    away = [{"key": "team", "operator": "Exists"}]
    pods = [_pod("runs", "n2"), _pod("picky", nodeSelector={"pool": "n2"}, tolerations=away), _pod("plain")]
    lines = _lines(tmp_path / "pods.json", [_node("n1", taints=[taint]), _node("n2"), *pods])
    picky, plain = (next(line for line in lines if name in line) for name in ("picky", "plain"))
    assert "n1: nodeSelector pool=n2" in picky and "taint" not in picky
    assert "n1: taint team=b" in plain and "nodeSelector" not in plain


def test_the_cause_of_a_refusal_is_not_that_of_another_job_of_slurm(tmp_path: Path) -> None:
    """A drained node is not in the partition of the second job; the other one runs full."""
    told = {"job_state": ["PENDING"], "node_count": 1, "cpus": 1, "priority": 1, "tres_req_str": "cpu=1,gres/gpu=2"}
    runs = {
        "job_id": 1,
        "job_state": ["RUNNING"],
        "partition": "a",
        "nodes": "n2",
        "tres_alloc_str": "cpu=1,gres/gpu=2",
    }
    jobs = [
        {**told, **runs},
        {**told, "job_id": 2, "partition": "a,b", "nodes": "", "excluded_nodes": "n1"},
        {**told, "job_id": 3, "partition": "a", "nodes": ""},
    ]
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    nodes = [
        f"NodeName={name} CPUAlloc=0 CPUTot=64\n   Gres=gpu:2\n   RealMemory=1000 AllocMem=0\n   State=IDLE\n"
        f"   Partitions={part}\n   CfgTRES=cpu=64,gres/gpu=2\n   AllocTRES=\n\n"
        for name, part in (("n1", "b"), ("n2", "a"))
    ]
    (tmp_path / "nodes").write_text("".join(nodes))
    found = schedgap.judge(tmp_path / "jobs.json", nodes=tmp_path / "nodes", names=True)
    second, third = (lost.line() for lost in found.lost)
    assert "n1: excluded by it" in second
    assert "n1: partition a" in third


def _judged(path: Path, items: list[dict[str, Any]], **more: Any) -> schedgap.Judgement:
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return schedgap.judge(path, names=True, objectives=["weight", "moves"], **more)


def test_the_first_line_says_how_many_are_ended_for_what_could_run(tmp_path: Path) -> None:
    items = [_node("n1"), _node("n2"), _pod("low", "n1", priority=0), _pod("same", "n2", priority=9)]
    found = _judged(tmp_path / "pods.json", [*items, _pod("a", priority=9)])
    assert found.verdict.startswith(
        "8 of 8 waiting GPUs could run now after ending 1 running pod, the scheduler placed 0"
    )


def test_the_best_decision_ends_nothing_of_higher_priority(tmp_path: Path) -> None:
    items = [_node("n1"), _pod("high", "n1", priority=1000), _pod("a", priority=100)]
    found = _judged(tmp_path / "pods.json", items)
    assert found.verdict.startswith("the decision is optimal by one solver alone: none of 8 waiting GPUs can run now")


def test_whom_a_pod_is_ended_for_is_not_told_by_the_instance_so_the_answer_is_an_interval(tmp_path: Path) -> None:
    """Priorities are 50 on the node, 9 and 100 waiting: only the latter may end it."""
    items = [_node("n1"), _pod("runs", "n1", priority=50), _pod("a", priority=9), _pod("b", priority=100)]
    found = _judged(tmp_path / "pods.json", items)
    assert (found.placed, found.reached, found.most) == (0, 0, 8)
    assert found.reading == "apart"


def test_a_limit_with_moves_lets_what_runs_move(tmp_path: Path) -> None:
    """Two pods of four hold a half of each node; one that waits has a rule that is not read."""
    half = {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "4"}}}]}
    port = {"containers": [{"name": "c", "ports": [{"hostPort": 1}], "resources": {"limits": {"nvidia.com/gpu": "8"}}}]}
    items = [_node("n1"), _node("n2"), _pod("r1", "n1", **half), _pod("r2", "n2", **half), _pod("a", **port)]
    found = _judged(tmp_path / "pods.json", items)
    assert (found.reached, found.most) == (0, 8)


@pytest.mark.parametrize(
    ("tasks", "active", "state", "count"),
    [
        ("0-9%2", 0, "RUNNING", 2),
        ("0-9%2", 1, "RUNNING", 1),
        ("0-9%2", 2, "RUNNING", 0),
        ("0-9%2", 2, "SUSPENDED", 0),
        ("0-9%2", 2, "COMPLETED COMPLETING", 2),
        ("0-9", 1, "RUNNING", 8),
    ],
)
def test_no_more_tasks_of_an_array_start_than_may_run(
    tmp_path: Path, tasks: str, active: int, state: str, count: int
) -> None:
    """A node of ten GPUs, tasks of one; a task that completes holds its GPU and does not count any more."""

    def job(name: int, state: str, gpus: int, **more: Any) -> dict[str, Any]:
        tres = f"cpu=1,node=1,gres/gpu={gpus}"
        told = {
            "job_id": name,
            "job_state": state.split(),
            "partition": "gpu",
            "node_count": 1,
            "cpus": 1,
            "priority": 1,
        }
        where = {"nodes": "n1", "tres_alloc_str": tres} if state != "PENDING" else {"nodes": "", "tres_alloc_str": ""}
        return {**told, **where, "tres_req_str": tres, "array_job_id": 5, "array_task_string": "", **more}

    jobs = [job(100 + k, state, 1) for k in range(active)]
    jobs += [job(200, "RUNNING", 2 - active, array_job_id=0)] if active < 2 else []
    jobs.append(job(5, "PENDING", 1, array_task_string=tasks))
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": jobs}))
    (tmp_path / "nodes").write_text(
        "NodeName=n1 CPUAlloc=0 CPUTot=64\n   Gres=gpu:10\n   RealMemory=1000 AllocMem=0\n   State=MIXED\n"
        "   Partitions=gpu\n   CfgTRES=cpu=64,gres/gpu=10\n   AllocTRES=\n\n"
    )
    found = schedgap.judge(tmp_path / "jobs.json", nodes=tmp_path / "nodes", names=True)
    assert sum(lost.fits for lost in found.lost) == count
