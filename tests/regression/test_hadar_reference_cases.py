"""Every reference case of hadar by every exact method, P2 and P1, and by the checker."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.checks import hadar as check

from schedgap.catalogue.hadar import PROBLEM as HADAR
from schedgap.catalogue.run import run_method
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import by_slot
from schedgap.solvers.exact.hadar.bound import upper_bound
from schedgap.solvers.result import SolveOptions, Status

CASES = sorted((Path(__file__).parents[1] / "data").glob("hadar-*.json"))
METHODS = ["colgen", "cbc", "highs", "cpsat"]


def load(case: Path, must_finish: bool) -> tuple[HadarInstance, dict[str, Any]]:
    data = json.loads(case.read_text())
    data["all_jobs_must_finish"] = must_finish
    return HadarInstance.parse(data, case.name), data["reference"]


def test_the_cases_are_here() -> None:
    assert len(CASES) >= 6


@pytest.mark.parametrize("must_finish", [False, True], ids=["P2", "P1"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_reference_optimum(case: Path, method: str, must_finish: bool) -> None:
    instance, reference = load(case, must_finish)
    found = run_method(HADAR, instance, method, SolveOptions(threads=1))
    optimum = reference["optimum_all_jobs_must_finish" if must_finish else "optimum"]
    if optimum is None:
        assert found.status is Status.INFEASIBLE and found.solution is None and found.bound is None
        return
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(optimum, rel=1e-9)
    assert found.bound == pytest.approx(optimum, rel=1e-6)
    assert found.solution is not None and check(instance, found.solution).feasible


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_lp_bound_of_the_references(case: Path) -> None:
    instance, reference = load(case, False)
    found = run_method(HADAR, instance, "colgen", SolveOptions())
    assert found.info["lp_bound"] == pytest.approx(reference["lp_p2_bound"], rel=1e-8)
    assert upper_bound(instance) == pytest.approx(reference["lp_p2_bound"], rel=1e-6)
    assert upper_bound(instance) >= reference["optimum"]


@pytest.mark.parametrize("must_finish", [False, True], ids=["P2", "P1"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_prices_and_payoffs_solve_p3(case: Path, must_finish: bool) -> None:
    instance, _ = load(case, must_finish)
    info = run_method(HADAR, instance, "colgen", SolveOptions()).info
    if "residuals" not in info:
        assert must_finish  # the LP itself is infeasible
        return
    assert all(residual <= 1e-7 for residual in info["residuals"].values()), info["residuals"]
    assert set(info["prices"]) == set(instance.types)
    assert all(len(row) == instance.horizon and min(row) >= 0 for row in info["prices"].values())
    if not must_finish:
        assert min(info["payoffs"].values()) >= 0
    dual = sum(info["payoffs"].values())
    dual += sum(instance.capacity[kind] * sum(row) for kind, row in info["prices"].items())
    assert dual == pytest.approx(info["lp_bound"], rel=1e-7)


def spoilt(instance: HadarInstance, solution: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A solution with one device taken away, a slot before the arrival, a machine overfilled, a lost slot."""

    def copy() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(solution))
        return found

    job = max(solution["allocation"], key=lambda j: instance.jobs[instance.job_index[j]].workers)
    slot = next(iter(solution["allocation"][job]))
    fewer, full, early = copy(), copy(), copy()
    entries = fewer["allocation"][job][slot]
    entries[0]["gpus"] += 1  # one more than the gang
    over = full["allocation"][job][slot][0]
    over["gpus"] = 50
    early["allocation"][job]["0"] = early["allocation"][job].pop(slot)
    return [("gang", fewer), ("capacity", full), ("horizon", early)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_checker_rejects_spoilt_solutions(case: Path) -> None:
    instance, reference = load(case, False)
    found = run_method(HADAR, instance, "colgen", SolveOptions())
    assert found.solution is not None
    slots = {job: {str(t): e for t, e in by_slot(held).items()} for job, held in found.solution["allocation"].items()}
    for constraint, wrong in spoilt(instance, {"allocation": slots}):
        assert constraint in [violation.constraint for violation in check(instance, wrong).violations]
    lost = {"allocation": slots}
    for held in slots.values():  # some of what a job has may be of no use to it, but not all that all have
        held.popitem()
    assert float(check(instance, lost).objective or 0) < reference["optimum"]
