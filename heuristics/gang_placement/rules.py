"""Rules that choose a node for each pod: first fit, kube-scheduler's, FGD and its paper's baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field

from schedgap.formulations.gang_placement.instance import WHOLE, Gang, GangPlacementInstance, Group, Shape
from schedgap.formulations.gang_placement.scale import shares
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gang_placement.cluster import (
    Cluster,
    Pod,
    Score,
    all_in,
    give_back,
    may_hold,
    one_by_one,
    pod_by_pod,
    prefix,
    remembered,
    rule,
    run_rule,
)
from schedgap.heuristics.gang_placement.kueue import assign
from schedgap.heuristics.gang_placement.ray import STRATEGIES, inside, packed, strictly_packed
from schedgap.heuristics.gang_placement.stream import BEST_FIT, FGD, place_stream, streams
from schedgap.solvers.result import NO_DEADLINE, Deadline

Parts = Annotated[bool, Field(description="parts of a device come from the fullest device that holds them")]


def first_fit(
    instance: GangPlacementInstance, *, seed: int = 0, tight: Parts = True, deadline: Deadline = NO_DEADLINE
) -> HeuristicRun:
    """Each pod goes to the first node that takes it; no guarantee. O(pods x nodes x devices)."""
    del seed
    return run_rule(instance, Cluster(instance, tight), pod_by_pod(lambda _, __, nodes: nodes[0]), deadline)


def _best(score: Score) -> Callable[[Cluster, Group, Sequence[int]], int]:
    """The node of the highest score, the first of equal ones."""
    scored = remembered(score)
    return lambda cluster, group, nodes: max(nodes, key=lambda n: scored(cluster, group, n))


class _Allocated:
    """The mean share of a node's resources that is taken once the pod is there, as kube-scheduler scores it.

    What a node has is what is free and what runs there; the resources that count are those that the pod asks for.
    Source: Kubernetes documentation, "Resource Bin Packing" and scoring strategies of NodeResourcesFit (v1.31); without
    rounding to whole scores. Gangs all or nothing, as its coscheduling plugin does. KAI-Scheduler's node spreading is
    LeastAllocated by GPUs alone (nodeplacement/spread.go, 0582d67); its bin packing goes by GPUs, not by shares.
    """

    def __init__(self, instance: GangPlacementInstance, sign: int) -> None:
        self.sign = sign
        self.total = [{**node.free, "gpu": sum(node.gpus)} for node in instance.nodes]
        for pod in instance.running:
            mine = self.total[instance.node_index[pod.node]]
            mine["gpu"] += sum(pod.devices.values())
            for resource, amount in pod.request.items():
                mine[resource] = mine.get(resource, 0) + amount

    def __call__(self, cluster: Cluster, group: Group, n: int) -> float:
        asked = {**group.request, "gpu": group.thousandths, "pods": 0}  # the number of pods on a node has no score
        taken = []
        for resource, amount in asked.items():
            total = self.total[n].get(resource, 0)
            if amount and total:
                left = cluster.gpus(n) if resource == "gpu" else cluster.free[n].get(resource, 0)
                taken.append((total - left + amount) / total)
        return self.sign * sum(taken) / max(1, len(taken))


class _Normed:
    """What is left of processors and GPUs, and what a pod asks for, each over the most that a node has."""

    def __init__(self, instance: GangPlacementInstance) -> None:
        self.cpu = max(1, *(node.free.get("cpu", 0) for node in instance.nodes))
        self.gpu = max(1, *(sum(node.gpus) for node in instance.nodes))

    def left(self, cluster: Cluster, n: int) -> tuple[int, int]:
        return cluster.free[n].get("cpu", 0), cluster.gpus(n)

    def tight(self, cluster: Cluster, group: Group, n: int) -> float:
        """0 to 100, whole: 100 where nothing is left."""
        cpu, gpu = self.left(cluster, n)
        spare = 0.5 * ((cpu - group.request.get("cpu", 0)) / self.cpu + (gpu - group.thousandths) / self.gpu)
        return math.floor(100 * (1 - spare))

    def dot(self, cluster: Cluster, group: Group, n: int) -> float:
        """Less where the node's vector of what is left is less like the pod's: the baseline DotProd, after Tetris."""
        cpu, gpu = self.left(cluster, n)
        return -(cpu * group.request.get("cpu", 0) / self.cpu**2 + gpu * group.thousandths / self.gpu**2)


def best_fit(instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
    """The node with the least left: processors and GPUs, each over the most that a node has, count the same.

    Source: the baseline BestFit of Weng et al., USENIX ATC 2023, as their simulator scores it (best_fit_score.go of
    commit 5b6b304): whole, from 0 to 100; of equal ones the first node. Theirs have an order drawn once a run.
    """
    del seed
    if streams(instance):
        return HeuristicRun(place_stream(instance, BEST_FIT))
    return run_rule(instance, Cluster(instance), pod_by_pod(_best(_Normed(instance).tight)), deadline)


def _two_levels(cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
    """KAI-Scheduler's topology: from the preferred level up to the required one, the first that has room for all.

    A domain's room is counted with pods as large as the gang's largest. At the preferred level the first domain by name
    is taken; above it, of the domains with room, the fewest children, largest first, that hold the gang. Inside,
    nodes are packed: the one with the fewest GPUs left that takes the pod. A gang without levels is packed alone.

    Source: KAI-Scheduler, plugins/topology/job_filtering.go of summer 2025, whose maps have no order, ours names; later
    ones (commit 25c78e7) take the domain that the gang fills most, deepest level first.
    """
    instance = cluster.instance
    required, preferred = instance.depth(gang.required), instance.depth(gang.preferred)
    depth = max(required, preferred)
    packed = _best(lambda cluster, _, n: -cluster.gpus(n))
    if not depth:
        return all_in(cluster, gang, one_by_one(gang, number), range(len(instance.nodes)), packed)
    rooms = [_largest(cluster, gang, n) for n in range(len(instance.nodes))]
    while True:
        found = cluster.domains(depth)
        holding = {name: nodes for name, nodes in found.items() if _sum(rooms, nodes) >= number}
        if holding or depth <= required:
            break
        depth -= 1
    if not holding:
        return None
    nodes = holding[min(holding)]
    if depth < preferred:
        subsets = [_children(cluster, rooms, depth, nodes, number) for _, nodes in sorted(holding.items())]
        nodes = [n for child in min(subsets, key=len) for n in child]
    return all_in(cluster, gang, one_by_one(gang, number), nodes, packed)


def _largest(cluster: Cluster, gang: Gang, n: int) -> int:
    """Pods as large as the largest of each group that a node takes, at most `per_node`."""
    most = min(cluster.room(n, group) for group in gang.pods)
    return most if gang.per_node is None else min(most, gang.per_node)


def _sum(rooms: Sequence[int], nodes: Sequence[int]) -> int:
    return sum(rooms[n] for n in nodes)


def _children(cluster: Cluster, rooms: Sequence[int], depth: int, nodes: Sequence[int], number: int) -> list[list[int]]:
    """Children of a domain, largest first, until they hold all."""
    found: list[list[int]] = []
    for child in sorted(cluster.instance.by_domain(depth + 1, nodes).values(), key=lambda own: -_sum(rooms, own)):
        found.append(child)
        if sum(_sum(rooms, own) for own in found) >= number:
            break
    return found


Scored = Annotated[float, Field(gt=0, le=1, description="share of the domains that are scored for each gang")]


def kube_topology(
    instance: GangPlacementInstance, *, seed: int = 0, scored: Scored = 1.0, deadline: Deadline = NO_DEADLINE
) -> HeuristicRun:
    """kube-scheduler's choice of a domain for a gang: the one whose GPUs are allocated most once the gang is there.

    Domains of the required level come in an order that is drawn for each gang, until the given share of them, those
    that hold it alone counted, is scored. Inside a domain each pod goes to the node with the least allocated.

    Source: Kubernetes KEP-5732, phases 1 to 3; the limit on placements that are scored after kubernetes/enhancements
    pull request 6134. Our reading of the text, not their code.
    """
    rng = np.random.default_rng(seed)
    allocated = _Allocated(instance, -1)
    choose = _best(allocated)

    def place(cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
        domains = list(cluster.domains(instance.depth(gang.required)).values())
        asked, groups = list(prefix(gang, number)), one_by_one(gang, number)
        remaining = max(1, int(scored * len(domains)))
        best: tuple[float, list[Pod]] | None = None
        for at in rng.permutation(len(domains)):
            nodes = domains[at]
            pods = all_in(cluster, gang, groups, nodes, choose) if may_hold(cluster, gang, asked, nodes) else None
            if pods is None:
                continue
            total = sum(allocated.total[n]["gpu"] for n in nodes)  # what runs there counts
            share = 1 - sum(map(cluster.gpus, nodes)) / max(1, total)
            give_back(cluster, gang, pods)
            if best is None or share > best[0]:
                best = share, pods
            remaining -= 1
            if not remaining:
                break
        for pod in best[1] if best is not None else ():
            cluster.take(pod.node, gang.pods[pod.group], pod.devices)
        return None if best is None else best[1]

    return run_rule(instance, Cluster(instance), place, deadline)


def random_fit(instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
    """A node drawn from those that take the pod: the baseline Random of FGD's paper."""
    rng = np.random.default_rng(seed)
    place = pod_by_pod(lambda _, __, nodes: nodes[int(rng.integers(len(nodes)))])
    return run_rule(instance, Cluster(instance), place, deadline)


class _Fragmentation:
    """F_n over the shapes of the instance, in floats: a rule needs no more."""

    def __init__(self, instance: GangPlacementInstance) -> None:
        self.shapes: list[tuple[Shape, float]] = [
            (shape, float(share)) for (shape, _), share in zip(instance.weighted_shapes, shares(instance), strict=True)
        ]

    def of(self, cluster: Cluster, n: int) -> float:
        """What is lost on a node, over all shapes."""
        left = cluster.left[n]
        total = 0.0
        for shape, share in self.shapes:
            runs = shape.gpu and cluster.most_pods(n, shape)
            least = min(shape.gpu, WHOLE)
            total += share * sum(part for part in left if not runs or part < least)
        return total

    def __call__(self, cluster: Cluster, group: Group, n: int) -> float:
        devices = cluster.devices(n, group)
        assert devices is not None
        return self.score(cluster, group, n, devices)

    def score(self, cluster: Cluster, shape: Shape, n: int, devices: Sequence[int]) -> float:
        """0 to 100: less than 50 where more is lost than before."""
        lost = self.after(cluster, shape, n, devices) - self.of(cluster, n)
        return math.floor(100 / (1 + math.exp(lost / WHOLE)))

    def after(self, cluster: Cluster, shape: Shape, n: int, devices: Sequence[int]) -> float:
        """What is lost once a pod has these devices."""
        cluster.take(n, shape, devices)
        lost = self.of(cluster, n)
        cluster.take(n, shape, devices, -1)
        return lost


def fgd(instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
    """Fragmentation gradient descent: the node whose fragmentation grows least.

    Source: Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent,
    USENIX ATC 2023, Algorithm 1. The device of a part is the one with which it grows least. Scores are whole numbers
    from 0 to 100, as in their simulator (commit 5b6b304, fgd_score.go); of equal ones the first.
    """
    del seed
    if streams(instance):
        return HeuristicRun(place_stream(instance, FGD))
    cluster, lost = Cluster(instance), _Fragmentation(instance)
    cluster.part = lambda n, shape, fitting: max(fitting, key=lambda d: lost.score(cluster, shape, n, [d]))
    return run_rule(instance, cluster, pod_by_pod(_best(lost)), deadline)


RULES: Mapping[str, Callable[..., HeuristicRun]] = {
    "kueue-best-fit": rule(lambda _: partial(assign, "best")),
    "kueue-least-free": rule(lambda _: partial(assign, "least")),
    "kueue-most-free": rule(lambda _: partial(assign, "most")),
    "kube-most-allocated": rule(lambda instance: pod_by_pod(_best(_Allocated(instance, 1)))),
    "kube-least-allocated": rule(lambda instance: pod_by_pod(_best(_Allocated(instance, -1)))),
    "kube-topology": kube_topology,
    "ray-pack": rule(lambda _: packed),
    "ray-strict-pack": rule(lambda _: strictly_packed),
    "ray-spread": rule(lambda _: inside(STRATEGIES["SPREAD"])),
    "ray-strict-spread": rule(lambda _: inside(STRATEGIES["STRICT_SPREAD"])),
    "fgd": fgd,
    "best-fit": best_fit,
    "dot-product": rule(lambda instance: pod_by_pod(_best(_Normed(instance).dot))),
    "kai-two-level": rule(lambda _: _two_levels),
    "random-fit": random_fit,
    "first-fit": first_fit,
}
for _name, _rule in RULES.items():
    _rule.__name__ = _name.replace("-", "_")  # by which a run tells who made its start
