"""Clusters restated from public issues and manuals of schedulers, each with its source and the answer argued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap

Data = dict[str, Any]
GPU = "nvidia.com/gpu"
HALVES = {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}


def _node(name: str, gpus: int = 0, labels: Data | None = None, notes: Data | None = None, **room: str) -> Data:
    meta = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}, "annotations": notes or {}}
    given = {"cpu": "64", "memory": "512Gi", "pods": "110"} | ({GPU: str(gpus)} if gpus else {})
    given |= {key if key == "cpu" else f"volcano.sh/vgpu-{key}": value for key, value in room.items()}
    status = {"allocatable": given, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"kind": "Node", "metadata": meta, "spec": {}, "status": status}


def _pod(name: str, gpus: int = 0, on: str = "", notes: Data | None = None, **more: Any) -> Data:
    requests = {GPU: str(gpus)} if gpus else {}
    requests |= more.pop("requests", {})
    spec = {"containers": [{"name": "c", "resources": {"requests": requests}}], **more}
    meta = {"name": name, "namespace": "d", "annotations": notes or {}, "labels": spec.pop("labels", {})}
    if spec.pop("owned", False):
        meta["ownerReferences"] = [{"kind": "Job", "name": "o", "controller": True}]
    spec |= {"nodeName": on} if on else {}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running" if on else "Pending"}}


def _gang(name: str, count: int, gpus: int, notes: Data, **more: Any) -> list[Data]:
    return [_pod(f"{name}-{k}", gpus, notes=notes, **more) for k in range(count)]


def _group(name: str, api: str, **spec: Any) -> Data:
    return {"kind": "PodGroup", "apiVersion": api, "metadata": {"name": name, "namespace": "d"}, "spec": spec}


def _volcano(name: str, least: int) -> tuple[Data, Data]:
    return {"scheduling.k8s.io/group-name": name}, _group(name, "scheduling.volcano.sh/v1beta1", minMember=least)


def _workload(name: str, *sets: Data, **spec: Any) -> Data:
    meta = {"name": name, "namespace": "d"}
    return {
        "kind": "Workload",
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "metadata": meta,
        "spec": {"podSets": [*sets], **spec},
    }


def _set(count: int, gpus: int, **more: Any) -> Data:
    resources = {"requests": {GPU: str(gpus)}}
    return {
        "name": "main",
        "count": count,
        "template": {"spec": {"containers": [{"name": "c", "resources": resources}]}},
    } | more


def _queues(nominal: int, used: int, **more: Any) -> list[Data]:
    flavor = {"name": "f", "resources": [{"name": GPU, "nominalQuota": nominal}]}
    spec = {"resourceGroups": [{"coveredResources": [GPU], "flavors": [flavor]}], **more}
    status = {"flavorsReservation": [{"name": "f", "resources": [{"name": GPU, "total": str(used)}]}]}
    cluster = {"kind": "ClusterQueue", "apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": {"name": "cq"}}
    local = {"kind": "LocalQueue", "apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": {"name": "q", "namespace": "d"}}
    return [cluster | {"spec": spec, "status": status}, local | {"spec": {"clusterQueue": "cq"}}]


def _two_kinds() -> list[Data]:
    return [_node("a", 8, {"kind": "spot"}), _node("b", 8, {"kind": "reserved"})]


def _flavoured(amounts: dict[str, tuple[int, int]], labels: Data | None = None) -> list[Data]:
    """A queue with (quota, what is used of it) by flavour, whose nodes bear its name, or all the same labels."""
    cluster, local = _queues(0, 0)
    flavors = [
        {"name": name, "resources": [{"name": GPU, "nominalQuota": quota}]} for name, (quota, _) in amounts.items()
    ]
    used = [{"name": name, "resources": [{"name": GPU, "total": total}]} for name, (_, total) in amounts.items()]
    kinds = [
        {
            "kind": "ResourceFlavor",
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "metadata": {"name": name},
            "spec": {"nodeLabels": labels or {"kind": name}},
        }
        for name in amounts
    ]
    cluster["spec"] = {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}
    cluster["status"] = {"flavorsReservation": used}
    return [cluster, local, *kinds]


def _bare_flavours() -> list[Data]:
    cluster, *others = _flavoured({"spot": (4, 2), "reserved": (2, 0)})
    for flavor in cluster["spec"]["resourceGroups"][0]["flavors"]:
        flavor["resources"] = []
    return [cluster, *others]


def _cards(*sizes: int) -> Data:
    cards = [
        {"id": f"GPU-{k}", "count": 10, "devmem": size, "devcore": 100, "health": True} for k, size in enumerate(sizes)
    ]
    return {"hami.io/node-nvidia-register": json.dumps(cards)}


def _hami(name: str, number: int, memory: int = 0, on: str = "", card: str = "") -> Data:
    asked = {"nvidia.com/gpumem": str(memory)} if memory else {}
    notes = {"hami.io/vgpu-devices-allocated": f"{card},NVIDIA,{memory},0:;"} if card else {}
    return _pod(name, number, on, notes, requests=asked, schedulerName="hami-scheduler")


def _vgpu(name: str, memory: int, on: str = "") -> Data:
    asked = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": str(memory)}
    return _pod(name, 0, on, requests=asked, schedulerName="volcano")


REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
KUEUE = {"kueue.x-k8s.io/pod-group-name": "g"}
BLOCK = "oci.oraclecloud.com/rdma.local_block_id"
KAI = {"schedulerName": "kai-scheduler"}
NATIVE = "scheduling.k8s.io/v1alpha2"


def _kai(name: str, fraction: str, on: str = "", **more: Any) -> Data:
    return _pod(name, 0, on, {"gpu-fraction": fraction, "pod-group-name": f"pg-{name}"}, **KAI, **more)


def _kai_groups(*names: str) -> list[Data]:
    return [_group(f"pg-{name}", "scheduling.run.ai/v2alpha2", minMember=1) for name in names]


def _native(count: int, least: int, gpus: int, **spec: Any) -> list[Data]:
    policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
    pods = [_pod(f"w-{k}", gpus, schedulingGroup={"podGroupName": "g"}) for k in range(count)]
    return [*pods, _group("g", NATIVE, **policy, **spec)]


def _grove(*sets: tuple[str, int, int, int]) -> list[Data]:
    """(name, pods, minReplicas, GPUs) of the groups of a PodGang."""
    pods = [
        _pod(f"{name}-{k}", gpus, labels={"grove.io/podgang": "pg", "grove.io/podclique": name})
        for name, count, _, gpus in sets
        for k in range(count)
    ]
    groups = [{"name": name, "minReplicas": least} for name, _, least, _ in sets]
    gang = {
        "kind": "PodGang",
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "metadata": {"name": "pg", "namespace": "d"},
    }
    return [*pods, gang | {"spec": {"podgroups": groups}}]


def _lws(count: int, size: int, gpus: int) -> list[Data]:
    notes = {"leaderworkerset.sigs.k8s.io/size": str(size)}
    labels = {"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "0"}
    return [_pod(f"llm-0-{k}", gpus, notes=notes, labels=labels) for k in range(count)]


def _yunikorn(count: int, least: int, gpus: int) -> list[Data]:
    groups = json.dumps([{"name": "w", "minMember": least, "minResource": {GPU: gpus}}])
    notes = {"yunikorn.apache.org/task-group-name": "w", "yunikorn.apache.org/task-groups": groups}
    return _gang("w", count, gpus, notes, schedulerName="yunikorn", labels={"applicationId": "app"})


def _apart(name: str, gpus: int) -> Data:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return _pod(name, gpus, notes={"scheduling.k8s.io/group-name": "g"}, labels={"app": "x"}, affinity=affinity)


Case = tuple[str, list[Data], str, dict[str, str], str]
V, G = _volcano("g", 20)
CASES: list[Case] = [
    # (source and argument, listing, begin of the first line, fates, a part of the lines)
    (
        "kueue#4329: 8 GPUs are free as 2 x 4, a pod wants 8 on one node",
        [_node("a", 4), _node("b", 4), _pod("p", 8)],
        "the decision is optimal: none of 8",
        {"d/p": "barred"},
        "not in pieces for 1 pod of 8 GPUs",
    ),
    (
        "kueue#4329: a pod of one GPU behind it fits",
        [_node("a", 4), _node("b", 4), _pod("p", 8), _pod("q", 1)],
        "1 of 9",
        {"d/p": "barred", "d/q": "fits"},
        "d/q (1 pod, 1 GPU): fits",
    ),
    (
        "kueue#6214: one GPU on each of 8 nodes, a pod of 8",
        [*(_node(f"n{k}", 1) for k in range(8)), _pod("p", 8)],
        "the decision is optimal: none of 8",
        {"d/p": "barred"},
        "8 GPUs are free",
    ),
    (
        "kueue#5039: no node has the label of the preferred level; Kueue takes none",
        [_node("a", 8), _node("b", 8), *_gang("g", 2, 8, {PREFERRED: BLOCK} | KUEUE)],
        "the decision is optimal: none of 16",
        {"d/g": "barred"},
        "without its preferred level",
    ),
    (
        "kueue#5039: as a Workload, with labels and quota it fits",
        [
            _node("a", 8, {BLOCK: "b"}),
            _node("b", 8, {BLOCK: "b"}),
            _workload("w", _set(2, 8, topologyRequest={"preferred": BLOCK}), queueName="q"),
            *_queues(16, 0),
        ],
        "16 of 16",
        {"d/w": "fits"},
        "fits",
    ),
    (
        "kueue#3211: all pods on one node are required, no node has 2 x 8",
        [_node("a", 8), _node("b", 8), *_gang("g", 2, 8, {REQUIRED: "kubernetes.io/hostname"} | KUEUE)],
        "the decision is optimal: none of 16",
        {"d/g": "barred"},
        "without its required level",
    ),
    (
        "kueue#3211: preferred instead, as the maintainer says",
        [_node("a", 8), _node("b", 8), *_gang("g", 2, 8, {PREFERRED: "kubernetes.io/hostname"} | KUEUE)],
        "16 of 16",
        {"d/g": "fits"},
        "fits",
    ),
    (
        "kueue manual: a quota of 4 of which 2 are used holds a Workload of 4",
        [_node("a", 8), _workload("w", _set(1, 4), queueName="q"), *_queues(4, 2)],
        "the decision is optimal: none of 4",
        {"d/w": "barred"},
        "without its quota",
    ),
    (
        "kueue manual: a queue in a cohort may borrow, how much is not told",
        [_node("a", 8), _workload("w", _set(1, 4), queueName="q"), *_queues(4, 2, cohort="c")],
        "0 to 4 of 4",
        {"d/w": "may"},
        "fits but for its quota, which is not read",
    ),
    (
        "kueue manual: two flavours with 2 left each take no pod set of 4, though each has nodes for it",
        [*_two_kinds(), _workload("w", _set(4, 1), queueName="q"), *_flavoured({"spot": (4, 2), "reserved": (2, 0)})],
        "the decision is optimal: none of 4",
        {"d/w": "barred"},
        "without its quota",
    ),
    (
        "kueue manual: the second flavour has quota for it",
        [*_two_kinds(), _workload("w", _set(4, 1), queueName="q"), *_flavoured({"spot": (4, 2), "reserved": (4, 0)})],
        "4 of 4",
        {"d/w": "fits"},
        "fits",
    ),
    (
        "kueue manual: flavours that tell no resource",
        [*_two_kinds(), _workload("w", _set(4, 1), queueName="q"), *_bare_flavours()],
        "0 to 4 of 4",
        {"d/w": "may"},
        "fits but for its quota, which is not read",
    ),
    (
        "kueue manual: flavours whose labels do not tell nodes apart",
        [
            _node("a", 8, {"kind": "spot"}),
            _workload("w", _set(4, 1), queueName="q"),
            *_flavoured({"spot": (4, 2), "reserved": (2, 0)}, {"kind": "spot"}),
        ],
        "0 to 4 of 4",
        {"d/w": "may"},
        "fits but for its quota, which is not read",
    ),
    (
        "kueue manual: an inactive Workload does not wait",
        [_node("a", 8), _workload("w", _set(1, 4), active=False)],
        "no gang waits in what was read",
        {},
        "",
    ),
    (
        "kueue manual: minCount, partial admission: 2 of 4 pods are enough",
        [_node("a", 2), _workload("w", _set(4, 1, minCount=2), queueName="q"), *_queues(8, 0)],
        "2 of 4",
        {"d/w": "fits"},
        "2 of its 4 pods",
    ),
    (
        "kueue KEP-2724: slices of 2 on a host: 4 pods of 2 GPUs on nodes of 4",
        [
            _node("a", 4),
            _node("b", 4),
            *_gang(
                "g",
                4,
                2,
                {
                    "kueue.x-k8s.io/podset-slice-required-topology": "kubernetes.io/hostname",
                    "kueue.x-k8s.io/podset-slice-size": "2",
                }
                | KUEUE,
            ),
        ],
        "8 of 8",
        {"d/g": "fits"},
        "fits",
    ),
    (
        "kueue KEP-2724: the same on nodes of 2 and 6: a slice needs 4 on one host",
        [
            _node("a", 2),
            _node("b", 6),
            *_gang(
                "g",
                4,
                2,
                {
                    "kueue.x-k8s.io/podset-slice-required-topology": "kubernetes.io/hostname",
                    "kueue.x-k8s.io/podset-slice-size": "2",
                }
                | KUEUE,
            ),
        ],
        "the decision is optimal: none of 8",
        {"d/g": "barred"},
        "not in pieces",
    ),
    (
        "kueue KEP-2724: slices of racks are no condition of the form",
        [
            _node("a", 4, {"rack": "r"}),
            *_gang(
                "g",
                2,
                2,
                {"kueue.x-k8s.io/podset-slice-required-topology": "rack", "kueue.x-k8s.io/podset-slice-size": "2"}
                | KUEUE,
            ),
        ],
        "0 to 4 of 4",
        {"d/g": "may"},
        "its slices",
    ),
    (
        "volcano#2462: 8 of 20 run, minAvailable 20: none of the 20 may start on 8 nodes",
        [*(_node(f"n{k}", 1) for k in range(8)), *_gang("g", 20, 1, V), G],
        "the decision is optimal: none of 20",
        {"d/g": "barred"},
        "8 GPUs are free, 20 are wanted",
    ),
    (
        "volcano#1959: master and worker of 1 GPU on 2 free GPUs fit",
        [_node("a", 1), _node("b", 1), *_gang("g", 2, 1, _volcano("g", 2)[0]), _volcano("g", 2)[1]],
        "2 of 2",
        {"d/g": "fits"},
        "fits",
    ),
    (
        "volcano#5805: another pod took the slot of the third of a gang, nothing is ended at equal priority",
        [
            _node("a", 2),
            _node("b", 1),
            *[_pod(f"g-{k}", 1, "a", V, owned=True) for k in range(2)],
            _pod("other", 1, "b", owned=True),
            _pod("g-2", 1, notes=_volcano("g", 3)[0]),
            _volcano("g", 3)[1],
        ],
        "the decision is optimal: none of 1",
        {"d/g": "barred"},
        "nothing of lower priority runs",
    ),
    (
        "volcano#3616: one card of 24 Gi, three of 12 Gi: two fit",
        [_node("a", number="10", memory="24576", cores="100"), *[_vgpu(f"p{k}", 12288) for k in range(3)]],
        "1 of 1.5",
        {"d/p0": "fits", "d/p1": "fits", "d/p2": "could"},
        "another decision of the same worth places it",
    ),
    (
        "volcano#1755: minTaskMember is a minimum of each task: not judged",
        [
            _node("a", 8),
            *_gang("g", 2, 1, V),
            _volcano("g", 2)[1] | {"spec": {"minMember": 2, "minTaskMember": {"t1": 2}}},
        ],
        "no gang waits in what was read",
        {"d/g": "not judged"},
        "its groups have fewest pods of their own",
    ),
    (
        "volcano manual: networkTopology hard is a rule that is not read",
        [
            _node("a", 8),
            *_gang("g", 2, 1, V),
            _volcano("g", 2)[1]
            | {"spec": {"minMember": 2, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}},
        ],
        "0 to 2 of 2",
        {"d/g": "may"},
        "its network topology",
    ),
    (
        "KAI#65: gpu-fraction 0.1 of the one GPU fits",
        [_node("a", 1), _kai("p", "0.1"), *_kai_groups("p")],
        "0.1 of 0.1",
        {"d/pg-p": "fits"},
        "fits",
    ),
    (
        "KAI#522: 0.25 beside 0.5 and 0.5 does not fit one L40S",
        [_node("a", 1), _kai("r", "0.5", "a"), _kai("s", "0.5", "a"), _kai("p", "0.25"), *_kai_groups("p")],
        "the decision is optimal: none of 0.25",
        {"d/pg-p": "barred"},
        "0 GPUs are free",
    ),
    (
        "KAI#118: gpu-memory where nodes do not tell theirs: not judged",
        [_node("a", 1), _pod("p", 0, notes={"gpu-memory": "2000"}, **KAI)],
        "no gang waits in what was read",
        {"d/p": "not judged"},
        "the memory of the cards is not told",
    ),
    (
        "KAI#118: with the label of the operator it is 2000 of 8000 MiB",
        [_node("a", 1, {"nvidia.com/gpu.memory": "8000"}), _pod("p", 0, notes={"gpu-memory": "2000"}, **KAI)],
        "0.25 of 0.25",
        {"d/p": "fits"},
        "fits",
    ),
    (
        "KAI#1369: half of each of two devices",
        [_node("a", 2), _pod("p", 0, notes=HALVES, **KAI)],
        "1 of 1 waiting GPU could",
        {"d/p": "fits"},
        "fits",
    ),
    (
        "KAI#1369: half of each of two devices is not one device",
        [_node("a", 1), _pod("p", 0, notes=HALVES, **KAI)],
        "the decision is optimal: none of 1 waiting GPU can run now",
        {"d/p": "barred"},
        "not in pieces for 1 pod of 0.5 of each of 2 GPUs",
    ),
    (
        "KAI#1369: the halves of a pod that runs are on the devices that its labels name",
        [
            _node("a", 2),
            _pod("r", 0, on="a", notes=HALVES, labels={"runai-gpu-group/x": "x", "runai-gpu-group/y": "y"}, **KAI),
            _pod("p", 0, notes=HALVES, **KAI),
            _pod("q", 1, **KAI),
        ],
        "1 of 2 waiting GPUs",
        {"d/p": "fits", "d/q": "barred"},
        "fits",
    ),
    (
        "KAI#577: 17 nodes of 4 wanted in a rack of 18, claims of DRA: not judged",
        [_node("a", 4), _pod("p", 4, resourceClaims=[{"name": "imex"}], **KAI)],
        "no gang waits in what was read",
        {"d/p": "not judged"},
        "DRA claim",
    ),
    (
        "KAI manual: topologyConstraint of the whole gang: one rack has 8, 16 are wanted",
        [
            _node("a", 8, {"rack": "r0"}),
            _node("b", 8, {"rack": "r1"}),
            *_gang("g", 2, 8, {"pod-group-name": "g"}, **KAI),
            _group(
                "g",
                "scheduling.run.ai/v2alpha2",
                minMember=2,
                topologyConstraint={"topology": "t", "requiredTopologyLevel": "rack"},
            ),
        ],
        "the decision is optimal: none of 16",
        {"d/g": "barred"},
        "without its required level",
    ),
    (
        "HAMi#602: two vGPUs of 1000 MiB want two cards: parts of several, not judged",
        [_node("a", 20, notes=_cards(15360, 15360)), _hami("p", 2, 1000)],
        "no gang waits in what was read",
        {"d/p": "not judged"},
        "parts of several GPUs",
    ),
    (
        "HAMi#888: without gpumem all of a card: both 1080 Ti hold a part each",
        [
            _node("a", 20, notes=_cards(11264, 11264)),
            _hami("r", 1, 2816, "a", "GPU-0"),
            _hami("s", 1, 2816, "a", "GPU-1"),
            _hami("p", 1),
        ],
        "the decision is optimal: none of 1",
        {"d/p": "barred"},
        "0 GPUs are free",
    ),
    (
        "HAMi#888: with gpumem 2816 of 11264 it fits beside them",
        [
            _node("a", 20, notes=_cards(11264, 11264)),
            _hami("r", 1, 2816, "a", "GPU-0"),
            _hami("s", 1, 2816, "a", "GPU-1"),
            _hami("p", 1, 2816),
        ],
        "0.25 of 0.25",
        {"d/p": "fits"},
        "fits",
    ),
    (
        "HAMi#1429: no node registers its cards: not judged",
        [_node("a", 2), _hami("p", 1, 3000)],
        "no gang waits in what was read",
        {"d/p": "not judged"},
        "the memory of the cards is not told",
    ),
    (
        "kubernetes.io gang scheduling: fewer pods than minCount are held",
        [_node("a", 8), *_native(2, 3, 1)],
        "the decision is optimal: none of 2",
        {"d/g": "barred"},
        "2 of the 3 pods that it starts with are there",
    ),
    (
        "kubernetes.io gang scheduling: minCount of 3 pods is enough",
        [_node("a", 2), *_native(3, 2, 1)],
        "2 of 3",
        {"d/g": "fits"},
        "2 of its 3 pods",
    ),
    (
        "kubernetes.io pod group policies: basic pods are scheduled each for itself",
        [
            _node("a", 8),
            *[_pod(f"w-{k}", 8, schedulingGroup={"podGroupName": "g"}) for k in range(2)],
            _group("g", NATIVE, schedulingPolicy={"basic": {}}),
        ],
        "8 of 16",
        {"d/w-0": "fits", "d/w-1": "could"},
        "same worth",
    ),
    (
        "kubernetes.io preemption: one pod of lower priority makes room, PDBs aside",
        [_node("a", 1), _pod("low", 1, "a", priority=1), _pod("high", 1, priority=4)],
        "the decision is optimal: none of 1",
        {"d/high": "barred"},
        "by ending d/low, price 10 (the least",
    ),
    (
        "kubernetes#70622: on 8 processors one of the lower ones is enough",
        [
            _node("a", cpu="8"),
            _pod("p1", 0, "a", priority=1, requests={"cpu": "4"}),
            _pod("p2", 0, "a", priority=2, requests={"cpu": "4"}),
            _pod("p4", 0, priority=4, requests={"cpu": "4"}),
        ],
        "the decision is optimal: none of 1 waiting gang",
        {"d/p4": "barred"},
        "price 10 (the least",
    ),
    (
        "grove#756 and manual: all minReplicas are its pods: 8 + 8 on 8",
        [_node("a", 8), *_grove(("prefill", 1, 1, 8), ("decode", 1, 1, 8))],
        "the decision is optimal: none of 16",
        {"d/pg": "barred"},
        "8 GPUs are free, 16 are wanted",
    ),
    (
        "grove manual: of two groups fewer than all are needed: not judged",
        [_node("a", 8), *_grove(("prefill", 2, 1, 4), ("decode", 2, 1, 4))],
        "no gang waits in what was read",
        {"d/pg": "not judged"},
        "fewest pods of their own",
    ),
    (
        "LeaderWorkerSet manual: a group of 4 x 8 on three nodes of 8",
        [*(_node(f"n{k}", 8) for k in range(3)), *_lws(4, 4, 8)],
        "the decision is optimal: none of 32",
        {"d/llm group 0": "barred"},
        "24 GPUs are free, 32 are wanted",
    ),
    (
        "YuniKorn manual: minMember 2 of 3 pods is enough",
        [_node("a", 2), *_yunikorn(3, 2, 1)],
        "2 of 3",
        {"d/app": "fits"},
        "2 of its 3 pods",
    ),
    (
        "koordinator#940: min-available 2 of 3 pods",
        [
            _node("a", 2),
            *_gang(
                "k",
                3,
                1,
                {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"},
                schedulerName="koord-scheduler",
            ),
        ],
        "2 of 3",
        {"d/g": "fits"},
        "2 of its 3 pods",
    ),
    (
        "kubernetes manual: anti-affinity to itself by host: 3 pods, 2 nodes",
        [_node("a", 8), _node("b", 8), *[_apart(f"g-{k}", 1) for k in range(3)], _volcano("g", 3)[1]],
        "the decision is optimal: none of 3",
        {"d/g": "barred"},
        "its limit of pods a node",
    ),
    (
        "kubernetes.io preemption: a pod with preemptionPolicy Never ends nobody",
        [_node("a", 1), _pod("low", 1, "a", priority=1), _pod("p", 1, priority=4, preemptionPolicy="Never")],
        "the decision is optimal: none of 1",
        {"d/p": "barred"},
        "its preemptionPolicy is Never, so nothing may be ended; no moves admit it",
    ),
    (
        "kueue manual: withinClusterQueue is Never by default, so a Workload ends nobody that is known",
        [_node("a", 1), _pod("low", 1, "a"), _workload("w", _set(1, 1), priority=9, queueName="q"), *_queues(4, 0)],
        "the decision is optimal: none of 1",
        {"d/w": "barred"},
        "whom Kueue may end for it is not read; no moves admit it",
    ),
]


def _named(case: Case) -> str:
    return case[0].split(":")[0]


@pytest.mark.parametrize("case", CASES, ids=[f"{k}-{_named(case)}" for k, case in enumerate(CASES)])
def test_what_an_issue_says_is_what_is_answered(case: Case, tmp_path: Path) -> None:
    _, items, head, fates, part = case
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"items": items}))
    found = schedgap.judge(path, names=True)
    assert {one.gang: one.fate for one in found.lost} == fates, found.to_text()
    assert found.verdict.startswith(head) and part in "\n".join(one.line() for one in found.lost), found.to_text()
