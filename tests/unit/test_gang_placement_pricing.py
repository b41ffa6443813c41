"""Patterns that prices ask for: knapsacks, bounds and decisions against all patterns and exhaustive search."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles.gang_placement import brute_force, hosted_case, single_case

from schedgap.catalogue.registry import find_problem
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import components
from schedgap.solvers.exact.gang_placement import patterns
from schedgap.solvers.exact.gang_placement.patterns import Master, bins_of, patterns_of
from schedgap.solvers.exact.gang_placement.pricing import Knapsacks, solve_priced
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.result import SolveOptions, Status

Data = dict[str, Any]
ALONE = SolveOptions(stages=frozenset({"patterns"}), threads=1)
PROBLEM = find_problem("gang-placement")


def parts(devices: list[int], sizes: list[int], weights: list[int] | None = None) -> GangPlacementInstance:
    """Single pods with parts of devices, each device a node."""
    worth = weights or [1] * len(sizes)
    gangs = [
        {"id": f"g{g}", "weight": weight, "pods": [{"count": 1, "gpu": size}]}
        for g, (size, weight) in enumerate(zip(sizes, worth, strict=True))
    ]
    nodes = [{"id": f"n{n}", "gpus": [part]} for n, part in enumerate(devices)]
    data = {"problem": "gang-placement", "nodes": nodes, "gangs": gangs, "objectives": ["weight"]}
    return GangPlacementInstance.parse(data)


@pytest.mark.parametrize("bins", [40, 83])
def test_too_many_patterns_to_write_down_are_priced(bins: int) -> None:
    """Three sizes a device that fill it, 120 and 249 in all, as in Falkenauer's classes t120 and t249."""
    rng = random.Random(1)
    sizes: list[int] = []
    for _ in range(bins):
        first = rng.randint(380, 490)
        second = rng.randint(250, (1000 - first) // 2)
        sizes += [first, second, 1000 - first - second]
    instance = parts([1000] * bins, sizes)
    assert patterns_of(instance) is None
    result = solve_staged(instance, ALONE)
    assert (result.status, result.objective) == (Status.OPTIMAL, 3 * bins)
    assert result.info["decided by"] == "patterns"


@pytest.mark.parametrize(("case", "least"), [(single_case, 200), (hosted_case, 50)])
def test_a_knapsack_is_worth_what_the_best_of_all_patterns_is(case: Callable[[int], Data], least: int) -> None:
    """Random prices, 0 among them; patterns that are made fit, and are worth more than was asked for."""
    rng, compared = np.random.default_rng(3), 0
    for seed in range(80):
        instance = GangPlacementInstance.parse(case(seed) | {"objectives": ["weight"]})
        places, found = bins_of(instance), patterns_of(instance)
        if places is None or found is None or places.sizes.any(axis=0).sum() != 1:
            continue
        knapsacks = Knapsacks(places)
        master = Master(instance, found, components(instance)[:1], [], -1)
        for _ in range(10):
            price = rng.choice([0, 1, 3, 7, 250], len(places.sizes))
            best = master.best(price)
            assert np.array_equal(knapsacks.best(price), best)
            for b, pattern in knapsacks.patterns(price, best - 1):
                assert (pattern @ places.sizes <= places.capacity[b]).all() and (pattern <= places.waiting[b]).all()
                assert pattern @ price > best[b] - 1
                compared += 1
    assert compared > least


def test_no_bound_of_a_small_class_is_below_the_optimum() -> None:
    """Every pair of devices and four pods, told that nothing is known, one less than the optimum, and that."""
    found = 0
    for devices in itertools.combinations_with_replacement((500, 750, 1000), 2):
        for sizes in itertools.combinations_with_replacement((250, 400, 500, 750), 4):
            instance = parts(list(devices), list(sizes), [1, 2, 1, 2])
            optimum = int(brute_force(instance)[0][0])
            for least in (-1, optimum - 1, optimum):
                proven = solve_priced(instance, [], least, SolveOptions())
                assert proven is not None and proven.bound >= optimum
                if proven.decision is not None:
                    report = PROBLEM.check(instance, proven.decision)
                    assert not report.violations and report.value is not None and report.value <= optimum
                    found += report.value == optimum > least
    assert found > 300


@pytest.mark.parametrize(("case", "least"), [(single_case, 10), (hosted_case, 4)])
def test_the_stage_is_right_where_all_is_priced(
    case: Callable[[int], Data], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiny instances with priorities, of which no pattern may be written down beforehand."""
    monkeypatch.setattr(patterns, "MOST_PATTERNS", 0)
    proven = 0
    for seed in range(60):
        instance = GangPlacementInstance.parse(case(seed))
        result = solve_staged(instance, ALONE)
        best = PROBLEM.check(instance, brute_force(instance)[1]).value
        assert result.objective is not None and best is not None and result.objective <= best
        assert result.bound is None or result.bound >= best
        proven += result.status is Status.OPTIMAL
    assert proven > least


def test_bins_of_two_resources_and_long_knapsacks_are_left_to_other_stages() -> None:
    two = {
        "problem": "gang-placement",
        "nodes": [{"id": "n", "free": {"cpu": 2, "memory": 2}}],
        "gangs": [{"id": "g", "pods": [{"count": 1, "request": {"cpu": 1, "memory": 1}}]}],
        "objectives": ["weight"],
    }
    assert solve_priced(GangPlacementInstance.parse(two), [], -1, SolveOptions()) is None
    long = {**two, "nodes": [{"id": "n", "free": {"cpu": 10**8}}]}
    long["gangs"] = [{"id": f"g{k}", "pods": [{"count": 1, "request": {"cpu": 3 + k}}]} for k in range(2)]
    assert solve_priced(GangPlacementInstance.parse(long), [], -1, SolveOptions()) is None
