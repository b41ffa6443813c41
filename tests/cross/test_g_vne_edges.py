"""Instances of g-vne at the edges of the format: every exact method gives the same, known optimum."""

from typing import Any

import pytest
from oracles.g_vne import brute_force

from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.catalogue.run import run_method
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.result import SolveOptions, Status

ONE_EACH = [("a", 1), ("b", 1), ("c", 1)]
CYCLE = [("a", "b", 1), ("b", "c", 1), ("c", "a", 1), ("b", "a", 1)]
IDLE = [(tail, head, 0) for tail, head, _ in CYCLE]


def job(name: str, utility: list[float], bandwidth: float = 1.0, **demand: float) -> dict[str, Any]:
    return {"id": name, "demand": demand, "bandwidth": bandwidth, "utility": utility}


CASES: dict[str, tuple[list[tuple[str, float | None]], list[tuple[str, str, float]], list[dict[str, Any]], float]] = {
    "nothing fits": ([("a", 1)], [], [job("j", [1], gpu=2)], 0),
    "nothing is worth it": ([("a", 1)], [], [job("j", [-1, -2], gpu=1)], 0),
    "no links": ([("a", 3), ("b", 1)], [], [job("j", [1, 2, 3, 9], gpu=1), job("i", [1], gpu=1)], 4),
    "only switches": ([("a", None), ("b", None)], [("a", "b", 1)], [job("j", [1], gpu=1)], 0),
    "rings without traffic": (ONE_EACH, CYCLE, [job("j", [1, 2, 5], 0.0, gpu=1)], 5),
    "links without bandwidth": (ONE_EACH, IDLE, [job("j", [1, 2, 5], 0.0, gpu=1), job("k", [1, 2, 5], gpu=1)], 5),
    "a resource nobody has": ([("a", 1)], [], [job("j", [1], gpu=1, tpu=1)], 0),
    "no demand of it": ([("a", 1)], [], [job("j", [1], gpu=1, tpu=0)], 1),
    "one way round": (ONE_EACH, CYCLE[:3], [job("j", [1, 2, 5], gpu=1), job("k", [1, 2, 5], gpu=1)], 5),
}


@pytest.mark.parametrize("method", ["colgen", "cbc", "highs", "cpsat"])
@pytest.mark.parametrize("case", CASES)
def test_edges(case: str, method: str) -> None:
    servers, links, jobs, optimum = CASES[case]
    instance = GVneInstance.parse(
        {
            "problem": "g-vne",
            "servers": [{"id": i, "resources": {} if gpus is None else {"gpu": gpus}} for i, gpus in servers],
            "links": [{"from": tail, "to": head, "bandwidth": width} for tail, head, width in links],
            "jobs": jobs,
        },
        case,
    )
    assert brute_force(instance)[0] == optimum
    found = run_method(G_VNE, instance, method, SolveOptions(threads=1))
    assert found.status is Status.OPTIMAL and found.objective == optimum
    bound = G_VNE.bound(instance)
    assert bound is not None and optimum <= bound
