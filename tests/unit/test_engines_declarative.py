"""solve_declarative: what the checker confirms, and what happens when engine and checker differ."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from support.work import PATIENCE, calls, with_growing_limit

import schedgap.solvers.engines.declarative as declarative
from schedgap.benchmarks.instances.rar_ddls.random import paper, small
from schedgap.benchmarks.report.compare import run_method
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.rar_ddls.models.time_indexed import build_ilp, ilp_nonzeros
from schedgap.solvers import budget
from schedgap.solvers.engines import NAMES, engine, installed_engines, watch
from schedgap.solvers.engines.answer import EngineAnswer
from schedgap.solvers.engines.declarative import add_no_good_cut, solve_declarative, worst_broken_row
from schedgap.solvers.engines.whole import FLOATING_RANGE
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status, Termination
from schedgap.tools.testing.small_models import ModelMaker, checker_of, knapsacks, market_split, rows_by_name, staircase
from studies.engine_handoff import sparse_model

ONE = SolveOptions(threads=1)


@pytest.fixture(params=(*NAMES, *installed_engines()))
def name(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


def solved(model: DeclarativeModel, name: str = "highs", options: SolveOptions = ONE, **settings: Any) -> Result:
    settings.setdefault("check", checker_of(model))
    return solve_declarative(lambda: model, name, options, **settings)


class Scripted:
    """An engine that answers what it is told to, one answer after the other."""

    name = "scripted"
    limits = FLOATING_RANGE
    handover_cost = 1.0

    def __init__(self, *answers: Callable[[DeclarativeModel], EngineAnswer]) -> None:
        self.answers = list(answers)
        self.options: list[SolveOptions] = []

    def version(self) -> str:
        return "1.0"

    def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
        self.options.append(options)
        return self.answers.pop(0)(model)


def says(
    status: Status,
    termination: Termination = Termination.PROVEN,
    *,
    objective: float | None = None,
    bound: float | None = None,
    values: dict[str, float] | None = None,
) -> Callable[[DeclarativeModel], EngineAnswer]:
    def answer(model: DeclarativeModel) -> EngineAnswer:
        by_variable = None if values is None else {v: values[v.name] for v in model.problem.variables()}
        return EngineAnswer(status, termination, "1.0", 0.1, objective, bound, by_variable)

    return answer


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Scripted]:
    def install(*answers: Callable[[DeclarativeModel], EngineAnswer]) -> Scripted:
        found = Scripted(*answers)
        monkeypatch.setattr(declarative, "engine", lambda _: found)
        return found

    return install


def counting() -> DeclarativeModel:
    """min x0 + x1 with x0 + 2 x1 >= 7, both in 0..5: the optimum is 4."""
    maker = ModelMaker()
    x, y = maker.var(0, 5), maker.var(0, 5)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, 2.0)], ">=", 7)
    return maker.model(objective_is_integral=True)


# --- what engines find, confirmed --------------------------------------------------------------------------


@pytest.mark.parametrize("sense", [1, -1])
def test_the_checkers_objective_is_the_results(name: str, sense: int) -> None:
    model, best = staircase(sense, integer=True, constant=0.25)
    result = solved(model, name)
    assert (result.status, result.termination) == (Status.OPTIMAL, Termination.PROVEN)
    assert result.objective == result.bound == best
    assert result.gap == 0
    assert result.engine == name
    assert result.engine_version == engine(name).version()
    assert result.build_seconds is not None
    assert result.solve_seconds is not None
    assert result.info["rows"] == 2
    assert checker_of(model)(result.solution or {}).feasible


@pytest.mark.parametrize(("level", "status"), [(11, Status.INFEASIBLE), (7, Status.OPTIMAL)])
def test_infeasible_is_a_status(name: str, level: float, status: Status) -> None:
    maker = ModelMaker()
    x, y = maker.var(0, 5), maker.var(0, 5)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, 1.0)], ">=", level)
    result = solved(maker.model(), name)
    assert result.status is status
    if status is Status.INFEASIBLE:
        assert (result.solution, result.objective, result.bound) == (None, None, None)


def test_time_limit_gives_the_best_point_and_a_bound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = market_split(5, 40, 1, slack=True)
    monkeypatch.setattr(watch, "ABANDON_AFTER", PATIENCE)
    result = with_growing_limit(
        lambda deadline: solved(model, name, replace(ONE, deadline=deadline), nonzeros=300),
        lambda result: result.objective is not None and result.bound == 1000.0,
    )
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.TIME_LIMIT)
    assert result.bound == 1000.0  # CBC prints 1000.000, moved to 999.9995, rounded up again
    assert result.objective is not None
    assert result.objective > 1000


def test_gap_stop_is_feasible_unless_proven_equal(name: str) -> None:
    result = solved(knapsacks(10, 60, 7), name, replace(ONE, relative_gap=0.05))
    assert result.gap is not None
    assert result.gap <= 0.05
    if result.gap > 0:
        assert (result.status, result.termination) == (Status.FEASIBLE, Termination.GAP_LIMIT)
    else:
        assert (result.status, result.termination) == (Status.OPTIMAL, Termination.PROVEN)


# --- bounds and proofs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "status", "rounded"),
    [
        (3.2, Status.OPTIMAL, 4.0),
        (3.0000001, Status.FEASIBLE, 3.0),  # within tolerance of 3: no proof of 4
        (3.0, Status.FEASIBLE, 3.0),
        (4.0000004, Status.OPTIMAL, 4.0),
    ],
)
def test_whole_objectives_round_the_bound(script: Any, bound: float, status: Status, rounded: float) -> None:
    script(
        says(Status.FEASIBLE, Termination.TIME_LIMIT, objective=4, bound=bound, values={"x0": 1, "x1": 3}),
    )
    result = solved(counting())
    assert (result.status, result.bound) == (status, rounded)
    assert result.termination is (Termination.PROVEN if status is Status.OPTIMAL else Termination.TIME_LIMIT)


def test_large_whole_objectives_one_apart_are_not_equal(script: Any) -> None:
    maker = ModelMaker()
    x = maker.var(0, 10**8)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1.0)], ">=", 5e6)
    model = maker.model(objective_is_integral=True)
    script(says(Status.FEASIBLE, Termination.TIME_LIMIT, objective=5e6 + 3, bound=5e6, values={"x0": 5e6 + 3}))
    result = solved(model)
    assert (result.status, result.bound) == (Status.FEASIBLE, 5e6)


def test_an_incumbent_may_be_better_than_the_model_says(script: Any) -> None:
    """Before the end a makespan variable need not be tight; the checker's value counts."""
    maker = ModelMaker()
    span, x = maker.var(0, 9), maker.var(0, 5)
    maker.minimise([(span, 1.0)])
    maker.row([(span, 1.0), (x, -1.0)], ">=", 0)
    maker.row([(x, 1.0)], ">=", 2)
    model = maker.model()
    check = checker_of(model, objective=lambda s: Fraction(int(s["x1"])))
    script(says(Status.FEASIBLE, Termination.TIME_LIMIT, objective=8, bound=2, values={"x0": 8, "x1": 3}))
    result = solved(model, check=check)
    assert (result.status, result.objective, result.bound) == (Status.FEASIBLE, 3.0, 2.0)
    script(says(Status.FEASIBLE, Termination.TIME_LIMIT, objective=8, bound=3, values={"x0": 8, "x1": 3}))
    assert solved(model, check=check).status is Status.OPTIMAL


# --- sizes and deadlines -----------------------------------------------------------------------------------


def never() -> DeclarativeModel:
    raise AssertionError("the model must not be built")


def test_a_model_too_large_for_the_time_is_not_built() -> None:
    options = replace(ONE, deadline=Deadline.after(2))
    result = solve_declarative(never, "highs", options, lambda _: CheckReport((), None), nonzeros=10**8)
    assert (result.status, result.termination) == (Status.UNKNOWN, Termination.TOO_LARGE)
    assert (result.objective, result.bound, result.solution) == (None, None, None)
    assert "100,000,000 nonzeros" in result.info["reason"]


def test_a_model_too_large_to_build_leaves_the_start_or_the_fallback() -> None:
    start, quick = {"x": 2}, {"x": 3}

    def verdict(solution: Any) -> CheckReport:
        bad = solution["x"] > 3
        return CheckReport((Violation("x", "too large"),), None) if bad else CheckReport((), Fraction(solution["x"]))

    def found(options: SolveOptions, quick: Any = None) -> tuple[Any, ...]:
        result = solve_declarative(never, "highs", options, verdict, 10**12, lambda: quick)
        assert result.termination is Termination.TOO_LARGE
        return result.status, result.objective, result.solution

    assert found(replace(ONE, start=start), quick) == (Status.FEASIBLE, 2.0, start)
    assert found(replace(ONE, start={"x": 9}), quick) == (Status.FEASIBLE, 3.0, quick)
    assert found(ONE, quick) == (Status.FEASIBLE, 3.0, quick)
    assert found(ONE, {"x": 9}) == found(ONE) == (Status.UNKNOWN, None, None)


def test_rar_ddls_has_its_quick_schedule_where_the_model_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = paper(3)
    monkeypatch.setattr(budget, "seconds_per_nonzero", lambda: 1e6)
    result = run_method(RAR_DDLS, instance, "highs", replace(ONE, deadline=Deadline.after(PATIENCE)))
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.TOO_LARGE)
    assert result.objective is not None and result.bound is not None and result.bound <= result.objective


def test_a_model_too_large_for_memory_is_not_built() -> None:
    result = solve_declarative(never, "highs", ONE, lambda _: CheckReport((), None), nonzeros=10**12)
    assert result.termination is Termination.TOO_LARGE
    assert "GB" in result.info["reason"]


def test_the_estimate_is_the_best_of_its_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other work on the machine makes measurements too long, never too short."""
    took = [9.0, 3.0, 0.5, *[50.0] * (budget.MEASUREMENTS - 3)]
    clock = iter([moment for k, seconds in enumerate(took) for moment in (100.0 * k, 100.0 * k + seconds)])
    assert budget.measured(lambda: next(clock)) == budget.BUILDER_FACTOR * 0.5 / budget.SAMPLE_NONZEROS
    assert next(clock, None) is None
    monkeypatch.setattr(budget, "seconds_per_nonzero", lambda: 0.001)
    assert budget.too_large(1000, Deadline.after(3600)) is None
    assert budget.too_large(3_600_000, Deadline.after(3600)) is not None


def test_what_is_measured_is_near_what_building_takes() -> None:
    """In calls per nonzero, which are the same on every machine; within a factor of 2 and of 8."""
    sample = calls(budget.build_sample) / budget.SAMPLE_NONZEROS
    plain = calls(sparse_model, 2000, 5) / 2000
    assert sample / 2 < plain < 2 * sample
    instance = small(0)
    build_ilp(instance)  # fills what is cached
    built = calls(build_ilp, instance) / ilp_nonzeros(instance)
    assert sample * budget.BUILDER_FACTOR / 8 < built < sample * budget.BUILDER_FACTOR * 8


def test_time_spent_on_building_counts(name: str) -> None:
    model = market_split(5, 40, 1, slack=True)

    def slow() -> DeclarativeModel:
        time.sleep(0.5)
        return model

    options = replace(ONE, deadline=Deadline.after(0.4))
    result = solve_declarative(slow, name, options, checker_of(model), nonzeros=300)
    assert (result.status, result.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)
    assert result.build_seconds is not None
    assert result.build_seconds >= 0.5


def test_ctrl_c_while_building_or_between_runs(script: Any) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    script()
    result = solve_declarative(interrupted, "highs", ONE, lambda _: CheckReport((), None))
    assert (result.status, result.termination) == (Status.UNKNOWN, Termination.INTERRUPTED)
    script(interrupted)
    result = solved(counting(), options=replace(ONE, start={"x0": 5, "x1": 5}))
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.INTERRUPTED)
    assert result.objective == 10


def test_cycle_collection_is_as_it_was() -> None:
    model = counting()
    seen = []

    def build() -> DeclarativeModel:
        seen.append(gc.isenabled())
        return model

    assert gc.isenabled()
    solve_declarative(build, "highs", ONE, checker_of(model))
    assert seen == [False]
    assert gc.isenabled()
    with pytest.raises(ZeroDivisionError):
        solve_declarative(lambda: 1 // 0, "highs", ONE, checker_of(model))
    assert gc.isenabled()


# --- starts ------------------------------------------------------------------------------------------------


def test_a_feasible_start_is_never_lost(script: Any) -> None:
    start = {"x0": 5, "x1": 5}
    script(says(Status.UNKNOWN, Termination.TIME_LIMIT, bound=3.5))
    result = solved(counting(), options=replace(ONE, start=start))
    assert (result.status, result.objective, result.bound) == (Status.FEASIBLE, 10.0, 4.0)
    assert result.solution == start
    script(says(Status.FEASIBLE, Termination.TIME_LIMIT, objective=4, bound=3, values={"x0": 1, "x1": 3}))
    assert solved(counting(), options=replace(ONE, start=start)).objective == 4.0


def test_a_start_that_meets_the_bound_is_optimal(script: Any) -> None:
    script(says(Status.UNKNOWN, Termination.TIME_LIMIT, bound=3.5))
    result = solved(counting(), options=replace(ONE, start={"x0": 1, "x1": 3}))
    assert (result.status, result.termination, result.objective) == (Status.OPTIMAL, Termination.PROVEN, 4.0)


def test_an_infeasible_start_is_ignored(name: str) -> None:
    result = solved(counting(), name, replace(ONE, start={"x0": 0, "x1": 0}))
    assert (result.status, result.objective) == (Status.OPTIMAL, 4.0)


# --- misses by tolerance -----------------------------------------------------------------------------------


def sliver(*, high: int, integer: bool = True) -> ModelMaker:
    """min 3x + y with x >= y + 2e-7: (0, 0) misses by 2e-7, which engines for real numbers allow; 3 is right."""
    maker = ModelMaker()
    x, y = maker.var(0, high), maker.var(0, high, integer=integer)
    maker.minimise([(x, 3.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, -1.0)], ">=", 2e-7, "sliver")
    return maker


@pytest.mark.parametrize(("high", "integer"), [(1, True), (3, True), (1, False)])
def test_a_point_that_misses_by_tolerance_is_cut_off(name: str, high: int, integer: bool) -> None:
    if name == "cpsat" and not integer:
        return
    maker = sliver(high=high, integer=integer)
    check = checker_of(maker.model())
    result = solved(maker.model(), name, check=check)
    assert (result.status, result.objective) == (Status.OPTIMAL, 3.0)
    assert check(result.solution or {}).feasible


def test_the_cut_is_needed(script: Any) -> None:
    """The first answer misses, the second is right; one cut was added to the model."""
    maker = sliver(high=3)
    check = checker_of(maker.model())
    model = maker.model()
    found = script(
        says(Status.OPTIMAL, objective=0, bound=0, values={"x0": 0, "x1": 0}),
        lambda m: engine("cpsat").solve(m, ONE),
    )
    result = solved(model, check=check)
    assert (result.status, result.objective, result.info["cut off"]) == (Status.OPTIMAL, 3.0, 1)
    assert len(found.options) == 2


def test_a_cut_removes_one_point_and_no_other() -> None:
    """Over 0..3 x 0..2, cutting off each point in turn leaves exactly the others."""
    for cut_x in range(4):
        for cut_y in range(3):
            maker = ModelMaker()
            x, y = maker.var(0, 3), maker.var(0, 2)
            maker.minimise([(x, 1.0), (y, 1.0)])
            maker.row([(x, 1.0), (y, 1.0)], ">=", cut_x + cut_y + 1e-8, "row")  # what the point just misses
            model = maker.model()
            broken = worst_broken_row(model, {x: float(cut_x), y: float(cut_y)})
            assert broken is not None
            assert (broken.row, broken.amount <= broken.allowed) == ("row", True)
            assert add_no_good_cut(model, broken, 0)
            del rows_by_name(model)["row"]
            left = set()
            for a in range(4):
                for b in range(3):
                    x.bounds(a, a)
                    y.bounds(b, b)
                    if engine("cpsat").solve(model, ONE).status is Status.OPTIMAL:
                        left.add((a, b))
            assert left == {(a, b) for a in range(4) for b in range(3)} - {(cut_x, cut_y)}


def test_repair_is_tried_first(script: Any) -> None:
    maker = sliver(high=3)
    check = checker_of(maker.model())
    repaired = []

    def repair(solution: dict[str, Any]) -> dict[str, Any]:
        repaired.append(solution)
        return {"x0": 1, "x1": 0}

    model = maker.model(repair=repair)
    script(
        says(Status.FEASIBLE, Termination.TIME_LIMIT, objective=0, bound=0, values={"x0": 0, "x1": 0}),
    )
    result = solved(model, check=check)
    assert repaired == [{"x0": 0, "x1": 0}]
    assert (result.status, result.objective, result.bound) == (Status.FEASIBLE, 3.0, 0.0)


def test_a_miss_on_a_continuous_row_is_solved_again_with_a_tight_tolerance(script: Any) -> None:
    maker = sliver(high=1, integer=False)
    check = checker_of(maker.model())
    wrong = says(Status.OPTIMAL, objective=0, bound=0, values={"x0": 0, "x1": 0})
    tight = replace(ONE, feasibility_tolerance=1e-9)
    found = script(wrong, lambda m: replace(engine("highs").solve(m, tight), doubt=""))
    result = solved(maker.model(), check=check)
    assert (result.status, result.objective) == (Status.OPTIMAL, 3.0)
    assert [o.feasibility_tolerance for o in found.options] == [None, 1e-9]
    script(wrong, wrong)
    with pytest.raises(Disagreement, match="row sliver is violated by 2e-07 even with the tightest tolerance"):
        solved(maker.model(), check=check)


# --- disagreements -----------------------------------------------------------------------------------------


def test_a_checker_that_rejects_a_right_point_is_an_error(name: str) -> None:
    def check(_: dict[str, Any]) -> CheckReport:
        return CheckReport((Violation("capacity", "server s0, slot 3: 5 GPUs used, 4 there"),), None)

    with pytest.raises(Disagreement, match=f"engine {name} and checker disagree: server s0, slot 3") as caught:
        solved(counting(), name, check=check)
    assert caught.value.solution is not None
    assert caught.value.details["engine"] == name
    assert caught.value.details["violations"] == ["server s0, slot 3: 5 GPUs used, 4 there"]
    assert caught.value.exit_status == 5


def test_an_objective_that_differs_is_an_error(name: str) -> None:
    model = counting()
    with pytest.raises(Disagreement, match="objective 5 where the model says 4"):
        solved(model, name, check=checker_of(model, objective=lambda _: Fraction(5)))
    with pytest.raises(Disagreement, match="proves the bound 4, the checker confirms a solution of 3"):
        solved(model, name, check=checker_of(model, objective=lambda _: Fraction(3)))


def test_infeasibility_against_a_feasible_start_is_an_error(script: Any) -> None:
    script(says(Status.INFEASIBLE))
    with pytest.raises(Disagreement, match="proves infeasibility, the checker confirms a solution of 10"):
        solved(counting(), options=replace(ONE, start={"x0": 5, "x1": 5}))


def test_a_bound_beyond_a_feasible_start_is_an_error(script: Any) -> None:
    script(says(Status.UNKNOWN, Termination.TIME_LIMIT, bound=5.5))
    with pytest.raises(Disagreement, match="proves the bound 6, the checker confirms a solution of 4"):
        solved(counting(), options=replace(ONE, start={"x0": 1, "x1": 3}))


def test_a_point_far_from_feasible_is_an_error(script: Any) -> None:
    script(says(Status.OPTIMAL, objective=0, bound=0, values={"x0": 0, "x1": 0}))
    with pytest.raises(Disagreement, match="the engine's point violates row _C1 by 7"):
        solved(counting())


def test_a_malformed_solution_is_an_error() -> None:
    def check(_: dict[str, Any]) -> CheckReport:
        raise InputError("solution: unknown job j7")

    with pytest.raises(Disagreement, match="malformed solution: solution: unknown job j7"):
        solved(counting(), check=check)


def test_an_engine_error_is_a_status(script: Any) -> None:
    script(says(Status.ERROR, Termination.FAILED))
    result = solved(counting())
    assert (result.status, result.termination) == (Status.ERROR, Termination.FAILED)
    script(says(Status.ERROR, Termination.FAILED))
    result = solved(counting(), options=replace(ONE, start={"x0": 5, "x1": 5}))
    assert (result.status, result.objective, result.bound) == (Status.FEASIBLE, 10.0, None)
