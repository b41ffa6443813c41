"""States of gpu-sharing's dynamic program, compiled: which one dominates which, and what they cost at least.

Idea: a state is kept only if no other dominates it and its least cost is not too high. Source: dominance and bounds
of dynamic programming; the rules are those of `dynamic_program`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inner

Shorts = NDArray[np.int16]

WAITING, RUNNING, DONE = 0, 1, 2
NEAR = 1e-10
"""Slots, left or in excess, within which rounding hides whether a job is done.

What meets its target exactly is no such case: the checker's tolerance leaves it 1e-9 of its work too much.
"""
SAME = 1e-13
"""Slots by which a state may have more left than one that it dominates; over 500 slots that is less than NEAR."""


class SlotTables(NamedTuple):
    """The instance; a kind is a job with one number of steps."""

    # arrival, gpus, worst: of each job; the worst slowdown beside any partner
    arrival: Ints
    gpus: Ints
    worst: Floats
    first: Ints  # the first kind of each job, and the number of kinds
    work: Floats  # slots that each kind takes alone
    slowdown: Floats  # xi
    fits: Bools  # whether two kinds fit one GPU
    latest: Ints  # latest last slot of a run, per kind and first slot
    shortest: Ints  # the fewest slots of a run of each job
    # total, last: GPUs; the last slot
    total: int
    last: int


class Potentials(NamedTuple):
    """Prices, by potential; see :func:`~schedgap.solvers.exact.gpu_sharing.potentials.potential`."""

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
    """The states after one slot, in the order in which they are found."""

    # done, running: jobs, as bits
    done: Ints
    running: Ints
    held_back: Ints  # waiting jobs whose GPUs were free in the slot, as bits
    cost: Ints  # sum of JCT of the jobs that are done
    # bound, potential: the least cost of a schedule from here, and the potential that shows it
    bound: Floats
    potential: Ints
    # remaining, kind, start, end: by job, slots alone that are left, and what was decided
    remaining: Floats
    kind: Shorts
    start: Shorts
    end: Shorts
    shared: NDArray[np.uint8]  # GPUs that each pair (k < j at j (j - 1) / 2 + k) shares or shared
    dead: Bools  # another state stands for it, or it costs too much
    # after, table: the next state with the same hash; the last state of each hash
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
    before: Bools
    shared: Ints
    counts: Ints
    later: Floats
    slow: Floats
    earliest: Ints
    latest: Ints
    former: Floats


class Levels(NamedTuple):
    """The search for the jobs of a node that start, level by level, so that it can be left and gone on with."""

    waiting: Ints  # jobs that could start
    of_partner: Bools  # whether a level is about the GPUs that a job shares with one partner, else about a job
    # place, partner: the job's place in `waiting`; the partner
    place: Ints
    partner: Ints
    choice: Ints  # what is tried next
    need: Ints  # GPUs that the job still needs
    value: Floats  # the least cost of what is decided so far
    later: Floats  # what the jobs from a place on add at least if those of them that start need so many GPUs
    # price, many: of GPUs that could take a job more, dearest first: what one adds that does not, and how many
    price: Floats
    many: Ints


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


FEW_GPUS = 64
"""Beyond, what GPUs without enough jobs add is not looked at."""


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
def empty_levels(n: int, gpus: int) -> Levels:  # pragma: no cover - compiled
    """Arrays for n jobs, each with a level for itself, for each of the others, and for free GPUs."""
    most = n * (n + 2) + 2
    of_partner, place, partner = np.zeros(most, np.bool_), np.zeros(most, np.int64), np.zeros(most, np.int64)
    choice, need, value = np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most)
    later = np.zeros((n + 1, 2 * gpus + 1 if gpus <= FEW_GPUS else 1))
    price, many = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    return Levels(np.zeros(n, dtype=np.int64), of_partner, place, partner, choice, need, value, later, price, many)


@njit_inner
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


@njit_inner
def slowed(j: int, node: Node, tables: SlotTables) -> float:  # pragma: no cover - compiled
    """The slowdown of a job beside those that run."""
    slow = 1.0
    for k in range(len(node.status)):
        if node.status[k] == RUNNING and node.shared[j, k] > 0:
            slow = max(slow, tables.slowdown[j, k])
    return slow


@njit_inner
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


@njit_inner
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


@njit_inner
def look_ahead(
    slot: int, p: int, many: int, levels: Levels, tables: SlotTables, potentials: Potentials
) -> None:  # pragma: no cover - compiled
    """What the waiting jobs from each place on add at least, by how many GPUs those need of them that start."""
    wait, later = potentials.least_wait, levels.later
    width = later.shape[1]
    for taken in range(width):
        later[many, taken] = math.inf if taken else 0.0
    for w in range(many - 1, -1, -1):
        j, start = levels.waiting[w], math.inf
        for q in range(tables.first[j], tables.first[j + 1]):
            start = min(start, potentials.least_start[p, q, slot])
        start -= wait[p, j, slot]
        waits = wait[p, j, slot + 1] - wait[p, j, slot]
        for taken in range(width):
            least = later[w + 1, taken] + waits
            if taken >= tables.gpus[j]:
                least = min(least, later[w + 1, taken - tables.gpus[j]] + start)
            later[w, taken] = least


@njit_inner
def unused(
    w: int, taken: int, slot: int, p: int, node: Node, levels: Levels, tables: SlotTables, potentials: Potentials
) -> float:  # pragma: no cover - compiled
    """What the jobs from place w on, and GPUs that could take a job more and do not, add at least in this slot.

    The prices count full GPUs: a free one adds ``idle``, one with a single job of a kind ``alone``. Each GPU that a
    starting job needs, `taken` and those of jobs not decided yet, spares one of them, the dearest in the best case.
    """
    later, price, many, held = levels.later, levels.price, levels.many, potentials.held
    if later.shape[1] == 1:
        return 0.0
    price[0] = (potentials.worth[p, slot] - potentials.worth[p, slot + 1]) / tables.total
    many[0] = node.counts[FREE]
    idle, rest, count = price[0], price[0] * many[0], 1
    for j in range(len(node.status)):
        if node.status[j] == RUNNING and node.alone[j] > 0:
            q = node.kind[j]
            alone = idle - (held[p, q, slot] - held[p, q, slot - 1]) / tables.gpus[j]
            at = count
            while at > 0 and price[at - 1] < alone:
                price[at], many[at] = price[at - 1], many[at - 1]
                at -= 1
            price[at], many[at] = alone, node.alone[j]
            rest += alone * many[at]
            count += 1
    least, at, spared = math.inf, 0, many[0]
    for used in range(later.shape[1]):
        if used >= taken:
            least = min(least, later[w, used - taken] + rest)
        while at < count and spared == 0:
            at += 1
            spared = many[at] if at < count else 0
        if at < count:
            rest -= price[at]
            spared -= 1
    return least


@njit_inner
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
