"""A snapshot of a live cluster as an instance of gang-placement, the scheduler's decision, and what was not read."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers.rows import shortened
from schedgap.benchmarks.snapshots.draft import SHORTENED, WHOLLY, Draft
from schedgap.benchmarks.snapshots.kubernetes import (
    END,
    GANG_NAMES,
    HOST,
    JOINED,
    MODEL,
    MOVE,
    ROLE,
    TOPOLOGY,
    Counting,
    Kubernetes,
)
from schedgap.benchmarks.snapshots.listings import LISTINGS, told
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT, Json, Solution, read_json
from schedgap.formulations.gang_placement.check import check
from schedgap.formulations.gang_placement.instance import NODE, WHOLE, GangPlacementInstance, GangPlacementSolution

DECISION = "reference_decision"
"""The key of a snapshot of our own: what the scheduler decided, a solution."""
FORMATS = ("own", "kubernetes", *LISTINGS)


@dataclass(frozen=True)
class Snapshot:
    """What was read."""

    instance: GangPlacementInstance
    decision: Solution  # what the scheduler placed of the gangs
    unread: Mapping[str, int]  # what was not understood or left out, counted
    form: str
    seated: Mapping[str, int] = field(default_factory=dict)  # by gang, pods that are not decided about any more
    rests: Mapping[str, str] = field(default_factory=dict)  # by gang, what its being kept out may rest on


def read_snapshot(
    path: str | Path,
    form: str | None = None,  # own, kubernetes, slurm, ray or openb; told by the file where not given
    *,
    # a listing of nodes, where that is a file of its own: always of slurm, ray and openb
    nodes: str | Path | None = None,
    gang_label: str | None = None,  # a label or annotation of pods that names their gang
    names: bool = False,  # keep the names of nodes, pods and gangs; otherwise they are numbers
) -> Snapshot:
    """Read a snapshot.

    Raises InputError: it cannot be read; one line with the place and the value.
    """
    read = _read(path, form, nodes, gang_label)
    read = read if names else _numbered(read)
    rest = {f"pods of {g} that run, or on nodes that are not listed": n for g, n in read.seated.items()}
    return replace(read, unread={**read.unread, **rest})


def _read(path: str | Path, form: str | None, nodes: str | Path | None, gang_label: str | None) -> Snapshot:
    """With its own names."""
    source = str(path)
    if form == "openb" or (form is None and source.endswith(".csv")):
        return _listed("openb", Path(path), nodes)
    data = read_json(path)
    listed = told(data) if form is None else form
    if listed is not None and listed in LISTINGS:
        return _listed(listed, data, nodes, source)
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: a snapshot must be a JSON object, got {type(data).__name__}")
    chosen = form or ("kubernetes" if "items" in data else "own")
    if chosen not in FORMATS:
        raise InputError(f"format: unknown format {chosen!r}, one of: {', '.join(FORMATS)}")
    if chosen == "own":
        if nodes is not None:
            raise InputError(f"{nodes}: a snapshot of our own has its nodes in itself")
        decision = data.get(DECISION, {"placement": {}})
        instance = GangPlacementInstance.parse(data, source)
        try:
            check(instance, GangPlacementSolution.parse(decision, f"{source}: {DECISION}"))  # names what is not there
        except InputError as fault:
            told_of = str(fault).removeprefix("solution: ").removeprefix(f"{source}: {DECISION}: ")
            raise InputError(f"{source}: {DECISION}: {told_of}") from None
        return Snapshot(instance, dict(decision), {}, "own")
    items = _items(data, source) + ([] if nodes is None else _items(read_json(nodes), str(nodes)))
    return _Cluster(Kubernetes(items, source, gang_label)).snapshot()


KINDS = {"node": "node", "queue": "queue", "cohort": "cohort", "required": "level", "preferred": "level"}
"""Keys of nodes, queues, gangs and what runs whose values are names, with what they are names of."""


def _numbered(read: Snapshot) -> Snapshot:
    """The same with numbers for names; those of GPU models and resources stay."""
    given: dict[str, dict[str, str]] = defaultdict(dict)

    def number(kind: str, name: str) -> str:
        return name if (kind, name) == ("level", NODE) else given[kind].setdefault(name, f"{kind}-{len(given[kind])}")

    def labels(part: dict[str, Any]) -> None:
        part["labels"] = {number("label", key): number("value", value) for key, value in part["labels"].items()}

    def seat(there: Mapping[str, Any]) -> dict[str, Any]:
        return {**there, "node": number("node", there["node"])}

    decision = read.decision
    data = read.instance.to_dict() | {"name": "snapshot"}
    data["levels"] = [number("level", level) for level in data["levels"]]
    for kind in ("node", "queue", "gang", "running"):
        for part in data["running" if kind == "running" else f"{kind}s"]:
            part["id"] = number(kind, part["id"])
            part |= {key: number(of, part[key]) for key, of in KINDS.items() if part.get(key) is not None}
            part |= {"domain": [number("domain", label) for label in part["domain"]]} if kind == "node" else {}
    pods = [group for gang in data["gangs"] for group in gang["pods"]]
    for part in [*data["nodes"], *(one["selector"] for one in [*pods, *data["running"], *(data.get("shapes") or ())])]:
        labels(part)
    made = {
        "placement": {number("gang", g): [seat(pod) for pod in pods] for g, pods in decision["placement"].items()},
        "preempted": [number("running", name) for name in decision.get("preempted", ())],
        "moved": {number("running", name): seat(there) for name, there in decision.get("moved", {}).items()},
    }
    seated = {number("gang", g): count for g, count in read.seated.items()}
    rests = {number("gang", g): text for g, text in read.rests.items()}
    unread = {what: count for what, count in read.unread.items() if what != SHORTENED}
    return Snapshot(GangPlacementInstance.parse(data, "snapshot"), made, unread, read.form, seated, rests)


def _listed(form: str, data: Json, nodes: str | Path | None, source: str | None = None) -> Snapshot:
    """A snapshot of two files."""
    if nodes is None:
        raise InputError(f"{source or data}: a snapshot of {form} needs a second file with the nodes")
    given = (data,) if source is None else (data, source)
    draft = LISTINGS[form](*given, Path(nodes))
    return Snapshot(*draft.finished(), form, rests=draft.rests)


def _items(data: Json, source: str) -> list[Json]:
    if not isinstance(data, Mapping) or not isinstance(data.get("items"), list):
        raise InputError(f"{source}: items: must be a list, as kubectl get -o json writes it")
    found: list[Json] = data["items"]
    return found


NOWHERE = "(none)"
"""The domain of nodes without a label of the level; no label has this value."""


Kind = tuple[int, tuple[tuple[str, int], ...], tuple[int, ...]]
"""What pods of a gang are equal in: whole devices, other resources, nodes that take them."""


class _Cluster:
    """The listing of a Kubernetes cluster on its way to an instance."""

    def __init__(self, read: Kubernetes) -> None:
        self.read = read
        self.levels = read.levels()
        self.draft = Draft(read.source, self.levels, unread=read.unread)
        self.seats: dict[str, set[int]] = defaultdict(set)  # nodes on which pods of a gang run
        rooms = [read.room(place, node) for place, node in read.nodes]
        asked = [read.request(place, pod) for place, pod in read.pods]
        counting = Counting([*rooms, *asked])
        self.asked = {id(pod): counting.whole(one, math.ceil) for (_, pod), one in zip(read.pods, asked, strict=True)}
        self.lacking: list[set[str]] = []  # by node, levels of which it has no label
        for (place, node), room in zip(read.nodes, rooms, strict=True):
            labels = node["metadata"].get("labels") or {}
            devices, free = counting.whole(room, math.floor)
            domain = [str(labels.get(level) or NOWHERE) for level in self.levels]
            place += ".status.allocatable"
            self.draft.node(node["metadata"]["name"], devices, labels.get(MODEL), free, place, domain)
            self.lacking.append({level for level in self.levels if not labels.get(level)})
        read.unread["nodes without the label of a level"] += sum(map(bool, self.lacking))

    def snapshot(self) -> Snapshot:
        """Everything in order: what runs takes its room first, then the decision, then what waits.

        Of a gang the pods that run, or have a node that is not listed, are not decided about any more.
        The others wait, and so many fewer of them make sense.
        """
        every: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        waiting: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for _, pod in self.read.pods:
            key = self._gang_of(pod)
            every[key].append(pod)
            node = (pod.get("spec") or {}).get("nodeName")
            there = self.draft.index.get(str(node))
            pending = (pod.get("status") or {}).get("phase") == "Pending"
            if node is None or (pending and there is not None):
                waiting[key].append(pod)
                continue
            self.draft.seated[key] += 1
            if there is None:
                self.read.unread["pods on nodes that are not listed"] += 1
            else:
                self.seats[key].add(there)
                self._run(pod, there)
        drafts = {key: self._gang(key, pods, every[key]) for key, pods in waiting.items()}
        for key, pods in waiting.items():
            for pod in pods if drafts[key] is None else ():  # what is bound holds its room all the same
                if self._is_bound(pod):
                    self._run(pod, self._bound(pod))
        for key, made in drafts.items():
            if made is not None:
                self.draft.wait(key, **made)
        self._rank()
        seated = {shortened(key, self.draft.cut): n for key, n in self.draft.seated.items() if drafts.get(key)}
        return Snapshot(*self.draft.finished(), "kubernetes", seated, self.draft.rests)

    def _gang_of(self, pod: Mapping[str, Any]) -> str:
        space = pod["metadata"].get("namespace", "default")
        for name in self.read.names:
            found = self.read.note(pod, name)
            if found is not None:
                return f"{space}/{found}"
        return f"{space}/{pod['metadata']['name']} alone"

    def _rank(self) -> None:
        """Priorities by rank, where one is beyond what an instance may have, as those of the system are."""
        order = sorted({gang["priority"] for gang in self.draft.gangs})
        if any(abs(priority) > LARGEST_COUNT for priority in order):
            for gang in self.draft.gangs:
                gang["priority"] = order.index(gang["priority"])

    def _run(self, pod: Mapping[str, Any], n: int) -> None:
        """A pod that runs, which gives back at its end no more than the node had for it."""
        devices, request = self.asked[id(pod)]
        left = dict(self.draft.nodes[n]["free"])
        name = f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
        runs = self.draft.run(name, n, devices, request)
        runs["request"] = {name: min(amount, left.get(name, 0)) for name, amount in request.items()}
        runs["selector"] = self.draft.selector(self.read.allowed(pod))
        owners = pod["metadata"].get("ownerReferences") or []
        owned = any(owner.get("controller") for owner in owners)
        over = (pod.get("status") or {}).get("phase") != "Pending"
        if owned and over and devices and "DaemonSet" not in {owner.get("kind") for owner in owners}:
            runs |= {"movable": True, "price": END, "move_price": MOVE}

    def _needed(self, pod: Mapping[str, Any]) -> set[str]:
        """Levels of which a node that takes the pod has a label."""
        asked = {str(self.read.note(pod, note)) for note in TOPOLOGY.values()} & {*self.levels, HOST}
        return set(self.levels) if asked and self.read.topologies else asked

    def _inside(self, key: str, pod: Mapping[str, Any]) -> set[int]:
        """Nodes with the labels of its levels, and of the domain of the required one in which it runs in part."""
        paths = [(*node["domain"], node["id"]) for node in self.draft.nodes]
        names = [*self.levels, HOST]
        needed = self._needed(pod)
        level = self.read.note(pod, TOPOLOGY["required"])
        depth = names.index(level) + 1 if level in names and self.seats[key] else 0
        taken = {paths[n][:depth] for n in self.seats[key]} or {()}
        return {n for n, path in enumerate(paths) if path[:depth] in taken and not needed & self.lacking[n]}

    def _gang(self, key: str, pods: list[Mapping[str, Any]], every: list[Mapping[str, Any]]) -> dict[str, Any] | None:
        """What is drafted of a gang: equal pods as one group, its bound pods the decision.

        None where no gang of the problem is the same: its pods have levels each kind for itself, or
        `least` of its pods, which are a prefix there, are any here, and no prefix is as good as all others.
        """
        if self._apart(every):
            self.read.unread["gangs left out: each kind of their pods requires a level for itself"] += 1
            return None
        first, inside = pods[0], self._inside(key, pods[0])
        kinds: dict[Kind, list[Mapping[str, Any]]] = defaultdict(list)
        for pod in pods:
            devices, request = self.asked[id(pod)]
            nodes = tuple(n for n in self.read.allowed(pod) if n in inside)
            kinds[devices, tuple(sorted(request.items())), nodes].append(pod)
        more = self._asked_of(key, first, len(pods))
        if more.get("least", len(pods)) < len(pods):
            kinds = dict(sorted(kinds.items(), key=lambda kind: _size(kind[0])))
            if not self._exact(kinds):
                self.read.unread["gangs left out: their pods differ, and any minMember of them are enough"] += 1
                return None
        groups = [
            {
                "count": len(members),
                "gpu": WHOLE * devices,
                "request": dict(request),
                "selector": self.draft.selector(nodes),
            }
            for (devices, request, nodes), members in kinds.items()
        ]
        placed = enumerate(kinds.values())
        seats = [(k, self._bound(pod)) for k, members in placed for pod in members if self._is_bound(pod)]
        prefer = {self.read.note(pod, TOPOLOGY["preferred"]) for pod in pods}
        self.read.unread["gangs whose pods prefer different levels, read as the first"] += len(prefer) > 1
        return {"groups": groups, "seats": seats, **more}

    @staticmethod
    def _is_bound(pod: Mapping[str, Any]) -> bool:
        return (pod.get("spec") or {}).get("nodeName") is not None

    def _bound(self, pod: Mapping[str, Any]) -> int:
        return self.draft.index[pod["spec"]["nodeName"]]

    def _apart(self, every: list[Mapping[str, Any]]) -> bool:
        """Whether pods of a gang require levels each kind for itself, as Kueue's sets of pods do."""
        levels = {self.read.note(pod, TOPOLOGY["required"]) for pod in every}
        joined = {self.read.note(pod, JOINED) for pod in every}
        kinds = {self.read.note(pod, ROLE) or str(self.asked[id(pod)]) for pod in every}
        several = len(kinds) > 1 and (None in joined or len(joined) > 1)
        return levels != {None} and (several or len(levels) > 1)

    def _exact(self, kinds: Mapping[Kind, list[Mapping[str, Any]]]) -> bool:
        """Whether the first pods fit wherever as many others do, and those that are bound are the first."""
        bound = [flag for pods in kinds.values() for flag in sorted(map(self._is_bound, pods), reverse=True)]
        chain = all(
            devices <= more
            and all(amount <= dict(asked).get(name, 0) for name, amount in request)
            and set(nodes) >= set(fewer)
            for (devices, request, nodes), (more, asked, fewer) in pairwise(kinds)
        )
        return chain and bound == sorted(bound, reverse=True)

    def _asked_of(self, key: str, first: Mapping[str, Any], waiting: int) -> dict[str, Any]:
        """Priority, fewest pods and levels of a gang."""
        found: dict[str, Any] = {"priority": int((first.get("spec") or {}).get("priority") or 0)}
        unread, seated = self.read.unread, self.draft.seated[key]
        group = self.read.groups.get(key, ("", {}))[1].get("spec") or {}
        for part in ("networkTopology", "minTaskMember"):
            unread[f"gangs whose PodGroup has {part}"] += bool(group.get(part))
        elsewhere = key not in self.read.groups and any(self.read.note(first, name) for name in GANG_NAMES[1:])
        unread["gangs whose PodGroup is not listed, read as all of their pods or none"] += elsewhere
        if elsewhere and waiting > 1:
            self.draft.rests[shortened(key, self.draft.cut)] = WHOLLY
        least = group.get("minMember")
        if least is not None and 1 <= least <= waiting + seated:
            found["least"] = max(1, least - seated)
        elif least is not None:
            unread["gangs with fewer pods than their minMember"] += 1
        for asked, note in TOPOLOGY.items():
            level = self.read.note(first, note)
            if level == HOST:
                found[asked] = NODE
            elif level in self.levels:
                found[asked] = level
            elif level is not None:
                unread["levels that no topology has"] += 1
        return found


def _size(kind: Kind) -> tuple[int, int, int]:
    """Grows with what pods ask for, and where they may go to fewer nodes."""
    devices, request, nodes = kind
    return devices, sum(amount for _, amount in request), -len(nodes)
