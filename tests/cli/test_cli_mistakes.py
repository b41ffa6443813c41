"""Mistakes that new users made: the line says what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import Command

NODES = "NodeName=n1 Arch=x86_64 CoresPerSocket=8\n   Gres=gpu:a100:1\n   State=IDLE\n\n"
TITLES = "JobID|AllocTRES|Submit|Start|End|State"
JOB = "1|gres/gpu=1|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|COMPLETED"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine2.py").write_text("def shelves(instance, *, seed):\n    return None\n", encoding="utf-8")
    (tmp_path / "nodes.txt").write_text(NODES, encoding="utf-8")
    (tmp_path / "sacct.txt").write_text(f"{TITLES}\n{JOB}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["evaluate", "mine2.py", "--problem", "rar-ddls"],
            "scheduler mine2.py: must look like package.module:function",
        ),
        (["evaluate", "mine2.py:shelve", "--problem", "rar-ddls", "--frozen"], "did you mean 'shelves'?"),
        (["hunt", "rar-ddls"], "rar-ddls is a problem: name a heuristic of it, such as rar-ddls/sjf-bco"),
        (["verify", "theorem-5"], "did you mean '000-theorem-5'?"),
        (["library", "solve", "--problem", "rar"], "did you mean 'rar-ddls'?"),
        (["judge", "sacct.txt"], "a log of jobs that have ended is for schedgap audit"),
        (["compare", "."], "is a folder, must be a file (all files of a folder: schedgap bench ./*.json)"),
        (["audit", "nodes.txt", "sacct.txt"], "lists nodes (scontrol show nodes), no jobs: give the jobs' log first"),
        (["audit", "sacct.txt", "nodes.txt", "--methods", "fcfs"], "did you mean 'fifo'?"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[:2]),
)
def test_a_mistake_is_told_with_what_to_do(command: Command, words: list[str], told: str) -> None:
    ran = command(*words)
    assert ran.status == 2
    assert told in ran.err.splitlines()[-1]
    assert "evaluate 1/" not in ran.err


def test_a_run_that_never_began_leaves_its_place_to_the_next(command: Command, tmp_path: Path) -> None:
    assert command("generate", "rar-ddls", "--preset", "tiny", "--seed", "1", "--out", "one.json").status == 0
    assert command("bench", "one.json", "--methods", "nope", "--out", "b").status == 2
    ran = command("bench", "one.json", "--methods", "mine2.py:shelves,ff", "--out", "b", "--workers", "1")
    assert ran.status == 0, ran.err
    assert "mine2.py:shelves" in ran.out  # whose instances it takes, the file says
    assert sorted(path.name for path in tmp_path.glob("b*")) == ["b"]
