"""The arrays of a PuLP problem, taken out once in one pass; what every engine is built from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, compress
from operator import attrgetter, methodcaller
from typing import Any

import numpy as np
import pulp
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, LARGEST_SLACK, exact, unit_of

IntArray = NDArray[np.int32]

INTEGRALITY_TOLERANCE = 1e-5
"""Engines accept integer variables this close to a whole number; such values are rounded."""
LEAST_LARGEST = 1.0
"""Continuous variables go at least up to here, or are measured in another unit."""
NEAR = 1e-12
"""Sums of floats this near to a whole number, relatively, are computed again exactly."""


@dataclass(frozen=True)
class ModelArrays:
    """A linear model as arrays: sense * (cost @ x) -> min, row_lower <= A x <= row_upper, lower <= x <= upper.

    Bounds of integer variables are whole numbers: HiGHS 1.13 calls a point optimal that lies at a fractional
    bound of an integer variable.
    """

    # (n,) in the order in which the objective and then the rows first mention them
    variables: tuple[pulp.LpVariable, ...]
    names: tuple[str, ...]  # (m,) of the rows; rows without variables are left out
    sense: int  # +1 minimise, -1 maximise
    cost: Floats  # (n,)
    constant: float  # constant of the objective
    # lower, upper: (n,), infinite where there is no bound
    lower: Floats
    upper: Floats
    integral: NDArray[np.bool_]  # (n,) whether a variable is declared integer
    # row_lower, row_upper: (m,), infinite where a row is one-sided
    row_lower: Floats
    row_upper: Floats
    # starts: (m + 1,), indices and coefficients: (nonzeros,); the rows of A, compressed, no explicit zeros
    starts: IntArray
    indices: IntArray
    coefficients: Floats
    restated: NDArray[np.bool_]  # (n,) whether it is continuous, and integral in some optimal solution
    contradiction: str = ""  # what makes the model infeasible at sight (crossed bounds, a row 0 >= 1), or ""
    units: Floats | float = 1.0  # (n,) or one for all: a variable of 1 here is so much of the model's own

    @property
    def is_mip(self) -> bool:
        """Whether a variable is integer."""
        return bool(self.integral.any())

    @property
    def endless(self) -> bool:
        """Whether bounds alone leave the objective unbounded: a variable improves it and has no bound there."""
        slope = self.sense * self.cost
        return bool((((slope > 0) & np.isinf(self.lower)) | ((slope < 0) & np.isinf(self.upper))).any())

    def relaxed(self) -> ModelArrays:
        """The linear relaxation."""
        return replace(self, integral=np.zeros_like(self.integral), restated=np.zeros_like(self.integral))

    def without_cost(self) -> ModelArrays:
        """The model of feasibility alone."""
        return replace(self, cost=np.zeros_like(self.cost), constant=0.0)

    @property
    def whole(self) -> NDArray[np.bool_]:
        """(n,) whether a variable is integer in some optimal solution."""
        return self.integral | self.restated

    @cached_property
    def position(self) -> dict[int, int]:
        """Position of each variable by ``id(variable)``."""
        return {id(variable): place for place, variable in enumerate(self.variables)}

    def objective(self, values: Floats) -> float:
        """The objective at `values`, constant included."""
        return float(self.cost @ values) + self.constant

    def tidy(self, values: Floats) -> Floats:
        """`values` with integer variables rounded where they are within tolerance, clipped to the bounds."""
        tidy = np.array(values, dtype=np.float64)
        whole = np.rint(tidy)
        near = self.integral & (np.abs(tidy - whole) <= INTEGRALITY_TOLERANCE)
        tidy[near] = whole[near]
        clipped: Floats = np.clip(tidy, self.lower, self.upper)
        return clipped + 0.0  # no -0.0

    def fits(self, values: Floats) -> bool:
        """Whether `values` can be a point that an engine accepted: no row is violated by more than 1e-5 of its size.

        The size of a row is the sum of its |coefficients| and |limits|, at least 1: integer variables within
        1e-5 of a whole number are rounded. An integer variable must be whole by now (see :meth:`tidy`).
        """
        if bool((self.integral & (values != np.rint(values))).any()):
            return False
        if not self.names:
            return True
        activity = np.add.reduceat(self.coefficients * values[self.indices], self.starts[:-1])
        size = np.add.reduceat(np.abs(self.coefficients), self.starts[:-1])
        for limit in (self.row_lower, self.row_upper):
            size = size + np.where(np.isfinite(limit), np.abs(limit), 0.0)
        allowed = INTEGRALITY_TOLERANCE * np.maximum(1.0, size)
        return bool(((activity >= self.row_lower - allowed) & (activity <= self.row_upper + allowed)).all())

    def by_variable(self, values: Floats) -> dict[pulp.LpVariable, float]:
        """`values` (n,) as a mapping by variable, in the model's own units."""
        return dict(zip(self.variables, (values * self.units).tolist(), strict=True))

    def start(self, model: DeclarativeModel, solution: Solution | None) -> dict[int, float]:
        """The warm start that `solution` means, by position; empty where there is none, or where it does not fit.

        A schedule may use an index that the model's sets do not have: that costs the start, never the answer.
        """
        if solution is None or model.assign is None:
            return {}
        try:
            assigned: Mapping[pulp.LpVariable, float] = model.assign(solution)
        except LookupError:
            return {}
        places, units = self.position, np.broadcast_to(self.units, len(self.variables))
        here = [(places[id(v)], float(value)) for v, value in assigned.items() if id(v) in places]
        return {place: float(value / units[place]) for place, value in here}

    def in_ordinary_units(self) -> ModelArrays:
        """The same model; where nothing continuous gets as far as :data:`LEAST_LARGEST`, in units in which it does.

        Tolerances of engines are absolute: moments within 1e-6 s of each other are one moment to them.
        """
        continuous = ~self.whole
        largest = float(np.maximum(np.abs(self.lower), np.abs(self.upper))[continuous].max(initial=0.0))
        unit = unit_of(largest, (LEAST_LARGEST, math.inf))
        if unit == 1.0:
            return self
        units = np.where(continuous, unit, 1.0)
        coefficients, begin = self.coefficients * units[self.indices], self.starts[:-1]
        size = np.frexp(np.maximum.reduceat(np.abs(coefficients), begin))[1]
        loose = np.logical_or.reduceat(continuous[self.indices], begin)
        rows = np.where(loose, np.ldexp(1.0, size), 1.0)
        return replace(
            self,
            cost=self.cost * units,
            lower=self.lower / units,
            upper=self.upper / units,
            row_lower=self.row_lower / rows,
            row_upper=self.row_upper / rows,
            coefficients=coefficients / np.repeat(rows, np.diff(self.starts)),
            units=self.units * units,
        )


def rows_of(problem: pulp.LpProblem) -> list[tuple[str, Any]]:
    """(name, constraint) of every row."""
    return list(_rows_by_name(problem).items())


def drop_row(problem: pulp.LpProblem, name: str) -> None:
    """Take a row out."""
    del _rows_by_name(problem)[name]


def _rows_by_name(problem: pulp.LpProblem) -> dict[str, Any]:
    """PuLP's own dict; since 3.3.2 its public name is a mapping that warns when it is used as one."""
    found: dict[str, Any] = problem._constraints if hasattr(problem, "_constraints") else problem.constraints
    return found


def model_arrays(model: DeclarativeModel) -> ModelArrays:
    """Take the arrays out of ``model.problem``.

    Raises
    ------
    ModelRefused
        Special ordered sets, a number that is not finite, bounds that contradict their type, or a sense
        that differs from the PuLP problem's.

    Complexity: O(nonzeros), in passes that run in C.
    """
    problem = model.problem
    if problem.sense != model.sense:
        raise ModelRefused(f"model: sense is {model.sense:+d}, its PuLP problem says {problem.sense:+d}")
    if problem.sos1 or problem.sos2:
        raise ModelRefused("model: special ordered sets are not supported, restate them with binary variables")
    objective = problem.objective
    cost_terms: Mapping[Any, Any] = {} if objective is None else objective
    rows = rows_of(problem)
    names = tuple(name for name, _ in rows)
    constraints = [constraint for _, constraint in rows]

    expressions = [getattr(c, "expr", c) for c in constraints]  # dicts by variable
    occurrences = list(chain(cost_terms, chain.from_iterable(expressions)))
    identities = list(map(id, occurrences))
    mentioned = dict(zip(identities, occurrences, strict=True))  # in the order in which they first occur
    variables = tuple(mentioned.values())
    place = dict(zip(mentioned, range(len(variables)), strict=True))

    sizes = np.fromiter(map(len, expressions), dtype=np.int64, count=len(constraints))
    starts = np.zeros(len(constraints) + 1, dtype=np.int32)
    total = int(sizes.sum())
    if total > np.iinfo(np.int32).max:
        raise ModelRefused(f"model: {total} nonzeros are more than 32-bit indices hold")
    np.cumsum(sizes, out=starts[1:])
    indices = np.fromiter(map(place.__getitem__, identities[len(cost_terms) :]), np.int32, total)
    coefficients = np.fromiter(chain.from_iterable(map(methodcaller("values"), expressions)), np.float64, total)
    cost = np.zeros(len(variables))
    for variable, value in cost_terms.items():
        cost[place[id(variable)]] = value

    level = -np.fromiter(map(attrgetter("constant"), constraints), np.float64, len(constraints))
    row_sense = np.fromiter(map(attrgetter("sense"), constraints), np.int8, len(constraints))
    arrays = ModelArrays(
        variables=variables,
        names=names,
        sense=model.sense,
        cost=cost,
        constant=0.0 if objective is None else float(objective.constant),
        lower=np.array([-np.inf if v.lowBound is None else v.lowBound for v in variables], dtype=np.float64),
        upper=np.array([np.inf if v.upBound is None else v.upBound for v in variables], dtype=np.float64),
        integral=np.array([v.cat == pulp.LpInteger for v in variables], dtype=np.bool_),
        row_lower=np.where(row_sense >= 0, level, -np.inf),
        row_upper=np.where(row_sense <= 0, level, np.inf),
        starts=starts,
        indices=indices,
        coefficients=coefficients,
        restated=np.array([v.name in model.restated_integral for v in variables], dtype=np.bool_),
    )
    _refuse_bad_numbers(arrays, level)
    return _sharpened(_cleaned(arrays))


def _refuse_bad_numbers(arrays: ModelArrays, level: Floats) -> None:
    def first(bad: NDArray[np.bool_]) -> int | None:
        return int(np.argmax(bad)) if bad.any() else None

    if not np.isfinite(arrays.constant):
        raise ModelRefused(f"model: the objective's constant is {arrays.constant}")
    if (place := first(~np.isfinite(arrays.cost))) is not None:
        raise ModelRefused(f"model: cost of {arrays.variables[place].name} is {arrays.cost[place]}")
    if (place := first(~np.isfinite(arrays.coefficients))) is not None:
        row = int(np.searchsorted(arrays.starts, place, side="right")) - 1
        name = arrays.variables[arrays.indices[place]].name
        raise ModelRefused(f"model: row {arrays.names[row]}: coefficient of {name} is {arrays.coefficients[place]}")
    if (row_place := first(~np.isfinite(level))) is not None:
        raise ModelRefused(f"model: row {arrays.names[row_place]}: right-hand side is {level[row_place]}")
    wrong = np.isnan(arrays.lower) | np.isnan(arrays.upper) | (arrays.lower == np.inf) | (arrays.upper == -np.inf)
    if (place := first(wrong)) is not None:
        name = arrays.variables[place].name
        raise ModelRefused(f"model: bounds of {name} are {arrays.lower[place]} and {arrays.upper[place]}")


def _cleaned(arrays: ModelArrays) -> ModelArrays:
    """Without explicit zeros and without rows that have no variables: engines count, warn about or lose them."""
    keep = arrays.coefficients != 0
    before = np.concatenate(([0], np.cumsum(keep)))
    starts = before[arrays.starts].astype(np.int32)
    filled = np.diff(starts) > 0
    if keep.all() and filled.all():
        return arrays
    above = arrays.row_lower > slack(arrays.row_lower)
    below = arrays.row_upper < -slack(arrays.row_upper)
    broken = ~filled & (above | below)
    contradiction = ""
    if broken.any():
        row = int(np.argmax(broken))
        contradiction = f"row {arrays.names[row]}: {arrays.row_lower[row]:g} <= 0 <= {arrays.row_upper[row]:g}"
    return replace(
        arrays,
        names=tuple(compress(arrays.names, filled)),
        row_lower=arrays.row_lower[filled],
        row_upper=arrays.row_upper[filled],
        starts=np.concatenate((starts[:-1][filled], starts[-1:])),
        indices=arrays.indices[keep],
        coefficients=arrays.coefficients[keep],
        contradiction=contradiction,
    )


def _sharpened(arrays: ModelArrays) -> ModelArrays:
    """Integer variables' bounds moved inwards to whole numbers, after giving way by the tolerance."""
    lower = np.where(arrays.integral, least_whole(arrays.lower), arrays.lower) + 0.0
    upper = np.where(arrays.integral, most_whole(arrays.upper), arrays.upper) + 0.0
    contradiction = arrays.contradiction
    crossed = lower > upper
    if crossed.any() and not contradiction:
        place = int(np.argmax(crossed))
        name = arrays.variables[place].name
        contradiction = f"{name}: no value between {arrays.lower[place]:g} and {arrays.upper[place]:g}"
    return replace(arrays, lower=lower, upper=upper, contradiction=contradiction)


def slack(levels: Floats) -> Floats:
    """The amount by which limits of these sizes give way before they are rounded to whole numbers."""
    finite = np.where(np.isfinite(levels), np.abs(levels), 0.0)
    return np.minimum(float(LARGEST_SLACK), float(CHECK_TOLERANCE) * np.maximum(1.0, finite))


def most_whole(levels: Floats) -> Floats:
    """The largest whole numbers within upper limits that give way; 2 (1 - 1e-9) falls just short of 2."""
    moved = levels + slack(levels)
    found = np.floor(moved)
    with np.errstate(invalid="ignore"):
        edge = (np.abs(moved - np.rint(moved)) <= NEAR * np.maximum(1.0, np.abs(moved))) & (levels != np.rint(levels))
    for place in np.flatnonzero(edge).tolist():
        level = exact(float(levels[place]))
        found[place] = math.floor(level + min(LARGEST_SLACK, CHECK_TOLERANCE * max(Fraction(1), abs(level))))
    return found


def least_whole(levels: Floats) -> Floats:
    """The smallest whole numbers within lower limits that give way."""
    return -most_whole(-levels)
