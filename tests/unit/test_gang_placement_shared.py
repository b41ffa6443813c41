"""Patterns of nodes whose devices are shared: knapsacks, bounds and decisions against exhaustive search."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from oracles.gang_placement import brute_force, shared_case
from support.placement_stages import checked_stages

from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import components
from schedgap.solvers.exact.gang_placement import device_knapsack
from schedgap.solvers.exact.gang_placement.bins import bins_of
from schedgap.solvers.exact.gang_placement.device_knapsack import DeviceKnapsacks, device_knapsacks_of, undominated
from schedgap.solvers.exact.gang_placement.pricing import solve_priced
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.result import SolveOptions, Status

Data = dict[str, Any]
ALONE = SolveOptions(stages=frozenset({"patterns"}), threads=1)
PROBLEM = find_problem("gang-placement")
KINDS = ((300, 2), (400, 1), (600, 3), (700, 1), (1000, 2), (2000, 1), (0, 1))


def shared(nodes: list[Data], asked: list[tuple[int, int]], weights: list[int]) -> GangPlacementInstance:
    """Single pods of parts of devices and processors."""
    gangs = [
        {"id": f"g{g}", "weight": weight, "pods": [{"count": 1, "gpu": gpu, "request": {"cpu": cpu}}]}
        for g, ((gpu, cpu), weight) in enumerate(zip(asked, weights, strict=True))
    ]
    there = [{"id": f"n{n}"} | node for n, node in enumerate(nodes)]
    data = {"problem": "gang-placement", "nodes": there, "gangs": gangs, "objectives": ["weight"]}
    return GangPlacementInstance.parse(data)


def test_a_knapsack_is_worth_what_exhaustive_search_places() -> None:
    """One node, as many pods of a kind as it could hold, prices as weights; whole and broken devices; layouts fit."""
    rng, compared = random.Random(5), 0
    for gpus, cpu in itertools.product(([1000, 1000], [600, 1000], [1000, 500, 1000]), (2, 4)):
        node = {"gpus": gpus, "free": {"cpu": cpu}}
        for kinds in itertools.combinations(KINDS, 2):
            prices = {kind: rng.randint(1, 5) for kind in kinds}
            asked = [kind for kind in kinds for _ in range(cpu // kind[1])]
            instance = shared([node], asked, [prices[kind] for kind in asked])
            knapsacks = device_knapsacks_of(instance)
            if knapsacks is None:
                continue
            sizes = [tuple(size) for size in knapsacks.places.sizes.tolist()]
            price = np.array([prices[size] for size in sizes])  # type: ignore[index]
            optimum = int(brute_force(instance)[0][0])
            assert knapsacks.best(price).tolist() == [optimum]
            ((b, pattern),) = knapsacks.patterns(price, np.array([optimum - 1]))
            assert b == 0 and int(pattern @ price) == optimum
            assert not list(knapsacks.patterns(price, np.array([optimum])))
            compared += 1
    assert compared > 60


@pytest.mark.parametrize("seed", range(150))
def test_the_stage_is_right_on_tiny_instances(seed: int) -> None:
    checked_stages(shared_case(seed), ALONE)


def test_no_bound_is_below_the_optimum() -> None:
    """Each weight with the optimum of those before it held; told that nothing is known, or the optimum."""
    known = reached = 0
    for seed in range(200):
        instance = GangPlacementInstance.parse(shared_case(seed))
        if device_knapsacks_of(instance) is None:
            continue
        values, solution = brute_force(instance)
        entries = components(instance)
        best = [int(value / entry.step) for value, entry in zip(values, entries, strict=False)]
        for goal, entry in enumerate(entries):
            if entry.kind != "weight":
                assert solve_priced(instance, best[:goal], -1, SolveOptions()) is None
                break
            for least, start in ((-1, solution if goal else None), (best[goal], solution)):
                proven = solve_priced(instance, best[:goal], least, SolveOptions(start=start))
                assert proven is not None and proven.bound >= best[goal]
                known += 1
                reached += _reached(instance, proven.decision, best[: goal + 1])
    assert known > 150 and reached > 60


def _reached(instance: GangPlacementInstance, decision: Solution | None, best: list[int]) -> bool:
    if decision is None:
        return False
    report = PROBLEM.check(instance, decision)
    assert not report.violations
    values = map(Fraction, report.details["components"].values())
    digits = [int(value / entry.step) for value, entry in zip(values, components(instance), strict=False)]
    mine = digits[: len(best)]
    assert mine <= best
    return mine == best


def test_shared_devices_with_processors_are_decided_at_size() -> None:
    """Twenty nodes of eight devices, on which a rule leaves rests; the stage alone leaves nearly none, or proves it."""
    found = []
    for seed in range(6):
        rng = random.Random(seed)
        asked = [(rng.choice([300, 400, 500, 600, 700, 1000, 2000]), rng.randint(2, 8)) for _ in range(300)]
        nodes: list[Data] = [{"gpus": [1000] * 8, "free": {"cpu": 80}} for _ in range(20)]
        instance = shared(nodes, asked, [gpu // 100 for gpu, _ in asked])
        start = run_method(PROBLEM, instance, "best-fit", SolveOptions())
        result = solve_staged(instance, replace(ALONE, start=start.solution))
        assert start.objective is not None and result.objective is not None and result.bound == 1600
        assert start.objective < 1594 and 1596 < result.objective <= 1600
        found.append((result.status, result.info.get("decided by")))
    assert found[:2] == [(Status.OPTIMAL, "patterns")] * 2


def test_what_is_too_long_is_left_to_other_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    node = {"gpus": [1000, 1000], "free": {"cpu": 9}}
    instance = shared([node], [(300, 1), (700, 2), (600, 3)], [1, 2, 3])
    proven = solve_priced(instance, [], -1, SolveOptions())
    assert proven is not None and proven.bound == 6
    for limit in ("MOST_SUMS", "MOST_KEPT"):
        with monkeypatch.context() as patch:
            patch.setattr(device_knapsack, limit, 1)
            assert solve_priced(instance, [], -1, SolveOptions()) is None


def test_devices_alone_are_enough() -> None:
    """No other resource is asked for; a pod of two devices beside parts, so that no device is a bin."""
    instance = shared([{"gpus": [1000, 600, 1000]}], [(400, 0), (700, 0), (600, 0), (2000, 0)], [1, 1, 2, 4])
    start = brute_force(instance)[1]
    proven = solve_priced(instance, [], -1, SolveOptions(start=start))
    assert proven is not None and proven.bound == 6 and _reached(instance, proven.decision, [6])


def test_other_rules_are_left_out() -> None:
    node = {"gpus": [1000, 1000], "free": {"cpu": 9}}
    known = shared([node], [(300, 1), (700, 2)], [1, 1])
    assert device_knapsacks_of(known) is not None and bins_of(known) is None
    for change in ({"pods": [{"count": 2, "gpu": 300}]}, {"pods": [{"count": 1, "gpu": 300, "parts": 2}]}):
        data = known.to_dict()
        data["gangs"][0] |= change
        assert device_knapsacks_of(GangPlacementInstance.parse(data)) is None
    assert device_knapsacks_of(shared([{"gpus": [1000, 1000]}], [(1000, 0), (2000, 0)], [1, 1])) is None


def test_interpreted_and_compiled_the_kernel_does_the_same() -> None:
    rng = np.random.default_rng(2)
    for columns in (0, 1, 3):
        rows = rng.integers(0, 9, (40, columns))
        ways = [undominated(rows, 40), undominated(rows, 40), undominated.__wrapped__(rows, 40)]  # type: ignore[attr-defined]
        kept: list[int] = []
        for i, row in enumerate(rows):
            if not any((rows[k] <= row).all() for k in kept):
                kept.append(i)
        assert all(np.flatnonzero(way).tolist() == kept for way in ways)
        assert undominated(rows, 1).sum() == 1


def test_a_layout_is_kept_once() -> None:
    """Two ways to lie of one pattern: the first one stays, so that a decision knows its devices."""
    instance = shared([{"gpus": [1000, 1000], "free": {"cpu": 9}}], [(300, 1), (700, 2)], [1, 1])
    knapsacks = device_knapsacks_of(instance)
    assert isinstance(knapsacks, DeviceKnapsacks)
    first, second = (((0,), (0, 1)),), (((0,), (0,)), ((1,), (1,)))
    assert np.array_equal(knapsacks.keep(0, first), knapsacks.keep(0, second))
    assert list(knapsacks.layouts.values()) == [first]
