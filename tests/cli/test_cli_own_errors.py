"""What a user's own heuristic does wrong is told with their file and line; a rejected solution is kept."""

import importlib
import json
import re
from pathlib import Path

import pytest
from support.command import Command

import schedgap
from schedgap.catalogue.method import check_signature

MINE = """
from beside import deep


def attribute(instance, *, seed):
    return [job.duration for job in instance.jobs]


def below(instance, *, seed):
    return deep(instance)


def no_seed(instance):
    return None


def two(instance, config, *, seed):
    return None


def all_at_once(instance, *, seed):
    solution = dict(schedgap_solve(instance))
    solution["start"] = dict.fromkeys(solution["start"], 1)
    return solution


def schedgap_solve(instance):
    import schedgap

    return schedgap.solve(instance, "ff").solution
"""
BESIDE = """
import json


def deep(instance):
    return json.loads("{")
"""


@pytest.fixture(autouse=True)
def files(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "beside.py").write_text(BESIDE)
    (tmp_path / "broken.py").write_text("value = 1\nother = 1 / 0\n")
    monkeypatch.chdir(tmp_path)
    made = command("generate", "rar-ddls", "--preset", "small", "--set", "ample=true", "--seed", 2, "--out", "i.json")
    assert made.status == 0


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("mine.py:attribute", "raised AttributeError: 'Job' object has no attribute 'duration' (mine.py, line 6)"),
        ("mine.py:below", "property name enclosed in double quotes: line 1 column 2 (char 1) (beside.py, line 6)"),
        ("broken.py:any", "cannot import broken.py: ZeroDivisionError: division by zero (broken.py, line 2)"),
        (
            "mine.py:no_seed",
            "cannot be called as no_seed(instance, seed=0): got an unexpected keyword argument 'seed'; "
            "write it as def no_seed(instance, *, seed)",
        ),
        (
            "mine.py:two",
            "cannot be called as two(instance, seed=0): missing a required argument: 'config'; "
            "write it as def two(instance, *, seed)",
        ),
    ],
)
def test_the_line_of_the_users_own_file(command: Command, method: str, message: str) -> None:
    ran = command("solve", "i.json", "--method", method)
    assert ran.status == 2 and ran.out == "" and len(ran.err.splitlines()) == 1
    assert ran.err.startswith(f"schedgap: error: method {method}: ") and ran.err.endswith(f"{message}\n")


def test_a_traceback_where_it_is_asked_for(command: Command) -> None:
    told = command("solve", "i.json", "--method", "mine.py:below", "--traceback")
    lines = told.err.splitlines()
    assert told.status == 2 and lines[0] == "Traceback (most recent call last):"
    assert any(re.search(r'beside\.py", line 6, in deep', line) for line in lines)
    assert lines[-1].startswith("schedgap: error: method mine.py:below: raised JSONDecodeError")
    wrong = command("library", "list", "--problem", "nowhere", "--traceback")
    assert wrong.status == 2 and "Traceback" in wrong.err


def test_a_rejected_solution_is_kept_with_the_command_that_lists_its_violations(command: Command) -> None:
    for told in (
        command("solve", "i.json", "--method", "mine.py:all_at_once").err,
        command("compare", "i.json", "--methods", "ff,mine.py:all_at_once").out,
    ):
        more = re.search(r"\(and (\d+) more\); see: schedgap (check \S+ \S+)$", told, re.M)
        assert more is not None
        again = command(*more[2].split())
        assert again.status == 1
        assert len(re.findall(r"GPUs used", again.out)) == int(more[1]) + 1  # all of them
        _, instance, solution = more[2].split()
        assert json.loads(Path(instance).read_text())["problem"] == "rar-ddls"
        assert set(json.loads(Path(solution).read_text())["start"].values()) == {1}


def test_evaluate_names_the_line_keeps_what_is_rejected_and_takes_a_function(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A candidate of evaluate reads its own file alone: without the import its lines keep their numbers.
    alone = MINE.replace("from beside import deep", "deep = None")
    (tmp_path / "mine.py").write_text(alone)
    limits = ("--problem", "rar-ddls", "--on", "i.json", "--workers", "1")
    ran = command("evaluate", "mine.py:attribute", *limits)
    assert ran.status == 4 and "'duration' (mine.py, line 6)" in " ".join(ran.out.split())
    wrong = command("evaluate", "mine.py:no_seed", *limits)
    assert wrong.status == 2 and "write it as def no_seed(instance, *, seed)" in wrong.err
    assert command("evaluate", "mine.py:all_at_once", *limits, "--out", "e").status == 4
    (trial,) = json.loads((tmp_path / "e" / "card.json").read_text())["trials"]
    see = trial["message"].partition("; see: schedgap ")[2].split()
    assert command(*see).status == 1 and Path(see[1]).parent == Path("e/rejected")

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_by_name.py").write_text(alone)
    function = importlib.import_module("mine_by_name").attribute
    card = schedgap.evaluate(function, "rar-ddls", on=["i.json"], workers=1, out="f")
    assert card.to_dict()["scheduler"] == f"{tmp_path / 'mine_by_name.py'}:attribute"
    for nameless in (lambda instance, *, seed: None, 3):
        with pytest.raises(schedgap.InputError, match="no function at the top of a file, and another process must"):
            schedgap.evaluate(nameless, "rar-ddls")  # type: ignore[arg-type]


def test_compiled_code_that_tells_no_signature_is_called_all_the_same() -> None:
    check_signature(max, "method x", {"seed": 0})
