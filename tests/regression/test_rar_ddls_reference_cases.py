"""Every reference case of rar-ddls by every exact method, through the command line, and by the checker."""

import json
from pathlib import Path
from typing import Any

import pytest

from schedgap.api import check
from schedgap.cli.main import main

CASES = sorted((Path(__file__).parents[1] / "data").glob("rar-*.json"))
METHODS = ["cp", "cbc", "highs", "cpsat"]
EXITS = {"optimal": 0, "infeasible": 3}


def test_the_cases_are_here() -> None:
    assert len(CASES) >= 8


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_reference_status_and_optimum(case: Path, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(case.read_text())
    reference = data["reference"]
    status = main(["solve", str(case), "--method", method, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["objective"]) == (reference["status"], reference["optimum"])
    assert status == EXITS[reference["status"]]
    if found["solution"] is None:
        return
    assert found["bound"] == found["objective"] and found["gap"] == 0
    assert check(case, found).feasible
    for constraint, wrong in spoilt(data, found["solution"]):
        assert constraint in [violation.constraint for violation in check(case, wrong).violations]


def spoilt(data: dict[str, Any], solution: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Copies of a solution with one GPU moved away, a start shifted before slot 1, a server overfilled."""

    def copy() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(solution))
        return found

    job = max(data["jobs"], key=lambda job: job["gpus"])["id"]
    fewer, early, full = copy(), copy(), copy()
    server = next(iter(fewer["placement"][job]))
    fewer["placement"][job][server] -= 1
    if fewer["placement"][job][server] == 0:
        fewer["placement"][job][server] = 2
    early["start"][job] = 0
    size = next(s["gpus"] for s in data["servers"] if s["id"] == server)
    full["placement"][job][server] = size + 1
    return [("placement", fewer), ("start", early), ("capacity", full)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_reference_solutions_are_accepted(case: Path) -> None:
    data = json.loads(case.read_text())
    if "reference_solution" in data:
        report = check(case, data["reference_solution"])
        assert report.feasible and report.objective == data["reference"]["optimum"]
    else:
        assert data["reference"]["status"] == "infeasible"
