"""Figures that pages state are what their commands give now: a part of them, drawn anew in each run.

Tables of measured figures have some 1,320 (``docs/notes/reading.md`` says which). A run computes at least a tenth anew:
here those drawn (8, and 12 rows of the ledger with two or three each) and the 12 of a fit; the 46 worst ratios in
``regression/test_worst_instances.py``; the card of ``docs/online.md``, README's example and the pages on claims and
certificates in ``test_docs_examples.py`` and ``tools/claims``.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from support.command import Command

import schedgap
from schedgap.benchmarks.ledger.verify import verify
from schedgap.tools.laboratory.papers.contention import fit, read_measurements
from studies.ledger_verdicts import collect

ROOT = Path(__file__).resolve().parents[2]
DRAWN, ROWS = 8, 12
"""Figures, and rows of the ledger, that one run recomputes."""


class Figure(NamedTuple):
    """A figure of a page."""

    page: str  # path of the page
    words: str  # words of the page; {} is the figure
    value: Callable[[Command], str]  # the figure, computed anew


def _objective(problem: str, preset: str, method: str | None = None, seed: int = 0, **options: object) -> float:
    result = schedgap.solve(schedgap.generate(problem, preset, seed=seed, **options), method, confirm=False)
    assert result.objective is not None
    return result.objective


def _bound(problem: str, preset: str, method: str, seed: int = 0, **options: object) -> float:
    bound = schedgap.solve(schedgap.generate(problem, preset, seed=seed, **options), method).bound
    assert bound is not None
    return bound


def _ratio(problem: str, preset: str, method: str, seed: int, **options: object) -> float:
    return _objective(problem, preset, method, seed, **options) / _objective(problem, preset, None, seed, **options)


def _to_bound(problem: str, preset: str, method: str, **options: object) -> float:
    result = schedgap.solve(schedgap.generate(problem, preset, seed=0, **options), method)
    assert result.objective is not None and result.bound is not None
    return max(result.bound / result.objective, result.objective / result.bound)


def _case(name: str) -> float:
    result = schedgap.solve(schedgap.load(ROOT / "tests" / "data" / f"{name}.json"), confirm=False)
    assert result.objective is not None
    return result.objective


def _shared(command: Command, method: str, *settings: str) -> float:
    """The mean completion time on the jobs of the page on importing, in slots."""
    columns = ("id=JobID", "gpus=num_gpu", "duration=run_s", "arrival=submit", "servers=4")
    jobs = ROOT / "tests" / "data" / "jobs-38.csv"
    made = command("import", "csv", jobs, "--problem", "gpu-sharing", "--set", *columns, *settings)
    result = schedgap.solve(schedgap.parse(json.loads(made.out)), method)
    assert result.objective is not None
    return result.objective


README, SHARING, COMM = "README.md", "docs/gpu-sharing.md", "docs/comm-contention.md"
SMALL = {"servers": 3, "gpus": 3, "ample": True}
FIGURES = [
    Figure(README, "a schedule of {} slots", lambda _: f"{_objective('rar-ddls', 'small', None, 30, **SMALL):g}"),
    Figure(
        README,
        "eight training jobs, {} slots",
        lambda _: f"{_objective('rar-ddls', 'small', 'sjf-bco', 30, **SMALL):g}",
    ),
    Figure(
        README,
        "The heuristic is {} times worse",
        lambda _: f"{_ratio('rar-ddls', 'small', 'sjf-bco', 30, **SMALL):.2f}",
    ),
    Figure(SHARING, "seed 2: 5 for {})", lambda _: f"{_objective('gpu-sharing', 'tiny', None, 2, ample=True):g}"),
    Figure(COMM, "has optimum {},", lambda _: f"{_case('comm-contention-comm_04_event_times_not_enough'):g}"),
    *(
        Figure(COMM, f"{{}} (`{name}`)", lambda _, name=name: f"{_ratio('comm-contention', 'small', name, 3):.2f}")
        for name in ("adadual-k", "adadual", "srsf-1", "srsf-2", "srsf-3")
    ),
    Figure("docs/hadar.md", "ratio to bound ({})", lambda _: f"{_bound('hadar', 'trace', 'yarn-cs'):,.0f}"),
    *(
        Figure(
            "docs/hadar.md", f"| `{name}` | {{}} |", lambda _, name=name: f"{_objective('hadar', 'trace', name):,.1f}"
        )
        for name in ("hadar-rounds", "tiresias", "yarn-cs")
    ),
    *(
        Figure(
            "docs/hadar.md",
            f"| `{name}` | {words} | {{}} |",
            lambda _, name=name: f"{_to_bound('hadar', 'trace', name):.4g}",
        )
        for name, words in (("hadar-rounds", "6,369.5"), ("tiresias", "298.1"), ("yarn-cs", "585.7"))
    ),
    Figure(
        "solvers/exact/ddl_cluster/METHODS.md",
        "and {} by prices",
        lambda _: f"{_bound('ddl-cluster', 'paper', 'srsf-1'):.1f}",
    ),
    *(
        Figure(
            "docs/ddljs.md",
            f"| 100, sigmoid | 1.0000 | {row} |",
            lambda _, name=name: f"{_to_bound('ddljs', 'paper', name, jobs=100):.3f}",
        )
        for name, row in (("las", "{} | 1.000 | 1.410"), ("drf", "1.006 | {} | 1.410"), ("fifo", "1.006 | 1.000 | {}"))
    ),
    *(
        Figure("docs/importing.md", row, lambda command, name=name, more=more: f"{_shared(command, name, *more):.0f}")
        for row, name, more in (
            ("| none | {} | 521 |", "fifo", ()),
            ("| none | 762 | {} |", "sjf", ()),
            ("| free, `xi=1` | 762 | 521 | {} |", "sjf-bsbf", ("share=yes", "xi=1")),
            ("| `xi=1.2` | 762 | 521 | {} |", "sjf-bsbf", ("share=yes", "xi=1.2")),
            ("| `xi=1.5` | 762 | 521 | {} |", "sjf-bsbf", ("share=yes", "xi=1.5")),
        )
    ),
]


@pytest.mark.parametrize("place", range(DRAWN))
def test_drawn_figures_are_what_they_were(place: int, command: Command) -> None:
    """The seed is told where one differs."""
    seed = random.SystemRandom().randrange(10**9)
    figure = random.Random(seed).choice(FIGURES[place::DRAWN])
    text = " ".join((ROOT / figure.page).read_text(encoding="utf-8").split())
    now = figure.words.format(figure.value(command))
    assert now in text, f"{figure.page} does not say {now!r}; figure {FIGURES.index(figure)}, seed {seed}"


def test_every_figure_stands_on_its_page() -> None:
    for figure in FIGURES:
        text = " ".join((ROOT / figure.page).read_text(encoding="utf-8").split())
        before, _, after = figure.words.partition("{}")
        assert before in text and after in text, figure.words


LEDGER = (
    *("000-theorem-1", "000-lemma-2", "000-lemma-2-tightest", "000-lemma-2-repaired", "000-lemma-3"),
    *("000-lemma-3-repaired", "000-lemma-4", "000-theorem-5", "000-theorem-5-gang", "000-theorem-5-repaired"),
    *("000-theorem-5-area", "002-lemma-3", "003-theorem-1", "003-theorem-1-rule", "001-theorem-1", "001-theorem-2"),
    "001-adadual-k",
)
"""Rows that take at most 4 processor seconds each."""


@pytest.mark.parametrize("place", range(ROWS))
def test_drawn_rows_of_the_ledger_are_what_they_were(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdict, counts and the nearest case, as `verify` finds them with its own seed and number of instances."""
    monkeypatch.chdir(tmp_path)
    name = random.SystemRandom().choice(LEDGER[place::ROWS])
    (row,) = verify([name], out=tmp_path, workers=1).rows
    words = collect(tmp_path)["verdicts"][name]["words"]
    page = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line.split("|")[1]]
    *_, verdict, nearest, _ = (cell.strip().replace("**", "") for cell in line.split("|"))
    assert re.sub(r" (samples|pairs|pools).*\)", ")", verdict) == words, line
    assert float(nearest) == pytest.approx(row.tightness, rel=1e-3), line


def test_the_fits_of_the_page_on_contention() -> None:
    measured = read_measurements(ROOT / "tools" / "laboratory" / "measured" / "comm-contention.csv")
    page = (ROOT / COMM).read_text(encoding="utf-8").splitlines()
    for name, used in (("all 48", measured), ("the 24 with at most 8", [one for one in measured if one.active <= 8])):
        found = fit(used)
        sizes = [found.latency, found.seconds_per_unit, found.contention_penalty]
        ratio = found.contention_penalty / found.seconds_per_unit
        now = [*sizes, ratio, found.spread, max(map(abs, found.residuals))]
        (row,) = [line for line in page if line.startswith(f"| {name}")]
        assert [float(one) for one in re.findall(r"\d\.\d+", row)] == pytest.approx(now, rel=6e-3), row
