"""A bounded dynamic program for gpu-sharing: slot by slot, all states that may be part of a better schedule.

Idea: from slot to slot only what is left of the running jobs matters; states that cost too much by prices, or that
another one stands for, are dropped. Source: dynamic programming with bounds (Morin and Marsten, 1976). Guarantee:
what is dropped loses no optimum (`DynamicProgram`). It ends without a proof beyond 1,000,000 states, at a limit, and
where rounding hides whether a job is done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices
from schedgap.solvers.exact.gpu_sharing.lp import (
    ColumnBound,
    Columns,
    can_share,
    column_bound,
    losses,
    spare,
)
from schedgap.solvers.exact.gpu_sharing.potentials import potential, tables_of
from schedgap.solvers.exact.gpu_sharing.search import OverlapSchedule
from schedgap.solvers.exact.gpu_sharing.states import (
    LEAST,
    LOST,
    MOST_SHARED,
    NEAR,
    TRIED,
    USED,
    Best,
    Potentials,
    States,
    empty_levels,
    empty_node,
    prune,
    room,
)
from schedgap.solvers.exact.gpu_sharing.successors import compile, expand
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import NO_DEADLINE, Deadline

compile()


_JOBS = 40
"""Jobs are bits of a number, which has room for 62; from 32 on memory no longer holds `STATES`, for 40 it holds 70%."""


_SLOTS = 500
"""Beyond, rounding could come to more than `NEAR`."""


STATES = 1_000_000
"""Most states of a slot; beyond, the search ends without a proof."""


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
