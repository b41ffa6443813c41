"""Commands killed in the middle of their writing: a repetition ends with the same tables, and nothing is left."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from schedgap.benchmarks.sweep.store import StoreError
from studies.robustness.kills import (
    COMMANDS,
    aftermath,
    difference,
    ending,
    plain,
    rows_of,
    tables_of,
)
from studies.robustness.processes import READY, Command, begin

LIMITS = ("evaluations=16", "work=0.1", "jobs=2", "servers=2")
HUNT = ("hunt", "rar-ddls/ls", "--set", *LIMITS, "--workers", "1", "--out", "FOLDER/run")
SHORT = {"certify": COMMANDS["certify"], "hunt": Command(HUNT, COMMANDS["hunt"].tables, ("--resume",))}


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("name", "kills"),
    [("certify", [(1, signal.SIGKILL), (2, signal.SIGTERM)]), ("hunt", [(2, signal.SIGINT), (9, signal.SIGKILL)])],
)
def test_a_killed_run_ends_with_the_same_tables(name: str, kills: list[tuple[int, int]], tmp_path: Path) -> None:
    """Killed at a change of one of its files, whenever that comes."""
    command = SHORT[name]
    assert begin(command, tmp_path / "whole").wait() == 0
    for at in kills:
        folder = tmp_path / f"killed-{at[0]}"
        process = begin(command, folder, at=at)
        process.wait()
        assert ending(process.returncode, (folder / "said").read_bytes(), signal.Signals(at[1]), 0) == []
        assert aftermath(command, folder, process) == []
        assert difference(tables_of(command, tmp_path / "whole"), tables_of(command, folder)) == ""


def test_what_is_measured_of_a_run_is_not_compared() -> None:
    """The peak memory of a scheduler made the cards of two runs differ."""
    first, second = ({"score": 0.5, "memory": memory, "seconds": {"mean": memory}} for memory in (1, 2))
    assert difference(plain(first), plain(second)) == ""
    for key in ("ratio", "status", "worst_ratio", "certificate", "iterations", "payload", "file", "load", "batch"):
        assert difference(plain([{key: 1}]), plain([{key: 2}])) != "", "what is found is compared"
    assert difference([{"a": [1, 2]}], [{"a": [1, 3]}]) == "/0/a/1: '2' and '3'"
    assert difference([1], [1, 2]) != ""


@pytest.mark.parametrize(
    ("status", "said", "number", "wrong"),
    [
        (0, READY, None, []),
        (4, READY, None, ["ends with 4"]),  # nobody ended it
        (130, READY, signal.SIGTERM, []),
        (-15, READY, signal.SIGTERM, ["ends with -15"]),
        (-2, b"Traceback", signal.SIGINT, []),  # Python's own start
        (130, READY + b"Traceback", signal.SIGINT, ["a traceback"]),
        (1, b"Traceback", None, ["ends with 1", "a traceback"]),
        (-9, READY, signal.SIGKILL, []),
        (130, READY, signal.SIGKILL, ["ends with 130"]),
    ],
)
def test_how_a_killed_run_may_end(status: int, said: bytes, number: signal.Signals | None, wrong: list[str]) -> None:

    told = ending(status, said, number, 0)
    assert len(told) == len(wrong) and all(part in line for part, line in zip(wrong, told, strict=True))


def test_a_store_that_was_killed_before_its_first_transaction_has_no_rows(tmp_path: Path) -> None:
    """An empty file: nothing had finished. A damaged one is still told."""
    path = tmp_path / "run.sqlite"
    path.touch()
    assert rows_of(path) == []
    path.write_bytes(b"no store" * 100)
    with pytest.raises(StoreError):
        rows_of(path)
