"""A small relaxation of gang-placement: equal gangs, equal nodes and equal pods of all gangs are one with a number.

Equal gangs have modes: a domain that all pods of one lie in, or the whole cluster, each with how many of them are
placed so. Pods of a mode whose domain is one class of nodes are there. Which of the others lie in which class is said
for all gangs together; that every domain holds what the gangs bound to it need is enough to hand them out, because
domains are nested. Every decision is a point; a point is a decision where each class packs what it got, which devices
whose sizes divide each other do.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.layout import Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE, exact
from schedgap.formulations.gang_placement.instance import WHOLE, Domain, Gang, GangPlacementInstance, Limit, Shape
from schedgap.formulations.gang_placement.scale import Component, capacities, components, most_pods, resources

KINDS = ("weight", "pods", "split")
"""Components that it knows."""
VARIABLES = {
    "mode": VariableFamily("gang, mode", "of gangs equal to the first, how many are placed so"),
    "count": VariableFamily("gang, mode, group", "pods of the group, where a part of such gangs may be placed"),
    "kind": VariableFamily("kind, class", "pods of the kind on nodes of the class, of modes with several classes"),
}
ROWS = {
    "once": RowFamily("(1)", "sum_m mode[g,m] <= gangs equal to g"),
    "least": RowFamily("(1)", "sum_k count[g,m,k] >= least mode[g,m]"),
    "most": RowFamily("(1)", "count[g,m,k] <= count mode[g,m]"),
    "room": RowFamily("(2)", "pods of the kind on nodes of the class <= those that these hold of it alone"),
    "devices": RowFamily("(2)", "sum floor(devices / s) pods <= nodes floor(entirely free / s), for each size s"),
    "parts": RowFamily("(2)", "sum gpu pods <= what is free of the class"),
    "resource": RowFamily("(3)", "sum request pods <= the class's"),
    "inside": RowFamily("(5)", "pods of the kind in the domain >= those of gangs bound to domains in it"),
    "all": RowFamily("(5)", "pods of the kind = those of all gangs"),
    "queue": RowFamily("(7)", "use of the queue or cohort <= its limit, over all flavours together"),
    "held": RowFamily("", "a component that was solved before is as good as then"),
}


class Mode(NamedTuple):
    """How a gang is placed: all pods in `domain` (``()`` is the whole cluster), or on one node of the class `node`."""

    domain: Domain
    node: int | None
    split: bool


@dataclass
class Classes:
    """Nodes, gangs and pods that are alike: whatever the instance tells of them but for names and arrivals is equal."""

    instance: GangPlacementInstance
    nodes: list[list[int]] = field(init=False)  # positions of the nodes of each class
    gangs: list[list[int]] = field(init=False)  # positions of the gangs of each class
    kinds: dict[Shape, int] = field(init=False, default_factory=dict)  # number of each shape without its count
    room: list[list[int]] = field(init=False)  # pods that one node holds alone, per kind and class

    def __post_init__(self) -> None:
        found: dict[object, list[int]] = {}
        self.capacity = capacities(self.instance)
        for n, node in enumerate(self.instance.nodes):
            free = tuple(sorted(resources(self.instance)[n].items()))
            key = (node.domain, tuple(sorted(self.capacity[n])), node.gpu_model, node.labels, free)
            found.setdefault(key, []).append(n)
        self.nodes = list(found.values())
        alike: dict[Gang, list[int]] = {}
        for g, gang in enumerate(self.instance.gangs):
            alike.setdefault(gang.model_copy(update={"id": "", "arrival": 0.0}), []).append(g)
        self.gangs = list(alike.values())
        self.inside: dict[Domain, list[int]] = defaultdict(list)  # classes of each domain above the nodes
        for c in range(len(self.nodes)):
            for depth in range(len(self.instance.levels) + 1):
                self.inside[self.domain(c, depth)].append(c)
        for gang in self.instance.gangs:
            for group in gang.pods:
                self.kinds.setdefault(group.shape, len(self.kinds))
        self.room = [[most_pods(self.instance, shape, nodes[0]) for nodes in self.nodes] for shape in self.kinds]

    def entirely(self, c: int) -> int:
        """Devices of one node of the class that are entirely free."""
        return sum(part == WHOLE for part in self.capacity[self.nodes[c][0]])

    def domain(self, c: int, depth: int) -> Domain:
        """The domain of the nodes of a class, told by at most the labels of the levels."""
        return self.instance.nodes[self.nodes[c][0]].domain[:depth]

    def modes(self, gang: Gang, with_split: bool) -> Iterator[Mode]:
        """Where a gang may lie."""
        deepest = len(self.instance.levels) + 1
        required = self.instance.depth(gang.required)
        preferred = self.instance.depth(gang.preferred) if with_split else 0
        for depth in {required, max(required, preferred)}:
            split = depth < preferred
            if depth == deepest:
                for c in range(len(self.nodes)):
                    if self._holds(gang, [c], 1):
                        yield Mode(self.domain(c, deepest), c, split)
                continue
            for domain, classes in self.inside.items():
                if len(domain) == depth and self._holds(gang, classes, 0):
                    yield Mode(domain, None, split)

    def only(self, mode: Mode) -> int | None:
        """The one class of nodes that all pods of a mode are on; None where there are several."""
        classes = self.inside[mode.domain] if mode.node is None else [mode.node]
        return classes[0] if len(classes) == 1 else None

    def _holds(self, gang: Gang, classes: Sequence[int], nodes: int) -> bool:
        """Whether classes (`nodes` of each, 0: all) hold the fewest pods of a gang, each group alone."""
        left = gang.fewest
        if nodes and gang.per_node is not None and left > gang.per_node:
            return False
        for group in gang.pods:
            asked = min(left, group.count)
            left -= asked
            room = self.room[self.kinds[group.shape]]
            each = gang.per_node or asked
            if sum((nodes or len(self.nodes[c])) * min(room[c], each) for c in classes) < asked:
                return False
        return True


@dataclass
class Merged:
    """The model with its parts.

    Attributes
    ----------
    entries : components, the last one the objective, the others held at these digits
    values : value per part of a device, and of a whole one (1000); a device holds at most the value of a whole one:
        a row that is stronger than that of thousandths, for a bound
    gangs : the first of each class of equal ones, whose numbers are those of classes
    modes : ways of each class of gangs, in the order of the variables
    pods : number of pods per class of gangs, mode and group, as (coefficient, variable)
    """

    instance: GangPlacementInstance
    entries: Sequence[Component]
    held: Sequence[int] = ()
    values: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.classes = Classes(self.instance)
        self.gangs = [self.instance.gangs[members[0]] for members in self.classes.gangs]
        name = self.entries[-1].name
        self.layout = Layout(pulp.LpProblem("gang_placement", pulp.LpMaximize), VARIABLES, ROWS, name)
        self.modes: list[list[Mode]] = []
        self.mode: dict[tuple[int, int], pulp.LpVariable] = {}
        self.pods: dict[tuple[int, int, int], Term] = {}
        self.kind: dict[tuple[int, int], pulp.LpVariable] = {}
        self.rows: dict[str, tuple[int, int | str]] = {}
        self._gangs()
        self._kinds()
        self._capacity()
        self._queues()
        self._objective()

    def model(self) -> DeclarativeModel:
        """For an engine; its points are no decisions."""
        return DeclarativeModel(
            self.layout.problem, lambda _: {}, MAXIMISE, objective_is_integral=True, layout=self.layout, abstract=True
        )

    def _gangs(self) -> None:
        with_split = any(entry.kind == "split" for entry in self.entries)
        for g, (gang, alike) in enumerate(zip(self.gangs, self.classes.gangs, strict=True)):
            self.modes.append(list(self.classes.modes(gang, with_split)))
            for m in range(len(self.modes[g])):
                self.mode[g, m] = self.layout.variable("mode", g, m, high=len(alike))
                for k, group in enumerate(gang.pods):
                    self.pods[g, m, k] = (self.mode[g, m], float(group.count))
                    if gang.fewest < gang.size:
                        some = self.layout.variable("count", g, m, k, high=group.count * len(alike))
                        self.pods[g, m, k] = (some, 1.0)
                        self.layout.row("most", (g, m, k), [(some, 1.0), (self.mode[g, m], -group.count)], "<=", 0)
                if gang.fewest < gang.size:
                    every = [self.pods[g, m, k] for k in range(len(gang.pods))]
                    self.layout.row("least", (g, m), [*every, (self.mode[g, m], -gang.fewest)], ">=", 0)
            if len(self.modes[g]) > 1:
                placed = [(self.mode[g, m], 1.0) for m in range(len(self.modes[g]))]
                self.layout.row("once", (g,), placed, "<=", len(alike))

    def _kinds(self) -> None:
        """Pods by kind and class, at least as many in each domain as gangs need there that have a choice of classes."""
        wanted: dict[tuple[int, Domain], list[Term]] = defaultdict(list)
        for (g, m, k), (variable, count) in self.pods.items():
            mode = self.modes[g][m]
            if self.classes.only(mode) is None:
                kind = self.classes.kinds[self.gangs[g].pods[k].shape]
                for depth in range(len(mode.domain) + 1):
                    wanted[kind, mode.domain[:depth]].append((variable, -count))
        for j, rooms in enumerate(self.classes.room):
            if (j, ()) in wanted:
                for c, room in enumerate(rooms):
                    if room:
                        self.kind[j, c] = self.layout.variable("kind", j, c, high=room * len(self.classes.nodes[c]))
        for (j, domain), needs in wanted.items():
            there: list[Term] = [
                (variable, 1.0)
                for (kind, c), variable in self.kind.items()
                if kind == j and self.classes.domain(c, len(domain)) == domain
            ]
            family, relation = ("inside", ">=") if domain else ("all", "==")
            self.layout.row(family, (j, *domain), [*there, *needs], relation, 0)

    def _capacity(self) -> None:
        shapes = list(self.classes.kinds)
        here: dict[int, list[tuple[Term, list[tuple[Shape, int]]]]] = defaultdict(list)
        alone: dict[tuple[int, int], list[Term]] = defaultdict(list)
        for (j, c), variable in self.kind.items():
            here[c].append(((variable, 1.0), [(shapes[j], 1)]))
            alone[j, c].append((variable, 1.0))
        for (g, m), variable in self.mode.items():
            mode, gang = self.modes[g][m], self.gangs[g]
            only = self.classes.only(mode)
            if only is None:
                continue
            for k, group in enumerate(gang.pods):
                alone[self.classes.kinds[group.shape], only].append(self.pods[g, m, k])
            if mode.node is not None and gang.fewest == gang.size:  # on one node together
                here[only].append(((variable, 1.0), [(group, group.count) for group in gang.pods]))
            else:
                here[only] += [(self.pods[g, m, k], [(group, 1)]) for k, group in enumerate(gang.pods)]
        for (j, c), terms in alone.items():
            limit = self.classes.room[j][c] * len(self.classes.nodes[c])
            if terms != [(self.kind.get((j, c)), 1.0)]:  # whose own bound says it
                self.layout.row("room", (j, c), terms, "<=", limit)
        for c, items in here.items():
            self._class(c, items)

    def _class(self, c: int, items: Sequence[tuple[Term, list[tuple[Shape, int]]]]) -> None:
        """Items on a class: each a term and the pods that it stands for."""
        many = len(self.classes.nodes[c])
        devices = [(v, a, sum(shape.devices * count for shape, count in pods)) for (v, a), pods in items]
        for size in sorted({1, *(whole for _, _, whole in devices)} - {0}):
            terms: list[Term] = [(v, a * (whole // size)) for v, a, whole in devices if whole >= size]
            if terms:
                self.rows[self._row("devices", c, size, terms, many * (self.classes.entirely(c) // size))] = (c, size)
        if any(0 < shape.gpu < WHOLE for _, pods in items for shape, _ in pods):
            parts = [(v, a * sum(self._value(shape) * count for shape, count in pods)) for (v, a), pods in items]
            full = self.values.get(WHOLE, WHOLE)
            free = many * sum(part * full / WHOLE for part in self.classes.capacity[self.classes.nodes[c][0]])
            self.rows[self._row("parts", c, 0, [(v, a) for v, a in parts if a], free)] = (c, 0)
        names = {name for _, pods in items for shape, _ in pods for name, amount in shape.request.items() if amount}
        for name in sorted(names):
            asked = [(v, a * sum(shape.request.get(name, 0) * n for shape, n in pods)) for (v, a), pods in items]
            free = many * resources(self.instance)[self.classes.nodes[c][0]][name]
            self.rows[self._row("resource", c, name, [(v, a) for v, a in asked if a], free)] = (c, name)

    def _value(self, shape: Shape) -> float:
        if shape.gpu >= WHOLE:
            return shape.devices * self.values.get(WHOLE, WHOLE)
        return shape.pieces * self.values.get(shape.gpu, shape.gpu)

    def _row(self, family: str, c: int, what: str | int, terms: Sequence[Term], right: float) -> str:
        self.layout.row(family, (c, what), terms, "<=", right)
        return self.layout.rows[family][-1]

    def _queues(self) -> None:
        for limit in self._together():
            terms: list[Term] = []
            for (g, _, k), (variable, count) in self.pods.items():
                group = self.gangs[g].pods[k]
                amount = group.amount(limit.resource)
                if self.gangs[g].queue in limit.queues and amount:
                    terms.append((variable, count * amount))
            key: tuple[str, ...] = (limit.queues[0],) if limit.cohort is None else ("cohort", limit.cohort)
            key += ("flavours",) * (limit.flavour is not None)
            if terms:
                self.layout.row("queue", (*key, limit.resource), terms, "<=", limit.most)

    def _together(self) -> Iterator[Limit]:
        """Limits without flavours: those of a queue by flavour are added up, which allows more."""
        sums: Counter[tuple[tuple[str, ...], str]] = Counter()
        for limit in self.instance.limits():
            if limit.flavour is None:
                yield limit
            else:
                sums[limit.queues, limit.resource] += limit.most
        for (queues, resource), most in sums.items():
            yield Limit(None, queues, resource, most, "any")

    def _objective(self) -> None:
        for at, entry in enumerate(self.entries):
            terms: list[Term] = []
            gangs = self.gangs
            mine = {g for g, gang in enumerate(gangs) if entry.priority in (None, gang.priority)}
            if entry.kind == "weight":
                terms = [
                    (v, float(exact(gangs[g].weight) / entry.step)) for (g, _), v in self.mode.items() if g in mine
                ]
            elif entry.kind == "pods":
                each = {g: exact(gangs[g].weight) / gangs[g].size / entry.step for g in mine}
                terms = [(v, float(each[g] * Fraction(a))) for (g, _, _), (v, a) in self.pods.items() if g in mine]
            else:
                terms = [(v, -1.0) for (g, m), v in self.mode.items() if self.modes[g][m].split]
            constant = 0 if entry.maximise else entry.most
            if at == len(self.held):
                self.layout.objective(terms, float(constant))
            elif terms:
                self.layout.row("held", (entry.name,), terms, ">=", float(self.held[at] - constant))


def solvable(instance: GangPlacementInstance) -> int:
    """How many components at the beginning the model knows."""
    kinds = [entry.kind for entry in components(instance)]
    return next((at for at, kind in enumerate(kinds) if kind not in KINDS), len(kinds))


def chosen(
    merged: Merged, value: Mapping[pulp.LpVariable, float]
) -> tuple[dict[int, tuple[Mode, list[int]]], Counter[tuple[int, int]]]:
    """(by gang its mode and the pods of each group, pods by kind and class) of a point.

    Equal gangs that are placed in the same mode share their pods evenly, the first groups first.
    """
    classes = merged.classes
    kinds = Counter({key: round(value.get(variable, 0.0)) for key, variable in merged.kind.items()})
    gangs = {}
    for g, alike in enumerate(classes.gangs):
        waiting = iter(alike)
        for m, mode in enumerate(merged.modes[g]):
            number = round(value.get(merged.mode[g, m], 0.0))
            terms = [merged.pods[g, m, k] for k in range(len(merged.gangs[g].pods))]
            pods = [round(value.get(v, 0.0) * a) for v, a in terms]
            for at, member in enumerate(itertools.islice(waiting, number)):
                gangs[member] = (mode, first_pods(merged.gangs[g], (sum(pods) + at) // number))
            c = classes.only(mode)
            if c is not None and mode.node is None:
                for k, group in enumerate(merged.gangs[g].pods):
                    kinds[classes.kinds[group.shape], c] += pods[k]
    return gangs, kinds


def first_pods(gang: Gang, number: int) -> list[int]:
    """The first pods of each group of a gang."""
    before = itertools.accumulate((group.count for group in gang.pods), initial=0)
    return [min(group.count, max(0, number - done)) for group, done in zip(gang.pods, before, strict=False)]
