"""Exact methods of ddl-cluster for given placements: `cp` on a fine grid, `job-shop` without contention."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib.metadata import version
from typing import Any

from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.ddl_cluster.bounds import lower_bound
from schedgap.formulations.ddl_cluster.check import check
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.sharing import given_placement
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, Run, simulate_plain, solution_of, task_count
from schedgap.formulations.ddl_cluster.timetable import timetable
from schedgap.solvers.cp_session import Value, run_cp
from schedgap.solvers.exact.ddl_cluster.cp_model import LARGEST_TASKS, GridModel, Point, model_size, rounded_run
from schedgap.solvers.exact.ddl_cluster.grid import RESOLUTION, Grid
from schedgap.solvers.incumbent import contradicts, optimal
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

_JOB_SHOP_PART = 0.25
"""Of the time: the job shop comes first, since its schedules are good ones and easy to find."""
_SECONDS_PER_TASK = 5e-6
"""Of a policy's simulation and its check together, on a busy machine; where a run matters at all, it is compiled."""
_EARLY = 100
"""Grid steps by which wanted starts are also tried earlier, so that tasks meet the events that they wait for.
Without contention nothing is gained by waiting: only the order of the job shop's points is taken."""


def solve_cp(instance: DdlClusterInstance, options: SolveOptions) -> Result:
    """The best schedule of all tasks, on a time grid so fine that its error is measured in the gap.

    1. Every policy is simulated, and the job shop of :func:`solve_job_shop` is searched for a quarter of the
       time: the best is the incumbent, and no better schedule leaves the windows that it implies.
    2. CP-SAT minimises the sum of finish times over moments rounded down to a grid of 10^10 to 10^11 steps, under
       constraints that every schedule in continuous time satisfies: its bound is certified.
    3. Every point it finds is carried out in continuous time (:mod:`.timetable`) and scored by the checker.

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
    one of any size, and ``info["restricted bound"]`` that of the job shop.

    Raises
    ------
    ModelRefused
        A job has no placement.
    """
    return _solve(instance, options, exclusive=True)


def _solve(instance: DdlClusterInstance, options: SolveOptions, *, exclusive: bool) -> Result:
    began = time.monotonic()
    placement = given_placement(instance, "job-shop" if exclusive else "cp")
    state = _State(instance, placement, options)
    restricted: float | None = None
    try:
        restricted, termination = state.run(exclusive)
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    if restricted is not None and exclusive:
        state.info["restricted bound"] = restricted
    objective, bound = state.objective, state.bound
    met = optimal(objective, bound, MINIMISE)
    if met:
        bound = objective if objective is not None else bound
        termination = Termination.PROVEN
    elif termination is Termination.PROVEN:
        termination = Termination.FINISHED
    status = Status.OPTIMAL if met else Status.UNKNOWN if objective is None else Status.FEASIBLE
    return Result(
        status,
        objective=objective,
        bound=bound,
        solution=state.solution,
        termination=termination,
        solve_seconds=time.monotonic() - began,
        engine="cpsat",
        engine_version=version("ortools"),
        info=state.info,
    )


@dataclass
class _State:
    """The incumbent and the certified bound, as mean JCT in seconds."""

    instance: DdlClusterInstance
    placement: list[tuple[Gpu, ...]]
    options: SolveOptions
    objective: float | None = None
    solution: Solution | None = None
    bound: float = 0.0
    info: dict[str, Any] = field(default_factory=dict)
    work: float = 0.0
    _points: dict[int, Point] = field(default_factory=dict)

    def run(self, exclusive: bool) -> tuple[float | None, Termination]:
        """All steps; the bound of the job shop where that is what was solved."""
        self.bound = lower_bound(self.instance)
        first = self._start()
        if self._met():
            return None, Termination.PROVEN
        if first is None:
            return None, Termination.TIME_LIMIT if self._late() else Termination.TOO_LARGE
        arrivals = sum(job.arrival for job in self.instance.jobs)
        grid = Grid.of(self.instance, self.placement, sum(first.finish) - arrivals)
        self.info["grid"] = grid.seconds(1)
        hint = rounded_run(self.instance, first, grid.digits)
        model = GridModel(grid, exclusive=True)
        model.hint(hint)
        part = 1.0 if exclusive else _JOB_SHOP_PART
        restricted, termination = self._search(model, grid, part)
        if exclusive or self._met() or self._close_enough() or termination is Termination.INTERRUPTED:
            return restricted, termination
        if reason := model_size(grid):
            self.info["reason"] = reason
            return None, Termination.TOO_LARGE
        if self._late():
            return None, Termination.TIME_LIMIT
        hint = self._points.get(grid.digits, hint)
        assert self.objective is not None
        grid = replace(grid, most=min(grid.most, self.objective * len(self.instance.jobs)))
        model = GridModel(grid)
        model.hint(hint)
        return self._search(model, grid, 1.0)

    def _start(self) -> Run | None:
        """Simulate the policies, as far as there is time; the run of srsf-1, which is feasible for the job shop."""
        if self.options.start is not None:
            self._offer(self.options.start, "start")
        small = task_count(self.instance) <= LARGEST_TASKS
        left = self.options.deadline.left()
        if left is not None and task_count(self.instance) * _SECONDS_PER_TASK > left:
            self.info["reason"] = (
                f"{task_count(self.instance)} compute tasks cannot be simulated and checked in {left:.3g} s"
            )
            return None
        best: tuple[float, str, Run] | None = None
        first: Run | None = None
        for policy in POLICIES:
            left = self.options.deadline.left()
            if best is not None and left is not None and task_count(self.instance) * _SECONDS_PER_TASK > left:
                break
            run = simulate_plain(self.instance, self.placement, policy, record=small)
            first = run if first is None else first
            if best is None or sum(run.finish) < best[0]:
                best = (sum(run.finish), policy, run)
        if best is not None:
            _, policy, run = best
            self._offer(solution_of(self.instance, self.placement, policy, run), policy)
        if not small:
            self.info["reason"] = f"{task_count(self.instance)} compute tasks, at most {LARGEST_TASKS}"
        return first if small and not self._late() else None

    def _late(self) -> bool:
        return self.options.deadline.passed

    def _search(self, model: GridModel, grid: Grid, part: float) -> tuple[float | None, Termination]:
        """CP-SAT in the given part of the time that is left; the bound of the model, and why it stopped."""
        options = self.options
        exclusive = model.exclusive
        count = len(self.instance.jobs)
        arrivals = sum((exact(job.arrival) for job in self.instance.jobs), Fraction(0))

        def mean(total: int) -> float:
            return float((total / Fraction(10) ** grid.digits - arrivals) / count)

        def seen(value: Value) -> bool:
            if exclusive:
                self._points[grid.digits] = model.point(value)
            for early in (_EARLY, 10 * RESOLUTION) if exclusive else (0, _EARLY):
                self._offer(timetable(self.instance, self.placement, model.plan(value, early)), "cp", must=True)
            return self._met() or self._close_enough()

        def bounded(total: int) -> bool:
            if not exclusive:
                self._learn(mean(total))
            return self._met() or self._close_enough()

        left = options.deadline.left()
        work = None if options.work_limit is None else max(1e-3, part * (options.work_limit - self.work))
        answer = run_cp(
            model.model,
            seconds=None if left is None else part * left,
            work=work,
            workers=options.threads or 8,
            seed=options.seed,
            seen=seen,
            bounded=bounded,
            # overlaps are linear once their order is known; without this the search divides time itself
            parameters={"linearization_level": 2},
            log=options.log,
        )
        if answer.infeasible:
            raise Disagreement(
                "cp: the model is infeasible although a policy's run satisfies it", solution=self.solution
            )
        self.work += answer.work
        restricted = None if answer.bound is None else mean(answer.bound)
        if restricted is not None and not exclusive:
            self._learn(restricted)
        if answer.optimal or self._met():
            return restricted, Termination.PROVEN
        if self._close_enough():
            return restricted, Termination.GAP_LIMIT
        if answer.interrupted:
            return restricted, Termination.INTERRUPTED
        limited = work is not None and answer.work >= 0.99 * work
        return restricted, Termination.WORK_LIMIT if limited else Termination.TIME_LIMIT

    def _offer(self, solution: Solution, source: str, must: bool = False) -> None:
        """Keep a solution when it is feasible and better."""
        try:
            report = check(self.instance, solution)
        except InputError:
            if source == "start":
                return
            raise
        if not report.feasible or report.objective is None:
            if must or source in POLICIES:
                reasons = "; ".join(violation.message for violation in report.violations[:3])
                raise Disagreement(f"cp: the checker refuses what {source} found: {reasons}", solution=solution)
            return
        value = float(report.objective)
        if contradicts(value, self.bound, MINIMISE):
            raise Disagreement(
                f"cp: {source} found {value:.10g}, below the certified bound {self.bound:.10g}", solution=solution
            )
        if self.objective is None or value < self.objective:
            self.objective, self.solution = value, solution
            self.info["found by"] = source
            self._tell()

    def _learn(self, bound: float) -> None:
        if self.objective is not None and contradicts(self.objective, bound, MINIMISE):
            raise Disagreement(
                f"cp: the bound {bound:.10g} is above the confirmed {self.objective:.10g}", solution=self.solution
            )
        if bound > self.bound:
            self.bound = bound
            self._tell()

    def _tell(self) -> None:
        if self.options.report is not None:
            self.options.report(self.solution, self.objective, self.bound)

    def _met(self) -> bool:
        return optimal(self.objective, self.bound, MINIMISE)

    def _close_enough(self) -> bool:
        gap = self.options.relative_gap
        return gap > 0 and self.objective is not None and self.objective - self.bound <= gap * self.objective
