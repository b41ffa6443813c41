"""A heuristic and claims of one's own, files in the working directory: bench, compare, verify, hunt."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import Command
from support.foreign import good
from support.small_suite import ROWS

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.rar_ddls import PROBLEM as RAR_DDLS

MINE = '''
"""Heuristics of one's own."""
from schedgap.heuristics.rar_ddls.baselines import ls


def shipped(instance, *, seed: int, reverse: bool = False):
    """List scheduling under another name."""
    return ls(instance)


def sometimes(instance, *, seed: int):
    if len(instance.jobs) != 3:
        raise KeyError("only three")
    return ls(instance)
'''
CLAIMS = """
from schedgap.heuristics.common.guarantee import Guarantee, at_most, not_applicable


def optimal(case):
    if case.objective is None or case.optimum is None:
        return not_applicable("needs a schedule and the optimum")
    if "kappa" in case.options:
        raise AssertionError("options of another method")
    return at_most(case.objective, case.optimum)


def twice(case):
    if case.objective is None or case.optimum is None:
        return not_applicable("needs a schedule and the optimum")
    return at_most(case.objective, 1000 * case.optimum)


CLAIMS = [
    Guarantee("mine-optimal", "rar-ddls", "mine", "makespan <= OPT", "none", optimal, "mine.py:shipped",
              hint={"families": ("single_gpu", "contended")}),
    Guarantee("mine-thousand", "rar-ddls", "mine", "makespan <= 1000 OPT", "none", twice, "mine.py:shipped"),
]
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "claims.py").write_text(CLAIMS)
    monkeypatch.chdir(tmp_path)


def test_bench_runs_it_beside_the_exact_methods(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = replace(workload_of(RAR_DDLS), suites=ROWS)
    monkeypatch.setattr(RAR_DDLS, "workload", lambda: workload)
    arguments = ("bench", "--problem", "rar-ddls", "--methods", "mine.py:shipped,ls", "--out", "run")
    ran = command(*arguments, "--workers", "1")
    assert ran.status == 0, ran.err
    assert "mine.py:shipped" in ran.out and "sjf-bco" not in ran.out
    assert "2 exact answers to 2 instances" in ran.out
    again = command(*arguments, "--workers", "1", "--resume")
    assert again.status == 0
    assert "has methods" in command("bench", "--methods", "ff", "--out", "run", "--resume").message
    assert "needs --problem" in command("bench", "--methods", "mine.py:shipped", "--out", "x").message
    assert "no problem has a method 'fff'" in command("bench", "--methods", "fff", "--out", "x").message


def test_compare_judges_a_callable_by_its_own_claims_only(command: Command) -> None:
    command("generate", "rar-ddls", "--out", "i.json")
    ran = command("compare", "i.json", "--methods", "cp,mine.py:shipped", "--set", "reverse=true")
    assert ran.status == 0 and "mine.py:shipped" in ran.out


def test_verify_and_hunt_know_the_claims_and_share_what_they_found(command: Command, tmp_path: Path) -> None:
    ran = command("verify", "--claims", "claims.py", "--instances", "6", "--json", "--out", "c")
    rows = {row["id"]: row for row in json.loads(ran.out)["guarantees"]}
    assert set(rows) == {"mine-optimal", "mine-thousand"}
    assert (rows["mine-optimal"]["verdict"], rows["mine-thousand"]["verdict"]) == ("refuted", "held")
    page = (tmp_path / "c" / "ledger.html").read_text()
    failing, best = page.index("<figcaption>mine.py:shipped: makespan "), page.index("<figcaption>optimum: makespan ")
    assert page.index("mine-optimal fails: ") < failing < best
    limits = ("--set", "jobs=3", "servers=2", "evaluations=60", "--workers", "1")
    hunted = command("hunt", "mine-optimal", "--claims", "claims.py", *limits)
    assert hunted.status == 0 and "refuted" in hunted.out
    gentle = CLAIMS.replace('("single_gpu", "contended")', '("single_gpu",)')
    (tmp_path / "gentle.py").write_text(gentle)
    ran = command("verify", "mine-optimal", "--claims", "gentle.py", "--instances", "1", "--json", "--out", "c2")
    (row,) = json.loads(ran.out)["guarantees"]
    assert row["verdict"] == "refuted"  # by what the hunt left in hunts/; the one trial of its own may hold
    assert row["held"] + row["refuted"] == 3  # the hunt's is tried as found and shrunk
    left = json.loads((tmp_path / "hunts" / "mine-optimal" / "found.json").read_text())["reference_hunt"]
    assert row["worst_ratio"] >= left["objective"] / left["optimum"]


def test_verify_counts_trials_without_a_solution_and_goes_on(command: Command, tmp_path: Path) -> None:
    (tmp_path / "partly.py").write_text(CLAIMS.replace("mine.py:shipped", "mine.py:sometimes"))
    ran = command("verify", "mine-thousand", "--claims", "partly.py", "--instances", "20", "--out", "c")
    assert ran.status == 0, ran.message
    assert "own" in ran.out and "raised KeyError: 'only three'" in ran.out
    (row,) = json.loads((tmp_path / "c" / "ledger.json").read_text())["guarantees"]
    assert row["lost"] and row["lost"] + row["held"] + row["refuted"] + row["not_applicable"] == 20
    told = f"lost ({row['lost']}): no feasible solution"
    assert told in ran.out and told in (tmp_path / "c" / "ledger.html").read_text()


def test_an_instance_on_which_it_raises_is_lost_and_the_hunt_goes_on(command: Command) -> None:
    ran = command("hunt", "rar-ddls/mine.py:sometimes", "--set", "evaluations=60", "jobs=4", "--workers", "1")
    assert ran.status == 0, ran.message
    assert "instances without a feasible solution, the first: " in ran.out and "KeyError" in ran.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "must have CLAIMS, a list of Guarantee objects"),
        ("CLAIMS = [3]\n", "CLAIMS[0]: must be a Guarantee, got int"),
        (CLAIMS.replace("case.optimum)", "None)"), "claim mine-optimal: raised TypeError"),
        ("import nothing_there\n", "cannot be imported: ModuleNotFoundError"),
        (CLAIMS.replace("mine-optimal", "000-theorem-5"), "'000-theorem-5' is already the id of a guarantee"),
        (CLAIMS.replace("mine-optimal", "mine-thousand"), "the id 'mine-thousand' is used twice"),
    ],
)
def test_bad_claims_are_refused(command: Command, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(text)
    ran = command("verify", "--claims", "bad.py", "--instances", "1")
    assert ran.status == 2 and message in ran.message


APART = """
def {name}(instance, *, seed):
    from {module} import answer
    return answer(instance)
"""
ANSWER = """
from support.foreign import good


def answer(instance):
    solution = good(instance, seed=0)
    for job in instance.jobs:
        object.__setattr__(job, "iterations", 1)
    return solution
"""


@pytest.fixture
def elsewhere(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two folders with a heuristic each that imports the other file of its folder, and a third to work in."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(APART.format(name=name, module="answers"))
        (tmp_path / name / "answers.py").write_text(ANSWER)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    command("generate", "rar-ddls", "--preset", "tiny", "--set", "ample=true", "--out", "i.json")
    return tmp_path


def test_a_file_of_another_folder_imports_what_lies_beside_it(command: Command, elsewhere: Path) -> None:
    ran = command("solve", "i.json", "--method", "../one/mine.py:one", "--json")
    assert ran.status == 0, ran.err
    assert str(elsewhere / "one") not in sys.path


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_two_modules_of_one_name_are_not_taken_for_one(command: Command, elsewhere: Path, order: list[str]) -> None:
    (elsewhere / "two" / "mine.py").write_text("from answers import answer\n" + APART.format(name="two", module="sys"))
    ran = command("compare", "i.json", "--methods", ",".join(f"../{name}/mine.py:{name}" for name in order))
    assert "have a module answers: rename one" in ran.out + ran.err


def test_what_it_does_to_the_instance_changes_no_result(command: Command, elsewhere: Path) -> None:
    """With jobs of one iteration it would have an optimum, proven, of another instance."""
    objectives = {}
    for methods_in_turn in ("../one/mine.py:one,cp", "cp"):
        ran = command("compare", "i.json", "--methods", methods_in_turn, "--json")
        assert ran.status == 0, ran.err
        objectives[methods_in_turn] = [row["objective"] for row in json.loads(ran.out)["rows"]]
    instance = RAR_DDLS.instance_class.parse(json.loads(Path("i.json").read_text()))
    own = RAR_DDLS.check(instance, good(instance, seed=0)).objective
    assert list(objectives.values()) == [[own, *objectives["cp"]], objectives["cp"]] and own != objectives["cp"][0]
