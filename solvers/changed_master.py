"""An objective of a user's own as branch and price counts it, to be maximised, and its result in the user's terms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.engines.declarative import Check
from schedgap.solvers.result import Result, Status


@dataclass(frozen=True)
class ChangedObjective:
    """The way between the objective of a changed model and what a search maximises.

    Attributes
    ----------
    changes : rows and objective of the user's own; without an objective both are the same
    factor : units of the search in one of the user's objective
    method : id of the exact method that searches
    """

    changes: Changes
    factor: float
    method: str

    def counted(self, check: Check) -> Callable[[Solution], CheckReport]:
        """The checker whose objective is the search's."""
        if self.changes.objective is None:
            return check
        scale = self.changes.sense * MAXIMISE * Fraction(self.factor)

        def judged(solution: Solution) -> CheckReport:
            report = check(solution)
            if report.objective is None:
                return report
            return replace(report, objective=scale * (Fraction(report.objective) - self.changes.constant))

        return judged

    def result(self, counted: Result) -> Result:
        """A result of the search in the objective of the changed model."""
        info = {**counted.info, "method": self.method}
        if self.changes.objective is None:
            return replace(counted, info=info)
        scale = self.changes.sense * MAXIMISE * Fraction(self.factor)

        def back(number: float | None) -> float | None:
            return None if number is None else float(Fraction(number) / scale + self.changes.constant)

        bound = counted.bound if counted.status is not Status.INFEASIBLE else None
        return replace(counted, objective=back(counted.objective), bound=back(bound), info=info)
