"""The first table of a run: every statement of the papers, with ratio and bound of the same instance side by side."""

from __future__ import annotations

import math
import os
import signal
from pathlib import Path

import pytest

from schedgap.benchmarks.judging.statement import Point, Statement, write_csv
from schedgap.benchmarks.ledger import statements as made
from schedgap.benchmarks.ledger.statements import statements
from schedgap.benchmarks.ledger.verify import Trials
from schedgap.benchmarks.report.statements import statement_figure, statement_sheet
from schedgap.benchmarks.suites.runner import bench
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_method, find_problem
from schedgap.heuristics.common.guarantee import Verdict


def of(problem: Problem, *ids: str) -> list[Statement]:
    """These statements, tried in this process."""
    chosen = [guarantee for guarantee in problem.guarantees() if guarantee.id in ids]
    return made._tried(problem, chosen, 0)


def test_ratio_bound_and_share_are_of_the_same_instance() -> None:
    """Recomputed from the trials: the optimum, the heuristic's objective, and the bound of its guarantee."""
    problem = find_problem("rar-ddls")
    (one,) = of(problem, "000-theorem-5")
    (guarantee,) = (g for g in problem.guarantees() if g.id == one.id)
    trials = Trials(problem, find_method(problem, "sjf-bco"))
    assert one.shape == "ratio" and len(one.points) == one.applied == made.ENOUGH and one.refuted > 0
    for point in one.points:
        family, seed = point.where.split()
        case = trials.get(family, int(seed)).case
        assert case.objective is not None and case.optimum is not None and guarantee.ratio_bound is not None
        bound = guarantee.ratio_bound(case)
        assert point.ratio == case.objective / case.optimum and point.bound == bound and bound is not None
        assert point.share == pytest.approx(point.ratio / bound)
        assert (point.share > 1 + 1e-9) == (guarantee.on(case).verdict is Verdict.REFUTED)
    assert one.verdict == f"refuted on {one.refuted}" and one.is_refuted


def test_answers_that_overload_have_utility_load_and_bound() -> None:
    """Never "outside the model" alone."""
    for problem, name in (("g-vne", "004-theorem-8-first"), ("ddljs", "004-theorem-10")):
        (one,) = of(find_problem(problem), name)
        assert one.applied >= made.ENOUGH and all(p.ratio is not None and p.bound is not None for p in one.points)
        assert all(point.share is not None and point.share <= 1 for point in one.points)
    (one,) = of(find_problem("g-vne"), "004-theorem-8-first")
    assert any(point.load is not None and point.load > 1 for point in one.points)
    cells = dict(zip([c.title for c in statement_sheet([one]).columns], statement_sheet([one]).rows[0], strict=True))
    assert float(cells["load"]) > 1 and cells["bound"] == "3.000" and cells["of"] == "lp-rs-mde-printed"


def test_pairs_and_growth_are_lines_of_their_own_kind() -> None:
    (pair,) = of(find_problem("gpu-sharing"), "003-theorem-1")
    (growth,) = of(find_problem("comm-contention"), "001-adadual-unbounded")
    assert (pair.shape, pair.drawn, pair.per_sample, pair.refuted) == ("samples", made.SAMPLES, 200, 0)
    assert (growth.shape, growth.verdict) == ("measured", "measured") and "grows by" in growth.measured
    text = statement_sheet([pair, growth]).text()
    assert f"{made.SAMPLES} of {made.SAMPLES} x 200" in text and "001-adadual-unbounded: ratio at least" in text


def test_every_statement_of_the_ledger_is_a_line_and_papers_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def untried(problem: Problem, group: list[object], seed: int) -> list[Statement]:
        return [Statement(g.id, problem.id, "", g.kind, None, "", "", "ratio") for g in group]  # type: ignore[attr-defined]

    monkeypatch.setattr(made, "_tried", untried)
    problems = list(all_problems().values())
    rows = statements(problems, 0, Progress(0, None, ""), workers=1)
    assert [row.paper for row in rows] == sorted(row.paper for row in rows)
    assert {row.id for row in rows} == {g.id for problem in problems for g in problem.guarantees()}


@pytest.fixture
def rows() -> list[Statement]:
    told = {"problem": "hadar", "source": "", "method": "m", "text": "a <= b", "assumptions": "none", "shape": "ratio"}
    worst = (Point("f 0", math.inf, 2.0, math.inf), Point("f 1", 1.5, 2.0, 0.75), Point("f 2", 0.5, 3.0, 1 / 6, 1.2))
    failing = Statement("x-theorem-1", kind="printed", drawn=4, applied=3, refuted=1, points=worst, **told)
    held = Statement("x-theorem-1-repaired", kind="repaired", drawn=2, applied=2, points=worst[1:], **told)
    return [failing, held]


def test_an_unbounded_ratio_is_told_and_in_no_mean(rows: list[Statement], tmp_path: Path) -> None:
    sheet = statement_sheet(rows)
    cells = [dict(zip([column.title for column in sheet.columns], row, strict=True)) for row in sheet.rows]
    assert (cells[0]["mean"], cells[0]["worst"], cells[0]["load"], cells[0]["share"]) == (
        "1.000",
        "inf on 1",
        "1.200",
        "inf",
    )
    assert (cells[1]["statement"], cells[1]["worst"], cells[1]["bound"]) == ("theorem-1, ours", "1.500", "2.000")
    assert [row[-1].kind for row in sheet.rows] == ["refuted", "held"]  # type: ignore[attr-defined]
    assert [Statement.parse(row.to_dict()) for row in rows] == rows
    lines = write_csv(rows, tmp_path / "statements.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 + 2 and lines[0].startswith("paper,id,source,kind,problem,method,text,where,ratio,bound")


def test_the_picture_has_a_row_for_each_statement_and_a_line_at_one(rows: list[Statement]) -> None:
    figure = statement_figure(rows)
    assert figure is not None
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x theorem-1", "x theorem-1, ours"]
    assert any(list(line.get_xdata()) == [1.0, 1.0] for line in axes.lines)
    assert sum(len(dots.get_offsets()) for dots in axes.collections) == 5  # what is unbounded is an arrow at the end
    assert statement_figure([]) is None


def _dying(task: made._Task) -> list[Statement] | str:
    """In the worker: the process that has this statement is killed, every time."""
    if "003-theorem-1" in task.ids:
        os.kill(os.getpid(), signal.SIGKILL)
    return _RUN(task)


_RUN = made._run


def test_a_worker_that_dies_leaves_its_lines_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Killed both times: its lines say so in the table, the report and the csv file, and the run ends with 5."""
    monkeypatch.setattr(made, "_run", _dying)
    run = bench(["quick"], problems=["gpu-sharing"], scale=0.1, out=tmp_path / "r", workers=2)
    rows = run.analysis.statements
    lost = [row for row in rows if row.missing]
    assert {row.id for row in rows} == {g.id for g in find_problem("gpu-sharing").guarantees()}
    assert "003-theorem-1" in [row.id for row in lost] and all(row.verdict == "not tried" for row in lost)
    sentence = "003-theorem-1 was not tried: its worker process died 2 times"
    assert run.exit_status == 5 and any(line.startswith(sentence) for line in run.analysis.failures)
    assert run.report is not None
    for text in (run.answer(), run.text, run.report.read_text()):
        assert "not tried" in text and sentence in " ".join(text.split())
    (line,) = (
        x for x in write_csv(rows, tmp_path / "s.csv").read_text().splitlines() if x.startswith("003,003-theorem-1,")
    )
    assert "not tried" in line and "died 2 times" in line
    monkeypatch.setattr(made, "_run", _RUN)  # nothing is taken for finished that was not tried
    again = bench(out=tmp_path / "r", workers=2, resume=True)
    assert again.exit_status == 0 and not any(row.missing for row in again.analysis.statements)
