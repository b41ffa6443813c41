"""The tables of a run as text, 120 columns wide at most; without times they are the same on every run."""

from __future__ import annotations

import textwrap

import pandas as pd

from schedgap.benchmarks.report.analysis import Analysis, claimed_only, instances
from schedgap.benchmarks.report.faults import faults_in
from schedgap.benchmarks.report.paired import paired_sheets
from schedgap.benchmarks.report.sheets import answer_sheet, claim_sheets, exact_sheet, ratio_sheets
from schedgap.benchmarks.report.statements import statement_sheet
from schedgap.formulations.common.numbers import MINIMISE

TABLE = "table.txt"


WIDTH = 120


def run_text(analysis: Analysis, times: bool = True) -> str:
    """Every table of a run.

    Parameters
    ----------
    analysis : the run
    times : with columns of seconds and of what follows from them
    """
    parts = [_unfinished(analysis), statement_sheet(analysis.statements).text(WIDTH)]
    for suite, problem in analysis.sections:
        plain = analysis.section(suite, problem)
        what = "smaller is better" if problem.sense == MINIMISE else "larger is better"
        line = f"== {suite} == {problem.id}: {problem.title} "
        line += f"({what}; {problem.source})"
        title = line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."
        parts.append(title)
        if plain.empty:
            continue
        parts[-1] += "\n" + textwrap.fill(counted(plain), WIDTH, subsequent_indent="  ")
        sheets = [*ratio_sheets(plain), *paired_sheets(plain), *claim_sheets(plain), exact_sheet(plain, times)]
        parts += [sheet.text() for sheet in sheets]
    parts.append(_findings(analysis))
    return "\n\n".join(part for part in parts if part) + "\n"


def answer_text(analysis: Analysis, width: int = WIDTH) -> str:
    """One small table, the answer, and what went wrong."""
    findings = [textwrap.fill(line, width, subsequent_indent="  ") for line in _findings(analysis).splitlines()]
    first = statement_sheet(analysis.statements).text(width)
    parts = (
        _unfinished(analysis),
        _in_words(analysis, width),
        first,
        answer_sheet(analysis).text(width),
        "\n".join(findings),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _in_words(analysis: Analysis, width: int) -> str:
    """What the tables beneath say first: statements that fail, and instances whose optimum is known."""
    lines = []
    printed = [row for row in analysis.statements if row.kind == "printed"]
    if printed:
        tried = [row for row in printed if row.applied]
        failed = sum(row.is_refuted for row in tried)
        lines.append(
            f"printed statements of the papers: {failed} refuted on these instances, {len(tried) - failed} not refuted,"
            f" {len(printed) - len(tried)} not tried or only measured"
        )
    every = instances(analysis.runs) if len(analysis.runs) else analysis.runs
    if len(every):
        solved = every[every.optimum.notna()]
        single = claimed_only(solved)
        lines.append(
            f"{len(every)} instance{'s' * (len(every) > 1)}, {len(solved)} with a known optimum"
            + (f" ({single} by one solver alone)" if single else "")
        )
    return "\n".join(textwrap.fill(line, width, subsequent_indent="  ") for line in lines)


def _unfinished(analysis: Analysis) -> str:
    return f"{analysis.unfinished}; bench --resume goes on" if analysis.unfinished else ""


def counted(runs: pd.DataFrame) -> str:
    """How many instances of which groups, for how many the optimum is known, and how far it is proven."""
    every = instances(runs)
    proven, infeasible = int(every.optimum.notna().sum()), int(every.infeasible.sum())
    text = ", ".join(f"{count} {name}" for name, count in every.groupby("batch", sort=False).size().items())
    rest = len(every) - proven - infeasible
    parts = [f"{proven} with an optimum"]
    parts += [f"{infeasible} infeasible"] if infeasible else []
    parts += [f"{rest} with a certified bound only"] if rest else []
    line = f"{len(every)} instance{'s' * (len(every) > 1)} ({text}): {', '.join(parts)}"
    claimed = claimed_only(every)
    return f"{line}; {claimed} by one solver alone" if claimed else line


def _findings(analysis: Analysis) -> str:
    """Disagreements and failures, each on its line; their number even where there is none."""
    lines = [faults_in(analysis).to_text()] if len(analysis.runs) else []
    lines += [f"disagreements between methods, engines and checker: {len(analysis.disagreements)}"]
    lines += [f"  {line}" for line in analysis.disagreements]
    if analysis.failures:
        lines.append(f"items that failed: {len(analysis.failures)}")
        lines += [f"  {line}" for line in analysis.failures]
    return "\n".join(lines)
