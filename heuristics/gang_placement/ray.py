"""Ray's placement groups: PACK, STRICT_PACK, SPREAD and STRICT_SPREAD, bundles as pods.

Source: Ray 2.x, src/ray/raylet/scheduling/policy/bundle_scheduling_policy.cc and scorer.cc (LeastResourceScorer): the
node with the largest sum over the bundle's resources of (available - requested) / available. Bundles with GPUs come
first, larger ones before smaller ones; nodes of equal score in the order of the instance, where Ray has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from schedgap.formulations.gang_placement.instance import Gang, GangPlacementInstance, Shape
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gang_placement.cluster import Cluster, Place, Pod, domains, give_back, prefix, run_rule
from schedgap.solvers.result import NO_DEADLINE, Deadline

Strategy = Callable[[Cluster, Gang, int, Sequence[int]], "list[Pod] | None"]
"""Places the first pods of a gang on some of the nodes, the first of them where scores are equal."""


def _score(cluster: Cluster, shapes: Iterable[Shape], n: int) -> float:
    """The sum of shares that are left of what a node has free, for bundles taken together."""
    asked: dict[str, int] = {}
    for shape in shapes:
        for resource, amount in (("gpu", shape.gpu), *shape.request.items()):
            asked[resource] = asked.get(resource, 0) + amount
    total = 0.0
    for resource, amount in asked.items():
        there = cluster.gpus(n) if resource == "gpu" else cluster.free[n].get(resource, 0)
        total += (there - amount) / there if amount and there else 0.0
    return total


def _bundles(gang: Gang, number: int) -> list[int]:
    """Groups of the pods in the order in which Ray looks at them: by GPUs, then by all else, larger first."""
    pods = [k for k, count in prefix(gang, number) for _ in range(count)]
    return sorted(pods, key=lambda k: (gang.pods[k].gpu, sum(gang.pods[k].request.values())), reverse=True)


def _take_all(cluster: Cluster, gang: Gang, bundles: Sequence[int], n: int) -> list[Pod]:
    """Put as many bundles on a node as it takes, in their order."""
    taken: list[Pod] = []
    for k in bundles:
        if gang.per_node is not None and len(taken) >= gang.per_node:
            break
        devices = cluster.devices(n, gang.pods[k])
        if devices is not None:
            cluster.take(n, gang.pods[k], devices)
            taken.append(Pod(k, n, devices))
    return taken


def _strict_pack(cluster: Cluster, gang: Gang, number: int, nodes: Sequence[int]) -> list[Pod] | None:
    bundles = _bundles(gang, number)
    shapes = [gang.pods[k] for k in bundles]
    for n in sorted(nodes, key=lambda n: -_score(cluster, shapes, n)):
        pods = _take_all(cluster, gang, bundles, n)
        if len(pods) == len(bundles):
            return pods
        give_back(cluster, gang, pods)
    return None


def _pack(cluster: Cluster, gang: Gang, number: int, nodes: Sequence[int]) -> list[Pod] | None:
    """The best node for the first bundle, then all bundles that it still takes; again for the first that is left."""
    left = _bundles(gang, number)
    fresh = list(nodes)
    pods: list[Pod] = []
    while left:
        fitting = [n for n in fresh if cluster.devices(n, gang.pods[left[0]]) is not None]
        if not fitting:
            give_back(cluster, gang, pods)
            return None
        n = max(fitting, key=lambda n: _score(cluster, [gang.pods[left[0]]], n))
        taken = _take_all(cluster, gang, left, n)
        for pod in taken:
            left.remove(pod.group)
        pods += taken
        fresh.remove(n)
    return pods


def _spread(strict: bool) -> Strategy:
    def place(cluster: Cluster, gang: Gang, number: int, nodes: Sequence[int]) -> list[Pod] | None:
        """Each bundle on the best node without one; on any node where there is none, unless it is strict."""
        pods: list[Pod] = []
        for k in _bundles(gang, number):
            group = gang.pods[k]
            counts = {n: sum(pod.node == n for pod in pods) for n in nodes}
            fitting = [n for n in nodes if cluster.devices(n, group) is not None]
            fitting = [n for n in fitting if gang.per_node is None or counts[n] < gang.per_node]
            fresh = [n for n in fitting if not counts[n]]
            usable = fresh if fresh or strict else fitting
            if not usable:
                give_back(cluster, gang, pods)
                return None
            n = max(usable, key=lambda n: _score(cluster, [group], n))
            devices = cluster.devices(n, group)
            assert devices is not None
            cluster.take(n, group, devices)
            pods.append(Pod(k, n, devices))
        return pods

    return place


STRATEGIES: Mapping[str, Strategy] = {
    "STRICT_PACK": _strict_pack,
    "PACK": _pack,
    "STRICT_SPREAD": _spread(strict=True),
    "SPREAD": _spread(strict=False),
}
"""By Ray's name."""


def _inside(place: Strategy) -> Place:
    """Where a level is required, which Ray does not know: the first domain in which the rule places the gang."""

    def inside(cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
        found = (place(cluster, gang, number, nodes) for nodes in domains(cluster.instance, gang.required))
        return next((pods for pods in found if pods is not None), None)

    return inside


def _packed(cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
    """STRICT_PACK where the gang has to be on one node, PACK otherwise."""
    if gang.required == "node":
        return _strictly_packed(cluster, gang, number)
    return _inside(_pack)(cluster, gang, number)


def _strictly_packed(cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
    return _strict_pack(cluster, gang, number, range(len(cluster.instance.nodes)))


def ray_pack(instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
    """PACK, and STRICT_PACK for gangs whose required level is the node."""
    del seed
    return run_rule(instance, Cluster(instance), _packed, deadline)


def ray_strict_pack(
    instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE
) -> HeuristicRun:
    """STRICT_PACK for every gang: all pods on one node, the one with the largest share left."""
    del seed
    return run_rule(instance, Cluster(instance), _strictly_packed, deadline)


def ray_spread(instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
    """SPREAD: each pod on the best node without one of the gang, on any where there is none."""
    del seed
    return run_rule(instance, Cluster(instance), _inside(STRATEGIES["SPREAD"]), deadline)


def ray_strict_spread(
    instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE
) -> HeuristicRun:
    """STRICT_SPREAD: each pod on a node of its own, the best that is left."""
    del seed
    return run_rule(instance, Cluster(instance), _inside(STRATEGIES["STRICT_SPREAD"]), deadline)
