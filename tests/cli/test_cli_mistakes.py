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
    text = "def no_seed(instance): ...\n\n\ndef of_rar(instance, *, seed):\n    return instance.jobs[0].gpus\n"
    (tmp_path / "mine3.py").write_text(text, encoding="utf-8")
    (tmp_path / "own.csv").write_text("job,begin,finish\n1,2,3\n", encoding="utf-8")
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
        (["evaluate", "mine2.py:shelves", "--frozen"], "--problem: is required without --on"),
        (["evaluate", "mine3.py:no_seed", "--problem", "hadar", "--frozen"], "mine3.py:no_seed: cannot be called as"),
        (["import", "csv", "own.csv", "--problem", "rar-ddls"], "; own.csv begins with 'job,begin,finish'"),
        (["audit", "own.csv", "--format", "csv"], "; own.csv begins with 'job,begin,finish'"),
        (["hunt", "rar-ddls"], "rar-ddls is a problem: name a heuristic of it, such as rar-ddls/sjf-bco"),
        (["verify", "theorem-5"], "did you mean '000-theorem-5'?"),
        (["library", "solve", "--problem", "rar"], "did you mean 'rar-ddls'?"),
        (["judge", "sacct.txt"], "a log of jobs that have ended is for schedgap audit"),
        (["compare", "."], "is a folder, must be a file (all files of a folder: schedgap bench ./*.json)"),
        (["compare", "a.json", "b.json", "--methods", "ff"], "schedgap bench A.json B.json"),
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


def test_one_mistake_on_all_instances_is_one_row(command: Command) -> None:
    ran = command("evaluate", "mine3.py:of_rar", "--problem", "hadar", "--frozen")
    assert ran.status == 4
    assert len(ran.out.splitlines()) < 10
    assert " more " in ran.out and "AttributeError: 'Job' object has no attribute 'gpus'" in ran.out


def test_instances_of_ones_own_say_the_problem_and_another_problem_is_told_by_its_file(command: Command) -> None:
    for problem in ("rar-ddls", "hadar"):
        assert command("generate", problem, "--preset", "tiny", "--seed", "1", "--out", f"{problem}.json").status == 0
    ran = command("evaluate", "mine2.py:shelves", "--on", "rar-ddls.json", "hadar.json")
    assert ran.status == 2
    assert ran.err.splitlines()[-1].endswith("hadar.json: is of hadar, not of rar-ddls")
