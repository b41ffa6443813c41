"""The report of a run as one HTML file that needs nothing else."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from schedgap.benchmarks.anytime import PRIMAL_INTEGRAL, TARGETS
from schedgap.benchmarks.figures.style import canvas, drawing_on
from schedgap.benchmarks.instances import figure_of, workload_of
from schedgap.benchmarks.judging.ledger_verdicts import COUNTEREXAMPLES, write_counterexamples
from schedgap.benchmarks.judging.statement import Statement
from schedgap.benchmarks.records import Record
from schedgap.benchmarks.report.aggregate import claims
from schedgap.benchmarks.report.analysis import Analysis, analyse, claimed_only, instance_path, instances, load
from schedgap.benchmarks.report.comparison_page import comparison_page
from schedgap.benchmarks.report.figures import (
    anytime_figure,
    places_of,
    profile_figures,
    proof_figure,
    ratio_figure,
    reaching_figure,
)
from schedgap.benchmarks.report.page import Picture, pack_figures, packed, picture, render
from schedgap.benchmarks.report.paired import paired_sheets
from schedgap.benchmarks.report.run_text import TABLE, counted, run_text
from schedgap.benchmarks.report.sheet import Marked
from schedgap.benchmarks.report.sheets import (
    CLOCK,
    answer_sheet,
    claim_sheets,
    exact_sheet,
    metrics_sheet,
    ratio_sheets,
)
from schedgap.benchmarks.report.statements import statement_figure, statement_sheet
from schedgap.benchmarks.sweep.store import FILE, Store, StoreError, reading
from schedgap.benchmarks.text import number, significant
from schedgap.catalogue.method import one_line
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Json, read_json

REPORT = "report.html"


COMPARISON = "comparison.html"


WORST_CASES = 3
"""Heuristics of a problem whose worst case is drawn."""


LARGEST_PACK = 200_000
"""Characters of compressed instances in a page, at most."""


LARGEST_CHART = 400
"""A chart of an instance with more jobs than this is left out: nobody could read it."""


def write_report(
    folder: Path,
    other: Path | None = None,
    problems: Sequence[Problem] | None = None,
    known: tuple[Analysis, Mapping[str, Json]] | None = None,
) -> Path:
    """Write the report and the table of the run in `folder`, or the comparison of two runs.

    Parameters
    ----------
    folder : a run's folder
    other : a second run; the comparison (this run beside `other`) is written into `folder`
    problems : instead of those in the table
    known : what :func:`read_run` would give, whose table is written

    Returns
    -------
    Path
        ``folder/report.html``, or ``folder/comparison.html``.

    Raises
    ------
    StoreError
        There is no run, or the file cannot be written.
    """
    analysis, meta = known or read_run(folder, problems)
    if other is not None:
        second, second_meta = read_run(other, problems)
        content = comparison_page((folder, analysis, meta), (other, second, second_meta))
        return write_text(folder / COMPARISON, content)
    if known is None:
        write_text(folder / TABLE, run_text(analysis, times=False))
    tried = [claim.guarantee.id for claim in claims(analysis.runs)]
    write_counterexamples(folder, [*tried, *(one.id for one in analysis.statements)])
    return write_text(folder / REPORT, _report_page(folder, analysis, meta))


def read_run(folder: Path, problems: Sequence[Problem] | None = None) -> tuple[Analysis, dict[str, Json]]:
    """What a run's store holds, put together, and the facts of the run."""
    with Store(folder / FILE, read_only=True) as store:
        rows, meta = list(store.rows()), store.meta()
    if "suites" not in meta:
        raise StoreError(f"{folder / FILE}: holds no run of suites")
    analysis = analyse(rows, folder, problems, meta.get("planned"))
    return with_statements(analysis, folder / FILE, meta), meta


def with_statements(analysis: Analysis, file: Path, meta: Mapping[str, Json]) -> Analysis:
    """The analysis with what its run's store holds of the papers' statements; one that was not tried is a failure.

    Raises StoreError: it is no such thing.
    """
    try:
        rows = tuple(Statement.parse(one) for one in meta.get("statements") or ())
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StoreError(f"{file}: statements: cannot be what was stored: {one_line(error)}") from error
    lost = [f"{row.id} was not tried: {row.missing}" for row in rows if row.missing]
    return replace(analysis, statements=rows, failures=(*analysis.failures, *lost))


def unfinished(folder: Path) -> str:
    """``UNFINISHED: 230 of 248 items done`` where the run in `folder` lacks rows, otherwise empty."""
    with Store(folder / FILE, read_only=True) as store:
        return Analysis(pd.DataFrame(), items=store.count, planned=store.meta().get("planned")).unfinished


def _report_page(folder: Path, analysis: Analysis, meta: Mapping[str, Any]) -> str:
    runs, sessions = analysis.runs, meta.get("sessions", [])
    moment = sessions[-1].get("ended") if sessions and not analysis.unfinished else None
    ended = "unknown" if moment is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(moment)) + " UTC"
    found = claims(runs)
    tried = {claim.guarantee.id for claim in found if claim.held + claim.refuted}
    refuted = {claim.guarantee.id for claim in found if claim.refuted}
    elsewhere = {claim.guarantee.id for claim in found if claim.ledger.verdict == "refuted"} & tried
    every = instances(runs)
    tiles = [
        (len(every), "instances"),
        (int(every.optimum.notna().sum()), "with an optimum"),
        (claimed_only(every), "optimal or infeasible by one solver alone"),
        (len(runs), "runs of methods"),
        (len(analysis.disagreements), "disagreements"),
        (len(refuted), "claims tried and refuted on these runs"),
        (len(elsewhere - refuted), "more tried here, refuted in the ledger"),
        (len(tried - refuted - elsewhere), "claims tried and not refuted"),
    ]
    sections = [_section(folder, analysis, suite, problem) for suite, problem in analysis.sections]
    linked = {f"instances/{instance_path(folder, digest).name}" for digest in every.instance_hash}
    failing = {one.id for one in analysis.statements if one.is_refuted}
    linked |= {
        f"{COUNTEREXAMPLES}/{name}.json"
        for name in elsewhere | refuted | failing
        if (folder / COUNTEREXAMPLES / f"{name}.json").is_file()
    }
    used = {f"{r.result.engine} {r.result.engine_version}" for r in runs.record if r.result.engine}
    page = render(
        "report.html",
        "schedgap report",
        suites=", ".join(meta.get("suites", [])),
        seed=meta.get("seed"),
        state=f"finished {ended}" if not analysis.unfinished else "not finished",
        unfinished=analysis.unfinished,
        headline=_headline(analysis, every),
        answer=answer_sheet(analysis),
        statements=statement_sheet(analysis.statements),
        shares=_share_picture(analysis),
        tiles=tiles,
        findings=[("Disagreements", analysis.disagreements), ("Items that failed", analysis.failures)],
        sections=sections,
        files=_packed(folder, linked),
        facts=_facts(meta),
        sessions=_sessions(sessions),
        engines=", ".join(sorted(used)),
        seeds=_ranges(sorted({record.seed for record in runs.record})),
    )
    return pack_figures(page)


def _share_picture(analysis: Analysis) -> Picture | None:
    """The first picture: every statement's instances at the share of their bound."""
    figure = statement_figure(analysis.statements)
    words = "A dot is one instance, at the share of its own proven bound that it uses; right of 1 the statement fails."
    return None if figure is None else picture(figure, words)


def _headline(analysis: Analysis, every: pd.DataFrame) -> str:
    """One sentence."""
    proven = int((every.optimum.notna() | every.infeasible).sum())
    worst = analysis.runs[
        analysis.runs.heuristic & ~analysis.runs.outside_model & (analysis.runs.ratio_to == "optimum")
    ]
    count = len(analysis.problems)
    problems = f"{count} problem{'s' if count > 1 else ''}"
    text = f"{len(every)} instances of {problems}, {proven} of them settled"
    text += f" ({claimed} by one solver alone)" if (claimed := claimed_only(every)) else ""
    nothing = worst.ratio == math.inf
    if len(worst[~nothing]):
        one = worst[~nothing].sort_values("ratio").iloc[-1]
        text += f"; furthest from an optimum here: {one.label} on {one.problem}, ratio {significant(one.ratio)}"
    if nothing.any():
        text += f"; runs that earned nothing where something could be earned: {nothing.sum()}"
    return text + (f"; {len(analysis.disagreements)} disagreements" if analysis.disagreements else "") + "."


def _packed(folder: Path, names: Iterable[str]) -> str:
    """The smallest files of a run, as many as a page has room for, compressed."""
    left = LARGEST_PACK
    kept = {}
    for name in sorted(names, key=lambda name: ((folder / name).stat().st_size, name)):
        data = read_json(folder / name)
        left -= len(packed(data))  # alone it takes more room than beside the others
        if left < 0:
            break
        kept[name] = data
    return packed(kept)


def _section(folder: Path, analysis: Analysis, suite: str, problem: Problem) -> dict[str, object]:
    """One problem's part in one suite."""
    plain = analysis.section(suite, problem)
    places = places_of(analysis.runs[analysis.runs.problem == problem.id])
    found: dict[str, object] = {
        "anchor": f"{suite}-{problem.id}",
        "suite": suite,
        "problem": problem,
        "metrics": metrics_sheet(plain, problem),
    }
    if plain.empty:
        return found
    dots = "Each dot is one instance. The thin bars span the values that the bounds take here."
    profile = "Performance profiles after Dolan and More (2002). What found no schedule is never counted as solved."
    ratios, proofs = ratio_figure(problem, plain, places), proof_figure(problem, plain, places)
    soon, reaching = anytime_figure(problem, plain, places), reaching_figure(problem, plain, places)
    targets = ", ".join(f"{target:g}" for target in TARGETS)
    pairs = f"Pairs of an instance and a ratio to the best schedule known: {targets}. The number: pairs ever reached."
    figures = (
        []
        if ratios is None
        else [picture(ratios, f"{dots} A mean is marked only for a method that solved every instance.")]
    )
    groups = [(str(name), ratio_sheets(part)) for name, part in plain.groupby("batch", sort=False)]
    words = f"Only groups of instances on which two exact methods ran; {CLOCK}."
    return found | {
        "counted": counted(plain),
        "ratios": [*ratio_sheets(plain), *paired_sheets(plain)],
        "figures": [*figures, *(picture(figure, profile) for figure in profile_figures(problem, plain, places))],
        "groups": groups if len(groups) > 1 else [],
        "claims": claim_sheets(plain),
        "worst": _worst_cases(folder, problem, plain),
        "exact": exact_sheet(plain, times=True),
        "proofs": None if proofs is None else picture(proofs, words),
        "anytime": None if soon is None else picture(soon, f"Primal integral: {PRIMAL_INTEGRAL}; {CLOCK}."),
        "reaching": None if reaching is None else picture(reaching, pairs),
        "instances": [_instance_row(folder, row) for row in instances(plain).itertuples()],
    }


def _instance_row(folder: Path, row: Any) -> list[str]:
    """Its name with a link, its group, and what is proven of it."""
    link = f"instances/{instance_path(folder, row.instance_hash).name}"
    optimum = "infeasible" if row.infeasible else number(row.optimum)
    return [Marked(row.instance or row.instance_hash[:12], "", link), row.batch, optimum, number(row.best_bound)]


def _worst_cases(folder: Path, problem: Problem, runs: pd.DataFrame) -> list[dict[str, object]]:
    """Charts of the instances on which heuristics are furthest from the optimum, beside the optimum."""
    if workload_of(problem).figure is None:
        return []
    drawable = runs[[r.result.solution is not None for r in runs.record]]
    best = drawable[drawable.status == "optimal"].drop_duplicates("one").set_index("one").record
    cases = drawable[drawable.heuristic & (drawable.ratio > 1) & (drawable.ratio_to == "optimum")]
    cases = cases[cases.one.isin(best.index)]
    sizes = {digest: _size(load(folder, problem, digest)) for digest in cases.instance_hash.unique()}
    worst = cases.groupby("label").ratio.max()
    cases = cases[cases.instance_hash.map(sizes) <= LARGEST_CHART]
    cases = cases.sort_values(["ratio", "instance_hash", "label"], ascending=[False, True, True])
    # One chart for each heuristic; where its worst instance is too large to be drawn, the next is only a bad one.
    shown: list[dict[str, object]] = []
    drawn = cases.drop_duplicates("label").head(WORST_CASES)
    for one, record, ratio in zip(drawn.one, drawn.record, drawn.ratio, strict=True):
        digest = record.instance_hash
        shown.append(
            {
                "kind": "Worst" if ratio == worst[record.label] else "Bad",
                "label": record.label,
                "hash": digest,
                "name": record.instance_name or digest[:12],
                "batch": record.batch,
                "figures": _pair(folder, problem, load(folder, problem, digest), record, best[one], ratio),
            }
        )
    return shown


def _pair(
    folder: Path, problem: Problem, instance: Instance, record: Record, best: Record, ratio: float
) -> list[Picture]:
    """A heuristic's schedule and the optimum, both over the same range of x."""
    draw = figure_of(problem)
    figures = []
    for one in (record, best):
        with reading(folder, one, "solution"):
            figures.append(draw(instance, one.result.solution))
    widest = max(figure.get_figwidth() for figure in figures)
    if any(figure.get_figwidth() < widest for figure in figures):
        with drawing_on(lambda _, height: canvas(widest, height)):
            figures = [draw(instance, one.result.solution) for one in (record, best)]
    left, right = figures
    if left.axes and right.axes:
        ends = [axes.get_xlim() for axes in (left.axes[0], right.axes[0])]
        for figure in figures:
            width, height = figure.get_size_inches()
            figure.set_size_inches(0.8 * width, 0.8 * height)  # half as wide as the page: larger letters
            figure.axes[0].set_xlim(min(low for low, _ in ends), max(high for _, high in ends))
    what, unit = problem.objective_name, problem.unit
    told = f"{record.label}: {what} {number(record.result.objective)} {unit}, ratio {significant(ratio)} to optimum"
    beside = f"optimum ({best.label}): {what} {number(best.result.objective)} {unit}"
    return [picture(left, told), picture(right, beside)]


def _size(instance: Instance) -> int:
    """How many parts the longest list of the instance has: jobs, usually."""
    sizes = (len(value) for value in vars(instance).values() if isinstance(value, tuple))
    return max(sizes, default=0)


def _facts(meta: Mapping[str, Any]) -> list[list[object]]:
    limit = meta.get("time_limit")
    return [
        ["suites", ", ".join(meta.get("suites", []))],
        ["seed", meta.get("seed")],
        ["scale", meta.get("scale")],
        ["time limit per solve", "none (the suites stop by repeatable limits)" if limit is None else f"{limit:g} s"],
        ["threads per solve", 1],
        ["times", CLOCK],
    ]


def _sessions(sessions: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[object]]] | None:
    """A column for each sitting of a run; None without any."""
    told = [_session_facts(session) for session in sessions]
    if not told:
        return None
    head = ["", *(f"session {k + 1}" for k in range(len(told)))]
    return head, [[name, *(one.get(name, "-") for one in told)] for name in told[-1]]


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
    """One sitting of a run; one that was killed has only its beginning."""
    began, ended = session["began"], session.get("ended")
    state = "killed, or still running" if ended is None else "interrupted" if session.get("interrupted") else "finished"
    return {
        "began (UTC)": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(began)),
        "took": "-" if ended is None else "clock set back" if ended < began else f"{ended - began:.0f} s",
        "ended": state,
        "items": session.get("items", "-"),
        "workers": session.get("workers", "-"),
        "processor": session.get("processor", "-"),
        "cores": session.get("cores", "-"),
        "system": f"{session.get('system', '-')} {session.get('machine', '')}",
        "Python": session.get("python", "-"),
        **{name: version or "not installed" for name, version in session["packages"].items()},
        "digest of the code": session.get("code", "-"),
    }
