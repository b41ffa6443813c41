"""Method ``colgen`` of hadar: column generation for P2 (or P1), integer master, branch and price (paper 002, III-B).

Idea: a column is a whole schedule of a job; a dynamic program over (slot, progress) prices it for every finish slot.
Cuts come from the hull of what fits one slot, branching is on finish slots and then on what a job does in a slot.
Source: P2 and P3 are the paper's; solving them by columns is ours. Guarantee: the bound holds at every iteration,
whatever the duals; where the compact program closes the rest, its bound is the engine's own. An answer is optimal when
it equals the bound to 1e-9. Proofs of the cuts: `METHODS.md` beside this file.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import solution_from_levels
from schedgap.formulations.hadar.solution import HadarSolution
from schedgap.formulations.hadar.tables import ProgressTables, in_units, tables
from schedgap.solvers.branch_and_price import BranchAndPrice
from schedgap.solvers.column_generation import (
    Column,
    Generated,
    GenerationLimits,
    GenerationStatus,
    Master,
    Priced,
    RowBounds,
)
from schedgap.solvers.exact.hadar.branching import Pool, branch, fix_by_bound, schedule_of
from schedgap.solvers.exact.hadar.compact import Compact
from schedgap.solvers.exact.hadar.duals_report import duals_report
from schedgap.solvers.exact.hadar.own_rows import OwnRows
from schedgap.solvers.exact.hadar.schedule_choices import MOST_TYPES, ScheduleChoices
from schedgap.solvers.exact.hadar.schedules import Prices, Rules, Schedule, Scheduler
from schedgap.solvers.integer_program import SearchLimits
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

JobRules = tuple[Rules, ...]


KEEP_FOR = 40
"""Nodes after which a column that was not used may be forgotten."""


MOST_COLUMNS = 1200
"""Columns above which they are."""


FINE = (2.0**13, 2.0**23)
"""Where the largest utility of a job should be: tolerances of 1e-9 are 1e-13 of it then."""


COMPACT_NODES = 200
"""Nodes of HiGHS in the second of the compact program's tries; the limit grows with ours."""


MOST_JOB_SLOTS = 20_000


MOST_STATES = 5_000
"""Beyond these numbers of (job, slot) pairs, or of progress states of a job, nothing is tried."""


class ScheduleSearch(BranchAndPrice[JobRules, Schedule, Prices]):
    """Branch and price over whole-horizon schedules.

    Parameters
    ----------
    instance : the instance; ``all_jobs_must_finish`` makes equality rows (P1)
    options : limits, seed, warm start, reporting
    check : the checker for the instance in its own units
    unit : what a utility of 1 is worth there
    user_rows : rows and worth of a user's own
    """

    round_every = 5
    node_rounds = 30
    root_cut_rounds = 40
    node_cut_rounds = 2

    def __init__(
        self,
        instance: HadarInstance,
        options: SolveOptions,
        check: Callable[[Solution], CheckReport],
        unit: float,
        user_rows: OwnRows | None = None,
    ) -> None:
        self.instance = instance
        self.data: ProgressTables = tables(instance)
        self.must = instance.all_jobs_must_finish
        self.scheduler = Scheduler(self.data, MOST_STATES, user_rows)
        choices = ScheduleChoices(self.scheduler, self.must, options.seed)
        super().__init__(options, choices, check, unit=unit)
        rows = [*self.scheduler.capacity_rows(), *self.scheduler.user_limits()]
        self.master = Master(MAXIMISE, rows, [self.must] * len(self.data.jobs))
        self.packing = choices.packing
        self.pool = Pool(len(self.data.jobs))
        self.last_used: list[int] = []

    def root_rules(self) -> JobRules:
        """All schedules; of P1 those of all jobs."""
        free = self.scheduler.free_rules
        return tuple(rule.finishing(rule.finish, True) if self.must else rule for rule in free)

    def start(self) -> None:
        """A first incumbent at no prices, or the start solution; its columns."""
        zero = self.scheduler.no_prices()
        first = self.choices.complete([], zero)
        self.accept(self.choices.improve(first.items, zero, 100, self.stopped))
        self.accept_start()
        self.add_incumbent()

    def accept_start(self) -> None:
        """The schedules of the start solution, where there is one."""
        if self.options.start is not None:
            given = self.scheduler.from_solution(self.instance, self.options.start)
            self.accept(self.choices.choice(given))

    def add_incumbent(self) -> None:
        """Its columns for the master."""
        if self.incumbent is not None:
            order = np.tile(np.arange(self.scheduler.kinds), (self.data.horizon + 1, 1))
            chosen = enumerate(self.incumbent.items)
            self.master.add([self.scheduler.column(j, s.levels, order, s.finish) for j, s in chosen if s is not None])

    def relax(self, rules: JobRules, limits: GenerationLimits) -> Generated:
        """LP over all schedules that keep the rules."""
        self._forget()
        allowed = self.pool.allowed(self.master.columns, rules, self.scheduler.free_rules)
        self.master.restrict(allowed, np.array([rule.must for rule in rules], dtype=bool))

        def pricing(duals: Floats, weight: float) -> Priced:
            self.pricings += 1
            return self.scheduler.price_all(duals, weight, rules)

        generated = self.master.generate(pricing, limits)
        self.last_used.extend([self.nodes] * (len(self.master.columns) - len(self.last_used)))
        for position in np.flatnonzero(generated.weights > 1e-9):
            self.last_used[position] = self.nodes
        return generated

    def _forget(self) -> None:
        """Drop columns that no recent node used, so that the master stays small."""
        keep = self.nodes - np.array(self.last_used) <= KEEP_FOR
        if len(keep) > MOST_COLUMNS and not keep.all():
            self.master.drop(keep)
            self.last_used = [used for used, kept in zip(self.last_used, keep, strict=True) if kept]
            self.pool = Pool(len(self.data.jobs))

    def separate(self, generated: Generated) -> bool:
        """Add the cuts that the weights break, as rows of the master."""
        cuts = self.scheduler.cuts
        used = np.flatnonzero(generated.weights > 1e-9).tolist()
        columns = generated.columns
        load = cuts.load(
            [(columns[i].group, schedule_of(columns[i]).levels, float(generated.weights[i])) for i in used]
        )
        first = len(cuts.slots)
        if not cuts.separate(load):
            return False
        rows: list[list[int]] = [[] for _ in range(len(cuts.slots) - first)]
        values: list[list[float]] = [[] for _ in rows]
        for position, column in enumerate(self.master.columns):
            numbers, coefficients = cuts.entries(column.group, schedule_of(column).levels, first)
            for number, coefficient in zip(numbers, coefficients, strict=True):
                rows[number - first].append(position)
                values[number - first].append(float(coefficient))
        entries = [(np.array(r, dtype=np.int64), np.array(v)) for r, v in zip(rows, values, strict=True)]
        self.master.add_rows([RowBounds(upper=1.0)] * len(rows), entries)
        return True

    def branch(self, rules: JobRules, generated: Generated) -> Sequence[JobRules] | None:
        """Tighten by the bound, then branch on finish slots or on what a job does in a slot."""
        fixed = rules
        if self.incumbent is not None:
            fixed = fix_by_bound(self.scheduler, rules, generated, self.value)
        return branch(self.scheduler, fixed, generated.columns, generated.weights)

    def item(self, column: Column) -> Schedule:
        """Its schedule."""
        return schedule_of(column)

    def prices(self, duals: Floats) -> Prices:
        """The prices of devices and of cuts."""
        return self.scheduler.prices(duals)

    def solution_of(self, items: Sequence[Schedule | None]) -> Solution:
        """Devices for the schedules.

        Raises Disagreement: there are none, although the schedules fit by Hall's condition.
        """
        levels = {
            j: {int(t): int(schedule.levels[t]) - 1 for t in np.flatnonzero(schedule.levels)}
            for j, schedule in enumerate(items)
            if schedule is not None
        }
        found = solution_from_levels(self.instance, self.data, levels)
        if found is None:
            raise Disagreement("hadar: schedules that fit by Hall's condition could not be placed")
        return found

    def solved_root(self, root: Generated) -> None:
        """Report prices and payoffs."""
        report = duals_report(self.instance, self.scheduler, root, self.root_rules())
        prices = {kind: [price * self.unit for price in row] for kind, row in report.pop("prices").items()}
        rest = {name: {key: value * self.unit for key, value in row.items()} for name, row in report.items()}
        self.facts.update(prices=prices, **rest)

    def polish(self, root: Generated, attempt: int) -> bool:
        """The integer master, once; then the compact program on what the root's bound leaves open.

        With cuts the integer master takes seconds, and the compact program finds as much sooner.
        """
        if root.status is not GenerationStatus.CONVERGED or root.bound is None:
            return False
        if (
            attempt == 0
            and not len(self.scheduler.cuts.slots)
            and self.best.stage("integer master")
            and self.solve_master(root, self.master.columns, self.master.upper)
        ):
            self.round(root, self.root_rounds)
        if not self.worthwhile(root.bound) or not self.best.stage("compact program"):
            return False
        return self._solve_compactly(root, 1 if attempt == 0 else COMPACT_NODES * 4 ** (attempt - 1))

    def _solve_compactly(self, root: Generated, nodes: int) -> bool:
        assert root.bound is not None
        rules = self.root_rules()
        if self.incumbent is not None:
            rules = fix_by_bound(self.scheduler, rules, root, self.value)
        limits = SearchLimits(nodes, self.options.deadline, seed=self.options.seed, tolerance=1e-7)
        answer = Compact(self.scheduler, rules).solve(self.value, root.bound, limits)
        if answer.chosen is not None:
            self.accept(self.choices.choice(answer.chosen))
        self.facts["compact_runs"] = int(self.facts.get("compact_runs", 0)) + 1
        if answer.bound is not None:
            self.lower(answer.bound)
        elif answer.complete:
            self.lower(self.value)
        return answer.complete


def too_large(data: ProgressTables) -> bool:
    """Whether exact pricing is out of reach; rounded progress would make the bound wrong, so it is not tried."""
    if len(data.types) > MOST_TYPES or len(data.jobs) * data.horizon > MOST_JOB_SLOTS:
        return True
    return not Scheduler(data, MOST_STATES).exact


def solve_colgen(instance: HadarInstance, options: SolveOptions) -> Result:
    """Solve P2 (or P1) by column generation and branch and price.

    The LP over all whole-horizon schedules, LP(P2), bounds the optimum; at its duals a job's best schedule is a
    multiple-choice covering knapsack, solved for all finish slots by one dynamic program. Rounding, a local
    search and the integer restricted master give solutions; branching on finish slots, then on what a job does in
    a slot, closes the gap. Returns ``info``: ``lp_bound``; ``prices`` by type and slot and ``payoffs`` by job, an
    optimal solution of P3, with ``duality`` (strong duality and complementary slackness, residuals); ``nodes``,
    ``columns``, ``pricings``.

    Notes
    -----
    With more than 20,000 (job, slot) pairs, 5,000 progress states of a job or 12 device types the answer is unknown,
    with the certified bound beside it. One pricing is O(sum_j T S_j L_j) for S_j progress states. Source: paper
    002, (2) to (4), (8); the
    certificate of every iteration is in :mod:`schedgap.solvers.column_generation`.
    """
    began = time.monotonic()
    data = tables(instance)
    if too_large(data):
        seconds = time.monotonic() - began
        info = {"reason": "too many jobs, slots, device types or progress states for exact schedules"}
        return Result(Status.UNKNOWN, termination=Termination.TOO_LARGE, solve_seconds=seconds, info=info)
    if instance.all_jobs_must_finish and not data.possible.all():
        return Result(Status.INFEASIBLE, termination=Termination.PROVEN, solve_seconds=0.0, engine="highs")
    scaled, unit = in_units(instance, FINE)
    search = ScheduleSearch(scaled, options, partial(parsed(check, HadarSolution), instance), unit)
    search.run()
    search.best.info.update(columns=len(search.master.columns), cuts=len(search.scheduler.cuts.slots))
    return search.result()
