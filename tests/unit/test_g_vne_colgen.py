"""colgen of g-vne at its limits: time, work, optimistic pricing, too large, bounds without links."""

import numpy as np
import pytest
from oracles.g_vne import brute_force, random_case
from support.checks import g_vne as check
from support.work import PASSED, Looks

from schedgap.benchmarks.instances.g_vne.random import large_tree, small
from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.branch_and_price import ROUNDING, BranchAndPrice
from schedgap.solvers.exact.g_vne import colgen as g_vne
from schedgap.solvers.exact.g_vne import graph_pricing
from schedgap.solvers.exact.g_vne import search as g_vne_search
from schedgap.solvers.exact.g_vne.bound import ring_lp, upper_bound
from schedgap.solvers.exact.g_vne.pooled_bound import pooled_bound
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem
from schedgap.solvers.incumbent import optimal
from schedgap.solvers.result import SolveOptions, Status, Termination


def test_the_time_limit_is_kept_with_a_solution_and_a_bound() -> None:
    instance = large_tree(0, servers=60, racks=4, jobs=30)
    found = run_method(G_VNE, instance, "colgen", SolveOptions(deadline=Looks(20)))
    assert found.termination is Termination.TIME_LIMIT
    assert found.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert found.solution is not None and check(instance, found.solution).feasible
    assert found.objective is not None and found.bound is not None and 0 < found.objective <= found.bound


def test_a_work_limit_is_repeatable_and_its_bound_valid() -> None:
    instance = small(107, shape="tree", servers=5, jobs=5, tightness=1.3, memory=True)
    full = run_method(G_VNE, instance, "colgen", SolveOptions())
    assert full.status is Status.OPTIMAL and full.objective is not None
    runs = [run_method(G_VNE, instance, "colgen", SolveOptions(work_limit=0.001)) for _ in range(2)]
    assert runs[0].solution == runs[1].solution and runs[0].bound == runs[1].bound
    assert runs[0].bound is not None and runs[0].bound >= full.objective >= (runs[0].objective or 0)


@pytest.mark.parametrize("seed", range(4))
def test_optimistic_pricing_keeps_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = random_case(700 + seed, shape="general")
    optimum = float(brute_force(instance)[0])
    exact = ring_lp(instance).bound
    monkeypatch.setattr(graph_pricing, "MOST_CRITICAL", 0)
    assert ring_lp(instance).bound >= exact * (1 - 1e-9)
    found = run_method(G_VNE, instance, "colgen", SolveOptions())
    assert found.status is Status.OPTIMAL and found.objective == pytest.approx(optimum, rel=1e-9)


def test_what_is_too_large_to_price_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = small(1, shape="general")
    monkeypatch.setattr(g_vne, "MOST_STEPS", 10)
    found = g_vne.solve_colgen(instance, SolveOptions())
    assert found.status is Status.UNKNOWN and found.termination is Termination.TOO_LARGE
    assert found.bound is None and "too many" in found.info["reason"]


@pytest.mark.parametrize("seed", range(4))
def test_bounds_without_links_are_weaker_and_valid(seed: int) -> None:
    instance = small(seed)
    free, capped = ring_lp(instance, linked=False), ring_lp(instance)
    augmented = ring_lp(instance, capped=False)
    assert capped.bound <= free.bound * (1 + 1e-7) and free.bound <= augmented.bound * (1 + 1e-7)
    bound = upper_bound(instance)
    assert bound is not None and bound >= capped.value * (1 - 1e-9)


def test_a_better_start_is_not_lost() -> None:
    instance = small(5)
    best = run_method(G_VNE, instance, "colgen", SolveOptions())
    again = run_method(G_VNE, instance, "colgen", SolveOptions(start=best.solution, deadline=PASSED))
    assert again.objective == best.objective


def test_the_bound_of_a_large_tree_is_near_and_repeatable() -> None:
    instance = large_tree(0)
    bound = upper_bound(instance)
    assert bound is not None and 5553.883 <= bound <= 1.01 * 5553.883  # the capped LP, solved once in 6 s
    assert upper_bound(large_tree(0)) == bound


@pytest.mark.parametrize("seed", range(6))
def test_two_values_of_the_dual_function_bound_the_lp(seed: int) -> None:
    tree, general = small(seed, shape="tree", tightness=1 + seed), small(seed, shape="general")
    for subproblem, lp in (
        (RingSubproblem(tree), ring_lp(tree)),
        (RingSubproblem(tree, linked=False), ring_lp(tree, linked=False)),
        (RingSubproblem(general, linked=False), ring_lp(general, linked=False)),
    ):
        assert lp.converged and pooled_bound(subproblem)[0] >= lp.value * (1 - 1e-9)
        assert pooled_bound(subproblem)[0] <= np.maximum(subproblem.worth, 0).max(axis=1).sum() * (1 + 1e-9)


def test_a_node_is_closed_only_where_optimal_is_true() -> None:
    """A bound at the threshold, and rounded up, still agrees with the value within 1e-9; as in hadar."""
    for closing in (g_vne_search.RingSearch.prune, BranchAndPrice.prune):
        assert optimal(1.0, (1 + closing) * (1 + ROUNDING), MAXIMISE)


@pytest.mark.parametrize("shape", ["tree", "general"])
def test_the_compact_program_alone_proves_what_is_tried_out(shape: str) -> None:
    decided = 0
    for seed in range(900, 920):
        instance = random_case(seed, shape=shape)
        options = SolveOptions(stages=frozenset({"local search", "compact program"}), threads=1)
        found = run_method(G_VNE, instance, "colgen", options)
        optimum = float(brute_force(instance)[0])
        assert found.bound is None or found.bound >= optimum * (1 - 1e-9)
        assert found.objective is not None and found.objective <= optimum * (1 + 1e-9)
        if found.info.get("decided by") == "compact program":
            decided += 1
            assert found.status is Status.OPTIMAL and found.objective == pytest.approx(optimum, rel=1e-9)
    assert decided >= 3


def test_what_branching_leaves_open_the_compact_program_closes() -> None:
    """Branch and price is at a bound of 257.6 after 1,600 nodes."""
    instance = small(301, servers=12, jobs=12)
    found = run_method(G_VNE, instance, "colgen", SolveOptions(threads=1))
    assert found.status is Status.OPTIMAL and found.objective == pytest.approx(253.6)
    assert found.info["decided by"] == "compact program" and found.info["nodes"] <= 40


def test_a_compact_program_that_is_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(g_vne, "MOST_NONZEROS", 0)
    instance = small(301, servers=12, jobs=12)
    found = run_method(G_VNE, instance, "colgen", SolveOptions(work_limit=0.045, threads=1))
    assert found.status is Status.FEASIBLE and found.bound is not None and found.bound >= 253.6
