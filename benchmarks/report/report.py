"""The report of a run as one HTML file that needs nothing else."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schedgap.benchmarks.harness.analysis import Analysis, Entry, Solved, analyse, load, summaries
from schedgap.benchmarks.harness.store import FILE, Row, Store, StoreError
from schedgap.benchmarks.instances import figure_of
from schedgap.benchmarks.ledger.verdicts import write_counterexamples
from schedgap.benchmarks.report.figures import (
    profile_figures,
    proof_figure,
    ratio_figure,
    series_figure,
)
from schedgap.benchmarks.report.page import folded, grid, page, picture, text, tiles
from schedgap.benchmarks.report.sheets import (
    CLOCK,
    claim_sheets,
    exact_sheet,
    mean_of,
    measurement_of,
    measurement_sheet,
    metrics_sheet,
    ratio_sheets,
    series_points,
    series_sheets,
)
from schedgap.benchmarks.report.table import TABLE, counted, run_text, sections
from schedgap.benchmarks.report.text import number, significant
from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance

REPORT = "report.html"
COMPARISON = "comparison.html"
WORST_CASES = 3
LARGE = 40
"""Charts of instances with at most so many jobs are preferred: they can be read."""
LARGEST_CHART = 400
"""A chart of an instance with more jobs than this is left out: nobody could read it."""


def write_report(folder: Path, other: Path | None = None, problems: Sequence[Problem] | None = None) -> Path:
    """Write the report and the table of the run in `folder`, or the comparison of two runs.

    Parameters
    ----------
    folder : a run's folder
    other : a second run; the comparison (this run beside `other`) is written into `folder`
    problems : instead of those in the table

    Returns
    -------
    Path
        ``folder/report.html``, or ``folder/comparison.html``.

    Raises
    ------
    StoreError
        There is no run, or the file cannot be written.
    """
    analysis, meta = read_run(folder, problems)
    if other is not None:
        from schedgap.benchmarks.report.two_runs import comparison_page

        second, second_meta = read_run(other, problems)
        content = comparison_page((folder, analysis, meta), (other, second, second_meta))
        return write_text(folder / COMPARISON, content)
    write_text(folder / TABLE, run_text(analysis, times=False))
    write_counterexamples(folder, (c.guarantee.id for s in summaries(analysis.solved) for c in s.claims))
    return write_text(folder / REPORT, _report_page(folder, analysis, meta))


def read_run(folder: Path, problems: Sequence[Problem] | None = None) -> tuple[Analysis, dict[str, Any]]:
    """What a run's store holds, put together, and the facts of the run."""
    with Store(folder / FILE, read_only=True) as store:
        rows, meta = list(store.rows()), store.meta()
    if not rows and "suites" not in meta:
        raise StoreError(f"{folder / FILE}: holds no run")
    return analyse(rows, folder, problems, meta.get("planned")), meta


def unfinished(folder: Path) -> str:
    """``UNFINISHED: 230 of 248`` where the run in `folder` lacks rows, otherwise empty."""
    with Store(folder / FILE, read_only=True) as store:
        return Analysis((), (), (), (), items=store.count, planned=store.meta().get("planned")).unfinished


def _report_page(folder: Path, analysis: Analysis, meta: Mapping[str, Any]) -> str:
    body = [*_head(analysis, meta)]
    if analysis.disagreements or analysis.failures:
        body += _findings(analysis)
    for suite, problem in sections(analysis):
        body += _section(folder, analysis, suite, problem)
    body += _where(meta, analysis)
    return page("schedgap report", body)


def _head(analysis: Analysis, meta: Mapping[str, Any]) -> list[str]:
    suites = ", ".join(meta.get("suites", []))
    sessions = meta.get("sessions", [])
    moment = sessions[-1].get("ended") if sessions and not analysis.unfinished else None
    ended = "unknown" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment)) + " UTC"
    state = f"finished {ended}" if not analysis.unfinished else "not finished"
    claims = [claim for summary in summaries(analysis.solved) for claim in summary.claims]
    tried = {claim.guarantee.id for claim in claims if claim.held + claim.refuted}
    refuted = {claim.guarantee.id for claim in claims if claim.refuted}
    elsewhere = {claim.guarantee.id for claim in claims if claim.ledger.verdict == "refuted"} & tried
    proven = sum(1 for one in analysis.solved if one.agreement.optimum is not None)
    runs = sum(len(one.entries) for one in analysis.solved)
    facts = tiles(
        [
            (len(analysis.solved), "instances"),
            (proven, "with a proven optimum"),
            (runs, "runs of methods"),
            (len(analysis.disagreements), "disagreements"),
            (len(refuted), "claims refuted on these runs"),
            (len(elsewhere - refuted), "more refuted in the ledger"),
            (len(tried - refuted - elsewhere), "claims not refuted"),
        ]
    )
    links = "".join(f'<a href="#{_anchor(s, p)}">{text(s)}: {text(p.id)}</a>' for s, p in sections(analysis))
    return [
        "<h1>schedgap report</h1>",
        f'<p class="soft">suites {text(suites)}; seed {text(meta.get("seed"))}; {text(state)}</p>',
        *([f'<p class="failed">{text(analysis.unfinished)} items</p>'] if analysis.unfinished else []),
        facts,
        f'<nav>{links}<a href="#where">what ran where</a></nav>',
    ]


def _findings(analysis: Analysis) -> list[str]:
    body = []
    for title, lines in (("Disagreements", analysis.disagreements), ("Items that failed", analysis.failures)):
        if lines:
            body.append(f'<h2 class="failed">{title}</h2>')
            body.append("<ul>" + "".join(f"<li>{text(line)}</li>" for line in lines) + "</ul>")
    return body


def _anchor(suite: str, problem: Problem) -> str:
    return text(f"{suite}-{problem.id}")


def _section(folder: Path, analysis: Analysis, suite: str, problem: Problem) -> list[str]:
    """One problem's part in one suite."""
    here = [s for s in analysis.solved if (s.suite, s.problem.id) == (suite, problem.id)]
    plain = [s for s in here if not s.entries[0].row.series]
    body = [f'<h2 id="{_anchor(suite, problem)}">{text(suite)}: {text(problem.id)}, {text(problem.title)}</h2>']
    if plain:
        body.append(f'<p class="soft">{text(counted(plain))}. Source: {text(problem.source)}.</p>')
        body += _heuristics(problem, plain)
        body += [sheet.html() for sheet in claim_sheets(plain)]
        body += _worst_cases(folder, problem, plain)
        body += _exact(problem, plain)
    series = [s for s in here if s.entries[0].row.series]
    for name in dict.fromkeys(s.entries[0].row.series for s in series):
        body += _series(problem, name, [s for s in series if s.entries[0].row.series == name])
    if metrics := metrics_sheet(here).html():
        body.append(folded("other metrics", metrics))
    for row in analysis.measurements:
        if (row.suite, row.problem) == (suite, problem.id):
            body += _measurement(row, problem)
    return body


def _heuristics(problem: Problem, solved: Sequence[Solved]) -> list[str]:
    body = [sheet.html() for sheet in ratio_sheets(solved)]
    figure = ratio_figure(problem, solved)
    if figure is not None:
        words = "Each dot is one instance. The thin bars span the values that the bounds take here."
        body.append(picture(figure, f"{words} A mean is marked only for a method that solved every instance."))
    words = "Performance profiles after Dolan and More (2002). What found no schedule is never counted as solved."
    body += [picture(figure, words) for figure in profile_figures(problem, solved)]
    groups = list(dict.fromkeys(s.batch for s in solved))
    if len(groups) > 1:
        parts = []
        for group in groups:
            sheets = ratio_sheets([s for s in solved if s.batch == group])
            parts += [f"<h3>{text(group)}</h3>", *(sheet.html() for sheet in sheets)]
        body.append(folded("the same by group of instances", "".join(parts)))
    return body


def _worst_cases(folder: Path, problem: Problem, solved: Sequence[Solved]) -> list[str]:
    """Charts of the instances on which heuristics are furthest from the optimum, beside the optimum."""
    cases: list[tuple[float, Solved, Entry, Entry]] = []
    for one in solved:
        best = next((e for e in one.entries if e.row.status == "optimal" and e.row.solution is not None), None)
        if best is None:
            continue
        for entry in one.entries:
            known = entry.ratio is not None and entry.ratio > 1 and entry.row.solution is not None
            if entry.method.kind is Kind.HEURISTIC and known and entry.ratio_to == "optimum":
                cases.append((entry.ratio or 0.0, one, entry, best))
    sizes = {one.hash: _size(load(folder, problem, one.hash)) for _, one, _, _ in cases}
    cases = [case for case in cases if sizes[case[1].hash] <= LARGEST_CHART]
    cases.sort(key=lambda case: (sizes[case[1].hash] > LARGE, -case[0], case[1].hash, case[2].label))
    body: list[str] = []
    shown: set[str] = set()
    seen: set[str] = set()
    for ratio, one, entry, best in cases:
        # One chart per instance and per heuristic: the worst of each, not the same story several times.
        if len(shown) == WORST_CASES or one.hash in shown or entry.label in seen:
            continue
        shown.add(one.hash)
        seen.add(entry.label)
        link = f'<a href="instances/{one.hash[:16]}.json">{text(one.name or one.hash[:12])}</a>'
        pair = _pair(problem, load(folder, problem, one.hash), entry, best, ratio)
        body.append(f"<h3>Worst case of {text(entry.label)}: {link}</h3>{pair}")
    return body


def _pair(problem: Problem, instance: Instance, entry: Entry, best: Entry, ratio: float) -> str:
    """A heuristic's schedule beside the optimum, both over the same range of x."""
    draw = figure_of(problem)
    left, right = draw(instance, entry.row.solution), draw(instance, best.row.solution)
    if left.axes and right.axes:
        ends = [axes.get_xlim() for axes in (left.axes[0], right.axes[0])]
        for figure in (left, right):
            width, height = figure.get_size_inches()
            figure.set_size_inches(0.8 * width, 0.8 * height)  # half as wide as the page: larger letters
            figure.axes[0].set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    what, unit = problem.objective_name, problem.unit
    words = f"{entry.label}: {what} {number(entry.row.objective)} {unit}, ratio {significant(ratio)} to optimum"
    beside = f"optimum ({best.label}): {what} {number(best.row.objective)} {unit}"
    return f'<div class="pair">{picture(left, words)}{picture(right, beside)}</div>'


def _size(instance: Instance) -> int:
    """How many parts the longest list of the instance has: jobs, usually."""
    sizes = (len(value) for value in vars(instance).values() if isinstance(value, tuple))
    return max(sizes, default=0)


def _exact(problem: Problem, solved: Sequence[Solved]) -> list[str]:
    body = [exact_sheet(solved, times=True).html()]
    figure = proof_figure(problem, solved)
    if figure is not None:
        body.append(picture(figure, f"Only groups of instances on which two exact methods ran; {CLOCK}."))
    return body


def _series(problem: Problem, name: str, solved: Sequence[Solved]) -> list[str]:
    axis = solved[0].entries[0].row.axis
    figure = series_figure(name, axis, f"{mean_of(problem)} ({problem.unit})", series_points(solved))
    numbers = "".join(sheet.html() for sheet in series_sheets(solved))
    count = len({s.hash for s in solved})
    return [f"<h3>{text(name)}</h3>", picture(figure, f"{count} instances"), folded("the numbers", numbers)]


def _measurement(row: Row, problem: Problem) -> list[str]:
    if row.error or not row.payload:
        return [f"<h3>{text(row.batch)}</h3>", f'<p class="failed">{text(row.error or "no rows")}</p>']
    body = [measurement_sheet(row, problem, times=True).html()]
    part = measurement_of(row, problem)
    if part is not None and part.figure is not None:
        body.append(picture(part.figure()(row.payload), part.title))
    return body


def _where(meta: Mapping[str, Any], analysis: Analysis) -> list[str]:
    body = ['<h2 id="where">What ran where</h2>']
    limit = meta.get("time_limit")
    facts: list[list[object]] = [
        ["suites", ", ".join(meta.get("suites", []))],
        ["seed", meta.get("seed")],
        ["scale", meta.get("scale")],
        ["time limit per solve", "none (the suites stop by repeatable limits)" if limit is None else f"{limit:g} s"],
        ["threads per solve", 1],
        ["times", CLOCK],
    ]
    body.append(grid(["of the run", ""], facts))
    sessions = meta.get("sessions", [])
    told = [_session_facts(session) for session in sessions]
    if told:
        head = ["", *(f"session {k + 1}" for k in range(len(told)))]
        body.append(grid(head, [[name, *(one.get(name, "-") for one in told)] for name in told[-1]]))
    engines = sorted(
        {f"{e.row.engine} {e.row.engine_version}" for s in analysis.solved for e in s.entries if e.row.engine}
    )
    seeds = sorted({e.row.seed for s in analysis.solved for e in s.entries})
    if engines:
        body.append(f"<p>Engines as they named themselves: {text(', '.join(engines))}.</p>")
    if seeds:
        body.append(
            f"<p>Seeds of instances and of methods: {text(_ranges(seeds))}; "
            "each row of <code>run.sqlite</code> has its own.</p>"
        )
    body.append("<p>Instances: <code>instances/</code>; every row with its solution: <code>run.sqlite</code>.</p>")
    return body


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending whole numbers as ranges: ``0 to 11, 100 to 103``."""
    runs: list[list[int]] = []
    for k in numbers:
        if runs and runs[-1][1] == k - 1:
            runs[-1][1] = k
        else:
            runs.append([k, k])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in runs)


def _session_facts(session: Mapping[str, Any]) -> dict[str, object]:
    """One sitting of a run: when, with what, on what; one that was killed has only its beginning."""
    ended = session.get("ended")
    state = "killed, or still running" if ended is None else "interrupted" if session["interrupted"] else "finished"
    return {
        "began (UTC)": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(session["began"])),
        "took": "-" if ended is None else f"{ended - session['began']:.0f} s",
        "ended": state,
        "items": session.get("items", "-"),
        "workers": session["workers"],
        "processor": session["processor"],
        "cores": session["cores"],
        "system": f"{session['system']} {session['machine']}",
        "Python": session["python"],
        **{name: version or "not installed" for name, version in session["packages"].items()},
        "digest of the code": session["code"],
    }
