"""Rows and an objective of a user's own in branch and price: in whole numbers, in its search, and in its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.changes import Changes, Place, whole_terms
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.branch_and_price import BranchAndPrice, Rules
from schedgap.solvers.column_generation import Generated
from schedgap.solvers.engines.declarative import Check
from schedgap.solvers.result import Result, Status
from schedgap.solvers.ruin_and_recreate import Choice, Item, Prices

LARGEST = 2**20
"""Largest coefficient and level of a row, and largest coefficient of an objective, in whole numbers."""


class WholeChanges(NamedTuple):
    """Changes in whole numbers."""

    limited: list[tuple[Mapping[Place, int], int]]  # the rows as sums that are at most a level
    goal: Mapping[Place, int] | None  # the objective, in the user's own sense; None where the problem's own stands
    factor: float  # units of `goal` in one of the user's objective


def whole_changes(changes: Changes) -> WholeChanges | None:
    """The changes in whole numbers; None where one of these is above `LARGEST`."""
    limited = changes.at_most(LARGEST)
    if limited is None:
        return None
    if changes.objective is None:
        return WholeChanges(limited, None, 1.0)
    goal = whole_terms(changes.objective, Fraction(0), LARGEST)
    return None if goal is None else WholeChanges(limited, goal[0], float(goal[2]))


class ChoicesOfColumns(BranchAndPrice[Rules, Item, Prices]):
    """Branch and price whose choices come from the columns alone: greedy insertion knows nothing of a user's rows."""

    def start(self) -> None:
        """Nothing chosen at all."""
        self.accept(self.choices.choice([None] * self.choices.groups))

    def round(self, generated: Generated, rounds: int, *, whole: bool = False) -> None:
        """The columns of weight above a half."""
        items: list[Item | None] = [None] * self.choices.groups
        for position in np.flatnonzero(generated.weights > 0.5).tolist():
            column = generated.columns[position]
            items[column.group] = self.item(column)
        self.accept(self.choices.choice(items))

    def fits_exactly(self, choice: Choice[Item]) -> bool:
        """Asked of the checker, own rows included."""
        return self.check(self.solution_of(choice.items)).feasible


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
