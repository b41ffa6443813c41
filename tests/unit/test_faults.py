"""Faults of exact methods in a run: what counts, and that the instance is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from support.toy import toy

from schedgap.benchmarks.records import Record, failed
from schedgap.benchmarks.report.faults import Faults, faults_in, faults_of
from schedgap.benchmarks.report.run_text import TABLE
from schedgap.benchmarks.suites.runner import bench
from schedgap.solvers.result import Result, Status


def test_a_run_without_faults_says_so(tmp_path: Path) -> None:
    run = bench(["quick"], out=tmp_path / "r", workers=1, problems=[toy()])
    faults = faults_in(run.analysis)
    assert faults.none and faults.instances > 0 and faults.answers >= faults.instances
    assert "0 false optima, 0 false infeasible, 0 wrong bounds, 0 clashes, 0 exceptions; 0 refusals" in run.text
    assert faults.to_text() in (tmp_path / "r" / TABLE).read_text()
    assert not (tmp_path / "r" / "disagreements").exists()


@pytest.mark.parametrize(
    ("suite", "odd", "wrong"),
    [
        ("wrong", "too-good", "false_optima"),
        ("wrong", "too-good", "wrong_bounds"),
        ("impossible", "no-solution", "false_infeasible"),
        ("lie", "liar", "exits"),
    ],
)
def test_a_fault_is_counted_and_its_instance_written(suite: str, odd: str, wrong: str, tmp_path: Path) -> None:
    run = bench([suite], out=tmp_path / "r", workers=1, problems=[toy(odd)])
    faults = faults_in(run.analysis)
    assert getattr(faults, wrong) > 0 and not faults.none
    assert faults.to_text() in run.text
    files = sorted((tmp_path / "r" / "disagreements").iterdir())
    assert files
    told = json.loads(files[0].read_text())["reference_disagreement"]
    assert "exact answers to 1 instances" in told["message"] and odd in told["answers"]


def test_counts_add_up() -> None:
    one, other = Faults(1, 4, 1, 0, 2, 0, 0, 1), Faults(1, 3, 0, 1, 0, 1, 1, 1)
    assert one + other == Faults(2, 7, 1, 1, 2, 1, 1, 2)


@pytest.mark.parametrize(
    ("error", "disagreement", "kind"),
    [
        ("engine highs: row 1: coefficient 1e-20", False, "refusals"),
        ("ZeroDivisionError: x\nTraceback (most recent call last)\n", False, "exceptions"),
        ("its worker process died 2 times", False, "exceptions"),
        ("engine and checker disagree", True, "exits"),
    ],
)
def test_what_ended_in_an_error_is_one_thing(error: str, disagreement: bool, kind: str) -> None:
    record = failed(Record("cross", "toy"), error, disagreement)
    row = {"record": record, "outside_model": False, "heuristic": False}
    counted = faults_of(pd.DataFrame([row]), 1)
    kinds = {name: getattr(counted, name) for name in ("exits", "exceptions", "refusals")}
    assert kinds == dict.fromkeys(kinds, 0) | {kind: 1}
    assert counted.none == (kind == "refusals")


def test_every_answer_is_counted() -> None:
    infeasible = replace(Record("cross", "toy"), result=Result(Status.INFEASIBLE))
    found = replace(Record("cross", "toy"), result=Result(Status.OPTIMAL, 5.0, 5.0))
    better = replace(Record("cross", "toy"), result=Result(Status.FEASIBLE, 3.0))
    rows = [
        {"record": record, "outside_model": False, "heuristic": heuristic}
        for record, heuristic in (
            (infeasible, False),
            (infeasible, False),
            (found, False),
            (found, False),
            (better, True),
        )
    ]
    assert faults_of(pd.DataFrame(rows), 1) == Faults(1, 4, 2, 2, 2)
    outside = [*rows[2:4], {**rows[4], "outside_model": True}]
    assert faults_of(pd.DataFrame(outside), 1) == Faults(1, 2)
