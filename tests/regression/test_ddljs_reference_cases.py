"""Every reference case of ddljs by every exact method, by gadget and by the checker."""

import json
from pathlib import Path
from typing import Any

import pytest
from oracles.ddljs import brute_force
from support.checks import ddljs as check

from schedgap.catalogue.ddljs import PROBLEM as DDLJS
from schedgap.catalogue.run import run_method
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.solvers.exact.ddljs.bound import upper_bound
from schedgap.solvers.result import SolveOptions, Status

CASES = sorted((Path(__file__).parents[1] / "data").glob("ddljs-*.json"))


def load(case: Path) -> tuple[DdljsInstance, dict[str, Any]]:
    data = json.loads(case.read_text())
    return DdljsInstance.parse(data, case.name), data["reference"]


def test_the_cases_are_here() -> None:
    assert len(CASES) >= 3


@pytest.mark.parametrize("method", ["highs", "cpsat", "cbc"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_reference_optimum(case: Path, method: str) -> None:
    instance, reference = load(case)
    found = run_method(DDLJS, instance, method, SolveOptions(threads=1))
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(reference["optimum"], rel=1e-9)
    assert found.bound == pytest.approx(reference["optimum"], rel=1e-6)
    assert found.solution is not None and check(instance, found.solution).feasible


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_brute_force_and_bound(case: Path) -> None:
    instance, reference = load(case)
    value, solution = brute_force(instance)
    assert value == pytest.approx(reference["optimum"], rel=1e-12)
    report = check(instance, solution)
    assert report.feasible and float(report.objective or 0) == pytest.approx(value, rel=1e-12)
    bound = upper_bound(instance)
    assert bound is not None and bound >= value


@pytest.mark.parametrize("inner", ["colgen", "highs", "cpsat", "cbc", "greedy"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_greedy_over_exact_slots(case: Path, inner: str) -> None:
    instance, reference = load(case)
    found = run_method(DDLJS, instance, "gadget", SolveOptions(), {"inner": inner})
    assert found.objective == pytest.approx(reference["greedy_alpha1"], rel=1e-9)
    assert found.info["exact"] or inner == "greedy"
