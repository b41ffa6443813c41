"""A snapshot of a live cluster as an instance of gang-placement, the scheduler's decision, and what was not read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schedgap.benchmarks.importers.rows import shortened
from schedgap.benchmarks.snapshots.draft import SHORTENED, Draft
from schedgap.benchmarks.snapshots.kubernetes import END, HOST, MODEL, MOVE, TOPOLOGY, Kubernetes, is_gpu
from schedgap.benchmarks.snapshots.listings import LISTINGS, told
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json, Solution, read_json
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
    even: frozenset[str] = frozenset()  # gangs whose processors and memory are read as equal shares of the pods


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
    even = frozenset(number("gang", g) for g in read.even)
    unread = {what: count for what, count in read.unread.items() if what != SHORTENED}
    return Snapshot(GangPlacementInstance.parse(data, "snapshot"), made, unread, read.form, seated, even)


def _listed(form: str, data: Json, nodes: str | Path | None, source: str | None = None) -> Snapshot:
    """A snapshot of two files."""
    if nodes is None:
        raise InputError(f"{source or data}: a snapshot of {form} needs a second file with the nodes")
    given = (data,) if source is None else (data, source)
    draft = LISTINGS[form](*given, Path(nodes))
    return Snapshot(*draft.finished(), form, even=frozenset(draft.even))


def _items(data: Json, source: str) -> list[Json]:
    if not isinstance(data, Mapping) or not isinstance(data.get("items"), list):
        raise InputError(f"{source}: items: must be a list, as kubectl get -o json writes it")
    found: list[Json] = data["items"]
    return found


class _Cluster:
    """The listing of a Kubernetes cluster on its way to an instance."""

    def __init__(self, read: Kubernetes) -> None:
        self.read = read
        self.levels = read.levels()
        self.draft = Draft(read.source, self.levels, unread=read.unread)
        self.seats: dict[str, set[int]] = defaultdict(set)  # nodes on which pods of a gang run
        for n, (place, node) in enumerate(read.nodes):
            labels, room = node["metadata"].get("labels") or {}, read.room(place, node)
            devices = sum(amount for name, amount in room.items() if is_gpu(name))
            free = {name: amount for name, amount in room.items() if not is_gpu(name)}
            domain = [str(labels.get(level) or f"without-{n}") for level in self.levels]
            place += ".status.allocatable"
            self.draft.node(node["metadata"]["name"], devices, labels.get(MODEL), free, place, domain)

    def snapshot(self) -> Snapshot:
        """Everything in order: what runs takes its room first, then the decision, then what waits.

        Of a gang the pods that run, or have a node that is not listed, are not decided about any more.
        The others wait, and so many fewer of them make sense.
        """
        waiting: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
        for place, pod in self.read.pods:
            key = self._gang_of(pod)
            node = (pod.get("spec") or {}).get("nodeName")
            there = self.draft.index.get(str(node))
            pending = (pod.get("status") or {}).get("phase") == "Pending"
            if node is None or (pending and there is not None):
                waiting[key].append((place, pod))
                continue
            self.draft.seated[key] += 1
            if there is None:
                self.read.unread["pods on nodes that are not listed"] += 1
            else:
                self.seats[key].add(there)
                self._run(place, pod, there)
        for key, pods in waiting.items():
            self._gang(key, pods)
        seated = {shortened(key, self.draft.cut): count for key, count in self.draft.seated.items() if key in waiting}
        return Snapshot(*self.draft.finished(), "kubernetes", seated)

    def _gang_of(self, pod: Mapping[str, Any]) -> str:
        space = pod["metadata"].get("namespace", "default")
        for name in self.read.names:
            found = self.read.note(pod, name)
            if found is not None:
                return f"{space}/{found}"
        return f"{space}/{pod['metadata']['name']} alone"

    def _split(self, place: str, pod: Mapping[str, Any]) -> tuple[int, dict[str, int]]:
        """(whole devices, other resources) of a pod."""
        asked = self.read.request(place, pod)
        devices = sum(amount for name, amount in asked.items() if is_gpu(name))
        return devices, {name: amount for name, amount in asked.items() if not is_gpu(name)}

    def _run(self, place: str, pod: Mapping[str, Any], n: int) -> None:
        devices, request = self._split(place, pod)
        name = f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
        runs = self.draft.run(name, n, devices, request)
        runs["selector"] = self.draft.selector(self.read.allowed(pod))
        owners = pod["metadata"].get("ownerReferences") or []
        owned = any(owner.get("controller") for owner in owners)
        if owned and devices and "DaemonSet" not in {owner.get("kind") for owner in owners}:
            runs |= {"movable": True, "price": END, "move_price": MOVE}

    def _inside(self, key: str, pod: Mapping[str, Any]) -> set[int]:
        """Nodes of its required level's domain in which it runs in part already, else all."""
        paths = [(*node["domain"], node["id"]) for node in self.draft.nodes]
        level = self.read.note(pod, TOPOLOGY["required"])
        names = [*self.levels, HOST]
        depth = names.index(level) + 1 if level in names and self.seats[key] else 0
        taken = {paths[n][:depth] for n in self.seats[key]} or {()}
        return {n for n, path in enumerate(paths) if path[:depth] in taken}

    def _gang(self, key: str, pods: list[tuple[str, Mapping[str, Any]]]) -> None:
        """A gang, equal pods as one group; its bound pods are the decision."""
        groups: dict[Any, dict[str, Any]] = {}
        seats: list[tuple[int, int]] = []
        inside = self._inside(key, pods[0][1])
        for place, pod in pods:
            devices, request = self._split(place, pod)
            selector = self.draft.selector([n for n in self.read.allowed(pod) if n in inside])
            kind = (devices, *sorted(request.items()), *sorted(selector.get("labels", {})))
            group = groups.setdefault(
                kind, {"count": 0, "gpu": WHOLE * devices, "request": request, "selector": selector}
            )
            group["count"] += 1
            node = (pod.get("spec") or {}).get("nodeName")
            if node is not None:
                seats.append((list(groups).index(kind), self.draft.index[node]))
        first = pods[0][1]
        more: dict[str, Any] = {"priority": int((first.get("spec") or {}).get("priority") or 0)}
        group_key = key.removesuffix(" alone")
        if group_key in self.read.groups:
            least = (self.read.groups[group_key][1].get("spec") or {}).get("minMember")
            if least is not None and 1 <= least <= len(pods) + self.draft.seated[key]:
                more["least"] = max(1, least - self.draft.seated[key])
            elif least is not None:
                self.read.unread["gangs with fewer pods than their minMember"] += 1
        for asked, note in TOPOLOGY.items():
            level = self.read.note(first, note)
            if level == HOST:
                more[asked] = "node"
            elif level in self.levels:
                more[asked] = level
            elif level is not None:
                self.read.unread["levels that no topology has"] += 1
        self.draft.wait(key, list(groups.values()), seats, **more)
