"""Changed models against enumeration: random rows and a random objective on instances with all their schedules."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

import pulp

import schedgap
from oracles.model_property import random_terms
from oracles.schedules import CASES, Case
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import agrees, exact
from schedgap.solvers.model import Model

ROWS = 3
"""Own rows at most."""


Terms: TypeAlias = list[tuple[pulp.LpVariable, float]]


def change(
    model: Model,
    points: Sequence[dict[pulp.LpVariable, float]],
    rng: random.Random,
    families: frozenset[str],
    gather: Callable[[Model, Terms], Terms] = lambda _, terms: terms,
) -> None:
    """Add random rows, each kept by some schedule, and half the time an objective, over variables of these families.

    `gather` may put further variables into a sum.
    """
    layout = model.declarative.layout
    assert layout is not None
    sums = []
    for _ in range(rng.randint(0, ROWS) + 1):
        terms = [(v, c) for v, c in random_terms(layout, list(points), rng) if layout.family_of[v] in families]
        if terms:
            sums.append(gather(model, terms))
    goal = sums.pop() if sums and rng.random() < 0.5 else None
    for terms in sums:
        level = sum(c * rng.choice(points)[v] for v, c in terms)
        expression = pulp.LpAffineExpression(terms)
        model.add(pulp.LpConstraint(expression, rng.choice([-1, -1, 1, 1, 0]), None, level))
    if goal is not None:
        getattr(model, rng.choice(["minimise", "maximise"]))(pulp.LpAffineExpression(goal))


def workers_on_nodes(model: Model, terms: Terms) -> Terms:
    """The sum of g-vne over all positions of all sizes for each job and node that the sum is about."""
    key_of = {v: key for key, v in model.variables["place"].items()}
    gathered: dict[pulp.LpVariable, float] = {}
    for variable, coefficient in terms:
        if variable not in key_of:
            gathered[variable] = coefficient
            continue
        job, _, _, node = key_of[variable]
        gathered |= {v: coefficient for key, v in model.variables["place"].items() if key[::3] == (job, node)}
    return list(gathered.items())


def runs_and_finishes(model: Model, terms: Terms) -> Terms:
    """The sum of hadar that never rises when a job stops earlier: amounts, of `finish` in all later slots, too."""
    key_of = {v: (name, key) for name, family in model.variables.items() for key, v in family.items()}
    gathered: dict[pulp.LpVariable, float] = {}
    for variable, coefficient in terms:
        name, (job, first) = key_of[variable]
        for (other, slot), later in model.variables[name].items():
            if other == job and (slot == first or (name == "finish" and slot > first)):
                gathered[later] = gathered.get(later, 0.0) + abs(coefficient)
    return list(gathered.items())


def best_of(model: Model, points: Sequence[dict[pulp.LpVariable, float]]) -> Fraction | None:
    """The best value among the points that keep the own rows, by plain arithmetic; None where none does."""
    rows = {name: model.problem.constraints[name] for name in model.own_rows}
    goal, sense = model.problem.objective, model.problem.sense

    def total(expression: pulp.LpAffineExpression, point: dict[pulp.LpVariable, float]) -> Fraction:
        return exact(float(expression.constant)) + sum(
            (exact(float(c)) * exact(float(point[v])) for v, c in expression.items()), Fraction(0)
        )

    def keeps(point: dict[pulp.LpVariable, float]) -> bool:
        for row in rows.values():
            excess = total(row.expr, point) - exact(float(row.expr.constant)) + exact(float(row.constant))
            if (row.sense == 0 and excess) or (row.sense and excess * row.sense < 0):
                return False
        return True

    values = [sense * total(goal, point) for point in points if keeps(point)]
    return sense * min(values) if values else None


def examine(
    name: str,
    seed: int,
    engine: str | None = None,
    *,
    beyond: frozenset[str] = frozenset(),
    gather: Callable[[Model, Terms], Terms] = lambda _, terms: terms,
) -> str:
    """One changed model: the answer and enumeration agree. What answered: the exact method or the engine's name.

    Parameters
    ----------
    beyond : families that no change is about
    gather : see :func:`change`

    Raises
    ------
    AssertionError
        They do not.
    """
    case: Case = CASES[name]
    instance, schedules = case.make(seed)
    rng = random.Random(seed)
    model = schedgap.model(instance)
    points = [dict(values) for solution in schedules if (values := _point(model, solution))]
    if not points:
        return "no schedule"
    change(model, points, rng, frozenset(model.variables) - beyond, gather)
    expected = best_of(model, points)
    result = model.solve(engine)
    what = f"{name} {seed}: {result} of {[str(model.problem.constraints[n]) for n in model.own_rows]}, {expected}"
    if expected is None:
        assert result.status == "infeasible", what
    else:
        assert result.status == "optimal", what
        assert result.objective is not None and agrees(result.objective, float(expected)), what
        assert model.check(result.solution).feasible, what
    return str(result.info.get("method", result.engine))


def _point(model: Model, solution: Solution) -> dict[pulp.LpVariable, float]:
    assign = model.declarative.assign
    assert assign is not None
    return dict(assign(solution))
