"""A bounded dynamic program for gpu-sharing: slot by slot, all states that may be part of a better schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached, njit_inline, njit_inner
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices
from schedgap.solvers.exact.gpu_sharing.lp import (
    ColumnBound,
    Columns,
    can_share,
    column_bound,
    fitting,
    losses,
    mean_loss,
    shortest_runs,
    spare,
)
from schedgap.solvers.exact.gpu_sharing.search import OverlapSchedule
from schedgap.solvers.exact.gpu_sharing.states import (
    COST,
    DONE,
    FREE,
    HELD_BACK,
    LEAST,
    LEVEL,
    LOST,
    MANY,
    MOST_SHARED,
    NEAR,
    RUNNING,
    TRIED,
    USED,
    WAITING,
    Best,
    Ints,
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
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import NO_DEADLINE, Deadline

# The successors of states in gpu-sharing's dynamic program, compiled: which of the waiting jobs start, and how.


@njit_cached
def expand(
    slot: int, first: int, last: int, stop: int, count: int, limit: float, node: Node, levels: Levels, here: States,
    after: States, tables: SlotTables, potentials: Potentials, found: Best,
) -> int:  # pragma: no cover - compiled  # fmt: skip
    """Successors after `slot` of the states `first` to `last` - 1 before it, by the first `count` potentials.

    Returns the state to go on with, from node and levels as they are, after `stop` levels; `last` where all is done.
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
    expand(1, 0, 1, 9, 1, 1.0, empty_node(1), empty_levels(1, 1), states, after, tables, potentials, best)
    prune(1, 0, 1.0, after, tables, potentials, best.sums)


_compile()


# Prices of the column LP as potentials: what the rest of a schedule costs at least, from any state.


def tables_of(instance: GpuSharingInstance, choices: Choices, columns: Columns) -> SlotTables:
    """What the compiled search knows of an instance whose runs of interest are these."""
    last = int((columns.start + columns.slots).max()) - 1
    first, fits = fitting(choices)
    data = choices.tables
    worst = np.where(data.may_share, data.slowdown, 1.0).max(axis=1)
    latest = np.zeros((first[-1], last + 1), dtype=np.int64)
    np.maximum.at(latest, (first[columns.job] + columns.mode, columns.start), columns.start + columns.slots - 1)
    return SlotTables(
        arrival=data.arrival.astype(np.int64),
        gpus=data.gpus.astype(np.int64),
        worst=worst,
        first=first,
        work=np.array([float(mode.work) for choice in choices.jobs for mode in choice.modes]),
        slowdown=data.slowdown.copy(),
        fits=fits,
        latest=latest,
        shortest=shortest_runs(columns, len(choices.jobs)),
        total=instance.total_gpus,
        last=last,
    )


Sharing = tuple[Ints, Ints, NDArray[np.bool_]]


def potential(
    choices: Choices, columns: Columns, sharing: Sharing, bound: ColumnBound, tables: SlotTables
) -> Potentials:
    """One potential, with a first axis of length 1, from the prices of an LP of this instance or of a rest of it.

    Any prices >= 0 bound the rest of any schedule from below (Lagrange): a run of job j costs its JCT, and
    ``G_j (idle - alone)`` in each slot, less ``unspent`` times the slots that it may lose, less ``unshared`` for each
    GPU that it could share with a job in a slot; a GPU shared by two jobs costs what its column of the LP does, no less
    than 0, in each slot, and where both run already, without ``unshared``, it may be less; N GPUs are worth ``idle`` in
    each slot. Where the LP has no column of a kind, ``alone = idle``, so that nothing costs less than 0 beside it.

    Returns
    -------
    Potentials
        ``worth[t]`` of all GPUs from slot t on; ``held[q, t]`` of a gang up to slot t; ``unspent[q]``;
        ``least_wait[j, t]`` the least of a run that starts in t or later; ``least_start[q, t]`` in t;
        up to slot t: ``pair[q, r, t]`` of a shared GPU, ``fixed[q, r, t]`` of one shared by running jobs, ``lower`` the
        part of that below 0, and ``side[q, k, t]`` of all GPUs that a kind could share with a job.
    """
    first, last = tables.first, tables.last
    kinds = len(tables.work)
    job = np.arange(len(tables.gpus)).repeat(np.diff(first))
    gpus = tables.gpus[job]
    known = min(last, len(bound.idle))
    idle, alone = np.zeros(last + 3), np.zeros((kinds, last + 3))
    idle[1 : known + 1] = bound.idle[:known]
    slots = np.arange(1, known + 1)
    priced = (bound.window[:, :1] <= slots) & (slots <= bound.window[:, 1:])
    alone[:, 1 : known + 1] = np.where(priced, bound.alone[:, :known], bound.idle[:known])
    unspent = bound.unspent
    held = np.cumsum(gpus[:, None] * (idle - alone), axis=1)
    worth = tables.total * np.cumsum(idle[::-1])[::-1]
    kind = first[columns.job] + columns.mode
    cost = columns.cost - unspent[kind] * columns.slack
    cost = cost + held[kind, columns.start + columns.slots - 1] - held[kind, columns.start - 1]
    jobs = len(tables.gpus)
    size = np.minimum(tables.gpus[job][:, None], tables.gpus)
    unshared = np.zeros((kinds, jobs, last + 3))
    unshared[:, :, 1 : known + 1] = bound.unshared[:, :, :known] * size[:, :, None]
    owner, when, able = sharing
    cost = cost - np.bincount(owner, (unshared[kind[owner], :, when] * able).sum(axis=1), len(cost))
    least_start = np.full((kinds, last + 3), np.inf)
    np.minimum.at(least_start, (kind, columns.start), cost)
    by_job = np.minimum.reduceat(least_start, first[:-1], axis=0)
    least_wait = np.minimum.accumulate(by_job[:, ::-1], axis=1)[:, ::-1]
    loss = mean_loss(choices, job[:, None], job[None, :]) * unspent[:, None]
    shared = (alone - idle)[:, None, :] + alone[None, :, :] + (loss + loss.T)[:, :, None]
    shared[:, :, 0] = 0.0
    fixed = shared
    shared = fixed + (unshared / size[:, :, None])[:, job] + (unshared / size[:, :, None])[:, job].transpose(1, 0, 2)
    # Tolerances of the LP make some of them negative, very little: what that may come to is taken off.
    size = size[:, job]
    worth = worth + float((-np.minimum(shared, 0.0).sum(axis=2) * size)[tables.fits].sum()) + 1e-6
    pair = np.cumsum(np.maximum(shared, 0.0), axis=2)
    lower = np.cumsum(np.minimum(fixed, 0.0), axis=2)
    parts = (worth, held, unspent, least_wait, least_start, pair)
    return Potentials(*(part[None] for part in (*parts, np.cumsum(fixed, axis=2), lower, np.cumsum(unshared, axis=2))))


_JOBS = 40
"""Jobs are bits of a number, which has room for 62; from 32 on memory no longer holds `STATES`, for 40 it holds 70%."""
_SLOTS = 500
"""Beyond, rounding could come to more than `NEAR`."""
STATES = 1_000_000
"""Of a slot; beyond, the search ends without a proof."""
_BYTES = 2e9
_TOLERANCE = 1e-6
_LEVELS = 100_000
"""Levels of the search after which the clock and the work are looked at."""
_COST = 3e-7
"""Work of a level of the search, about its seconds."""
_LP_COST = 5e-5
"""Work of an LP for each slot of its runs, about its seconds."""
_MANY = 1_000
"""States of a slot from which on further potentials are tried."""
_PRICED = 1.0
"""Their LPs' work over that of the search so far, at most: an LP can take far longer than what it saves."""
_POTENTIALS = 32
_PRICE_BYTES = 2e8
_TRIES = 20
_WORTH = 0.97
"""Potentials are tried until one leaves more than this share of the states."""


def fits(instance: GpuSharingInstance, columns: Columns) -> bool:
    """Whether the states of an instance with these runs can be written down."""
    last = int((columns.start + columns.slots).max(initial=1)) - 1
    shared = sorted(job.gpus for job in instance.jobs)[-2:][0]
    return len(instance.jobs) <= _JOBS and last <= _SLOTS and shared <= MOST_SHARED


@dataclass
class DynamicProgram:
    """All schedules of a sum of at most `most`, slot by slot.

    A state is which jobs are done, running and waiting, what the running ones have left, and which GPUs they share.
    Successors start some of the waiting jobs. A state is dropped

    - where potentials show that it costs more than `most`;
    - where another with the same jobs done and running and the same GPUs shared costs no more and has no more left of
      any job (with no fewer steps, so that no less fits beside it): what follows the one can follow the other;
    - where a job starts that shares with none of the jobs that ran before, although its GPUs were free in the slot
      before: it could start there, and nothing would end later.

    The last drops no optimum, so it does no harm beside the second: a job that starts in t + 1 beside none that ran in
    t, where its GPUs were free, can start in t. It runs alone there, at rate 1; its later partners and the GPUs are the
    same. Its old last slot gave at most 1, so it ends at least a slot earlier and nobody ends later: the sum falls.

    Where rounding hides whether a job is done, the search ends without a proof.
    """

    instance: GpuSharingInstance
    choices: Choices
    columns: Columns
    best: Incumbent
    until: Deadline = NO_DEADLINE
    most_work: float = math.inf
    states: int = 0

    def __post_init__(self) -> None:
        self._tables = tables_of(self.instance, self.choices, self.columns)
        self._sharing = can_share(self.choices, self.columns)
        self._rng = np.random.default_rng(self.best.options.seed)
        n = len(self.instance.jobs)
        size = min(_BYTES, (self.best.options.memory_limit or math.inf) / 2)
        most = max(2, min(STATES, int(size / 2 / (80 + 14 * n + n * (n - 1) // 2))))
        table = 1 << (2 * most - 1).bit_length()
        self._rooms = room(n, most, table), room(n, most, table)

    def search(self, prices: ColumnBound, most: int) -> tuple[bool, OverlapSchedule | None]:
        """Whether all schedules of at most `most` were looked at, and the best of them."""
        n, tables = len(self.instance.jobs), self._tables
        one = self._potential(prices)
        self._places = max(2, min(_POTENTIALS, int(_PRICE_BYTES / sum(part.nbytes for part in one))))
        potentials = Potentials(*(np.zeros((self._places, *part.shape[1:])) for part in one))
        count = _put(potentials, 0, one)
        best = Best(
            np.zeros(n, dtype=np.int16),
            np.zeros(n, dtype=np.int16),
            np.zeros(n, dtype=np.int16),
            np.zeros((n, n), dtype=np.int64),
            np.array([1, 0, 0, most + 1], dtype=np.int64),
        )
        limit = most + _TOLERANCE
        self._priced = 0.0
        node, levels = empty_node(n), empty_levels(n, tables.total)
        here, after = self._rooms
        for part in here[:-1]:
            part[0] = 0
        here.bound[0] = potentials.least_wait[0, :, 1].sum() - potentials.worth[0, 1]
        for slot in range(1, tables.last + 1):
            used, best.sums[USED] = int(best.sums[USED]), 0
            after.table[:] = -1
            first = 0
            while first < used:
                tried = int(best.sums[TRIED])
                stop = tried + _LEVELS
                first = expand(
                    slot, first, used, stop, count, limit, node, levels, here, after, tables, potentials, best
                )
                self.best.work += _COST * (int(best.sums[TRIED]) - tried)
                if best.sums[LOST] or self._over():
                    return False, None
            self.states += int(best.sums[USED])
            count = self._sharpen(slot, count, limit, after, potentials, best.sums)
            here, after = after, here
        if best.sums[LEAST] > most:
            return True, None
        start, end = best.start.astype(np.int64), best.end.astype(np.int64)
        return True, OverlapSchedule(start, end, best.kind - tables.first[:-1], best.shared, int(end.sum()))

    def _over(self) -> bool:
        return self.until.passed or self.best.work > self.most_work or self.best.finished()

    def _potential(self, prices: ColumnBound) -> Potentials:
        return potential(self.choices, self.columns, self._sharing, prices, self._tables)

    def _sharpen(self, slot: int, count: int, limit: float, states: States, potentials: Potentials, sums: Ints) -> int:
        """Drop states by prices of LPs of what is left at some of them; how many potentials there are now."""
        alive = np.flatnonzero(~states.dead[: sums[USED]])
        for _ in range(_TRIES):
            if len(alive) < _MANY or self._over():
                break
            rest = self._rest(slot, int(self._rng.choice(alive)), states)
            costs = _LP_COST * int(rest.slots.sum())
            if self._priced + costs > _PRICED * _COST * sums[TRIED]:
                break
            prices = column_bound(self.instance, self.choices, rest, self.until, by_mode=True)
            self._priced += costs
            self.best.work += costs
            if prices is None:
                break
            p = count if count < self._places else int(self._rng.integers(1, self._places))
            count = max(count, _put(potentials, p, self._potential(prices)))
            prune(slot, p, limit, states, self._tables, potentials, sums)
            before, alive = len(alive), np.flatnonzero(~states.dead[: sums[USED]])
            if len(alive) > _WORTH * before:
                break
        return count

    def _rest(self, slot: int, i: int, states: States) -> Columns:
        """The runs that a state leaves: of waiting jobs after the slot, and the ends of the running ones."""
        tables, run = self._tables, int(states.running[i])
        begun = run | int(states.done[i])
        waiting = np.array([not (begun >> j) & 1 for j in range(len(self.instance.jobs))])
        columns = self.columns.only(waiting[self.columns.job] & (self.columns.start > slot))
        parts: list[tuple[Ints, ...]] = [(columns.job, columns.mode, columns.start, columns.slots, columns.cost)]
        slack, loss = [columns.slack], losses(self.choices)
        for j, job in enumerate(self.instance.jobs):
            if (run >> j) & 1:
                remaining, kind = float(states.remaining[i, j]), int(states.kind[i, j])
                most = min(int(tables.latest[kind, states.start[i, j]]) - slot, math.ceil(remaining * tables.worst[j]))
                slots = np.arange(max(1, math.ceil(remaining - NEAR)), max(1, most) + 1)
                same, steps = np.ones_like(slots), kind - int(tables.first[j])
                parts.append((same * j, same * steps, same * (slot + 1), slots, slot + slots - job.arrival + 1))
                slack.append(spare(loss[j], np.maximum(slots - remaining, 0.0)))
        return Columns.joined(parts, slack)


def _put(potentials: Potentials, p: int, one: Potentials) -> int:
    """Put a potential into place `p`; the number of places up to it."""
    for kept, part in zip(potentials, one, strict=True):
        kept[p] = part[0]
    return p + 1
