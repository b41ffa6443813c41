"""Every engine on small models with known answers: sense, constant, kinds of variables, statuses."""

from __future__ import annotations

import itertools

import pytest

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.solvers.engines import NAMES, engine, installed_engines
from schedgap.solvers.engines.answer import EngineAnswer
from schedgap.solvers.result import SolveOptions, Status, Termination
from schedgap.tools.testing.small_models import ModelMaker, knapsacks, market_split, staircase, violated

ONE = SolveOptions(threads=1)


@pytest.fixture(params=(*NAMES, *installed_engines()))
def name(request: pytest.FixtureRequest) -> str:
    """Every test here runs on every engine."""
    value: str = request.param
    return value


def solve(name: str, model: DeclarativeModel, options: SolveOptions = ONE) -> EngineAnswer:
    """The answer, with what must hold of every answer checked."""
    answer = engine(name).solve(model, options)
    assert answer.version
    assert answer.seconds >= 0
    if answer.values is not None:
        values = {v.name: answer.value(v) for v in model.problem.variables()}
        assert violated(model, values) == []
        own = model.problem.objective.constant + sum(values[v.name] * c for v, c in model.problem.objective.items())
        assert answer.objective == pytest.approx(own, rel=1e-9, abs=1e-9)
        if answer.bound is not None:
            assert model.sense * answer.bound <= model.sense * answer.objective + 1e-6 * max(1, abs(own))
    else:
        assert answer.objective is None
        assert answer.status not in (Status.OPTIMAL, Status.FEASIBLE)
    return answer


MATRIX = list(itertools.product((1, -1), (True, False), (0.0, 7.5, -1000.25)))


@pytest.mark.parametrize(("sense", "integer", "constant"), MATRIX)
def test_optimum_with_sense_and_constant(name: str, sense: int, integer: bool, constant: float) -> None:
    model, best = staircase(sense, integer=integer, constant=constant)
    if name == "cpsat" and not integer:
        with pytest.raises(ModelRefused, match=r"x\d is continuous"):
            solve(name, model)
        return
    answer = solve(name, model)
    assert (answer.status, answer.termination) == (Status.OPTIMAL, Termination.PROVEN)
    assert answer.objective == pytest.approx(best, abs=1e-9)
    assert answer.bound == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("sense", [1, -1])
def test_optimum_that_takes_search(name: str, sense: int) -> None:
    answer = solve(name, knapsacks(8, 20, 5, sense=sense, constant=1000.0))
    assert answer.status is Status.OPTIMAL
    other = solve("highs" if name != "highs" else "cpsat", knapsacks(8, 20, 5, sense=sense, constant=1000.0))
    assert answer.objective == other.objective
    assert answer.bound == pytest.approx(other.objective, abs=1e-3)
    assert answer.nodes is not None


def test_a_continuous_variable_beside_an_integer_one(name: str) -> None:
    """max x + y with 2x + 3y <= 7.5, x integer: x = 3 and y = 1/2."""
    maker = ModelMaker(-1)
    x, y = maker.var(0, 5), maker.var(0, 5, integer=False)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 2.0), (y, 3.0)], "<=", 7.5)
    answer = solve(name, maker.model())  # CP-SAT: y is a multiple of 1/6 whatever x is
    assert answer.objective == pytest.approx(3.5, abs=1e-7)
    assert (answer.value(x), answer.value(y)) == (3.0, pytest.approx(0.5, abs=1e-7))


def _by_integrality(integer: bool) -> ModelMaker:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 5, integer=integer), maker.var(0, 5, integer=integer)
    maker.minimise([(x, 1.0), (y, 1.0)])
    if integer:  # feasible as a linear program, so infeasibility needs integrality
        maker.row([(x, 2.0), (y, 2.0)], "==", 3)
    else:
        maker.row([(x, 1.0), (y, 1.0)], ">=", 11)
    return maker


@pytest.mark.parametrize("integer", [True, False])
def test_infeasible(name: str, integer: bool) -> None:
    model = _by_integrality(integer).model()
    if name == "cpsat" and not integer:
        with pytest.raises(ModelRefused):
            solve(name, model)
        return
    answer = solve(name, model)
    assert (answer.status, answer.termination) == (Status.INFEASIBLE, Termination.PROVEN)
    assert answer.bound is None


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("sense", [1, -1])
def test_unbounded_is_not_called_infeasible(name: str, integer: bool, sense: int) -> None:
    maker = ModelMaker(sense)
    x, y = maker.var(0, integer=integer), maker.var(0, integer=integer)
    maker.minimise([(x, -float(sense)), (y, -float(sense))], 3.0)
    maker.row([(x, 1.0), (y, -1.0)], "<=", 3)
    answer = solve(name, maker.model())
    assert (answer.status, answer.bound) == (Status.UNBOUNDED, None)


def test_unbounded_relaxation_of_an_infeasible_model(name: str) -> None:
    """Its linear relaxation is unbounded; 2z = 3 has no whole solution."""
    maker = ModelMaker(-1)
    x, y, z = maker.var(0), maker.var(0), maker.var(0, 5)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, -1.0)], "<=", 3)
    maker.row([(z, 2.0)], "==", 3)
    assert solve(name, maker.model()).status is Status.INFEASIBLE


def test_an_equality_that_binds_two_endless_variables(name: str) -> None:
    """x - y = 1 and both grow without end: unbounded, or refused where domains must be finite."""
    maker = ModelMaker(-1)
    x, y = maker.var(0), maker.var(0)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, -1.0)], "==", 1)
    if name == "cpsat":
        with pytest.raises(ModelRefused, match=r"x\d has no upper bound"):
            solve(name, maker.model())
        return
    assert solve(name, maker.model()).status is Status.UNBOUNDED


def test_no_objective_is_a_question_of_feasibility(name: str) -> None:
    maker = ModelMaker()
    x, y = maker.var(0, 4), maker.var(0, 4)
    maker.row([(x, 1.0), (y, 1.0)], "==", 3)
    maker.minimise([], 2.5)
    answer = solve(name, maker.model())
    assert (answer.status, answer.objective, answer.bound) == (Status.OPTIMAL, 2.5, 2.5)


def test_models_without_rows_or_variables(name: str) -> None:
    maker = ModelMaker()
    maker.minimise([], 4.0)
    assert solve(name, maker.model()).objective == 4.0

    maker = ModelMaker(-1)
    x, y = maker.var(-3, 7.5), maker.var(None, 4)
    maker.minimise([(x, 2.0), (y, 0.0)], 1.0)
    answer = solve(name, maker.model())
    assert (answer.status, answer.objective, answer.value(y)) == (Status.OPTIMAL, 15.0, 0.0)

    maker = ModelMaker(-1)
    maker.minimise([(maker.var(), 1.0)])
    assert solve(name, maker.model()).status is Status.UNBOUNDED


@pytest.mark.parametrize(("relation", "level", "status"), [("<=", 1, "optimal"), ("<=", -1, "infeasible")])
def test_rows_without_variables_count(name: str, relation: str, level: float, status: str) -> None:
    maker = ModelMaker()
    x = maker.var(0, 4)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1.0)], ">=", 2)
    maker.row([], relation, level)
    assert solve(name, maker.model()).status == status


def test_explicit_zero_coefficients_do_not_matter(name: str) -> None:
    maker = ModelMaker()
    x, y = maker.var(0, 4), maker.var(0, 4)
    maker.minimise([(x, 1.0), (y, 0.0)])
    maker.row([(x, 1.0), (y, 0.0)], ">=", 2)
    maker.row([(y, 0.0)], "<=", 0)
    assert solve(name, maker.model()).objective == 2.0


def test_negative_and_free_integers(name: str) -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(-7, -2), maker.var(None, 40)
    maker.minimise([(x, 3.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, 2.0)], "<=", 3)
    maker.row([(x, -1.0), (y, 1.0)], ">=", -20)
    answer = solve(name, maker.model())
    assert (answer.value(x), answer.value(y), answer.objective) == (-2.0, 2.0, -4.0)


def test_a_variable_that_the_model_never_mentions_can_be_read(name: str) -> None:
    maker = ModelMaker()
    x, unused = maker.var(0, 4), maker.var(2, 9)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1.0)], ">=", 1)
    assert solve(name, maker.model()).value(unused) == 2.0


def test_costs_of_any_size_are_seen(name: str) -> None:
    """Engines take reduced costs below about 1e-7 for zero."""
    for size in (1e-9, 1e-6, 1e4):
        maker = ModelMaker()
        xs = [maker.var(0, 1) for _ in range(6)]
        maker.minimise([(x, size * (1 + i)) for i, x in enumerate(xs)])
        maker.row([(x, 1.0) for x in xs], ">=", 3)
        maker.row([(xs[0], 1.0), (xs[1], 1.0)], "<=", 1)
        answer = solve(name, maker.model())
        assert answer.status is Status.OPTIMAL
        assert answer.objective == pytest.approx(size * (1 + 3 + 4), rel=1e-9)


def test_large_numbers_keep_their_digits(name: str) -> None:
    """CBC's text files hold eight digits; we read its binary file."""
    maker = ModelMaker(-1)
    x, y = maker.var(0, 987654321), maker.var(0, 1)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, 3.0)], "<=", 987654320)
    if name == "scip":  # its tolerances are relative, which its range knows
        assert engine(name).solve(maker.model(), ONE).doubt.startswith("the activity of a row")
        return
    answer = solve(name, maker.model())
    assert answer.objective == 987654320.0
    assert answer.value(x) == 987654320.0


def test_an_empty_search_space_by_bounds(name: str) -> None:
    maker = ModelMaker()
    x = maker.var(0.2, 0.8)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1.0)], "<=", 5)
    answer = solve(name, maker.model())
    assert answer.status is Status.INFEASIBLE
    assert "x0" in str(answer.info["contradiction"])


def test_proof_on_a_model_without_known_point(name: str) -> None:
    """Market split 3 x 16: small enough to be settled, one way or the other, the same by all."""
    statuses = {n: solve(n, market_split(3, 16, 2, slack=False)).status for n in {name, "highs"}}
    assert len(set(statuses.values())) == 1
    assert statuses[name] in (Status.INFEASIBLE, Status.OPTIMAL)
