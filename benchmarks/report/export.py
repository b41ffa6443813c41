"""The rows of a run as CSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schedgap.benchmarks.harness.analysis import Analysis
from schedgap.benchmarks.harness.store import StoreError
from schedgap.benchmarks.report.metrics import metrics_of
from schedgap.benchmarks.report.report import read_run
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text

COLUMNS = (
    "suite", "problem", "batch", "instance", "instance_hash", "method", "settings", "seed", "status", "termination",
    "objective", "bound", "optimum", "best_bound", "ratio", "ratio_to", "outside_model", "engine", "engine_version",
    "build_seconds", "solve_seconds", "seconds", "error", "metrics",
)  # fmt: skip


def export_csv(folder: Path, path: Path, problems: Sequence[Problem] | None = None) -> Path:
    """Write every run of a method in the run at `folder` as one line of a CSV file with a header.

    Unknown numbers are empty cells; settings and metrics are JSON.

    Raises
    ------
    StoreError
        There is no run, or the file cannot be written.
    """
    analysis, _ = read_run(folder, problems)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat_rows(analysis))
    return write_text(path, buffer.getvalue())


def check_parquet() -> None:
    """Make sure that Parquet files can be written here.

    Raises
    ------
    InputError
        pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise InputError("--parquet: needs the package pyarrow, which is not installed (pip install pyarrow)") from None


def export_parquet(folder: Path, path: Path, problems: Sequence[Problem] | None = None) -> Path:
    """The same as a Parquet file.

    Raises
    ------
    InputError
        pyarrow is not installed.
    StoreError
        There is no run, or the file cannot be written.
    """
    check_parquet()
    import pyarrow
    import pyarrow.parquet

    analysis, _ = read_run(folder, problems)
    rows = flat_rows(analysis)
    table = pyarrow.table({name: [row[name] for row in rows] for name in COLUMNS})
    try:
        pyarrow.parquet.write_table(table, path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def flat_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """One flat mapping per run of a method, with what the whole run knows of its instance."""
    flat = []
    for one in analysis.solved:
        for entry in one.entries:
            row = entry.row
            flat.append(
                {
                    "suite": row.suite,
                    "problem": row.problem,
                    "batch": row.batch,
                    "instance": one.name,
                    "instance_hash": one.hash,
                    "method": row.method,
                    "settings": json.dumps(dict(row.settings), sort_keys=True),
                    "seed": row.seed,
                    "status": row.status,
                    "termination": row.termination,
                    "objective": row.objective,
                    "bound": row.bound,
                    "optimum": one.agreement.optimum,
                    "best_bound": one.agreement.bound,
                    "ratio": entry.ratio,
                    "ratio_to": entry.ratio_to,
                    "outside_model": entry.outside,
                    "engine": row.engine,
                    "engine_version": row.engine_version,
                    "build_seconds": row.build_seconds,
                    "solve_seconds": row.solve_seconds,
                    "seconds": row.seconds,
                    "error": row.error.splitlines()[0] if row.error else "",
                    "metrics": json.dumps(metrics_of(one.problem, row.info)),
                }
            )
    return flat
