"""The integer program of gang-placement (form `assignment`): how many pods of which group go to which node and device.

One model of all engines. Its objective is one component of the vector, with those before it held, or all of them
as one number (:mod:`~schedgap.formulations.gang_placement.scale`), where floats have every such number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.layout import Layout, Role, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE, exact
from schedgap.formulations.gang_placement.instance import (
    WHOLE,
    Domain,
    Gang,
    GangPlacementInstance,
    Running,
    Shape,
    Subgroup,
)
from schedgap.formulations.gang_placement.models.fragmentation import Fragments, Sums
from schedgap.formulations.gang_placement.models.point import extract, point
from schedgap.formulations.gang_placement.scale import Component, capacities, components, most_pods, shares

LARGEST_WHOLE = 2**53
"""Below it every whole number is a float."""

VARIABLES = {
    "placed": VariableFamily("gang", "1 where the gang is placed", decision=True),
    "pods": VariableFamily("gang, group, node", "pods of the group on the node", decision=True),
    "part": VariableFamily("gang, group, node, device", "of those, how many have a part of the device"),
    "whole": VariableFamily("node, device", "1 where the device is taken whole"),
    "filled": VariableFamily("gang, group", "1 where the group is whole, so that the next one may begin", free=True),
    "domain": VariableFamily("gang, level, domain", "1 where pods of the gang may lie in the domain", at_least=True),
    "within": VariableFamily("gang, subgroup, domain", "1 where its pods may lie in the domain", at_least=True),
    "flavour": VariableFamily("gang, group, flavour", "1 where pods of the group may lie on its nodes", at_least=True),
    "split": VariableFamily("gang", "1 where the gang lies in several domains of its preferred level", at_least=True),
    "ended": VariableFamily("running", "1 where it is preempted", decision=True),
    "moved": VariableFamily("running, node", "1 where it goes to the node", decision=True),
    "moved_part": VariableFamily("running, node, device", "1 where it has a part of the device then"),
    "fits": VariableFamily("shape, node", "1 where a pod of the shape could still run there", free=True),
    "useful": VariableFamily("shape, node, device", "1 where it could, and has the device for it", free=True),
    "lost": VariableFamily("shape, node, device", "what is free of the device and useless to the shape", at_least=True),
}
ROWS = {
    "all": RowFamily("(1)", "sum_n pods[g,k,n] = count placed[g]"),
    "none": RowFamily("(1)", "sum_n pods[g,k,n] <= count placed[g]"),
    "least": RowFamily("(1)", "sum_kn pods[g,k,n] >= least placed[g]"),
    "filled": RowFamily("(1)", "sum_n pods[g,k,n] >= count filled[g,k]"),
    "prefix": RowFamily("(1)", "sum_n pods[g,k+1,n] <= count filled[g,k]"),
    "parts": RowFamily("(2)", "sum_d part[g,k,n,d] = parts pods[g,k,n]"),
    "different": RowFamily("(2)", "part[g,k,n,d] <= pods[g,k,n], for pods with parts of several devices"),
    "wholes": RowFamily("(2)", "sum_d whole[n,d] = devices asked for on n"),
    "device": RowFamily("(2)", "sum gpu part + 1000 whole + what stays <= the device"),
    "devices": RowFamily("(2)", "devices asked for on n <= those entirely free"),
    "rounded": RowFamily(
        "(2)",
        "sum floor(devices / s) pods <= floor(entirely free / s), for each size s",
        Role.VALID,
        "devices / s <= whole numbers of pods, rounded (Chvatal, Gomory)",
    ),
    "resource": RowFamily("(3)", "sum request pods + what stays <= the node's"),
    "one_domain": RowFamily("(5)", "sum_D domain[g,L,D] = placed[g]"),
    "inside": RowFamily("(5)", "pods of g in D <= count domain[g,L,D]"),
    "one_within": RowFamily("(5)", "sum_D within[g,s,D] <= placed[g]"),
    "within": RowFamily("(5)", "pods of the group of s in D <= count within[g,s,D]"),
    "per_node": RowFamily("(6)", "sum_k pods[g,k,n] <= per_node"),
    "queue": RowFamily("(7)", "use of the queue <= quota, or quota + borrow in a cohort"),
    "cohort": RowFamily("(7)", "use of all members <= the sum of quotas"),
    "flavour": RowFamily("(7)", "use of the queue on nodes of the flavour <= its quota"),
    "one_flavour": RowFamily("(7)", "sum_F flavour[g,k,F] <= placed[g]"),
    "on_flavour": RowFamily("(7)", "pods of the group on nodes of F <= count flavour[g,k,F]"),
    "leaves": RowFamily("(8)", "ended + sum_n moved[r,n] <= 1"),
    "split": RowFamily("objective", "sum_D domain[g,L,D] - placed[g] <= (number of domains - 1) split[g]"),
    "useful": RowFamily("objective", "useful <= fits, and what is free of the device >= what the shape has of one"),
    "fits": RowFamily("objective", "devices and resources that are left >= what the shape asks for, fits[s,n] times"),
    "lost": RowFamily("objective", "lost >= what is free of the device - device useful"),
    "held": RowFamily("", "a component that was solved before is as good as then"),
    "nested": RowFamily(
        "",
        "domain[g,L,D] <= domain of the next wider level around it",
        Role.VALID,
        "a pod in D is in the domain around it",
    ),
    "enough": RowFamily(
        "",
        "pods of g in D <= what so many of its largest parts hold",
        Role.VALID,
        "pods lie in the parts that are used, which hold no more than as many of the largest",
    ),
    "equal_gangs": RowFamily(
        "", "of equal gangs the first are placed", Role.SYMMETRY, "two equal gangs change places, node by node"
    ),
    "equal_devices": RowFamily(
        "",
        "of equal devices the first are used most",
        Role.SYMMETRY,
        "two equal devices of a node change places, part by part",
    ),
}


class Item(NamedTuple):
    """Pods that are put somewhere: a group of a gang, or one pod that may be moved.

    Attributes
    ----------
    family, key : names of its variables: pods and part, or moved and moved_part
    nodes : positions of the nodes that it may be on, each with the most of them that it holds
    """

    family: str
    key: tuple[str | int, ...]
    shape: Shape
    nodes: dict[int, int]

    @property
    def fraction(self) -> bool:
        """Whether its pods take parts of devices."""
        return 0 < self.shape.gpu < WHOLE


def build_assignment(
    instance: GangPlacementInstance,
    tighten: bool,
    *,
    goal: int | None = None,
    held: Sequence[int] = (),
) -> DeclarativeModel:
    """The integer program.

    Parameters
    ----------
    tighten : equal gangs and equal devices in order
    goal : the number of the component that is maximised, as its digit; all of them as one number where not given
    held : digits that the components before it must have at least

    Raises
    ------
    ModelRefused
        All components together make numbers that floats do not have.

    Notes
    -----
    O(pods' groups x nodes x devices) variables. Source: ours.
    """
    return _ModelBuilder(instance, tighten, goal, held).model()


def assignment_nonzeros(instance: GangPlacementInstance) -> int:
    """About how many nonzeros the model has, before it is built."""
    widest = max(len(node.gpus) for node in instance.nodes)
    groups = sum(len(gang.pods) for gang in instance.gangs) + sum(pod.migratable for pod in instance.running)
    kinds = 4 + len(instance.levels) + 2 * widest
    return groups * len(instance.nodes) * kinds + len(instance.nodes) * widest * 3


class _ModelBuilder:
    """One model under construction."""

    def __init__(self, instance: GangPlacementInstance, tighten: bool, goal: int | None, held: Sequence[int]) -> None:
        self.instance = instance
        self.tighten = tighten
        self.goal = goal
        self.held = held
        self.entries = components(instance)
        self.used = self.entries if goal is None else self.entries[: goal + 1]
        self.kinds = {entry.kind for entry in self.used}
        self.layout = Layout(
            pulp.LpProblem("gang_placement", pulp.LpMaximize),
            VARIABLES,
            ROWS,
            "the components of the objective as one number" if goal is None else self.entries[goal].name,
            {"gang": [gang.id for gang in instance.gangs], "node": [node.id for node in instance.nodes]},
        )
        self.capacity = capacities(instance)
        self.items: list[Item] = []
        self.on_node: dict[int, list[tuple[Item, pulp.LpVariable]]] = defaultdict(list)
        self.on_device: dict[tuple[int, int], list[Term]] = defaultdict(list)
        self.staying: dict[str, Sums] = {}
        self.leaving: dict[int, list[Running]] = defaultdict(list)
        self.by_domain: dict[tuple[str, int], dict[Domain, pulp.LpVariable]] = {}

    def model(self) -> DeclarativeModel:
        """The whole model."""
        self._running()
        self.items += self._items()
        for item in self.items:
            self._item(item)
        for name, stays in self.staying.items():
            if len(stays.terms) > 1:
                self.layout.row("leaves", (name,), [(variable, 1.0) for variable, _ in stays.terms], "<=", 1)
        for gang in self.instance.gangs:
            self._gang(gang)
        for n in range(len(self.instance.nodes)):
            self._node(n)
        self._queues()
        fragments = Fragments(self.layout, self.instance, self.free_of, self.left_of)
        if "fragmentation" in self.kinds:
            fragments.build()
        self._equal_gangs()
        self._objective(fragments)
        return DeclarativeModel(
            self.layout.problem,
            lambda value: extract(self.instance, self.layout, value),
            MAXIMISE,
            assign=lambda solution: point(self.instance, self.layout, solution),
            objective_is_integral=True,
            whole_results=True,
            layout=self.layout,
            tightened=self.tighten,
        )

    # -- who may be where ----------------------------------------------------------------------------------------

    def _items(self) -> Iterable[Item]:
        for gang in self.instance.gangs:
            for k, group in enumerate(gang.pods):
                most = min(group.count, gang.per_node or group.count)
                hosts = self._hosts(group, most)
                listed = self.instance.flavours_of(gang, group)
                if listed is not None:
                    hosts = {n: room for n, room in hosts.items() if self.instance.nodes[n].flavour in listed}
                yield Item("pods", (gang.id, k), group, hosts)
        for pod in self.instance.may_leave:
            if pod.migratable:
                yield Item("moved", (pod.id,), pod.shape, self._hosts(pod.shape, 1))

    def _hosts(self, shape: Shape, most: int) -> dict[int, int]:
        """Nodes with how many pods of the shape alone they hold, at most `most`."""
        found = {n: min(most, most_pods(self.instance, shape, n)) for n in range(len(self.instance.nodes))}
        return {n: pods for n, pods in found.items() if pods}

    def _item(self, item: Item) -> None:
        """Variables of one item, and rows (2) of its parts."""
        for n, room in item.nodes.items():
            name = self.instance.nodes[n].id
            there = self.layout.variable(item.family, *item.key, name, high=room)
            self.on_node[n].append((item, there))
            if item.fraction:
                split: list[Term] = [(there, -float(item.shape.pieces))]
                family = "part" if item.family == "pods" else "moved_part"
                for d, part in enumerate(self.capacity[n]):
                    most = min(room, part // item.shape.gpu)
                    if most:
                        taken = self.layout.variable(family, *item.key, name, d, high=most)
                        split.append((taken, 1.0))
                        if item.shape.pieces > 1:
                            key = (*item.key, name, d)
                            self.layout.row("different", key, [(taken, 1.0), (there, -1.0)], "<=", 0)
                        self.on_device[n, d].append((taken, float(item.shape.gpu)))
                self.layout.row("parts", (*item.key, name), split, "==", 0)
            if item.family == "moved":
                self.staying[item.key[0]].add([(there, -1.0)])  # type: ignore[index]

    def _running(self) -> None:
        """Who stays, 1 - ended - moved, and who may leave which node."""
        for pod in self.instance.may_leave:
            stays = self.staying[pod.id] = Sums(constant=Fraction(1))
            self.leaving[self.instance.node_index[pod.node]].append(pod)
            if pod.preemptible:
                stays.add([(self.layout.variable("ended", pod.id), -1.0)])

    # -- rows of gangs -------------------------------------------------------------------------------------------

    def _of(self, gang: Gang, k: int, nodes: Iterable[int] | None = None) -> list[Term]:
        """Pods of a group, on some nodes or all."""
        every = self.layout.variables.get("pods", {})
        chosen = range(len(self.instance.nodes)) if nodes is None else nodes
        keys = ((gang.id, k, self.instance.nodes[n].id) for n in chosen)
        return [(every[key], 1.0) for key in keys if key in every]

    def _gang(self, gang: Gang) -> None:
        placed = self.layout.variable("placed", gang.id)
        groups = range(len(gang.pods))
        pods = [self._of(gang, k) for k in groups]
        if gang.fewest == gang.size:
            for k in groups:
                self.layout.row("all", (gang.id, k), [*pods[k], (placed, -float(gang.pods[k].count))], "==", 0)
        else:
            self._prefix(gang, placed, pods)
        if gang.per_node is not None and len(gang.pods) > 1 and gang.size > gang.per_node:
            for n in range(len(self.instance.nodes)):
                there = [term for k in groups for term in self._of(gang, k, [n])]
                if there:
                    self.layout.row("per_node", (gang.id, self.instance.nodes[n].id), there, "<=", gang.per_node)
        self._levels(gang, placed)
        for subgroup in gang.subgroups or ():
            self._within(gang, subgroup, placed)
        for k in groups:
            self._one_flavour(gang, k, placed)

    def _within(self, gang: Gang, subgroup: Subgroup, placed: pulp.LpVariable) -> None:
        """All placed pods of a subgroup in one domain of its level."""
        rooms, depth = self._rooms(gang), self.instance.depth(subgroup.required)
        groups = gang.members(subgroup)
        nodes = self.instance.by_domain(depth, sorted({n for k in groups for n in rooms[k]}))
        used: list[Term] = []
        for domain, members in nodes.items() if len(nodes) > 1 else ():
            key = (gang.id, subgroup.id, "/".join(domain))
            used.append((self.layout.variable("within", *key), 1.0))
            for k in groups:
                most = min(gang.pods[k].count, sum(rooms[k].get(n, 0) for n in members))
                if most:
                    terms = [*self._of(gang, k, members), (used[-1][0], -float(most))]
                    self.layout.row("within", (*key, k), terms, "<=", 0)
        if used:
            self.layout.row("one_within", (gang.id, subgroup.id), [*used, (placed, -1.0)], "<=", 0)

    def _one_flavour(self, gang: Gang, k: int, placed: pulp.LpVariable) -> None:
        """All placed pods of a group on nodes of one flavour, where its queue lists flavours."""
        room = self._rooms(gang)[k]
        members: dict[str, list[int]] = defaultdict(list)
        for n in room if self.instance.flavours_of(gang, gang.pods[k]) is not None else ():
            members[self.instance.nodes[n].flavour or ""].append(n)
        if len(members) < 2:
            return
        used: list[Term] = []
        for flavour, nodes in members.items():
            used.append((self.layout.variable("flavour", gang.id, k, flavour), 1.0))
            most = min(gang.pods[k].count, sum(room[n] for n in nodes))
            terms = [*self._of(gang, k, nodes), (used[-1][0], -float(most))]
            self.layout.row("on_flavour", (gang.id, k, flavour), terms, "<=", 0)
        self.layout.row("one_flavour", (gang.id, k), [*used, (placed, -1.0)], "<=", 0)

    def _prefix(self, gang: Gang, placed: pulp.LpVariable, pods: Sequence[Sequence[Term]]) -> None:
        """At least so many pods, groups in their order; the last one may be partial."""
        every = [term for group in pods for term in group]
        self.layout.row("least", (gang.id,), [*every, (placed, -float(gang.fewest))], ">=", 0)
        for k, group in enumerate(gang.pods):
            count = float(group.count)
            self.layout.row("none", (gang.id, k), [*pods[k], (placed, -count)], "<=", 0)
            if k + 1 < len(gang.pods):
                filled = self.layout.variable("filled", gang.id, k)
                self.layout.row("filled", (gang.id, k), [*pods[k], (filled, -count)], ">=", 0)
                after = float(gang.pods[k + 1].count)
                self.layout.row("prefix", (gang.id, k), [*pods[k + 1], (filled, -after)], "<=", 0)

    def _levels(self, gang: Gang, placed: pulp.LpVariable) -> None:
        """Domains that a gang uses, of the levels that something asks about."""
        depths = {self.instance.depth(gang.required)}
        if "split" in self.kinds:
            depths.add(self.instance.depth(gang.preferred))
        if "domains" in self.kinds:
            depths |= set(range(1, len(self.instance.levels) + 2))
        above = 0
        around: dict[Domain, pulp.LpVariable] = {(): placed}
        for depth in sorted(depths - {0}):
            used = self._domains(gang, depth)
            self._nested(gang, depth, above, around)
            above, around = depth, used
            every: list[Term] = [(variable, 1.0) for variable in used.values()]
            name = (*self.instance.levels, "node")[depth - 1]
            if depth == self.instance.depth(gang.required):
                self.layout.row("one_domain", (gang.id, name), [*every, (placed, -1.0)], "==", 0)
            elif depth == self.instance.depth(gang.preferred) and "split" in self.kinds and len(used) > 1:
                split = self.layout.variable("split", gang.id)
                terms = [*every, (placed, -1.0), (split, -float(len(used) - 1))]
                self.layout.row("split", (gang.id,), terms, "<=", 0)

    def _rooms(self, gang: Gang) -> list[dict[int, int]]:
        """For each group the most pods on each node."""
        return [item.nodes for item in self.items if item.family == "pods" and item.key[0] == gang.id]

    def _domains(self, gang: Gang, depth: int) -> dict[Domain, pulp.LpVariable]:
        """The variables of a level, each at least 1 where pods lie in the domain."""
        rooms = self._rooms(gang)
        members = self.instance.by_domain(depth, sorted({n for room in rooms for n in room}))
        name = (*self.instance.levels, "node")[depth - 1]
        used: dict[Domain, pulp.LpVariable] = {}
        for domain, nodes in members.items():
            used[domain] = self.layout.variable("domain", gang.id, name, "/".join(domain))
            for k, group in enumerate(gang.pods):
                there = self._of(gang, k, nodes)
                most = min(group.count, sum(rooms[k].get(n, 0) for n in nodes))
                if there:
                    key = (gang.id, k, name, "/".join(domain))
                    self.layout.row("inside", key, [*there, (used[domain], -float(most))], "<=", 0)
        self.by_domain[gang.id, depth] = used
        return used

    def _nested(self, gang: Gang, depth: int, above: int, around: Mapping[Domain, pulp.LpVariable]) -> None:
        """A domain is used only where the one around it is, and as many as their largest need for the pods."""
        level = (*self.instance.levels, "node")[depth - 1]
        inside: dict[Domain, list[tuple[Domain, pulp.LpVariable]]] = defaultdict(list)
        for domain, used in self.by_domain[gang.id, depth].items():
            inside[domain[:above]].append((domain, used))
            key = (gang.id, level, "/".join(domain))
            self.layout.row("nested", key, [(used, 1.0), (around[domain[:above]], -1.0)], "<=", 0)
        for k, group in enumerate(gang.pods):
            rooms: dict[Domain, int] = defaultdict(int)
            for n, room in self._rooms(gang)[k].items():
                rooms[self.instance.domain(n, depth)] += room
            for outer, members in inside.items():
                nodes = [n for n in self._rooms(gang)[k] if self.instance.domain(n, above) == outer]
                sizes = sorted((min(rooms[domain], group.count) for domain, _ in members), reverse=True)
                for at, size in enumerate(sizes):  # the line through what the `at` largest hold and one more
                    before = sum(sizes[:at])
                    if before < group.count and size not in sizes[:at]:
                        terms = [(used, -float(size)) for _, used in members]
                        terms += [*self._of(gang, k, nodes), (around[outer], float(size * at - before))]
                        self.layout.row("enough", (gang.id, k, level, "/".join(outer), at), terms, "<=", 0)

    # -- rows of nodes -------------------------------------------------------------------------------------------

    def _node(self, n: int) -> None:
        there = self.on_node[n]
        name = self.instance.nodes[n].id
        wholes: list[Term] = [(variable, float(item.shape.devices)) for item, variable in there if item.shape.devices]
        by_device = any(item.fraction for item, _ in there) or bool(self.leaving[n]) or "fragmentation" in self.kinds
        if by_device:
            self._devices(n, wholes)
        elif wholes:
            free = sum(part == WHOLE for part in self.capacity[n])
            self.layout.row("devices", (name,), wholes, "<=", free)
            self._rounded(name, [(variable, item.shape.devices) for item, variable in there], free)
        resources = {resource for item, _ in there for resource, amount in item.shape.request.items() if amount}
        for resource in sorted(resources):
            left = self.left_of(n, resource)
            terms = [(variable, -coefficient) for variable, coefficient in left.terms]
            self.layout.row("resource", (name, resource), terms, "<=", float(left.constant))

    def _rounded(self, name: str, asked: Sequence[tuple[pulp.LpVariable, int]], free: int) -> None:
        """The row of devices divided by each size and rounded down; where sizes divide each other, all that is true."""
        for size in sorted({devices for _, devices in asked if devices > 1}):
            terms: list[Term] = [(v, float(devices // size)) for v, devices in asked if devices >= size]
            self.layout.row("rounded", (name, size), terms, "<=", free // size)

    def _devices(self, n: int, wholes: Sequence[Term]) -> None:
        """Rows (2) where it matters which device is taken."""
        name = self.instance.nodes[n].id
        taken: list[Term] = []
        for d, part in enumerate(self.capacity[n]):
            if part == WHOLE and wholes:
                whole = self.layout.variable("whole", name, d)
                taken.append((whole, -1.0))
                self.on_device[n, d].append((whole, float(WHOLE)))
        if wholes:
            self.layout.row("wholes", (name,), [*wholes, *taken], "==", 0)
        for d in range(len(self.capacity[n])):
            left = self.free_of(n, d)
            if left.terms:
                terms = [(variable, -coefficient) for variable, coefficient in left.terms]
                self.layout.row("device", (name, d), terms, "<=", float(left.constant))
        if self.tighten and not self.leaving[n] and "fragmentation" not in self.kinds:
            self._equal_devices(n)

    def free_of(self, n: int, device: int) -> Sums:
        """What is left free of a device."""
        left = Sums(constant=Fraction(self.capacity[n][device]))
        left.add(self.on_device[n, device], -1)
        for pod in self.leaving[n]:
            part = pod.devices.get(str(device), 0)
            if part:
                left.add(self.staying[pod.id].terms, -part)
                left.constant -= part
        return left

    def left_of(self, n: int, resource: str) -> Sums:
        """What is left of another resource of a node."""
        left = Sums(constant=Fraction(self.instance.nodes[n].free.get(resource, 0)))
        for item, variable in self.on_node[n]:
            amount = item.shape.request.get(resource, 0)
            if amount:
                left.add([(variable, float(amount))], -1)
        for pod in self.leaving[n]:
            amount = pod.request.get(resource, 0)
            if amount:  # what may leave is given back, and taken where it stays
                left.add(self.staying[pod.id].terms, -amount)
        return left

    def _equal_devices(self, n: int) -> None:
        name = self.instance.nodes[n].id
        for d in range(1, len(self.capacity[n])):
            if self.capacity[n][d] == self.capacity[n][d - 1] and self.on_device[n, d]:
                more = [(variable, -coefficient) for variable, coefficient in self.on_device[n, d]]
                self.layout.row("equal_devices", (name, d), [*self.on_device[n, d - 1], *more], ">=", 0)

    # -- rows of queues ------------------------------------------------------------------------------------------

    def _queues(self) -> None:
        every = range(len(self.instance.nodes))
        for limit in self.instance.limits():
            terms: list[Term] = []
            nodes = [n for n in every if limit.flavour in (None, self.instance.nodes[n].flavour)]
            for gang in self.instance.gangs:
                for k, group in enumerate(gang.pods if gang.queue in limit.queues else ()):
                    amount = float(group.amount(limit.resource))
                    terms += [(variable, amount) for variable, _ in self._of(gang, k, nodes) if amount]
            family, who = ("queue", limit.queues[0]) if limit.cohort is None else ("cohort", limit.cohort)
            key: tuple[str, ...] = (who, limit.resource)
            if limit.flavour is not None:
                family, key = "flavour", (*key, limit.flavour)
            if terms:
                self.layout.row(family, key, terms, "<=", limit.most)

    # -- objective -----------------------------------------------------------------------------------------------

    def _equal_gangs(self) -> None:
        alike: dict[Gang, str] = {}
        for gang in self.instance.gangs:
            kind = gang.model_copy(update={"id": "", "arrival": 0.0})
            if kind in alike:
                placed = self.layout.variables["placed"]
                terms: list[Term] = [(placed[gang.id], 1.0), (placed[alike[kind]], -1.0)]
                if self.tighten:
                    self.layout.row("equal_gangs", (gang.id,), terms, "<=", 0)
                else:
                    self.layout.order("equal_gangs", "gang", alike[kind], gang.id, terms)
            alike[kind] = gang.id

    def _digit(self, entry: Component, fragments: Fragments) -> Sums:
        """The digit of a component, as the variables say it."""
        found = Sums(constant=Fraction(0 if entry.maximise else entry.most))
        layout = self.layout.variables
        for gang in self.instance.gangs:
            mine = entry.priority in (None, gang.priority)
            if entry.kind == "weight" and mine:
                found.add([(layout["placed"][gang.id], 1.0)], exact(gang.weight) / entry.step)
            elif entry.kind == "pods" and mine:
                each = exact(gang.weight) / gang.size / entry.step
                found.add((term for k in range(len(gang.pods)) for term in self._of(gang, k)), each)
            elif entry.kind == "domains":
                for depth in range(1, len(self.instance.levels) + 2):
                    found.add([(used, -1.0) for used in self.by_domain[gang.id, depth].values()])
                found.add([(layout["placed"][gang.id], float(len(self.instance.levels) + 1))])
        if entry.kind == "split":
            found.add([(split, -1.0) for split in layout.get("split", {}).values()])
        elif entry.kind == "fragmentation":
            for sums, share in zip(fragments.lost, shares(self.instance), strict=True):
                found.add(sums.terms, -share / entry.step)
                found.constant -= sums.constant * share / entry.step
        elif entry.kind == "moves":
            self._prices(entry, found)
        return found

    def _prices(self, entry: Component, found: Sums) -> None:
        layout = self.layout.variables
        for pod in self.instance.running:
            if pod.preemptible and pod.price is not None:
                found.add([(layout["ended"][pod.id], -1.0)], exact(pod.price) / entry.step)
            if pod.migratable and pod.move_price is not None:
                moved = [v for key, v in layout.get("moved", {}).items() if isinstance(key, tuple) and key[0] == pod.id]
                found.add([(variable, -1.0) for variable in moved], exact(pod.move_price) / entry.step)

    def _objective(self, fragments: Fragments) -> None:
        digits = [self._digit(entry, fragments) for entry in self.used]
        for entry, digit, least in zip(self.used, digits, self.held, strict=False):
            if digit.terms:
                self.layout.row("held", (entry.name,), digit.terms, ">=", float(least - digit.constant))
        if self.goal is not None:
            self.layout.objective(digits[-1].terms, float(digits[-1].constant))
            return
        together, factor = Sums(), 1
        for entry, digit in reversed(list(zip(self.used, digits, strict=True))):
            together.add(digit.terms, factor)
            together.constant += digit.constant * factor
            factor *= entry.radix
        if factor >= LARGEST_WHOLE:
            raise ModelRefused(
                f"all components together have {len(str(factor)) - 1} digits, floats have 15: use staged"
            )
        self.layout.objective(together.terms, float(together.constant))
