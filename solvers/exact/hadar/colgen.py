"""Method ``colgen`` of hadar: column generation for P2 (or P1), integer master, branch and price (paper 002, III-B)."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE, agrees, gap
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import solution_from_levels
from schedgap.formulations.hadar.tables import Tables, in_units, tables
from schedgap.solvers.column_generation import Column, Generated, Limits, Master, Outcome, Priced, Row
from schedgap.solvers.exact.hadar.branching import Node, Pool, branch, fix_by_bound, node, schedule_of
from schedgap.solvers.exact.hadar.compact import Compact
from schedgap.solvers.exact.hadar.duals import duals_report
from schedgap.solvers.exact.hadar.master import integer_master
from schedgap.solvers.exact.hadar.primal import MOST_TYPES, Chosen, Improver
from schedgap.solvers.exact.hadar.schedules import Rules, Scheduler
from schedgap.solvers.incumbent import optimal
from schedgap.solvers.result import Result, SolveOptions, Status, Termination
from schedgap.solvers.units import told_in

Floats = NDArray[np.float64]

KEEP_FOR = 40
"""Nodes after which a column that was not used may be forgotten."""
MOST_COLUMNS = 1200
"""Columns above which they are."""
COMPACT_EVERY = 60
"""Nodes after which the compact program is tried again; then four times as many, and so on."""
COMPACT_NODES = 200
"""Nodes of HiGHS in the first of these tries; the limit grows with ours."""
CUT_ROUNDS = 2
"""Rounds of cuts at a node; the root has more."""

MOST_JOB_SLOTS = 20_000
MOST_STATES = 5_000
"""Beyond these numbers of (job, slot) pairs, or of progress states of a job, nothing is tried."""

PRUNE = 5e-10
"""A node whose bound is within this of the incumbent, relatively, is closed; optimal means within 1e-9."""

TOLERANCE = 1e-10
"""Relative difference of a linear program's bound and value at which its columns suffice."""
ROUNDING = 1e-10
"""What sums of floats may be off by, relatively."""
FINE = (2.0**13, 2.0**23)
"""Where the largest utility of a job should be: tolerances of 1e-9 are 1e-13 of it then."""


@dataclass
class _Incumbent:
    chosen: Chosen | None = None
    value: float = -np.inf


class BranchAndPrice:
    """One run of branch and price.

    Parameters
    ----------
    instance : the instance; ``all_jobs_must_finish`` makes equality rows (P1)
    options : limits, seed, warm start, reporting
    """

    def __init__(self, instance: HadarInstance, options: SolveOptions) -> None:
        self.instance = instance
        self.options = options
        self.data: Tables = tables(instance)
        self.must = instance.all_jobs_must_finish
        self.scheduler = Scheduler(self.data, MOST_STATES)
        capacity = [float(c) for c in self.data.capacity]
        rows = [Row(upper=capacity[i % self.scheduler.kinds]) for i in range(self.scheduler.rows())]
        self.root_rules = tuple(self.scheduler.free_rules)
        if self.must:
            self.root_rules = tuple(rule.finishing(rule.finish, True) for rule in self.root_rules)
        self.master = Master(MAXIMISE, rows, [self.must] * len(self.data.jobs))
        self.pool = Pool(len(self.data.jobs))
        self.incumbent = _Incumbent()
        self.improver = Improver(self.scheduler, self.must, options.seed)
        self.facts: dict[str, Any] = {}
        self.last_used: list[int] = []
        self.compact_bound = np.inf
        self.nodes = 0
        self.pricings = 0

    # -- incumbents ---------------------------------------------------------------------------------------------

    def offer(self, chosen: Chosen) -> bool:
        """Keep a choice of schedules if it is the best so far."""
        missing, value = self.improver.key(chosen)
        if missing < 0 or value <= self.incumbent.value + 1e-12 * max(1.0, abs(value)):
            return False
        self.incumbent = _Incumbent(list(chosen), value)
        if self.options.report is not None:
            self.options.report(self.solution(), value, None)
        return True

    def solution(self) -> Solution | None:
        """The incumbent as a solution object."""
        if self.incumbent.chosen is None:
            return None
        return self.solution_of(self.incumbent.chosen)

    def solution_of(self, chosen: Chosen) -> Solution:
        levels = {
            j: {int(t): int(schedule.levels[t]) - 1 for t in np.flatnonzero(schedule.levels)}
            for j, schedule in enumerate(chosen)
            if schedule is not None
        }
        found = solution_from_levels(self.instance, self.data, levels)
        if found is None:
            raise Disagreement("hadar: schedules that fit by Hall's condition could not be placed")
        return found

    def round(self, generated: Generated, rounds: int) -> None:
        """Schedules from fractional weights, completed and improved."""
        price = self.scheduler.prices(generated.duals)
        used = np.flatnonzero(generated.weights > 1e-6)
        order = used[np.argsort(-generated.weights[used], kind="stable")]
        wanted = [(self.master.columns[i].group, schedule_of(self.master.columns[i])) for i in order]
        self.offer(self.improver.complete(wanted, price))
        if self.incumbent.chosen is not None:
            self.offer(self.improver.improve(self.incumbent.chosen, price, rounds, lambda: self.stopped))

    # -- search -------------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Whether the time is over."""
        return self.options.deadline.passed

    def relax(self, rules: Sequence[Rules], cutoff: float | None) -> Generated:
        """LP over all schedules that keep the rules."""
        allowed = self.pool.allowed(self.master.columns, rules, self.scheduler.free_rules)
        self.master.restrict(allowed, np.array([rule.must for rule in rules], dtype=bool))

        def pricing(duals: Floats, weight: float) -> Priced:
            self.pricings += 1
            return self.scheduler.price_all(duals, weight, rules)

        limits = Limits(deadline=self.options.deadline, tolerance=TOLERANCE, cutoff=cutoff)
        generated = self.master.generate(pricing, limits)
        self.last_used.extend([self.nodes] * (len(self.master.columns) - len(self.last_used)))
        for position in np.flatnonzero(generated.weights > 1e-9):
            self.last_used[position] = self.nodes
        return generated

    def tighten(self, rules: Sequence[Rules], generated: Generated, rounds: int) -> Generated:
        """Add violated cuts and generate again, up to `rounds` times."""
        best = generated.bound
        for _ in range(rounds):
            if generated.outcome != Outcome.CONVERGED or self.stopped:
                break
            schedules = [
                (self.master.columns[i].group, schedule_of(self.master.columns[i]).levels, float(generated.weights[i]))
                for i in np.flatnonzero(generated.weights > 1e-9)
            ]
            first = len(self.scheduler.cuts.slots)
            added = self.scheduler.cuts.separate(self.scheduler.cuts.load(schedules))
            if not added:
                break
            self.add_cut_rows(first)
            generated = self.relax(rules, self.threshold())
            if generated.bound is not None and best is not None:
                best = min(best, generated.bound)
        return generated if generated.bound is None else replace(generated, bound=best)

    def add_cut_rows(self, first: int) -> None:
        """The cuts from number `first` as rows of the master."""
        cuts = self.scheduler.cuts
        rows: list[list[int]] = [[] for _ in range(len(cuts.slots) - first)]
        values: list[list[float]] = [[] for _ in rows]
        for position, column in enumerate(self.master.columns):
            numbers, coefficients = cuts.entries(column.group, schedule_of(column).levels, first)
            for number, coefficient in zip(numbers, coefficients, strict=True):
                rows[number - first].append(position)
                values[number - first].append(float(coefficient))
        entries = [(np.array(r, dtype=np.int64), np.array(v)) for r, v in zip(rows, values, strict=True)]
        self.master.add_rows([Row(upper=1.0)] * len(rows), entries)

    def forget(self) -> None:
        """Drop columns that no recent node used, so that the master stays small."""
        age = self.nodes - np.array(self.last_used)
        keep = age <= KEEP_FOR
        if len(keep) > MOST_COLUMNS and not keep.all():
            self.master.drop(keep)
            self.last_used = [used for used, kept in zip(self.last_used, keep, strict=True) if kept]
            self.pool = Pool(len(self.data.jobs))

    def threshold(self) -> float:
        """What a bound has to exceed for a node to be worth a look."""
        value = self.incumbent.value
        return value if value == -np.inf else value + PRUNE * abs(value)

    def run(self) -> Result:
        """Search until proven, or a limit."""
        began = time.monotonic()
        self.start()
        root = self.relax(self.root_rules, None)
        if root.outcome == Outcome.INFEASIBLE:
            return self.result(began, None, Termination.PROVEN, Status.INFEASIBLE)
        self.facts["lp_bound"] = root.bound
        if root.bound is None or root.outcome != Outcome.CONVERGED:
            return self.result(began, root.bound, Termination.TIME_LIMIT)
        self.facts.update(duals_report(self.instance, self.scheduler, self.master, root, self.root_rules))
        self.round(root, 400)
        root = self.tighten(self.root_rules, root, 40)
        if root.outcome == Outcome.INFEASIBLE:
            return self.result(began, None, Termination.PROVEN, Status.INFEASIBLE)
        if root.outcome == Outcome.CONVERGED and not self.closed(root) and not self.stopped:
            chosen = integer_master(self.scheduler, self.master.columns, self.must, self.options.deadline)
            if chosen is not None:
                self.offer(chosen)
                self.round(root, 400)
        compact = self.close_compactly(root, 1)
        if compact is not None:
            return self.result(began, compact if compact > -np.inf else None, Termination.PROVEN)
        bound, termination = self.search(root)
        return self.result(began, bound, termination)

    def close_compactly(self, root: Generated, nodes: int) -> float | None:
        """The compact program on what the root's bound leaves open; the optimum where that settles it.

        -inf where that proves that not all jobs can finish; None where the limit came first.
        """
        if root.outcome != Outcome.CONVERGED or root.bound is None or self.closed(root) or self.stopped:
            return None
        rules = self.root_rules
        if self.incumbent.chosen is not None:
            rules = fix_by_bound(self.scheduler, rules, root, self.incumbent.value)
        program = Compact(self.scheduler, rules)
        value = self.incumbent.value
        answer = program.solve(value, root.bound, self.options.deadline, nodes, self.options.seed)
        if answer.chosen is not None:
            self.offer(answer.chosen)
        if answer.bound is not None:
            self.compact_bound = min(self.compact_bound, max(answer.bound, self.incumbent.value))
        self.facts["compact_runs"] = int(self.facts.get("compact_runs", 0)) + 1
        if not answer.complete:
            return None
        found = self.incumbent.value
        if answer.bound is not None:
            # HiGHS proves within its tolerance; what it returned was cut to whole schedules and scored anew
            found = max(found, answer.bound)
        return found

    def closed(self, generated: Generated) -> bool:
        """Whether a bound is no better than the incumbent."""
        return generated.bound is not None and generated.bound <= self.threshold()

    def search(self, root: Generated) -> tuple[float | None, Termination]:
        """Branch and price, best bound first."""
        numbers = itertools.count()
        top = float(root.bound if root.bound is not None else np.inf)
        heap: list[Node] = [node(self.root_rules, top, 0, next(numbers))]
        closed = -np.inf  # the largest bound of a node that was closed by the tolerance
        limit = None if self.options.work_limit is None else self.options.work_limit * 1000
        termination = Termination.PROVEN
        compact_at = COMPACT_EVERY
        while heap:
            best = heap[0].bound
            if best <= self.threshold():
                closed = max(closed, best)
                break
            if self.gap_reached(best):
                termination = Termination.GAP_LIMIT
                break
            if self.nodes >= compact_at and not self.stopped:
                found = self.close_compactly(root, COMPACT_NODES * (compact_at // COMPACT_EVERY))
                if found is not None:
                    return (found if found > -np.inf else None), Termination.PROVEN
                compact_at *= 4
            if self.stopped or (limit is not None and self.nodes >= limit):
                termination = Termination.TIME_LIMIT if self.stopped else Termination.WORK_LIMIT
                break
            current = heapq.heappop(heap)
            self.nodes += 1
            if current.depth == 0:
                generated = root
            else:
                self.forget()
                generated = self.relax(current.rules, self.threshold())
                generated = self.tighten(current.rules, generated, CUT_ROUNDS)
            if generated.outcome == Outcome.INFEASIBLE:
                continue
            bound = current.bound if generated.bound is None else min(current.bound, generated.bound)
            if generated.outcome == Outcome.CUT_OFF or bound <= self.threshold():
                closed = max(closed, min(bound, self.threshold()))
                continue
            if generated.outcome != Outcome.CONVERGED:  # the time is over
                heapq.heappush(heap, node(current.rules, bound, current.depth, next(numbers)))
                continue
            for rules in self.children(current.rules, generated):
                heapq.heappush(heap, node(rules, bound, current.depth + 1, next(numbers)))
            if self.options.report is not None and self.nodes % 20 == 0:
                self.options.report(None, None, max(bound, heap[0].bound if heap else bound))
        open_bound = heap[0].bound if heap else -np.inf
        bound = max(min(max(open_bound, closed), self.compact_bound), self.incumbent.value)
        return (None if bound == -np.inf else bound), termination

    def children(self, rules: tuple[Rules, ...], generated: Generated) -> Sequence[tuple[Rules, ...]]:
        """Tighten by the bound, improve the incumbent, branch."""
        if self.nodes % 5 == 1 or self.incumbent.chosen is None:
            self.round(generated, 30)
        fixed = rules
        if self.incumbent.chosen is not None:
            fixed = fix_by_bound(self.scheduler, rules, generated, self.incumbent.value)
        pair = branch(self.scheduler, fixed, self.master.columns, generated.weights)
        if pair is None:
            self.offer(self.settled(generated))
            return ()
        return pair

    def settled(self, generated: Generated) -> Chosen:
        """The choice of schedules of a node whose weights settle every slot's level."""
        chosen: Chosen = [None] * len(self.data.jobs)
        for position in np.flatnonzero(generated.weights > 0.4):
            column = self.master.columns[position]
            chosen[column.group] = schedule_of(column)
        return chosen

    def gap_reached(self, bound: float) -> bool:
        """Whether the gap that was asked for is reached."""
        if self.incumbent.chosen is None or self.options.relative_gap <= 0:
            return False
        found = gap(self.incumbent.value, bound)
        return found is not None and found <= self.options.relative_gap

    def start(self) -> None:
        """A first incumbent, and the start solution's columns."""
        zero = self.scheduler.no_prices()
        first = self.improver.complete([], zero)
        first = self.improver.improve(first, zero, 100, lambda: self.stopped)
        self.offer(first)
        if self.options.start is not None:
            self.offer(self.scheduler.from_solution(self.instance, self.options.start))
        order = np.tile(np.arange(self.scheduler.kinds), (self.data.horizon + 1, 1))
        columns: list[Column] = []
        for j, schedule in enumerate(self.incumbent.chosen or []):
            if schedule is not None:
                columns.append(self.scheduler.column(j, schedule.levels, order, schedule.finish))
        self.master.add(columns)

    def result(
        self, began: float, bound: float | None, termination: Termination, status: Status | None = None
    ) -> Result:
        """The result, re-scored by the checker."""
        solution = self.solution()
        objective: float | None = None
        if solution is not None:
            report = check(self.instance, solution)
            if (
                not report.feasible
                or report.objective is None
                or not agrees(float(report.objective), self.incumbent.value)
            ):
                raise Disagreement(
                    f"hadar colgen: {self.incumbent.value:g} becomes {report.objective} in the checker: "
                    f"{report.violations[0].message if report.violations else 'no violation'}"
                )
            objective = float(report.objective)
            if bound is not None:
                # the incumbent's value is a sum of floats, the objective is exact
                bound = objective if bound <= self.incumbent.value else max(objective, bound * (1 + ROUNDING))
        if status is None:
            if objective is not None and bound is not None and optimal(objective, bound, MAXIMISE):
                status, bound = Status.OPTIMAL, max(bound, objective)
                termination = Termination.PROVEN
            elif solution is None and termination == Termination.PROVEN:
                status = Status.INFEASIBLE
            else:
                status = Status.FEASIBLE if solution is not None else Status.UNKNOWN
                if termination == Termination.PROVEN:
                    termination = Termination.FINISHED
        return Result(
            status=status,
            objective=objective,
            bound=None if status == Status.INFEASIBLE else bound,
            solution=solution,
            termination=termination,
            solve_seconds=time.monotonic() - began,
            engine="highs",
            info=self.info(),
        )

    def info(self) -> Mapping[str, Any]:
        """Facts of the run, prices and payoffs (P3) among them."""
        return {
            **self.facts,
            "nodes": self.nodes,
            "columns": len(self.master.columns),
            "cuts": len(self.scheduler.cuts.slots),
            "pricings": self.pricings,
        }


def _too_large(data: Tables) -> bool:
    """Whether exact pricing is out of reach; rounded progress would make the bound wrong, so it is not tried."""
    if len(data.types) > MOST_TYPES or len(data.jobs) * data.horizon > MOST_JOB_SLOTS:
        return True
    return not Scheduler(data, MOST_STATES).exact


def solve_colgen(instance: HadarInstance, options: SolveOptions) -> Result:
    """Solve P2 (or P1) by column generation and branch and price.

    The LP over all whole-horizon schedules, LP(P2), bounds the optimum; at its duals a job's best schedule is a
    multiple-choice covering knapsack, solved for all finish slots by one dynamic program. Rounding, a local
    search and the integer restricted master give solutions; branching on finish slots, then on what a job does in
    a slot, closes the gap.

    Returns
    -------
    Result
        ``info``: ``lp_bound``; ``prices`` by type and slot and ``payoffs`` by job, an optimal solution of P3, with
        ``duality`` (strong duality and complementary slackness, residuals); ``nodes``, ``columns``, ``pricings``.

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
    return _in_its_own(instance, BranchAndPrice(scaled, told_in(unit, options)).run(), unit)


def _in_its_own(instance: HadarInstance, result: Result, unit: float) -> Result:
    """A result of the instance whose weights were divided by `unit`, for the instance itself."""
    if unit == 1.0:
        return result
    info = {**result.info, **{name: result.info[name] * unit for name in ("lp_bound",) if result.info.get(name)}}
    if "prices" in info:
        info["prices"] = {kind: [price * unit for price in row] for kind, row in info["prices"].items()}
        for name in ("payoffs", "duality"):
            info[name] = {key: value * unit for key, value in info[name].items()}
    objective, bound = result.objective, None if result.bound is None else result.bound * unit
    if result.solution is not None:
        exact = check(instance, result.solution).objective
        objective = None if exact is None else float(exact)
        if objective is not None and bound is not None:
            bound = objective if result.bound == result.objective else max(objective, bound)
    return replace(result, objective=objective, bound=bound, info=info)
