"""``schedgap reproduce``: the page, the same numbers for the same seeds, going on after kill -9, bad input."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import Command
from support.experiments import PAPER, run
from support.work import wait_until

from schedgap.benchmarks.sweep.store import FILE, Store
from schedgap.tools.laboratory.page import MARK, VERDICTS, page_name
from schedgap.tools.laboratory.papers import NAMES, find_paper
from schedgap.tools.laboratory.running import draws_of, reproduce
from studies.publish import DATA, PAGE, publish

ROOT = Path(__file__).resolve().parents[3]


def _finished(folder: Path) -> dict[str, float]:
    """When each run was written, by key."""
    with Store(folder / FILE, read_only=True) as store:
        return {row.key: row.finished for row in store.rows()}


def test_page_verdicts_and_figures(tmp_path: Path) -> None:
    found = run(tmp_path / "a")
    assert found.page is not None and not found.errors
    text = found.page.read_text()
    for piece in (
        "## Bars",
        "![Lines](toy-lines.png)",
        "[4.000]",
        "No colour is measured.",
        "| Figure 9 | a drawing |",
    ):
        assert piece in text
    assert "Draws: 10" in text, "the trend is clear after the first draws"
    assert (tmp_path / "a" / "toy-bars.png").read_bytes().startswith(b"\x89PNG")
    verdicts = json.loads((tmp_path / "a" / VERDICTS).read_text())
    assert [claim["verdict"] for claim in verdicts["claims"]][1:] == ["reproduces", "cannot be decided"]


def test_published_pages_keep_what_is_written_below_and_tell_what_is_missing(tmp_path: Path) -> None:
    docs, part = tmp_path / "docs", tmp_path / "part"
    docs.mkdir()
    reproduce(PAPER, items=["bars"], seeds=2, out=part, workers=1)
    (docs / page_name(PAPER)).write_text(f"old\n{MARK}\nkept\n")
    table = publish(docs, [part]).read_text()
    assert "are declared and not measured yet: Lines." in table
    page = (docs / page_name(PAPER)).read_text()
    assert "LPT is not worse." in page and "![Bars](toy-bars.png)" in page and page.endswith(f"{MARK}\nkept\n")
    assert (docs / "toy-bars.png").is_file()
    assert publish(docs, []).read_text() == table, "verdicts of papers that are not run again are kept"
    (docs / PAGE).write_text(f"old\n{MARK}\nkept, too\n")
    assert publish(docs, []).read_text() == f"{table}\n{MARK}\nkept, too\n"


def test_a_run_of_some_items_keeps_what_an_earlier_one_found_of_the_others(tmp_path: Path) -> None:
    docs, bars, rest = tmp_path / "docs", tmp_path / "bars", tmp_path / "rest"
    docs.mkdir()
    reproduce(PAPER, items=["bars"], seeds=2, out=bars, workers=1)
    publish(docs, [bars])
    page = docs / page_name(PAPER)
    bars_rows = [line for line in page.read_text().splitlines() if line.startswith("| ") and "(ours)" not in line]
    page.write_text(f"{page.read_text()}\n{MARK}\nkept\n")
    reproduce(PAPER, items=["lines"], seeds=3, out=rest, workers=1)
    table = publish(docs, [rest]).read_text()
    assert "not measured yet" not in table and set(bars_rows) <= set(page.read_text().splitlines())
    assert "![Bars](toy-bars.png)" in page.read_text() and "![Lines](toy-lines.png)" in page.read_text()
    assert page.read_text().endswith(f"{MARK}\nkept\n")
    (data,) = json.loads((docs / DATA).read_text())
    whole = reproduce(PAPER, seeds=2, out=tmp_path / "whole", workers=1)
    verdicts = json.loads((whole.folder / VERDICTS).read_text())
    assert [claim["claim"] for claim in data["claims"]] == [claim["claim"] for claim in verdicts["claims"]]
    assert data["missing"] == [] and set(data["processor"]) == {"bars", "lines"}


def test_old_verdicts_and_items_that_stopped_early_are_told(tmp_path: Path) -> None:
    docs, part = tmp_path / "docs", tmp_path / "part"
    docs.mkdir()
    paper = find_paper("000")
    reproduce(paper, items=["figure-7"], seeds=2, out=part, workers=1)
    table = " ".join(publish(docs, [part]).read_text().split())
    page = docs / page_name(paper)
    (row,) = (line for line in page.read_text().splitlines() if "falls with every step of lambda" in line)
    assert "Figure 7: lambda (2 of 40)" in table and "| 2 |" in row and "before their claims" not in table
    data = json.loads((docs / DATA).read_text())
    data[0]["claims"][0]["choices"] = ["another"]
    (docs / DATA).write_text(json.dumps(data))
    assert "The verdicts of 000 are of a run before their claims" in " ".join(publish(docs, []).read_text().split())


def test_what_stands_in_and_processor_time_are_told(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    found = reproduce(PAPER, items=["lines"], seeds=2, out=tmp_path / "run", workers=1)
    table = publish(docs, [tmp_path / "run"]).read_text()
    assert "| [999 toy](results-toy.md) |" in table
    assert "| Lines | Their cluster is not here. |" in (docs / page_name(PAPER)).read_text()
    (seconds,) = json.loads((tmp_path / "run" / VERDICTS).read_text())["processor"].values()
    assert found.findings[0].processor > 0 and seconds == round(found.findings[0].processor, 1)
    data = json.loads((docs / DATA).read_text())
    data[0]["processor"] = {"bars": 90.0, "lines": 600.0}
    (docs / DATA).write_text(json.dumps(data))
    (row,) = (line for line in publish(docs, []).read_text().splitlines() if line.startswith("| [999 toy]"))
    assert row.endswith("| 12 |"), "690 s"


def test_it_goes_on_after_kill_9(tmp_path: Path) -> None:
    folder, seeds = tmp_path / "killed", 6
    script = ROOT / "tests" / "support" / "experiments.py"
    process = subprocess.Popen([sys.executable, str(script), str(folder), str(seeds)], start_new_session=True)
    try:
        wait_until(lambda: (folder / FILE).is_file() and _rows(folder) >= 4)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    before = _finished(folder)
    assert 0 < len(before) < 8 * seeds
    found = run(folder, seeds, resume=True)
    after = _finished(folder)
    assert len(after) == 8 * seeds
    assert {key: after[key] for key in before} == before, "what had finished is not repeated"
    whole = run(tmp_path / "whole", seeds)
    assert found.page is not None and whole.page is not None
    assert found.page.read_text() == whole.page.read_text(), "the same numbers for the same seeds"
    figures = ("toy-bars.png", "toy-lines.png")
    assert all((folder / name).read_bytes() == (tmp_path / "whole" / name).read_bytes() for name in figures)


def _rows(folder: Path) -> int:
    try:
        with sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True) as db:
            return int(db.execute("SELECT count(*) FROM rows").fetchone()[0])
    except sqlite3.OperationalError:  # the table is not there yet
        return 0


def test_draws() -> None:
    item = PAPER.items[0]
    assert draws_of(item, None, 1.0, more=False) == 3
    assert draws_of(item, None, 1.0, more=True) == 4
    assert draws_of(item, 10, 0.5, more=True) == 5
    assert draws_of(item, 1, 0.1, more=False) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("999",), "unknown paper '999', one of: 000 (sjf-bco)"),
        (("000", "--item", "figure-9"), "paper 000 has no item 'figure-9', one of: figure-4"),
        (("000", "--seeds", "0"), "must be a whole number from 1"),
        (("000", "--scale", "0"), "must be a positive number"),
    ],
)
def test_bad_input_is_one_line(command: Command, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ran = command("reproduce", *arguments, "--out", tmp_path / "x")
    assert ran.status == 2 and message in ran.message


def test_two_items_from_the_command_line(command: Command, tmp_path: Path) -> None:
    ran = command(
        "reproduce", "sjf-bco", "--item", "figure-7", "--seeds", "2", "--out", tmp_path / "x", "--workers", "1"
    )
    assert ran.status == 0, ran.err
    page = tmp_path / "x" / page_name(find_paper("000"))
    assert f"page: {page}" in ran.out and "Only 1 of its 4 items ran." in " ".join(page.read_text().split())


def test_list_names_every_item(command: Command) -> None:
    out = command("list", "experiments").out
    for number in NAMES:
        for item in find_paper(number).items:
            assert item.id in out


ITEMS = {
    "000": {"figure-4", "figure-5", "figure-6", "figure-7"},
    "001": {"section-1", "figure-2", "table-iv", "figure-5", "table-v"},
    "002": {
        *("figure-1", "figure-3", "figure-4", "figure-5", "figure-6", "table-iv", "hadare-nodes"),
        *(f"{name}-{place}" for name in ("figures-8-to-10", "figure-11", "figure-12") for place in ("aws", "testbed")),
    },
    "003": {
        *("figure-2", "figure-3", "table-ii", "figure-5", "table-iii", "table-iv", "figure-6a", "figure-6b"),
        *("pollux-workloads", "decision-time"),
    },
    "004": {"figure-4", "figure-5", "figure-6", "figure-6-fixed", "figure-7", "figure-7-slots"},
}
"""What has to be there: every table and figure of the evaluations that is an experiment."""
ELSEWHERE = {
    "000": set(),
    "001": {"section-1", "figure-2"},
    "002": {"figure-6", "table-iv"} | {name for name in ITEMS["002"] if name.endswith(("-aws", "-testbed"))},
    "003": {"figure-2", "figure-3", "table-ii"},
    "004": set(),
}
"""Measured in the paper on machines that are not here: these say so, and what stands in."""


@pytest.mark.parametrize("number", list(NAMES))
def test_no_item_is_missing(number: str) -> None:
    items = find_paper(number).items
    assert {item.id for item in items} == ITEMS[number]
    assert {item.id for item in items if item.instead} == ELSEWHERE[number]
    for item in items:
        assert item.claims and item.plots, item.id
        labels = {series.label for series in item.series}
        assert len(labels) == len(item.series)
        for claim in item.claims:
            assert claim.section and bool(claim.parts) != bool(claim.cannot), f"{item.id}: {claim.text}"
