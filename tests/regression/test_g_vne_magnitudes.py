"""g-vne whose utilities are tiny or huge: optima and bounds scale with them."""

import pytest
from oracles.g_vne import brute_force, random_case

from schedgap.benchmarks.instances.g_vne.random import large_tree
from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.catalogue.run import run_method
from schedgap.formulations.g_vne.instance import GVneInstance, in_ordinary_units
from schedgap.heuristics.g_vne.lp_rs_mde import lp_rs_mde
from schedgap.solvers.exact.g_vne.bound import ring_lp, upper_bound
from schedgap.solvers.exact.g_vne.colgen import solve_colgen
from schedgap.solvers.result import SolveOptions, Status

FACTORS = [1e-12, 1e-6, 1e12]


def times(instance: GVneInstance, factor: float) -> GVneInstance:
    data = instance.to_dict()
    for job in data["jobs"]:
        job["utility"] = [value * factor for value in job["utility"]]
    return GVneInstance.parse(data)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("seed", range(6))
def test_colgen_and_bounds_at_any_magnitude(seed: int, factor: float) -> None:
    instance = times(random_case(3100 + seed, shape=("tree", "general")[seed % 2]), factor)
    optimum = float(brute_force(instance)[0])
    reports: list[float] = []
    options = SolveOptions(report=lambda _, value, bound: reports.extend(x for x in (value, bound) if x is not None))
    own = solve_colgen(instance, options)
    assert own.status is Status.OPTIMAL and own.objective == pytest.approx(optimum, rel=1e-6, abs=0)
    assert own.bound is not None and own.bound >= optimum * (1 - 1e-12)
    assert own.bound <= optimum * (1 + 1e-6) and own.info["lp_bound"] >= optimum * (1 - 1e-9)
    assert reports and max(reports) <= max(own.info["lp_bound"], optimum) * (1 + 1e-6)
    assert run_method(G_VNE, instance, "colgen", SolveOptions()).objective == own.objective
    certified, lp = upper_bound(instance), ring_lp(instance)
    assert certified is not None and certified >= optimum and lp.bound >= optimum
    assert lp.converged and lp.bound <= lp.value * (1 + 1e-6)
    run = lp_rs_mde(instance, seed=1)
    assert run.bound is not None and run.bound >= optimum * (1 - 1e-9) and run.bound <= lp.bound * (1 + 1e-6)
    found = run_method(G_VNE, instance, "lp-rs-mde", SolveOptions(seed=1))
    assert found.objective is not None and 0 < found.objective <= optimum * (1 + 1e-12)
    assert run.info["objective"] == pytest.approx(found.objective, rel=1e-9, abs=0)


@pytest.mark.parametrize("factor", FACTORS)
def test_the_bound_of_large_networks_at_any_magnitude(factor: float) -> None:
    instance = large_tree(1, servers=200, racks=10, jobs=130)
    plain, scaled = upper_bound(instance), upper_bound(times(instance, factor))
    assert plain is not None and scaled == pytest.approx(plain * factor, rel=1e-8, abs=0)


def test_only_extreme_utilities_change_their_unit() -> None:
    instance = random_case(3100, shape="tree")
    assert in_ordinary_units(instance) == (instance, 1.0)
    tiny, unit = in_ordinary_units(times(instance, 1e-12))
    assert 1 <= tiny.largest_utility < 2 and tiny.largest_utility * unit == instance.largest_utility * 1e-12
    assert tiny.servers == instance.servers and tiny.links == instance.links
