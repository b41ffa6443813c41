"""The best solution and the best bound known of one instance, and the one rule of when they prove an optimum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import agrees

Number = int | float | Fraction


def optimal(objective: Number | None, bound: Number | None, sense: int) -> bool:
    """Whether `bound` proves `objective` to be the optimum; every method and every report asks here.

    Where both are whole or rational numbers, the bound must reach the objective exactly. Otherwise they must
    agree within 1e-9 relative, whatever their size: there is no absolute tolerance that hides small objectives.

    Parameters
    ----------
    objective : of a solution that the checker confirms
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


@dataclass
class Incumbent:
    """The best solution and the best proven bound of one instance so far.

    Attributes
    ----------
    sense : +1 minimise, -1 maximise
    solution, objective : the best solution that the checker confirms, with its objective
    bound : the best proven bound on the optimum
    """

    sense: int
    solution: Solution | None = None
    objective: float | None = None
    bound: float | None = None

    @property
    def proven(self) -> bool:
        """Whether the solution is proven to be optimal."""
        return optimal(self.objective, self.bound, self.sense)

    @property
    def contradictory(self) -> bool:
        """Whether the solution is better than the bound allows."""
        return contradicts(self.objective, self.bound, self.sense)

    def offer(self, solution: Solution, objective: float) -> bool:
        """Keep a confirmed solution when it is the best so far; whether it is."""
        if self.objective is not None and self.sense * objective >= self.sense * self.objective:
            return False
        self.solution, self.objective = solution, objective
        return True

    def learn(self, bound: float | None) -> bool:
        """Keep a proven bound when it is the best so far; whether it is."""
        if bound is None or not math.isfinite(bound):
            return False
        if self.bound is not None and self.sense * bound <= self.sense * self.bound:
            return False
        self.bound = bound
        return True
