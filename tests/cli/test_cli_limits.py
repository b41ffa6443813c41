"""Limits on the command line, and what is kept where parts disagree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import Command

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
    assert ran.status == 0 and "too large to build" in ran.out and "0.0 GB may be used" in ran.out
