"""A bound on a model that nobody has to believe: the linear relaxation's duals, evaluated in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.errors import EngineMissing
from schedgap.formulations.common.numbers import CHECK_TOLERANCE
from schedgap.solvers.engines.integers import exact_decimal
from schedgap.solvers.result import Deadline, SolveOptions

if TYPE_CHECKING:
    from schedgap.solvers.certificates.linear import Model
from schedgap.solvers.engines.whole import WholeModel

GRID = 2**40
"""Duals are rounded to multiples of 1 / GRID, so that sums of products stay short."""


LEAVES = 500
"""Most leaves of a tree that has to show what engines in floating point agree on."""


def exact_bound(model: WholeModel, deadline: Deadline) -> float | None:
    """A valid bound on the model's optimum from its linear relaxation; None where there is none in time.

    Any row duals y give the bound ``sum_i min(y_i low_i, y_i high_i) + sum_j min(d_j lower_j, d_j upper_j)`` with the
    reduced costs ``d = c - A' y``, whatever the engine's tolerances are (Neumaier and Shcherbina 2004, Safe bounds in
    linear and mixed-integer programming, Mathematical Programming 99). It is evaluated in rationals.
    """
    try:
        from schedgap.solvers.engines.highs import relaxation_duals
    except (ImportError, EngineMissing):
        return None
    duals = relaxation_duals(model, SolveOptions(deadline=deadline, threads=1))
    if duals is None:
        return None
    internal = evaluated(model, duals)
    if internal is None:
        return None
    goal = model.objective
    reached = Fraction(math.ceil(internal)) if goal.whole else internal
    value = goal.constant + goal.sense * goal.unit * reached
    bound = float(value)
    if goal.sense * (Fraction(bound) - value) > 0:  # rounded to the wrong side
        bound = math.nextafter(bound, -goal.sense * math.inf)
    return bound


def nothing_better(model: WholeModel, value: float | None, deadline: Deadline) -> bool:
    """Whether no point is better than `value` by more than 1e-9 of it: a tree of such bounds, as certificates have.

    None: whether there is no point at all. False where the tree has more than LEAVES, or a variable no limit.
    """
    from schedgap.solvers.certificates.tree import Tree, Unproven

    goal, target = model.objective, None
    if not np.isfinite([model.arrays.lower, model.arrays.upper]).all():
        return False
    if value is not None:
        off = CHECK_TOLERANCE * abs(Fraction(value))
        target = (goal.sense * (Fraction(value) - goal.constant) - off) / goal.unit
    try:
        Tree(_in_fractions(model), target, deadline, LEAVES).grow()
    except Unproven:
        return False
    return True


def _in_fractions(model: WholeModel) -> Model:
    """The same rows as those of a certificate."""
    from schedgap.solvers.certificates.linear import Model

    arrays, rows = model.arrays, Model()
    lows, highs, costs = map(_fractions, (arrays.lower, arrays.upper, model.objective.cost))
    names = list(map(rows.var, map(str, range(len(lows))), lows, highs, costs, arrays.whole.tolist()))
    starts, coefficients = arrays.starts.tolist(), _fractions(arrays.coefficients)
    for i, name in enumerate(arrays.names):
        places = range(starts[i], starts[i + 1])
        terms = [(names[arrays.indices[k]], coefficients[k]) for k in places]
        for sense, levels in ((">=", arrays.row_lower), ("<=", arrays.row_upper)):
            if math.isfinite(levels[i]):
                rows.row(f"{name} {sense}", terms, sense, exact_decimal(float(levels[i])))
    return rows.finished()


def _fractions(values: Floats) -> list[Fraction]:
    return list(map(exact_decimal, values.tolist()))


def evaluated(model: WholeModel, duals: Floats) -> Fraction | None:
    """What row duals prove of ``cost @ x`` in minimisation; None where an infinite bound spoils it."""
    arrays = model.arrays
    steps = [round(y * GRID) if math.isfinite(y) else 0 for y in duals.tolist()]
    total = Fraction(0)
    reduced: list[int | Fraction] = [
        (int(c) if c == int(c) else exact_decimal(c)) * GRID for c in model.objective.cost.tolist()
    ]
    starts, places, numbers = arrays.starts.tolist(), arrays.indices.tolist(), arrays.coefficients.tolist()
    lows, highs = arrays.row_lower.tolist(), arrays.row_upper.tolist()
    for row, step in enumerate(steps):
        level = lows[row] if step > 0 else highs[row]
        if step == 0 or math.isinf(level):
            continue
        total += step * exact_decimal(level)
        for k in range(starts[row], starts[row + 1]):
            number = numbers[k]
            reduced[places[k]] -= step * (int(number) if number == int(number) else exact_decimal(number))
    for place in np.flatnonzero([r != 0 for r in reduced]).tolist():
        slope = reduced[place]
        level = float(arrays.lower[place] if slope > 0 else arrays.upper[place])
        if math.isinf(level):
            return None
        total += slope * exact_decimal(level)
    return total / GRID
