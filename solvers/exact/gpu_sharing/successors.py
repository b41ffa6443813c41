"""The successors of states in gpu-sharing's dynamic program, compiled: which of the waiting jobs start, and how.

Idea: depth first over the waiting jobs: each waits, starts alone or starts beside one that runs. Source: the rules of
`dynamic_program`, where their proofs stand.
"""

from __future__ import annotations

import math

import numpy as np

from schedgap.formulations.common.compiled import njit_cached, njit_inline, njit_inner
from schedgap.formulations.common.machine.ordering import rising_order
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
    SlotTables,
    States,
    empty_levels,
    empty_node,
    ends,
    keep,
    least_cost,
    load,
    look_ahead,
    prune,
    room,
    slowed,
    unused,
)


@njit_cached
def expand(
    slot: int, first: int, last: int, stop: int, count: int, limit: float, node: Node, levels: Levels, here: States,
    after: States, tables: SlotTables, potentials: Potentials, found: Best,
) -> int:  # pragma: no cover - compiled  # fmt: skip
    """Successors after `slot` of the states `first` to `last` - 1 before it, by the first `count` potentials.

    Returns the state to go on with, from node and levels as they are, after `stop` levels; `last` where all is done.
    """
    falling = np.empty(len(tables.gpus), np.int64)  # large gangs first: what they do is soon too much
    for j in range(len(falling)):
        falling[j] = -tables.gpus[j]
    order = rising_order(falling)
    for i in range(first, last):
        if node.counts[LEVEL] < 0:
            if here.dead[i]:
                continue
            load(i, here, node, tables)
            many = 0
            for place in range(len(order)):
                j = order[place]
                if node.status[j] == WAITING and tables.arrival[j] <= slot:
                    levels.waiting[many] = j
                    many += 1
            node.counts[MANY], node.counts[LEVEL] = many, 0
            levels.of_partner[0], levels.place[0], levels.choice[0], levels.value[0] = False, 0, 0, here.bound[i]
            look_ahead(slot, here.potential[i], many, levels, tables, potentials)
        _choose(slot, stop, here.potential[i], count, limit, node, levels, after, tables, potentials, found)
        if node.counts[LEVEL] >= 0:
            return i
    return last


@njit_inline
def _enter(levels: Levels, d: int, of_partner: bool, place: int, value: float) -> int:  # pragma: no cover - compiled
    """Begin level d."""
    levels.of_partner[d], levels.place[d], levels.choice[d], levels.value[d] = of_partner, place, 0, value
    return d


@njit_inner
def _start_costs_too_much(
    d: int, slot: int, p: int, limit: float, node: Node, levels: Levels, tables: SlotTables, potentials: Potentials,
) -> bool:  # pragma: no cover - compiled  # fmt: skip
    """A job has just started: whether what that does to those beside it is too much; raises the level's value."""
    if not ends(slot - 1, node, tables):
        return True
    wait = potentials.least_wait
    bound = least_cost(p, slot - 1, node, tables, potentials)
    for v in range(levels.place[d]):
        j = levels.waiting[v]
        if node.status[j] == WAITING:  # it was decided that it does not start in this slot
            bound += wait[p, j, slot + 1] - wait[p, j, slot]
    levels.value[d] = max(bound, levels.value[d])
    return bool(levels.value[d] + unused(levels.place[d], 0, slot, p, node, levels, tables, potentials) > limit)


@njit_inline
def _next_of_job(
    d: int, slot: int, p: int, limit: float, node: Node, levels: Levels, tables: SlotTables, potentials: Potentials
) -> int:  # pragma: no cover - compiled
    """A level of a job: it waits, then it starts with each number of steps; the level to go on with."""
    w = levels.place[d]
    j, c = levels.waiting[w], levels.choice[d]
    node.status[j] = WAITING
    levels.choice[d] += 1
    q = tables.first[j] + c - 1
    if q == tables.first[j + 1]:
        return d - 1
    before = potentials.least_wait[p, j, slot]
    if c == 0:
        then = levels.value[d] + potentials.least_wait[p, j, slot + 1] - before
        more = unused(w + 1, 0, slot, p, node, levels, tables, potentials) if then <= limit else 0.0
        return _enter(levels, d + 1, False, w + 1, then) if then + more <= limit else d
    then = levels.value[d] + potentials.least_start[p, q, slot] - before
    gpus = tables.gpus[j]
    if then > limit or then + unused(w + 1, gpus, slot, p, node, levels, tables, potentials) > limit:
        return d
    node.status[j], node.alone[j] = RUNNING, 0
    node.kind[j], node.start[j], node.remaining[j] = q, slot, tables.work[q]
    levels.partner[d + 1], levels.need[d + 1] = 0, tables.gpus[j]
    return _enter(levels, d + 1, True, w, then)


@njit_inline
def _find_partner(d: int, node: Node, levels: Levels, tables: SlotTables) -> bool:  # pragma: no cover - compiled
    """The next job to share GPUs with, or n where the rest of the GPUs is free ones; False where they do not suffice.

    A job that was held back in the slot before, when its GPUs were free, starts later only beside one that runs since.
    """
    n, need = len(node.status), levels.need[d]
    j, k = levels.waiting[levels.place[d]], levels.partner[d]
    possible, partner = node.counts[FREE], n
    for other in range(n - 1, k - 1, -1):
        runs = other != j and node.status[other] == RUNNING
        if runs and node.alone[other] > 0 and tables.fits[node.kind[j], node.kind[other]]:
            possible += node.alone[other]
            partner = other
    levels.partner[d] = n if need == 0 else partner
    if possible < need:
        return False
    if levels.partner[d] < n or not (node.counts[HELD_BACK] >> j) & 1:
        return True
    beside = False
    for other in range(n):
        beside |= node.before[other] and node.status[other] == RUNNING and node.shared[j, other] > 0
    return beside


@njit_inline
def _take_free(d: int, node: Node, levels: Levels) -> int:  # pragma: no cover - compiled
    """The rest of the job's GPUs are free ones; the second time round they are given back."""
    w, need = levels.place[d], levels.need[d]
    j = levels.waiting[w]
    if levels.choice[d] == 0:
        levels.choice[d] = 1
        node.counts[FREE] -= need
        node.alone[j] = need
        return _enter(levels, d + 1, False, w + 1, levels.value[d])
    node.counts[FREE] += need
    node.alone[j] = 0
    return d - 1


@njit_inline
def _share_more(
    d: int, slot: int, p: int, limit: float, node: Node, levels: Levels, tables: SlotTables, potentials: Potentials
) -> int:  # pragma: no cover - compiled
    """Share one GPU more with the partner than the last time, none at first; the level to go on with."""
    w, k, need = levels.place[d], levels.partner[d], levels.need[d]
    j, o = levels.waiting[w], levels.choice[d]
    levels.choice[d] += 1
    if o > 0:
        node.alone[k] += o - 1
    # They share at least until one of them could end alone.
    together = slot - 1 + max(1, math.ceil(min(node.remaining[j], node.remaining[k]) - NEAR))
    q, r = node.kind[j], node.kind[k]
    costs = potentials.pair[p, q, r, min(tables.last, together)] - potentials.pair[p, q, r, slot - 1]
    then = levels.value[d] + o * costs
    if o > need or o > node.alone[k] or then > limit:
        node.shared[j, k] = node.shared[k, j] = 0
        return d - 1
    node.shared[j, k] = node.shared[k, j] = o
    node.alone[k] -= o
    levels.partner[d + 1], levels.need[d + 1] = k + 1, need - o
    return _enter(levels, d + 1, True, w, then)


@njit_inner
def _choose(
    slot: int, stop: int, p: int, count: int, limit: float, node: Node, levels: Levels, after: States,
    tables: SlotTables, potentials: Potentials, found: Best,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """All ways to start some of the waiting jobs: in turn each waits, or starts with some steps and shared GPUs.

    Depth first without recursion (numba's cache of recursive code crashes). After `stop` levels, or when states were
    lost, it returns with the level that it would go on with.
    """
    n, sums = len(node.status), found.sums
    d = node.counts[LEVEL]
    while d >= 0 and sums[TRIED] < stop and not sums[LOST]:
        sums[TRIED] += 1
        fresh = levels.choice[d] == 0
        if levels.of_partner[d]:
            if fresh and not _find_partner(d, node, levels, tables):
                d -= 1
            elif levels.partner[d] == n:
                d = _take_free(d, node, levels)
            else:
                d = _share_more(d, slot, p, limit, node, levels, tables, potentials)
            continue
        started = fresh and d > 0 and levels.of_partner[d - 1]
        if levels.place[d] == node.counts[MANY]:  # every waiting job is decided
            _advance(slot, node, tables, potentials, count, p, limit, after, found)
            d -= 1
        elif started and _start_costs_too_much(d, slot, p, limit, node, levels, tables, potentials):
            d -= 1
        else:
            d = _next_of_job(d, slot, p, limit, node, levels, tables, potentials)
    node.counts[LEVEL] = d


@njit_inner
def _advance(
    slot: int, node: Node, tables: SlotTables, potentials: Potentials, count: int, first: int, limit: float,
    after: States, found: Best,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """Let the running jobs run for a slot, and keep the state that follows if it may be part of something better."""
    n, cost = len(node.status), node.counts[COST]
    held_back = _work(slot, node, tables)
    running, done, ended = _end_jobs(slot, node, tables, found)
    if done == (1 << n) - 1:
        if node.counts[COST] < found.sums[LEAST]:
            found.sums[LEAST] = node.counts[COST]
            for j in range(n):
                found.kind[j], found.start[j], found.end[j] = node.kind[j], node.start[j], node.end[j]
                for k in range(n):
                    found.shared[j, k] = node.shared[j, k]
    elif ends(slot, node, tables):
        best, value = first, least_cost(first, slot, node, tables, potentials)
        for p in range(count):  # the best bound, or the first above
            if p != first and value <= limit:
                other = least_cost(p, slot, node, tables, potentials)
                if other > value:
                    best, value = p, other
        if value <= limit:
            keep(done, running, held_back, value, best, node, after, found.sums)
    # as before, for the next choice
    for j in range(n):
        node.remaining[j] = node.former[j]
        if (ended >> j) & 1:
            node.status[j] = RUNNING
    node.counts[COST] = cost


@njit_inline
def _work(slot: int, node: Node, tables: SlotTables) -> int:  # pragma: no cover - compiled
    """Take a slot off the running jobs' work; who waits and would fit, as bits."""
    held_back = 0
    for j in range(len(node.status)):
        node.former[j] = node.remaining[j]
        if node.status[j] == RUNNING:
            node.remaining[j] -= 1.0 / slowed(j, node, tables)
        elif node.status[j] == WAITING and tables.arrival[j] <= slot and node.counts[FREE] >= tables.gpus[j]:
            held_back |= 1 << j
    return held_back


@njit_inline
def _end_jobs(
    slot: int, node: Node, tables: SlotTables, found: Best
) -> tuple[int, int, int]:  # pragma: no cover - compiled
    """End jobs without work; as bits, who runs, who is done, who ended now."""
    status = node.status
    running = done = ended = 0
    for j in range(len(status)):
        if status[j] == RUNNING and node.remaining[j] <= NEAR:
            if node.remaining[j] > -NEAR:  # too near to tell which slot it is
                found.sums[LOST] = 1
            status[j], node.end[j] = DONE, slot
            node.counts[COST] += slot - tables.arrival[j] + 1
            ended |= 1 << j
        if status[j] == RUNNING:
            running |= 1 << j
        elif status[j] == DONE:
            done |= 1 << j
    return running, done, ended


def compile() -> None:
    """Run once, so that what is kept on disk is loaded: the clock of a solve starts after the imports."""
    one, number = np.ones(1, dtype=np.int64), np.ones(1)
    fits, latest = np.zeros((1, 1), dtype=np.bool_), np.ones((1, 2), dtype=np.int64)
    kinds = np.array([0, 1], dtype=np.int64)
    tables = SlotTables(one, one, number, kinds, number, np.ones((1, 1)), fits, latest, one, 1, 1)
    flat = np.zeros((1, 1, 4))
    by_pair = np.zeros((1, 1, 1, 4))
    potentials = Potentials(flat[0], flat, np.zeros((1, 1)), flat, flat, by_pair, by_pair, by_pair, by_pair)
    short = np.zeros(1, dtype=np.int16)
    best = Best(short, short.copy(), short.copy(), np.zeros((1, 1), dtype=np.int64), np.array([1, 0, 0, 9]))
    states, after = room(1, 2, 2), room(1, 2, 2)
    expand(1, 0, 1, 9, 1, 1.0, empty_node(1), empty_levels(1, 1), states, after, tables, potentials, best)
    prune(1, 0, 1.0, after, tables, potentials, best.sums)
