"""Pricing of rings against plain searches, and the LP over rings against the LP over rings written out."""

import itertools

import numpy as np
import pytest
from oracles.g_vne import random_case
from support.g_vne_enumeration import cheapest_ring, distances, enumerated_lp

from schedgap.benchmarks.instances.g_vne.random import small
from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.catalogue.run import run_method
from schedgap.formulations.g_vne.network_tables import tables
from schedgap.solvers.exact.g_vne.bound import ring_lp
from schedgap.solvers.exact.g_vne.colgen import solve_colgen
from schedgap.solvers.exact.g_vne.server_cuts import clique, most_violated
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem
from schedgap.solvers.result import SolveOptions, Status


@pytest.mark.parametrize("shape", ["tree", "general"])
@pytest.mark.parametrize("seed", range(6))
def test_the_best_ring_of_every_job_is_that_of_a_plain_search(seed: int, shape: str) -> None:
    instance = small(seed, shape=shape, servers=5, jobs=3, workers=4, memory=bool(seed % 2))
    data, subproblem = tables(instance), RingSubproblem(instance)
    rng = np.random.default_rng(seed)
    duals = np.where(rng.random(len(subproblem.rows)) < 0.7, rng.uniform(0, 8, len(subproblem.rows)), 0.0)
    priced = subproblem.price_all(duals, 1.0, subproblem.free_rules)
    node, link = subproblem.prices(duals, subproblem.free_rules)
    if data.forest is not None:  # the price of a tree link is that of both directions
        price = np.zeros(len(data.tail))
        for v in np.flatnonzero(data.forest.up >= 0):
            price[data.forest.up[v]] = link[v]
    else:
        price = link
    for j in range(data.jobs):
        between = distances(data, price * data.job_bandwidth[j], data.wide[j])
        values = [
            data.utility[j, k] - cheapest_ring(data, j, k, node[j, :, 1], between)
            for k in range(1, int(data.longest[j]) + 1)
        ]
        assert priced.best[j] == pytest.approx(max(values), abs=1e-9) or priced.best[j] == max(values)
    for column in priced.columns:
        value = column.objective - float(duals[column.rows] @ column.values)
        assert value <= priced.best[column.group] + 1e-9
        report = subproblem.solution([column.payload])
        assert len(report["rings"]) == 1
    for j in range(data.jobs):
        own = [c.objective - float(duals[c.rows] @ c.values) for c in priced.columns if c.group == j]
        assert max(own, default=-np.inf) == pytest.approx(priced.best[j], abs=1e-9) or not own


@pytest.mark.parametrize("seed", range(8))
def test_the_capped_lp_is_that_over_all_rings(seed: int) -> None:
    tree = random_case(500 + seed, shape="tree")
    assert ring_lp(tree).value == pytest.approx(enumerated_lp(tree), rel=1e-7, abs=1e-7)
    general = random_case(500 + seed, shape="general")
    # rings that need a link twice where it holds them once are columns, but do not fit alone
    assert ring_lp(general).value >= enumerated_lp(general) * (1 - 1e-7)


def test_decimals_fit_and_a_tree_is_seen() -> None:
    instance = random_case(1, shape="tree")
    data = tables(instance)
    assert data.forest is not None
    forest = data.forest
    for v in range(data.nodes):
        path = forest.path(int(forest.order[0]), v)
        assert path[0] == forest.order[0] and path[-1] == v and len(set(path)) == len(path)
    assert tables(random_case(2, shape="general")).cap.min() >= 0


def test_rounding_cuts_tighten_the_bound_and_keep_the_optimum() -> None:
    instance = small(103, servers=5, jobs=5, tightness=1.3, memory=True)
    found = solve_colgen(instance, SolveOptions())
    assert found.status is Status.OPTIMAL and found.objective is not None
    highs = run_method(G_VNE, instance, "highs", SolveOptions(threads=1))
    assert highs.objective == pytest.approx(found.objective, rel=1e-9)
    assert found.info["cuts"] > 0
    assert found.objective * (1 - 1e-9) <= found.info["cut_bound"] < found.info["lp_bound"] - 1e-3


@pytest.mark.parametrize("seed", range(30))
def test_a_cut_holds_for_all_counts_that_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, jobs = 4, 3
    capacity = float(rng.integers(2, 9))
    demand = rng.choice([0.7, 1.0, 1.5, 2.0], jobs)
    used = rng.dirichlet(np.ones(sizes + 1), jobs)
    cut = most_violated(0, capacity * (1 + 1e-9), demand, sizes, used)
    if cut is None:
        return
    assert (cut.share * used).sum() > cut.limit
    for counts in itertools.product(range(sizes + 1), repeat=jobs):
        if demand @ np.array(counts) <= capacity:
            assert sum(cut.share[j, n] for j, n in enumerate(counts)) <= cut.limit


@pytest.mark.parametrize("seed", range(30))
def test_a_clique_holds_for_all_counts_that_fit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, jobs = 4, 3
    capacity = rng.integers(3, 9, 2).astype(float)
    demand = rng.choice([0.7, 1.0, 1.5, 2.0], (jobs, 2))
    used = rng.dirichlet(np.ones(sizes + 1), jobs)
    cut = clique(0, capacity * (1 + 1e-9), demand, used)
    if cut is None:
        return
    assert (cut.share * used).sum() > cut.limit
    for counts in itertools.product(range(sizes + 1), repeat=jobs):
        if np.all(np.array(counts) @ demand <= capacity):
            assert sum(cut.share[j, n] for j, n in enumerate(counts)) <= cut.limit
