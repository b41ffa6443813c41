"""More clusters restated from public issues, by another hand than the readers', each with its source and the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap

Data = dict[str, Any]
GPU = "nvidia.com/gpu"
HOST = "kubernetes.io/hostname"


def _node(
    name: str, gpus: int = 0, *, taints: list[Data] | None = None, notes: Data | None = None, **room: str
) -> Data:
    given = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)} | room
    meta = {"name": name, "labels": {HOST: name, "rack": name[0]}, "annotations": notes or {}}
    status = {"allocatable": given, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "apiVersion": "v1", "metadata": meta, "spec": {"taints": taints or []}, "status": status}


def _pod(
    name: str, asked: Data, on: str = "", *, notes: Data | None = None, labels: Data | None = None, **spec: Any
) -> Data:
    box = {"name": "c", "resources": {"requests": asked, "limits": asked}}
    meta = {"name": name, "namespace": "d", "annotations": notes or {}, "labels": labels or {}}
    made = {"containers": [box], **({"nodeName": on} if on else {}), **spec}
    phase = {"phase": "Running" if on else "Pending"}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": made, "status": phase}


def _hami(name: str, number: int, memory: int = 0, *cards: tuple[str, int], on: str = "") -> Data:
    asked = {GPU: str(number)} | ({"nvidia.com/gpumem": str(memory)} if memory else {})
    held = "".join(f"{card},NVIDIA,{size},0:" for card, size in cards)
    notes = {"hami.io/vgpu-devices-allocated": f"{held};"} if cards else {}
    return _pod(name, asked, on, notes=notes, schedulerName="hami-scheduler")


def _cards(*sizes: int) -> Data:
    cards = [
        {"id": f"GPU-{k}", "count": 10, "devmem": size, "devcore": 100, "health": True} for k, size in enumerate(sizes)
    ]
    return {"hami.io/node-nvidia-register": json.dumps(cards)}


def _volcano(name: str, least: int, *asked: int, queue: str = "default") -> list[Data]:
    """A PodGroup with pods of so many GPUs."""
    notes = {"scheduling.k8s.io/group-name": name}
    pods = [_pod(f"{name}-{k}", {GPU: str(gpus)}, notes=notes, schedulerName="volcano") for k, gpus in enumerate(asked)]
    meta = {"name": name, "namespace": "d"}
    spec = {"minMember": least, "queue": queue}
    return [*pods, {"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": meta, "spec": spec}]


def _kueue_pods(name: str, count: int, gpus: int, notes: Data, **spec: Any) -> list[Data]:
    labels = {"kueue.x-k8s.io/pod-group-name": name}
    total = {"kueue.x-k8s.io/pod-group-total-count": str(count)}
    return [_pod(f"{name}-{k}", {GPU: str(gpus)}, notes=notes | total, labels=labels, **spec) for k in range(count)]


TAINT = [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]
REQUIRED = {"kueue.x-k8s.io/podset-required-topology": HOST}


def _kai(count: int, gpus: int, queue: str, **spec: Any) -> list[Data]:
    """A PodGroup of KAI-Scheduler with its pods, all of which it needs."""
    meta = {"name": "pg", "namespace": "d"}
    group = {"kind": "PodGroup", "apiVersion": "scheduling.run.ai/v2alpha2", "metadata": meta}
    notes, labels = {"pod-group-name": "pg"}, {"kai.scheduler/queue": queue} if queue else {}
    pods = [
        _pod(f"g-{k}", {GPU: str(gpus)}, notes=notes, labels=labels, schedulerName="kai-scheduler", **spec)
        for k in range(count)
    ]
    return [*pods, group | {"spec": {"minMember": count, **({"queue": queue} if queue else {})}}]


def _kai_queue(name: str, limit: int, parent: str = "", quota: int = 0) -> Data:
    part = {"limit": limit, "quota": quota, "overQuotaWeight": 1}
    free = {"limit": -1, "quota": quota, "overQuotaWeight": 1}
    spec = {"resources": {"gpu": part, "cpu": free, "memory": free}} | ({"parentQueue": parent} if parent else {})
    return {"kind": "Queue", "apiVersion": "scheduling.run.ai/v2", "metadata": {"name": name}, "spec": spec}


def _volcano_queue(name: str, **spec: Any) -> Data:
    return {"kind": "Queue", "apiVersion": "scheduling.volcano.sh/v1beta1", "metadata": {"name": name}, "spec": spec}


def _alone(scheduler: str, **labels: str) -> Data:
    return _pod("s", {GPU: "8"}, labels=labels, schedulerName=scheduler)


LIMIT = "fits but for the limit of its queue, which is not read"
Case = tuple[str, list[Data], str, dict[str, str], str]
CASES: list[Case] = [
    (
        "HAMi#1535: 9 vGPUs of 3000 MiB of one card of 24 GB, where 7 are said to start: parts of several, not judged",
        [_node("n", 10, notes=_cards(24576)), _hami("p", 9, 3000)],
        "no gang waits in what was read",
        {"d/p": "not judged"},
        "it asks for parts of several GPUs",
    ),
    (
        "HAMi#444: one card split tenfold, a pod of 2 vGPUs stays pending by design",
        [_node("n", 10, notes=_cards(24576)), _hami("p", 2)],
        "the decision is optimal: none of 2",
        {"d/p": "barred"},
        "",
    ),
    (
        "HAMi#587: 10000 of 24576 MiB beside 10000 fits the card",
        [_node("n", 10, notes=_cards(24576)), _hami("r", 1, 10000, ("GPU-0", 10000), on="n"), _hami("p", 1, 10000)],
        "0.",
        {"d/p": "fits"},
        "the best decision places it",
    ),
    (
        "HAMi#587: a third of 10000 does not",
        [
            _node("n", 10, notes=_cards(24576)),
            _hami("r", 1, 10000, ("GPU-0", 10000), on="n"),
            _hami("s", 1, 10000, ("GPU-0", 10000), on="n"),
            _hami("p", 1, 10000),
        ],
        "the decision is optimal",
        {"d/p": "barred"},
        "",
    ),
    (
        "volcano#3319: 2 GPUs, pods of 2, 1 and 1, minAvailable 2: the two small ones start",
        [_node("n", 2), *_volcano("g", 2, 2, 1, 1)],
        "",
        {"d/g": "fits"},
        "2 of its 3 pods",
    ),
    (
        "volcano#2229: no GPU on any node, a worker of one GPU and a server, minAvailable 2",
        [_node("n", 0), *_volcano("g", 2, 0, 1)],
        "the decision is optimal: none of 1",
        {"d/g": "barred"},
        "0 GPUs are free",
    ),
    (
        "kueue#6868: a tainted node does not count for a required level",
        [_node("n", 8, taints=TAINT), _node("m", 4), *_kueue_pods("g", 2, 4, REQUIRED)],
        "the decision is optimal",
        {"d/g": "barred"},
        "taint dedicated=infra",
    ),
    (
        "kueue#6868: with the toleration it fits there",
        [
            _node("n", 8, taints=TAINT),
            _node("m", 4),
            *_kueue_pods("g", 2, 4, REQUIRED, tolerations=[{"key": "dedicated", "operator": "Exists"}]),
        ],
        "8 of 8",
        {"d/g": "fits"},
        "",
    ),
    (
        "kueue#5998: 100 pods of 100m and a node that takes 100",
        [_node("n", 0, pods="100"), *(_pod(f"p{k}", {"cpu": "100m", "memory": "100Mi"}) for k in range(3)),
         *(_pod(f"r{k}", {"cpu": "100m", "memory": "100Mi"}, "n") for k in range(98))],
        "2 of 3",
        {"d/p0": "fits", "d/p1": "fits", "d/p2": "could"},
        "",
    ),
    (
        "KAI#993: gpu-fraction 0.5 of the one GPU of a laptop fits",
        [_node("n", 1), _pod("p", {}, notes={"gpu-fraction": "0.5"}, schedulerName="kai-scheduler")],
        "0.5 of 0.5",
        {"d/p": "fits"},
        "",
    ),
    (
        "KAI#500: a gang of more than the cluster has starts none of its pods",
        [
            _node("n", 4),
            *(
                _pod(f"g-{k}", {GPU: "2"}, notes={"pod-group-name": "pg"}, schedulerName="kai-scheduler")
                for k in range(3)
            ),
            {
                "kind": "PodGroup",
                "apiVersion": "scheduling.run.ai/v2alpha2",
                "metadata": {"name": "pg", "namespace": "d"},
                "spec": {"minMember": 3},
            },
        ],
        "the decision is optimal: none of 6",
        {"d/pg": "barred"},
        "4 GPUs are free, 6 are wanted",
    ),
    (
        "kube-batch#938: processors nearly full, all or none",
        [
            _node("n", 0, cpu="4"),
            _pod("r", {"cpu": "1500m"}, "n"),
            *(
                _pod(f"g-{k}", {"cpu": "1"}, notes={"scheduling.k8s.io/group-name": "g"}, schedulerName="volcano")
                for k in range(3)
            ),
            _volcano("g", 3)[-1],
        ],
        "the decision is optimal: none of 1 waiting gang",
        {"d/g": "barred"},
        "cpu",
    ),
    (
        "KAI#500: a gang of more than its queue's limit starts none of its pods: the limit is not read",
        [_node("n", 8), _kai_queue("q", 1), *_kai(2, 2, "q")],
        "0 to 4 of 4",
        {"d/pg": "may"},
        LIMIT,
    ),
    (
        "KAI manual, default-queues.yaml: limits of -1 in a queue and its parent are none",
        [_node("n", 8), _kai_queue("q", -1, "top"), _kai_queue("top", -1), *_kai(2, 2, "q")],
        "4 of 4",
        {"d/pg": "fits"},
        "the best decision places it",
    ),
    (
        "KAI manual, default-queues.yaml: the limit of the parent holds, too",
        [_node("n", 8), _kai_queue("q", -1, "top"), _kai_queue("top", 2), *_kai(2, 2, "q")],
        "0 to 4 of 4",
        {"d/pg": "may"},
        LIMIT,
    ),
    (
        "KAI manual: what may not be ended (priority 100 and more) has no more than the quota",
        [_node("n", 8), _kai_queue("q", -1, quota=2), *_kai(2, 2, "q", priority=100)],
        "0 to 4 of 4",
        {"d/pg": "may"},
        LIMIT,
    ),
    (
        "KAI manual: a queue that is not listed may have a limit",
        [_node("n", 8), *_kai(2, 2, "q")],
        "4 of 4",
        {"d/pg": "fits"},
        "its queue is not listed and is read as without a limit",
    ),
    (
        "KAI: a gang that fits nowhere is barred whatever its queue",
        [_node("n", 2), _kai_queue("q", 1), *_kai(2, 2, "q")],
        "the decision is optimal by one solver alone: none of 4",
        {"d/pg": "barred"},
        "2 GPUs are free, 4 are wanted",
    ),
    (
        "volcano manual, Queue: capability is the upper limit of a queue",
        [_node("n", 8), _volcano_queue("q", capability={GPU: "4"}), *_volcano("g", 2, 4, 4, queue="q")],
        "0 to 8 of 8",
        {"d/g": "may"},
        LIMIT,
    ),
    (
        "volcano manual, Queue: a weight is no limit",
        [_node("n", 8), _volcano_queue("q", weight=1), *_volcano("g", 2, 4, 4, queue="q")],
        "8 of 8",
        {"d/g": "fits"},
        "the best decision places it",
    ),
    (
        "volcano manual, Queue: what another queue is guaranteed is not there for this one",
        [
            _node("n", 8),
            _volcano_queue("q", weight=1),
            _volcano_queue("p", guarantee={"resource": {GPU: "4"}}),
            *_volcano("g", 2, 4, 4, queue="q"),
        ],
        "0 to 8 of 8",
        {"d/g": "may"},
        LIMIT,
    ),
    (
        "YUNIKORN manual, quotas: a queue's quota is in its configuration, which is not listed",
        [_node("n", 8), _alone("yunikorn", queue="root.small", applicationId="a")],
        "8 of 8",
        {"d/s": "fits"},
        "its queue is not listed and is read as without a limit",
    ),
    (
        "scheduler-plugins manual, Capacity Scheduling: max of the namespace's ElasticQuota",
        [
            _node("n", 8),
            {
                "kind": "ElasticQuota",
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "metadata": {"name": "eq", "namespace": "d"},
                "spec": {"max": {GPU: "4"}},
            },
            _alone("scheduler-plugins-scheduler"),
        ],
        "0 to 8 of 8",
        {"d/s": "may"},
        "fits but for the ElasticQuota of its namespace, which is not read",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{k}-{case[0].split(':')[0]}" for k, case in enumerate(CASES)])
def test_what_an_issue_says_is_what_is_answered(case: Case, tmp_path: Path) -> None:
    _, items, head, fates, part = case
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    found = schedgap.judge(path, names=True)
    assert {one.gang: one.fate for one in found.lost} == fates, found.to_text()
    assert found.verdict.startswith(head) and part in "\n".join(one.line() for one in found.lost), found.to_text()


def test_the_first_line_says_that_a_queue_is_not_listed(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [_node("n", 8), *_kai(2, 2, "q")]}))
    assert schedgap.judge(path).verdict.endswith(
        "1 more gang fits; whether the queue of 1 gang has a limit is not told"
    )
