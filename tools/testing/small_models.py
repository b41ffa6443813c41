"""Small and hard declarative models with known answers, for engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np
import pulp

from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution

Terms = Iterable[tuple[pulp.LpVariable, float]]


def rows_by_name(model: DeclarativeModel) -> dict[str, pulp.LpConstraint]:
    """The problem's own dict of rows (PuLP before 3.3.2 has it under its public name)."""
    problem = model.problem
    rows: dict[str, pulp.LpConstraint] = (
        problem._constraints if hasattr(problem, "_constraints") else problem.constraints
    )
    return rows


class ModelMaker:
    """Builds a PuLP problem from lists, the way the formulations do."""

    def __init__(self, sense: int = 1) -> None:
        self.problem = pulp.LpProblem("test", sense)
        self.sense = sense
        self.variables: list[pulp.LpVariable] = []

    def var(
        self, low: float | None = 0, high: float | None = None, *, integer: bool = True, name: str = ""
    ) -> pulp.LpVariable:
        category = pulp.LpInteger if integer else pulp.LpContinuous
        create = getattr(self.problem, "add_variable", pulp.LpVariable)
        variable = create(name or f"x{len(self.variables)}", low, high, category)
        self.variables.append(variable)
        return variable

    def row(self, terms: Terms, relation: str, level: float, name: str | None = None) -> None:
        sense = {"<=": pulp.LpConstraintLE, ">=": pulp.LpConstraintGE, "==": pulp.LpConstraintEQ}[relation]
        constraint = pulp.LpConstraint(pulp.LpAffineExpression(list(terms)), sense, name, level)
        self.problem.addConstraint(constraint)

    def minimise(self, terms: Terms, constant: float = 0.0) -> None:
        """Set the objective (its sense is the maker's)."""
        self.problem.setObjective(pulp.LpAffineExpression(list(terms), constant))

    def model(self, **settings: object) -> DeclarativeModel:
        """The model, with further fields of it."""
        variables = list(self.variables)
        settings.setdefault("extract", lambda value: {v.name: value(v) for v in variables})
        settings.setdefault("assign", lambda solution: {v: solution[v.name] for v in variables if v.name in solution})
        return DeclarativeModel(self.problem, sense=self.sense, **cast(dict[str, Any], settings))


def staircase(sense: int, *, integer: bool, constant: float) -> tuple[DeclarativeModel, float]:
    """Five variables in 0..3 with costs 1..5 and 3 <= 2 sum(x) <= 9; and its optimum.

    Minimising, x0 = 3/2 (2 when integer); maximising, x4 = 3 and x3 = 3/2 (1 when integer).
    """
    maker = ModelMaker(sense)
    xs = [maker.var(0, 3, integer=integer) for _ in range(5)]
    maker.minimise([(x, float(i + 1)) for i, x in enumerate(xs)], constant)
    maker.row([(x, 2.0) for x in xs], "<=", 9)
    maker.row([(x, 2.0) for x in xs], ">=", 3)
    best = {(1, True): 2.0, (1, False): 1.5, (-1, True): 19.0, (-1, False): 21.0}[sense, integer]
    return maker.model(), best + constant


def market_split(rows: int, columns: int, seed: int, *, slack: bool, sense: int = 1) -> DeclarativeModel:
    """The market split problem (Cornuejols and Dawande 1998): hard for every solver at 5 x 40.

    With `slack`, points are easy to find and the distance is optimised; without, there is no known point.
    """
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 100, (rows, columns))
    maker = ModelMaker(sense)
    xs = [maker.var(0, 1) for _ in range(columns)]
    pairs = [(maker.var(0, 5000), maker.var(0, 5000)) for _ in range(rows)] if slack else []
    for i in range(rows):
        terms = [(x, float(w)) for x, w in zip(xs, weights[i], strict=True)]
        if slack:
            terms += [(pairs[i][0], 1.0), (pairs[i][1], -1.0)]
        maker.row(terms, "==", float(weights[i].sum() // 2))
    parts = [v for pair in pairs for v in pair] if slack else xs
    maker.minimise([(v, float(sense)) for v in parts], 1000.0)
    return maker.model(objective_is_integral=True)


def knapsacks(rows: int, columns: int, seed: int, *, sense: int = -1, constant: float = 0.0) -> DeclarativeModel:
    """A multidimensional knapsack; as a minimisation the profits are losses."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 60, (rows, columns))
    profits = rng.integers(1, 100, columns)
    maker = ModelMaker(sense)
    xs = [maker.var(0, 1) for _ in range(columns)]
    for i in range(rows):
        maker.row([(x, float(w)) for x, w in zip(xs, weights[i], strict=True)], "<=", float(weights[i].sum() // 3))
    maker.minimise([(x, float(-sense * p)) for x, p in zip(xs, profits, strict=True)], constant)
    return maker.model(objective_is_integral=float(constant).is_integer())


def exact_value(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def violated(model: DeclarativeModel, values: dict[str, float], tolerance: float = 1e-6) -> list[str]:
    """Names of what `values` (by name) break: rows, bounds, integrality."""
    broken = []
    for name, row in rows_by_name(model).items():
        total = sum(values[v.name] * c for v, c in row.items()) + row.constant
        if (row.sense <= 0 and total > tolerance) or (row.sense >= 0 and total < -tolerance):
            broken.append(name)
    for v in model.problem.variables():
        value = values[v.name]
        if v.lowBound is not None and value < v.lowBound - tolerance:
            broken.append(v.name)
        if v.upBound is not None and value > v.upBound + tolerance:
            broken.append(v.name)
        if v.cat == pulp.LpInteger and abs(value - round(value)) > tolerance:
            broken.append(v.name)
    return broken


def enumerate_optimum(model: DeclarativeModel, low: int = -12, high: int = 12) -> float | None:
    """The optimum of an all-integer model by trying every point in its bounds (or in low..high); None: infeasible."""
    variables = model.problem.variables()
    ranges = [
        range(
            int(np.ceil(low if v.lowBound is None else v.lowBound)),
            int(np.floor(high if v.upBound is None else v.upBound)) + 1,
        )
        for v in variables
    ]
    place = {id(v): i for i, v in enumerate(variables)}
    rows = [
        ([(place[id(v)], exact_value(c)) for v, c in row.items()], row.sense, exact_value(-row.constant))
        for row in rows_by_name(model).values()
    ]
    cost = [exact_value(model.problem.objective.get(v, 0)) for v in variables]
    best: Fraction | None = None
    for point in product(*ranges):
        if all(_holds(sum((c * point[i] for i, c in terms), Fraction(0)), s, b) for terms, s, b in rows):
            value = sum((c * x for c, x in zip(cost, point, strict=True)), Fraction(0))
            if best is None or model.sense * value < model.sense * best:
                best = value
    return None if best is None else float(best + exact_value(model.problem.objective.constant))


def _holds(total: Fraction, sense: int, level: Fraction) -> bool:
    return total == level if sense == 0 else (total - level) * sense >= 0


def checker_of(
    model: DeclarativeModel, *, objective: Callable[[Solution], Fraction] | None = None
) -> Callable[[Solution], CheckReport]:
    """An exact checker of a model's own rows, on solutions by variable name."""
    rows = list(rows_by_name(model).items())
    variables = {v.name: v for v in model.problem.variables()}

    def check(solution: Solution) -> CheckReport:
        violations = []
        for name, row in rows:
            total = sum((exact_value(c) * exact_value(solution[v.name]) for v, c in row.items()), Fraction(0))
            if not _holds(total, row.sense, exact_value(-row.constant)):
                violations.append(Violation(name, f"row {name}: {float(total):g}"))
        for name, v in variables.items():
            if v.cat == pulp.LpInteger and solution[name] != round(solution[name]):
                violations.append(Violation(name, f"{name} is {solution[name]:g}"))
        recomputed = exact_value(model.problem.objective.constant) + sum(
            (exact_value(c) * exact_value(solution[v.name]) for v, c in model.problem.objective.items()), Fraction(0)
        )
        return CheckReport(tuple(violations), recomputed if objective is None else objective(solution))

    return check


def random_model(rng: np.random.Generator, *, integer: bool, bounded: bool) -> DeclarativeModel:
    """A tiny random model; unbounded and infeasible ones come up often."""

    def pick(choices: Sequence[Any]) -> Any:
        return choices[int(rng.integers(len(choices)))]

    maker = ModelMaker(pick([1, -1]))
    xs = []
    for _ in range(int(rng.integers(1, 6))):
        low = pick([0, -2, 1, 0.5] if bounded else [None, 0, -2, 1])
        high = pick([1, 3, 4.5] if bounded else [None, None, 3, 5])
        xs.append(maker.var(low, high, integer=integer or bool(rng.random() < 0.5)))
    maker.minimise([(x, pick([-3.0, -1.5, -1.0, 0.0, 1.0, 2.0, 0.1])) for x in xs], pick([0.0, 7.25, -3.0]))
    for _ in range(int(rng.integers(0, 6))):
        terms = [(x, pick([-2.0, -1.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 0.5, 0.1])) for x in xs]
        maker.row(terms, pick(["<=", ">=", "<=", ">=", "=="]), pick([-3.0, 0.0, 1.0, 2.5, 4.0, 7.0, 0.3]))
    return maker.model()
