"""A linear model restated over integers, exactly: rows and objective scaled to whole numbers, or refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, LARGEST_SLACK
from schedgap.solvers.engines.arrays import ModelArrays, least_whole, most_whole
from schedgap.solvers.engines.ticks import ticks_of

LARGEST_DENOMINATOR = 10_000
"""Largest denominator of the fractions that a float is taken for, such as 1/3."""


LARGEST_EXACT = 2**53
"""Whole numbers up to here are exact as floats, so values and objectives survive the way back."""


LARGEST_ACTIVITY = 2**62
"""Activities beyond this could overflow 64-bit integers inside the solver."""


LAST_DIGIT = Fraction(1, 10**15)
"""Numbers are read as short decimals, which are further than this, relatively, from no float that they stand for."""


@dataclass(slots=True)
class Row:
    """low <= sum of coefficients * x <= high over integers; None where one-sided."""

    name: str
    places: list[int]
    coefficients: list[int]
    low: int | None
    high: int | None

    @property
    def impossible(self) -> bool:
        """Whether no whole number fits, or the row has no variable (left) and 0 does not fit."""
        if self.low is not None and self.high is not None and self.low > self.high:
            return True
        return not self.places and ((self.low or 0) > 0 or (self.high or 0) < 0)


@dataclass
class IntegerModel:
    """Minimise unit * sum(cost[j] * x[j]) over integers x, subject to `rows` and bounds."""

    # low, high: bounds by position, None where there is none
    low: list[int | None]
    high: list[int | None]
    # positions whose value is known already, with that value (not necessarily whole); they occur in no row and not in
    # `cost`
    fixed: dict[int, Fraction]
    # positions of continuous variables, with the step of which x counts the multiples (see :mod:`.ticks`)
    ticks: dict[int, Fraction]
    # rows, cost: in whole numbers
    rows: list[Row]
    cost: dict[int, int]
    unit: Fraction  # unit of the cost
    offset: Fraction  # what the fixed positions and the constant add to the objective
    sense: int  # sense of the original model; its objective is offset + sense * unit * sum(cost * x)
    resolution: float = 0.0  # largest rounding of the cost

    @property
    def contradictory(self) -> bool:
        """Whether a variable has no value, or a row asks for a whole number where there is none."""
        crossed = any(a is not None and b is not None and a > b for a, b in zip(self.low, self.high, strict=True))
        return crossed or any(row.impossible for row in self.rows)

    def domains(self) -> tuple[list[int], list[int]]:
        """Lower and upper bounds by position; those that are fixed elsewhere read 0.

        Raises ValueError: a variable has no finite domain yet (see :mod:`.finite_domains`).
        """
        sides = []
        for side in (self.low, self.high):
            open_places = [p for p, b in enumerate(side) if b is None and p not in self.fixed]
            if open_places:
                raise ValueError(f"no finite domain at positions {open_places[:5]}")
            sides.append([0 if b is None else b for b in side])
        return sides[0], sides[1]

    def objective(self, internal: int) -> float:
        """The original objective where sum(cost * x) is `internal`."""
        return float(self.offset + self.sense * internal * self.unit)


@lru_cache(maxsize=65536)
def exact_decimal(number: float) -> Fraction:
    """The rational that `number` stands for: a short fraction, or else a decimal of up to 15 digits.

    Every decimal of up to 15 digits survives being a float. The 16th and 17th digit are dust of floating-point
    arithmetic (0.1 + 0.2 = 0.30000000000000004); dropping them moves a number by at most 5e-16 relative. A number
    that uses all digits, but is the float nearest to a fraction with a denominator of at most 10,000 (or one of its
    neighbours), is that fraction.
    """
    decimal = Fraction(f"{number:.15g}")
    if decimal.denominator > LARGEST_DENOMINATOR:
        short = Fraction(number).limit_denominator(LARGEST_DENOMINATOR)
        if short and abs(float(short) - number) <= math.ulp(number):
            return short
    return decimal


def integer_model(arrays: ModelArrays, restated: frozenset[str]) -> IntegerModel:
    """Restate `arrays` over integers without changing its optimum.

    A number is read as the decimal of at most 15 digits that it stands for. Each row is multiplied by the
    common denominator of its coefficients. A right-hand side is rounded inwards to a whole number after
    giving way by 1e-9 relative, the tolerance of every checker (at most 1e-6); not where the row has times counted in
    ticks, which keep it exactly. Raises ModelRefused: a continuous variable that matters, is not in `restated`, and has
    no tick of which it is a multiple.

    Parameters
    ----------
    arrays : the model
    restated : names of continuous variables that are integral in some optimal solution
    """
    low, high = _bounds(arrays)
    fixed = _fixed(arrays, restated)
    integer = arrays.integral | np.array([v.name in restated for v in arrays.variables], dtype=np.bool_)
    continuous = [place for place in np.flatnonzero(~integer).tolist() if place not in fixed]
    ticks = ticks_of(arrays, continuous, fixed, exact_decimal) if continuous else {}
    for place, tick in ticks.items():
        lower, upper = float(arrays.lower[place]), float(arrays.upper[place])
        low[place] = None if math.isinf(lower) else int(exact_decimal(lower) / tick)
        high[place] = None if math.isinf(upper) else int(exact_decimal(upper) / tick)
    for place in fixed:
        low[place] = high[place] = None
    cost = {
        place: arrays.sense * exact_decimal(float(arrays.cost[place])) * ticks.get(place, 1)
        for place in np.flatnonzero(arrays.cost).tolist()
        if place not in fixed
    }
    offset = exact_decimal(arrays.constant) + sum(
        (exact_decimal(float(arrays.cost[place])) * value for place, value in fixed.items()), Fraction(0)
    )
    scaled, scale = whole_numbers(list(cost.values()))
    common = math.gcd(*scaled) or 1
    goal = {place: number // common for place, number in zip(cost, scaled, strict=True)}
    rows = _rows(arrays, fixed, ticks)
    return IntegerModel(low, high, fixed, ticks, rows, goal, Fraction(common, scale), offset, arrays.sense)


def round_cost(model: IntegerModel) -> None:
    """Round the cost where its whole numbers are too large, never to a worse objective, so that bounds stay valid.

    Every variable must have finite bounds by now. Costs move by less than a unit of 10^-15 to 10^-14 of the largest
    objective. Where a variable takes both signs, nothing is done: no rounding is right for both.
    """
    low, high = model.domains()
    reach = {place: max(abs(low[place]), abs(high[place])) for place in model.cost}
    total = sum(abs(number) * reach[place] for place, number in model.cost.items())
    room = LARGEST_EXACT - sum(reach.values())
    if total <= LARGEST_EXACT or room <= 0 or any(low[place] < 0 < high[place] for place in model.cost):
        return
    factor = 10 ** len(str(total // room))
    for place, number in model.cost.items():
        model.cost[place] = number // factor if low[place] >= 0 else -(-number // factor)
    model.unit *= factor
    model.resolution = float(model.unit * sum(reach.values()))


def _bounds(arrays: ModelArrays) -> tuple[list[int | None], list[int | None]]:
    lows = least_whole(arrays.lower).tolist()
    highs = most_whole(arrays.upper).tolist()
    low = [None if b == -math.inf else int(b) for b in lows]
    high = [None if b == math.inf else int(b) for b in highs]
    return low, high


def _fixed(arrays: ModelArrays, restated: frozenset[str]) -> dict[int, Fraction]:
    """Continuous variables that need no decision: fixed by bounds, or in no row and best at a bound."""
    used = np.zeros(len(arrays.variables), dtype=np.bool_)
    used[arrays.indices] = True
    fixed: dict[int, Fraction] = {}
    for place in np.flatnonzero(~arrays.integral).tolist():
        lower, upper = float(arrays.lower[place]), float(arrays.upper[place])
        if arrays.variables[place].name in restated and lower != upper:
            continue
        if lower == upper:
            fixed[place] = exact_decimal(lower)
        elif not used[place]:
            slope = arrays.sense * arrays.cost[place]
            best = min(max(0.0, lower), upper) if slope == 0 else (lower if slope > 0 else upper)
            if math.isfinite(best):
                fixed[place] = exact_decimal(best)
    return fixed


def _rows(arrays: ModelArrays, fixed: dict[int, Fraction], ticks: dict[int, Fraction]) -> list[Row]:
    whole = np.rint(arrays.coefficients)
    is_whole = (whole == arrays.coefficients) & (np.abs(whole) < LARGEST_EXACT)
    starts = arrays.starts.tolist()
    places = arrays.indices.tolist()
    numbers: list[int] = np.where(is_whole, whole, 0).astype(np.int64).tolist()
    row_is_whole = np.ones(len(arrays.names), dtype=np.bool_)
    row_is_whole[np.repeat(np.arange(len(arrays.names)), np.diff(arrays.starts))[~is_whole]] = False
    small = (_size(arrays.row_lower) < LARGEST_EXACT) & (_size(arrays.row_upper) < LARGEST_EXACT)
    flags = (row_is_whole & small).tolist()
    lows, highs = arrays.row_lower.tolist(), arrays.row_upper.tolist()
    whole_lows = least_whole(arrays.row_lower).tolist()
    whole_highs = most_whole(arrays.row_upper).tolist()
    sizes = np.maximum.reduceat(np.abs(arrays.coefficients), arrays.starts[:-1]).tolist() if arrays.names else []
    rows = []
    special = fixed.keys() | ticks.keys()
    for place, name in enumerate(arrays.names):
        begin, end = starts[place], starts[place + 1]
        members = places[begin:end]
        low, high = lows[place], highs[place]
        if flags[place] and not (special and any(p in special for p in members)):
            least = None if low == -math.inf else int(whole_lows[place])
            most = None if high == math.inf else int(whole_highs[place])
            rows.append(Row(name, members, numbers[begin:end], least, most))
            continue
        gives_way = 0 if ticks and any(p in ticks for p in members) else 1
        members, coefficients, scale, shift = _scaled(arrays, begin, end, fixed, ticks)
        least = None if math.isinf(low) else math.ceil(scale * (slackened(low, -gives_way, sizes[place]) - shift))
        most = None if math.isinf(high) else math.floor(scale * (slackened(high, gives_way, sizes[place]) - shift))
        rows.append(Row(name, members, coefficients, least, most))
    return rows


def _size(levels: Floats) -> Floats:
    return np.where(np.isfinite(levels), np.abs(levels), 0.0)


def _scaled(
    arrays: ModelArrays, begin: int, end: int, fixed: dict[int, Fraction], ticks: dict[int, Fraction]
) -> tuple[list[int], list[int], Fraction, Fraction]:
    """Places, whole coefficients, the factor they were multiplied by, and what the fixed places add."""
    shift = Fraction(0)
    members, exacts = [], []
    for place, number in zip(arrays.indices[begin:end].tolist(), arrays.coefficients[begin:end].tolist(), strict=True):
        if place in fixed:
            shift += exact_decimal(number) * fixed[place]
        else:
            members.append(place)
            exacts.append(exact_decimal(number) * ticks.get(place, 1))
    coefficients, scale = whole_numbers(exacts)
    common = math.gcd(*coefficients) or 1 if ticks else 1
    return members, [c // common for c in coefficients], Fraction(scale, common), shift


def whole_numbers(numbers: Sequence[Fraction]) -> tuple[list[int], int]:
    """`numbers` times their common denominator, and that denominator."""
    scale = math.lcm(*(number.denominator for number in numbers)) if numbers else 1
    return [int(number * scale) for number in numbers], scale


def slack_of(level: float, size: float, tolerance: Fraction = CHECK_TOLERANCE) -> Fraction:
    """Slack of a row's limit: 1e-9 relative, at most 1e-6; `size` is the row's largest |coefficient|."""
    value = abs(exact_decimal(level))
    return min(LARGEST_SLACK, tolerance * (value or min(Fraction(1), exact_decimal(size))))


def slackened(level: float, direction: int, size: float) -> Fraction:
    """A row's limit after it gave way, and a hair more: what the checker admits by a float's last digit is a point."""
    return exact_decimal(level) + direction * slack_of(level, size, CHECK_TOLERANCE + LAST_DIGIT)


def activity(row: Row, low: Sequence[int | None], high: Sequence[int | None]) -> tuple[int | None, int | None]:
    """Smallest and largest value that the row's expression can take, None where unbounded."""
    least: int | None = 0
    most: int | None = 0
    for place, coefficient in zip(row.places, row.coefficients, strict=True):
        down, up = (low[place], high[place]) if coefficient > 0 else (high[place], low[place])
        least = None if least is None or down is None else least + coefficient * down
        most = None if most is None or up is None else most + coefficient * up
    return least, most


def refuse_overflow(model: IntegerModel, names: Sequence[str]) -> None:
    """Refuse a model whose numbers leave the range in which integer arithmetic is exact.

    Every variable must have finite bounds by now. Raises ModelRefused: naming the variable, the row or the objective.
    """
    reach: list[int] = []
    for place, (a, b) in enumerate(zip(model.low, model.high, strict=True)):
        size = max(abs(a or 0), abs(b or 0))
        if size > LARGEST_EXACT:
            raise ModelRefused(f"engine cpsat: {names[place]} ranges up to {size}, which is beyond 2^53")
        reach.append(size)
    for row in model.rows:
        total = sum(abs(c) * reach[p] for p, c in zip(row.places, row.coefficients, strict=True))
        if total > LARGEST_ACTIVITY or max(map(abs, row.coefficients), default=0) > LARGEST_ACTIVITY:
            raise ModelRefused(
                f"engine cpsat: row {row.name} cannot be scaled to whole numbers within 64 bits "
                "(coefficients with too many decimal places or too wide a range)"
            )
    total = sum(abs(c) * reach[p] for p, c in model.cost.items())
    if total > LARGEST_EXACT:
        raise ModelRefused(
            "engine cpsat: the objective cannot be scaled to whole numbers below 2^53 "
            "(costs with too many decimal places or too wide a range)"
        )
