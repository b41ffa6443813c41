"""States of gpu-sharing's dynamic program, compiled: which one stands for which, and what they cost at least."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached, njit_inline, njit_kernel

Ints = NDArray[np.int64]
Shorts = NDArray[np.int16]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

WAITING, RUNNING, DONE = 0, 1, 2
NEAR = 1e-10
"""Slots: with no more than this left, or too much, rounding hides whether a job is done.

What meets its target exactly is no such case: the checker's tolerance leaves it 1e-9 of its work too much.
"""
SAME = 1e-13
"""Slots: by so much more a state may have left than one that it stands for; over 500 slots that is less than NEAR."""


class SlotTables(NamedTuple):
    """The instance; a kind is a job with one number of steps.

    Attributes
    ----------
    arrival, gpus, worst : of each job; the worst slowdown beside any partner
    first : the first kind of each job, and the number of kinds
    work : of each kind, slots alone
    slowdown : xi
    fits : whether two kinds fit one GPU
    latest : by kind and first slot, the latest last slot of a run
    shortest : the fewest slots of a run of each job
    total, last : GPUs; the last slot
    """

    arrival: Ints
    gpus: Ints
    worst: Floats
    first: Ints
    work: Floats
    slowdown: Floats
    fits: Flags
    latest: Ints
    shortest: Ints
    total: int
    last: int


class Potentials(NamedTuple):
    """Prices, by potential; see :func:`~schedgap.solvers.exact.gpu_sharing.dynamic_program.potential`."""

    worth: Floats
    held: Floats
    unspent: Floats
    least_wait: Floats
    least_start: Floats
    pair: Floats
    fixed: Floats
    lower: Floats
    side: Floats


class States(NamedTuple):
    """The states after one slot, in the order in which they are found.

    Attributes
    ----------
    done, running : jobs, as bits
    held_back : waiting jobs whose GPUs were free in the slot, as bits
    cost : sum of JCT of the jobs that are done
    bound, potential : the least cost of a schedule from here, and the potential that shows it
    remaining, kind, start, end : by job, slots alone that are left, and what was decided
    shared : by pair (k < j at j (j - 1) / 2 + k), the GPUs that it shares or shared
    dead : another state stands for it, or it costs too much
    after, table : the next state with the same hash; the last state of each hash
    """

    done: Ints
    running: Ints
    held_back: Ints
    cost: Ints
    bound: Floats
    potential: Ints
    remaining: Floats
    kind: Shorts
    start: Shorts
    end: Shorts
    shared: NDArray[np.uint8]
    dead: Flags
    after: Ints
    table: Ints


class Node(NamedTuple):
    """One state while successors are made of it.

    `counts` are free GPUs, jobs held back as bits, the cost, how many jobs could start, and the level of the search
    for which of them do (less than 0 where it is at its end).

    The last ones are room for what is computed of it: of :func:`ends`, the work that is left and the slowdown at some
    later slot, and the earliest and latest last slots; of :func:`_advance`, the work that was left before.
    """

    status: Ints
    kind: Shorts
    start: Shorts
    end: Shorts
    remaining: Floats
    alone: Ints
    before: Flags
    shared: Ints
    counts: Ints
    later: Floats
    slow: Floats
    earliest: Ints
    latest: Ints
    former: Floats


class Levels(NamedTuple):
    """The search for the jobs of a node that start, level by level, so that it can be left and gone on with.

    Attributes
    ----------
    waiting : jobs that could start
    of_partner : whether a level is about the GPUs that a job shares with one partner, else about a job
    place, partner : the job's place in `waiting`; the partner
    choice : what is tried next
    need : GPUs that the job still needs
    value : the least cost of what is decided so far
    """

    waiting: Ints
    of_partner: Flags
    place: Ints
    partner: Ints
    choice: Ints
    need: Ints
    value: Floats


class Best(NamedTuple):
    """The best schedule so far; `sums`: states used, whether states were lost, levels tried, the least cost."""

    kind: Shorts
    start: Shorts
    end: Shorts
    shared: Ints
    sums: Ints


FREE, HELD_BACK, COST, MANY, LEVEL = 0, 1, 2, 3, 4
USED, LOST, TRIED, LEAST = 0, 1, 2, 3
MOST_SHARED = 255
"""GPUs that two jobs may share in a state."""


def room(jobs: int, states: int, table: int) -> States:
    """Empty arrays for so many states; memory that is not used is not taken."""
    masks = [np.zeros(states, dtype=np.int64) for _ in range(4)]
    marks = [np.zeros((states, jobs), dtype=np.int16) for _ in range(3)]
    return States(
        masks[0], masks[1], masks[2], masks[3], np.zeros(states), np.zeros(states, dtype=np.int64),
        np.zeros((states, jobs)), marks[0], marks[1], marks[2],
        np.zeros((states, max(1, jobs * (jobs - 1) // 2)), dtype=np.uint8),
        np.zeros(states, dtype=np.bool_), np.zeros(states, dtype=np.int64), np.full(table, -1, dtype=np.int64),
    )  # fmt: skip


@njit_cached
def empty_node(n: int) -> Node:  # pragma: no cover - compiled
    """Arrays for n jobs."""
    kind, start, end = np.zeros(n, dtype=np.int16), np.zeros(n, dtype=np.int16), np.zeros(n, dtype=np.int16)
    status, alone, before = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    shared, counts = np.zeros((n, n), dtype=np.int64), np.zeros(5, dtype=np.int64)
    counts[LEVEL] = -1
    earliest, latest = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    room_of = (np.zeros(n), np.zeros(n), earliest, latest, np.zeros(n))
    return Node(status, kind, start, end, np.zeros(n), alone, before, shared, counts, *room_of)


@njit_cached
def empty_levels(n: int) -> Levels:  # pragma: no cover - compiled
    """Arrays for n jobs, each with a level for itself, for each of the others, and for free GPUs."""
    most = n * (n + 2) + 2
    of_partner, place, partner = np.zeros(most, np.bool_), np.zeros(most, np.int64), np.zeros(most, np.int64)
    choice, need, value = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most)
    return Levels(np.zeros(n, dtype=np.int64), of_partner, place, partner, choice, need, value)


@njit_kernel
def load(i: int, states: States, node: Node, tables: SlotTables) -> None:  # pragma: no cover - compiled
    """Make the node a state."""
    n = len(node.status)
    free = tables.total
    for j in range(n):
        node.kind[j], node.start[j], node.end[j] = states.kind[i, j], states.start[i, j], states.end[i, j]
        node.remaining[j] = states.remaining[i, j]
        node.status[j] = DONE if (states.done[i] >> j) & 1 else RUNNING if (states.running[i] >> j) & 1 else WAITING
        node.before[j] = node.status[j] == RUNNING
        for k in range(j):
            node.shared[j, k] = node.shared[k, j] = states.shared[i, j * (j - 1) // 2 + k]
    for j in range(n):
        node.alone[j] = 0
        if node.status[j] == RUNNING:
            node.alone[j] = tables.gpus[j]
            for k in range(n):
                if node.status[k] == RUNNING:
                    node.alone[j] -= node.shared[j, k]
            free -= tables.gpus[j]
            for k in range(j):
                if node.status[k] == RUNNING:
                    free += node.shared[j, k]
    node.counts[FREE], node.counts[HELD_BACK], node.counts[COST] = free, states.held_back[i], states.cost[i]


@njit_kernel
def slowed(j: int, node: Node, tables: SlotTables) -> float:  # pragma: no cover - compiled
    """The slowdown of a job beside those that run."""
    slow = 1.0
    for k in range(len(node.status)):
        if node.status[k] == RUNNING and node.shared[j, k] > 0:
            slow = max(slow, tables.slowdown[j, k])
    return slow


@njit_kernel
def ends(slot: int, node: Node, tables: SlotTables) -> bool:  # pragma: no cover - compiled
    """The earliest last slots of the running jobs, if nothing starts, and the latest; False if one is too late."""
    n = len(node.status)
    rest, slow, earliest, latest = node.later, node.slow, node.earliest, node.latest
    active = 0
    for j in range(n):
        rest[j] = node.remaining[j]
        if node.status[j] == RUNNING:
            slowest = slot + max(1, math.ceil(node.remaining[j] * tables.worst[j] + 1e-6))
            latest[j] = min(tables.latest[node.kind[j], node.start[j]], slowest)
            active |= 1 << j
    while active:
        ahead = 1 << 40
        for j in range(n):
            if (active >> j) & 1:
                slow[j] = 1.0
                for k in range(n):
                    if (active >> k) & 1 and node.shared[j, k] > 0:
                        slow[j] = max(slow[j], tables.slowdown[j, k])
                ahead = min(ahead, max(1, math.ceil((rest[j] - NEAR) * slow[j])))
        slot += ahead
        for j in range(n):
            if (active >> j) & 1:
                rest[j] -= ahead / slow[j]
        for j in range(n):
            if (active >> j) & 1 and rest[j] <= NEAR:
                active ^= 1 << j
                earliest[j] = slot
                if slot > latest[j]:
                    return False
    return True


@njit_kernel
def least_cost(
    p: int, slot: int, node: Node, tables: SlotTables, potentials: Potentials
) -> float:  # pragma: no cover - compiled
    """The least cost of a schedule from this node after `slot`, by a potential."""
    status, kind, remaining, shared = node.status, node.kind, node.remaining, node.shared
    earliest, latest = node.earliest, node.latest
    held, side, fixed, lower = potentials.held, potentials.side, potentials.fixed, potentials.lower
    n = len(status)
    value: float = node.counts[COST] - potentials.worth[p, slot + 1]
    for j in range(n):
        if status[j] == WAITING:
            value += potentials.least_wait[p, j, slot + 1]
        elif status[j] == RUNNING:
            q = kind[j]
            unspent = potentials.unspent[p, q]
            least = math.inf
            for e in range(earliest[j], latest[j] + 1):
                cost = e * (1 - unspent) + held[p, q, e]
                can_lose = e - slot - remaining[j] + 1e-9
                for k in range(n):
                    if status[k] == WAITING and side[p, q, k, e] > side[p, q, k, slot]:
                        # With whom it could still share, and from which slot on until e.
                        begin, loss = slot, 1 - 1 / tables.slowdown[j, k]
                        if tables.shortest[k] * loss > can_lose:
                            begin = max(slot, e - int(can_lose / loss))
                        cost -= side[p, q, k, e] - side[p, q, k, begin]
                least = min(least, cost)
            value += least + 1 - tables.arrival[j] - held[p, q, slot] + unspent * (slot + remaining[j])
            for k in range(j):
                if status[k] == RUNNING and shared[j, k] > 0:
                    first, last, r = min(earliest[j], earliest[k]), min(latest[j], latest[k]), kind[k]
                    both = fixed[p, q, r, first] - fixed[p, q, r, slot] + lower[p, q, r, last] - lower[p, q, r, first]
                    value += shared[j, k] * both
    return value


@njit_kernel
def keep(
    done: int, running: int, held_back: int, value: float, p: int, node: Node, states: States, sums: Ints
) -> None:  # pragma: no cover - compiled
    """Keep a state unless one that is kept stands for it; those that it stands for are dead."""
    n = len(node.status)
    key = np.uint64(done) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(running) * np.uint64(0xC2B2AE3D27D4EB4F)
    for j in range(n):
        if (running >> j) & 1:
            for k in range(j):
                if (running >> k) & 1 and node.shared[j, k] > 0:
                    key = (key ^ np.uint64((j * n + k) * 1024 + node.shared[j, k])) * np.uint64(0x9E3779B97F4A7C15)
                    key ^= key >> np.uint64(29)
    place = np.int64((key ^ (key >> np.uint64(32))) & np.uint64(len(states.table) - 1))
    i = states.table[place]
    while i >= 0:
        if not states.dead[i] and states.done[i] == done and states.running[i] == running:
            worse, better = states.cost[i] > node.counts[COST], states.cost[i] < node.counts[COST]
            for j in range(n):
                if (running >> j) & 1:
                    worse |= states.remaining[i, j] > node.remaining[j] + SAME or states.kind[i, j] < node.kind[j]
                    better |= states.remaining[i, j] < node.remaining[j] - SAME or states.kind[i, j] > node.kind[j]
                    for k in range(j):
                        if (running >> k) & 1 and states.shared[i, j * (j - 1) // 2 + k] != node.shared[j, k]:
                            worse = better = True
                    if worse and better:
                        break
            if not worse:
                return
            states.dead[i] = not better
        i = states.after[i]
    i = sums[USED]
    if i >= len(states.done):
        sums[LOST] = 1
        return
    sums[USED] += 1
    states.done[i], states.running[i], states.held_back[i] = done, running, held_back
    states.cost[i], states.bound[i], states.potential[i], states.dead[i] = node.counts[COST], value, p, False
    for j in range(n):
        states.remaining[i, j], states.kind[i, j] = node.remaining[j], node.kind[j]
        states.start[i, j], states.end[i, j] = node.start[j], node.end[j]
        for k in range(j):
            states.shared[i, j * (j - 1) // 2 + k] = node.shared[j, k]
    states.after[i], states.table[place] = states.table[place], i


@njit_cached
def prune(
    slot: int, p: int, limit: float, states: States, tables: SlotTables, potentials: Potentials, sums: Ints
) -> None:  # pragma: no cover - compiled
    """Bound all states after `slot` by a further potential, or by one that takes the place of another."""
    n = len(tables.arrival)
    node = empty_node(n)
    for i in range(sums[USED]):
        if states.dead[i]:
            continue
        load(i, states, node, tables)
        if not ends(slot, node, tables):
            states.dead[i] = True
            continue
        value = least_cost(p, slot, node, tables, potentials)
        if value > states.bound[i] or states.potential[i] == p:
            states.bound[i], states.potential[i] = value, p
        states.dead[i] = value > limit


# The successors of states in gpu-sharing's dynamic program, compiled.


@njit_cached
def expand(
    slot: int, first: int, last: int, stop: int, count: int, limit: float, node: Node, levels: Levels, here: States,
    after: States, tables: SlotTables, potentials: Potentials, found: Best,
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


@njit_inline
def _enter(levels: Levels, d: int, of_partner: bool, place: int, value: float) -> int:  # pragma: no cover - compiled
    """Begin level d."""
    levels.of_partner[d], levels.place[d], levels.choice[d], levels.value[d] = of_partner, place, 0, value
    return d


@njit_kernel
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
    return bound > limit


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
        return _enter(levels, d + 1, False, w + 1, then) if then <= limit else d
    then = levels.value[d] + potentials.least_start[p, q, slot] - before
    if then > limit:
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


@njit_kernel
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


@njit_kernel
def _advance(
    slot: int, node: Node, tables: SlotTables, potentials: Potentials, count: int, first: int, limit: float,
    after: States, found: Best,
) -> None:  # pragma: no cover - compiled  # fmt: skip
    """Let the running jobs run for a slot, and keep the state that follows if it may be part of something better."""
    status, remaining, counts = node.status, node.remaining, node.counts
    n = len(status)
    cost = counts[COST]
    held_back = running = done = ended = 0
    for j in range(n):
        node.former[j] = remaining[j]
        if status[j] == RUNNING:
            remaining[j] -= 1.0 / slowed(j, node, tables)
        elif status[j] == WAITING and tables.arrival[j] <= slot and counts[FREE] >= tables.gpus[j]:
            held_back |= 1 << j
    for j in range(n):
        if status[j] == RUNNING and remaining[j] <= NEAR:
            if remaining[j] > -NEAR:
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
            for j in range(n):
                found.kind[j], found.start[j], found.end[j] = node.kind[j], node.start[j], node.end[j]
                for k in range(n):
                    found.shared[j, k] = node.shared[j, k]
    else:
        if ends(slot, node, tables):
            best, value = first, least_cost(first, slot, node, tables, potentials)
            p = 0
            while p < count and value <= limit:
                if p != first:
                    other = least_cost(p, slot, node, tables, potentials)
                    if other > value:
                        best, value = p, other
                p += 1
            if value <= limit:
                keep(done, running, held_back, value, best, node, after, found.sums)
    for j in range(n):
        remaining[j] = node.former[j]
        if (ended >> j) & 1:
            status[j] = RUNNING
    counts[COST] = cost


def _compile() -> None:
    """Compile now, or load what is kept on disk: the clock of a solve starts after the imports."""
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
    expand(1, 0, 1, 9, 1, 1.0, empty_node(1), empty_levels(1), states, after, tables, potentials, best)
    prune(1, 0, 1.0, after, tables, potentials, best.sums)


_compile()
