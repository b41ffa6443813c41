"""Ray's placement groups: PACK, STRICT_PACK, SPREAD and STRICT_SPREAD, bundles as pods.

Source: Ray 2.60.0, whose decisions it was compared with; src/ray/raylet/scheduling/policy/bundle_scheduling_policy.cc
(e.g. commit e3b4edc) and scorer.cc (32452f9, LeastResourceScorer): the
node with the largest sum over the bundle's resources of (available - requested) / available. Bundles with GPUs come
first, larger ones before smaller ones; nodes of equal score in the order of the instance, where Ray has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from schedgap.formulations.gang_placement.instance import Gang, Group, Shape
from schedgap.heuristics.gang_placement.cluster import (
    Cluster,
    Place,
    Pod,
    all_in,
    give_back,
    in_first_domain,
    one_by_one,
)

Strategy = Callable[[Cluster, Gang, int, Sequence[int]], "list[Pod] | None"]
"""Places the first pods of a gang on some of the nodes, the first of them where scores are equal."""


def _together(shapes: Iterable[Shape]) -> dict[str, int]:
    """What bundles ask for together."""
    asked: dict[str, int] = {}
    for shape in shapes:
        for resource, amount in (("gpu", shape.thousandths), *shape.request.items()):
            asked[resource] = asked.get(resource, 0) + amount
    return asked


def _score(cluster: Cluster, asked: Mapping[str, int], n: int) -> float:
    """The sum of shares that are left of what a node has free."""
    total = 0.0
    for resource, amount in asked.items():
        there = cluster.gpus(n) if resource == "gpu" else cluster.free[n].get(resource, 0)
        total += (there - amount) / there if amount and there else 0.0
    return total


def _bundles(gang: Gang, number: int) -> list[int]:
    """Groups of the pods in the order in which Ray looks at them: by GPUs, then by all else, larger first."""
    return sorted(
        one_by_one(gang, number),
        key=lambda k: (gang.pods[k].thousandths, sum(gang.pods[k].request.values())),
        reverse=True,
    )


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
    asked = _together(gang.pods[k] for k in bundles)
    counts = Counter(bundles).items()
    holding = [n for n in nodes if all(cluster.room(n, gang.pods[k]) >= count for k, count in counts)]
    for n in sorted(holding, key=lambda n: -_score(cluster, asked, n)):
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
        fitting = [n for n in fresh if cluster.room(n, gang.pods[left[0]])]
        if not fitting:
            give_back(cluster, gang, pods)
            return None
        asked = _together([gang.pods[left[0]]])
        n = max(fitting, key=lambda n: _score(cluster, asked, n))
        taken = _take_all(cluster, gang, left, n)
        for pod in taken:
            left.remove(pod.group)
        pods += taken
        fresh.remove(n)
    return pods


def _spread(strict: bool) -> Strategy:
    def place(cluster: Cluster, gang: Gang, number: int, nodes: Sequence[int]) -> list[Pod] | None:
        """Each bundle on the best node without one; on any node where there is none, unless it is strict."""
        taken: set[int | None] = set()
        asked: dict[int, dict[str, int]] = {}

        def choose(cluster: Cluster, group: Group, fitting: Sequence[int]) -> int | None:
            fresh = [n for n in fitting if n not in taken]
            usable = fresh if fresh or strict else fitting
            wanted = asked.setdefault(id(group), _together([group]))
            chosen = max(usable, key=lambda n: _score(cluster, wanted, n), default=None)
            taken.add(chosen)
            return chosen

        return all_in(cluster, gang, _bundles(gang, number), nodes, choose)

    return place


STRATEGIES: Mapping[str, Strategy] = {
    "STRICT_PACK": _strict_pack,
    "PACK": _pack,
    "STRICT_SPREAD": _spread(strict=True),
    "SPREAD": _spread(strict=False),
}
"""Strategies by Ray's name."""


def inside(place: Strategy) -> Place:
    """Where a level is required, which Ray does not know: the first domain in which the rule places the gang."""
    return lambda cluster, gang, number: in_first_domain(
        cluster, gang, number, lambda nodes: place(cluster, gang, number, nodes)
    )


def packed(cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
    """STRICT_PACK where the gang has to be on one node, PACK otherwise."""
    if gang.required == "node":
        return strictly_packed(cluster, gang, number)
    return inside(_pack)(cluster, gang, number)


def strictly_packed(cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
    """STRICT_PACK for every gang: all pods on the one node with the largest share left."""
    return _strict_pack(cluster, gang, number, range(len(cluster.instance.nodes)))
