"""Limits on the command line, and what is kept where parts disagree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import Command

import schedgap
from schedgap.catalogue.method import Given, Kind, Method
from schedgap.catalogue.registry import find_problem, read_instance
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import Disagreement
from schedgap.solvers.result import Deadline, Result, SolveOptions


def test_solve_writes_it_to_its_file(
    command: Command, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def solve_record(*_: Any, **__: Any) -> Any:
        raise Disagreement("odd", accepted={"start": {}})

    monkeypatch.setattr("schedgap.solving.solve_record", solve_record)
    ran = command("solve", data / "rar-01-single-colocated.json", "--out", tmp_path / "x.json")
    assert ran.status == 5 and json.loads((tmp_path / "x.json").read_text()) == {"start": {}}


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "4GB", "1e9"])
def test_a_memory_limit_is_a_number_of_gigabytes(command: Command, data: Path, given: str) -> None:
    ran = command("solve", data / "rar-01-single-colocated.json", "--memory-limit", given)
    assert ran.status == 2 and "--memory-limit: must be GB" in ran.message


def test_a_model_beyond_the_memory_limit_is_not_built(command: Command, data: Path) -> None:
    ran = command("solve", data / "rar-01-single-colocated.json", "--method", "highs", "--memory-limit", "1e-6")
    # What a process has beside the model may grow by so much while the estimate is made: then it is ended.
    # Another schedule may have met the certified bound before.
    ended = "0.0 GB may be used" in ran.out
    assert ran.status == 0 and (ended or "memory budget" in ran.out)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_what_was_found_is_not_lost_on_a_full_disk(command: Command, data: Path) -> None:
    instance = data / "rar-02-colocated-optimum.json"
    for more in ((), ("--json",)):
        ran = command("solve", instance, "--out", "/dev/full", *more)
        assert ran.status == 2 and "No space left" in ran.message and "standard output instead" in ran.message
        found = json.loads(ran.out)
        assert schedgap.check(instance, found).feasible
    ran = command("certify", instance, "--out", "/dev/full")
    assert ran.status == 2 and "certified: optimal" in ran.out
    kept = Path(ran.message.partition("the certificate is in ")[2].strip())
    report = schedgap.check(instance, found, certificate=kept)
    assert report.feasible and report.details["certificate"]["optimal"]
    kept.unlink()
    kept.parent.rmdir()


def test_an_input_is_not_overwritten(command: Command, data: Path, tmp_path: Path) -> None:
    instance = tmp_path / "i.json"
    before = (data / "rar-02-colocated-optimum.json").read_bytes()
    instance.write_bytes(before)
    (tmp_path / "link.json").symlink_to(instance)
    for name in ("i.json", "link.json"):
        for arguments in (("solve",), ("certify",)):
            ran = command(*arguments, instance, "--out", tmp_path / name)
            assert ran.status == 2 and "is an input too" in ran.message
    ran = command("import", "csv", instance, "--problem", "rar-ddls", "--out", instance)
    assert ran.status == 2 and "is an input too" in ran.message
    assert instance.read_bytes() == before


@pytest.mark.parametrize("megabytes", [200, 300, 400])
def test_a_starved_process_says_what_it_lacks(data: Path, megabytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries that are not loaded for want of room tell stories of their own, in tracebacks; numba's most of all."""
    monkeypatch.setenv("SCHEDGAP_COMPILE", "always")
    line = (
        f"ulimit -v {megabytes * 1024}; exec {sys.executable} -m schedgap.cli.main solve {data / 'rar-14-mixed.json'}"
    )
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert ran.returncode == 4 and ran.stdout == ""
    limit = f"this process may have {megabytes} MB of address space (ulimit -v)"
    assert ran.stderr.splitlines()[-1] == f"schedgap: error: out of memory: {limit}"
    assert "Traceback" not in ran.stderr


def test_a_limit_too_short_for_any_schedule_says_so_before_the_work_begins(
    data: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = find_problem("gpu-sharing")
    monkeypatch.setattr(type(problem), "first_seconds", lambda *_: 1e6)
    for method in ("cp", "sjf"):
        ran = command("solve", data / "gpu-sharing-share_03.json", "--method", method, "--time-limit", 50, "--json")
        assert ran.status == 4 and json.loads(ran.out)["status"] == "unknown"
        assert "a first schedule and its check take at least 1000000 s here, 50 s are left" in ran.err
    assert command("solve", data / "gpu-sharing-share_03.json", "--method", "sjf").status == 0


def test_a_schedule_that_was_reported_is_not_lost_to_the_limit(data: Path) -> None:
    """Its check took longer than what is left after the limit; whoever reported it had asked the checker."""
    problem, instance = read_instance(data / "rar-14-mixed.json")
    best = run_method(problem, instance, "cp", SolveOptions())

    def reports(given: object, options: SolveOptions) -> Result:
        assert options.report is not None
        options.report(best.solution, best.objective, None)
        while True:  # until it is cut
            pass

    method: Method = Method("late", "reports a schedule and is cut", Kind.EXACT, Given("late", reports))
    monkeypatch = pytest.MonkeyPatch()
    with monkeypatch.context() as patched:
        patched.setattr(problem, "methods", (*problem.methods, method))
        patched.setattr("schedgap.catalogue.run.best_accepted", lambda *_: None)  # no time is left for a check
        answer = run_method(problem, instance, "late", SolveOptions(deadline=Deadline.after(0.2)))
    assert (answer.solution, answer.objective) == (best.solution, best.objective)
