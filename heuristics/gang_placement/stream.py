"""Pods that come one by one on a flat cluster, as FGD's experiments have them: rules that score nodes, compiled.

A node's score for a kind of pod changes only where the node does, so a pod looks again at the nodes that changed since
its kind came last. The plain rules say what the scores are; a test compares the decisions.
"""

from __future__ import annotations

import math

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_part
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance, Selector, Shape
from schedgap.formulations.gang_placement.scale import shares
from schedgap.heuristics.gang_placement.cluster import Cluster, Pod, by_turn, seats

FGD, BEST_FIT = 0, 1
WORTH = 2_000_000
"""Pods times nodes from which the compiled way is taken."""


def streams(instance: GangPlacementInstance) -> bool:
    """Whether gangs are single pods without levels, limits, selectors or choices, and many enough."""
    if instance.queues or len(instance.gangs) * len(instance.nodes) < WORTH:
        return False
    anywhere = Selector()
    shapes = [shape for shape, _ in instance.weighted_shapes]
    return all(gang.size == 1 and gang.required is None and gang.preferred is None for gang in instance.gangs) and all(
        shape.selector == anywhere and shape.parts is None
        for shape in (*shapes, *(gang.pods[0] for gang in instance.gangs))
    )


def place_stream(instance: GangPlacementInstance, rule: int) -> Solution:
    """The decision of a rule; gangs by priority, then arrival, then position.

    Parameters
    ----------
    rule : FGD or BEST_FIT
    """
    gangs = by_turn(instance)
    shapes = [shape for shape, _ in instance.weighted_shapes]
    names = sorted({name for shape in (*shapes, *(gang.pods[0] for gang in gangs)) for name in shape.request} - {"cpu"})
    names = ["cpu", *names]

    def row(shape: Shape) -> tuple[int, ...]:
        return (shape.gpu, *(shape.request.get(name, 0) for name in names))

    widest = max(1, *(len(node.gpus) for node in instance.nodes))
    left = np.zeros((len(instance.nodes), widest), dtype=np.int64)
    for n, node in enumerate(instance.nodes):
        left[n, : len(node.gpus)] = node.gpus
    free = np.array([[node.free.get(name, 0) for name in names] for node in instance.nodes], dtype=np.int64)
    kinds: dict[tuple[int, ...], int] = {}
    order = np.array([kinds.setdefault(row(gang.pods[0]), len(kinds)) for gang in gangs], dtype=np.int64)
    lost = np.array([row(shape) for shape in shapes])
    share = np.array([float(one) for one in shares(instance)])
    norm = np.array([max(1, int(free[:, 0].max())), max(1, int(left.sum(axis=1).max()))], dtype=np.float64)
    where, device = _fill(left, free, np.array(list(kinds)), order, lost, share, norm, rule == FGD)
    placement = {}
    cluster = Cluster(instance)
    for gang, n, d in zip(gangs, where.tolist(), device.tolist(), strict=True):
        if n < 0:
            continue
        group = gang.pods[0]
        devices = (d,) if 0 < group.gpu < WHOLE else cluster.devices(n, group)
        assert devices is not None  # whole devices are taken in their order
        cluster.take(n, group, devices)
        placement[gang.id] = seats(instance, [Pod(0, n, devices)])
    return {"placement": placement}


@njit_part
def _runs(left: Ints, free: Ints, kind: Ints) -> bool:
    """Whether a pod of the kind (GPU, then other resources) fits."""
    for r in range(len(free)):
        if free[r] < kind[r + 1]:
            return False
    if kind[0] >= WHOLE:
        whole = 0
        for part in left:
            whole += part == WHOLE
        return bool(whole >= kind[0] // WHOLE)
    if kind[0] == 0:
        return True
    return bool(left.max() >= kind[0])


@njit_part
def _lost_of(left: Ints, free: Ints, shapes: Ints, share: Floats) -> float:
    """What is lost on a node, over all shapes."""
    total = 0.0
    for s in range(len(share)):
        runs = shapes[s, 0] > 0 and _runs(left, free, shapes[s])
        least = min(shapes[s, 0], WHOLE)
        lost = 0
        for part in left:
            if not runs or part < least:
                lost += part
        total += share[s] * lost
    return total


@njit_part
def _take(left: Ints, free: Ints, kind: Ints, device: int) -> None:
    free -= kind[1:]
    if 0 < kind[0] < WHOLE:
        left[device] -= kind[0]
        return
    wanted = kind[0] // WHOLE
    for d in range(len(left)):
        if wanted and left[d] == WHOLE:
            left[d] = 0
            wanted -= 1


@njit_part
def _score(
    left: Ints, free: Ints, kind: Ints, shapes: Ints, share: Floats, norm: Floats, fragments: bool
) -> tuple[float, int]:
    """(score, device of a part) of a node that takes the pod."""
    part = 0 < kind[0] < WHOLE
    if not fragments:
        tight = -1
        for d in range(len(left)):
            if part and left[d] >= kind[0] and (tight < 0 or left[d] < left[tight]):
                tight = d
        spare = 0.5 * ((free[0] - kind[1]) / norm[0] + (left.sum() - kind[0]) / norm[1])
        return np.floor(100 * (1 - spare)), tight
    before = _lost_of(left, free, shapes, share)
    best, choice = -np.inf, -1
    for d in range(len(left) if part else 1):
        if part and left[d] < kind[0]:
            continue
        there, rest = left.copy(), free.copy()
        _take(there, rest, kind, d)
        gain = np.floor(100 / (1 + math.exp(min(700.0, (_lost_of(there, rest, shapes, share) - before) / WHOLE))))
        if gain > best:
            best, choice = gain, d
    return best, choice


@njit_cached
def _fill(
    left: Ints,
    free: Ints,
    kinds: Ints,
    order: Ints,
    shapes: Ints,
    share: Floats,
    norm: Floats,
    fragments: bool,
) -> tuple[Ints, Ints]:
    """(node, device) of each pod in order; -1 where it is not placed."""
    nodes = len(left)
    score = np.zeros((len(kinds), nodes))
    choice = np.zeros((len(kinds), nodes), dtype=np.int64)
    seen = np.full((len(kinds), nodes), -1, dtype=np.int64)
    version = np.zeros(nodes, dtype=np.int64)
    where, device = np.full(len(order), -1, dtype=np.int64), np.full(len(order), -1, dtype=np.int64)
    for p in range(len(order)):
        k = order[p]
        best, at = -np.inf, -1
        for n in range(nodes):
            if seen[k, n] != version[n]:
                seen[k, n] = version[n]
                score[k, n] = -np.inf
                if _runs(left[n], free[n], kinds[k]):
                    found, d = _score(left[n], free[n], kinds[k], shapes, share, norm, fragments)
                    score[k, n], choice[k, n] = found, d
            if score[k, n] > best:
                best, at = score[k, n], n
        if at >= 0:
            _take(left[at], free[at], kinds[k], choice[k, at])
            version[at] += 1
            where[p], device[p] = at, choice[k, at]
    return where, device
