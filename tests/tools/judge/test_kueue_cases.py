"""Kueue's own cases of topology-aware placement, restated as instances: what its tests expect, and what is possible."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from schedgap.catalogue.registry import find_problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.solvers.result import SolveOptions, Status

PROBLEM = find_problem("gang-placement")
DATA = json.loads((Path(__file__).parents[2] / "data" / "kueue" / "cases.json").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = DATA["cases"]
_SCATTERED = "6 pods fit into hosts scattered across the whole datacenter even they could fit into single rack; BestFit"
BETTER = {
    "minimize the number of used racks before optimizing the number of nodes; BestFit": (3, 2),
    f"no annotation; implied default to unconstrained; {_SCATTERED}": (6, 2),
    f"unconstrained; {_SCATTERED}": (6, 2),
}


def instance_of(case: dict[str, Any]) -> GangPlacementInstance:
    return GangPlacementInstance.parse({"problem": "gang-placement", "name": case["name"], **case["instance"]})


def placed(instance: GangPlacementInstance, rule: str) -> dict[str, dict[str, int] | None]:
    """Pods by node of each gang, None where it is not placed."""
    solution = run_method(PROBLEM, instance, rule, SolveOptions(threads=1)).solution
    assert solution is not None
    pods = solution["placement"]
    return {g.id: dict(Counter(pod["node"] for pod in pods.get(g.id, []))) or None for g in instance.gangs}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace("; ", "-")[:90])
def test_the_rule_does_what_kueue_expects(case: dict[str, Any]) -> None:
    assert placed(instance_of(case), case["rule"]) == case["want"]


def test_sixty_cases_are_restated_and_the_rest_has_reasons() -> None:
    led = [case for case in CASES if len(case["instance"]["gangs"][0]["pods"]) > 1]
    assert len(CASES) == 72 and len(led) == 15  # a leader with workers
    assert Counter(case["rule"] for case in CASES) == {"kueue-best-fit": 64, "kueue-least-free": 8}
    assert len(DATA["left_out"]) == 68 and all(DATA["left_out"].values())
    different = {json.dumps((case["instance"], case["rule"]), sort_keys=True) for case in CASES}
    assert len(different) == 58  # Kueue tells the others apart by what an instance does not have: why a node takes none


@pytest.mark.parametrize(
    ("rule", "want"),
    [("best-fit", (3, 3, 0, 1)), ("least-free", (1, 3, 2, 1)), ("most-free", (3, 3, 1, 0))],
)
def test_the_example_of_kep_2724(rule: str, want: tuple[int, ...]) -> None:
    """ "Computing the assignment, Example": nodes of 3, 3, 2 and 1 pods, seven pods. LeastFreeCapacity has "nodes with
    1, 2, 3, and 3 available pods, reserving capacity for only 1 pod on the last"; MostFreeCapacity is of version 0.12.
    """
    nodes = [{"id": f"x{n}", "domain": ["r"], "gpus": [1000] * size} for n, size in enumerate((3, 3, 2, 1))]
    gang = {"id": "g", "required": "rack", "pods": [{"count": 7, "gpu": 1000}]}
    data = {"problem": "gang-placement", "levels": ["rack"], "nodes": nodes, "gangs": [gang]}
    seats = placed(GangPlacementInstance.parse(data), f"kueue-{rule}")["g"] or {}
    found = [seats.get(f"x{n}", 0) for n in range(4)]
    assert sorted(found[:2], reverse=True) + found[2:] == sorted(want[:2], reverse=True) + list(want[2:])


@pytest.mark.parametrize(
    ("rule", "pods", "want"), [("best-fit", 12, (6, 0, 4, 0, 2)), ("least-free", 10, (0, 2, 4, 2, 2))]
)
def test_the_table_of_kep_2724(rule: str, pods: int, want: tuple[int, ...]) -> None:
    """ "Two-level Topology Aware scheduling, Example": nodes of 6, 5, 4, 3 and 2 pods, in slices of two on a host.

    A slice is a pod of two devices here. Kueue tells nodes with equally many slices apart by the pods beside them, and
    takes the tighter one; ours go by name, so the names are in that order.
    """
    sizes = {"x4": 6, "x3": 5, "x2": 4, "x1": 3, "x0": 2}
    nodes = [{"id": name, "domain": ["r"], "gpus": [1000] * size} for name, size in sizes.items()]
    gang = {"id": "g", "required": "rack", "pods": [{"count": pods // 2, "gpu": 2000}]}
    data = {"problem": "gang-placement", "levels": ["rack"], "nodes": nodes, "gangs": [gang]}
    seats = placed(GangPlacementInstance.parse(data), f"kueue-{rule}")["g"] or {}
    assert tuple(2 * seats.get(name, 0) for name in sizes) == want


def test_where_the_optimum_is_better() -> None:
    """(domains beyond one over the levels that Kueue's decision uses, the fewest that are possible)."""
    found = {}
    for case in CASES:
        instance = instance_of(case)
        best = run_method(PROBLEM, instance, "staged", SolveOptions(threads=1))
        assert best.status is Status.OPTIMAL and best.solution is not None
        if len(instance.gangs) == 1 and len(instance.gangs[0].pods) == 1:
            want = case["want"]["g0"] or {}
            pods = [{"group": 0, "node": node} for node, count in want.items() for _ in range(count)]
            report = PROBLEM.check(instance, {"placement": {"g0": pods} if pods else {}})
            assert report.feasible, case["name"]
            assert best.objective is not None and report.value <= best.objective
            if report.value < best.objective:
                two = (report, PROBLEM.check(instance, best.solution))
                found[case["name"]] = tuple(int(one.details["components"]["domains"]) for one in two)
    assert found == BETTER
