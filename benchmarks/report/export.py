"""The records of a run as CSV or Parquet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from schedgap.benchmarks.judging.statement import write_csv
from schedgap.benchmarks.records import metrics_of
from schedgap.benchmarks.report.analysis import COLUMNS, Analysis
from schedgap.benchmarks.report.figures import times_to_ratios
from schedgap.benchmarks.report.paired import COMPARISON_COLUMNS, comparisons, latex, markdown, paired_sheets
from schedgap.benchmarks.report.run_page import read_run
from schedgap.benchmarks.report.sheets import answer_sheet
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_bytes, write_text
from schedgap.solvers.result import Result

WRITERS = {"latex": latex, "markdown": markdown}
"""What writes a sheet in each form of tables."""


def export(form: str, folder: Path, path: Path, problems: Sequence[Problem] | None = None) -> Path:
    """Write every run of a method in the run at `folder` as a row of a csv or parquet file.

    What is unknown is empty; settings and metrics are JSON. Beside a csv file ``statements.csv`` has one line for each
    statement of the papers and each instance that it was tried on, and ``comparisons.csv`` and ``comparisons.json`` one
    for each heuristic: its mean, intervals and paired tests; ``times_to_ratios.csv``, where methods have curves on the
    same instances, when each came to a ratio. The forms latex and markdown write the tables of
    heuristics in place of the rows.

    Raises
    ------
    StoreError
        There is no run.
    InputError
        The file cannot be written, or pyarrow is not installed.
    """
    check_form(form)
    analysis = read_run(folder, problems)[0]
    compared = [analysis.section(suite, problem) for suite, problem in analysis.sections]
    if form in WRITERS:
        sheets = [
            answer_sheet(analysis),
            *(sheet for runs in compared if not runs.empty for sheet in paired_sheets(runs)),
        ]
        return write_text(path, "\n".join(WRITERS[form](sheet) for sheet in sheets if sheet.rows))
    if form == "csv":
        tables = [comparisons(runs) for runs in compared if not runs.empty]
        tables = [table for table in tables if not table.empty]
        frame = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(COMPARISON_COLUMNS))
        text = frame.map(_as_text).to_csv(index=False, lineterminator="\n")
        write_text(path.with_name("comparisons.csv"), text)
        write_text(path.with_name("comparisons.json"), frame.to_json(orient="records", indent=1) + "\n")
        parts = zip(analysis.sections, compared, strict=True)
        reached = [times_to_ratios(problem, runs) for (_, problem), runs in parts if not runs.empty]
        times = pd.concat(reached, ignore_index=True) if reached else pd.DataFrame()
        if not times.empty:
            text = times.map(_as_text).to_csv(index=False, lineterminator="\n")
            write_text(path.with_name("times_to_ratios.csv"), text)
    rows = exported(analysis)
    if analysis.statements and form == "csv":
        write_csv(analysis.statements, path.with_name("statements.csv"))
    if form == "parquet":
        return write_bytes(path, rows.to_parquet(index=False))
    return write_text(path, rows.map(_as_text).to_csv(index=False, lineterminator="\n"))


def check_form(form: str) -> None:
    """Make sure that such files can be written here.

    Raises InputError: pyarrow is not installed.
    """
    try:
        if form == "parquet":
            import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise InputError("--parquet: needs the package pyarrow, which is not installed (pip install pyarrow)") from None


def _as_text(cell: object) -> object:
    """Text that would be a formula begins with an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def exported(analysis: Analysis) -> pd.DataFrame:
    """One flat row a run of a method, with what the whole run knows of its instance."""
    problems = {problem.id: problem for problem in analysis.problems}
    runs = analysis.runs
    return runs.assign(
        settings=[json.dumps(dict(r.settings), sort_keys=True) for r in runs.record],
        error=[r.error.splitlines()[0] if r.error else "" for r in runs.record],
        metrics=[json.dumps(_metrics(problems[r.problem], r.result)) for r in runs.record],
    )[list(COLUMNS)]


def _metrics(problem: Problem, result: Result) -> dict[str, float | None]:
    """None of a run that found nothing: there a policy tells what it tried, which no checker has accepted."""
    return {} if result.objective is None else metrics_of(problem, result.info)
