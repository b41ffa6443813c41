"""The instance and the solution of gang-placement: one decision of a live cluster, time does not occur."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from pydantic import FailFast, Field, model_validator

from schedgap.formulations.common.instance import (
    LARGEST_COUNT,
    MOST_GPUS,
    MOST_JOBS,
    MOST_SERVERS,
    Count,
    Frozen,
    FrozenDict,
    Identifier,
    Instance,
    Line,
    Moment,
    NonNegative,
    Part,
    Positive,
    unique_ids,
)
from schedgap.formulations.common.solution import Listed, TypedSolution

WHOLE = 1000
"""Thousandths of one device."""
NODE = "node"
"""The reserved name of the last level."""
MOST_PODS = 1_000_000
"""Waiting pods of one decision, all gangs together."""

MOST_STEPS = 10**15
"""Largest component of the objective: engines tell bounds in floats, which have every whole number up to 2^53."""

Amount = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
"""Whole units of a resource."""
Objective = Literal["weight", "topology", "fragmentation", "moves"]
Domain = tuple[str, ...]
"""The path of labels from the widest level down: equal labels under different parents are different domains."""


class Selector(Part):
    """Where a pod may go: all labels equal, and any of the models (no models: any node)."""

    labels: Frozen[Identifier, Line] = Field(default_factory=FrozenDict)
    models: tuple[Identifier, ...] = ()

    def takes(self, node: Node) -> bool:
        """Whether the node has the labels and one of the models."""
        fits = all(node.labels.get(name) == value for name, value in self.labels.items())
        return fits and (not self.models or node.gpu_model in self.models)


class Node(Part):
    """A node with what is free on it; what runs is already taken off.

    Attributes
    ----------
    domain : a label for each level, widest first
    gpus : free thousandths of each device
    free : other resources in whole units; one that is not listed is 0
    flavour : kind of node that queues give quotas to; a node without one is of no flavour that a queue lists
    """

    id: Identifier
    domain: tuple[Identifier, ...] = ()
    gpus: Annotated[tuple[Annotated[int, Field(ge=0, le=WHOLE)], ...], Field(max_length=MOST_GPUS)] = ()
    gpu_model: Identifier | None = None
    free: Frozen[Identifier, Amount] = Field(default_factory=FrozenDict)
    labels: Frozen[Identifier, Line] = Field(default_factory=FrozenDict)
    flavour: Identifier | None = None


class Running(Part):
    """What runs now; it matters where moves are asked for, and as a shape.

    Attributes
    ----------
    devices : thousandths that it has of each device of its node, by the device's number as text
    movable : whether it may be touched at all: preempted where it has a price, moved where it has a move_price
    """

    id: Identifier
    node: Identifier
    devices: Frozen[Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,6})$")], Annotated[int, Field(ge=1, le=WHOLE)]] = (
        Field(default_factory=FrozenDict)
    )
    request: Frozen[Identifier, Amount] = Field(default_factory=FrozenDict)
    movable: bool = False
    price: NonNegative | None = None
    move_price: NonNegative | None = None
    selector: Selector = Field(default_factory=Selector)

    @model_validator(mode="after")
    def _has_a_price(self) -> Self:
        _no_gpu(self.request, "request")
        if self.movable and self.price is None and self.move_price is None:
            raise ValueError("movable: is true, but there is neither a price nor a move_price")
        if self.movable and self.move_price is not None and self.gpu is None:
            raise ValueError("move_price: a pod with parts of several devices cannot be moved")
        return self

    @property
    def shape(self) -> Shape:
        """What it asks for where it goes."""
        return Shape(gpu=self.gpu or 0, request=self.request, selector=self.selector)

    @property
    def gpu(self) -> int | None:
        """What it would ask for as a waiting pod; None where no such request is valid: parts of several devices."""
        parts = tuple(self.devices.values())
        if all(part == WHOLE for part in parts):
            return WHOLE * len(parts)
        return parts[0] if len(parts) == 1 else None

    @property
    def preemptible(self) -> bool:
        """Whether it may be ended."""
        return self.movable and self.price is not None

    @property
    def migratable(self) -> bool:
        """Whether it may be moved."""
        return self.movable and self.move_price is not None


class FlavourQuota(Part):
    """What the placed gangs of a queue may use together on the nodes of one flavour.

    Attributes
    ----------
    quota : amount of each resource, GPUs as ``gpu`` in thousandths
    """

    flavour: Identifier
    quota: Annotated[Frozen[Identifier, Amount], Field(min_length=1)]


class Queue(Part):
    """What the placed gangs of a queue may use together; a resource that is not named is not limited.

    Pods that ask for a resource of `flavours` lie on nodes of the flavours that are listed, all placed pods of a group
    on one flavour, as Kueue assigns a pod set.

    Attributes
    ----------
    quota : amount per resource; GPUs as ``gpu`` in thousandths
    borrow : in a cohort, what the queue may use beyond its quota; a resource that is not named has no such limit
    cohort : queues that use each other's quota
    flavours : quotas by the node's flavour, in the order in which rules try them; all name the same resources; not in
        a cohort
    """

    id: Identifier
    quota: Frozen[Identifier, Amount] = Field(default_factory=FrozenDict)
    borrow: Frozen[Identifier, Amount] = Field(default_factory=FrozenDict)
    cohort: Identifier | None = None
    flavours: Annotated[tuple[FlavourQuota, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _borrows_what_it_has(self) -> Self:
        for name in self.borrow:
            if name not in self.quota:
                raise ValueError(f'borrow.{name}: the quota does not name "{name}"')
        return self

    @model_validator(mode="after")
    def _has_whole_flavours(self) -> Self:
        listed = self.flavours or ()
        _distinct(tuple(entry.flavour for entry in listed), "flavours")
        if listed and self.cohort is not None:
            raise ValueError("flavours: a queue of a cohort cannot have quotas by flavour")
        for position, entry in enumerate(listed):
            if entry.quota.keys() != listed[0].quota.keys():
                raise ValueError(f"flavours[{position}].quota: must name the resources that flavours[0].quota names")
        return self

    def binds(self, shape: Shape) -> bool:
        """Whether a pod of the shape lies on nodes of the listed flavours only: it asks for what these limit."""
        return any(shape.amount(resource) for entry in (self.flavours or ())[:1] for resource in entry.quota)


class Limit(NamedTuple):
    """Gangs of `queues` use at most `most` of a resource: those of one queue, or of a whole `cohort`.

    Attributes
    ----------
    flavour : whose nodes count; None where all do
    """

    cohort: str | None
    queues: tuple[str, ...]
    resource: str
    most: int
    flavour: str | None = None


class Shape(Part):
    """What one pod asks for.

    Attributes
    ----------
    gpu : thousandths: 0, a part of one device (1 to 999), or whole devices that are entirely free
    parts : devices of one node of which it takes such a part each, two at least; one where not given
    request : other resources
    """

    gpu: Annotated[int, Field(ge=0, le=WHOLE * MOST_GPUS)] = 0
    parts: Annotated[int, Field(ge=2, le=MOST_GPUS)] | None = None
    request: Frozen[Identifier, Amount] = Field(default_factory=FrozenDict)
    selector: Selector = Field(default_factory=Selector)

    @model_validator(mode="after")
    def _part_or_whole(self) -> Self:
        _no_gpu(self.request, "request")
        if self.gpu > WHOLE and self.gpu % WHOLE:
            raise ValueError(f"gpu: must be 0, 1 to 999 or a multiple of 1000, got {self.gpu}")
        if self.parts is not None and not 0 < self.gpu < WHOLE:
            raise ValueError(f"parts: gpu must be the part of each device, 1 to 999, got {self.gpu}")
        return self

    @property
    def devices(self) -> int:
        """Whole devices that it takes; 0 for a part of one."""
        return self.gpu // WHOLE

    @property
    def pieces(self) -> int:
        """Devices that it takes, whole or a part of each."""
        return self.devices or (self.parts or 1) * (self.gpu > 0)

    @property
    def thousandths(self) -> int:
        """What it takes of all its devices together."""
        return self.gpu * (self.parts or 1)

    def amount(self, resource: str) -> int:
        """What it asks for of a resource by the name that queues give it."""
        return self.thousandths if resource == "gpu" else self.request.get(resource, 0)


class Group(Shape):
    """Equal pods of a gang.

    Attributes
    ----------
    subgroups : ids of the gang's subgroups that they are in
    """

    count: Annotated[int, Field(ge=1, le=MOST_PODS)]
    subgroups: Annotated[tuple[Identifier, ...], Field(min_length=1)] | None = None

    @property
    def shape(self) -> Shape:
        """What each of its pods asks for."""
        return Shape(gpu=self.gpu, parts=self.parts, request=self.request, selector=self.selector)


class WeightedShape(Shape):
    """A shape with its share in the measure of fragmentation."""

    share: Positive


class Subgroup(Part):
    """Groups of a gang whose placed pods lie in one domain of a level, beside what the gang requires of all.

    Attributes
    ----------
    required : a level, or ``node``
    """

    id: Identifier
    required: Identifier


class Gang(Part):
    """Pods that are placed together or not at all.

    Attributes
    ----------
    subgroups : groups with levels of their own; a group may be in several
    least : fewest pods that make sense; all where not given
    per_node : most of its pods on one node
    required, preferred : a level, ``node``, or none
    arrival : for rules only
    """

    id: Identifier
    pods: Annotated[tuple[Group, ...], Field(min_length=1)]
    weight: Positive = 1.0
    priority: Annotated[int, Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)] = 0
    arrival: Moment = 0.0
    queue: Identifier | None = None
    required: Identifier | None = None
    preferred: Identifier | None = None
    per_node: Count | None = None
    least: Count | None = None
    subgroups: Annotated[tuple[Subgroup, ...], Field(min_length=1)] | None = None

    def members(self, subgroup: Subgroup) -> list[int]:
        """Numbers of the groups in a subgroup."""
        return [k for k, group in enumerate(self.pods) if subgroup.id in (group.subgroups or ())]

    @property
    def size(self) -> int:
        """Its pods."""
        return sum(group.count for group in self.pods)

    @property
    def fewest(self) -> int:
        """Fewest pods with which it is placed."""
        return self.size if self.least is None else self.least


class GangPlacementInstance(Instance):
    """One scheduling decision: nodes, what runs, what waits.

    Attributes
    ----------
    levels : levels of the topology, widest first; the node itself is the last one and not listed
    objectives : lexicographic, in this order
    flat : weights are added over priorities
    shapes : shapes of the measure of fragmentation; the shares of the waiting and running pods where not given

    Raises
    ------
    InputError
        On ``parse``: unknown keys, wrong types, ids used twice, numbers out of range, names that the instance does not
        have, a device that is more than whole with what runs on it.
    """

    problem_id: ClassVar[str] = "gang-placement"
    problem: Literal["gang-placement"]
    levels: tuple[Identifier, ...] = ()
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=MOST_SERVERS), FailFast()]
    running: Annotated[tuple[Running, ...], Field(max_length=MOST_PODS), FailFast()] = ()
    queues: Annotated[tuple[Queue, ...], Field(max_length=MOST_JOBS), FailFast()] = ()
    gangs: Annotated[tuple[Gang, ...], Field(max_length=MOST_JOBS), FailFast()]
    objectives: Annotated[tuple[Objective, ...], Field(min_length=1)] = ("weight", "topology")
    flat: bool = False
    shapes: Annotated[tuple[WeightedShape, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for what in ("nodes", "running", "queues", "gangs"):
            unique_ids(getattr(self, what), what)
        _distinct(self.levels, "levels")
        _distinct(self.objectives, "objectives")
        if NODE in self.levels:
            raise ValueError(f'levels: "{NODE}" is the last level always, and not listed')
        self._check_nodes()
        self._check_running()
        self._check_gangs()
        self._check_numbers()
        return self

    def _check_numbers(self) -> None:
        from schedgap.formulations.gang_placement.scale import components

        for entry in components(self):
            if entry.most > MOST_STEPS:
                text = f"{entry.name} is counted in steps of {float(entry.step):.3g} and may have {entry.most:.3g}"
                raise ValueError(f"objectives: {text} of them, at most {MOST_STEPS} are supported: round its numbers")

    def _check_nodes(self) -> None:
        for position, node in enumerate(self.nodes):
            _no_gpu(node.free, f"nodes[{position}].free")
            if len(node.domain) != len(self.levels):
                text = f"must have a label for each of {len(self.levels)} levels, got {len(node.domain)}"
                raise ValueError(f"nodes[{position}].domain: {text}")
        total = sum(len(node.gpus) for node in self.nodes)
        if total > MOST_GPUS:
            raise ValueError(f"nodes: have {total} GPUs, at most {MOST_GPUS} are supported")

    def _check_running(self) -> None:
        there = [list(node.gpus) for node in self.nodes]
        for position, pod in enumerate(self.running):
            place = f"running[{position}]"
            if pod.node not in self.node_index:
                raise ValueError(f'{place}.node: there is no node "{pod.node}"')
            devices = there[self.node_index[pod.node]]
            for device, part in pod.devices.items():
                if int(device) >= len(devices):
                    raise ValueError(f"{place}.devices.{device}: node {pod.node} has {len(devices)} devices")
                devices[int(device)] += part
                if devices[int(device)] > WHOLE:
                    text = f"with what is free and what runs before, the device has {devices[int(device)]}"
                    raise ValueError(f"{place}.devices.{device}: {text}, at most {WHOLE}")

    def _check_gangs(self) -> None:
        known = {queue.id for queue in self.queues}
        for position, gang in enumerate(self.gangs):
            place = f"gangs[{position}]"
            if gang.queue is not None and gang.queue not in known:
                raise ValueError(f'{place}.queue: there is no queue "{gang.queue}"')
            levels = [("required", gang.required), ("preferred", gang.preferred)]
            levels += [(f"subgroups[{s}].required", one.required) for s, one in enumerate(gang.subgroups or ())]
            for name, level in levels:
                if level is not None and level not in (*self.levels, NODE):
                    names = ", ".join((*self.levels, NODE))
                    raise ValueError(f'{place}.{name}: there is no level "{level}", one of: {names}')
            self._check_subgroups(gang, place)
            if gang.fewest > gang.size:
                raise ValueError(f"{place}.least: must be at most its {gang.size} pods, got {gang.least}")
        total = sum(gang.size for gang in self.gangs)
        if total > MOST_PODS:
            raise ValueError(f"gangs: have {total} pods, at most {MOST_PODS} are supported")

    @staticmethod
    def _check_subgroups(gang: Gang, place: str) -> None:
        subgroups = gang.subgroups or ()
        unique_ids(subgroups, f"{place}.subgroups")
        for k, group in enumerate(gang.pods):
            _distinct(group.subgroups or (), f"{place}.pods[{k}].subgroups")
            for name in group.subgroups or ():
                if all(one.id != name for one in subgroups):
                    raise ValueError(f'{place}.pods[{k}].subgroups: the gang has no subgroup "{name}"')
        for s, subgroup in enumerate(subgroups):
            if not gang.members(subgroup):
                raise ValueError(f"{place}.subgroups[{s}]: no group of pods is in it")

    @cached_property
    def node_index(self) -> dict[str, int]:
        """Position of each node by id."""
        return {node.id: position for position, node in enumerate(self.nodes)}

    @property
    def with_moves(self) -> bool:
        """Whether what runs may be moved or ended."""
        return "moves" in self.objectives

    @property
    def may_leave(self) -> tuple[Running, ...]:
        """What runs and may be moved or ended."""
        return tuple(pod for pod in self.running if pod.movable) if self.with_moves else ()

    def limits(self) -> Iterator[Limit]:
        """What queues may use, with what they borrow, by flavour of the nodes, and of cohorts."""
        cohorts: dict[str, list[Queue]] = defaultdict(list)
        for queue in self.queues:
            if queue.cohort is not None:
                cohorts[queue.cohort].append(queue)
            for resource, amount in queue.quota.items():
                if queue.cohort is None or resource in queue.borrow:
                    most = amount + (queue.borrow[resource] if queue.cohort is not None else 0)
                    yield Limit(None, (queue.id,), resource, most)
            for entry in queue.flavours or ():
                for resource, amount in entry.quota.items():
                    yield Limit(None, (queue.id,), resource, amount, entry.flavour)
        for cohort, members in cohorts.items():
            ids = tuple(member.id for member in members)
            for resource in members[0].quota:
                if all(resource in member.quota for member in members):
                    yield Limit(cohort, ids, resource, sum(member.quota[resource] for member in members))

    def flavours_of(self, gang: Gang, shape: Shape) -> tuple[str, ...] | None:
        """The flavours whose nodes a pod of the gang may be on, in the order of its queue; None where any node is."""
        queue = self._queue_index.get(gang.queue or "")
        if queue is None or not queue.binds(shape):
            return None
        return tuple(entry.flavour for entry in queue.flavours or ())

    @cached_property
    def _queue_index(self) -> dict[str, Queue]:
        return {queue.id: queue for queue in self.queues}

    def depth(self, level: str | None) -> int:
        """How many labels name a domain of a level; 0, the whole cluster, where there is none."""
        if level is None:
            return 0
        return len(self.levels) + 1 if level == NODE else self.levels.index(level) + 1

    def domain(self, node: int, depth: int) -> Domain:
        """The domain of a node (by position) that so many labels name."""
        found = self.nodes[node]
        return (*found.domain, found.id)[:depth]

    def by_domain(self, depth: int, nodes: Iterable[int]) -> dict[Domain, list[int]]:
        """Some nodes by their domain at a depth, in their order."""
        places: dict[Domain, list[int]] = {}
        for n in nodes:
            places.setdefault(self.domain(n, depth), []).append(n)
        return places

    @cached_property
    def weighted_shapes(self) -> tuple[tuple[Shape, float | int], ...]:
        """Shapes with their shares, not yet divided by the sum; running pods with parts of several devices are none."""
        if self.shapes is not None:
            return tuple((shape, shape.share) for shape in self.shapes)
        counted: Counter[Shape] = Counter()
        for gang in self.gangs:
            for group in gang.pods:
                counted[group.shape] += group.count
        counted.update(pod.shape for pod in self.running if pod.gpu is not None)
        return tuple(counted.items())


def _no_gpu(resources: Mapping[str, int], place: str) -> None:
    """GPUs have a field of their own; as a resource they would be counted twice."""
    if "gpu" in resources:
        raise ValueError(f"{place}.gpu: GPUs are not a resource by name: nodes have gpus, pods gpu, running devices")


def _distinct(names: tuple[str, ...], place: str) -> None:
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ValueError(f'{place}[{position}]: "{name}" is there twice')


class Seat(Part):
    """Where a pod that runs goes."""

    node: str
    devices: Listed[Annotated[int, Field(ge=0, le=MOST_GPUS)]] = ()


class PlacedPod(Seat):
    """One pod of a gang: which group, where, on which devices."""

    group: Annotated[int, Field(ge=0, le=LARGEST_COUNT)]


class GangPlacementSolution(TypedSolution):
    """The pods that are placed, by gang; what is ended and what is moved where that is asked for."""

    placement: dict[str, Listed[PlacedPod]]
    preempted: Listed[str] = ()
    moved: dict[str, Seat] = Field(default_factory=dict)
