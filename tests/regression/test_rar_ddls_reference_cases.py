"""Every reference case of rar-ddls by every exact method, through the command line, and by the checker."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from schedgap import check
from schedgap.cli.main import main
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

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


def test_one_gpu_on_another_server_is_judged_anew() -> None:
    """Every move of one GPU of a job: too many on the server, or legal with an objective of its own."""
    verdicts = {"capacity": 0, "legal": 0, "other objective": 0}
    for case in CASES:
        data = json.loads(case.read_text())
        if "reference_solution" not in data:
            continue
        data["horizon"] *= 10  # so that a slower ring is in time
        instance = RarDdlsInstance.parse(data)
        solution = data["reference_solution"]
        for moved in one_gpu_moved(data, solution):
            start, placement = moved["start"], moved["placement"]
            ends = simulate(instance, start, placement).completion
            report = check(instance, moved)
            if any(end is None or end > data["horizon"] for end in ends.values()):
                assert not report.feasible
            elif overfull(data, start, placement, ends):
                assert "capacity" in [violation.constraint for violation in report.violations]
                verdicts["capacity"] += 1
            else:
                assert report.feasible and report.objective == max(end for end in ends.values() if end is not None)
                verdicts["legal"] += 1
                assert report.details["completion"] == ends
                verdicts["other objective"] += report.objective != data["reference"]["optimum"]
    assert min(verdicts.values()) > 0, verdicts


def one_gpu_moved(data: dict[str, Any], solution: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The solution with one GPU of one job moved to another server, in every way; also with the job put last."""
    for job, counts in solution["placement"].items():
        for source in counts:
            for target in (server["id"] for server in data["servers"] if server["id"] != source):
                moved: dict[str, Any] = json.loads(json.dumps(solution))
                there = moved["placement"][job]
                there[target] = there.get(target, 0) + 1
                there[source] -= 1
                if there[source] == 0:
                    del there[source]
                yield moved
                late: dict[str, Any] = json.loads(json.dumps(moved))
                late["start"][job] = data["horizon"] // 2
                yield late


def overfull(
    data: dict[str, Any], start: dict[str, int], placement: dict[str, dict[str, int]], ends: Mapping[str, int | None]
) -> bool:
    """Whether a server holds more GPUs of jobs than it has, in some slot in which a job starts."""
    return any(
        sum(counts.get(server["id"], 0) for job, counts in placement.items() if start[job] <= slot <= (ends[job] or 0))
        > server["gpus"]
        for server in data["servers"]
        for slot in start.values()
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_reference_solutions_are_accepted(case: Path) -> None:
    data = json.loads(case.read_text())
    if "reference_solution" in data:
        report = check(case, data["reference_solution"])
        assert report.feasible and report.objective == data["reference"]["optimum"]
    else:
        assert data["reference"]["status"] == "infeasible"
