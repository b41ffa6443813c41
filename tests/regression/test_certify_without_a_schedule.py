"""``certify`` with a method that ends without a schedule, because there is none: no bound either, and no traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import schedgap
from schedgap.catalogue.method import Kind
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.solvers.result import Status

FOLDER = Path(__file__).parents[1] / "data"


def unfinished(throughput: dict[str, float]) -> dict[str, Any]:
    """A hadar instance all of whose jobs must finish, with one that cannot."""
    data: dict[str, Any] = json.loads((FOLDER / "hadar-c05_admission.json").read_text())
    data["all_jobs_must_finish"] = True
    data["jobs"][0] |= {"throughput": throughput, "epochs": 10**6}
    return data


INFEASIBLE = [
    json.loads((FOLDER / f"{name}.json").read_text())
    for name in (
        "attack/G-certify-heuristic-arrival",
        "attack/G-certify-heuristic-memory",
        "rar-08-infeasible-horizon",
        "rar-13-infeasible-zero-rate",
    )
] + [unfinished({}), unfinished({"V100": 1.0})]
CASES = [
    (data, method.id)
    for data in INFEASIBLE
    for method in find_problem(data["problem"]).methods
    if method.kind is Kind.HEURISTIC and not method.outside_model
]


@pytest.mark.parametrize(("data", "method"), CASES, ids=lambda part: part if isinstance(part, str) else part["name"])
def test_a_heuristic_on_an_infeasible_instance(data: dict[str, Any], method: str) -> None:
    made = schedgap.certify(data, method)
    assert made.result.status is Status.UNKNOWN and made.result.solution is None
    assert not made.optimal and made.reason.endswith("the method ends with status unknown")


@pytest.mark.parametrize("problem", ["gpu-sharing", "hadar"])
def test_a_method_outside_the_model_is_refused_by_its_name(problem: str) -> None:
    outside = [method.id for method in find_problem(problem).methods if method.outside_model]
    assert outside
    for method in outside:
        with pytest.raises(InputError, match=f"method {method}: its schedules are outside the model"):
            schedgap.certify(schedgap.generate(problem, "tiny", seed=1), method)
