"""An instance of gang-placement in the making, with the decision, what was not read and whom that touches."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from schedgap.benchmarks.importers.rows import shortened
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT, MOST_GPUS, Json, Solution
from schedgap.formulations.common.numbers import common_divisor
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance

SHORTENED = "names of more than 200 characters, shortened"
TAKES, HAS, INSIDE = "takes", "has", "inside"
"""First words of the labels that readers give to nodes: which take a kind of pods, which have the label of a level, in
which a gang runs already."""
GOES = 0.001
"""Price of the end of a pod that is being deleted: above 0, so that no answer waits for it without need."""
MOST_WAITING = 100_000
"""Waiting pods, jobs and tasks of one listing."""

Amounts = Mapping[str, Fraction]
"""Amounts of resources, as a listing counts them."""


@dataclass(frozen=True)
class Aside:
    """A gang that waits and is in no instance."""

    gang: str
    pods: int
    gpus: Fraction | None  # None where the listing does not tell
    reason: str
    barred: bool  # nobody may place it as it is; False: it is not judged
    placed: bool = False  # the scheduler has placed it


@dataclass(frozen=True)
class Words:
    """How a scheduler calls the conditions of a gang."""

    required: str = "its required level"
    per_node: str = "its limit of pods a node"


@dataclass(frozen=True)
class Refusals:
    """Why nodes do not take the pods of one group.

    Attributes
    ----------
    kind : text that is the same of groups which the same nodes refuse for the same causes
    cause : from the position of a node to (the cause in general, the cause with names of the listing)
    """

    kind: str
    cause: Callable[[int], tuple[str, str] | None]


@dataclass
class Facts:
    """What the reasons of a judgement need beside the instance."""

    relaxed: dict[str, tuple[str, ...]] = field(default_factory=dict)  # rules of each gang that are not in the instance
    words: dict[str, Words] = field(default_factory=dict)  # words of each gang
    seated: Counter[str] = field(default_factory=Counter)  # pods of each gang not decided about any more
    owners: dict[str, str] = field(default_factory=dict)  # gang of what runs
    lowest: dict[str, int] = field(default_factory=dict)  # fewest pods of each gang of which pods run
    priorities: dict[str, int] = field(default_factory=dict)  # priorities of what runs
    leaving: set[str] = field(default_factory=set)  # running pods that are being deleted
    nominated: dict[str, str] = field(default_factory=dict)  # gang of each stand-in for a pod with a nominated node
    unlabelled: dict[str, frozenset[str]] = field(default_factory=dict)  # nodes without the label of each level
    required: dict[str, str] = field(default_factory=dict)  # required level of each gang of which pods run
    rests: dict[str, str] = field(default_factory=dict)  # assumptions that each gang's answer may rest on
    assumed: dict[str, str] = field(default_factory=dict)  # grounds of every answer but "cannot", per gang
    units: Mapping[str, Fraction] = field(default_factory=dict)  # what one unit of a resource is worth
    kinds: frozenset[str] = frozenset()  # resources that count devices of one vendor or type
    closed: dict[str, Sequence[Refusals]] = field(default_factory=dict)  # refusals per gang and group
    gentle: dict[str, str] = field(default_factory=dict)  # reason why nothing is ended, per gang
    preempts: bool = False  # the scheduler ends what has a lower priority
    named: bool = True  # names of the listing may be told
    unlisted: str = ""  # what no such listing tells, in words
    anchored: set[str] = field(default_factory=set)  # running pods with rules that are not read: none is moved
    fixed: str = ""  # why nothing that runs can be moved or ended, as far as is read


class Counting:
    """How a listing's amounts become whole units.

    A unit of a resource is the common divisor of all its amounts; where that needs more than 10^9 units in one place,
    it is the smallest multiple that does not, and amounts are rounded.

    Parameters
    ----------
    listed : all amounts of the listing
    outward : round nodes up and pods down, which allows more than the world; else nodes down and pods up
    """

    def __init__(self, listed: Iterable[Amounts], outward: bool) -> None:
        every: dict[str, set[Fraction]] = defaultdict(set)
        for amounts in listed:
            for name, amount in amounts.items():
                every[name].add(amount)
        self.units: dict[str, Fraction] = {}
        self.outward, self.apart = outward, False
        for name, values in every.items():
            unit, most = common_divisor(values) or Fraction(1), max(values)
            if most > LARGEST_COUNT * unit:
                unit *= math.ceil(most / (LARGEST_COUNT * unit))
                self.apart = True
            self.units[name] = unit

    def asked(self, amounts: Amounts) -> dict[str, int]:
        """Whole units of what a pod asks for."""
        return self._whole(amounts, math.floor if self.outward else math.ceil)

    def room(self, amounts: Amounts) -> dict[str, int]:
        """Whole units of what a node has."""
        return self._whole(amounts, math.ceil if self.outward else math.floor)

    def _whole(self, amounts: Amounts, rounded: Callable[[Fraction], int]) -> dict[str, int]:
        return {name: rounded(amount / self.units[name]) for name, amount in amounts.items()}


@dataclass
class Draft:
    """An instance in the making.

    Attributes
    ----------
    outward : nothing is restricted, what is not read is left out: what the instance cannot do, the world cannot;
        else nothing is relaxed: what the instance can do, the world can
    apart : the other of these readings is another instance
    """

    source: str
    levels: Sequence[str] = ()  # levels of the topology, widest first
    outward: bool = False
    apart: bool = False
    index: dict[str, int] = field(default_factory=dict)  # position of a node by its own name
    nodes: list[dict[str, Any]] = field(default_factory=list)
    running: list[dict[str, Any]] = field(default_factory=list)
    gangs: list[dict[str, Any]] = field(default_factory=list)
    queues: list[dict[str, Any]] = field(default_factory=list)
    placement: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    unread: Counter[str] = field(default_factory=Counter)  # what was not understood or left out, counted
    asides: list[Aside] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    cut: dict[str, str] = field(default_factory=dict)  # long names, as told
    bound: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    labels: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)

    def node(
        self,
        name: str,
        devices: int,
        model: str | None,
        free: Mapping[str, int],
        place: str,
        domain: Sequence[str] = (),
    ) -> None:
        """A node with all that it has."""
        if name in self.index:
            raise InputError(f"{place}: node {name!r} is there twice")
        if devices > MOST_GPUS:
            raise InputError(f"{place}: a node with {devices} GPUs, at most {MOST_GPUS} are supported")
        self.index[name] = len(self.nodes)
        made = {"id": name, "domain": list(domain), "gpus": [WHOLE] * devices, "free": dict(free), "labels": {}}
        self.nodes.append(made | ({"gpu_model": model} if model else {}))

    @staticmethod
    def distinct(given: Iterable[tuple[str, str]]) -> None:
        """Refuse a name, told with its place, that is there twice."""
        seen: set[str] = set()
        for name, place in given:
            if name in seen:
                raise InputError(f"{place}: {name[:60]!r} is there twice")
            seen.add(name)

    def run(
        self, name: str, n: int, devices: int, request: Mapping[str, int], parts: Mapping[int, int] | None = None
    ) -> dict[str, Json]:
        """What runs takes the first devices that are free, or given parts of devices; what is known of it.

        It gives back at its end no more than the node had for it.
        """
        node = self.nodes[n]
        if parts is None:
            whole = [d for d, part in enumerate(node["gpus"]) if part == WHOLE][:devices]
            self.unread["GPUs that running pods ask for beyond those of their nodes, left out"] += devices - len(whole)
            parts = dict.fromkeys(whole, WHOLE)
        held: dict[str, int] = {}
        for d, part in parts.items():
            taken = min(part, node["gpus"][d])
            self.unread["parts of GPUs that run beyond the whole"] += taken < part
            node["gpus"][d] -= taken
            held |= {str(d): taken} if taken else {}
        back = {}
        for resource, amount in request.items():
            left = node["free"].get(resource, 0)
            back[resource] = min(amount, left)
            node["free"][resource] = left - back[resource]
            self.unread[f"{resource} that runs on a node beyond what it has"] += amount > left
        self.running.append({"id": name, "node": node["id"], "devices": held, "request": back})
        return self.running[-1]

    def label(self, word: str, nodes: Sequence[int]) -> dict[str, str]:
        """A label on some of the nodes, none where these are all."""
        if len(nodes) == len(self.nodes):
            return {}
        name = self.labels.get((word, key := tuple(nodes)))
        if name is None:
            name = self.labels[word, key] = f"{word}-{len(self.labels)}"
            for n in nodes:
                self.nodes[n]["labels"][name] = "yes"
        return {name: "yes"}

    def selector(self, nodes: Sequence[int]) -> dict[str, Json]:
        """A selector of the nodes that take a kind of pods."""
        return {"labels": found} if (found := self.label(TAKES, nodes)) else {}

    def wait(
        self,
        name: str,
        groups: Sequence[dict[str, Json]],
        seats: Iterable[tuple[int, int]],
        *,
        gpus: Fraction | None = None,
        rules: Sequence[str] = (),
        **more: Json,
    ) -> None:
        """A gang; `seats` are (group, node) of the pods that the scheduler placed.

        Rules that the instance does not have are left out of the outward reading; in the other one the gang stays
        where the scheduler put it, or is in no instance.
        """
        placed = list(seats)
        total = sum(group["gpu"] * group.get("parts", 1) * group["count"] for group in groups)
        weight = Fraction(total, WHOLE) if gpus is None else gpus
        if rules:
            self.apart = True
            self.facts.relaxed[shortened(name, self.cut)] = tuple(dict.fromkeys(rules))
            if not self.outward:
                if not placed:
                    return
                groups, placed = self._pinned(groups, placed)
        made: dict[str, Any] = {key: value for key, value in more.items() if value is not None}
        if not self.outward and rules:
            made["least"] = len(placed)
        made["id"] = name
        made["pods"] = list(groups)
        named = {name for group in groups for name in group.get("subgroups", ())}
        made["subgroups"] = [one for one in made.get("subgroups", ()) if one["id"] in named] or None
        made["weight"] = float(weight) if weight else 1.0
        made["arrival"] = float(len(self.gangs))
        self.gangs.append(made)
        where = [self._seat(k, groups[k], n) for k, n in placed]
        if where:
            self.placement[name] = where

    def _pinned(
        self, groups: Sequence[dict[str, Json]], placed: Sequence[tuple[int, int]]
    ) -> tuple[list[dict[str, Json]], list[tuple[int, int]]]:
        """The pods that the scheduler placed, each kind on its node alone."""
        counted = Counter(placed)
        made = [groups[k] | {"count": count, "selector": self.selector([n])} for (k, n), count in counted.items()]
        return made, [(at, n) for at, (_, n) in enumerate(counted) for _ in range(list(counted.values())[at])]

    def aside(
        self,
        gang: str,
        pods: int,
        gpus: Fraction | None,
        reason: str,
        *,
        barred: bool = False,
        placed: bool = False,
    ) -> None:
        """A gang that waits and is in no instance."""
        self.asides.append(Aside(shortened(gang, self.cut), pods, gpus, reason, barred, placed))

    def _seat(self, k: int, group: Mapping[str, Any], n: int) -> dict[str, Any]:
        """The first devices that hold a pod of the group beside what was placed before."""
        part = min(group["gpu"], WHOLE)
        there = [d for d, free in enumerate(self.nodes[n]["gpus"]) if part and free - self.bound[n, d] >= part]
        devices = there[: max(1, group["gpu"] // WHOLE, group.get("parts", 1))]
        for d in devices:
            self.bound[n, d] += part
        return {"group": k, "node": self.nodes[n]["id"], "devices": devices}

    def finished(self) -> tuple[GangPlacementInstance, Solution, Mapping[str, int]]:
        """(instance, decision, what was not read)."""
        data = {"problem": "gang-placement", "levels": list(self.levels), "nodes": self.nodes}
        data |= {"running": self.running, "gangs": self.gangs, "queues": self.queues}
        instance = GangPlacementInstance.parse(shortened(data, self.cut), self.source)
        decision = shortened({"placement": self.placement}, self.cut)
        self.unread[SHORTENED] = len(self.cut)
        return instance, decision, {what: count for what, count in self.unread.items() if count}
