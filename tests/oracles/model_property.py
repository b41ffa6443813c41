"""Whether an untightened model is the problem: its points are the feasible schedules, with and without a random row.

For the tests and for ``python -m oracles.model_property``. Schedules come from plain enumeration
and the checker; nothing here knows how a model is built.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import pulp

from oracles.schedules import CASES, Case
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.layout import Key, Layout
from schedgap.formulations.common.numbers import MINIMISE, agrees, exact
from schedgap.solvers.engines.arrays import rows_of
from schedgap.solvers.model import Model
from schedgap.solvers.result import Result

ENGINES = ("highs", "cbc", "cpsat")
POINTS = 200
"""Schedules of an instance that are mapped into the model; a row is tried on all."""
LOOSE = Fraction(1, 10**7)
"""What a row with continuous variables may be missed by: points are floats."""

Values = Mapping[pulp.LpVariable, float]
Terms = list[tuple[pulp.LpVariable, float]]


@dataclass
class Finding:
    """What one instance showed.

    Attributes
    ----------
    schedules : feasible ones
    optimum : under the random row, by enumeration
    """

    name: str
    schedules: int
    row: str
    optimum: float | None


def examine(case: Case, seed: int, engines: Iterable[str] = ENGINES) -> Finding:
    """One instance: all schedules are points, and under a random row the engines find the best schedule that keeps it.

    Raises
    ------
    AssertionError
        It is not so.
    """
    instance, schedules = case.make(seed)
    problem = find_problem(case.problem)
    rng = random.Random(seed)

    def fresh() -> Model:
        declarative = problem.model(instance, case.form, False)
        assert declarative is not None
        return Model(declarative, lambda solution: problem.check(instance, solution), case.problem)

    model = fresh()
    declarative = model.declarative
    layout = declarative.layout
    assert layout is not None and declarative.assign is not None and not declarative.tightened
    rows = [
        (name, row.sense, exact(float(row.constant)), list(row.expr.items())) for name, row in rows_of(model.problem)
    ]
    points = []
    for number, solution in enumerate(schedules):
        values = declarative.assign(solution)
        assert values, f"{instance.name}: no point for {solution}"
        points.append((solution, values))
        if number < POINTS:
            _holds(values, rows, f"{instance.name}: {solution}")
            _same(declarative, layout, values)
            own = problem.check(instance, solution).objective
            assert own is not None
            value = _objective(model, values)
            off = abs(float(own) - value) <= declarative.resolution
            assert agrees(float(own), value) or off, (instance.name, solution)
    if not points:
        for engine in engines:
            assert fresh().solve(engine).status == "infeasible", f"{instance.name}: {engine}"
        return Finding(str(instance.name), 0, "", None)
    some = [values for _, values in points]
    terms, sense, level = random_row(layout, some, rng)
    cost = random_terms(layout, some, rng) if rng.random() < 0.5 else None
    direction = declarative.sense if cost is None else MINIMISE
    row = f"{terms} {sense:+d} {level}" + ("" if cost is None else f", minimise {cost}")
    worth = [
        _objective(model, values) if cost is None else sum(c * values[v] for v, c in cost)
        for values in some
        if _keeps(values, terms, sense, level)
    ]
    best = min((direction * value for value in worth), default=None)
    if case.optimum is not None:
        sums = [{(layout.family_of[v], _key_of(layout, v)): c for v, c in terms or ()} for terms in (terms, cost)]
        best = case.optimum(instance, sums[0], sense < 0, level, None if cost is None else sums[1])
    for engine in engines:
        changed = fresh()
        changed.add(pulp.LpConstraint(_twin(changed, layout, terms), sense, None, level), "random_row")
        if cost is not None:
            changed.minimise(_twin(changed, layout, cost))
        result = changed.solve(engine)
        what = f"{instance.name}: {engine} says {result.status}, {result.objective} under {row}; enumeration {best}"
        if best is None:
            assert result.status == ("infeasible" if declarative.until is None else "unknown"), what
        else:
            assert result.objective is not None, what
            near = 1e-6 * max(1.0, abs(best)) if case.optimum is not None else 1e-9 + declarative.resolution
            assert agrees(direction * result.objective, best) or abs(result.objective - direction * best) < near, what
            settled = result.status == "optimal" or (cost is not None and "until" in result.info)
            assert settled or (case.optimum is not None and _left(changed, result, best)), what
    return Finding(str(instance.name), len(points), row, None if best is None else direction * best)


def _left(model: Model, result: Result, best: float) -> bool:
    """Whether a gap is what tolerances leave where time is continuous.

    Rows hold to 1e-6 of their numbers, so an objective to so much of the sum of its terms. An engine's doubt (no
    two agree to 1e-9) is of that kind where the optimum is next to nothing beside these terms.
    """
    assign, goal = model.declarative.assign, model.problem.objective
    assert result.objective is not None and result.solution is not None and assign is not None
    values = assign(result.solution)
    size = max(1.0, abs(goal.constant), *(abs(float(c) * values[v]) for v, c in goal.items()))
    small = result.bound is not None and abs(result.objective - result.bound) <= 1e-6 * size
    return small or ("doubt" in result.info and abs(best) <= 1e-6 * size)


def random_row(layout: Layout, points: list[Values], rng: random.Random) -> tuple[Terms, int, float]:
    """(terms, sense, right side) of a row over variables that schedules determine, kept by a random one of them."""
    terms = random_terms(layout, points, rng)
    level = sum(c * rng.choice(points)[v] for v, c in terms)
    whole = all(v.cat == pulp.LpInteger for v, _ in terms)
    return terms, rng.choice([-1, 1, 1, -1, 0]) if whole else rng.choice([-1, 1]), level


def random_terms(layout: Layout, points: list[Values], rng: random.Random) -> Terms:
    """A random sum of up to three variables that schedules determine, which differ between the points if any do."""
    determined = [
        v
        for v, family in layout.family_of.items()
        if not layout.kinds[family].free and not layout.kinds[family].at_least
    ]
    some = points if len(points) <= POINTS else rng.sample(points, POINTS)
    varied = [v for v in determined if len({values[v] for values in some}) > 1] or determined
    chosen = rng.sample(varied, min(len(varied), rng.randint(1, 3)))
    return [(v, float(rng.choice([-2, -1, 1, 2]))) for v in chosen]


def _twin(model: Model, layout: Layout, terms: Terms) -> pulp.LpAffineExpression:
    """The same sum of another model of the same instance."""
    found = []
    for variable, coefficient in terms:
        found.append((model.variables[layout.family_of[variable]][_key_of(layout, variable)], coefficient))
    return pulp.LpAffineExpression(found)


def _key_of(layout: Layout, variable: pulp.LpVariable) -> Key:
    return next(k for k, v in layout.variables[layout.family_of[variable]].items() if v is variable)


def _keeps(values: Values, terms: Terms, sense: int, level: float) -> bool:
    excess = sum((exact(c) * exact(float(values[v])) for v, c in terms), Fraction(0)) - exact(float(level))
    slack = Fraction(1, 10**9) * max(Fraction(1), abs(exact(float(level))))
    return bool(abs(excess) <= slack if sense == 0 else excess * -sense <= slack)


def _objective(model: Model, values: Values) -> float:
    goal = model.problem.objective
    return float(sum((exact(float(c)) * exact(float(values[v])) for v, c in goal.items()), exact(float(goal.constant))))


def _holds(values: Values, rows: list[tuple[str, int, Fraction, Terms]], what: str) -> None:
    for variable, value in values.items():
        assert variable.lowBound is None or value >= variable.lowBound - 1e-9, f"{what}: {variable} is {value}"
        assert variable.upBound is None or value <= variable.upBound + 1e-9, f"{what}: {variable} is {value}"
        assert variable.cat != pulp.LpInteger or value == round(value), f"{what}: {variable} is {value}"
    for name, sense, constant, terms in rows:
        total = constant + sum((exact(float(c)) * exact(float(values[v])) for v, c in terms), Fraction(0))
        whole = all(v.cat == pulp.LpInteger for v, _ in terms)
        slack = (Fraction(1, 10**9) if whole else LOOSE) * max(Fraction(1), abs(constant))
        excess = abs(total) if sense == 0 else -sense * total
        assert excess <= slack, f"{what}: row {name}"


def _same(model: DeclarativeModel, layout: Layout, values: Values) -> None:
    """The way back leads to a schedule with the same point."""
    found = model.extract(lambda variable: values[variable])
    assert model.assign is not None
    again = model.assign(found)
    for variable, family in layout.family_of.items():
        kind = layout.kinds[family]
        near = abs(again[variable] - values[variable]) <= 1e-9 * max(1.0, abs(values[variable]))
        less = kind.at_least and again[variable] <= values[variable]
        assert kind.free or near or less, f"{variable}: {values[variable]} came back as {again[variable]}"


def main(arguments: list[str] | None = None) -> None:
    """Examine many instances of some problems, one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--instances", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args(arguments)
    for name in given.cases or CASES:
        case: Case = CASES[name]
        began = time.monotonic()
        found = []
        for seed in range(given.first, given.first + given.instances):
            found.append(examine(case, seed, case.engines))
        schedules = sum(finding.schedules for finding in found)
        empty = sum(not finding.schedules for finding in found)
        refused = sum(bool(finding.schedules) and finding.optimum is None for finding in found)
        print(
            f"{name}: {len(found)} instances, {schedules} schedules, {empty} infeasible, {refused} infeasible by the "
            f"row, {len(case.engines)} engines, {time.monotonic() - began:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
