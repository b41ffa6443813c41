"""Models in whole numbers, as far as they have them: what the engines in floating point are given.

A row over integers means the same when it is multiplied by the common denominator of its coefficients, when
their common divisor is taken out, and when its limits move to whole numbers that integers can reach. An
objective over integers takes values that are whole multiples of a unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats
from schedgap.solvers.engines.arrays import ModelArrays, least_whole, most_whole
from schedgap.solvers.engines.integers import LARGEST_EXACT, exact_decimal, slackened, whole_numbers

BOUND_TOLERANCE = 1e-6
"""How far, relatively, a floating-point engine's bound may be off; rounding keeps this distance."""


LARGEST_OBJECTIVE = 2.0**33
"""Objectives in whole numbers up to here: floating point then knows each of them from the next by far."""


LARGEST_ROW = 2.0**20
"""Rows with larger whole numbers are left as they are: feasibility tolerances are absolute, so CBC runs for ever."""


SMALLEST_ROW = -20
"""Rows below two to this are restated in a smaller unit: engines drop such numbers or refuse."""


LARGEST_COST = 2.0**14
"""Costs that have no whole numbers are scaled to about this: engines ignore differences below about 1e-6."""


@dataclass(frozen=True)
class Objective:
    """What an engine minimises in place of the model's objective, which is constant + sense * unit * (cost @ x)."""

    cost: Floats  # (n,) to be minimised
    unit: Fraction
    constant: Fraction
    sense: int
    whole: bool  # every value of ``cost @ x`` at a point that counts is a whole number
    # the largest |objective| within the variables' bounds in whole numbers; infinite where it has none, or no limit.
    # Beyond LARGEST_OBJECTIVE the cost is not in whole numbers
    span: float

    def outer(self, internal: float) -> float:
        """From what the engine says to the model's own objective."""
        return float(self.constant + self.sense * self.unit * Fraction(internal))

    def bound(self, internal: float) -> float | None:
        """The engine's bound as one on the model: rounded up to the next whole number where values are whole."""
        if not math.isfinite(internal):
            return None
        if not self.whole:
            return self.outer(internal)
        return self.outer(math.ceil(internal - min(0.5, BOUND_TOLERANCE * max(1.0, abs(internal)))))


@dataclass(frozen=True)
class WholeModel:
    """A model in whole numbers, as far as it has them."""

    arrays: ModelArrays  # the same model with its rows restated; its own objective is left as it is
    objective: Objective  # what an engine minimises
    # (m,) whether a row has whole numbers, and all its variables are whole; those with numbers beyond LARGEST_ROW are
    # left as they are
    rows_whole: NDArray[np.bool_]
    coefficient: float  # the largest |coefficient| of rows in whole numbers
    activity: float  # the largest sum of |coefficient| times |value| of a row within the variables' bounds

    @property
    def continuous(self) -> str:
        """A row or cost that has no whole numbers, or ""."""
        if not self.rows_whole.all():
            return f"row {self.arrays.names[int(np.argmin(self.rows_whole))]}"
        return "the objective" if not self.objective.whole and math.isinf(self.objective.span) else ""


@dataclass(frozen=True)
class Range:
    """The models on which an engine's word alone is believed: whole numbers, and none of them large."""

    coefficient: float  # the largest coefficient of a row, the smallest being 1
    activity: float  # the largest sum of |coefficients| times |values| of a row
    objective: float  # the largest |objective| in units of the smallest difference that two objectives can have

    def exceeded(self, model: WholeModel) -> str:
        """Why `model` is outside, or ""."""
        if model.continuous:
            return f"{model.continuous} has no whole numbers"
        for what, value, most in (
            ("a coefficient", model.coefficient, self.coefficient),
            ("the activity of a row", model.activity, self.activity),
            ("the objective", model.objective.span, self.objective),
        ):
            if value > most:
                return f"{what} goes up to {value:.3g} in whole numbers, more than {most:.3g}"
        return ""


FLOATING_RANGE = Range(coefficient=2.0**13, activity=2.0**20, objective=LARGEST_OBJECTIVE)
"""Range of engines in floating point with a feasibility tolerance of 1e-6: a row is then violated by less than 1/2."""


INTEGER_RANGE = Range(coefficient=2.0**62, activity=2.0**62, objective=2.0**53)
"""Range of CP-SAT, which computes in whole numbers of 64 bits; it refuses what lies beyond."""


def whole_model(arrays: ModelArrays) -> WholeModel:
    """Restate rows and objective in whole numbers, and what is continuous in ordinary ones; the optimum stays.

    Complexity: O(nonzeros) where numbers are whole already; exact fractions for the other rows.
    """
    restated, rows_whole, widest = _rows(arrays.in_ordinary_units())
    reach = np.maximum(np.abs(restated.lower), np.abs(restated.upper))
    sizes = np.abs(restated.coefficients)
    with np.errstate(invalid="ignore"):
        activity = np.add.reduceat(sizes * reach[restated.indices], restated.starts[:-1]) if len(sizes) else sizes
    return WholeModel(
        restated,
        _objective(restated, reach),
        rows_whole,
        max(widest, float(sizes.max(initial=0.0))),
        float(activity.max(initial=0.0)),
    )


def _objective(arrays: ModelArrays, reach: Floats) -> Objective:
    places = np.flatnonzero(arrays.cost)
    constant = exact_decimal(arrays.constant)
    if not len(places):
        return Objective(np.zeros(len(arrays.cost)), Fraction(1), constant, arrays.sense, True, 0.0)
    fixed = arrays.lower == arrays.upper
    loose = places[~fixed[places]]
    if arrays.whole[loose].all():
        exacts = [exact_decimal(value) for value in arrays.cost[places].tolist()]
        free = [value for value, place in zip(exacts, places.tolist(), strict=True) if not fixed[place]]
        numbers, scale = whole_numbers(free)
        common = math.gcd(*numbers) or 1
        unit = Fraction(common, scale)
        span = float(sum(abs(n) // common * r for n, r in zip(numbers, reach[loose].tolist(), strict=True)))
        if span <= LARGEST_OBJECTIVE:
            cost = np.zeros(len(arrays.cost))
            cost[loose] = [arrays.sense * (n // common) for n in numbers]
            still = sum(
                (
                    value * exact_decimal(float(arrays.lower[place]))
                    for value, place in zip(exacts, places.tolist(), strict=True)
                    if fixed[place]
                ),
                Fraction(0),
            )
            return Objective(cost, unit, constant + still, arrays.sense, True, span)
    else:
        span = math.inf
    largest = float(np.abs(arrays.cost).max())
    power = math.floor(math.log2(LARGEST_COST / largest))
    unit = Fraction(2) ** -power
    cost = arrays.sense * np.ldexp(arrays.cost, power)
    return Objective(cost, unit, constant, arrays.sense, False, span)


def _rows(arrays: ModelArrays) -> tuple[ModelArrays, NDArray[np.bool_], float]:
    """The rows restated, whether each has whole numbers, and the largest of those that were not put in their place."""
    widest = 0.0
    if not arrays.names:
        return arrays, np.ones(0, dtype=np.bool_), widest
    begin = arrays.starts[:-1]
    members_whole = np.logical_and.reduceat(arrays.whole[arrays.indices], begin)
    rounded = np.rint(arrays.coefficients)
    exact = (rounded == arrays.coefficients) & (np.abs(rounded) < LARGEST_EXACT)
    limits_small = (_size(arrays.row_lower) < LARGEST_EXACT) & (_size(arrays.row_upper) < LARGEST_EXACT)
    done = members_whole & np.logical_and.reduceat(exact, begin) & limits_small

    low, high = arrays.row_lower.copy(), arrays.row_upper.copy()
    low[done] = least_whole(arrays.row_lower)[done]
    high[done] = most_whole(arrays.row_upper)[done]
    coefficients = arrays.coefficients.copy()
    divisor = np.gcd.reduceat(np.where(exact, rounded, 1).astype(np.int64), begin)
    common = np.where(done & (divisor > 1), divisor, 1).astype(np.float64)
    divided = common > 1
    if divided.any():
        coefficients /= np.repeat(common, np.diff(arrays.starts))
        low[divided], high[divided] = np.ceil(low / common)[divided], np.floor(high / common)[divided]
    for row in np.flatnonzero(members_whole & ~done).tolist():
        found = _scaled(arrays, row)
        if found is None:
            continue
        done[row] = True
        if max(map(abs, found[0])) > LARGEST_ROW:
            widest = max(widest, *map(abs, found[0]))
        else:
            coefficients[arrays.starts[row] : arrays.starts[row + 1]], low[row], high[row] = found
    size = np.frexp(np.maximum.reduceat(np.abs(coefficients), begin))[1]
    unit = np.where(size < SMALLEST_ROW, np.ldexp(1.0, size), 1.0)
    coefficients /= np.repeat(unit, np.diff(arrays.starts))
    low /= unit
    high /= unit
    contradiction = arrays.contradiction
    if not contradiction and (low > high).any():
        contradiction = f"row {arrays.names[int(np.argmax(low > high))]}: no whole number fits"
    restated = replace(
        arrays, coefficients=coefficients, row_lower=low + 0.0, row_upper=high + 0.0, contradiction=contradiction
    )
    return restated, done, widest


def _scaled(arrays: ModelArrays, row: int) -> tuple[list[float], float, float] | None:
    """Whole numbers of a row: coefficients, limits; None where they would not be exact as floats."""
    part = slice(int(arrays.starts[row]), int(arrays.starts[row + 1]))
    numbers, scale = whole_numbers([exact_decimal(value) for value in arrays.coefficients[part].tolist()])
    common = math.gcd(*numbers)
    low, high = float(arrays.row_lower[row]), float(arrays.row_upper[row])
    size = float(np.abs(arrays.coefficients[part]).max())
    least = -math.inf if math.isinf(low) else math.ceil(slackened(low, -1, size) * scale / common)
    most = math.inf if math.isinf(high) else math.floor(slackened(high, 1, size) * scale / common)
    numbers = [n // common for n in numbers]
    largest = max(*map(abs, numbers), *(abs(x) for x in (least, most) if isinstance(x, int)))
    if largest > LARGEST_EXACT:
        return None
    return [float(n) for n in numbers], float(least), float(most)


def _size(levels: Floats) -> Floats:
    return np.where(np.isfinite(levels), np.abs(levels), 0.0)
