"""Every reference case of g-vne (tests/data, computed independently of this code) by every exact method."""

import json
from pathlib import Path
from typing import Any

import pytest
from oracles.g_vne import brute_force
from support.checks import g_vne as check

from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.catalogue.run import run_method
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.exact.g_vne.bound import upper_bound
from schedgap.solvers.result import SolveOptions, Status

CASES = sorted((Path(__file__).parents[1] / "data").glob("g-vne-*.json"))
METHODS = ["colgen", "cbc", "highs", "cpsat"]


def load(case: Path) -> tuple[GVneInstance, float]:
    data: dict[str, Any] = json.loads(case.read_text())
    return GVneInstance.parse(data, case.name), data["reference"]["optimum"]


def test_the_cases_are_here() -> None:
    assert len(CASES) >= 6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_reference_optimum(case: Path, method: str) -> None:
    instance, optimum = load(case)
    found = run_method(G_VNE, instance, method, SolveOptions(threads=1))
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(optimum, rel=1e-9)
    assert found.bound == pytest.approx(optimum, rel=1e-6)
    assert found.solution is not None and check(instance, found.solution).feasible


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_brute_force_and_bound(case: Path) -> None:
    instance, optimum = load(case)
    value, solution = brute_force(instance)
    assert float(value) == pytest.approx(optimum, rel=1e-12)
    report = check(instance, solution)
    assert report.feasible and report.objective == value
    bound = upper_bound(instance)
    assert bound is not None and bound >= optimum
