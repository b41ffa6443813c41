"""docs/guarantees.md tells what the ledger is: every row, every counterexample that it names, the worst ratios kept."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from schedgap.benchmarks.ledger.counterexamples import repeat_command
from schedgap.benchmarks.report.compare import compare
from schedgap.benchmarks.worst import worst_instances
from schedgap.catalogue.registry import all_problems, load_instance
from schedgap.heuristics.common.guarantee import Case, Verdict
from schedgap.solvers.result import SolveOptions

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
FILES = sorted((ROOT / "docs" / "counterexamples").glob("*.json"))
GUARANTEES = {g.id: g for problem in all_problems().values() for g in problem.guarantees()}


def _rows() -> dict[str, str]:
    """Every id in the first column of a table, with its cell of verdicts."""
    rows = {}
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        for name in re.findall(r"`(\d{3}-[a-z0-9-]+)`", cells[1] if len(cells) > 3 else ""):
            rows[name] = cells[3]
    return rows


def test_every_row_of_the_ledger_is_on_the_page() -> None:
    assert set(_rows()) == set(GUARANTEES)


def test_what_the_page_calls_refuted_has_its_file_and_nothing_else_has() -> None:
    refuted = {name for name, words in _rows().items() if words.startswith("**refuted**")}
    assert refuted == {path.stem for path in FILES}
    for name, words in _rows().items():
        measured = GUARANTEES[name].measure is not None
        assert words.startswith("measured" if measured else ("**refuted**" if name in refuted else "held")), name
        assert f"({name}.json)" in PAGE.replace("counterexamples/", "") or name not in refuted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_counterexamples_still_refute(path: Path) -> None:
    guarantee = GUARANTEES[path.stem]
    problem, instance = load_instance(path)
    run = json.loads(path.read_text())["reference_counterexample"]
    if guarantee.method is None:
        case = Case(instance, None, {}, run["optimum"], run["bound"], run["options"])
        assert guarantee.on(case).verdict is Verdict.REFUTED
        return
    assert run["repeat"] == repeat_command(path.name, instance, guarantee, run["options"], run["seed"])
    methods = [problem.default_method().id, guarantee.method]
    found = compare(problem, instance, methods, SolveOptions(threads=1, seed=run["seed"]), run["options"])
    judged = {j.guarantee.id: j.verdict for row in found.rows for j in row.judgements}
    assert judged[guarantee.id] is Verdict.REFUTED


def test_the_worst_ratios_on_the_page_are_those_kept() -> None:
    on_page = {
        (line.split("|")[1].strip(), name): shown
        for line in PAGE.partition("| worst ratio known |")[2].partition("\n\n")[0].splitlines()[2:]
        for name, shown in re.findall(r"`([^`]+)` ([\d.,]*\d|inf)", line)
    }
    kept = {
        key: "inf" if math.isinf(one.ratio) else format(one.ratio, ".2f" if one.ratio < 1e4 else ",.0f")
        for key, one in worst_instances().items()
    }
    assert on_page == kept
