"""Every reference case by every exact method."""

import json
from pathlib import Path

import pytest
from oracles.comm_contention import brute_force
from support.checks import comm_contention as check

from schedgap.catalogue.comm_contention import PROBLEM
from schedgap.catalogue.run import run_method
from schedgap.formulations.comm_contention.bounds import lower_bound
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.errors import ModelRefused
from schedgap.solvers.result import SolveOptions, Status

CASES = sorted((Path(__file__).parents[1] / "data").glob("comm-contention-*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
@pytest.mark.parametrize("method", ["bb", "cbc", "highs"])
def test_comm_contention_reference(path: Path, method: str) -> None:
    data = json.loads(path.read_text())
    instance = CommContentionInstance.parse(data)
    result = run_method(PROBLEM, instance, method, SolveOptions(threads=1))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(data["reference"]["optimum"], rel=1e-6)
    assert result.solution is not None and result.bound is not None
    report = check(instance, result.solution)
    assert report.feasible and float(report.objective) == result.objective
    assert result.bound == pytest.approx(result.objective, rel=1e-6)
    assert lower_bound(instance) <= result.objective


def test_comm_contention_there_are_cases() -> None:
    assert len(CASES) == 5


@pytest.mark.parametrize("path", [p for p in CASES if "event_times" not in p.stem], ids=lambda p: p.stem)
def test_comm_contention_reference_by_brute_force(path: Path) -> None:
    data = json.loads(path.read_text())
    value, _ = brute_force(CommContentionInstance.parse(data))
    assert value == pytest.approx(data["reference"]["optimum"], rel=1e-7)


def test_comm_contention_a_start_between_events_is_needed() -> None:
    instance = CommContentionInstance.parse(json.loads(next(p for p in CASES if "event_times" in p.stem).read_text()))
    result = run_method(PROBLEM, instance, "bb", SolveOptions())
    assert result.solution is not None
    start = result.solution["start"]
    ends = check(instance, result.solution).details["completion"]
    between = [t.id for t in instance.tasks if abs(start[t.id] - t.release) > 1e-6]
    events = [*ends.values(), *(v for k, v in start.items() if k not in between)]
    assert between and all(abs(start[t] - moment) > 1e-3 for t in between for moment in events)
    at_release = check(instance, {"start": {t.id: t.release for t in instance.tasks}})
    assert float(at_release.objective) == pytest.approx(47.1)


def test_comm_contention_cpsat_refuses_in_one_line() -> None:
    instance = CommContentionInstance.parse(json.loads(CASES[0].read_text()))
    with pytest.raises(ModelRefused, match="continuous") as raised:
        run_method(PROBLEM, instance, "cpsat", SolveOptions())
    assert "\n" not in str(raised.value)
