"""A snapshot of a live cluster as an instance of gang-placement, the scheduler's decision, and what was not read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import decoded, read_bytes
from schedgap.formulations.common.instance import Json, Solution, read_json
from schedgap.formulations.gang_placement.check import check
from schedgap.formulations.gang_placement.instance import NODE, GangPlacementInstance, GangPlacementSolution
from schedgap.solvers.result import NO_DEADLINE, Deadline
from schedgap.tools.judge.draft import HAS, INSIDE, SHORTENED, TAKES, Aside, Draft, Facts
from schedgap.tools.judge.kubernetes.cluster import Cluster
from schedgap.tools.judge.kubernetes.listing import Kubernetes
from schedgap.tools.judge.listings import LISTINGS, told
from schedgap.tools.judge.slurm.nodes import jobs_of_text

DECISION = "reference_decision"
"""The key of a snapshot of our own: what the scheduler decided, a solution."""
FORMATS = ("own", "kubernetes", *LISTINGS)


@dataclass(frozen=True)
class Snapshot:
    """What was read.

    Attributes
    ----------
    instance : nothing in it is relaxed: what it can do, the world can
    outward : nothing in it is restricted: what it cannot do, the world cannot; the same object where they are the same
    """

    instance: GangPlacementInstance
    decision: Solution  # what the scheduler placed of the gangs
    unread: Mapping[str, int]  # what was not understood or left out, counted
    form: str
    outward: GangPlacementInstance
    outward_decision: Solution
    asides: tuple[Aside, ...] = ()  # gangs that wait and are in no instance
    facts: Facts = field(default_factory=Facts)

    @property
    def apart(self) -> bool:
        """Whether the two readings differ."""
        return self.outward is not self.instance


def read_snapshot(
    path: str | Path,
    form: str | None = None,  # own, kubernetes, slurm, ray or openb; told by the file where not given
    *,
    # a listing of nodes, where that is a file of its own: always of slurm, ray and openb
    nodes: str | Path | None = None,
    gang_label: str | None = None,  # a label or annotation of pods that names their gang
    names: bool = False,  # keep the names of nodes, pods and gangs; otherwise they are numbers
    deadline: Deadline = NO_DEADLINE,  # deadline of reading and all that comes after it
) -> Snapshot:
    """Read a snapshot.

    Raises InputError: it cannot be read, or not in the time; one line with the place and the value.
    """
    read = _read(path, form, nodes, gang_label, deadline)
    read = read if names else _Numbered(read).snapshot()
    waiting = {gang.id for gang in read.outward.gangs}
    rest = {
        f"pods of {g} that run, or on nodes that are not listed": n
        for g, n in read.facts.seated.items()
        if g in waiting
    }
    return replace(read, unread={**read.unread, **rest})


SECONDS_OF_OBJECT, SECONDS_OF_MEGABYTE = 6e-4, 0.1
"""What reading costs a pod, node, job or group, and a megabyte of text: measured on two cores at 2 GHz, rounded up."""


def _in_time(source: str, deadline: Deadline, seconds: float, what: str) -> None:
    """Refuse a listing whose reading alone would take more than the time that is left.

    Raises InputError: the line says how much time it takes.
    """
    remaining = deadline.remaining()
    if remaining is not None and seconds > remaining:
        raise InputError(f"{source}: {what} take about {seconds:.0f} s to read: give a longer --time-limit")


def _read(
    path: str | Path, form: str | None, nodes: str | Path | None, gang_label: str | None, deadline: Deadline
) -> Snapshot:
    """With its own names."""
    source = str(path)
    if Path(path).is_file():
        size = Path(path).stat().st_size / 10**6
        _in_time(source, deadline, SECONDS_OF_MEGABYTE * size, f"{size:.0f} MB")
    if form == "openb" or (form is None and source.endswith(".csv")):
        return _listed("openb", Path(path), nodes)
    text = decoded(read_bytes(path), path)
    if not text.lstrip("\ufeff \t\r\n").startswith(("JobId=", "{", "[")):
        raise InputError(
            f"{path}: no snapshot: must be JSON (kubectl get -o json, squeue --json, Ray's) or scontrol show job;"
            " a log of jobs that have ended is for schedgap audit"
        )
    data = jobs_of_text(path, text) if text.lstrip().startswith("JobId=") else read_json(path, text)
    parts = data.get("items") or data.get("jobs") or data if isinstance(data, Mapping) else data
    count = len(parts) if isinstance(parts, list | Mapping) else 0
    _in_time(source, deadline, SECONDS_OF_OBJECT * count, f"{count} objects")
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
        return Snapshot(instance, dict(decision), {}, "own", instance, dict(decision))
    items = _items(data, source) + ([] if nodes is None else _items(read_json(nodes), str(nodes)))
    listing = Kubernetes(items, source)
    return _both("kubernetes", lambda outward: Cluster(listing, gang_label, outward).drafted())


def _both(form: str, draft_as: Callable[[bool], Draft]) -> Snapshot:
    """A listing read inward, and outward, too, where that is another instance."""
    draft = draft_as(False)
    instance, decision, unread = draft.finished()
    if not draft.apart:
        return Snapshot(instance, decision, unread, form, instance, decision, tuple(draft.asides), draft.facts)
    other = draft_as(True)
    outward, placed, _ = other.finished()
    facts = replace(draft.facts, closed={**draft.facts.closed, **other.facts.closed})
    return Snapshot(instance, decision, unread, form, outward, placed, tuple(draft.asides), facts)


KINDS = {"node": "node", "queue": "queue", "cohort": "cohort", "required": "level", "preferred": "level"}
KINDS |= {"flavour": "flavour"}
"""Keys of nodes, queues, gangs and what runs whose values are names, with what they are names of."""


PIN = "node:"
"""How resources of Ray begin that stand for one node."""


class _Numbered:
    """The same snapshot with numbers for names; those of GPU models and resources stay."""

    def __init__(self, read: Snapshot) -> None:
        self.read = read
        self.given: dict[str, dict[str, str]] = defaultdict(dict)

    def number(self, kind: str, name: str) -> str:
        if (kind, name) == ("level", NODE):
            return name
        return self.given[kind].setdefault(name, f"{kind}-{len(self.given[kind])}")

    def snapshot(self) -> Snapshot:
        """Everything numbered; a name that is in both readings has one number."""
        read, number = self.read, self.number
        instance = self._instance(read.instance)
        outward = self._instance(read.outward) if read.apart else instance
        unread = {what: count for what, count in read.unread.items() if what != SHORTENED}
        facts = read.facts
        by_gang: dict[str, Any] = {
            name: {number("gang", gang): value for gang, value in getattr(facts, name).items()}
            for name in ("relaxed", "words", "lowest", "rests", "assumed", "closed", "gentle")
        }
        by_gang["required"] = {number("gang", gang): number("level", level) for gang, level in facts.required.items()}
        by_gang["unlabelled"] = {
            number("level", level): frozenset(number("node", node) for node in nodes)
            for level, nodes in facts.unlabelled.items()
        }
        runs = {number("running", name): priority for name, priority in facts.priorities.items()}
        owners = {number("running", name): number("gang", gang) for name, gang in facts.owners.items()}
        seated = Counter({number("gang", gang): count for gang, count in facts.seated.items()})
        leaving = {number("running", name) for name in facts.leaving}
        nominated = {number("running", name): number("gang", gang) for name, gang in facts.nominated.items()}
        runs_as: dict[str, Any] = {"priorities": runs, "owners": owners, "leaving": leaving, "nominated": nominated}
        runs_as["anchored"] = {number("running", name) for name in facts.anchored}
        numbered = replace(facts, **by_gang, **runs_as, seated=seated, named=False)
        asides = tuple(replace(one, gang=number("gang", one.gang), reason=one.reason) for one in read.asides)
        decision, placed = self._decision(read.decision), self._decision(read.outward_decision)
        return Snapshot(instance, decision, unread, read.form, outward, placed, asides, numbered)

    def _labels(self, part: dict[str, Any]) -> None:
        made = {}
        for key, value in part["labels"].items():
            word, _, rest = key.partition("-")
            kept = self.read.form != "own" and word in (TAKES, HAS, INSIDE) and rest.isdecimal()
            made[key if kept else self.number("label", key)] = value if kept else self.number("value", value)
        part["labels"] = made

    def _instance(self, instance: GangPlacementInstance) -> GangPlacementInstance:
        data = instance.to_dict() | {"name": "snapshot"}
        data["levels"] = [self.number("level", level) for level in data["levels"]]
        for kind in ("node", "queue", "gang", "running"):
            for part in data["running" if kind == "running" else f"{kind}s"]:
                part["id"] = self.number(kind, part["id"])
                for named in (part, *part.get("flavours", ()), *part.get("subgroups", ())):
                    named |= {key: self.number(of, named[key]) for key, of in KINDS.items() if named.get(key)}
                part |= {"domain": [self.number("domain", label) for label in part["domain"]]} if kind == "node" else {}
        pods = [group for gang in data["gangs"] for group in gang["pods"]]
        for subgroup in [one for gang in data["gangs"] for one in gang.get("subgroups", ())]:
            subgroup["id"] = self.number("subgroup", subgroup["id"])
        for group in pods:
            if group.get("subgroups"):
                group["subgroups"] = [self.number("subgroup", name) for name in group["subgroups"]]
        for amounts in [
            *(node["free"] for node in data["nodes"]),
            *(item["request"] for item in [*pods, *data["running"]]),
        ]:
            for name in [name for name in amounts if name.startswith(PIN)]:
                amounts[self.number("pin", name)] = amounts.pop(name)
        for part in [
            *data["nodes"],
            *(item["selector"] for item in [*pods, *data["running"], *(data.get("shapes") or ())]),
        ]:
            self._labels(part)
        return GangPlacementInstance.parse(data, "snapshot")

    def _decision(self, decision: Solution) -> Solution:
        def seat(present: Mapping[str, Any]) -> dict[str, Any]:
            return {**present, "node": self.number("node", present["node"])}

        return {
            "placement": {
                self.number("gang", g): [seat(pod) for pod in pods] for g, pods in decision["placement"].items()
            },
            "preempted": [self.number("running", name) for name in decision.get("preempted", ())],
            "moved": {
                self.number("running", name): seat(present) for name, present in decision.get("moved", {}).items()
            },
        }


def _listed(form: str, data: Json, nodes: str | Path | None, source: str | None = None) -> Snapshot:
    """A snapshot of two files."""
    if nodes is None:
        raise InputError(f"{source or data}: a snapshot of {form} needs a second file with the nodes")
    given = (data,) if source is None else (data, source)
    return _both(form, lambda outward: LISTINGS[form](*given, Path(nodes), outward=outward))


def _items(data: Json, source: str) -> list[Json]:
    if not isinstance(data, Mapping) or not isinstance(data.get("items"), list):
        raise InputError(f"{source}: items: must be a list, as kubectl get -o json writes it")
    found: list[Json] = data["items"]
    return found
