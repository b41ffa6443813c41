"""What CP-SAT is given: exact scaling, proven domains, clear refusals."""

from __future__ import annotations

from fractions import Fraction

import pytest

from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.g_vne.substrate import common_step, row_limit
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.engines.declarative import worst_broken_row
from schedgap.solvers.engines.finite_domains import bound_domains
from schedgap.solvers.engines.integers import integer_model
from schedgap.solvers.engines.whole import whole_model
from schedgap.solvers.result import SolveOptions, Status
from schedgap.tools.testing.small_models import ModelMaker, enumerate_optimum

ONE = SolveOptions(threads=1)


def test_a_row_whose_limit_is_beyond_all_floats_stays_as_it_is() -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 9), maker.var(0, 9)
    maker.minimise([(x, 1), (y, 1)], 0)
    maker.row([(x, 5e-324), (y, 1.0)], ">=", 3)
    assert whole_model(model_arrays(maker.model())).arrays.row_lower.tolist() == [3.0]


def integers_of(maker: ModelMaker, restated: frozenset[str] = frozenset()) -> tuple[object, list[str]]:
    arrays = model_arrays(maker.model())
    return integer_model(arrays, restated), [v.name for v in arrays.variables]


def test_rows_and_objective_are_scaled_exactly() -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 9), maker.var(0, 9)
    maker.minimise([(x, 0.25), (y, 0.1)], 0.3)
    maker.row([(x, 0.1), (y, 0.2)], "<=", 0.3)
    maker.row([(x, 1.5), (y, -2.25)], ">=", -1)
    model, _ = integers_of(maker)
    first, second = model.rows
    assert (first.coefficients, first.low, first.high) == ([1, 2], None, 3)
    assert (second.coefficients, second.low, second.high) == ([6, -9], -4, None)
    assert (model.cost, model.unit, model.offset) == ({0: -5, 1: -2}, Fraction(1, 20), Fraction(3, 10))
    assert model.objective(-5 * 3) == pytest.approx(0.3 + 0.75)
    answer = engine("cpsat").solve(maker.model(), ONE)
    assert answer.objective == pytest.approx(0.3 + 0.75)
    assert answer.objective == answer.bound


def test_dust_of_floating_point_arithmetic_is_not_a_decimal() -> None:
    """0.1 + 0.2 = 0.30000000000000004 stands for 0.3, on either side."""
    maker = ModelMaker(-1)
    x = maker.var(0, 5)
    maker.minimise([(x, 0.1 + 0.2)])
    maker.row([(x, 0.1 + 0.2)], "<=", 0.3)
    assert engine("cpsat").solve(maker.model(), ONE).value(x) == 1.0
    maker = ModelMaker(-1)
    x = maker.var(0, 5)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 0.3)], "<=", 3 * 0.1 - 1e-16)
    assert engine("cpsat").solve(maker.model(), ONE).value(x) == 1.0


def test_coefficients_that_do_not_fit_64_bits_are_refused_by_name() -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 5), maker.var(0, 5)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 0.123456789012345), (y, 1e9)], "<=", 2, "fine")
    with pytest.raises(ModelRefused, match="row fine cannot be scaled to whole numbers"):
        engine("cpsat").solve(maker.model(), ONE)
    maker = ModelMaker(-1)
    x, y = maker.var(0, 5), maker.var(0, 5)
    maker.minimise([(x, 0.123456789012345), (y, 1e9)])
    maker.row([(x, 1.0), (y, 1.0)], "<=", 2)
    rounded = engine("cpsat").solve(maker.model(), ONE)  # never to a worse objective, so the bound stays one
    assert rounded.value(y) == 2.0 and rounded.bound is not None
    assert 2e9 <= rounded.bound <= 2e9 + rounded.resolution <= 2e9 * (1 + 1e-12)
    maker = ModelMaker(-1)
    x, y = maker.var(-5, 5), maker.var(0, 5)
    maker.minimise([(x, 0.123456789012345), (y, 1e9)])
    maker.row([(x, 1.0), (y, 1.0)], "<=", 2)
    with pytest.raises(ModelRefused, match="objective cannot be scaled"):
        engine("cpsat").solve(maker.model(), ONE)
    maker = ModelMaker(-1)
    x = maker.var(0, 1e16)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1.0)], "<=", 1e16)
    with pytest.raises(ModelRefused, match="x0 ranges up to 10000000000000000"):
        engine("cpsat").solve(maker.model(), ONE)


def test_a_continuous_variable_is_refused_by_name_and_taken_when_restated() -> None:
    maker = ModelMaker()
    x, y = maker.var(0, 9, name="count"), maker.var(0, 9, integer=False, name="makespan")
    slack = maker.var(0, 0.5, integer=False, name="slack")
    maker.minimise([(y, 1.0), (slack, 3.0)])
    maker.row([(y, 1.0), (slack, 1.0), (x, -1.0)], ">=", 0)  # no difference of two times
    maker.row([(x, 1.0)], ">=", 3)
    with pytest.raises(ModelRefused, match="makespan is continuous; CP-SAT solves integer models only"):
        engine("cpsat").solve(maker.model(), ONE)
    answer = engine("cpsat").solve(maker.model(restated_integral=frozenset({"makespan"})), ONE)
    assert (answer.status, answer.objective) == (Status.OPTIMAL, 3.0)
    assert engine("highs").solve(maker.model(), ONE).objective == 3.0


def test_continuous_variables_that_do_not_matter_are_taken() -> None:
    """One fixed at 2.5, one in no row and best at its bound, one with no influence at all."""
    maker = ModelMaker(-1)
    x = maker.var(0, 9)
    fixed, idle, loose = (maker.var(a, b, integer=False) for a, b in ((2.5, 2.5), (0.25, 0.75), (-1, 4)))
    maker.minimise([(x, 1.0), (fixed, 2.0), (idle, 4.0), (loose, 0.0)], 1.0)
    maker.row([(x, 1.0), (fixed, 2.0)], "<=", 9.5)
    answer = engine("cpsat").solve(maker.model(), ONE)
    assert [answer.value(v) for v in (x, fixed, idle, loose)] == [4.0, 2.5, 0.75, 0.0]
    assert (answer.status, answer.objective, answer.bound) == (Status.OPTIMAL, 13.0, 13.0)


def test_a_row_of_fixed_continuous_variables_still_counts() -> None:
    maker = ModelMaker()
    x, fixed = maker.var(0, 4), maker.var(1.5, 1.5, integer=False)
    maker.minimise([(x, 1.0)])
    maker.row([(x, 1.0)], ">=", 1)
    maker.row([(fixed, 2.0)], "<=", 2)
    assert engine("cpsat").solve(maker.model(), ONE).status is Status.INFEASIBLE


def domains_of(maker: ModelMaker) -> dict[str, tuple[int | None, int | None]]:
    model, names = integers_of(maker)
    bound_domains(model, names)
    return {name: (model.low[i], model.high[i]) for i, name in enumerate(names)}


def test_a_domain_follows_from_rows() -> None:
    maker = ModelMaker(-1)
    x, y = maker.var(0, 10), maker.var(None)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, 1.0), (y, 2.0)], "<=", 21)
    maker.row([(x, 1.0), (y, -3.0)], "<=", 7)
    assert domains_of(maker) == {"x0": (0, 10), "x1": (-2, 10)}


def test_a_domain_follows_through_several_rows() -> None:
    maker = ModelMaker(-1)
    x, y, z = maker.var(0, 3), maker.var(0), maker.var(0)
    maker.minimise([(z, 1.0)])
    maker.row([(z, 1.0), (y, -2.0)], "<=", 0)
    maker.row([(y, 1.0), (x, -2.0)], "<=", 1)
    assert domains_of(maker) == {"x2": (0, 14), "x1": (0, 7), "x0": (0, 3)}


def test_a_makespan_without_upper_bound_need_not_exceed_what_rows_ask() -> None:
    maker = ModelMaker()
    span, a, b = maker.var(0), maker.var(0, 5), maker.var(0, 7)
    maker.minimise([(span, 1.0)])
    maker.row([(span, 1.0), (a, -1.0)], ">=", 3)
    maker.row([(span, 2.0), (b, -3.0)], ">=", 2)
    maker.row([(a, 1.0), (b, 1.0)], ">=", 6)
    assert domains_of(maker)["x0"] == (0, 12)
    answer = engine("cpsat").solve(maker.model(), ONE)
    assert answer.objective == enumerate_optimum(maker.model(), high=20) == 6.0


def test_dominated_directions_downwards() -> None:
    """max -y with y free below, where every row gets easier as y falls, is not a domain; max y is."""
    maker = ModelMaker(-1)
    x, y = maker.var(0, 4), maker.var(None)
    maker.minimise([(x, 2.0), (y, 1.0)])
    maker.row([(y, 1.0), (x, 1.0)], "<=", 5)
    assert domains_of(maker)["x1"] == (1, 5)
    assert engine("cpsat").solve(maker.model(), ONE).objective == 9.0


def test_a_domain_that_does_not_follow_is_refused_by_name() -> None:
    maker = ModelMaker()
    surplus, deficit = maker.var(0, name="surplus"), maker.var(0, name="deficit")
    x = maker.var(0, 9)
    maker.minimise([(surplus, 1.0), (deficit, 1.0)])
    maker.row([(x, 2.0), (surplus, -1.0), (deficit, 1.0)], "==", 5)
    with pytest.raises(ModelRefused, match="surplus has no upper bound and none follows from the model"):
        engine("cpsat").solve(maker.model(), ONE)
    assert engine("highs").solve(maker.model(), ONE).objective == 1.0


def test_rays_are_unbounded_only_when_the_rest_is_feasible() -> None:
    for level, status in ((3, Status.INFEASIBLE), (4, Status.UNBOUNDED)):
        maker = ModelMaker()
        ray, x = maker.var(None, 5), maker.var(0, 9)
        maker.minimise([(ray, 1.0), (x, 1.0)])
        maker.row([(ray, 1.0), (x, 1.0)], "<=", 2)
        maker.row([(x, 2.0)], "==", level)
        assert engine("cpsat").solve(maker.model(), ONE).status is status


def test_a_bound_is_known_even_before_the_search() -> None:
    maker = ModelMaker(-1)
    xs = [maker.var(0, 3) for _ in range(4)]
    maker.minimise([(x, 2.0) for x in xs], 1.0)
    maker.row([(x, 1.0) for x in xs], "<=", 7)
    answer = engine("cpsat").solve(maker.model(), SolveOptions(threads=1, work_limit=1e-9))
    assert answer.bound is not None
    assert 15.0 <= answer.bound <= 25.0


@pytest.mark.parametrize(
    ("capacity", "amounts"),
    [
        (2.999999997, (1.0, 2.0)),  # 1e-18 short of 3 where it gives way by 1e-9
        (1.999999998, (1.0, 1.0)),
        (3.0, (1.000000001, 1.0)),
        (2.999999999, (1.0, 0.999999999)),
        (0.3, (0.1, 0.2)),
        (0.3, (0.100000000003, 0.2)),
        (5000.0, (1000.000001, 1000.0000005)),  # gives way by 5e-6, more than a row of an engine may
        (7e9, (1e9, 1.0)),
        (1e-6, (1e-7, 3e-7)),
    ],
)
def test_rows_of_loads_mean_what_the_checkers_mean(capacity: float, amounts: tuple[float, float]) -> None:
    """Every load near a limit: within capacity (1 + 1e-9), exactly, if and only if the model's row lets it through."""
    maker = ModelMaker()
    x, y = maker.var(0, 10), maker.var(0, 10)
    maker.minimise([(x, 1.0), (y, 1.0)])
    maker.row([(x, amounts[0]), (y, amounts[1])], "<=", row_limit(capacity, common_step(amounts)), "room")
    model = maker.model()
    (row,) = integer_model(model_arrays(model), frozenset()).rows
    whole = whole_model(model_arrays(model)).arrays
    fitting = 0
    for a in range(11):
        for b in range(11):
            used = a * exact(amounts[0]) + b * exact(amounts[1])
            fits = used <= exact(capacity) * (1 + CHECK_TOLERANCE)
            fitting += fits
            assert (row.coefficients[0] * a + row.coefficients[1] * b <= row.high) == fits
            assert (worst_broken_row(model, {x: float(a), y: float(b)}) is None) == fits
            if (whole.coefficients == whole.coefficients.round()).all():
                assert (float(whole.coefficients @ [a, b]) <= whole.row_upper[0]) == fits
    assert 0 < fitting < 121


def test_whole_limits_give_way_exactly() -> None:
    """Without such a limit the edge itself is exact: 2 (1 - 1e-9) (1 + 1e-9) falls short of 2."""
    for level, most in ((2 * (1 - 1e-9), 1), (1.9999999981, 2), (3.0, 3), (2.9999999985, 3), (2.999999996, 2)):
        maker = ModelMaker()
        x, y = maker.var(0, 9), maker.var(0, level)
        maker.minimise([(x, 1.0), (y, 1.0)])
        maker.row([(x, 1.0), (y, 1.0)], "<=", level)
        maker.row([(x, 1.0), (y, 2.0)], ">=", -level)
        model = integer_model(model_arrays(maker.model()), frozenset())
        assert (model.rows[0].high, model.rows[1].low, model.high[1]) == (most, -most, most)
        whole = whole_model(model_arrays(maker.model())).arrays
        assert (whole.row_upper[0], whole.row_lower[1], whole.upper[1]) == (most, -most, most)
