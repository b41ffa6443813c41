"""Exact methods of ddl-cluster for given placements: `cp` on a fine grid, `job-shop` without contention.

Idea: a grid model gives the bound, the same point carried out in continuous time the schedule. Source: paper 001's
model; `job-shop` is the restriction that its rule srsf-1 makes. Guarantee: `optimal` only where the two numbers agree
to 1e-9; the bound of `job-shop` is not that of its restriction.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.ddl_cluster.bounds import lower_bound
from schedgap.formulations.ddl_cluster.check import check
from schedgap.formulations.ddl_cluster.given_placement import given_placement
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, Run, simulate_plain, solution_of, task_count
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution
from schedgap.formulations.ddl_cluster.timetable import timetable
from schedgap.solvers.exact.ddl_cluster.cp_model import LARGEST_TASKS, GridModel, Point, model_size, rounded_run
from schedgap.solvers.exact.ddl_cluster.time_grid import RESOLUTION, Grid
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Result, SolveOptions, Termination, package_version

if TYPE_CHECKING:
    from schedgap.solvers.cp_sat.search import CpAnswer, Value


WORKERS = 8
"""Workers of CP-SAT, which search in different ways, where the caller does not say how many."""
_JOB_SHOP_PART = 0.25
"""Share of the time for the job shop, which comes first, since its schedules are good ones and easy to find."""
_SECONDS_PER_TASK = 5e-6
"""Seconds per task of a policy's compiled simulation and its check together, on a busy machine."""
_PARAMETERS: Mapping[str, object] = {"linearization_level": 2, "use_sat_inprocessing": False}
"""Parameters of CP-SAT. Overlaps are linear once their order is known: without level 2 the search divides time itself.
Inprocessing on a grid this fine goes on without end and is not counted as work."""
_STRATEGIES = ("max_lp", "quick_restart", "reduced_costs", "core", "no_lp", "fixed", "default_lp")
"""Strategies of two to seven workers: without a strategy of linearization level 2 among them even three jobs stay
open."""
_FIRST_WORK = 2.0
"""Deterministic time of the first attempt at a proof; every further one has 3/2 of it."""
_JOB_SHOP_WORK = 4.0
"""Deterministic time of the job shop that comes first: its optimum is not asked for, only a good schedule."""
_EARLY = 100
"""Grid steps by which wanted starts are also tried earlier, so that tasks meet the events that they wait for.
Without contention nothing is gained by waiting: only the order of the job shop's points is taken."""


def too_late(instance: DdlClusterInstance, best: Incumbent) -> bool:
    """Whether a run of a policy and its check do not fit in the time that is left; the reason is told."""
    tasks, remaining = task_count(instance), best.seconds_left()
    if remaining is None or tasks * _SECONDS_PER_TASK <= remaining:
        return False
    best.info["reason"] = f"{tasks} compute tasks cannot be simulated and checked in {remaining:.3g} s"
    return True


def solve_cp(instance: DdlClusterInstance, options: SolveOptions) -> Result:
    """The best schedule of all tasks, on a time grid so fine that its error is measured in the gap.

    1. Every policy is simulated, and the job shop of :func:`solve_job_shop` is searched for a quarter of the
       time: the best is the incumbent, and no better schedule leaves the windows that it implies.
    2. CP-SAT minimises the sum of finish times over moments rounded down to a grid of 10^10 to 10^11 steps, under
       constraints that every schedule in continuous time satisfies: its bound is valid.
    3. Every point it finds is carried out in continuous time and scored by the checker
       (:mod:`~schedgap.formulations.ddl_cluster.timetable`).

    The grid's error, beforehand: let s be the steps by which an all-reduce of M MB may be too short in the model, 1
    and |mu| for every set of all-reduces that overlaps with it. Stretching an optimal point of the model by
    1 + theta, theta the largest s / (b M - s) in steps (and 1 / floor(d) for a duration d that is no whole number
    of steps), makes it a schedule. So the optimum is at most (1 + theta) times the model's sum of finish times.
    The gap that is reported is that of the two numbers found, and the status is OPTIMAL only where they agree to
    1e-9.

    Parameters
    ----------
    instance : the instance; every job's placement must be given
    options : limits, seed, threads, start

    Returns
    -------
    Result
        OPTIMAL or FEASIBLE; objective and bound are mean JCT in seconds. ``info["grid"]`` is the step in
        seconds.

    Raises
    ------
    ModelRefused
        A job has no placement.
    Disagreement
        The checker refuses a schedule that was carried out, or scores one below the bound.
    """
    return _solve(instance, options, exclusive=False)


def solve_job_shop(instance: DdlClusterInstance, options: SolveOptions) -> Result:
    """The best schedule in which at most one all-reduce is active on a server: an upper bound.

    The restriction to what srsf-1 allows is a job shop with fixed durations, solved by CP-SAT on the same grid.
    Its optimum says nothing about a lower bound for the problem itself: the bound of the Result is the certified
    one of any size, and ``info["restricted bound"]`` that of the job shop. Raises ModelRefused: a job has no placement.
    """
    return _solve(instance, options, exclusive=True)


def _solve(instance: DdlClusterInstance, options: SolveOptions, *, exclusive: bool) -> Result:
    placement = given_placement(instance, "job-shop" if exclusive else "cp")
    best = Incumbent(MINIMISE, options, partial(parsed(check, DdlClusterSolution), instance))
    ended: Termination | None = None
    try:
        ended = _Stages(instance, placement, best).run(exclusive)
    except KeyboardInterrupt:
        best.interrupted = True
    return best.result(ended, "cpsat", package_version("ortools"))


@dataclass
class _Stages:
    """The steps; objectives are mean JCT in seconds."""

    instance: DdlClusterInstance
    placement: list[tuple[Gpu, ...]]
    best: Incumbent
    _points: dict[int, Point] = field(default_factory=dict)

    def run(self, exclusive: bool) -> Termination | None:
        """All steps; why they ended, where the incumbent does not tell."""
        best = self.best
        if best.stage("bound"):
            best.tighten(lower_bound(self.instance))
        first = self._start()
        best.log("policies")
        if best.proven:
            return None
        if first is None:
            return None if best.out_of_time() else Termination.TOO_LARGE
        arrivals = sum(job.arrival for job in self.instance.jobs)
        grid = Grid.of(self.instance, self.placement, sum(first.finish) - arrivals)
        best.info["grid"] = grid.seconds(1)
        hint = rounded_run(self.instance, first, grid.digits)
        model = GridModel(grid, exclusive=True)
        model.hint(hint)
        closed = best.stage("job shop") and self._search(model, grid, once=not exclusive)
        best.log("job shop")
        if exclusive:
            return Termination.FINISHED if closed else None
        if best.proven or best.gap_reached or best.interrupted:
            return None
        if reason := model_size(grid):
            best.info["reason"] = reason
            return Termination.TOO_LARGE
        if best.out_of_time() or not best.stage("grid model"):
            return None
        hint = self._points.get(grid.digits, hint)
        if best.objective is not None:
            grid = replace(grid, max_total=min(grid.max_total, float(best.objective) * len(self.instance.jobs)))
        model = GridModel(grid)
        model.hint(hint)
        if not self._search(model, grid):
            return None
        if not (best.proven or best.gap_reached):
            best.info["reason"] = f"solved in steps of {grid.seconds(1):.3g} s: their rounding of times is what is left"
        return Termination.FINISHED

    def _start(self) -> Run | None:
        """Simulate the policies, as far as there is time; the run of srsf-1, which is feasible for the job shop."""
        if self.best.options.start is not None:
            self.best.propose(self.best.options.start, "start")
        tasks = task_count(self.instance)
        small = tasks <= LARGEST_TASKS
        if too_late(self.instance, self.best):
            return None
        runs: list[tuple[float, str, Run]] = []
        for policy in POLICIES:
            remaining = self.best.seconds_left()
            if runs and remaining is not None and tasks * _SECONDS_PER_TASK > remaining:
                break
            run = simulate_plain(self.instance, self.placement, policy, record=small)
            runs.append((sum(run.finish), policy, run))
        _, policy, run = min(runs, key=lambda found: found[0])
        if self.best.stage("policies"):
            self.best.propose(solution_of(self.instance, self.placement, policy, run), policy, trusted=True)
        if not small:
            self.best.info["reason"] = f"{tasks} compute tasks, at most {LARGEST_TASKS}"
        return runs[0][2] if small and not self.best.out_of_time() else None

    def _search(self, model: GridModel, grid: Grid, *, once: bool = False) -> bool:
        """CP-SAT in what is left, or one attempt in a part of it; whether the model is solved to its optimum."""
        best = self.best
        exclusive = model.exclusive
        count = len(self.instance.jobs)
        arrivals = sum((exact(job.arrival) for job in self.instance.jobs), Fraction(0))

        def mean(total: int) -> float:
            return float((total / Fraction(10) ** grid.digits - arrivals) / count)

        def seen(value: Value) -> bool:
            if exclusive:
                self._points[grid.digits] = model.point(value)
            for early in (_EARLY, 10 * RESOLUTION) if exclusive else (0, _EARLY):
                plan = model.plan(value, early)
                best.propose(timetable(self.instance, self.placement, plan), "cp", trusted=True)
            return best.proven or best.gap_reached

        def bounded(total: int) -> bool:
            if exclusive:
                best.info["restricted bound"] = max(mean(total), best.info.get("restricted bound", 0.0))
            else:
                best.tighten(mean(total))
            return best.proven or best.gap_reached

        for attempt in itertools.count():
            answer = self._attempt(model, attempt, seen=seen, bounded=bounded, once=once)
            if answer.infeasible:
                raise Disagreement(
                    "cp: the model is infeasible although a policy's run satisfies it", solution=best.solution
                )
            if answer.bound is not None:
                bounded(answer.bound)
            if once or answer.optimal or best.finished():
                return answer.optimal
            if answer.value is not None:
                model.hint(model.point(answer.value))
        raise AssertionError("the attempts have no end of their own")

    def _attempt(
        self,
        model: GridModel,
        attempt: int,
        *,
        seen: Callable[[Value], bool],
        bounded: Callable[[int], bool],
        once: bool,
    ) -> CpAnswer:
        """One run of CP-SAT, with or without presolve.

        The bound of one run may creep by single steps of the grid where a second run, with another seed or the other
        kind of presolve, proves it at once: so runs are short at first, and become longer.
        """
        from schedgap.solvers.cp_sat.search import search_cp

        workers = self.best.options.threads or WORKERS
        parameters: dict[str, object] = {**_PARAMETERS, "cp_model_presolve": attempt % 2 == 0}
        if 1 < workers <= len(_STRATEGIES):
            parameters["subsolvers"] = _STRATEGIES[:workers]
        return search_cp(
            model.model,
            self.best,
            seen=seen,
            bounded=bounded,
            parameters=parameters,
            share=_JOB_SHOP_PART if once else 1.0,
            workers=workers,
            attempt=attempt,
            most_work=_JOB_SHOP_WORK if once else _FIRST_WORK * 1.5**attempt,
        )
