"""Points that satisfy a model only within an engine's tolerance: found exactly, and cut off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.solvers.engines.arrays import INTEGRALITY_TOLERANCE, rows_of
from schedgap.solvers.engines.integers import exact_decimal, slackened

TIGHT_TOLERANCE = 1e-9
"""The tolerance with which a model is solved again."""
LARGEST_ROW = 10_000
"""Rows with more variables than this are not cut by enumeration of their support."""


@dataclass(frozen=True)
class BrokenRow:
    """The row that a point breaks most, beyond the checker's tolerance.

    Attributes
    ----------
    row : its name
    amount : by how much, in the row's own units
    allowed : how much an engine's tolerances can explain: 1e-5 times the sum of the row's |coefficients|
        and |right-hand side|, since integer variables within 1e-5 of a whole number are rounded
    point : the values of the row's variables
    """

    row: str
    amount: float
    allowed: float
    point: Mapping[pulp.LpVariable, float]


def worst_broken_row(model: DeclarativeModel, values: Mapping[pulp.LpVariable, float]) -> BrokenRow | None:
    """The row that `values` breaks most in exact arithmetic, or None where all hold within 1e-9 relative.

    The limit of a row over integers gives way just as it does where engines round it to a whole number.
    """
    worst: BrokenRow | None = None
    ratio = Fraction(0)
    for name, row in rows_of(model.problem):
        level = exact(float(-row.constant))
        total = sum((exact(float(c)) * exact(float(values[v])) for v, c in row.items()), Fraction(0))
        excess = total - level
        amount = abs(excess) if row.sense == 0 else max(Fraction(0), excess * -int(row.sense))
        largest = max((abs(exact(float(c))) for c in row.values()), default=Fraction(1))
        size = max(min(Fraction(1), largest), abs(level), abs(total))
        slack = CHECK_TOLERANCE * size
        if all(v.cat == pulp.LpInteger for v in row.keys()):  # noqa: SIM118 - a constraint is not a mapping
            slack = slackened(float(level), 1, float(largest)) - exact_decimal(float(level))
        if amount > slack and amount / size > ratio:
            ratio = amount / size
            weight = sum(abs(float(c)) for c in row.values()) + abs(float(level))
            worst = BrokenRow(
                name,
                float(amount),
                INTEGRALITY_TOLERANCE * max(1.0, weight),
                {v: values[v] for v in row.keys()},  # noqa: SIM118 - a constraint is not a mapping
            )
    return worst


def add_no_good_cut(model: DeclarativeModel, broken: BrokenRow, number: int) -> bool:
    """Forbid the values that break ``broken.row``, when its variables are all integer.

    Their combination breaks the row in exact arithmetic, whatever the other variables are, so no feasible
    point is lost. Adds to ``model.problem``: for a binary x with value 1 the term 1 - x, with value 0 the term
    x; for another integer x in [l, u] with value v two binaries d, e with x <= v - 1 + (u - v + 1)(1 - d) and
    x >= v + 1 - (v + 1 - l)(1 - e), and the terms d and e; the sum of all terms is at least 1.

    Returns
    -------
    bool
        False where a variable of the row is continuous or unbounded: then no such cut exists.
    """
    if len(broken.point) > LARGEST_ROW:
        return False
    for variable, value in broken.point.items():
        bounds = (variable.lowBound, variable.upBound)
        if variable.cat != pulp.LpInteger or None in bounds or value != round(value):
            return False
    problem = model.problem
    create = getattr(problem, "add_variable", pulp.LpVariable)
    terms: list[tuple[pulp.LpVariable, float]] = []
    constant = 0.0
    for place, (variable, value) in enumerate(broken.point.items()):
        low, high = math.ceil(variable.lowBound), math.floor(variable.upBound)
        if low == high:
            continue
        if value == low and high == low + 1:
            terms.append((variable, 1.0))
            constant -= low
        elif value == high and high == low + 1:
            terms.append((variable, -1.0))
            constant += high
        else:
            below = create(f"cut{number}_{place}_below", 0, 1, cat=pulp.LpInteger)
            above = create(f"cut{number}_{place}_above", 0, 1, cat=pulp.LpInteger)
            reach_down, reach_up = high - value + 1, value + 1 - low
            problem += (
                pulp.LpAffineExpression([(variable, 1.0), (below, float(reach_down))]) <= value - 1 + reach_down,
                f"cut{number}_{place}_down",
            )
            problem += (
                pulp.LpAffineExpression([(variable, 1.0), (above, -float(reach_up))]) >= value + 1 - reach_up,
                f"cut{number}_{place}_up",
            )
            terms += [(below, 1.0), (above, 1.0)]
    problem += (pulp.LpAffineExpression(terms, constant) >= 1, f"cut{number}")
    return True
