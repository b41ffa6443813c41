"""The independent checker of gang-placement, in whole numbers and fractions.

It shares no code with any model or heuristic but `scale`: how the vector of objectives is written as one number. The
oracle of the tests (`tests/oracles/gang_placement.py`) counts that anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.common.solution import known_only
from schedgap.formulations.gang_placement.instance import (
    Gang,
    GangPlacementInstance,
    GangPlacementSolution,
    Node,
    PlacedPod,
    Queue,
    Running,
    Selector,
    Shape,
)
from schedgap.formulations.gang_placement.scale import components, score

Device = tuple[str, int]


def check(instance: GangPlacementInstance, solution: GangPlacementSolution) -> CheckReport:
    """Check one decision and recompute its objectives.

    Raises InputError: the instance does not have a gang, a group, a node or a running pod that is named.

    Parameters
    ----------
    solution : one entry a placed pod; what is ended and moved

    Returns
    -------
    CheckReport
        Violations of the rules (1) to (8), each with its numbers. ``objective`` is the vector as one whole number
        (:mod:`~schedgap.formulations.gang_placement.scale`), which is larger exactly where the vector is better.
        ``details``: ``components``, the vector by name, as exact fractions in text, and ``placed``, the gangs.

    Notes
    -----
    O(size of the instance and of the solution, and for fragmentation devices times shapes).
    """
    return _Check(instance, solution).report()


class _Check:
    """One check."""

    def __init__(self, instance: GangPlacementInstance, solution: GangPlacementSolution) -> None:
        self.instance = instance
        self.solution = solution
        self.violations: list[Violation] = []
        self.nodes = {node.id: node for node in instance.nodes}
        self.running = {pod.id: pod for pod in instance.running}
        self.gangs = {gang.id: gang for gang in instance.gangs}
        self.pods = {name: list(pods) for name, pods in solution.placement.items() if pods}
        self._known()
        self.left = {(node.id, d): part for node in instance.nodes for d, part in enumerate(node.gpus)}
        self.free = {node.id: dict(node.free) for node in instance.nodes}

    def report(self) -> CheckReport:
        """Everything in order: what runs makes room first."""
        self._moves()
        for name, pods in self.pods.items():
            self._gang(self.gangs[name], pods)
        self._take_all()
        self._queues()
        every: dict[tuple[str, int | None], Fraction] = {}
        for name in self.instance.objectives:
            every |= self._values(name)
        entries = components(self.instance)
        values = [every[entry.kind, entry.priority] for entry in entries]
        details = {
            "components": {entry.name: str(value) for entry, value in zip(entries, values, strict=True)},
            "placed": sorted(self.pods),
        }
        objective = None if self.violations else Fraction(score(self.instance, values))
        return CheckReport(tuple(self.violations), objective, details, whole=True)

    def _known(self) -> None:
        known_only(self.solution.placement, self.gangs, "placement", "gang")
        known_only(self.solution.preempted, self.running, "preempted", "running pod")
        known_only(self.solution.moved, self.running, "moved", "running pod")
        known_only([seat.node for seat in self.solution.moved.values()], self.nodes, "moved", "node")
        for name, pods in self.pods.items():
            known_only([pod.node for pod in pods], self.nodes, f"placement: {name}", "node")
            for position, pod in enumerate(pods):
                groups = len(self.gangs[name].pods)
                if pod.group >= groups:
                    place = f"solution: placement.{name}[{position}].group"
                    raise InputError(f"{place}: gang {name} has {groups} groups, counted from 0, got {pod.group}")

    def _fault(self, constraint: str, message: str, amount: float | None = None) -> None:
        self.violations.append(Violation(constraint, message, amount))

    # -- (8): what runs ------------------------------------------------------------------------------------------

    def _moves(self) -> None:
        touched = [*self.solution.preempted, *self.solution.moved]
        if touched and "moves" not in self.instance.objectives:
            self._fault("moves", f"{touched[0]}: what runs stays, moves is not among the objectives")
        for name, count in Counter(touched).items():
            if count > 1:
                self._fault("moves", f"{name}: is ended or moved {count} times")
        for name in dict.fromkeys(touched):
            pod = self.running[name]
            self._may_leave(pod)
            for device, part in pod.devices.items():
                self.left[pod.node, int(device)] += part
            for resource, amount in pod.request.items():
                self.free[pod.node][resource] = self.free[pod.node].get(resource, 0) + amount

    def _may_leave(self, pod: Running) -> None:
        moved = pod.id in self.solution.moved
        price = pod.move_price if moved else pod.price
        if not pod.movable or price is None:
            self._fault("moves", f"{pod.id}: cannot be {'moved' if moved else 'ended'}")
        if moved:
            seat = self.solution.moved[pod.id]
            self._fits(f"{pod.id}, moved", pod.selector, self.nodes[seat.node])

    # -- (1), (4), (5), (6): one gang ----------------------------------------------------------------------------

    def _gang(self, gang: Gang, pods: Sequence[PlacedPod]) -> None:
        counted = Counter(pod.group for pod in pods)
        size = sum(group.count for group in gang.pods)
        least = size if gang.least is None else gang.least
        if len(pods) < least:
            self._fault("least", f"gang {gang.id}: {len(pods)} pods placed, at least {least}", least - len(pods))
        before_is_whole = True
        for number, group in enumerate(gang.pods):
            there = counted[number]
            if there > group.count:
                self._fault("group", f"gang {gang.id}, group {number}: {there} pods placed, {group.count} there")
            if there and not before_is_whole:
                self._fault("prefix", f"gang {gang.id}, group {number}: placed before the groups in front are whole")
            before_is_whole &= there >= group.count
        for pod in pods:
            self._fits(f"gang {gang.id}, group {pod.group}", gang.pods[pod.group].selector, self.nodes[pod.node])
        if gang.required is not None:
            used = self._domains(gang.required, pods)
            if len(used) > 1:
                text = f"gang {gang.id}: pods in {len(used)} domains of level {gang.required}, 1 required"
                self._fault("required", text, len(used) - 1)
        for subgroup in gang.subgroups or ():
            mine = [pod for pod in pods if subgroup.id in (gang.pods[pod.group].subgroups or ())]
            used = self._domains(subgroup.required, mine)
            if len(used) > 1:
                text = f"pods in {len(used)} domains of level {subgroup.required}, 1 required"
                self._fault("subgroup", f"gang {gang.id}, subgroup {subgroup.id}: {text}", len(used) - 1)
        for node, there in Counter(pod.node for pod in pods).items():
            if gang.per_node is not None and there > gang.per_node:
                text = f"gang {gang.id}: {there} pods on node {node}, at most {gang.per_node}"
                self._fault("per_node", text, there - gang.per_node)

    def _fits(self, who: str, selector: Selector, node: Node) -> None:
        for label, wanted in selector.labels.items():
            if node.labels.get(label) != wanted:
                there = node.labels.get(label)
                self._fault("selector", f"{who}: node {node.id} has {label}={there}, {wanted} is asked for")
        if selector.models and node.gpu_model not in selector.models:
            self._fault("selector", f"{who}: node {node.id} has model {node.gpu_model}, not {list(selector.models)}")

    def _domains(self, level: str, pods: Sequence[PlacedPod]) -> set[tuple[str, ...]]:
        """The domains of a level that pods lie in, each by its whole path."""
        levels = (*self.instance.levels, "node")
        depth = levels.index(level) + 1
        return {(*self.nodes[pod.node].domain, pod.node)[:depth] for pod in pods}

    # -- (2), (3): devices and resources -------------------------------------------------------------------------

    def _seats(self) -> Iterator[tuple[str, int, int, Mapping[str, int], str, Sequence[int]]]:
        """(who, GPU asked for of each device, devices, other resources, node, devices it has) of all that is seated."""
        for name, pods in self.pods.items():
            for pod in pods:
                group = self.gangs[name].pods[pod.group]
                who, wanted = f"gang {name}, group {pod.group}", _devices(group.gpu, group.parts)
                yield who, group.gpu, wanted, group.request, pod.node, pod.devices
        for name, seat in self.solution.moved.items():
            runs = self.running[name]
            gpu = sum(runs.devices.values())
            yield f"{name}, moved", gpu, _devices(gpu, None), runs.request, seat.node, seat.devices

    def _take_all(self) -> None:
        parts: dict[Device, int] = defaultdict(int)
        whole: dict[Device, int] = defaultdict(int)
        for who, gpu, wanted, request, node, devices in self._seats():
            if len(set(devices)) != len(devices) or len(devices) != wanted:
                self._fault("devices", f"{who} on {node}: devices {list(devices)}, {wanted} different ones asked for")
            for device in devices:
                if (node, device) not in self.left:
                    self._fault("devices", f"{who}: node {node} has no device {device}")
                elif gpu >= 1000:
                    whole[node, device] += 1
                else:
                    parts[node, device] += gpu
            for resource, amount in request.items():
                self.free[node][resource] = self.free[node].get(resource, 0) - amount
        for place in dict.fromkeys([*parts, *whole]):
            self._device(place, parts[place], whole[place])
        for node, left in self.free.items():
            for resource, amount in left.items():
                if amount < 0:
                    text = f"node {node}: {-amount} more of {resource} than there is"
                    self._fault("resource", text, -amount)

    def _device(self, device: Device, part: int, whole: int) -> None:
        node, number = device
        there = self.left[device]
        if whole and there < 1000:
            self._fault("devices", f"node {node}, device {number}: {there} free, taken whole", 1000 - there)
        used = part + 1000 * whole
        if used > there:
            self._fault("devices", f"node {node}, device {number}: {used} used, {there} free", used - there)
        self.left[device] = there - used

    # -- (7): queues ---------------------------------------------------------------------------------------------

    def _queues(self) -> None:
        used: dict[str, Counter[str]] = {queue.id: Counter() for queue in self.instance.queues}
        for name, pods in self.pods.items():
            gang = self.gangs[name]
            if gang.queue is not None:
                for pod in pods:
                    group = gang.pods[pod.group]
                    used[gang.queue].update({**group.request, "gpu": group.gpu * (group.parts or 1)})
        cohorts: dict[str, list[str]] = defaultdict(list)
        quota = {queue.id: queue.quota for queue in self.instance.queues}
        for queue in self.instance.queues:
            if queue.cohort is not None:
                cohorts[queue.cohort].append(queue.id)
            self._flavours(queue)
            for resource, amount in queue.quota.items():
                if queue.cohort is None:
                    self._limit(f"queue {queue.id}", resource, used[queue.id][resource], amount)
                elif resource in queue.borrow:
                    most = amount + queue.borrow[resource]
                    self._limit(f"queue {queue.id}", resource, used[queue.id][resource], most)
        for cohort, members in cohorts.items():
            for resource in quota[members[0]]:
                if all(resource in quota[member] for member in members):
                    together = sum(used[member][resource] for member in members)
                    self._limit(f"cohort {cohort}", resource, together, sum(quota[m][resource] for m in members))

    def _flavours(self, queue: Queue) -> None:
        """Pods that ask for what flavours limit: on listed flavours, a group on one, each flavour within its quota."""
        used: dict[str | None, Counter[str]] = {entry.flavour: Counter() for entry in queue.flavours or ()}
        there: dict[tuple[str, int], set[str | None]] = defaultdict(set)
        for gang, number, flavour, asked in self._limited(queue):
            there[gang, number].add(flavour)
            if flavour in used:
                used[flavour].update(asked)
            else:
                text = f"gang {gang}, group {number}: a pod is on a node of flavour {flavour}"
                self._fault("flavour", f"{text}, which queue {queue.id} does not list")
        for (gang, number), chosen in there.items():
            if len(chosen) > 1:
                text = f"gang {gang}, group {number}: pods on nodes of {len(chosen)} flavours, at most 1"
                self._fault("flavour", text, len(chosen) - 1)
        self._flavour_quotas(queue, used)

    def _flavour_quotas(self, queue: Queue, used: Mapping[str | None, Counter[str]]) -> None:
        for entry in queue.flavours or ():
            for resource, amount in entry.quota.items():
                who = f"queue {queue.id} on flavour {entry.flavour}"
                self._limit(who, resource, used[entry.flavour][resource], amount)

    def _limited(self, queue: Queue) -> Iterator[tuple[str, int, str | None, Mapping[str, int]]]:
        """(gang, group, flavour of the node, what it asks for) of each placed pod that the queue's flavours limit."""
        limited = {resource for entry in queue.flavours or () for resource in entry.quota}
        for name in (name for name in self.pods if self.gangs[name].queue == queue.id):
            for pod in self.pods[name]:
                group = self.gangs[name].pods[pod.group]
                asked = {**group.request, "gpu": group.gpu * (group.parts or 1)}
                if any(asked.get(resource) for resource in limited):
                    yield name, pod.group, self.nodes[pod.node].flavour, asked

    def _limit(self, who: str, resource: str, used: int, most: int) -> None:
        if used > most:
            self._fault("quota", f"{who}: {used} of {resource} used, at most {most}", used - most)

    # -- objectives ----------------------------------------------------------------------------------------------

    def _values(self, objective: str) -> dict[tuple[str, int | None], Fraction]:
        """The entries of one objective, by kind and priority."""
        if objective == "weight":
            return self._weight()
        if objective == "topology":
            return self._topology()
        return {(objective, None): self._fragmentation() if objective == "fragmentation" else self._prices()}

    def _weight(self) -> dict[tuple[str, int | None], Fraction]:
        """The weight by priority: of placed gangs, and of placed pods."""
        flat = self.instance.flat or len({gang.priority for gang in self.instance.gangs}) < 2
        found: dict[tuple[str, int | None], Fraction] = defaultdict(Fraction)
        for gang in self.instance.gangs:
            priority = None if flat else gang.priority
            pods = len(self.pods.get(gang.id, ()))
            size = sum(group.count for group in gang.pods)
            found["weight", priority] += exact(gang.weight) * bool(pods)
            found["pods", priority] += exact(gang.weight) * pods / size
        return found

    def _topology(self) -> dict[tuple[str, int | None], Fraction]:
        split = domains = 0
        for gang in self.instance.gangs:
            pods = self.pods.get(gang.id, [])
            if not pods:
                continue
            if gang.preferred is not None:
                split += len(self._domains(gang.preferred, pods)) > 1
            domains += sum(len(self._domains(level, pods)) - 1 for level in (*self.instance.levels, "node"))
        return {("split", None): Fraction(split), ("domains", None): Fraction(domains)}

    def _prices(self) -> Fraction:
        ended = (self.running[name].price for name in self.solution.preempted)
        moved = (self.running[name].move_price for name in self.solution.moved)
        return _sum([*ended, *moved])

    def _fragmentation(self) -> Fraction:
        shapes = self.instance.weighted_shapes
        whole = _sum([share for _, share in shapes])
        total = Fraction(0)
        for node in self.instance.nodes:
            left = [self.left[node.id, d] for d in range(len(node.gpus))]
            for shape, share in shapes:
                if self._runs(shape, node, left):
                    lost = sum(part for part in left if part < min(shape.gpu, 1000))
                else:
                    lost = sum(left)
                total += exact(share) / whole * lost
        return total

    def _runs(self, shape: Shape, node: Node, left: Sequence[int]) -> bool:
        """Whether a pod of a shape that asks for GPU could still run on a node."""
        chosen = all(node.labels.get(label) == value for label, value in shape.selector.labels.items())
        model = not shape.selector.models or node.gpu_model in shape.selector.models
        rest = all(self.free[node.id].get(resource, 0) >= amount for resource, amount in shape.request.items())
        if shape.gpu >= 1000:
            gpu = sum(part == 1000 for part in left) >= shape.gpu // 1000
        else:
            gpu = shape.gpu > 0 and sum(part >= shape.gpu for part in left) >= (shape.parts or 1)
        return chosen and model and rest and gpu


def _devices(gpu: int, parts: int | None) -> int:
    """How many devices a pod has that asks for so many thousandths, a part of each of several where `parts` says so."""
    return gpu // 1000 if gpu >= 1000 else (parts or 1) if gpu else 0


def _sum(values: Iterable[float | None]) -> Fraction:
    return sum((exact(value) for value in values if value is not None), Fraction(0))
