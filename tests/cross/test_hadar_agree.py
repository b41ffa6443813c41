"""Random tiny instances of hadar, of which the gate has many: exact methods, a brute force, LP(P2) written out."""

import pytest
from oracles.hadar import brute_force, random_case
from support.checks import hadar as check
from support.hadar_enumeration import enumerated_lp

from schedgap.benchmarks.instances.hadar.random import contended, small
from schedgap.catalogue.hadar import PROBLEM as HADAR
from schedgap.catalogue.run import run_method
from schedgap.formulations.hadar.tables import tables
from schedgap.solvers.exact.hadar.block_bound import block_bound
from schedgap.solvers.exact.hadar.bound import upper_bound
from schedgap.solvers.result import SolveOptions, Status

METHODS = ["colgen", "cbc", "highs", "cpsat"]


@pytest.mark.parametrize("must_finish", [False, True], ids=["P2", "P1"])
@pytest.mark.parametrize("seed", range(8))
def test_all_exact_methods_agree_with_a_brute_force(seed: int, must_finish: bool) -> None:
    instance = random_case(1000 + seed, must_finish=must_finish)
    reference = brute_force(instance)
    for method in METHODS:
        found = run_method(HADAR, instance, method, SolveOptions(threads=1))
        if reference is None:
            assert found.status is Status.INFEASIBLE, method
            continue
        assert found.status is Status.OPTIMAL, method
        assert found.objective == pytest.approx(float(reference[0]), rel=1e-9), method
    if reference is not None:
        report = check(instance, reference[1])
        assert report.feasible and report.objective == reference[0]
        assert upper_bound(instance) >= float(reference[0])


@pytest.mark.parametrize("seed", range(25))
def test_lp_is_that_over_every_schedule_and_bounds_the_optimum(seed: int) -> None:
    instance = random_case(2000 + seed)
    found = run_method(HADAR, instance, "colgen", SolveOptions())
    written_out = enumerated_lp(instance)
    assert found.status is Status.OPTIMAL and found.objective is not None
    assert found.info["lp_bound"] == pytest.approx(written_out, rel=1e-7)
    assert found.info["lp_bound"] >= found.objective * (1 - 1e-9)
    assert all(residual <= 1e-7 for residual in found.info["residuals"].values())


@pytest.mark.parametrize("seed", range(6))
def test_branch_and_price_agrees_with_highs_where_the_gap_is_open(seed: int) -> None:
    instance = small(seed, jobs=7, horizon=9) if seed % 2 else contended(seed, jobs=6, horizon=7)
    colgen = run_method(HADAR, instance, "colgen", SolveOptions())
    highs = run_method(HADAR, instance, "highs", SolveOptions(threads=1))
    assert colgen.status is highs.status is Status.OPTIMAL
    assert colgen.objective == pytest.approx(highs.objective, rel=1e-7)


@pytest.mark.parametrize("growth", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_block_prices_bound_the_slot_prices(seed: int, growth: float) -> None:
    instance = small(seed, jobs=10, horizon=14)
    data = tables(instance)
    exact = upper_bound(instance)
    assert exact is not None
    found = block_bound(data, growth)
    assert found.bound >= exact * (1 - 1e-6)
    # every bound on the way is valid, and they only improve
    assert all(value >= exact * (1 - 1e-6) for value in found.history)
    assert list(found.history) == sorted(found.history, reverse=True)
    if growth == 0.0:
        assert found.bound <= 1.1 * exact
