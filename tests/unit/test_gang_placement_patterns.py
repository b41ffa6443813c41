"""Stage `patterns` of gang-placement: its bounds against exhaustive search, and instances that it alone decides."""

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
from schedgap.solvers.exact.gang_placement import patterns
from schedgap.solvers.exact.gang_placement.patterns import Proven, patterns_of, solve_patterns
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.result import SolveOptions, Status

Data = dict[str, Any]
ALONE = SolveOptions(stages=frozenset({"patterns"}), threads=1)
PROBLEM = find_problem("gang-placement")


def parsed(nodes: list[Data], pods: list[Data], **more: Any) -> GangPlacementInstance:
    """Single pods, each a gang of weight 1 unless it says otherwise."""
    gangs = [
        {
            "id": f"g{g}",
            "weight": pod.pop("weight", 1),
            "priority": pod.pop("priority", 0),
            "pods": [{"count": 1, **pod}],
        }
        for g, pod in enumerate(pods)
    ]
    data = {"problem": "gang-placement", "nodes": nodes, "gangs": gangs, "objectives": ["weight"], **more}
    return GangPlacementInstance.parse(data)


def triplets(seed: int, bins: int) -> list[int]:
    """Three sizes a bin that fill it, as in Falkenauer's class t."""
    rng = random.Random(seed)
    sizes: list[int] = []
    for _ in range(bins):
        first, second = rng.randint(380, 490), rng.randint(250, 300)
        sizes += [first, second, 1000 - first - second]
    rng.shuffle(sizes)
    return sizes


@pytest.mark.parametrize("together", [False, True], ids=["a node each", "one node"])
def test_devices_that_parts_fill_without_rest_are_filled(together: bool) -> None:
    """A rule leaves some out; every pattern that is used leaves nothing."""
    for seed in range(3):
        sizes = triplets(seed, 12)
        nodes = [{"id": "n", "gpus": [1000] * 12}] if together else [{"id": f"n{n}", "gpus": [1000]} for n in range(12)]
        result = solve_staged(parsed(nodes, [{"gpu": size} for size in sizes]), ALONE)
        assert (result.status, result.objective, result.info["decided by"]) == (Status.OPTIMAL, 36, "patterns")


def test_a_class_of_bins_without_any_pattern_that_is_left_keeps_its_row() -> None:
    """No pattern of the second node is in a decision that has the bound, as reduced costs show."""
    free = [{"cpu": 3, "memory": 4}, {"cpu": 2, "memory": 4}]
    asked = [(3, 3, 1), (2, 1, 2), (1, 3, 2.5)]
    pods = [{"request": {"cpu": cpu, "memory": memory}, "weight": weight} for cpu, memory, weight in asked]
    result = solve_staged(parsed([{"id": f"n{n}", "free": own} for n, own in enumerate(free)], pods), ALONE)
    assert (result.status, result.objective) == (Status.OPTIMAL, 45)


def test_priorities_on_equal_nodes_are_decided_one_after_another() -> None:
    """Both priorities, on nodes of two resources; the engine's program by node finds the same."""
    rng = random.Random(5)
    pods = [
        {"request": {"cpu": rng.randint(100, 1000), "memory": rng.randint(100, 1000)}, "priority": k % 2}
        for k in range(16)
    ]
    free = {name: int(0.95 * sum(pod["request"][name] for pod in pods) / 4) for name in ("cpu", "memory")}
    instance = parsed([{"id": f"n{n}", "free": free} for n in range(4)], pods)
    result = solve_staged(instance, ALONE)
    assert (result.status, result.info["decided by"]) == (Status.OPTIMAL, "patterns")
    other = solve_staged(instance, SolveOptions(stages=frozenset({"programs"}), threads=1))
    assert (other.status, other.objective) == (Status.OPTIMAL, result.objective)


def test_gangs_on_one_node_each_fill_nodes_without_rest() -> None:
    """Nodes of 8 entirely free GPUs: 5 and 3 beside each other, twice, 4 and 4, 6 and 2."""
    sizes = [3, 3, 2, 4, 4, 5, 5, 6]
    nodes = [{"id": f"n{n}", "gpus": [1000] * 8} for n in range(3)] + [{"id": "n3", "gpus": [600, *[1000] * 8]}]
    gangs = [
        {"id": f"g{g}", "weight": size, "required": "node", "pods": [{"count": size, "gpu": 1000}]}
        for g, size in enumerate(sizes)
    ]
    data = {"problem": "gang-placement", "nodes": nodes, "gangs": gangs, "objectives": ["weight"]}
    result = solve_staged(GangPlacementInstance.parse(data), ALONE)
    assert (result.status, result.objective, result.info["decided by"]) == (Status.OPTIMAL, 32, "patterns")


def _decisions(instance: GangPlacementInstance) -> int:
    """How often the stage finds a decision, told that nothing is known, one step less than the optimum, and that."""
    optimum = int(brute_force(instance)[0][0] / components(instance)[0].step)
    found = 0
    for least in (-1, optimum - 1, optimum):
        proven = solve_patterns(instance, [], least, SolveOptions())
        assert proven is not None and proven.bound == max(optimum, least)
        found += proven.decision is not None
    return found


def test_no_bound_of_a_small_class_of_hosts_is_below_the_optimum() -> None:
    """Every pair of nodes and three gangs of a class, by devices and processors; exact at every start."""
    shapes = [(1, 1, 0), (2, 1, 1), (1, 2, 1), (3, 1, 0), (2, 0, 1)]  # pods, devices and processors of each
    tight = 0
    for free in itertools.combinations_with_replacement([(1, 2), (2, 1), (3, 1), (4, 2)], 2):
        for chosen in itertools.combinations_with_replacement(shapes, 3):
            nodes = [{"id": f"n{n}", "gpus": [1000] * gpus, "free": {"cpu": cpu}} for n, (gpus, cpu) in enumerate(free)]
            gangs = [
                {
                    "id": f"g{g}",
                    "weight": 1 + (g % 2),
                    "required": "node",
                    "pods": [{"count": count, "gpu": 1000 * gpu, "request": {"cpu": cpu}}],
                }
                for g, (count, gpu, cpu) in enumerate(chosen)
            ]
            data = {"problem": "gang-placement", "nodes": nodes, "gangs": gangs, "objectives": ["weight"]}
            instance = GangPlacementInstance.parse(data)
            tight += _decisions(instance)
    assert tight > 300


def test_no_bound_of_a_small_class_is_below_the_optimum() -> None:
    """Every pair of bins and four pods of a class; the bound of the prices alone, and the stage with its program."""
    tight = 0
    sizes = (250, 400, 500, 750)
    for bins in itertools.combinations_with_replacement((500, 750, 1000), 2):
        for chosen in itertools.combinations_with_replacement(sizes, 4):
            nodes = [{"id": f"n{n}", "gpus": [part]} for n, part in enumerate(bins)]
            instance = parsed(nodes, [{"gpu": size, "weight": 1 + (k % 2)} for k, size in enumerate(chosen)])
            tight += _decisions(instance)
    assert tight > 300


@pytest.mark.parametrize("case", [single_case, hosted_case])
@pytest.mark.parametrize("seed", range(60))
def test_the_stage_is_right_on_tiny_instances(seed: int, case: Callable[[int], Data]) -> None:
    instance, result, best = checked_stages(case(seed), ALONE)
    if patterns_of(instance) is not None and all(entry.kind == "weight" for entry in components(instance)):
        assert (result.status, result.objective) == (Status.OPTIMAL, best)


def test_any_prices_give_a_bound() -> None:
    """Prices and factors that no program made: what they prove is above the optimum all the same."""
    rng = np.random.default_rng(1)
    for seed in range(30):
        instance = GangPlacementInstance.parse(single_case(seed) | {"objectives": ["weight"]})
        found = patterns_of(instance)
        if found is None:
            continue
        optimum = brute_force(instance)[0]
        entries = components(instance)
        best = [int(value / entry.step) for value, entry in zip(optimum, entries, strict=False)]
        for goal in range(len(entries)):
            master = patterns.Master(instance, found, entries[: goal + 1], best[:goal], -1)
            for _ in range(20):
                price = rng.choice([0.0, 0.5, 1.0, 3.0, 25.0], found.counts.shape[1])
                bound, _, scale = master.bound(price, rng.choice([0.0, 0.7, 4.0], goal))
                assert bound >= best[goal] * scale


@pytest.mark.parametrize(
    "change",
    [
        {"gangs": [{"id": "g", "pods": [{"count": 2, "gpu": 500}]}]},
        {"gangs": [{"id": "g", "pods": [{"count": 2, "gpu": 1000}]}]},
        {"gangs": [{"id": "g", "required": "node", "per_node": 1, "pods": [{"count": 2, "gpu": 1000}]}]},
        {"gangs": [{"id": "g", "required": "node", "pods": [{"count": 1, "gpu": 1000}, {"count": 1, "gpu": 500}]}]},
        {"gangs": [{"id": "g", "pods": [{"count": 1, "gpu": 500, "parts": 2}]}]},
        {"gangs": [{"id": "g", "queue": "q", "pods": [{"count": 1, "gpu": 500}]}], "queues": [{"id": "q"}]},
        {"gangs": [{"id": "g", "pods": [{"count": 1, "gpu": 500, "request": {"cpu": 1}}]}]},
        {"gangs": [{"id": "g", "pods": [{"count": 1}]}]},
        {"objectives": ["moves", "weight"]},
    ],
)
def test_other_rules_than_those_of_bins_are_left_to_other_stages(change: Data) -> None:
    data = {"problem": "gang-placement", "nodes": [{"id": "n", "gpus": [1000, 1000], "free": {"cpu": 1}}]}
    gangs = [{"id": "g", "pods": [{"count": 1, "gpu": 500}]}]
    assert patterns_of(GangPlacementInstance.parse(data | {"gangs": gangs})) is not None
    assert patterns_of(GangPlacementInstance.parse(data | {"gangs": gangs} | change)) is None


def test_too_many_patterns_are_not_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [{"gpu": 100 + k} for k in range(12)]
    assert patterns_of(parsed([{"id": "n", "gpus": [1000]}], [dict(pod) for pod in pods])) is not None
    for name, most in (("MOST_PATTERNS", 20), ("MOST_STEPS", 100)):
        with monkeypatch.context() as patched:
            patched.setattr(patterns, name, most)
            instance = parsed([{"id": "n", "gpus": [1000]}], [dict(pod) for pod in pods])
            assert patterns_of(instance) is None
    with monkeypatch.context() as patched:
        patched.setattr(patterns, "MOST_COLUMNS", 0)
        proven = solve_patterns(
            parsed([{"id": "n", "gpus": [1000]}], [dict(pod) for pod in pods]), [], 0, SolveOptions()
        )
        assert isinstance(proven, Proven) and proven.decision is None and proven.bound >= 9
