"""Tables: what a reader is told, labelled and never mixed, in 120 columns."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.toy import generate, toy

from schedgap.benchmarks.judging.ledger_verdicts import LedgerVerdict
from schedgap.benchmarks.records import FILES, Record, metrics_text
from schedgap.benchmarks.report.aggregate import WITHIN, blocks, claims, headline, survivors
from schedgap.benchmarks.report.analysis import analyse, instance_path
from schedgap.benchmarks.report.export import exported
from schedgap.benchmarks.report.figures import _line_colour, places_of, profile_figures, ratio_figure
from schedgap.benchmarks.report.run_text import answer_text, run_text
from schedgap.benchmarks.report.sheet import Column, Marked, Sheet
from schedgap.benchmarks.report.sheets import answer_sheet, claim_sheets, metrics_sheet, ratio_sheets
from schedgap.benchmarks.text import fixed, nearest, number, percent, refuting, seconds, significant, table
from schedgap.benchmarks.worst import Worst
from schedgap.catalogue.problem import Problem
from schedgap.solvers.result import Result, Status

INSTANCES = [generate(seed) for seed in range(4)]
INFO = {"m": 2}


def _row(
    position: int, k: int, method: str, status: str, objective: float | None, bound: float | None, **more: Any
) -> Record:
    instance, info = INSTANCES[k], more.pop("info", INFO if method == "list" else {})
    values = {"settings": {}, "seconds": 0.5, **more}
    return Record(
        "toy", method, seed=k, instance_name=instance.name, instance_hash=instance.content_hash(), suite="quick",
        batch="random", position=position, key=f"{position}",
        result=Result(Status(status), objective, bound, info=info), **values,
    )  # fmt: skip


def _with(record: Record, **more: Any) -> Record:
    return replace(record, result=replace(record.result, **more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "instances").mkdir()
    for instance in INSTANCES:
        instance_path(tmp_path, instance.content_hash()).write_text(instance.to_json())
    return tmp_path


def _rows() -> list[Record]:
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


def test_the_first_words_count_an_infeasible_instance_as_no_optimum(folder: Path) -> None:
    said = answer_text(analyse(_rows(), folder, [toy("nothing", "outside")])).splitlines()
    assert said[0] == "4 instances, 2 with a known optimum (2 by one solver alone)"


def _problem() -> Problem:
    return toy("nothing", "outside")


def test_ratios_to_the_optimum_and_to_the_bound_are_never_mixed(folder: Path) -> None:
    runs = analyse(_rows(), folder, [_problem()]).runs
    listed = runs[runs.label == "list"]
    assert sorted(listed.ratio[listed.ratio_to == "optimum"]) == [1.2, 1.4]
    assert list(listed.ratio[listed.ratio_to == "bound"]) == [1.25]
    to_optimum, to_bound = blocks(runs)
    assert to_optimum.table["mean"].iloc[0] == pytest.approx(1.3) and to_optimum.table.worst.iloc[0] == 1.4
    # nothing found on an infeasible instance is right
    assert (list(to_optimum.table.label), list(to_optimum.table.none)) == (["list"], [0])
    assert (list(to_bound.table.label), list(to_bound.table.none)) == (["list", "nothing"], [0, 1])
    assert runs[runs.label == "outside"].ratio.isna().all()


def test_a_ratio_to_a_bound_of_its_own_is_shown_as_such(folder: Path) -> None:
    rows = _rows()
    rows[-1] = _row(8, 2, "outside", "feasible", 4.0, None, info={"outside_model": True, "own_ratio": 1.5})
    found = blocks(analyse(rows, folder, [_problem()]).runs)[-1]
    assert (found.to, found.labels, found.table.worst.iloc[0]) == ("own bound", ("outside",), 1.5)


def test_no_metric_is_a_mean_over_the_runs_that_know_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [{"jct": k, "late": None, "some": None if k == 1 else 1} for k in range(len(_rows()))]
    rows = [_with(r, info={**r.result.info, **own}) for r, own in zip(_rows(), told, strict=True)]
    problem = _problem()
    monkeypatch.setattr(problem, "metrics", {"jct": "JCT", "late": "lateness", "never": "never told", "some": "part"})
    found = metrics_sheet(analyse(rows, folder, [problem]).runs, problem)
    titles = [column.title for column in found.columns]
    assert titles == ["instances", "heuristic", "runs", "makespan", "JCT", "lateness", "never told", "part"]
    # Only the instance on which everything that ever finds a schedule has found one.
    assert found.title == "Means over the 3 of 4 instances that every heuristic solved"
    assert [
        "random",
        "list",
        "3",
        "12.00",
        "2.667",
        "-",
        "-",
        "-",
    ] in found.rows  # no mean of what one run does not know
    assert "lateness" not in found.text()
    assert metrics_sheet(analyse(_rows(), folder, [_problem()]).runs, _problem()).text() == ""
    assert metrics_text(problem, {"jct": 2.5, "late": None}) == "JCT 2.5"
    cells = exported(analyse(rows, folder, [problem])).set_index("status").metrics
    assert set(cells["unknown"]) == {"{}"}  # what found nothing has no metrics, whatever it told
    assert json.loads(cells["feasible"].iloc[0]) == {"JCT": 1.0, "lateness": None, "part": None}


def test_columns_say_what_they_refer_to_where_the_best_schedule_is_not_the_bound(folder: Path) -> None:
    """A share of 100% within 1 stood beside a mean of 1.592: one was of the best schedule, one of the bound."""
    rows = [row for row in _compared((12.0, 11.0), (10.0, 12.0), (12.0, 12.0)) if row.method != "brute"]
    text = ratio_sheets(analyse(rows, folder, [toy()]).runs)[0].text()
    head = " ".join(text.splitlines()[1].split())
    assert "mean to bound worst to bound <= 1 of best <= 1.1 of best" in head
    assert text.splitlines()[3].split()[4:6] == ["67%", "100%"]


@pytest.mark.parametrize(
    ("share", "shown"), [(0, "0%"), (1e-9, "1%"), (2 / 3, "67%"), (0.999, "99%"), (1, "100%"), (0.5, "50%")]
)
def test_all_and_none_are_told_from_nearly(share: float, shown: str) -> None:
    assert percent(share) == shown


def _compared(*found: tuple[float | None, float | None]) -> list[Record]:
    """Instances with the optimum 10; on each the objectives of `list` and of `shuffled`, None for nothing found."""
    rows = []
    for k, pair in enumerate(found):
        rows.append(_row(3 * k, k, "brute", "optimal", 10.0, 10.0))
        for j, (method, value) in enumerate(zip(("list", "shuffled"), pair, strict=True)):
            rows.append(_row(3 * k + 1 + j, k, method, "unknown" if value is None else "feasible", value, 8.0))
    return rows


def test_means_are_over_what_all_solved_and_a_failure_is_within_no_factor(folder: Path) -> None:
    """`shuffled` finds nothing where it would be bad: that does not make it look better than `list`."""
    runs = analyse(_compared((11.0, 10.0), (20.0, None), (12.0, 12.0), (10.0, None)), folder, [toy()]).runs
    (block,) = blocks(runs)
    assert block.labels == ("list", "shuffled") and len(block.common) == 2
    assert list(block.table["mean"]) == [pytest.approx(1.15), pytest.approx(1.1)]
    assert list(block.table.worst) == [2.0, 1.2]
    assert block.table[list(WITHIN)].to_numpy().tolist() == [[0.25, 0.5, 0.75, 1.0], [0.25, 0.25, 0.5, 0.5]]
    assert (block.to_best <= 1e300).mean().tolist() == [1.0, 0.5]
    text = ratio_sheets(runs)[0].text()
    head, listed_line, shuffled_line = (text.splitlines()[k].split() for k in (1, 3, 4))
    assert head == ["heuristic", "solved", "none", "mean", "worst", "<=", "1", "<=", "1.1", "<=", "1.5", "<=", "2"]
    assert listed_line == ["list", "4", "0", "1.150", "2.000", "25%", "50%", "75%", "100%"]
    assert shuffled_line == ["shuffled", "2", "2", "1.100", "1.200", "25%", "25%", "50%", "50%"]
    assert "over the 2 of 4 instances on which all that solved any have a finite ratio" in " ".join(text.split())
    assert list(survivors(runs).instance.unique()) == ["toy-0", "toy-2"]


def test_a_method_has_one_colour_in_a_report_and_its_long_name_is_not_cut_off(folder: Path) -> None:
    rows = _compared((11.0, 10.0), (20.0, 12.0))
    own = "mine_is_a_file_of_heuristics.py:longest_first"
    runs = analyse([replace(r, method=own) if r.method == "list" else r for r in rows], folder, [toy()]).runs
    places = places_of(runs)
    assert places == {own: 0, "shuffled": 1, "brute": 2}
    alone = runs[runs.label != own]  # of a suite in which it does not run
    for part in (runs, alone):
        figure = ratio_figure(toy(), part, places)
        assert figure is not None
        drawn = {line.get_markerfacecolor() for line in figure.axes[0].lines if line.get_marker() == "o"} - {"white"}
        names = [name for name in places if name in set(part.label) - {"brute"}]
        assert drawn == {_line_colour(places[name]) for name in names}
    (figure,) = profile_figures(toy(), runs, places)
    (axes,) = figure.axes
    assert [line.get_color() for line in axes.lines] == [_line_colour(0), _line_colour(1)]
    legend = axes.get_legend()
    assert legend is not None and own in legend.get_texts()[0].get_text().replace("\n", "")
    assert legend.get_window_extent().x1 <= figure.bbox.x1 and axes.get_position().width > 0.4


def test_an_infinite_ratio_has_a_column_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = toy()
    monkeypatch.setattr(type(problem), "sense", -1)
    rows = _compared((8.0, 4.0), (5.0, 0.0))
    runs = analyse([_with(row, bound=10.0) for row in rows], folder, [problem]).runs
    figure = ratio_figure(problem, runs)
    assert figure is not None
    dots, arrows = (
        [x for line in figure.axes[0].lines if line.get_marker() == m for x in line.get_xdata()] for m in "o>"
    )
    assert sorted(dots) == [1.25, 2.0, 2.5] and len(arrows) == 1 and arrows[0] > 2.5
    assert "earned nothing" in [text.get_text() for text in figure.legends[0].get_texts()]
    lines = [line.split() for line in ratio_sheets(runs)[0].text().splitlines()]
    assert lines[1][:5] == ["heuristic", "solved", "zero", "mean", "worst"]
    assert lines[3][:5] == ["list", "2", "0", "1.250", "2.000"]
    assert lines[4][:5] == ["shuffled", "2", "1", "2.500", "zero"]
    _claims_of_both(monkeypatch)
    analysis = analyse([_with(row, bound=10.0) for row in rows], folder, [problem])
    assert [row[1:] for row in answer_sheet(analysis).rows] == [
        ["list", "1.250 on 1", "1.625", "2.000", "2 of 2"],
        ["shuffled", "2.500 on 1", "unbounded", "unbounded on 1", "2 of 2"],
    ]


def _claims_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    both = (replace(g, id=f"{g.id}-{m}", method=m) for g in toy().guarantees() for m in ("list", "shuffled"))
    monkeypatch.setattr("support.toy.GUARANTEES", tuple(both))


def test_the_answer_has_the_means_of_the_detailed_tables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`shuffled` finds nothing where it would be bad: in the answer too that does not make it look better."""
    _claims_of_both(monkeypatch)
    rows = _compared((11.0, 10.0), (20.0, None), (12.0, 12.0), (10.0, None))
    sheet = answer_sheet(analyse(rows, folder, [toy()]))
    assert [row[1:] for row in sheet.rows] == [
        ["list", "1.150 on 2", "1.150", "2.000", "4 of 4"],
        ["shuffled", "1.100 on 2", "1.100", "1.200", "2 of 4"],
    ]
    assert sheet.text().splitlines()[1].split() == ["heuristic", "mean", "median", "worst", "solved"]


def test_the_answer_names_the_instances_of_each_comparison(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`list` ran with two settings on instances of their own, the second time without a known optimum."""
    _claims_of_both(monkeypatch)
    rows = _compared((11.0, 10.0), (20.0, 10.0))
    other = [
        _row(9, 2, "list", "feasible", 12.0, 8.0, settings={"x": 1}),
        _row(10, 2, "shuffled", "unknown", None, 8.0),
    ]
    rows += [replace(row, batch="hard, as printed") for row in other]
    lines = answer_sheet(analyse(rows, folder, [toy()])).text().splitlines()
    assert lines[3] == "toy: random (ratio to optimum)" and lines[4].startswith("  list  ")
    assert [line.split()[0] for line in lines[4:6]] == ["list", "shuffled"]
    assert lines[6] == "toy: hard, as printed (ratio to bound)" and lines[7].startswith("  list x=1  ")


def test_a_table_becomes_narrower_before_it_goes_on_below() -> None:
    columns = (Column("group", right=False, heading=True), Column("heuristic", right=False))
    columns += (Column("proven bound"), Column("paper's claim", right=False))
    sheet = Sheet("T", columns, [["g", "lp-rs-mde ring_sizes=free", "1.500 to 13.88", "refuted (67 of 129)"]])
    assert sheet.text(50).splitlines() == [
        "T",
        "heuristic              proven  paper's",
        "                        bound  claim",
        "-------------------  --------  -----------",
        "g",
        "  lp-rs-mde          1.500 to  refuted",
        "    ring_sizes=free     13.88  (67 of 129)",
    ]
    assert "heuristic\n" not in sheet.text(70) and sheet.text(30).count("heuristic") == 2


def test_the_headline_is_no_lemma_and_a_claim_that_applies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graham, false, never = (
        next(g for g in toy().guarantees() if g.id == f"toy-{n}") for n in ("graham", "false", "never")
    )
    assert graham.ratio_bound is not None
    tight = replace(false, ratio_bound=graham.ratio_bound, lemma=True)
    out = replace(never, ratio_bound=graham.ratio_bound)
    graham = replace(graham, kind="printed")
    for rows in ((tight, out, graham), (graham, out, tight)):
        monkeypatch.setattr("support.toy.GUARANTEES", rows)
        analysis = analyse(_rows(), folder, [_problem()])
        head = headline(claims(analysis.runs), "list", "printed")
        assert head is not None and head.guarantee.id == "toy-graham"


def test_where_the_optimum_is_unknown_shares_are_of_the_best_found(folder: Path) -> None:
    rows = [_row(0, 0, "list", "feasible", 12.0, 6.0), _row(1, 0, "shuffled", "feasible", 15.0, 6.0)]
    (block,) = blocks(analyse(rows, folder, [toy()]).runs)
    assert block.to == "bound" and block.to_best.to_numpy().tolist() == [[1.0, 1.25]]


def test_methods_that_ran_on_different_instances_are_not_compared(folder: Path) -> None:
    rows = [*_compared((12.0, 11.0))[:3], _row(3, 1, "brute", "optimal", 10.0, 10.0)]
    rows.append(_row(4, 1, "list", "feasible", 19.0, 8.0))
    found = blocks(analyse(rows, folder, [toy()]).runs)
    assert [list(zip(block.labels, block.table.worst, strict=True)) for block in found] == [
        [("list", 1.2), ("shuffled", 1.1)],
        [("list", 1.9)],
    ]


def test_the_table_tells_ratios_bounds_and_verdicts(folder: Path) -> None:
    text = run_text(analyse(_rows(), folder, [_problem()]))
    lines = text.splitlines()
    assert (
        "4 instances (4 random): 2 with an optimum, 1 infeasible, 1 with a certified bound only; "
        "3 by one solver alone" in lines
    )
    assert "Ratio to the proven optimum, 2 instances" in lines
    listed = next(line for line in lines if line.startswith("list"))
    assert listed.split() == ["list", "2", "1.300", "1.400", "0%", "0%", "100%", "100%"]
    bound = lines.index("Ratio to a certified bound, the optimum being unknown, 1 instance")
    assert lines[bound + 3].split()[:4] == ["list", "1", "0", "1.250"]
    assert lines[bound + 4].split()[:4] == ["nothing", "0", "1", "-"]
    assert "  Outside the model, so without a ratio: outside." in lines
    false, graham = (next(line for line in lines if name in line) for name in ("toy-false", "toy-graham"))
    assert false.split()[:4] == ["list", "toy-false", "1.000", "1.400"]
    assert false.split("  ")[-1] == graham.split("  ")[-1] == "not in the ledger"
    assert "  refuted (2 of 2)  " in false and "  not refuted here (2)  " in graham
    assert "0.9333" in graham  # 14 / (1.5 * 10)
    assert "  Not applicable: toy-never to list (on 4 runs): never applies." in lines
    assert any(line.split()[:2] == ["toy-graham", "makespan"] for line in lines)
    brute = next(line for line in lines if line.startswith("random"))
    assert brute.split() == ["random", "brute", "3", "2", "1", "3", "0.67", "1.25"]  # claimed: 3
    assert "times hold no compilation" in " ".join(text.split())
    assert lines[-1] == "disagreements between methods, engines and checker: 0"
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("shipped", "here", "beside"),
    [
        (LedgerVerdict("refuted", "refuted (67 of 154)", {"name": "x"}), "", "refuted"),
        (LedgerVerdict("held", "held (200)"), "held", "held"),
        (LedgerVerdict("not applicable", "not applicable"), "", ""),
    ],
)
def test_what_the_ledger_refutes_is_never_green(
    folder: Path, monkeypatch: pytest.MonkeyPatch, shipped: LedgerVerdict, here: str, beside: str
) -> None:
    monkeypatch.setattr("schedgap.benchmarks.report.aggregate.ledger_verdict", lambda name: shipped)
    sheet = claim_sheets(analyse(_rows(), folder, [_problem()]).runs)[0]
    cells = {row[1]: row[-2:] for row in sheet.rows}
    runs, ledger = cells["toy-graham"]
    assert isinstance(runs, Marked) and isinstance(ledger, Marked)
    assert (runs, runs.kind) == ("not refuted here (2)", here)
    assert (ledger, ledger.kind) == (shipped.words, beside)
    assert ledger.link == ("counterexamples/toy-graham.json" if shipped.counterexample else "")
    false = cells["toy-false"]
    assert [cell.kind for cell in false] == ["refuted", "refuted" if beside == "refuted" else ""]
    assert ("held" in {cell.kind for row in sheet.rows for cell in row[-2:]}) is (beside == "held")  # type: ignore[attr-defined]


def test_empty_columns_are_left_out_and_the_others_explained() -> None:
    columns = (Column("name", right=False), Column("none", "never", count=True), Column("x", "a number"), Column("y"))
    shown = Sheet("title", columns, [["a", "0", "1", "-"], ["b", "0", "2", ""]], ("a note",)).text()
    assert shown == "title\nname  x\n----  -\na     1\nb     2\n  x: a number.\n  a note"
    many = Sheet("t", tuple(Column(f"some long title {k}") for k in range(10)), [["1"] * 10]).text().splitlines()
    assert [line.split()[0] for line in many[1:4]] == ["some", "title", "---------"] and max(map(len, many)) <= 120
    wide = Sheet("t", columns[:1], [["a heuristic with many settings=1 and=2"]]).text().splitlines()
    assert wide[3:] == ["a heuristic with many", "  settings=1 and=2"]


def test_without_times_nothing_depends_on_them(folder: Path) -> None:
    rows = _rows()
    slower = [replace(_with(row, solve_seconds=98.0), seconds=99.0, finished=0.0, worker=7) for row in rows]
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


def test_text_helpers() -> None:
    assert [number(x) for x in (None, 3.0, 3.14159265, float("inf"))] == ["-", "3", "3.14159", "inf"]
    assert [fixed(x) for x in (None, 1.0, float("inf"))] == ["-", "1.000", "inf"]
    assert [significant(x) for x in (1, 9.99996, 348288.3, 0.00123, 1e-9, 0, None)] == [
        *("1.000", "10.00", "348,288", "0.001230", "1.000e-09", "0", "-")
    ]
    assert [seconds(x) for x in (None, 0.01234, 0.5, 12.3456, 432.1)] == ["-", "0.012", "0.50", "12.3", "432"]
    assert table(["a", "n"], [["x", "1"], ["long"]], "lr") == "a     n\n----  -\nx     1\nlong"


def test_the_worst_ratio_known_stands_beside_the_bounds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worst = Worst("toy", "list", "toy--list.json", {}, {}, 0, 1.75)
    monkeypatch.setattr("schedgap.benchmarks.report.sheets.worst_instances", lambda: {("toy", "list"): worst})
    runs = analyse(_rows(), folder, [_problem()]).runs
    lines = ratio_sheets(runs)[0].text().splitlines()
    assert lines[1].split()[-1] == "known"
    assert [line.split()[-1] for line in lines if line.startswith("list")] == ["1.750"]
    assert "1.750" not in ratio_sheets(runs)[1].text()


@pytest.mark.parametrize(
    ("left", "right", "shown", "quotient"),
    [
        (18, 6, "18.00 > 6.000", "3.000"),
        (4 / 9, 4 / 9, "0.4444 = 0.4444, where less is claimed", "1, not < 1"),
        (1.0000001, 1, "1.0000001 > 1.0000000", "1.0000001"),
        (1, 0, "1.000 > 0", "inf"),
    ],
)
def test_a_refutation_is_seen_in_its_numbers(left: float, right: float, shown: str, quotient: str) -> None:
    assert refuting(left, right) == shown
    assert nearest(left / right if right else math.inf, True) == quotient
    assert nearest(1.0, False) == "1.000" and nearest(None, True) == "-"


def test_the_answer_names_every_method_the_papers_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left out for want of a claim, and one outside the model without a bound has a line that says so."""
    problem = toy()
    sources = {"shuffled": "paper 9, section 1", "list": "ours, after paper 9"}
    chosen = tuple(replace(m, source=sources.get(m.id, m.source)) for m in problem.methods)
    problem.methods = chosen
    monkeypatch.setattr("support.toy.GUARANTEES", ())
    rows = _compared((11.0, 10.0), (20.0, 10.0), (12.0, 10.0))
    sheet = answer_sheet(analyse(rows, folder, [problem]))
    assert [row[1] for row in sheet.rows] == ["shuffled", "list"]
    assert len(sheet.page()[0]) <= 6


def test_files_of_a_user_are_one_group_with_an_interval(folder: Path) -> None:
    """Mean 1.2 of 1.1, 1.2, 1.3: t(2) s / sqrt(3) = 4.303 x 0.1 / 1.732."""
    rows = _compared((11.0, 10.0), (12.0, 10.0), (13.0, 10.0))
    named = [replace(row, suite=FILES, batch=f"mine-{row.instance_hash[:4]}") for row in rows]
    sheet = answer_sheet(analyse(named, folder, [toy()]))
    assert [row[1:] for row in sheet.rows] == [
        ["list", "1.200 ± 0.2484", "1.200", "1.300", "3 of 3"],
        ["shuffled", "1.000 ± 0", "1.000", "1.000", "3 of 3"],
    ]
