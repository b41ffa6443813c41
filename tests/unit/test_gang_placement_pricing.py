"""Patterns that prices ask for: knapsacks, bounds and decisions against all patterns and exhaustive search."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles.gang_placement import brute_force, hosted_case, single_case
from support.placement_stages import checked_stages

from schedgap.catalogue.registry import find_problem
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import components
from schedgap.solvers.exact.gang_placement import patterns, vector_knapsack
from schedgap.solvers.exact.gang_placement.bins import bins_of
from schedgap.solvers.exact.gang_placement.patterns import Master, Proven, patterns_of
from schedgap.solvers.exact.gang_placement.pricing import Knapsacks, held_patterns, solve_priced
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.exact.gang_placement.vector_knapsack import VectorKnapsacks
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


def _reaches(instance: GangPlacementInstance, proven: Proven | None, optimum: int) -> bool:
    """Whether there is a decision worth the optimum; bound and decision are checked against it."""
    assert proven is not None and proven.bound >= optimum
    if proven.decision is None:
        return False
    report = PROBLEM.check(instance, proven.decision)
    assert not report.violations and report.value is not None and report.value <= optimum
    return report.value == optimum


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
                found += _reaches(instance, proven, optimum) and optimum > least
    assert found > 300


@pytest.mark.parametrize(("case", "least"), [(single_case, 10), (hosted_case, 4)])
def test_the_stage_is_right_where_all_is_priced(
    case: Callable[[int], Data], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tiny instances with priorities, of which no pattern may be written down beforehand."""
    monkeypatch.setattr(patterns, "MOST_PATTERNS", 0)
    proven = 0
    for seed in range(60):
        _, result, _ = checked_stages(case(seed), ALONE)
        proven += result.status is Status.OPTIMAL
    assert proven > least


def pods(nodes: list[tuple[int, ...]], asked: list[tuple[int, ...]], weights: list[int]) -> GangPlacementInstance:
    """Single pods of several resources."""
    gangs = [
        {"id": f"g{g}", "weight": weight, "pods": [{"count": 1, "request": _named(one)}]}
        for g, (one, weight) in enumerate(zip(asked, weights, strict=True))
    ]
    there = [{"id": f"n{n}", "free": _named(free)} for n, free in enumerate(nodes)]
    data = {"problem": "gang-placement", "nodes": there, "gangs": gangs, "objectives": ["weight"]}
    return GangPlacementInstance.parse(data)


def _named(amounts: tuple[int, ...]) -> Data:
    return dict(zip(("cpu", "memory", "disk"), amounts, strict=False))


@pytest.mark.parametrize("most_steps", [0, 300_000])
@pytest.mark.parametrize("resources", [2, 3])
def test_a_knapsack_of_several_resources_is_worth_what_the_best_of_all_patterns_is(
    resources: int, most_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random prices, 0 and such as do not fit 64 bits once multiplied among them; a search that is cut is a bound."""
    monkeypatch.setattr(vector_knapsack, "MOST_STEPS", most_steps)
    rng, cut = np.random.default_rng(5), 0
    for _ in range(30):
        nodes = [tuple(rng.integers(4, 12, resources).tolist()) for _ in range(2)]
        asked = [tuple(rng.integers(0, 6, resources).tolist()) for _ in range(7)]
        asked = [one if any(one) else (1,) * resources for one in asked]
        instance = pods(nodes, asked, [1] * 7)
        places, everything = bins_of(instance), patterns_of(instance)
        assert places is not None and everything is not None
        knapsacks, master = VectorKnapsacks(places), Master(instance, everything, components(instance)[:1], [], -1)
        for _ in range(10):
            price = rng.choice([0, 1, 3, 7, 250, 2**55, 2**55 + 3], len(places.sizes))
            best, bound = master.best(price), knapsacks.best(price)
            coarse = 2**10 * len(price) if price.max() > 250 else 0
            assert (bound >= best).all()
            assert most_steps == 0 or (bound <= best + coarse).all()
            cut += int((bound > best + coarse).sum())
            for b, pattern in knapsacks.patterns(price, best // 2):
                assert (pattern @ places.sizes <= places.capacity[b]).all() and (pattern <= places.waiting[b]).all()
                assert best[b] >= pattern @ price > best[b] // 2
    assert (cut > 50) == (most_steps == 0)


def test_no_bound_of_a_small_class_of_several_resources_is_below_the_optimum() -> None:
    """Every pair of nodes and four pods of three sizes each way, told nothing, one less than the optimum, and that."""
    found = 0
    sizes = ((1, 3), (2, 2), (3, 1), (3, 3))
    for nodes in itertools.combinations_with_replacement(((4, 4), (5, 3), (6, 6)), 2):
        for asked in itertools.combinations_with_replacement(sizes, 4):
            instance = pods(list(nodes), list(asked), [1, 2, 1, 2])
            values, best = brute_force(instance)
            optimum = int(values[0])
            for least, start in ((-1, None), (optimum - 1, None), (optimum - 1, best), (optimum, best)):
                proven = solve_priced(instance, [], least, SolveOptions(start=start))
                found += _reaches(instance, proven, optimum) and optimum > least
    assert found > 300


@pytest.mark.parametrize("priorities", [1, 2])
def test_bins_of_two_resources_are_decided_by_priced_patterns(priorities: int) -> None:
    """Pods that ask for 0.95 of 16 nodes, in groups of 1 to 4 equal ones, as in arXiv 2511.08373."""
    rng = random.Random(1)
    asked: list[tuple[int, int, int]] = []
    while len(asked) < 64:
        alike = (rng.randint(100, 1000), rng.randint(100, 1000), rng.randint(1, priorities))
        asked += [alike] * min(rng.randint(1, 4), 64 - len(asked))
    free = {name: int(sum(pod[k] for pod in asked) / 16 / 0.95) for k, name in enumerate(("cpu", "memory"))}
    gangs = [
        {"id": f"g{g}", "priority": p, "pods": [{"count": 1, "request": {"cpu": c, "memory": m}}]}
        for g, (c, m, p) in enumerate(asked)
    ]
    nodes = [{"id": f"n{n}", "free": free} for n in range(16)]
    data = {"problem": "gang-placement", "nodes": nodes, "gangs": gangs, "objectives": ["weight"]}
    instance = GangPlacementInstance.parse(data)
    result = solve_staged(instance, ALONE)
    assert result.status is Status.OPTIMAL and result.info["decided by"] == "patterns"


def test_what_bins_hold_in_a_decision_is_a_pattern_of_theirs() -> None:
    """So that the program has a point that is worth what the decision is."""
    held = 0
    for case in (single_case, hosted_case):
        for seed in range(60):
            instance = GangPlacementInstance.parse(case(seed) | {"objectives": ["weight"]})
            places = bins_of(instance)
            if places is None:
                continue
            best = brute_force(instance)[1]
            for b, pattern in held_patterns(instance, places, best):
                assert (pattern @ places.sizes <= places.capacity[b]).all() and (pattern <= places.waiting[b]).all()
                held += int(pattern.sum())
    assert held > 100


def test_long_knapsacks_are_left_to_other_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    two = pods([(2, 2)], [(1, 1)], [1])
    assert solve_priced(two, [], -1, SolveOptions()) is not None
    monkeypatch.setattr(vector_knapsack, "MOST_PAIRS", 0)
    assert solve_priced(two, [], -1, SolveOptions()) is None
    assert solve_priced(pods([(10**8,)], [(3,), (4,)], [1, 1]), [], -1, SolveOptions()) is None
