"""Gangs whose groups have levels and fewest pods of their own: KAI-Scheduler, Grove, Kueue and LeaderWorkerSet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.tools.judge.reading import read_snapshot

Data = dict[str, Any]
GPU = "nvidia.com/gpu"
REQUIRED, ROLE = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/role-hash"
JOINED = "kueue.x-k8s.io/podset-group-name"
LWS = "leaderworkerset.sigs.k8s.io/"


def racks(*gpus: str) -> list[Data]:
    """Nodes with the GPUs that each rack tells: "8 4" is two nodes."""
    return [
        {
            "kind": "Node",
            "metadata": {"name": f"r{r}n{n}", "labels": {"rack": f"r{r}", "kubernetes.io/hostname": f"r{r}n{n}"}},
            "spec": {},
            "status": {"allocatable": {"cpu": "64", "pods": "110", GPU: number}},
        }
        for r, rack in enumerate(gpus)
        for n, number in enumerate(rack.split())
    ]


def pod(name: str, gpus: int, labels: Data, notes: Data | None = None, on: str = "", **more: Any) -> Data:
    spec = {"containers": [{"name": "c", "resources": {"requests": {GPU: str(gpus)}}}], **more}
    spec |= {"nodeName": on} if on else {}
    meta = {"name": name, "namespace": "d", "labels": labels, "annotations": notes or {}}
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": "Running" if on else "Pending"}}


def kai(groups: dict[str, tuple[int, int]], subgroups: list[Data], on: str = "", **spec: Any) -> list[Data]:
    """A gang of KAI-Scheduler with (pods, GPUs of each) by subgroup; the first pod runs `on` a node."""
    pods = [
        pod(
            f"{name}-{k}",
            gpus,
            {"kai.scheduler/subgroup-name": name},
            {"pod-group-name": "g"},
            on if not k and name == next(iter(groups)) else "",
            schedulerName="kai-scheduler",
        )
        for name, (count, gpus) in groups.items()
        for k in range(count)
    ]
    group = {"kind": "PodGroup", "apiVersion": "scheduling.run.ai/v2alpha2"}
    return [*pods, group | {"metadata": {"name": "g", "namespace": "d"}, "spec": {"subGroups": subgroups, **spec}}]


def sub(name: str, least: int, level: str = "", parent: str = "", **more: Any) -> Data:
    made: Data = {"name": name, "minMember": least} if least else {"name": name}
    made |= {"topologyConstraint": {"topology": "t", "requiredTopologyLevel": level}} if level else {}
    return made | ({"parent": parent} if parent else {}) | more


def workload(*sets: tuple[int, int, str, str]) -> Data:
    """A Workload of Kueue with (count, GPUs, required level, group of sets) of its pod sets."""
    made = [
        {
            "name": f"s{k}",
            "count": count,
            "template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {GPU: str(gpus)}}}]}},
            "topologyRequest": ({"required": level} if level else {}) | ({"podSetGroupName": joined} if joined else {}),
        }
        for k, (count, gpus, level, joined) in enumerate(sets)
    ]
    spec = {"podSets": made}
    meta = {"name": "g", "namespace": "d"}
    return {"kind": "Workload", "apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": meta, "spec": spec}


def pod_group(*pods: tuple[int, str, Data]) -> list[Data]:
    """Pods of a group of Kueue: (GPUs, required level, notes)."""
    labels = {"kueue.x-k8s.io/pod-group-name": "g"}
    return [
        pod(f"p{k}", gpus, labels, {**({REQUIRED: level} if level else {}), **notes})
        for k, (gpus, level, notes) in enumerate(pods)
    ]


def lws(indices: str, gpus: int, level: str) -> list[Data]:
    """A group of LeaderWorkerSet whose pods are in the subgroups that are told."""
    labels = {f"{LWS}name": "l", f"{LWS}group-index": "0"}
    notes = {f"{LWS}subgroup-exclusive-topology": level, f"{LWS}size": str(len(indices))}
    return [pod(f"p{k}", gpus, labels | {f"{LWS}subgroup-index": index}, notes) for k, index in enumerate(indices)]


def grove(groups: dict[str, tuple[int, int]], configs: list[tuple[str, str]]) -> list[Data]:
    """A PodGang with (pods, GPUs of each) by group; `configs` are (groups, level)."""
    pods = [
        pod(f"{name}-{k}", gpus, {"grove.io/podgang": "g", "grove.io/podclique": name}, schedulerName="kai-scheduler")
        for name, (count, gpus) in groups.items()
        for k in range(count)
    ]
    spec = {
        "podgroups": [{"name": name, "minReplicas": count} for name, (count, _) in groups.items()],
        "topologyConstraintGroupConfigs": [
            {"podGroupNames": names.split(), "topologyConstraint": {"packConstraint": {"required": level}}}
            for names, level in configs
        ],
    }
    meta = {"name": "g", "namespace": "d"}
    return [*pods, {"kind": "PodGang", "apiVersion": "scheduler.grove.io/v1alpha1", "metadata": meta, "spec": spec}]


Case = tuple[list[Data], str, str, str]
TWO = {"prefill": (2, 4), "decode": (2, 4)}
EACH = [sub("prefill", 2, "rack"), sub("decode", 2, "rack")]
CASES: dict[str, Case] = {
    # KAI-Scheduler: SubGroup of v2alpha2 with minMember, parent, topologyConstraint
    "a rack each": ([*racks("8", "8"), *kai(TWO, EACH)], "16 of 16", "fits", "fits"),
    "a rack each that none has": (
        [
            *racks("8", "4 4"),
            *kai({"prefill": (3, 4), "decode": (1, 4)}, [sub("prefill", 3, "rack"), sub("decode", 1)]),
        ],
        "the decision is optimal: none of 16",
        "barred",
        "would fit without the levels of its groups",
    ),
    "one level of a group, the other goes anywhere": (
        [*racks("8", "4", "4"), *kai(TWO, [sub("prefill", 2, "rack"), sub("decode", 2)])],
        "16 of 16",
        "fits",
        "fits",
    ),
    "a level of the gang around them": (
        [*racks("8", "8"), *kai(TWO, EACH, topologyConstraint={"requiredTopologyLevel": "rack"})],
        "the decision is optimal: none of 16",
        "barred",
        "its required level",
    ),
    "a host in a rack, by a parent": (
        [
            *racks("8 4", "4 4"),
            *kai(TWO, [sub("all", 0, "rack"), sub("prefill", 2, "kubernetes.io/hostname", "all"), sub("decode", 2)]),
        ],
        "16 of 16",
        "fits",
        "fits",
    ),
    "both in the rack of the parent": (
        [
            *racks("8 4", "4 4"),
            *kai(TWO, [sub("all", 0, "rack"), sub("prefill", 2, "", "all"), sub("decode", 2, "", "all")]),
        ],
        "the decision is optimal: none of 16",
        "barred",
        "would fit without the levels of its groups",
    ),
    "a minimum below its pods: the third of decode stays out": (
        [*racks("8", "8"), *kai(TWO | {"decode": (3, 4)}, EACH)],
        "16 of 20",
        "fits",
        "4 of its 5 pods",
    ),
    "the minimum of the other group is needed all the same": (
        [*racks("8", "4"), *kai(TWO | {"decode": (3, 4)}, EACH)],
        "the decision is optimal: none of 20",
        "barred",
        "12 GPUs are free, 16 are wanted",
    ),
    "two minima below: not judged": (
        [*racks("8", "8"), *kai({"prefill": (3, 4), "decode": (3, 4)}, EACH)],
        "no gang waits in what was read",
        "not judged",
        "its groups have fewest pods of their own",
    ),
    "a pod of it runs: not judged": (
        [*racks("8", "8"), *kai(TWO, EACH, on="r0n0")],
        "no gang waits in what was read",
        "not judged",
        "pods of it run, and its groups have rules of their own",
    ),
    "a minimum of groups: not judged": (
        [*racks("8", "8"), *kai(TWO, [sub("all", 0, minSubGroup=1), *EACH])],
        "no gang waits in what was read",
        "not judged",
        "its groups have fewest pods of their own",
    ),
    "a key of a group that nobody knows: not judged": (
        [*racks("8", "8"), *kai(TWO, [sub("prefill", 2, "rack", spreadOver="rack"), sub("decode", 2)])],
        "no gang waits in what was read",
        "not judged",
        "spreadOver is not known",
    ),
    "pods in no group: not judged": (
        [*racks("8", "8"), *kai({"prefill": (2, 4), "others": (2, 4)}, [sub("prefill", 2, "rack")])],
        "no gang waits in what was read",
        "not judged",
        "its groups have fewest pods of their own",
    ),
    "groups that need nothing: not judged": (
        [*racks("8", "8"), *kai(TWO, [sub("prefill", 0), sub("decode", 0)])],
        "no gang waits in what was read",
        "not judged",
        "its groups have fewest pods of their own",
    ),
    "a level that no node has": (
        [*racks("8", "8"), *kai(TWO, [sub("prefill", 2, "island"), sub("decode", 2)])],
        "the decision is optimal: none of 16",
        "barred",
        "16 GPUs",
    ),
    # Grove: PodGang with topologyConstraintGroupConfigs
    "Grove: groups that share a rack": (
        [*racks("8", "4 4"), *grove({"a": (1, 4), "b": (1, 4), "c": (1, 8)}, [("a b", "rack")])],
        "16 of 16",
        "fits",
        "fits",
    ),
    "Grove: groups that share a host": (
        [*racks("4", "4 4"), *grove({"a": (1, 4), "b": (1, 4)}, [("a b", "kubernetes.io/hostname")])],
        "the decision is optimal: none of 8",
        "barred",
        "would fit without the levels of its groups",
    ),
    # Kueue: a topology request for each pod set, sets of a group together
    "Kueue: a rack for each set of a Workload": (
        [*racks("8", "8"), workload((2, 4, "rack", ""), (2, 4, "rack", ""))],
        "0 to 16 of 16",
        "may",
        "its quota",
    ),
    "Kueue: sets of a group share a rack": (
        [*racks("8", "8"), workload((2, 4, "rack", "x"), (2, 4, "rack", "x"))],
        "the decision is optimal by one solver alone: none of 16",
        "barred",
        "its required level",
    ),
    "Kueue: a set without a level": (
        [*racks("8", "4", "4"), workload((2, 4, "rack", ""), (2, 4, "", ""))],
        "0 to 16 of 16",
        "may",
        "its quota",
    ),
    "Kueue: roles of a group of pods": (
        [*racks("8", "8"), *pod_group(*((4, "rack", {ROLE: role}) for role in "aabb"))],
        "16 of 16",
        "fits",
        "fits",
    ),
    "Kueue: roles that are not told: not judged": (
        [*racks("8", "8"), *pod_group((4, "rack", {}), (8, "rack", {}))],
        "no gang waits in what was read",
        "not judged",
        "its kinds of pods have levels of their own",
    ),
    "Kueue: two levels in one set: not judged": (
        [*racks("8", "8"), *pod_group((4, "rack", {ROLE: "a"}), (4, "kubernetes.io/hostname", {ROLE: "a"}))],
        "no gang waits in what was read",
        "not judged",
        "its kinds of pods have levels of their own",
    ),
    # LeaderWorkerSet: a domain for each subgroup, which it has for itself: a rule that is not read
    "LeaderWorkerSet: a rack for each subgroup": (
        [*racks("8", "8"), *lws("0011", 4, "rack")],
        "0 to 16 of 16",
        "may",
        "the domain that it has for itself",
    ),
    "LeaderWorkerSet: a subgroup that no rack has": (
        [*racks("8", "8"), *lws("0001", 4, "rack")],
        "the decision is optimal by one solver alone: none of 16",
        "barred",
        "would fit without the levels of its groups",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_levels_of_groups_are_read(case: Case, tmp_path: Path) -> None:
    items, head, fate, part = case
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"items": items}))
    found = schedgap.judge(path, names=True)
    assert [one.fate for one in found.lost] == [fate], found.to_text()
    assert found.verdict.startswith(head) and part in found.lost[0].line(), found.to_text()


def test_names_of_groups_are_numbers_where_names_are_not_told(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"items": CASES["a host in a rack, by a parent"][0]}))
    numbered = read_snapshot(path).instance.to_json()
    assert '"subgroup-0"' in numbered and not any(name in numbered for name in ("prefill", "rack", "all"))
    told = read_snapshot(path, names=True).instance
    assert {one.id: one.required for one in told.gangs[0].subgroups or ()} == {"all": "rack", "prefill": "node"}


def test_a_decision_that_tears_a_group_apart_breaks_a_rule(tmp_path: Path) -> None:
    """Bound pods are the decision: the checker reads levels of groups in it, too."""
    items = [*racks("4 4", "4 4"), *kai(TWO, EACH)]
    for item, node in zip(items[4:8], ("r0n0", "r1n0", "r0n1", "r1n1"), strict=True):
        item["spec"]["nodeName"] = node
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps({"items": items}))
    assert "subgroup" in schedgap.judge(path, names=True).to_text()
