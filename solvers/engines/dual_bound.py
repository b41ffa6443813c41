"""A bound on a model that nobody has to believe: the linear relaxation's duals, evaluated in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from schedgap.formulations.common.errors import EngineMissing
from schedgap.solvers.engines.arrays import FloatArray
from schedgap.solvers.engines.integers import exact_decimal
from schedgap.solvers.engines.whole import WholeModel
from schedgap.solvers.result import Deadline, SolveOptions

GRID = 2**40
"""Duals are rounded to multiples of 1 / GRID, so that sums of products stay short."""


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


def evaluated(model: WholeModel, duals: FloatArray) -> Fraction | None:
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
