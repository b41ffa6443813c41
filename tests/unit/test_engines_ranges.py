"""Models in whole numbers, the ranges in which engines are believed, and what happens outside."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import schedgap.solvers.engines.declarative as declarative
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import EngineMissing
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.answer import EngineAnswer, EngineProgress
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.engines.exact_bound import GRID, evaluated, exact_bound
from schedgap.solvers.engines.integers import exact_decimal
from schedgap.solvers.engines.whole import FLOATING_RANGE, whole_model
from schedgap.solvers.result import Deadline, SolveOptions, Status, Termination
from schedgap.tools.testing.small_models import ModelMaker, checker_of, enumerate_optimum, random_model

ONE = SolveOptions(threads=1)


def test_rows_and_objective_become_whole_numbers_of_the_same_meaning() -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 9), maker.var(0, 9)
    maker.minimise([(x, 0.25), (y, 0.1)], 0.3)
    maker.row([(x, 0.1), (y, 0.2)], "<=", 0.3)
    maker.row([(x, 2.0), (y, 4.0)], "<=", 7)
    maker.row([(x, -3.0), (y, 6.0)], ">=", -10)
    whole = whole_model(model_arrays(maker.model()))
    assert whole.arrays.coefficients.tolist() == [1, 2, 1, 2, -1, 2]
    assert whole.arrays.row_upper.tolist() == [3, 3, np.inf]
    assert whole.arrays.row_lower.tolist() == [-np.inf, -np.inf, -3]
    assert (whole.continuous, whole.coefficient, whole.activity) == ("", 2, 27)
    goal = whole.objective
    assert (goal.cost.tolist(), goal.unit, goal.whole, goal.span) == ([-5, -2], Fraction(1, 20), True, 63)
    assert goal.outer(-5 * 3) == pytest.approx(0.3 + 0.75)
    assert goal.bound(-15.3) == goal.outer(-15)  # the next whole number
    assert FLOATING_RANGE.exceeded(whole) == ""


def test_a_row_that_no_whole_number_fits_is_a_contradiction() -> None:
    maker = ModelMaker()
    x, y = maker.var(0, 9), maker.var(0, 9)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 2.0), (y, 4.0)], "==", 7)
    assert whole_model(model_arrays(maker.model())).arrays.contradiction.endswith("no whole number fits")
    for name in ("highs", "cbc", "cpsat"):
        assert engine(name).solve(maker.model(), ONE).status is Status.INFEASIBLE


@pytest.mark.parametrize("name", ["highs", "cbc", "cpsat", "scip"])
def test_a_row_of_tiny_numbers_counts_as_any_other(name: str) -> None:
    """Of 1e-15, in units that engines would drop, and not of few digits."""
    maker = ModelMaker(-1)
    x, y = maker.var(0, 9), maker.var(0, 9)
    maker.minimise([(x, 2.0), (y, 3.0)])
    maker.row([(x, 2.718281828459045e-15), (y, 3.141592653589793e-15)], "<=", 2.1e-14)
    model = maker.model()
    found = engine(name).solve(model, ONE)
    assert (found.status, found.objective) == (Status.OPTIMAL, enumerate_optimum(model))


def test_floats_are_read_as_short_fractions_or_short_decimals() -> None:
    assert exact_decimal(1 / 3) == Fraction(1, 3)
    assert exact_decimal(86 / 3) == Fraction(86, 3)
    assert exact_decimal(0.1 + 0.2) == Fraction(3, 10)
    assert exact_decimal(0.123456789) == Fraction(123456789, 10**9)
    assert exact_decimal(2.0**0.5) == Fraction(f"{2.0**0.5:.15g}")


@pytest.mark.parametrize(
    ("numbers", "why"),
    [
        ([1.0, 1e-6], "a coefficient goes up to 1e+06 in whole numbers"),
        ([1.0, 1e-10], "a coefficient goes up to 1e+10 in whole numbers"),
        ([1.0, 2.0**0.5], "a coefficient goes up to"),
    ],
)
def test_wide_coefficients_are_outside_the_range(numbers: list[float], why: str) -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 1), maker.var(0, 1)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row(list(zip((x, y), numbers, strict=True)), "<=", 1)
    assert engine("highs").solve(maker.model(), ONE).doubt.startswith(why)
    assert engine("cbc").solve(maker.model(), ONE).doubt.startswith(why)
    assert engine("cpsat").solve(maker.model(), ONE).doubt == ""


def test_continuous_variables_are_outside_the_range_unless_they_are_integral_anyway() -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 5), maker.var(0, 5, integer=False)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 2.0), (y, 2.0)], "<=", 7, "both")
    assert engine("highs").solve(maker.model(), ONE).doubt == "row both has no whole numbers"
    restated = engine("highs").solve(maker.model(restated_integral=frozenset({y.name})), ONE)
    assert (restated.doubt, restated.bound) == ("", 3.0)


def test_any_duals_give_a_valid_bound() -> None:
    rng = np.random.default_rng(5)
    tried = 0
    for seed in range(100):
        model = random_model(np.random.default_rng(seed), integer=True, bounded=True)
        best = enumerate_optimum(model)
        whole = whole_model(model_arrays(model))
        if best is None or whole.arrays.contradiction or not whole.arrays.names:
            continue
        found = exact_bound(whole, Deadline())
        assert found is not None and model.sense * found <= model.sense * best + 1e-12
        for _ in range(5):
            duals = rng.normal(0, 3, len(whole.arrays.names))
            internal = evaluated(whole, duals)
            if internal is None:
                continue
            tried += 1
            goal = whole.objective
            assert model.sense * (goal.constant + goal.sense * goal.unit * internal) <= model.sense * best + 1e-9
    assert tried > 50


def test_the_bound_of_a_linear_program_is_its_optimum() -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 5), maker.var(0, 5)
    maker.minimise([(x, 3.0), (y, 2.0)])
    maker.row([(x, 1.0), (y, 1.0)], "<=", 6)
    whole = whole_model(model_arrays(maker.model()))
    assert exact_bound(whole, Deadline()) == 17.0
    assert evaluated(whole, np.array([-2.0 - 0.25 / GRID])) == Fraction(-17)  # on the grid


# --- second opinions -----------------------------------------------------------------------------------------


def wide() -> DeclarativeModel:
    """max 3 x + 2 y + z with x + 1e-6 y <= 1 and x + z <= 1: x alone is worth 3, y and z too, x with y is cut off."""
    maker = ModelMaker(-1)
    x, y, z = maker.var(0, 1), maker.var(0, 1), maker.var(0, 1)
    maker.minimise([(x, 3.0), (y, 2.0), (z, 1.5)])
    maker.row([(x, 1.0), (y, 1e-6)], "<=", 1)
    maker.row([(x, 1.0), (z, 1.0)], "<=", 1)
    return maker.model()


class Told:
    """An engine with the name of another that says what it is told to."""

    limits = FLOATING_RANGE
    handover_cost = 1.0

    def __init__(self, name: str, values: dict[str, float] | None, objective: float | None, doubt: str) -> None:
        self.name = name
        self._values, self._objective, self._doubt = values, objective, doubt

    def version(self) -> str:
        return "1.0"

    def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
        values = self._values
        if values is None:
            raise EngineMissing(f"engine {self.name}: not here")
        by_variable = {v: values[v.name] for v in model.problem.variables()}
        objective = self._objective
        return EngineAnswer(
            Status.OPTIMAL, Termination.PROVEN, "1.0", 0.1, objective, objective, by_variable, doubt=self._doubt,
            claimed=True,
        )  # fmt: skip


X = {"x0": 1.0, "x1": 0.0, "x2": 0.0}
BEST = {"x0": 0.0, "x1": 1.0, "x2": 1.0}


@pytest.mark.parametrize(
    ("first", "cpsat", "cbc", "status", "objective", "proof"),
    [
        ((X, 3.0), "real", None, Status.OPTIMAL, 3.5, "claimed"),  # the exact engine corrects it
        ((BEST, 3.5), (BEST, 3.5), None, Status.OPTIMAL, 3.5, "agreed"),
        ((BEST, 3.5), None, (BEST, 3.5), Status.OPTIMAL, 3.5, "agreed"),
        ((X, 3.0), None, (X, 3.0), Status.FEASIBLE, 3.0, None),  # two in doubt agree on what is wrong
        ((X, 3.0), None, (BEST, 3.5), Status.FEASIBLE, 3.5, None),
        ((X, 3.0), None, None, Status.FEASIBLE, 3.0, None),
    ],
)
def test_outside_its_range_an_engine_needs_another(
    monkeypatch: pytest.MonkeyPatch, first: Any, cpsat: Any, cbc: Any, status: Status, objective: float, proof: str
) -> None:
    engines: dict[str, Any] = {"highs": Told("highs", *first, "wide")}
    engines["cpsat"] = engine("cpsat") if cpsat == "real" else Told("cpsat", *(cpsat or (None, None)), "wide")
    engines["cbc"] = Told("cbc", *(cbc or (None, None)), "wide")
    monkeypatch.setattr(declarative, "engine", engines.__getitem__)
    model = wide()
    result = solve_declarative(lambda: model, "highs", ONE, checker_of(model))
    assert (result.status, result.objective, result.info.get("proof")) == (status, objective, proof)
    assert result.bound is not None and result.bound >= objective


def near_tie(most: float | None) -> DeclarativeModel:
    """min z over one of two choices, of which the second is better by 4e-8; the relaxation is worth half of that."""
    maker = ModelMaker()
    first, second, z = maker.var(0, 1), maker.var(0, 1), maker.var(0, most, integer=False)
    maker.minimise([(z, 1.0)])
    maker.row([(first, 1.0), (second, 1.0)], "==", 1)
    maker.row([(z, 1.0), (first, -1.0)], ">=", 0)
    maker.row([(z, 1.0), (second, -(1 - 4e-8))], ">=", 0)
    return maker.model()


FIRST = {"x0": 1.0, "x1": 0.0, "x2": 1.0}
SECOND = {"x0": 0.0, "x1": 1.0, "x2": 1 - 4e-8}


@pytest.mark.parametrize(
    ("values", "most", "status", "proof"),
    [
        (FIRST, 10.0, Status.FEASIBLE, None),
        (SECOND, 10.0, Status.OPTIMAL, "agreed"),
        (SECOND, None, Status.FEASIBLE, None),  # no tree without limits
    ],
)
def test_what_two_engines_in_doubt_agree_on_is_shown_exactly(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, float], most: float | None, status: Status, proof: str
) -> None:
    """Both overlook what is better by less than their tolerance, and no exact bound is near."""
    engines = {name: Told(name, values, values["x2"], "floats") for name in ("highs", "cbc")}
    engines["cpsat"] = Told("cpsat", None, None, "")
    monkeypatch.setattr(declarative, "engine", engines.__getitem__)
    model = near_tie(most)
    result = solve_declarative(lambda: model, "highs", ONE, checker_of(model))
    assert (result.status, result.info.get("proof")) == (status, proof)
    assert result.bound is None or result.bound <= (1 - 4e-8) * (1 + 1e-12)
    assert ("within 1e-6 is not shown" in result.info.get("reason", "")) == (proof is None)


@pytest.mark.parametrize(
    ("least", "status", "proof"), [(2.5, Status.INFEASIBLE, "agreed"), (2.0, Status.UNKNOWN, None)]
)
def test_that_nothing_is_possible_is_shown_exactly_too(
    monkeypatch: pytest.MonkeyPatch, least: float, status: Status, proof: str
) -> None:
    """Two engines in doubt say so; x + y >= 2 has a point, 2.5 has none."""

    class Without(Told):
        def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
            return EngineAnswer(Status.INFEASIBLE, Termination.PROVEN, "1.0", 0.1, doubt="wide")

    engines = {name: Without(name, None, None, "wide") for name in ("highs", "cbc")}
    engines["cpsat"] = Told("cpsat", None, None, "")
    monkeypatch.setattr(declarative, "engine", engines.__getitem__)
    maker = ModelMaker()
    x, y = maker.var(0, 1), maker.var(0, 1, integer=False)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, 1.0)], ">=", least)
    model = maker.model()
    result = solve_declarative(lambda: model, "highs", ONE, checker_of(model))
    assert (result.status, result.info.get("proof")) == (status, proof)
    assert ("that there is no schedule is not shown" in result.info.get("reason", "")) == (proof is None)


def test_the_exact_bound_stands_where_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine in doubt that is stopped leaves its solution, and the bound of the relaxation's duals."""

    class Stopped(Told):
        def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
            answer = super().solve(model, options)
            return replace(answer, status=Status.FEASIBLE, termination=Termination.WORK_LIMIT, bound=3.1, claimed=False)

    monkeypatch.setattr(declarative, "engine", lambda _: Stopped("highs", X, 3.0, "wide"))
    model = wide()
    options = replace(ONE, deadline=Deadline.after(1000))
    result = solve_declarative(lambda: model, "highs", options, checker_of(model))
    assert (result.status, result.objective, result.termination) == (Status.FEASIBLE, 3.0, Termination.WORK_LIMIT)
    assert result.bound is not None and 3.5 <= result.bound <= 5.0  # not the engine's 3.1


@pytest.mark.parametrize("name", ["highs", "cbc", "scip"])
def test_small_continuous_numbers_are_told_apart(name: str) -> None:
    """Tolerances of engines are absolute: without another unit y could be 0. Values are in the model's own unit."""
    maker = ModelMaker()
    first, second = maker.var(0, 1), maker.var(0, 1)
    y = maker.var(0, 1e-11, integer=False)
    maker.minimise([(y, 1.0)])
    maker.row([(first, 1.0), (second, 1.0)], ">=", 1)
    maker.row([(y, 1.0), (first, -3e-12)], ">=", 0)
    maker.row([(y, 1.0), (second, -5e-12)], ">=", 0)
    arrays = whole_model(model_arrays(maker.model())).arrays
    assert 1 <= arrays.upper[arrays.position[id(y)]] < 2
    answer = engine(name).solve(maker.model(), ONE)
    assert answer.values is not None
    assert (answer.values[first], answer.values[second]) == (1, 0)
    assert answer.objective == pytest.approx(3e-12, abs=0) == answer.values[y]
    assert answer.bound == pytest.approx(3e-12, abs=0)


def test_a_start_goes_to_an_engine_in_its_units() -> None:
    maker = ModelMaker()
    y = maker.var(0, 1e-11, integer=False)
    maker.minimise([(y, 1.0)])
    maker.row([(y, 1.0)], ">=", 2e-12)
    model = replace(maker.model(), assign=lambda _: {y: 4e-12})
    arrays = whole_model(model_arrays(model)).arrays
    (value,) = arrays.start(model, {}).values()
    assert value * 1e-11 == pytest.approx(4e-12 * arrays.upper[0], abs=0)


def test_bounds_below_1e_9_improve_too() -> None:
    maker = ModelMaker()
    y = maker.var(0, 1e-11, integer=False)
    maker.minimise([(y, 1.0)])
    model, told = maker.model(), list[float | None]()
    options = SolveOptions(report=lambda solution, objective, bound: told.append(bound))
    progress = EngineProgress(model, model_arrays(model), options)
    for bound in (0.0, 1e-13, 1e-13 * (1 + 1e-10), 2e-13):  # the third is the second, but for rounding
        progress.new_bound(bound)
    assert told == [0.0, 1e-13, 2e-13]
