"""What a Kueue queue asks beside its quota; names and operators that are not known. Nobody is said to fit by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap

Data = dict[str, Any]
GPU = "nvidia.com/gpu"
KUEUE = "kueue.x-k8s.io/v1beta1"


def _node(name: str, *, labels: Data | None = None, **spec: Any) -> Data:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"}
    status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": meta, "spec": spec, "status": status}


def _pod(*, box: Data | None = None, **spec: Any) -> Data:
    container = {"name": "c", "resources": {"requests": {GPU: "2"}}, **(box or {})}
    meta = {"name": "p", "namespace": "d"}
    return {
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def _queue(asked: Data | None = None, local: Data | None = None, labels: Data | None = None, **more: Any) -> list[Data]:
    """A queue of 80 GPUs of one flavour, and a Workload of two pods of 4 GPUs."""
    flavor = {"name": "f", "resources": [{"name": GPU, "nominalQuota": 80}]}
    spec = {"resourceGroups": [{"coveredResources": [GPU], "flavors": [flavor]}], **more}
    status = {"flavorsReservation": [{"name": "f", "resources": [{"name": GPU, "total": "0"}]}]}
    box = {"name": "c", "resources": {"requests": {GPU: "4", **(asked or {})}}}
    sets = [{"name": "main", "count": 2, "template": {"spec": {"containers": [box]}}}]
    kinds = {
        "ClusterQueue": ({"name": "cq"}, {"spec": spec, "status": status}),
        "LocalQueue": ({"name": "q", "namespace": "d"}, {"spec": {"clusterQueue": "cq", **(local or {})}}),
        "ResourceFlavor": ({"name": "f"}, {"spec": {"nodeLabels": labels or {}}}),
        "Workload": ({"name": "w", "namespace": "d"}, {"spec": {"podSets": sets, "queueName": "q"}}),
    }
    return [{"kind": kind, "apiVersion": KUEUE, "metadata": meta, **rest} for kind, (meta, rest) in kinds.items()]


def _verdict(folder: Path, *items: Data) -> schedgap.Judgement:
    path = folder / "snapshot.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    return schedgap.judge(path, names=True)


def test_a_queue_that_asks_nothing_more_has_room(tmp_path: Path) -> None:
    found = _verdict(tmp_path, _node("n", labels={"gpu": "h100"}), *_queue(labels={"gpu": "h100"}))
    assert found.verdict.startswith("8 of 8 waiting GPUs could run now")


@pytest.mark.parametrize("where", ["cluster", "local"])
@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_stopped_queue_takes_its_gangs_out(tmp_path: Path, where: str, policy: str) -> None:
    stop = {"stopPolicy": policy}
    found = _verdict(tmp_path, _node("n"), *(_queue(**stop) if where == "cluster" else _queue(local=stop)))
    assert found.verdict.startswith("no gang waits in what was read: 1 gang is not judged: its queue is stopped")


@pytest.mark.parametrize(
    ("queue", "rule"),
    [
        (_queue(namespaceSelector={"matchLabels": {"team": "b"}}), "the namespaces of its queue"),
        (_queue(admissionChecks=["budget"]), "the admission checks of its queue"),
        (_queue(admissionChecksStrategy={"admissionChecks": [{"name": "b"}]}), "the admission checks of its queue"),
        (_queue(asked={"cpu": "1"}), "a resource that its queue does not cover"),
        (_queue(labels={"gpu": "h100"}), "the nodes of its queue's flavour"),
    ],
)
def test_what_else_a_queue_asks_is_named(tmp_path: Path, queue: list[Data], rule: str) -> None:
    found = _verdict(tmp_path, _node("n"), *queue)
    assert found.verdict.startswith("0 to 8 of 8 waiting GPUs could run now")
    assert f"1 gang fits but for {rule}, which" in found.verdict


def test_operators_that_are_not_known_take_the_pod_out(tmp_path: Path) -> None:
    tainted = _node("n", taints=[{"key": "sla", "value": "950", "effect": "NoSchedule"}])
    more = [{"key": "sla", "operator": "Gt", "value": "900", "effect": "NoSchedule"}]
    found = _verdict(tmp_path, tainted, _pod(tolerations=more))
    assert "the operator Gt of its toleration is not known" in found.verdict
    term = {"matchExpressions": [{"key": "rank", "operator": "CloseTo", "values": ["3"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    found = _verdict(tmp_path, _node("n"), _pod(affinity={"nodeAffinity": required}))
    assert "the operator CloseTo of its node affinity is not known" in found.verdict


def test_fields_of_containers_and_nodes_that_are_not_known_are_told(tmp_path: Path) -> None:
    found = _verdict(tmp_path, _node("n"), _pod(box={"gpuTopology": "ring"}))
    assert "1 gang is not judged: gpuTopology is not known" in found.verdict
    found = _verdict(tmp_path, _node("n", schedulingFreeze=True), _pod())
    assert "nodes with spec.schedulingFreeze, which is not known: 1" in found.to_text()


def test_the_table_of_a_listing_with_two_readings_is_of_what_is_reached(tmp_path: Path) -> None:
    found = _verdict(tmp_path, _node("n"), *_queue(admissionChecks=["budget"]))
    assert found.table()[0] == ("", "scheduler", "reached", "its bound")
    found = _verdict(tmp_path, _node("n"), _pod())
    assert found.table()[0] == ("", "scheduler", "optimal", "bound")


def test_the_first_line_says_that_moving_or_ending_pods_would_help(tmp_path: Path) -> None:
    low = _pod(nodeName="n", priority=1) | {"status": {"phase": "Running"}}
    low["metadata"] = {"name": "low", "namespace": "d"}
    low["spec"]["containers"][0]["resources"]["requests"][GPU] = "8"
    found = _verdict(tmp_path, _node("n"), low, _pod(priority=9))
    assert found.verdict.endswith("1 gang cannot be placed by anyone now unless running pods are moved or ended")


def test_kinds_that_are_not_known_and_bear_on_placement_may_keep_any_gang_out(tmp_path: Path) -> None:
    """Koordinator's Reservation may hold all GPUs."""
    held = {"kind": "Reservation", "apiVersion": "scheduling.koordinator.sh/v1alpha1", "metadata": {"name": "r"}}
    found = _verdict(tmp_path, _node("n"), held | {"spec": {"template": {}}}, _pod())
    assert found.verdict.startswith("0 to 2 of 2 waiting GPUs could run now")
    assert "fits but for the cluster's Reservation objects, which are not read" in found.verdict
    elsewhere = {"kind": "Dashboard", "apiVersion": "acme.io/v1", "metadata": {"name": "r", "namespace": "d"}}
    assert _verdict(tmp_path, _node("n"), elsewhere, _pod()).verdict.startswith("2 of 2 waiting GPUs could run now")


@pytest.mark.parametrize("limit", [-1, 4])
def test_a_queue_that_was_read_is_not_told_as_unread(tmp_path: Path, limit: int) -> None:
    given = {kind: {"limit": limit, "quota": -1} for kind in ("gpu", "cpu", "memory")}
    queue = {
        "kind": "Queue",
        "apiVersion": "scheduling.run.ai/v2",
        "metadata": {"name": "t"},
        "spec": {"resources": given},
    }
    pod = _pod(schedulerName="kai-scheduler")
    pod["metadata"]["labels"] = {"kai.scheduler/queue": "t"}
    found = _verdict(tmp_path, _node("n"), pod, queue)
    assert not any("Queue" in what for what in found.unread)
    assert ("the limit of its queue" in found.verdict) is (limit > 0)


def test_gangs_without_whole_gpus_are_told_beside_an_amount_of_gpus(tmp_path: Path) -> None:
    mig = {"resources": {"requests": {"nvidia.com/mig-1g.5gb": "1"}}}
    node, small, large = _node("n"), _pod(box=mig), _pod(box={"resources": {"requests": {GPU: "9"}}})
    node["status"]["allocatable"]["nvidia.com/mig-1g.5gb"] = "1"
    large["metadata"] = {"name": "large", "namespace": "d"}
    found = _verdict(tmp_path, node, small, large)
    assert found.verdict.startswith(
        "0 of 9 waiting GPUs could run now, the scheduler placed 0: 1 more gang fits, not counted in GPUs"
    )


def test_a_workload_that_was_evicted_and_is_not_in_its_queue_again_is_not_judged(tmp_path: Path) -> None:
    *kinds, work = _queue()
    for status, verdict in (("True", "8 of 8 waiting GPUs could run now"), ("False", "no gang waits in what was read")):
        work["status"] = {"conditions": [{"type": "Requeued", "status": status, "reason": "BackoffFinished"}]}
        assert _verdict(tmp_path, _node("n"), *kinds, work).verdict.startswith(verdict)


@pytest.mark.parametrize("strict", [False, True])
def test_in_a_strict_queue_a_workload_waits_for_the_older_one(tmp_path: Path, strict: bool) -> None:
    """The older one wants 16 GPUs of 8, so Kueue rightly admits none of the two; the other one alone fits."""
    more = {"queueingStrategy": "StrictFIFO"} if strict else {}
    *kinds, young = _queue(**more)
    old = json.loads(json.dumps(young))
    old["metadata"] |= {"name": "old", "creationTimestamp": "2026-11-29T00:00:00Z"}
    old["spec"]["podSets"][0]["count"] = 4
    young["metadata"]["creationTimestamp"] = "2026-11-30T00:00:00Z"
    found = _verdict(tmp_path, _node("n"), *kinds, young, old)
    assert (found.reached, found.most) == (0 if strict else 8, 8)
    assert ("1 gang fits but for the StrictFIFO order of its queue, which is not read" in found.verdict) is strict
    old["metadata"]["creationTimestamp"] = "2026-11-30T12:00:00Z"
    assert _verdict(tmp_path, _node("n"), *kinds, young, old).reached == 8
    old["spec"]["priority"] = 9
    assert _verdict(tmp_path, _node("n"), *kinds, young, old).reached == (0 if strict else 8)


@pytest.mark.parametrize(("reason", "reached"), [("Priority", 0), ("Resources", 8)])
def test_a_job_of_slurm_that_waits_behind_others_may_be_kept_from_room(
    tmp_path: Path, reason: str, reached: int
) -> None:
    """Backfill starts it only where it ends before the planned start of the jobs ahead of it."""
    job = {"job_id": 1, "job_state": "PENDING", "state_reason": reason, "node_count": 1, "cpus": 1, "tasks": 1}
    job |= {
        "priority": 1,
        "tres_req_str": "cpu=1,node=1,gres/gpu=8",
        "tres_alloc_str": "",
        "nodes": "",
        "partition": "",
    }
    (tmp_path / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    (tmp_path / "nodes.txt").write_text("NodeName=n\n   CPUTot=8\n   Gres=gpu:8\n   RealMemory=8000\n   State=IDLE\n\n")
    found = schedgap.judge(tmp_path / "jobs.json", tmp_path / "nodes.txt")
    assert (found.reached, found.most) == (reached, 8)
    told = "fits but for the room that Slurm may keep for jobs of higher priority, which is not read"
    assert (told in found.verdict) is (reason == "Priority")


@pytest.mark.parametrize(("asked", "told"), [("2", False), ("16", True)])
def test_a_podgroup_may_ask_for_more_than_its_pods(tmp_path: Path, asked: str, told: bool) -> None:
    """Volcano lets its job into the queue, and coscheduling starts a cycle, where minResources are there."""
    meta = {"name": "g", "namespace": "d"}
    group = {"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": meta}
    group |= {"spec": {"minMember": 1, "minResources": {GPU: asked}}}
    pod = _pod(schedulerName="volcano")
    pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    verdict = _verdict(tmp_path, _node("n"), pod, group).verdict
    assert ("fits but for the minResources of its PodGroup, which are not read" in verdict) is told


def test_nodes_that_kueue_has_assigned_are_not_said_to_be_free(tmp_path: Path) -> None:
    *kinds, work = _queue()
    given = json.loads(json.dumps(work))
    given["metadata"] |= {"name": "given", "ownerReferences": [{"kind": "Job", "name": "j"}]}
    assigned = {"levels": ["kubernetes.io/hostname"], "domains": [{"values": ["n"], "count": 2}]}
    given["status"] = {
        "conditions": [{"type": "Admitted", "status": "True"}],
        "admission": {"podSetAssignments": [{"name": "main", "topologyAssignment": assigned}]},
    }
    found = _verdict(tmp_path, _node("n"), *kinds, work, given)
    assert (found.reached, found.most) == (0, 8)
    assert "fits but for the nodes that Kueue has assigned to a Workload whose pods are not there yet" in found.verdict
    pod = _pod(nodeName="m")
    pod["metadata"] |= {"name": "there", "ownerReferences": [{"kind": "Job", "name": "j"}]}
    pod["status"]["phase"] = "Running"
    assert _verdict(tmp_path, _node("n"), _node("m"), *kinds, work, given, pod).reached == 8


@pytest.mark.parametrize(
    ("reason", "description", "waits"),
    [
        ("Resources", "", True),
        ("ReqNodeNotAvail", "(null)", True),
        ("ReqNodeNotAvail", "Reserved for maintenance", False),
        ("Resources", "Nodes required for job are DOWN, DRAINED or reserved", False),
    ],
)
def test_slurms_description_is_the_reason(tmp_path: Path, reason: str, description: str, waits: bool) -> None:
    assert (_slurm(tmp_path, "IDLE", state_reason=reason, state_description=description).waiting == 8) is waits


@pytest.mark.parametrize(
    "state", ["IDLE*", "IDLE+BLOCKED", "FUTURE", "ERROR", "IDLE+INVALID_REG", "IDLE+NOT_RESPONDING"]
)
def test_a_node_that_takes_no_jobs_is_closed(tmp_path: Path, state: str) -> None:
    assert _slurm(tmp_path, "IDLE+PLANNED").reached == 8
    assert _slurm(tmp_path, state).reached == 0


def _slurm(folder: Path, state: str, **more: Any) -> schedgap.Judgement:
    job = {"job_id": 1, "job_state": "PENDING", "node_count": 1, "cpus": 1, "tasks": 1, "priority": 1, **more}
    job |= {"tres_req_str": "cpu=1,node=1,gres/gpu=8", "tres_alloc_str": "", "nodes": "", "partition": ""}
    (folder / "jobs.json").write_text(json.dumps({"jobs": [job]}))
    node = f"NodeName=n\n   CPUTot=8\n   Gres=gpu:8\n   RealMemory=8000\n   State={state}\n\n"
    (folder / "nodes.txt").write_text(node)
    return schedgap.judge(folder / "jobs.json", folder / "nodes.txt")


@pytest.mark.parametrize(
    ("state", "on", "placed", "waiting"),
    [("PENDING", [None, None], 0, 24), ("PREPARED", ["a", "b"], 16, 24), ("RESCHEDULING", ["a", None], 0, 8)],
)
def test_ray_keeps_what_it_has_reserved(
    tmp_path: Path, state: str, on: list[str | None], placed: int, waiting: int
) -> None:
    def group(name: str, state: str, nodes: list[str | None]) -> Data:
        bundles = [{"unit_resources": {"GPU": 8.0}, "node_id": node} for node in nodes]
        return {"placement_group_id": name, "state": state, "bundles": bundles}

    groups = [group("g", state, on), group("h", "PENDING", [None])]
    nodes = [{"node_id": name, "state": "ALIVE", "resources_total": {"GPU": 8.0, "CPU": 8.0}} for name in "ab"]
    (tmp_path / "groups.json").write_text(json.dumps(groups))
    (tmp_path / "nodes.json").write_text(json.dumps(nodes))
    found = schedgap.judge(tmp_path / "groups.json", tmp_path / "nodes.json", form="ray")
    assert (found.placed, found.waiting) == (placed, waiting)
    if state != "PREPARED":
        assert found.verdict.endswith("what runs outside of placement groups is not listed")
