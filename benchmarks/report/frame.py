"""Comparisons as one tidy table, a row for each run of a method on an instance."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from schedgap.benchmarks.report.compare import Comparison
from schedgap.catalogue.method import label
from schedgap.formulations.common.instance import Json

NUMBERS = ("objective", "bound", "optimum", "best_bound", "ratio", "seconds")
COLUMNS = (
    *("problem", "instance", "instance_hash", "method", "kind", "settings", "seed", "status", "objective", "bound"),
    *("optimum", "best_bound", "ratio", "ratio_to", "outside_model", "proof", "engine", "seconds", "error"),
)


def tidy(comparisons: Iterable[Comparison]) -> pd.DataFrame:
    """One row for each run; numbers that are not known are NaN, a ratio outside the model too."""
    frame = pd.DataFrame([row for one in comparisons for row in _rows(one)], columns=list(COLUMNS))
    return frame.astype(dict.fromkeys(NUMBERS, float) | {"seed": int, "outside_model": bool})


def _rows(one: Comparison) -> Iterable[dict[str, Json]]:
    known = one.agreement
    reference, to = known.reference
    for row in one.rows:
        for record in row.records:
            result = record.result
            ratio = None if row.outside_model else one.problem.ratio(one.instance, result.objective, reference)
            yield {
                "problem": one.problem.id,
                "instance": one.instance.name,
                "instance_hash": one.instance.content_hash(),
                "method": row.method.id,
                "kind": str(row.method.kind),
                "settings": label("", record.settings).strip(),
                "seed": record.seed,
                "status": str(result.status),
                "objective": result.objective,
                "bound": result.bound,
                "optimum": known.optimum,
                "best_bound": known.bound,
                "ratio": ratio,
                "ratio_to": "" if ratio is None else to,
                "outside_model": row.outside_model,
                "proof": result.proof or "",
                "engine": result.engine or "",
                "seconds": result.seconds,
                "error": record.error,
            }
