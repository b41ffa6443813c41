"""The judge's side of a scheduler's process: what it says of itself, writes, and when its time is over."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from schedgap.catalogue.registry import find_problem
from schedgap.tools.evaluation import contained
from schedgap.tools.evaluation.contained import Contained, Failed, Patience
from schedgap.tools.evaluation.online import ContainedPolicy

PROBLEM = find_problem("gpu-sharing")


class Clock:
    """Turned by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(contained, "clock", made)
    return made


def test_an_answer_that_is_there_counts_where_the_judge_looks_late(clock: Clock) -> None:
    """The judge had no processor, or was stopped, while the answer lay in the pipe."""
    scheduler = Contained("my.py:f", PROBLEM)
    patience = Patience(1.0)
    reading, writing = os.pipe()
    os.write(writing, b"x")
    clock.now += 100
    assert patience.excess
    scheduler._wait([reading], [], patience)
    os.read(reading, 1)
    with pytest.raises(Failed, match="no answer"):
        scheduler._wait([reading], [], patience)
    os.close(reading), os.close(writing)


def test_threads_that_end_do_not_count_against_it(clock: Clock) -> None:
    """What they waited is gone with them: the sum falls."""
    told: Iterator[tuple[float, float]] = iter([(0.0, 60.0), (0.1, 10.0)])
    patience = Patience(1.0, lambda: next(told))
    clock.now += 2.0
    assert not patience.excess


def test_its_name_does_not_tell_its_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = "Name:\tVmHWM: 1 kB\nState:\tR\nVmHWM:\t  2048 kB\n"
    monkeypatch.setattr(contained, "Path", lambda *_: SimpleNamespace(read_text=lambda: text, iterdir=lambda: ()))
    scheduler = Contained("my.py:f", PROBLEM, _folder=str(tmp_path))
    scheduler._look()
    assert scheduler.peak == 2048 * 1024


def test_a_folder_that_it_has_closed_is_too_much_and_is_thrown_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The system lets the superuser in, so the refusal is played here."""
    dark = tmp_path / "own" / "dark"
    (dark / "below").mkdir(parents=True)
    dark.chmod(stat.S_IWUSR | stat.S_IXUSR)
    plain = os.scandir

    def scandir(place: Any) -> Any:
        if Path(place) == dark:
            raise PermissionError(place)
        return plain(place)

    scheduler = Contained("my.py:f", PROBLEM, _folder=str(tmp_path / "own"))
    monkeypatch.setattr(contained.os, "scandir", scandir)
    assert scheduler._writes_too_much()
    monkeypatch.setattr(contained.shutil, "rmtree", lambda *_, **__: None)
    contained.resource_tracker.register(str(tmp_path / "own"), "folder")
    scheduler.close()
    assert not (tmp_path / "own").exists()


def test_a_policy_that_becomes_another_kind_is_refused() -> None:
    """Schedules that preempt were held against optima without, since the last start told for all."""
    policy = ContainedPolicy("my.py:P", PROBLEM, preempts=True)
    with pytest.raises(Failed, match="another `preempts`"):
        policy._imported({"preempts": False})
