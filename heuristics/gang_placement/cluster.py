"""The cluster as a rule sees it: what is left, seats taken and given back."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from schedgap.formulations.common.instance import Json, Solution, once_per_instance
from schedgap.formulations.gang_placement.instance import (
    MOST_PODS,
    WHOLE,
    Domain,
    Gang,
    GangPlacementInstance,
    Group,
    Queue,
    Shape,
)
from schedgap.formulations.gang_placement.scale import held_by
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers.result import NO_DEADLINE, Deadline


class Pod(NamedTuple):
    """A pod that is placed: its group's number, the node's position, its devices."""

    group: int
    node: int
    devices: tuple[int, ...]


class Cluster:
    """What is left of the nodes and of the queues.

    Parameters
    ----------
    tight : a part of a device comes from the device with the least left that holds it; with the most left otherwise

    Attributes
    ----------
    part : chooses the device of a part among those that hold it, where that is not told by `tight`; one after another
        for parts of several devices
    flavour : the flavour on whose nodes the pods of the present gang go that its queue binds to flavours; None where it
        binds none
    inside : the domain in which the pods of the present gang go; the whole cluster where it is ``()``
    left : thousandths of each device, by node
    free : other resources, by node
    version : changes so far, by node
    """

    def __init__(self, instance: GangPlacementInstance, tight: bool = True) -> None:
        self.instance = instance
        self.tight = tight
        self.part: Callable[[int, Shape, Sequence[int]], int] | None = None
        self.left = [list(node.gpus) for node in instance.nodes]
        self.free = [dict(node.free) for node in instance.nodes]
        self.limits = list(instance.limits())
        self.queues = {queue.id: queue for queue in instance.queues}
        self.used: Counter[tuple[str | None, str | None, str]] = Counter()
        self.flavour: str | None = None
        self.inside: Domain = ()
        self._queue: Queue | None = None
        self.version = [0] * len(instance.nodes)
        self._kinds = _kinds(instance)
        self._rooms: dict[int, tuple[list[int], list[int]]] = {}
        self._domains: dict[int, dict[Domain, list[int]]] = {}
        self._children: dict[int, dict[Domain, list[Domain]]] = {}

    def kind(self, shape: Shape) -> int | None:
        """A number that groups of the instance's gangs share where they ask for the same; None of other shapes."""
        return self._kinds.get(id(shape))

    def domains(self, depth: int) -> dict[Domain, list[int]]:
        """Nodes by their domain at a depth, in their order."""
        if depth not in self._domains:
            self._domains[depth] = self.instance.by_domain(depth, range(len(self.left)))
        return self._domains[depth]

    def children(self, domain: Domain) -> list[Domain]:
        """The domains of the next level in a domain."""
        depth = len(domain) + 1
        if depth not in self._children:
            self._children[depth] = defaultdict(list)
            for path in self.domains(depth):
                self._children[depth][path[:-1]].append(path)
        return self._children[depth][domain]

    def gpus(self, n: int) -> int:
        """Thousandths that are left of a node."""
        return sum(self.left[n])

    def opened(self, n: int, shape: Shape) -> bool:
        """Whether a pod of the present gang may be on the node by its flavour and domain."""
        if self.inside and self.instance.domain(n, len(self.inside)) != self.inside:
            return False
        bound = self._queue is not None and self.flavour is not None and self._queue.binds(shape)
        return not bound or self.instance.nodes[n].flavour == self.flavour

    def usable(self, n: int, shape: Shape) -> list[int] | None:
        """The whole devices that a pod would get on a node, or those that hold its part; None where it does not fit."""
        if not self.opened(n, shape):
            return None
        if any(self.free[n].get(resource, 0) < amount for resource, amount in shape.request.items()):
            return None
        if not shape.selector.takes(self.instance.nodes[n]):
            return None
        left = self.left[n]
        if shape.gpu >= WHOLE:
            whole = [d for d, part in enumerate(left) if part == WHOLE][: shape.devices]
            return whole if len(whole) == shape.devices else None
        if not shape.gpu:
            return []
        holding = [d for d, part in enumerate(left) if part >= shape.gpu]
        return holding if len(holding) >= shape.pieces else None

    def devices(self, n: int, shape: Shape) -> tuple[int, ...] | None:
        """The devices that a pod of the shape would get on a node; None where it does not fit."""
        usable = self.usable(n, shape)
        if usable is None:
            return None
        if not 0 < shape.gpu < WHOLE:
            return tuple(usable)
        chosen: list[int] = []
        for _ in range(shape.pieces):
            rest = [d for d in usable if d not in chosen]
            if self.part is not None:
                chosen.append(self.part(n, shape, rest))
            else:
                chosen.append((min if self.tight else max)(rest, key=lambda d: self.left[n][d]))
        return tuple(chosen)

    def take(self, n: int, shape: Shape, devices: Sequence[int], sign: int = 1) -> None:
        """Take the seat, or give it back with `sign` -1."""
        self.version[n] += 1
        for device in devices:
            self.left[n][device] -= sign * min(shape.gpu, WHOLE)
        for resource, amount in shape.request.items():
            if amount:
                self.free[n][resource] -= sign * amount

    def most_pods(self, n: int, shape: Shape) -> int:
        """How many pods of a shape the node takes."""
        kind = self.kind(shape)
        if kind is None:
            return self._most_pods(n, shape)
        if kind not in self._rooms:
            self._rooms[kind] = [0] * len(self.left), [-1] * len(self.left)
        rooms, versions = self._rooms[kind]
        if versions[n] != self.version[n]:
            rooms[n], versions[n] = self._most_pods(n, shape), self.version[n]
        return rooms[n]

    def _most_pods(self, n: int, shape: Shape) -> int:
        if not shape.selector.takes(self.instance.nodes[n]):
            return 0
        most = [self.free[n].get(resource, 0) // amount for resource, amount in shape.request.items() if amount]
        if shape.gpu:
            most.append(held_by(self.left[n], shape))
        return min(most, default=MOST_PODS)

    def room(self, n: int, group: Group) -> int:
        """How many pods of a group of the present gang the node takes."""
        return self.most_pods(n, group) if self.opened(n, group) else 0

    # -- queues --------------------------------------------------------------------------------------------------

    def flavours(self, gang: Gang) -> Iterator[str | None]:
        """Begin with a gang: each flavour that its queue lists, in its order, or None where it lists none.

        Until the next one, :meth:`usable` and :meth:`room` know only its nodes for the pods that the queue binds.
        """
        self._queue = self.queues.get(gang.queue or "")
        listed = self._queue.flavours if self._queue is not None else None
        for self.flavour in tuple(entry.flavour for entry in listed or ()) or (None,):
            yield self.flavour

    def admits(self, gang: Gang, number: int) -> bool:
        """Whether the gang's queue has quota for its first pods, on the present flavour."""
        asked = _asked(gang, number)
        return all(
            sum(self.used[queue, limit.flavour, limit.resource] for queue in limit.queues) + asked[limit.resource]
            <= limit.most
            for limit in self.limits
            if gang.queue in limit.queues and limit.flavour in (None, self.flavour)
        )

    def charge(self, gang: Gang, number: int) -> None:
        """What was placed counts."""
        for resource, amount in _asked(gang, number).items():
            for flavour in dict.fromkeys((None, self.flavour)):
                self.used[gang.queue, flavour, resource] += amount


@once_per_instance
def _kinds(instance: GangPlacementInstance) -> Mapping[int, int]:
    """A number for each group of pods, by its identity, that groups share where they ask for the same."""
    shapes: dict[Shape, int] = {}
    groups = (group for gang in instance.gangs for group in gang.pods)
    return {id(group): shapes.setdefault(group.shape, len(shapes)) for group in groups}


def _asked(gang: Gang, number: int) -> Counter[str]:
    """What the first pods of a gang ask for."""
    asked: Counter[str] = Counter()
    for k, count in prefix(gang, number):
        group = gang.pods[k]
        for resource, amount in (("gpu", group.thousandths), *group.request.items()):
            asked[resource] += amount * count
    return asked


def prefix(gang: Gang, number: int) -> Iterator[tuple[int, int]]:
    """(group, pods) of the first pods of a gang, groups in their order."""
    for k, group in enumerate(gang.pods):
        count = min(group.count, number)
        if count:
            yield k, count
        number -= count


def one_by_one(gang: Gang, number: int) -> list[int]:
    """The groups of the first pods, an entry a pod."""
    return [k for k, count in prefix(gang, number) for _ in range(count)]


Place = Callable[[Cluster, Gang, int], "list[Pod] | None"]
"""Puts the first pods of a gang somewhere and leaves them taken, or takes nothing and returns None."""
Choose = Callable[[Cluster, Group, Sequence[int]], "int | None"]
"""The node, of those that take the pod."""
Score = Callable[[Cluster, Group, int], float]
"""How good a node is for a pod; it reads nothing but the pod and what is left of the node."""
MOST_SCORES = 1_000_000
"""Scores that are remembered at a time."""


def remembered(score: Score) -> Score:
    """The same score of one run, made again for a node only where it has changed."""
    scores: dict[tuple[int, int], tuple[int, float]] = {}

    def scored(cluster: Cluster, group: Group, n: int) -> float:
        kind = cluster.kind(group)
        if kind is None:
            return score(cluster, group, n)
        version, value = scores.get((kind, n), (-1, 0.0))
        if version != cluster.version[n]:
            value = score(cluster, group, n)
            if len(scores) >= MOST_SCORES:
                scores.clear()
            scores[kind, n] = cluster.version[n], value
        return value

    return scored


def by_turn(instance: GangPlacementInstance) -> list[Gang]:
    """Gangs by priority, then arrival, then position."""
    return sorted(instance.gangs, key=lambda gang: (-gang.priority, gang.arrival))


def seats(instance: GangPlacementInstance, pods: Sequence[Pod]) -> Json:
    """Placed pods of a gang as a solution has them."""
    return [{"group": pod.group, "node": instance.nodes[pod.node].id, "devices": list(pod.devices)} for pod in pods]


def rule(place_on: Callable[[GangPlacementInstance], Place]) -> Callable[..., HeuristicRun]:
    """A rule without randomness and settings, by the way in which it places a gang."""

    def run(instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
        del seed
        return run_rule(instance, Cluster(instance), place_on(instance), deadline)

    return run


def run_rule(instance: GangPlacementInstance, cluster: Cluster, place: Place, deadline: Deadline) -> HeuristicRun:
    """Place gangs in their turns: whole, else with their fewest pods, else not.

    A gang whose queue has no quota left for it is passed over. Where the queue lists flavours, they are tried in their
    order, and all pods of the gang that they bind go to one. Groups that are in the same subgroups are placed like a
    gang of their own that requires the deepest level of these, one after another, in the first domain of the gang's
    required level that holds all.
    """
    placement = {}
    stopped = {}
    for gang in by_turn(instance):
        if deadline.passed:
            stopped = {"stopped": "time limit"}
            break
        for number, _ in ((n, f) for n in dict.fromkeys((gang.size, gang.fewest)) for f in cluster.flavours(gang)):
            pods = _place_whole(cluster, gang, number, place) if cluster.admits(gang, number) else None
            if pods is not None:
                cluster.charge(gang, number)
                placement[gang.id] = seats(instance, pods)
                break
    solution: Solution = {"placement": placement}
    return HeuristicRun(solution, info=stopped)


def _place_whole(cluster: Cluster, gang: Gang, number: int, place: Place) -> list[Pod] | None:
    """Place the first pods of a gang with its subgroups."""
    if gang.subgroups is None:
        return place(cluster, gang, number)
    asked = list(prefix(gang, number))
    for domain, nodes in cluster.domains(cluster.instance.depth(gang.required)).items():
        if may_hold(cluster, gang, asked, nodes):
            pods = _place_subgroups(cluster, gang, asked, place, domain)
            if pods is not None:
                return pods
    return None


def _place_subgroups(
    cluster: Cluster, gang: Gang, asked: Sequence[tuple[int, int]], place: Place, around: Domain
) -> list[Pod] | None:
    """Place pods of each group in a domain: groups of the same subgroups together, the first choose these' domains."""
    levels = {subgroup.id: subgroup.required for subgroup in gang.subgroups or ()}
    blocks: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for k, count in asked:
        blocks.setdefault(tuple(sorted(gang.pods[k].subgroups or ())), []).append((k, count))
    chosen: dict[str, Domain] = {}
    pods: list[Pod] = []
    for names, members in blocks.items():
        fixed = [around, *(chosen[name] for name in names if name in chosen)]
        cluster.inside = max(fixed, key=len)
        made = None
        if all(cluster.inside[: len(domain)] == domain for domain in fixed):
            deepest = max((gang.required, *(levels[name] for name in names)), key=cluster.instance.depth)
            groups = tuple(gang.pods[k] for k, _ in members)
            block = gang.model_copy(update={"pods": groups, "required": deepest, "least": None, "subgroups": None})
            made = place(cluster, block, sum(count for _, count in members))
        cluster.inside = ()
        pods += [pod._replace(group=members[pod.group][0]) for pod in made or ()]
        used = Counter(pod.node for pod in pods)
        if made is None or (gang.per_node is not None and max(used.values()) > gang.per_node):
            give_back(cluster, gang, pods)
            return None
        for name in names:
            chosen.setdefault(name, cluster.instance.domain(made[0].node, cluster.instance.depth(levels[name])))
    return pods


def pod_by_pod(choose: Choose) -> Place:
    """A rule that chooses a node for each pod in turn; of a required level, in the first domain that holds all."""

    def place(cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
        groups = one_by_one(gang, number)
        return in_first_domain(cluster, gang, number, lambda nodes: all_in(cluster, gang, groups, nodes, choose))

    return place


def in_first_domain(
    cluster: Cluster, gang: Gang, number: int, place: Callable[[Sequence[int]], list[Pod] | None]
) -> list[Pod] | None:
    """Place a gang's first pods in the first domain of its required level that takes them, on all nodes without one."""
    domains = cluster.domains(cluster.instance.depth(gang.required))
    asked = list(prefix(gang, number))
    holding = (nodes for nodes in domains.values() if may_hold(cluster, gang, asked, nodes))
    return next((pods for pods in map(place, holding) if pods is not None), None)


def may_hold(cluster: Cluster, gang: Gang, asked: Sequence[tuple[int, int]], nodes: Sequence[int]) -> bool:
    """Whether nodes hold the pods of each group alone, without which no rule places them there."""
    for k, count in asked:
        most = gang.per_node or count
        for n in nodes:
            count -= min(most, cluster.room(n, gang.pods[k]))
            if count <= 0:
                break
        if count > 0:
            return False
    return True


def all_in(
    cluster: Cluster, gang: Gang, groups: Iterable[int], nodes: Sequence[int], choose: Choose
) -> list[Pod] | None:
    """A pod of each of the groups on some of the nodes, one after another; None where one finds no place."""
    pods: list[Pod] = []
    there: Counter[int] = Counter()
    fitting: dict[int, list[int]] = {}  # nodes that take a pod of each group beside those placed
    for k in groups:
        group = gang.pods[k]
        if k not in fitting:
            room = (n for n in nodes if gang.per_node is None or there[n] < gang.per_node)
            fitting[k] = [n for n in room if cluster.room(n, group)]
        chosen = choose(cluster, group, fitting[k]) if fitting[k] else None
        devices = None if chosen is None else cluster.devices(chosen, group)
        if chosen is None or devices is None:
            give_back(cluster, gang, pods)
            return None
        cluster.take(chosen, group, devices)
        there[chosen] += 1
        pods.append(Pod(k, chosen, devices))
        for other, own in fitting.items():
            if there[chosen] == gang.per_node or not cluster.room(chosen, gang.pods[other]):
                fitting[other] = [n for n in own if n != chosen]
    return pods


def give_back(cluster: Cluster, gang: Gang, pods: Sequence[Pod]) -> None:
    """Undo what was taken for a gang."""
    for pod in pods:
        cluster.take(pod.node, gang.pods[pod.group], pod.devices, -1)
