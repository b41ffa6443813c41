"""Limits on the command line, and what is kept where parts disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import Command

import schedgap
from schedgap.formulations.common.errors import Disagreement


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
