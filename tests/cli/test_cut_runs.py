"""A heuristic that a limit ends before its algorithm does: every command says so, and no mean and no worst has it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.command import Command

import schedgap
from schedgap.benchmarks.hunt.target import Judge, find_target
from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.sweep.store import FILE, Store
from schedgap.catalogue.g_vne import PROBLEM
from schedgap.catalogue.workload import Batch
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers.result import Status
from schedgap.tools.evaluation import run as runs
from schedgap.tools.evaluation.card import Card

AT_ONCE = "1e-6"
CUT = {"stopped": "time limit"}


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    path = tmp_path / "i.json"
    path.write_text(schedgap.generate("g-vne", "tiny", seed=1).to_json())
    return path


def test_solve(command: Command, instance: Path) -> None:
    ran = command("solve", instance, "--method", "greedy", "--time-limit", AT_ONCE)
    assert ran.status == 0 and "  reason     cut (time limit)" in ran.out
    said = json.loads(command("solve", instance, "--method", "greedy", "--time-limit", AT_ONCE, "--json").out)
    assert said["cut"] is True
    assert "cut" not in json.loads(command("solve", instance, "--method", "greedy", "--json").out)


@pytest.mark.parametrize("repeat", ["1", "3"])
def test_compare(command: Command, instance: Path, repeat: str) -> None:
    limited = ("compare", instance, "--methods", "greedy", "--time-limit", AT_ONCE, "--repeat", repeat)
    ran = command(*limited)
    row = next(line for line in ran.out.splitlines() if line.startswith("greedy "))
    assert "cut" in row and "greedy: cut (time limit)" in ran.out
    (said,) = json.loads(command(*limited, "--json").out)["rows"]
    assert said["cut"] == said["runs"] == len(said["objectives"])
    assert said["objective"] is said["ratio"] is said["worst_ratio"] is None
    (whole,) = json.loads(command("compare", instance, "--methods", "greedy", "--json").out)["rows"]
    assert whole["cut"] == 0 and whole["objective"] is not None


def test_bench_and_report(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store has one cut run of two: it counts as nothing found."""
    batch = Batch("quick", "tiny", 2, exact=("highs",), heuristics=("greedy",))
    workload = replace(workload_of(PROBLEM), suites=(batch,))
    monkeypatch.setattr(PROBLEM, "workload", lambda: workload)
    monkeypatch.setattr("schedgap.benchmarks.suites.plan.all_problems", lambda: {"g-vne": PROBLEM})
    monkeypatch.setattr(PROBLEM, "guarantees", lambda: ())  # neither statements of the paper are asked for
    monkeypatch.setattr("schedgap.benchmarks.report.page.as_svg", lambda *_: "<svg/>")  # nor figures
    folder = tmp_path / "run"
    assert command("bench", "--out", folder, "--workers", "1").status == 0
    with Store(folder / FILE) as store:
        rows = list(store.rows())
        row = next(row for row in rows if row.method == "greedy")
        spoilt = replace(row.result, status=Status.FEASIBLE, objective=1e-9, info={**row.result.info, **CUT})
        store.keep({other.key for other in rows} - {row.key})
        store.put(replace(row, result=spoilt))
    told = "greedy: cut by a limit on 1 of them"
    ran = command("bench", "--out", folder, "--resume", "--tables")
    solved, none, mean, worst = next(line.split()[1:5] for line in ran.out.splitlines() if line.startswith("greedy "))
    assert (solved, none) == ("1", "1") and told in ran.out
    assert float(mean) == float(worst) < 3
    assert command("report", folder).status == 0
    assert told in (folder / "report.html").read_text()


def test_evaluate(monkeypatch: pytest.MonkeyPatch, instance: Path) -> None:
    """Whoever was cut is neither better nor worse than the scheduler that is judged."""
    given = schedgap.load(instance)
    kept = PROBLEM.heuristics()
    greedy = next(method for method in kept if method.id == "greedy")

    def cut(*_: object, **__: object) -> HeuristicRun:
        return HeuristicRun({"rings": {}}, dict(CUT))

    cut_short = replace(greedy, load=lambda: {"greedy": cut})
    monkeypatch.setattr(PROBLEM, "heuristics", lambda: (cut_short, *(m for m in kept if m.id != "greedy")))
    question = runs._Question(PROBLEM, "tiny", 1, given)
    reference = runs._reference(question)
    assert not reference.disagreement and reference.cut == ("greedy",) and "greedy" not in reference.others
    known = runs.agree(reference.answers, PROBLEM.sense)
    trial = runs.Trial("tiny", 1, given, 1.0, "", "", 0.1, known, reference.others, reference.cut)
    card = Card("mine.py:f", PROBLEM, 0, [trial])
    assert "cut by a limit on 1 instances, left out there: greedy" in card.to_text()
    assert "greedy" not in {row["method"] for row in card.against()}


def test_hunt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that the end of the hunt cut is no worst instance."""
    data = schedgap.generate("g-vne", "tiny", seed=1).to_dict()
    judge = Judge(find_target("g-vne/greedy"), 10.0, tmp_path)
    whole = judge._run(schedgap.load(data), {})
    assert whole is not None and judge(data, {}) is not None
    cut = replace(whole, status=Status.FEASIBLE, objective=1e-9, info={**whole.info, **CUT})
    monkeypatch.setattr(judge, "_run", lambda *_: cut)
    assert judge(data, {}) is None and not judge.defects
