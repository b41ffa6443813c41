"""Stage `exchange`: its bound against exhaustive search, its decisions checked, and what it decides alone."""

from __future__ import annotations

import functools
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
from schedgap.solvers.exact.gang_placement import exchange
from schedgap.solvers.exact.gang_placement.exchange import FEW_RUNS, exchange_of, exchanged
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.result import SolveOptions, Status

Data = dict[str, Any]
ALONE = SolveOptions(stages=frozenset({"exchange"}), threads=1)
PROBLEM = find_problem("gang-placement")
SIZES = ((1, 3), (2, 2), (3, 1), (3, 3))


def pods(
    nodes: list[tuple[int, int]], asked: list[tuple[int, int]], worth: list[tuple[int, int]]
) -> GangPlacementInstance:
    """Single pods of processors and memory, with weight and priority each."""
    gangs = [
        {"id": f"g{g}", "weight": weight, "priority": priority, "pods": [{"count": 1, "request": _named(one)}]}
        for g, (one, (weight, priority)) in enumerate(zip(asked, worth, strict=True))
    ]
    there = [{"id": f"n{n}", "free": _named(free)} for n, free in enumerate(nodes)]
    data = {"problem": "gang-placement", "nodes": there, "gangs": gangs, "objectives": ["weight"]}
    return GangPlacementInstance.parse(data)


def _named(amounts: tuple[int, int]) -> dict[str, int]:
    return dict(zip(("cpu", "memory"), amounts, strict=True))


def drawn(seed: int, nodes: int, per_node: int, load: float, priorities: int = 1) -> GangPlacementInstance:
    """Single pods that ask for `load` times what equal nodes have, as in arXiv 2511.08373."""
    rng = random.Random(seed)
    asked = [(rng.randint(100, 1000), rng.randint(100, 1000)) for _ in range(nodes * per_node)]
    free = tuple(int(sum(one[r] for one in asked) / nodes / load) for r in (0, 1))
    return pods([(free[0], free[1])] * nodes, asked, [(1, rng.randrange(priorities)) for _ in asked])


def _best(instance: GangPlacementInstance) -> list[int]:
    values = brute_force(instance)[0]
    return [int(value / entry.step) for value, entry in zip(values, components(instance), strict=False)]


@functools.cache
def _small() -> list[tuple[GangPlacementInstance, list[int]]]:
    """Every pair of nodes and four pods of four sizes, weights of 1 and 2, in one priority and in two; what is best."""
    worths = ([(1, 0), (2, 0), (1, 0), (2, 0)], [(1, 1), (2, 0), (1, 0), (2, 1)])
    instances = [
        pods(list(nodes), list(asked), worth)
        for nodes in itertools.combinations_with_replacement(((4, 4), (5, 3), (6, 6)), 2)
        for asked in itertools.combinations_with_replacement(SIZES, 4)
        for worth in worths
    ]
    return [(instance, _best(instance)) for instance in instances]


def test_no_bound_of_a_small_class_is_below_the_optimum() -> None:
    """Each component with the optimum of those before it held; where the bound is reached, by such a decision."""
    reached = 0
    for instance, best in _small():
        for goal in range(len(best)):
            stage = exchange_of(instance, best[:goal])
            assert stage is not None
            most = stage.most()
            assert most is not None and most >= best[goal]
            decision = stage.decision(most, FEW_RUNS, SolveOptions())
            if decision is None:
                continue
            report = PROBLEM.check(instance, decision)
            values = list(report.details["components"].values())
            assert not report.violations and most == best[goal]
            assert [int(float(value)) for value in values[: goal + 1]] == best[: goal + 1]
            reached += 1
    assert reached > 200


def test_what_two_bins_can_hold_is_found() -> None:
    """All ways of two bins are tried: a decision is missed only where the gangs that were chosen do not fit."""
    found = 0
    for instance, best in _small():
        stage = exchange_of(instance, [])
        assert stage is not None
        decision = stage.decision(best[0], FEW_RUNS, SolveOptions())
        if decision is not None:
            report = PROBLEM.check(instance, decision)
            assert not report.violations and report.details["components"]
            found += 1
    assert found > 0.95 * len(_small())


@pytest.mark.parametrize("case", [single_case, hosted_case])
def test_any_multipliers_give_a_bound(case: Callable[[int], Data]) -> None:
    """Multipliers that no program made: what they prove is no less than the optimum."""
    rng, tight = np.random.default_rng(1), 0
    for seed in range(60):
        instance = GangPlacementInstance.parse(case(seed) | {"objectives": ["weight"]})
        best = _best(instance)
        for goal in range(len(best)):
            stage = exchange_of(instance, best[:goal])
            if stage is None:
                continue
            for _ in range(20):
                own = rng.choice([0.0, 0.1, 0.5, 3.0], stage.places.sizes.shape[1])
                assert stage.bound(np.concatenate([own, rng.choice([0.0, 0.7, 4.0], goal)])) >= best[goal]
            most = stage.most()
            tight += most is not None and most == best[goal]
    assert tight > 10


@pytest.mark.parametrize("case", [single_case, hosted_case])
@pytest.mark.parametrize("seed", range(60))
def test_the_stage_is_right_on_tiny_instances(seed: int, case: Callable[[int], Data]) -> None:
    checked_stages(case(seed), ALONE)


@pytest.mark.parametrize(
    ("nodes", "per_node", "load", "priorities"), [(4, 8, 1.0, 1), (8, 8, 1.0, 2), (16, 4, 0.95, 4), (16, 8, 1.0, 1)]
)
def test_full_nodes_of_two_resources_are_decided(nodes: int, per_node: int, load: float, priorities: int) -> None:
    """The stage alone decides; no rule comes near, and patterns took seconds."""
    results = [solve_staged(drawn(seed, nodes, per_node, load, priorities), ALONE) for seed in range(4)]
    proven = [result for result in results if result.status is Status.OPTIMAL]
    assert len(proven) >= 3 and {result.info["decided by"] for result in proven} == {"exchange"}


def test_less_than_the_bound_is_tried_too() -> None:
    """Sums allow all five pods, and each node holds two."""
    instance = pods([(5, 6)] * 2, [(2, 2)] * 5, [(1, 0)] * 5)
    result = solve_staged(instance, ALONE)
    assert (result.objective, result.bound, result.info["found by"]) == (4, 5, "exchange")


def test_it_agrees_with_patterns() -> None:
    for seed in range(6):
        instance = drawn(seed, 4, 4, 1.0, 2)
        priced = solve_staged(instance, SolveOptions(stages=frozenset({"patterns"}), threads=1))
        other = solve_staged(instance, ALONE)
        assert priced.status is Status.OPTIMAL
        assert other.objective is not None and other.bound is not None
        assert other.objective <= priced.objective <= other.bound  # type: ignore[operator]


def test_interpreted_and_compiled_the_kernel_does_the_same() -> None:
    """Also where some bins do not take some gangs; what it is given stays as it was."""
    rng, ends = np.random.default_rng(7), set()
    for slack in (0, 3, 20):
        sizes = rng.integers(1, 20, (14, 2))
        takes = rng.random((14, 3)) < 0.9
        takes[:, 0] = True
        free = np.full((3, 2), sizes.sum(axis=0).max() // 3 + slack)
        begin = np.zeros(14, dtype=np.int64)
        task = sizes, free, takes, begin, np.full(2, 0.1), rng.integers(0, 2**31, 200), 6
        ways = [exchanged(*task) for _ in range(2)] + [exchanged.__wrapped__(*task)]  # type: ignore[attr-defined]
        done, where = ways[0]
        assert all(other == done and (held_by == where).all() for other, held_by in ways)
        assert not begin.any() and takes[np.arange(14), where].all()
        loads = np.array([sizes[where == b].sum(axis=0) for b in range(3)])
        assert done == bool((loads <= free).all())
        ends.add(done)
    assert ends == {False, True}


def test_many_gangs_and_single_bins_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = exchange_of(pods([(4, 4)], [(3, 1), (1, 3)], [(1, 0)] * 2), [])
    assert alone is not None and alone.most() == 2 and alone.decision(2, FEW_RUNS, SolveOptions()) is None
    stage = exchange_of(pods([(4, 4)] * 2, [(3, 1), (1, 3)], [(1, 0)] * 2), [])
    assert stage is not None and stage.decision(2, FEW_RUNS, SolveOptions()) is not None
    assert stage.decision(3, FEW_RUNS, SolveOptions()) is None
    monkeypatch.setattr(exchange, "MOST_GANGS", 1)
    assert stage.decision(2, FEW_RUNS, SolveOptions()) is None
