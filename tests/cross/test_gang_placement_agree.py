"""Every exact way of gang-placement against brute force, on tiny instances in which everything collides.

A sample of what the gate asks of some 1,300 instances of the same cases.
"""

from __future__ import annotations

from typing import Any

import pytest
from oracles.gang_placement import alike_case, brute_force, flavoured_case, parted_case, random_case, subgroup_case

from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.solvers.result import SolveOptions, Status

PROBLEM = find_problem("gang-placement")
ALONE = SolveOptions(threads=1)


def truth(seed: int) -> tuple[Instance, Any]:
    """The instance of a seed and its best value; some have flavours, equals, parts of several devices or subgroups."""
    case = (flavoured_case, random_case, alike_case, parted_case, subgroup_case)[seed % 5]
    instance = GangPlacementInstance.parse(case(seed))
    report = PROBLEM.check(instance, brute_force(instance, 20_000)[1])
    assert report.feasible
    return instance, report.value


@pytest.mark.parametrize(
    ("method", "settings", "seeds"),
    [
        ("staged", {}, range(50)),
        ("staged", {"engine": "cpsat"}, range(150, 165)),
        ("cpsat", {}, range(200, 215)),
        ("highs", {}, range(230, 245)),
        ("cbc", {}, range(260, 275)),
    ],
    ids=["staged", "staged-cpsat", "cpsat", "highs", "cbc"],
)
def test_exact_methods_find_the_optimum(method: str, settings: dict[str, str], seeds: range) -> None:
    refused = 0
    for seed in seeds:
        instance, best = truth(seed)
        try:
            result = run_method(PROBLEM, instance, method, ALONE, settings)
        except ModelRefused:  # all components as one number: more digits than floats have
            refused += 1
            continue
        assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, best, best), seed
    assert refused <= (0 if method == "staged" else 0.1 * len(seeds))


def test_rules_are_feasible_and_never_better() -> None:
    rules = [method.id for method in PROBLEM.methods if method.kind is Kind.HEURISTIC]
    reached = dict.fromkeys(rules, 0)
    for seed in range(300, 340):
        instance, best = truth(seed)
        for rule in rules:
            result = run_method(PROBLEM, instance, rule, ALONE)
            assert result.objective is not None and result.objective <= best, (seed, rule)
            reached[rule] += result.objective == best
    assert all(0 < count < 40 for count in reached.values()), reached
