"""Method ``lns`` of ddl-cluster: jobs get their GPUs, partners and starts anew from an interval model.

Idea: take the jobs of about one time out, let an interval model start them anew beside the others, then lay all out
in that order. Source: large neighbourhood search (Shaw, 1998). Every schedule is scored by the checker; nothing is
proven.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.ddl_cluster.check import check
from schedgap.formulations.ddl_cluster.clock import LARGEST_SUM
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution
from schedgap.solvers.exact.ddl_cluster.block_orders import WalkTables, blocks_of, order_of, walk
from schedgap.solvers.exact.ddl_cluster.bound import lower_bound
from schedgap.solvers.exact.ddl_cluster.gangs import Block, Gangs, Laid
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.neighbourhoods import Neighbourhoods, StepOutcome, searched, with_companions
from schedgap.solvers.result import Result, SolveOptions

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from schedgap.solvers.cp_sat.search import Value

RESOLUTION = 10**6
"""Units of time until the last finish. What a job takes is rounded down to whole ones, so that the present schedule is
one of the model's; a gain of less than two units a job may be rounding, and is not asked for."""
MOST = 200
"""Jobs that one model has."""
MOST_WALKED = 2000
"""Jobs of a walk at most: it looks up every pair of them."""
SHARE = 0.5
"""Share of the work of a step for the interval model: of this one CP-SAT counts a tenth of its seconds."""
PLACE_WORK = 4e-9
"""Work of a walk's move for every job and server; about its seconds."""
BURST = (0.1, 1.0)
"""Work of one walk."""
HEAT = (3e-4, 5e-3)
"""At its beginning, relative to the sum of completion times."""
PARTNERS = 4
"""For how many others, those with which it gains most, a model may let a job share its GPUs."""


def solve_lns(instance: DdlClusterInstance, options: SolveOptions) -> Result:
    """Improve the start that `options` give, until a limit; see ``neighbourhoods.searched``.

    The search is among schedules whose GPUs are held by one job at a time, or by two from the same moment; it begins
    with list scheduling. The start is kept until such a schedule is better.
    """
    best = Incumbent(MINIMISE, options, partial(parsed(check, DdlClusterSolution), instance))
    best.tighten(lower_bound(instance))
    return searched(best, lambda: GangNeighbourhoods(instance, best))


class GangNeighbourhoods(Neighbourhoods):
    """Jobs of about one time: when they start, and which two of them share GPUs.

    Two that share GPUs are taken out together. Those that are put back hold GPUs beside those that stay; the
    model counts only the GPUs of the whole cluster. Then every job starts as early as its servers allow, in this order.

    Parameters
    ----------
    best : with a solution
    """

    kinds: tuple[str, ...] = ("moment", "wide", "any")

    def __init__(self, instance: DdlClusterInstance, best: Incumbent) -> None:
        self.instance, self.best, self.gangs = instance, best, Gangs(instance)
        self.parts = len(instance.jobs)
        self._scale: int = self.parts * 10**self.gangs.clock.digits
        self._arrivals = sum(self.gangs.arrival)
        self._heat = 0.0
        self._burst = 0.0
        self._state = np.zeros(1, dtype=np.int64)
        self._tables: WalkTables | None = None
        longest = instance.longest_run * 10**self.gangs.clock.digits
        if not any(instance.given) and self.parts <= MOST_WALKED and self.parts * longest < LARGEST_SUM:
            self.kinds = ("walk", *self.kinds)
            self._tables = self.gangs.tables()
        self._take(self.gangs.best_listed())

    def _take(self, laid: Laid) -> None:
        """Make a schedule the present one."""
        self.laid = laid
        self.block = {j: block for block in laid.blocks for j in block.jobs}
        self.end = {block: max(laid.finish[j] for j in block.jobs) for block in laid.blocks}

    def value(self) -> float:
        """The mean JCT of the present schedule, in seconds."""
        return (self.laid.total - self._arrivals) / self._scale

    def solution(self) -> Solution:
        """It as a solution."""
        return self.gangs.solution(self.laid)

    # -- what is freed ------------------------------------------------------------------------------------------

    def freed(self, kind: str, size: int, rng: np.random.Generator) -> Collection[int]:
        """Jobs near a moment (wide ones only, or any), and those that they share GPUs with; all of them for a walk."""
        self._burst = 0.0
        if kind == "walk":
            self._burst = float(rng.uniform(*BURST))
            self._heat = math.exp(rng.uniform(*np.log(HEAT)))
            self._state[0] = rng.integers(2**48)
            return range(self.parts)
        jobs = [j for j in range(self.parts) if kind != "wide" or self.gangs.wide[j]]
        if not jobs:
            return []
        start = np.array([self.block[j].start for j in jobs], dtype=float)
        since = np.array([self.gangs.arrival[j] for j in jobs], dtype=float)
        end = np.array([self.laid.finish[j] for j in jobs], dtype=float)
        if kind == "any":
            away = rng.uniform(0.0, 1.0, len(jobs))
        else:
            moment = rng.uniform(since[(middle := int(rng.integers(len(jobs))))], end[middle])
            away = np.maximum(0, np.maximum(start - moment, moment - end)) * rng.uniform(0.5, 1.5, len(jobs))
            away += rng.uniform(0.0, 1e-3, len(jobs)) * (end - start)
        chosen = [jobs[i] for i in np.argsort(away, kind="stable")[:size]]
        return with_companions(chosen, lambda j: self.block[j].jobs)

    # -- how it is solved ---------------------------------------------------------------------------------------

    def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
        """The interval model of the freed jobs, exactly; or a walk through orders of all of them."""
        if self._burst:
            return StepOutcome(self._walk(), complete=False)
        if len(parts) > MOST:
            return StepOutcome(better=False, complete=False)
        from schedgap.solvers.cp_sat.search import search_cp

        model = _Model(self, sorted(parts))
        answer = search_cp(model.model, self.best, most_work=SHARE * most_work)
        better, complete = False, answer.infeasible or answer.optimal
        if answer.value is not None:
            stay = [block for block in self.laid.blocks if block.jobs[0] not in parts]
            laid = self.gangs.lay([*stay, *model.blocks(answer.value)])
            better = laid.total < self.laid.total
            complete = complete and better  # else its servers were not free together
            if better:
                self._take(laid)
        return StepOutcome(better, complete)

    def _walk(self) -> bool:
        """Anneal from the present order on."""
        assert self._tables is not None
        cost = self.parts * len(self.gangs.sizes) * PLACE_WORK
        remaining = self.best.seconds_left()
        most = min((x for x in (self._burst, self.best.work_left(), remaining) if x is not None), default=0.0)
        blocks = [block.jobs for block in self.laid.blocks]
        best, now, trial = (order_of(blocks, self.parts) for _ in range(3))
        free = np.zeros((len(self.gangs.sizes), max(self.gangs.sizes) + 1), dtype=np.int64)
        moves = max(1, int(most / cost))
        heat = self._heat * (self.laid.total - self._arrivals)
        found = walk(self._tables, best, now, trial, free, moves, heat, self._state)
        self.best.work += moves * cost
        if found >= self.laid.total:
            return False
        self._take(self.gangs.lay(Block(jobs, place) for place, jobs in enumerate(blocks_of(best))))
        return True


class _Model:
    """The sum of finishes of some jobs, to be less than it is, beside blocks that stay."""

    def __init__(self, there: GangNeighbourhoods, jobs: Sequence[int]) -> None:
        from ortools.sat.python import cp_model

        self.gangs, self.jobs = there.gangs, jobs
        last = max(there.laid.finish)
        self.unit = max(1, last // RESOLUTION)
        self.model = model = cp_model.CpModel()
        high = self._up(last)
        self.start = {j: model.new_int_var(self._up(self.gangs.arrival[j]), high, "") for j in jobs}
        end = {j: model.new_int_var(0, high, "") for j in jobs}
        self.shares = {pair: model.new_bool_var("") for pair in self._pairs()}
        self._held: list[tuple[cp_model.IntervalVar, int]] = []
        for j in jobs:
            self._job(j, end[j], high)
        for block in there.laid.blocks:
            if block.jobs[0] not in self.start:
                low, up = self._up(block.start), self._up(there.end[block])  # those next to each other stay so
                fixed = model.new_fixed_size_interval_var(low, up - low, "")
                self._held.append((fixed, self._demand(block.jobs[0])))
        intervals, demands = [interval for interval, _ in self._held], [demand for _, demand in self._held]
        model.add_cumulative(intervals, demands, sum(self.gangs.sizes))
        total = sum(end.values())
        model.add(total <= sum(self._up(there.laid.finish[j]) - 2 for j in jobs))
        model.minimize(total)
        for j in jobs:
            model.add_hint(self.start[j], self._up(there.block[j].start))
        for pair, literal in self.shares.items():
            model.add_hint(literal, pair == there.block[pair[0]].jobs)

    def _up(self, ticks: int) -> int:
        """Whole units that hold so many ticks."""
        return -(-ticks // self.unit)

    def _pairs(self) -> list[tuple[int, int]]:
        """(host, guest) pairs that may share, the host before the guest; the best of each job."""
        gains: dict[int, list[tuple[float, tuple[int, int]]]] = {j: [] for j in self.jobs}
        alone = self.gangs.alone
        for i, j in enumerate(self.jobs):
            for k in self.jobs[i + 1 :]:
                ends = self.gangs.pair(j, k)
                if ends is not None:
                    gain = sum(ends) / (alone[j] + alone[k] + min(alone[j], alone[k])), (j, k)
                    gains[j].append(gain)
                    gains[k].append(gain)
        return sorted({pair for row in gains.values() for _, pair in sorted(row)[:PARTNERS]})

    def _demand(self, j: int) -> int:
        """GPUs that a job holds: a wide one, whole servers."""
        gpus, sizes = self.gangs.instance.jobs[j].gpus, sorted(self.gangs.sizes, reverse=True)
        if not self.gangs.wide[j] or self.gangs.instance.given[j] is not None:
            return gpus
        return next(room for room in accumulate(sizes) if room >= gpus)

    def _job(self, j: int, end: cp_model.IntVar, high: int) -> None:
        """Its finish, and how long it holds its GPUs."""
        model, gangs, start = self.model, self.gangs, self.start[j]
        alone = model.new_bool_var("")
        hosts = {pair: literal for pair, literal in self.shares.items() if pair[0] == j}
        guests = {pair: literal for pair, literal in self.shares.items() if pair[1] == j}
        model.add_exactly_one([alone, *hosts.values(), *guests.values()])
        length = held = gangs.alone[j] // self.unit * alone
        for pair, literal in hosts.items():
            ends = [ticks // self.unit for ticks in gangs.lengths(pair)]
            length += ends[0] * literal
            held += max(ends) * literal
        for pair, literal in guests.items():
            length += gangs.lengths(pair)[1] // self.unit * literal
            model.add(start == self.start[pair[0]]).only_enforce_if(literal)
        model.add(end == start + length)
        until, taken = model.new_int_var(0, 2 * high, ""), model.new_int_var(0, 2 * high, "")
        model.add(taken == held)
        self._held.append((model.new_interval_var(start, taken, until, ""), self._demand(j)))

    def blocks(self, value: Value) -> Iterable[Block]:
        """The freed jobs as a point of the model has them."""
        guests = {pair[1]: pair[0] for pair, literal in self.shares.items() if value(literal)}
        for j in self.jobs:
            if j not in guests:
                own = (j, *(guest for guest, host in guests.items() if host == j))
                yield Block(own, value(self.start[j]) * self.unit)
