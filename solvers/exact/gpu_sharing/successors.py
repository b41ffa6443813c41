"""The successors of states in gpu-sharing's dynamic program, compiled."""

from __future__ import annotations

import math

import numpy as np

from schedgap.formulations.common.compiled import njit_cached
from schedgap.solvers.exact.gpu_sharing.states import (
    COST,
    DONE,
    FREE,
    HELD_BACK,
    LEAST,
    LEVEL,
    LOST,
    MANY,
    NEAR,
    RUNNING,
    TRIED,
    WAITING,
    Best,
    Levels,
    Node,
    Potentials,
    States,
    Tables,
    empty_levels,
    empty_node,
    ends,
    keep,
    least_cost,
    load,
    prune,
    room,
    slowed,
)


@njit_cached
def expand(
    slot: int, first: int, last: int, stop: int, count: int, limit: float, node: Node, levels: Levels, here: States,
    after: States, tables: Tables, potentials: Potentials, found: Best,
) -> int:  # pragma: no cover - compiled  # fmt: skip
    """Successors after `slot` of the states `first` to `last` - 1 before it, by the first `count` potentials.

    Returns
    -------
    The state to go on with, from node and levels as they are, after `stop` levels; `last` where all is done.
    """
    order = np.argsort(-tables.gpus)  # large gangs first: what they do is soon too much
    for i in range(first, last):
        if node.counts[LEVEL] < 0:
            if here.dead[i]:
                continue
            load(i, here, node, tables)
            many = 0
            for j in order:
                if node.status[j] == WAITING and tables.arrival[j] <= slot:
                    levels.waiting[many] = j
                    many += 1
            node.counts[MANY], node.counts[LEVEL] = many, 0
            levels.of_partner[0], levels.place[0], levels.choice[0], levels.value[0] = False, 0, 0, here.bound[i]
        _choose(slot, stop, here.potential[i], count, limit, node, levels, after, tables, potentials, found)
        if node.counts[LEVEL] >= 0:
            return i
    return last


@njit_cached
def _choose(
    slot: int, stop: int, p: int, count: int, limit: float, node: Node, levels: Levels, after: States, tables: Tables,
    potentials: Potentials, found: Best,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """All ways to start some of the waiting jobs: in turn each waits, or starts with some steps and shared GPUs.

    Depth first without recursion (numba's cache of recursive code crashes). After `stop` levels, or when states were
    lost, it returns with the level that it would go on with.
    """
    status, alone, shared, counts = node.status, node.alone, node.shared, node.counts
    first, wait = tables.first, potentials.least_wait
    waiting, of_partner, place, partner, choice, need, value = levels
    n, many = len(status), counts[MANY]
    earliest, latest = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    d = counts[LEVEL]
    while d >= 0 and found.sums[TRIED] < stop and not found.sums[LOST]:
        w = place[d]
        found.sums[TRIED] += 1
        if not of_partner[d]:
            if w == many:
                _advance(slot, node, tables, potentials, count, p, limit, after, found)
                d -= 1
                continue
            if choice[d] == 0 and d > 0 and of_partner[d - 1]:
                # A job has just started: what that does to those beside it may already be too much.
                if not ends(slot - 1, node, tables, earliest, latest):
                    d -= 1
                    continue
                bound = least_cost(p, slot - 1, node, earliest, latest, tables, potentials)
                for v in range(w):
                    if status[waiting[v]] == WAITING:
                        bound += wait[p, waiting[v], slot + 1] - wait[p, waiting[v], slot]
                value[d] = max(bound, value[d])
                if bound > limit:
                    d -= 1
                    continue
            j = waiting[w]
            status[j] = WAITING
            c = choice[d]
            choice[d] += 1
            q = first[j] + c - 1
            if q == first[j + 1]:
                d -= 1
            elif c == 0:
                then = value[d] + wait[p, j, slot + 1] - wait[p, j, slot]
                if then <= limit:
                    d += 1
                    of_partner[d], place[d], choice[d], value[d] = False, w + 1, 0, then
            else:
                then = value[d] + potentials.least_start[p, q, slot] - wait[p, j, slot]
                if then <= limit:
                    status[j], alone[j] = RUNNING, 0
                    node.kind[j], node.start[j], node.left[j] = q, slot, tables.work[q]
                    d += 1
                    of_partner[d], place[d], choice[d], value[d] = True, w, 0, then
                    partner[d], need[d] = 0, tables.gpus[j]
            continue
        j, k = waiting[w], partner[d]
        if choice[d] == 0:
            possible, then_partner = counts[FREE], n
            for other in range(n - 1, k - 1, -1):
                runs = other != j and status[other] == RUNNING
                if runs and alone[other] > 0 and tables.fits[node.kind[j], node.kind[other]]:
                    possible += alone[other]
                    then_partner = other
            k = partner[d] = n if need[d] == 0 else then_partner
            stopped = possible < need[d]
            if k == n and (counts[HELD_BACK] >> j) & 1:
                beside = False
                for other in range(n):
                    beside |= node.before[other] and status[other] == RUNNING and shared[j, other] > 0
                stopped |= not beside
            if stopped:
                d -= 1
                continue
        if k == n:
            if choice[d] == 0:
                choice[d] = 1
                counts[FREE] -= need[d]
                alone[j] = need[d]
                d += 1
                of_partner[d], place[d], choice[d], value[d] = False, w + 1, 0, value[d - 1]
            else:
                counts[FREE] += need[d]
                alone[j] = 0
                d -= 1
            continue
        o = choice[d]
        choice[d] += 1
        if o > 0:
            alone[k] += o - 1
        # They share at least until one of them could end alone.
        together = slot - 1 + max(1, math.ceil(min(node.left[j], node.left[k]) - NEAR))
        q, r = node.kind[j], node.kind[k]
        costs = potentials.pair[p, q, r, min(tables.last, together)] - potentials.pair[p, q, r, slot - 1]
        then = value[d] + o * costs
        if o > need[d] or o > alone[k] or then > limit:
            shared[j, k] = shared[k, j] = 0
            d -= 1
            continue
        shared[j, k] = shared[k, j] = o
        alone[k] -= o
        d += 1
        of_partner[d], place[d], choice[d], value[d] = True, w, 0, then
        partner[d], need[d] = k + 1, need[d - 1] - o
    counts[LEVEL] = d


@njit_cached
def _advance(
    slot: int, node: Node, tables: Tables, potentials: Potentials, count: int, first: int, limit: float,
    after: States, found: Best,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """Let the running jobs run for a slot, and keep the state that follows if it may be part of something better."""
    status, left, counts = node.status, node.left, node.counts
    n = len(status)
    before, cost = left.copy(), counts[COST]
    held_back = running = done = ended = 0
    for j in range(n):
        if status[j] == RUNNING:
            left[j] -= 1.0 / slowed(j, node, tables)
        elif status[j] == WAITING and tables.arrival[j] <= slot and counts[FREE] >= tables.gpus[j]:
            held_back |= 1 << j
    for j in range(n):
        if status[j] == RUNNING and left[j] <= NEAR:
            if left[j] > -NEAR:
                found.sums[LOST] = 1
            status[j], node.end[j] = DONE, slot
            counts[COST] += slot - tables.arrival[j] + 1
            ended |= 1 << j
        if status[j] == RUNNING:
            running |= 1 << j
        elif status[j] == DONE:
            done |= 1 << j
    if done == (1 << n) - 1:
        if counts[COST] < found.sums[LEAST]:
            found.sums[LEAST] = counts[COST]
            found.kind[:], found.start[:], found.end[:] = node.kind, node.start, node.end
            found.shared[:, :] = node.shared
    else:
        earliest, latest = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        if ends(slot, node, tables, earliest, latest):
            best, value = first, least_cost(first, slot, node, earliest, latest, tables, potentials)
            p = 0
            while p < count and value <= limit:
                if p != first:
                    other = least_cost(p, slot, node, earliest, latest, tables, potentials)
                    if other > value:
                        best, value = p, other
                p += 1
            if value <= limit:
                keep(done, running, held_back, value, best, node, after, found.sums)
    for j in range(n):
        if (ended >> j) & 1:
            status[j] = RUNNING
    left[:] = before
    counts[COST] = cost


def _compile() -> None:
    """Compile now, or load what is kept on disk: the clock of a solve starts after the imports."""
    one, number = np.ones(1, dtype=np.int64), np.ones(1)
    fits, latest = np.zeros((1, 1), dtype=np.bool_), np.ones((1, 2), dtype=np.int64)
    kinds = np.array([0, 1], dtype=np.int64)
    tables = Tables(one, one, number, kinds, number, np.ones((1, 1)), fits, latest, one, 1, 1)
    flat = np.zeros((1, 1, 4))
    by_pair = np.zeros((1, 1, 1, 4))
    potentials = Potentials(flat[0], flat, np.zeros((1, 1)), flat, flat, by_pair, by_pair, by_pair, by_pair)
    short = np.zeros(1, dtype=np.int16)
    best = Best(short, short.copy(), short.copy(), np.zeros((1, 1), dtype=np.int64), np.array([1, 0, 0, 9]))
    states, after = room(1, 2, 2), room(1, 2, 2)
    expand(1, 0, 1, 9, 1, 1.0, empty_node(1), empty_levels(1), states, after, tables, potentials, best)
    prune(1, 0, 1.0, after, tables, potentials, best.sums)


_compile()
