"""Tables: what a reader is told, labelled and never mixed, in 120 columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.toy import generate, toy

from schedgap.benchmarks.harness.analysis import analyse, instance_path, summaries
from schedgap.benchmarks.harness.store import Row
from schedgap.benchmarks.library import Worst
from schedgap.benchmarks.report.metrics import metrics_text
from schedgap.benchmarks.report.report import heuristic_grid
from schedgap.benchmarks.report.table import heuristic_table, metrics_rows, run_text, series_points
from schedgap.benchmarks.report.text import fixed, mean_ratio, number, seconds, table
from schedgap.catalogue.problem import Problem

INSTANCES = [generate(seed) for seed in range(4)]
INFO = {"m": 2}


def _row(
    position: int, k: int, method: str, status: str, objective: float | None, bound: float | None, **more: object
) -> Row:
    instance = INSTANCES[k]
    values: dict[str, object] = {"settings": {}, "info": INFO if method == "list" else {}, "seconds": 0.5, **more}
    return Row(
        f"{position}", position, "quick", "toy", "random", instance.content_hash(), instance.name, method, seed=k,
        limits={}, versions={}, status=status, objective=objective, bound=bound, **values,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "instances").mkdir()
    for instance in INSTANCES:
        instance_path(tmp_path, instance.content_hash()).write_text(instance.to_json())
    return tmp_path


def _rows() -> list[Row]:
    """Two instances with a proven optimum of 10, one with a bound of 8, one proven infeasible."""
    return [
        _row(0, 0, "brute", "optimal", 10.0, 10.0, seconds=1.25),
        _row(1, 0, "list", "feasible", 12.0, 9.0),
        _row(2, 1, "brute", "optimal", 10.0, 10.0, seconds=0.25),
        _row(3, 1, "list", "feasible", 14.0, 9.0),
        _row(4, 2, "list", "feasible", 10.0, 8.0),
        _row(5, 3, "brute", "infeasible", None, None),
        _row(6, 3, "list", "unknown", None, None),
        _row(7, 2, "nothing", "unknown", None, 8.0),
        _row(8, 2, "outside", "feasible", 4.0, None, info={"outside_model": True}),
    ]


def _problem() -> Problem:
    return toy("nothing", "outside")


def test_ratios_to_the_optimum_and_to_the_bound_are_never_mixed(folder: Path) -> None:
    analysis = analyse(_rows(), folder, [_problem()])
    listed = next(s for s in summaries(analysis.solved) if s.label == "list")
    assert [(r.to, sorted(v for v, _ in r.values)) for r in listed.ratios] == [
        ("optimum", [1.2, 1.4]),
        ("bound", [1.25]),
    ]
    assert listed.ratios[0].mean == pytest.approx(1.3)
    assert listed.ratios[0].worst == (1.4, INSTANCES[1].content_hash())
    assert (listed.runs, listed.nothing_found) == (4, 0)  # nothing found on an infeasible instance is right
    nothing = next(s for s in summaries(analysis.solved) if s.label == "nothing")
    assert (nothing.nothing_found, nothing.ratios) == (1, ())
    assert next(s for s in summaries(analysis.solved) if s.label == "outside").ratios == ()


def test_a_ratio_to_a_bound_of_its_own_is_shown_as_such(folder: Path) -> None:
    rows = _rows()
    rows[-1] = _row(8, 2, "outside", "feasible", 4.0, None, info={"outside_model": True, "own_ratio": 1.5})
    found = next(s for s in summaries(analyse(rows, folder, [_problem()]).solved) if s.label == "outside")
    assert [(r.to, r.mean_text) for r in found.ratios] == [("own bound", "1.500")]


def test_metrics_are_means_over_the_runs_that_know_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [replace(row, info={**row.info, "jct": k, "late": None}) for k, row in enumerate(_rows())]
    problem = _problem()
    monkeypatch.setattr(type(problem), "metrics", {"jct": "JCT", "late": "lateness", "never": "never told"})
    solved = analyse(rows, folder, [problem]).solved
    head, cells = metrics_rows(solved)
    assert head == ["instances", "heuristic", "runs", "makespan", "JCT", "lateness", "never told"]
    assert ["random", "list", "3", "12", "2.667", "-", "-"] in cells
    assert metrics_rows(analyse(_rows(), folder, [_problem()]).solved) == ([], [])
    assert metrics_text(problem, {"jct": 2.5, "late": None}) == "JCT 2.5"


def test_a_mean_over_infinite_ratios_says_so() -> None:
    assert mean_ratio([1.0, 2.0]) == "1.500"
    assert mean_ratio([1.0, 2.0, float("inf")]) == "inf (1.500 without 1)"
    assert mean_ratio([float("inf")]) == "inf"
    assert mean_ratio([]) == "-"


def test_the_table_tells_ratios_bounds_and_verdicts(folder: Path) -> None:
    text = run_text(analyse(_rows(), folder, [_problem()]))
    lines = text.splitlines()
    assert (
        "4 instances (4 random): 2 with a proven optimum, 1 proven infeasible, 1 with a certified bound only" in lines
    )
    listed = next(line for line in lines if line.startswith("list"))
    expected = ["list", "optimum", "2", "1.300", "1.400", "0", "-", "1.00", "refuted (2 of 2)", "1.50", "held (2)"]
    assert listed.split() == " ".join(expected).split()
    after = lines[lines.index(listed) + 1]
    assert after.split() == ["bound", "1", "1.250", "1.250"]
    assert next(line for line in lines if line.startswith("outside")).split()[1:3] == ["outside", "model"]
    graham = next(line for line in lines if "toy-graham" in line)
    assert "makespan <= (2 - 1/m) OPT" in graham and graham.endswith("held (2)")
    assert "0.933" in graham  # 14 / (1.5 * 10)
    brute = next(line for line in lines if line.startswith("random"))
    assert brute.split() == "random brute 3 2 1 0 0 0.667 1.25".replace("0.667", "0.67").split()
    assert lines[-1] == "disagreements between methods, engines and checker: 0"
    assert max(map(len, lines)) <= 120


def test_without_times_nothing_depends_on_them(folder: Path) -> None:
    from dataclasses import replace

    rows = _rows()
    slower = [replace(row, seconds=99.0, solve_seconds=98.0, finished=0.0, worker=7) for row in rows]
    problems = [_problem()]
    assert run_text(analyse(rows, folder, problems), times=False) == run_text(
        analyse(slower, folder, problems), times=False
    )
    assert run_text(analyse(rows, folder, problems)) != run_text(analyse(slower, folder, problems))


def test_contradictions_between_rows_are_found(folder: Path) -> None:
    rows = [_row(0, 0, "brute", "optimal", 10.0, 10.0), _row(1, 0, "list", "feasible", 9.0, 8.0)]
    analysis = analyse(rows, folder, [_problem()])
    assert len(analysis.disagreements) == 1
    assert "list has 9, better than the optimum 10 that brute proves" in analysis.disagreements[0]
    assert str(instance_path(folder, INSTANCES[0].content_hash())) in analysis.disagreements[0]


def test_a_series_is_a_table_of_its_axis(folder: Path) -> None:
    rows = [
        _row(k, k % 2, "list", "feasible", 10.0 + k, 10.0, series="s", axis="machines", at=k // 2 + 1,
             settings={"machines": k // 2 + 1})
        for k in range(4)
    ]  # fmt: skip
    analysis = analyse(rows, folder, [_problem()])
    points = series_points(analysis.solved)
    assert points == {(1, "list"): (10.5, pytest.approx(1.05)), (2, "list"): (12.5, pytest.approx(1.25))}
    text = run_text(analysis)
    assert "s: mean makespan in slots (mean ratio to the best bound)" in text
    assert "12.5 (1.25)" in text


def test_text_helpers() -> None:
    assert [number(x) for x in (None, 3.0, 3.14159265, float("inf"))] == ["-", "3", "3.14159", "inf"]
    assert [fixed(x) for x in (None, 1.0, float("inf"))] == ["-", "1.000", "inf"]
    assert [seconds(x) for x in (None, 0.01234, 0.5, 12.3456, 432.1)] == ["-", "0.012", "0.50", "12.3", "432"]
    assert table(["a", "n"], [["x", "1"], ["long"]], "lr") == "a     n\n----  -\nx     1\nlong"


def test_the_worst_ratio_known_stands_beside_the_bounds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worst = Worst("toy", "list", "toy--list.json", {}, {}, 0, 1.75)
    monkeypatch.setattr("schedgap.benchmarks.report.table.known", lambda: {("toy", "list"): worst})
    solved = analyse(_rows(), folder, [_problem()]).solved
    lines = heuristic_table(solved).splitlines()
    assert "known" in lines[0]
    listed = next(line for line in lines if line.startswith("list"))
    assert listed.split()[5:8] == ["0", "1.750", "1.00"]
    assert sum("1.750" in line for line in lines) == 1
    assert "<td" in heuristic_grid(solved) and "1.750" in heuristic_grid(solved)
