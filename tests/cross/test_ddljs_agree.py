"""Random tiny instances of ddljs: every engine, a brute force, the bound, and gadget below them."""

import pytest
from oracles.ddljs import brute_force
from support.checks import ddljs as check

from schedgap.benchmarks.instances.ddljs.random import small, tiny
from schedgap.catalogue.ddljs import PROBLEM as DDLJS
from schedgap.catalogue.run import run_method
from schedgap.formulations.ddljs.models import build_ilp
from schedgap.solvers.exact.ddljs.bound import upper_bound
from schedgap.solvers.result import SolveOptions, Status

ENGINES = ["highs", "cpsat", "cbc"]


@pytest.mark.parametrize("seed", range(40))
def test_engines_agree_with_a_brute_force(seed: int) -> None:
    instance = tiny(5000 + seed)
    value, solution = brute_force(instance)
    report = check(instance, solution)
    assert report.feasible and float(report.objective or 0) == pytest.approx(value, rel=1e-12)
    bound = upper_bound(instance)
    assert bound is not None and bound >= value * (1 - 1e-12)
    for engine in ENGINES:
        found = run_method(DDLJS, instance, engine, SolveOptions(threads=1))
        assert found.status is Status.OPTIMAL, engine
        assert found.objective == pytest.approx(value, rel=1e-6), engine
    for method in ("gadget", "fifo", "drf", "las"):
        found = run_method(DDLJS, instance, method, SolveOptions())
        assert found.objective is not None and found.objective <= value * (1 + 1e-9), method


@pytest.mark.parametrize("seed", range(3))
def test_engines_agree_on_links_that_hold_few_rings(seed: int) -> None:
    instance = small(seed, horizon=4)
    found = [run_method(DDLJS, instance, engine, SolveOptions(threads=1)) for engine in ("highs", "cpsat")]
    assert [one.status for one in found] == [Status.OPTIMAL] * 2
    assert found[0].objective == pytest.approx(found[1].objective, rel=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_a_solution_becomes_a_point_of_the_program(seed: int) -> None:
    """Warm starts: the brute force's rings, put together server by server, keep every row."""
    instance = tiny(6000 + seed)
    value, solution = brute_force(instance)
    model = build_ilp(instance)
    assert model.assign is not None
    for variable, number in model.assign(solution).items():
        variable.varValue = number
        assert (variable.lowBound or 0) <= number <= (variable.upBound if variable.upBound is not None else number)
    for name, row in model.problem.constraints.items():
        assert row.valid(1e-7), name
    assert model.problem.objective.value() == pytest.approx(value, rel=1e-9)
