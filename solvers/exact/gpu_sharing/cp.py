"""The exact method `cp` of gpu-sharing: local search, a column LP that rules runs out, CP-SAT on what is left."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.gpu_sharing.bounds import lower_bound
from schedgap.formulations.gpu_sharing.check import check
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices, choices
from schedgap.formulations.gpu_sharing.overlap import placed
from schedgap.solvers.exact.gpu_sharing.cp_model import Point, SharingModel
from schedgap.solvers.exact.gpu_sharing.lp import LARGEST, Columns, all_columns, column_bound, lp_nonzeros
from schedgap.solvers.exact.gpu_sharing.search import search
from schedgap.solvers.incumbent import optimal
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

_RESTARTS = 4
_EFFORT = 2e8
_LARGEST_ROUNDS = 40_000
_SHRUNK = 0.8
"""A search is started again when a new incumbent leaves fewer than this part of its columns."""
_FINEST = 10**12

Floats = NDArray[np.float64]


def solve_cp(instance: GpuSharingInstance, options: SolveOptions) -> Result:
    """Solve an instance to proven optimality.

    1. A compiled local search gives an incumbent of sum U.
    2. An LP over runs (job, accumulation, start, duration) gives a bound B; every run whose reduced cost
       shows that it cannot be part of a sum of at most U - 1 is dropped.
    3. CP-SAT chooses among the runs that are left, with overlap integers instead of GPU identities, for a
       sum of at most U - 1. A better point replaces the incumbent and step 2 drops more runs, until nothing
       better exists. Overlaps become GPU lists, and the checker scores every incumbent.

    Parameters
    ----------
    instance : the instance
    options : limits, seed, threads, start; with ``work_limit`` every step stops by counts

    Returns
    -------
    Result
        Status OPTIMAL, FEASIBLE, INFEASIBLE or UNKNOWN; objective and bound are mean JCT in slots.

    Raises
    ------
    Disagreement
        A schedule that the models admit breaks a constraint of the checker.
    """
    began = time.monotonic()
    found = choices(instance)
    if found.blocked:
        return Result(
            Status.INFEASIBLE,
            termination=Termination.PROVEN,
            solve_seconds=time.monotonic() - began,
            engine="cpsat",
            engine_version=version("ortools"),
            info={"reason": found.blocked},
        )
    state = _State(instance, options, found)
    try:
        closed, termination = state.run()
    except (KeyboardInterrupt, SystemError) as error:
        # Ctrl-C inside compiled code arrives wrapped.
        if isinstance(error, SystemError) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        closed, termination = False, Termination.INTERRUPTED
    return state.result(closed, termination, time.monotonic() - began)


@dataclass
class _State:
    """The incumbent and the bound, as whole sums of JCT."""

    instance: GpuSharingInstance
    options: SolveOptions
    choices: Choices
    best: int | None = None
    solution: Solution | None = None
    bound: int = 0
    scale: int = 0
    info: dict[str, Any] = field(default_factory=dict)

    def run(self) -> tuple[bool, Termination]:
        """All steps; whether the instance is closed (proven optimal or infeasible)."""
        simple = lower_bound(self.instance)
        assert simple is not None
        self._learn(math.ceil(simple * len(self.instance.jobs) - 1e-6))
        if self.options.start is not None:
            self._offer(self.options.start, "start")
        self._search()
        if self._met():
            return True, Termination.PROVEN
        if self.options.deadline.passed:
            return False, Termination.TIME_LIMIT
        if lp_nonzeros(self.instance, self.choices) > LARGEST:
            return False, Termination.TOO_LARGE
        columns = all_columns(self.instance, self.choices)
        lp = column_bound(self.instance, self.choices, columns, self.options.deadline)
        if lp is None:
            reduced = np.zeros(len(columns.job))
        else:
            reduced = lp.value + lp.reduced
            self.info["lp bound"] = lp.value / len(self.instance.jobs)
            self._learn(math.ceil(lp.value - 1e-6))
        if self._met():
            return True, Termination.PROVEN
        return self._complete(columns, reduced)

    def _search(self) -> None:
        """Local search from several seeds, less of it on large instances."""
        n = len(self.instance.jobs)
        rounds = int(min(_LARGEST_ROUNDS, max(20, _EFFORT / n**3)))
        for restart in range(_RESTARTS if rounds > 20 else 1):
            if self._met() or (restart and self.options.deadline.passed):
                return
            found = search(self.instance, self.choices, seed=self.options.seed + 7919 * restart, rounds=rounds)
            if found is not None:
                self._offer(found.solution(self.instance, self.choices), "local search")

    def _complete(self, columns: Columns, least: Floats) -> tuple[bool, Termination]:
        """CP-SAT on the columns that may be part of something better, until there is nothing better."""
        work = self.options.work_limit
        while True:
            if work is not None and work <= 0:
                return False, Termination.WORK_LIMIT
            if self.options.deadline.passed:
                return False, Termination.TIME_LIMIT
            kept = columns if self.best is None else columns.only(least <= self.best - 1)
            self.info["columns"] = [len(columns.job), len(kept.job)]
            if len(np.unique(kept.job)) < len(self.instance.jobs):
                return True, Termination.PROVEN
            most = None if self.best is None else self.best - 1
            model = SharingModel(self.instance, self.choices, kept, self.bound, most)
            step = _Step(self, least, len(kept.job))
            answer = model.solve(replace(self.options, work_limit=work), step.told)
            if answer.bound is not None and not step.wrong:
                self._learn(answer.bound if self.best is None else min(answer.bound, self.best))
            if work is not None:
                work -= answer.work
            if step.wrong:
                self._refine()
            elif answer.closed or self._met():
                return True, Termination.PROVEN
            elif self._close_enough():
                return False, Termination.GAP_LIMIT
            elif not step.again:
                return False, Termination.TIME_LIMIT if work is None or work > 0 else Termination.WORK_LIMIT

    def take(self, point: Point) -> bool:
        """Score a point of the model; False where rounded losses let it claim too much."""
        start, end, steps = [0] * len(point.runs), [0] * len(point.runs), [0] * len(point.runs)
        for j, m, t, d in point.runs:
            start[j], end[j], steps[j] = t, t + d - 1, self.choices.jobs[j].modes[m].steps
        solution = placed(self.instance, start, end, point.overlap, steps)
        total = self._offer(solution, "cp")
        return total is not None and total <= point.total

    def _refine(self) -> None:
        """Count losses in finer units.

        Raises
        ------
        Disagreement
            They were exact already: model and checker contradict each other.
        """
        if self.scale >= _FINEST or all(own.exact for own in self.choices.jobs):
            raise Disagreement("cp: the checker scores a point of the model worse than the model does")
        self.scale = _FINEST
        self.choices = choices(self.instance, _FINEST)
        self.info["loss scale"] = _FINEST

    def _offer(self, solution: Solution, source: str) -> int | None:
        """Keep a solution when it is feasible and better; its sum of JCT, None where it is infeasible."""
        try:
            report = check(self.instance, solution)
        except InputError:
            if source == "cp":
                raise
            return None
        if not report.feasible or report.objective is None:
            return None
        total = int(report.objective * len(self.instance.jobs))
        if self.best is None or total < self.best:
            self.best, self.solution = total, solution
            self.info["found by"] = source
            self._tell()
        return total

    def _learn(self, bound: int) -> None:
        if bound > self.bound:
            self.bound = bound
            self._tell()

    def _tell(self) -> None:
        if self.options.report is not None:
            n = len(self.instance.jobs)
            self.options.report(self.solution, None if self.best is None else self.best / n, self.bound / n)

    def _met(self) -> bool:
        return self.best is not None and self.bound >= self.best

    def _close_enough(self) -> bool:
        if self.best is None or self.options.relative_gap <= 0:
            return False
        return self.best - self.bound <= self.options.relative_gap * self.best

    def result(self, closed: bool, termination: Termination, seconds: float) -> Result:
        """What is known at the end."""
        n = len(self.instance.jobs)
        if closed and self.best is None:
            status = Status.INFEASIBLE
        elif optimal(self.best, self.best if closed else self.bound, MINIMISE):
            status = Status.OPTIMAL
        else:
            status = Status.UNKNOWN if self.best is None else Status.FEASIBLE
        objective = None if self.best is None else self.best / n
        bound = None if status is Status.INFEASIBLE else objective if status is Status.OPTIMAL else self.bound / n
        return Result(
            status,
            objective=objective,
            bound=bound,
            solution=self.solution,
            termination=termination,
            solve_seconds=seconds,
            engine="cpsat",
            engine_version=version("ortools"),
            info=self.info,
        )


@dataclass
class _Step:
    """One search of the model: scores its points, and stops it when fewer columns would do."""

    state: _State
    least: Floats
    columns: int
    wrong: bool = False
    again: bool = False

    def told(self, point: Point) -> bool:
        """Score a point; whether to stop."""
        if not self.state.take(point):
            self.wrong = True
            return True
        best = self.state.best
        assert best is not None
        if self.state._met() or self.state._close_enough():
            return True
        self.again = int((self.least <= best - 1).sum()) < _SHRUNK * self.columns
        return self.again
