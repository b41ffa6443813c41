"""Random tiny instances of g-vne: every exact method and a brute force; the linear relaxations in their order."""

import pytest
from oracles.g_vne import brute_force, random_case
from support.checks import g_vne as check

from schedgap.benchmarks.instances.g_vne.random import small
from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.catalogue.run import run_method
from schedgap.solvers.exact.g_vne.bound import ring_lp
from schedgap.solvers.result import SolveOptions, Status
from studies.g_vne_relaxations import augmented_relaxation, node_relaxation, plain_relaxation

METHODS = ["colgen", "cbc", "highs", "cpsat"]
CLOSE = 1e-7


@pytest.mark.parametrize("memory", [False, True], ids=["gpu", "gpu-memory"])
@pytest.mark.parametrize("shape", ["tree", "general"])
@pytest.mark.parametrize("seed", range(10))
def test_all_exact_methods_agree_and_the_relaxations_are_in_order(seed: int, shape: str, memory: bool) -> None:
    instance = random_case(3000 + seed, shape=shape, memory=memory)
    value, solution = brute_force(instance)
    optimum = float(value)
    report = check(instance, solution)
    assert report.feasible and report.objective == value
    for method in METHODS:
        found = run_method(G_VNE, instance, method, SolveOptions(threads=1))
        assert found.status is Status.OPTIMAL, method
        assert found.objective == pytest.approx(optimum, rel=1e-9, abs=1e-9), method
    nodes, plain = node_relaxation(instance).value, plain_relaxation(instance).value
    augmented = augmented_relaxation(instance).value
    by_columns = ring_lp(instance, capped=False)
    capped = ring_lp(instance)
    assert plain == pytest.approx(nodes, rel=CLOSE, abs=CLOSE)
    assert augmented == pytest.approx(plain, rel=CLOSE, abs=CLOSE)
    assert by_columns.converged and by_columns.value == pytest.approx(augmented, rel=CLOSE, abs=CLOSE)
    assert capped.converged and capped.bound <= by_columns.bound * (1 + CLOSE) + CLOSE
    assert optimum <= capped.bound <= capped.value * (1 + CLOSE) + CLOSE
    for value_then, bound_then in capped.history:
        assert value_then <= capped.bound * (1 + CLOSE) + CLOSE
        assert bound_then >= capped.value * (1 - CLOSE)


@pytest.mark.parametrize("shape", ["tree", "general"])
@pytest.mark.parametrize("seed", range(3))
def test_branch_and_price_agrees_with_highs_on_larger_rings(seed: int, shape: str) -> None:
    instance = small(40 + seed, shape=shape, servers=5, jobs=4, tightness=1.5)
    colgen = run_method(G_VNE, instance, "colgen", SolveOptions())
    highs = run_method(G_VNE, instance, "highs", SolveOptions(threads=1))
    assert colgen.status is highs.status is Status.OPTIMAL
    assert colgen.objective == pytest.approx(highs.objective, rel=1e-7)
