"""The best solution and the best bound known of one instance, when they prove an optimum, and what ends a run."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import agrees, gap
from schedgap.solvers.result import Result, SolveOptions, Status, Termination, clock

Number = int | float | Fraction

LEAST_WORK = 1e-6
"""Work, in the unit of the work limit, with which it is of no use to go on."""


def optimal(objective: Number | None, bound: Number | None, sense: int) -> bool:
    """Whether `bound` proves `objective` to be the optimum; every method and every report asks here.

    Where both are whole or rational numbers, the bound must reach the objective exactly. Otherwise they must
    agree within 1e-9 relative, whatever their size: there is no absolute tolerance that hides small objectives.

    Parameters
    ----------
    objective : objective of a solution that the checker confirms
    bound : a proven bound on the optimum (lower when minimising, upper when maximising)
    sense : +1 minimise, -1 maximise
    """
    if objective is None or bound is None or not math.isfinite(objective) or not math.isfinite(bound):
        return False
    if sense * objective <= sense * bound:
        return True
    if isinstance(objective, int | Fraction) and isinstance(bound, int | Fraction):
        return False
    return agrees(float(objective), float(bound))


def contradicts(objective: Number | None, bound: Number | None, sense: int) -> bool:
    """Whether a confirmed `objective` is better than `bound` by more than rounding, so that one of them is wrong."""
    if objective is None or bound is None or sense * objective >= sense * bound:
        return False
    exact = isinstance(objective, int | Fraction) and isinstance(bound, int | Fraction)
    return exact or not agrees(float(objective), float(bound))


class Incumbent:
    """The best solution and the best proven bound of one run, and what ends it; every improvement is reported.

    Objectives and bounds are counted in whole numbers where `whole` is set, else in floats, and in any case in
    units: one unit is worth `unit` in the instance's objective. Reports and results are in the instance's own.

    Parameters
    ----------
    sense : +1 minimise, -1 maximise
    options : limits, gap, reporting
    check : the problem's checker for the instance; needed by :meth:`propose` only
    unit : what an objective of 1 is worth
    whole : objectives are whole numbers of units

    Attributes
    ----------
    solution, objective : the best solution that the checker confirms, with its objective; None before one is found
    bound : the best proven bound on the optimum, or None
    infeasible : proven that there is no solution
    interrupted : Ctrl-C came
    failure : why an engine ended its process; "" where none did
    work : deterministic time or nodes used so far, in the unit of ``options.work_limit``
    info : facts for the result
    """

    def __init__(
        self,
        sense: int,
        options: SolveOptions | None = None,
        check: Callable[[Solution], CheckReport] | None = None,
        *,
        unit: Number = 1,
        whole: bool = False,
    ) -> None:
        self.sense = sense
        self.options = options or SolveOptions()
        self.unit = unit
        self.whole = whole
        self._check = check
        self.solution: Solution | None = None
        self.objective: Number | None = None
        self.bound: Number | None = None
        self.infeasible = False
        self.interrupted = False
        self.failure = ""
        self.work = 0.0
        self.info: dict[str, Any] = {}
        self.began = clock()
        self._stage = ""

    # -- what is known ------------------------------------------------------------------------------------------

    @property
    def proven(self) -> bool:
        """Nothing is left to find: the solution is optimal, or there is none."""
        return self.infeasible or optimal(self.objective, self.bound, self.sense)

    @property
    def contradictory(self) -> bool:
        """Whether the solution is better than the bound allows."""
        return contradicts(self.objective, self.bound, self.sense)

    def stage(self, name: str) -> bool:
        """Begin a stage of an exact method; whether it may decide. The last one before the proof is the one that did.

        Parameters
        ----------
        name : name from ``options.stages``; ``info["decided by"]`` of the result is one of them
        """
        allowed = self.options.allows(name)
        if allowed:
            self.enter(name)
        return allowed

    def enter(self, name: str) -> None:
        """Name what decides from now on: a stage that is allowed, or a part of one that is told by itself."""
        if not self.proven:
            self._stage = name

    @property
    def decided_by(self) -> dict[str, str]:
        """The stage that decided, for the result's `info`; empty before there is a proof."""
        return {"decided by": self._stage} if self.proven and self._stage else {}

    def improves(self, objective: Number) -> bool:
        """Whether a solution of this objective would be the best so far."""
        return self.objective is None or self.sense * objective < self.sense * self.objective

    def accept(self, solution: Solution, objective: Number) -> bool:
        """Keep a confirmed solution when it is the best so far; whether it is."""
        if not self.improves(objective):
            return False
        self.solution, self.objective = solution, objective
        self.report()
        return True

    def propose(self, solution: Solution, source: str = "", *, trusted: bool = False) -> Number | None:
        """Let the checker decide on a solution, whoever made it, and keep it when it is the best so far.

        Returns its objective, or None where it is not feasible (a malformed one is not). Raises Disagreement: the
        checker refuses what is trusted.

        Parameters
        ----------
        source : who made it, for ``info["found by"]``
        trusted : it comes from a method of ours that makes feasible ones only
        """
        assert self._check is not None
        try:
            report = self._check(solution)
        except InputError:
            if trusted:
                raise
            return None
        if not report.feasible or report.objective is None:
            if trusted:
                reasons = "; ".join(violation.message for violation in report.violations[:3])
                raise Disagreement(f"the checker refuses what {source} found: {reasons}", solution=solution)
            return None
        stated = report.value if self.unit == 1 else report.value / self.unit
        objective = round(report.objective / self.unit) if self.whole else stated
        if self.improves(objective) and source:
            self.info["found by"] = source
        self.accept(solution, objective)
        return objective

    def tighten(self, bound: Number | None, *, of_better: bool = False) -> bool:
        """Keep a proven bound when it is the best so far; whether it is.

        Parameters
        ----------
        bound : on the optimum; None and infinite ones say nothing
        of_better : it is a bound on solutions better than the incumbent only, so that it proves no more than that
            there are none
        """
        if bound is None or not math.isfinite(bound):
            return False
        if of_better and self.objective is not None and self.sense * bound > self.sense * self.objective:
            bound = self.objective
        if self.bound is not None and self.sense * bound <= self.sense * self.bound:
            return False
        self.bound = bound
        self.report(with_solution=False)
        return True

    def impossible(self, reason: str) -> None:
        """There is no solution, for a reason that needs no search."""
        self.infeasible = True
        self.info["reason"] = reason

    def exhausted(self) -> None:
        """Nothing better than the incumbent exists: it is optimal, or there is no solution at all."""
        if self.objective is None:
            self.infeasible = True
        else:
            self.tighten(self.objective)

    def report(self, *, with_solution: bool = True) -> None:
        """Report what is known."""
        if self.options.report is not None:
            solution = self.solution if with_solution else None
            self.options.report(solution, self.in_own(self.objective), self.in_own(self.bound))

    def in_own(self, value: Number | None) -> float | None:
        """A number of units in the instance's own objective."""
        if value is None:
            return None
        worth = value * self.unit
        # a checker that tells whole numbers (CheckReport.whole) is answered in such, however large they are
        told_whole = isinstance(self.objective, int) and not self.whole
        return worth if told_whole and isinstance(worth, int) else float(worth)

    def log(self, event: str) -> None:
        """A line for the caller's log."""
        if self.options.log is not None:
            best = "none" if self.objective is None else f"{self.in_own(self.objective):.10g}"
            bound = "none" if self.bound is None else f"{self.in_own(self.bound):.10g}"
            seconds = clock() - self.began
            self.options.log(f"{seconds:8.2f} s: {event}; best {best}, bound {bound}")

    # -- what ends a run ----------------------------------------------------------------------------------------

    @property
    def gap_reached(self) -> bool:
        """Whether the caller's relative gap is reached."""
        return self.within_gap(self.bound)

    def within_gap(self, bound: Number | None) -> bool:
        """Whether the caller's relative gap would be reached with a bound."""
        if self.options.relative_gap <= 0 or self.objective is None or bound is None:
            return False
        found = gap(self.in_own(self.objective), self.in_own(bound))
        return found is not None and found <= self.options.relative_gap

    def out_of_time(self) -> bool:
        """Whether the deadline has passed."""
        return self.options.deadline.passed

    @property
    def out_of_work(self) -> bool:
        """Whether the work limit is used up."""
        remaining = self.work_left()
        return remaining is not None and remaining <= LEAST_WORK

    def finished(self) -> bool:
        """Whether no further stage is to start."""
        stopped = self.interrupted or bool(self.failure)
        return self.proven or self.gap_reached or stopped or self.out_of_time() or self.out_of_work

    def seconds_left(self, share: float = 1.0) -> float | None:
        """`share` of the seconds left; None without a deadline."""
        remaining = self.options.deadline.remaining()
        return None if remaining is None else share * remaining

    def work_left(self, share: float = 1.0) -> float | None:
        """`share` of the work left; None without a limit."""
        limit = self.options.work_limit
        return None if limit is None else share * max(0.0, limit - self.work)

    @property
    def workers(self) -> int:
        """Threads: one where a work limit asks for a run that repeats itself, unless the caller says how many."""
        if self.options.threads is None:
            return 1 if self.options.work_limit is not None else (os.cpu_count() or 1)
        return self.options.threads

    @property
    def termination(self) -> Termination:
        """Why a run that ends now does."""
        if self.proven:
            return Termination.PROVEN
        if self.interrupted:
            return Termination.INTERRUPTED
        if self.failure:
            return Termination.FAILED
        if self.gap_reached:
            return Termination.GAP_LIMIT
        if self.out_of_work:
            return Termination.WORK_LIMIT
        if self.out_of_time() or self.options.deadline.moment is not None:  # engines stop a little before it
            return Termination.TIME_LIMIT
        return Termination.FINISHED if self.options.work_limit is None else Termination.WORK_LIMIT

    def result(
        self, termination: Termination | None = None, engine: str | None = None, version: str | None = None
    ) -> Result:
        """What is known at the end.

        Raises Disagreement: the solution is better than the bound allows.

        Parameters
        ----------
        termination : why it ended; None asks :attr:`termination`. PROVEN holds only where there is a proof
        engine, version : what solved it
        """
        if self.contradictory:
            raise Disagreement(
                f"the bound {self.in_own(self.bound):.12g} excludes the confirmed {self.in_own(self.objective):.12g}",
                solution=self.solution,
            )
        ended = self.termination if termination is None or self.failure else termination
        if self.failure:
            self.info["reason"] = self.failure
        self.info.update(self.decided_by)
        objective, bound = self.in_own(self.objective), self.in_own(self.bound)
        if self.infeasible and objective is None:
            status, ended, bound = Status.INFEASIBLE, Termination.PROVEN, None
        elif self.proven:
            status, ended, bound = Status.OPTIMAL, Termination.PROVEN, objective
        else:
            status = Status.UNKNOWN if objective is None else Status.FEASIBLE
            ended = Termination.FINISHED if ended is Termination.PROVEN else ended
        return Result(
            status=status,
            objective=objective,
            bound=bound,
            solution=self.solution,
            termination=ended,
            solve_seconds=clock() - self.began,
            engine=engine,
            engine_version=version,
            info=self.info,
        )
