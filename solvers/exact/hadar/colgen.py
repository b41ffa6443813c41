"""Method ``colgen`` of hadar: column generation for P2 (or P1), integer master, branch and price (paper 002, III-B)."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Json, Solution, parsed
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.instance import HadarInstance, HadarSolution
from schedgap.formulations.hadar.placement import solution_from_levels
from schedgap.formulations.hadar.tables import ProgressTables, in_units, small_units, tables
from schedgap.solvers.branch_and_price import BranchAndPrice
from schedgap.solvers.column_generation import (
    Column,
    Generated,
    GenerationLimits,
    GenerationStatus,
    IntegerProgram,
    Master,
    Priced,
    RowBounds,
    SearchLimits,
)
from schedgap.solvers.exact.hadar.list_search import MOST_TYPES, ScheduleChoices
from schedgap.solvers.exact.hadar.schedules import (
    Pool,
    Prices,
    Rules,
    Schedule,
    Scheduler,
    branch,
    fix_by_bound,
    schedule_of,
)
from schedgap.solvers.linear_program import INFINITY
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

# P3's solution: prices of devices, payoffs of jobs, and the two checks that make them optimal.


def duals_report(
    instance: HadarInstance, scheduler: Scheduler, root: Generated, rules: Sequence[Rules]
) -> dict[str, Json]:
    """Prices k^r(t), payoffs mu_j, and how far they are from solving P3 together with the LP's weights.

    A type has the same price on every machine, as the problem has no locality. Residuals, all 0 in exact
    arithmetic:

    - ``dual_infeasibility``: max_j (best payoff at the prices - mu_j), from exact pricing over all schedules;
    - ``strong_duality``: |sum c k + sum mu - LP value|;
    - ``row_slackness``: max over (type, slot) of price times unused devices;
    - ``column_slackness``: max over columns of weight times (mu_j - payoff);
    - ``job_slackness``: max over jobs of mu_j times the share that is not chosen (P2).

    Returns ``prices`` {type: (T,) list}, ``payoffs`` {job: mu}, ``duality`` {residual: value}.
    """
    data = scheduler.data
    duals = np.maximum(root.master_duals, 0.0)
    price = scheduler.prices(duals)
    mu = np.array(root.master_payoffs, dtype=float)
    if not instance.all_jobs_must_finish:
        mu = np.maximum(mu, 0.0)
    used = np.zeros(scheduler.rows())
    share = np.zeros(len(data.jobs))
    column_slackness = 0.0
    for column, weight in zip(root.columns, root.weights, strict=True):
        if weight > 0:
            np.add.at(used, column.rows, weight * column.values)
            share[column.group] += weight
            payoff = column.objective - float(duals[column.rows] @ column.values)
            column_slackness = max(column_slackness, float(weight) * abs(mu[column.group] - payoff))
    capacity = np.tile(data.capacity.astype(float), scheduler.horizon)
    infeasible = 0.0
    for j in range(len(data.jobs)):
        payoff_by_slot, _ = scheduler.best(j, price, rules[j])
        best = float(payoff_by_slot.max())
        if np.isfinite(best):
            infeasible = max(infeasible, best - float(mu[j]))
    value = float(root.value or 0.0)
    return {
        "prices": {
            kind: [float(x) for x in price.devices[1:, position]] for position, kind in enumerate(instance.types)
        },
        "payoffs": {job.id: float(m) for job, m in zip(instance.jobs, mu, strict=True)},
        "residuals": {
            "dual_infeasibility": infeasible,
            "strong_duality": abs(float(capacity @ duals) + float(mu.sum()) - value),
            "row_slackness": float(np.max(duals * np.maximum(0.0, capacity - used), initial=0.0)),
            "column_slackness": column_slackness,
            "job_slackness": float(np.max(np.abs(mu) * np.abs(1 - share), initial=0.0)),
        },
    }


# A compact program for what branch and price leaves open: finish slots and levels, devices by Hall's condition.
#
# Variables are ``f[j,t]`` (job j finishes in slot t) and ``z[j,t,l]`` (it runs at level l). Instead of devices by type,
# for every set S of types the gangs that may only use types of S want at most what S has: that is exact, see
# :class:`schedgap.solvers.exact.hadar.list_search.Packing`. Finish slots that a bound has ruled out are left out, the
# cuts of the search are rows, and only solutions better than the incumbent are asked for.

MARGIN = 4e-10
"""What is looked for is better than the incumbent by this, relatively; optimal means within 1e-9."""
ROUNDING = 1e-10
"""What HiGHS's bound may be off by, relatively, where utilities are far above its tolerances."""


@dataclass(frozen=True)
class CompactAnswer:
    """What the program gave."""

    chosen: list[Schedule | None] | None  # schedules of a solution better than the incumbent, or None
    # a valid upper bound on every solution that keeps the rules and beats the incumbent; None where unknown
    bound: float | None
    complete: bool  # the search was finished: `chosen` is the best, or nothing beats the incumbent


class Compact:
    """The program of an instance under rules; solved by HiGHS from arrays.

    Parameters
    ----------
    scheduler : jobs and cuts
    rules : of the root, with finish slots fixed by bounds
    """

    def __init__(self, scheduler: Scheduler, rules: Sequence[Rules]) -> None:
        self.scheduler = scheduler
        self.rules = rules
        self.cost: list[float] = []
        self.finish: dict[tuple[int, int], int] = {}
        self.run: dict[tuple[int, int, int], int] = {}
        self.rows: list[tuple[dict[int, float], float, float]] = []
        for j in range(len(rules)):
            self._job(j)
        self._capacity()

    def _variable(self, cost: float) -> int:
        self.cost.append(cost)
        return len(self.cost) - 1

    def _job(self, j: int) -> None:
        data, rule = self.scheduler.data, self.rules[j]
        job = data.jobs[j]
        finishes = [int(t) for t in np.flatnonzero(rule.finish)]
        if not finishes or job.levels == 0:
            return
        last = finishes[-1]
        step, target = small_units(job.step, job.target, data.horizon - job.arrival + 1)
        for t in finishes:
            self.finish[j, t] = self._variable(float(job.utility[t]))
        for t in range(job.arrival, last + 1):
            for level in range(job.levels):
                if rule.permit[t, level + 1]:
                    self.run[j, t, level] = self._variable(0.0)
        self.rows.append(({self.finish[j, t]: 1.0 for t in finishes}, 1.0 if rule.must else 0.0, 1.0))
        progress: dict[int, float] = {}
        for t in range(job.arrival, last + 1):
            running = [level for level in range(job.levels) if (j, t, level) in self.run]
            row = {self.run[j, t, level]: 1.0 for level in running}
            row.update({self.finish[j, u]: -1.0 for u in finishes if u >= t})
            self.rows.append((row, -INFINITY, 0.0))
            progress.update({self.run[j, t, level]: float(step[level]) for level in running})
            if rule.finish[t]:
                done = {self.finish[j, u]: -float(target) for u in finishes if u <= t}
                self.rows.append(({**progress, **done}, 0.0, INFINITY))

    def _capacity(self) -> None:
        data, cuts = self.scheduler.data, self.scheduler.cuts
        wanted: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        kinds = len(data.types)
        masks = {
            (j, level): sum(1 << int(r) for r in np.flatnonzero(data.jobs[j].allowed[level]))
            for j, _, level in self.run
        }
        for (j, t, level), variable in self.run.items():
            for s in range(1, 1 << kinds):
                if s & masks[j, level] == masks[j, level]:
                    wanted[t, s][variable] = float(data.jobs[j].workers)
        for (_, s), row in wanted.items():
            room = float(sum(int(c) for r, c in enumerate(data.capacity) if s >> r & 1))
            if sum(row.values()) > room:
                self.rows.append((row, -INFINITY, room))
        by_slot: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for j, t, level in self.run:
            by_slot[t].append((j, level, self.run[j, t, level]))
        for slot, alpha in zip(cuts.slots.tolist(), cuts.alpha, strict=True):
            row = {v: float(alpha[cuts.classes[j][level]]) for j, level, v in by_slot[slot]}
            row = {v: a for v, a in row.items() if a > 0}
            if sum(row.values()) > 1:
                self.rows.append((row, -INFINITY, 1.0))

    def solve(self, above: float, bound: float, limits: SearchLimits) -> CompactAnswer:
        """Look for the best solution worth more than `above`.

        Parameters
        ----------
        above : the incumbent's value, -inf where there is none
        bound : a valid upper bound
        limits : of the search
        """
        n = len(self.cost)
        if n == 0:
            return CompactAnswer([None] * len(self.rules), 0.0, True) if above < 0 else CompactAnswer(None, None, True)
        cost = np.array(self.cost)
        program = IntegerProgram()
        program.add_columns(-cost, np.ones(n))
        rows = list(self.rows)
        if np.isfinite(above):
            objective = {i: float(c) for i, c in enumerate(cost) if c}
            rows.append((objective, above * (1 + MARGIN), bound * (1 + MARGIN)))
        low, high = np.array([low for _, low, _ in rows]), np.array([high for _, _, high in rows])
        program.add_rows(low, high, [(np.array(list(row)), np.array(list(row.values()))) for row, _, _ in rows])
        answer = program.search(limits)
        if answer.complete and answer.x is None:
            return CompactAnswer(None, above * (1 + MARGIN) if np.isfinite(above) else None, True)
        chosen = None if answer.x is None else self._chosen(answer.x)
        proven = None if answer.bound is None else -answer.bound * (1 + ROUNDING)
        return CompactAnswer(chosen, proven, answer.complete)

    def _chosen(self, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[Schedule | None]:
        """The schedules of a solution, cut where the work is done."""
        data = self.scheduler.data
        lines: dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
        for (j, t, level), variable in self.run.items():
            if values[variable] > 0.5:
                lines.setdefault(j, np.zeros(data.horizon + 1, dtype=np.int64))[t] = level + 1
        chosen: list[Schedule | None] = [None] * len(data.jobs)
        for j, line in lines.items():
            done = 0
            for t in np.flatnonzero(line).tolist():
                done += int(data.jobs[j].step[line[t] - 1])
                if done >= data.jobs[j].target:
                    line[t + 1 :] = 0
                    chosen[j] = Schedule(line, t)
                    break
        return chosen


Floats = NDArray[np.float64]
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
    """

    round_every = 5
    node_rounds = 30
    root_cut_rounds = 40
    node_cut_rounds = 2

    def __init__(
        self, instance: HadarInstance, options: SolveOptions, check: Callable[[Solution], CheckReport], unit: float
    ) -> None:
        self.instance = instance
        self.data: ProgressTables = tables(instance)
        self.must = instance.all_jobs_must_finish
        self.scheduler = Scheduler(self.data, MOST_STATES)
        choices = ScheduleChoices(self.scheduler, self.must, options.seed)
        super().__init__(options, choices, check, unit=unit)
        self.master = Master(MAXIMISE, self.scheduler.capacity_rows(), [self.must] * len(self.data.jobs))
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
        if self.options.start is not None:
            given = self.scheduler.from_solution(self.instance, self.options.start)
            self.accept(self.choices.choice(given))
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
        """Of devices and of cuts."""
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


def _too_large(data: ProgressTables) -> bool:
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
    if _too_large(data):
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
