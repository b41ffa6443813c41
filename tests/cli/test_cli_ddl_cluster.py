"""ddl-cluster on the command line: solve, check the explicit schedule, and what is refused."""

import json
from pathlib import Path

import pytest
from support.command import Command

CASE = Path(__file__).parents[1] / "data" / "ddl-cluster-contention-pays.json"


def test_solve_writes_a_schedule_that_check_confirms(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "solution.json"
    ran = command("solve", CASE, "--method", "cp", "--json", "--out", out)
    found = json.loads(ran.out)
    assert ran.status == 0
    assert (found["status"], found["objective"], found["gap"]) == ("optimal", pytest.approx(12.0), 0.0)
    solution = json.loads(out.read_text())
    if "schedule" in solution:
        assert solution["schedule"]["a"]["forward"] == [[0.0, 0.0]]
    assert command("check", CASE, out).status == 0
    assert command("check", CASE, "-", stdin=ran.out).status == 0


def test_job_shop_is_feasible_and_says_so(command: Command, tmp_path: Path) -> None:
    for method in ("job-shop", "highs", "cbc"):
        out = tmp_path / f"{method}.json"
        ran = command("solve", CASE, "--method", method, "--json", "--out", out)
        found = json.loads(ran.out)
        assert (ran.status, found["status"], found["bound"]) == (0, "feasible", pytest.approx(11.0)), (
            method
        )  # 9 and 13 on the link
        assert command("check", CASE, out).status == 0


def test_a_broken_schedule_fails_with_numbers(command: Command, tmp_path: Path) -> None:
    schedule = {
        "a": {"forward": [[0, 0]], "backward": [[1, 1]], "allreduce": [2]},
        "c": {"forward": [[0, 0]], "backward": [[2.5, 3]], "allreduce": [8]},
    }
    placement = {"a": [["s0", 0], ["s1", 0]], "c": [["s0", 1], ["s1", 1]]}
    out = tmp_path / "broken.json"
    out.write_text(json.dumps({"placement": placement, "schedule": schedule, "finish": {"a": 13.5, "c": 10.5}}))
    ran = command("check", CASE, out)
    assert ran.status == 1
    assert "order: job c, iteration 0, backward of worker 0: starts at 2.5, its forward ends at 3" in ran.out
    out.write_text(json.dumps({"placement": placement, "policy": "srsf-9", "finish": {"a": 13.5, "c": 10.5}}))
    ran = command("check", CASE, out)
    assert ran.status == 2
    assert "policy: must be 'srsf-1', 'srsf-2', 'srsf-3', 'srsf-4' or 'ada-srsf'" in ran.message


def test_free_placement_is_refused_by_what_needs_it_given(command: Command, tmp_path: Path) -> None:
    data = json.loads(CASE.read_text())
    del data["jobs"][0]["placement"]
    path = tmp_path / "free.json"
    path.write_text(json.dumps(data))
    ran = command("solve", path, "--method", "cp")
    assert ran.status == 2
    assert "job a has no placement" in ran.message


def test_a_policy_keeps_the_time_limit(command: Command, tmp_path: Path) -> None:
    data = json.loads(CASE.read_text())
    for job in data["jobs"]:
        job["iterations"] = 5 * 10**5  # few enough to be audited in full
    path = tmp_path / "long.json"
    path.write_text(json.dumps(data))
    ran = command("solve", path, "--method", "srsf-2", "--time-limit", "1", "--json")
    found = json.loads(ran.out)
    assert (ran.status, found["status"]) == (4, "unknown")
    assert "the time limit is too short: the run and its check take" in ran.err
