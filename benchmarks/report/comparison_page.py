"""Two runs beside each other: the same instances, what changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from schedgap.benchmarks.report.analysis import Analysis
from schedgap.benchmarks.report.page import render
from schedgap.benchmarks.text import number, seconds, significant
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import agrees, better

Side = tuple[Path, Analysis, Mapping[str, Json]]


Grid = tuple[list[str], list[list[object]], str]
"""Titles, rows and alignments of a table."""


KEY = ["suite", "problem", "batch", "instance_hash", "label"]


SHOWN = 200
"""At most this many changed rows are listed one by one."""


def comparison_page(first: Side, second: Side) -> str:
    """An HTML page about what differs between two runs, on the work that both did."""
    (folder_a, a, meta_a), (folder_b, b, meta_b) = first, second
    left, right = (side.runs.drop_duplicates(KEY, keep="last") for side in (a, b))
    both = left.merge(right, on=KEY, suffixes=("_a", "_b"))
    sense = {problem.id: problem.sense for problem in (*a.problems, *b.problems)}
    pairs = list(zip(both.objective_a, both.objective_b, both.problem, strict=True))
    both["a_better"] = [_beats(x, y, sense[problem]) for x, y, problem in pairs]
    both["b_better"] = [_beats(y, x, sense[problem]) for x, y, problem in pairs]
    same = [agrees(x, y) if x == x and y == y else (x == x) == (y == y) for x, y, _ in pairs]
    changed = both[(both.status_a != both.status_b) | ~np.array(same, dtype=bool)]
    return render(
        "comparison.html",
        "schedgap comparison",
        a=folder_a,
        b=folder_b,
        unfinished=[("A", a.unfinished), ("B", b.unfinished)],
        tiles=[
            (len(both), "runs of methods in both"),
            (len(changed), "with another outcome"),
            (len(left) - len(both), "only in A"),
            (len(right) - len(both), "only in B"),
        ],
        methods=_methods(both),
        changes=_changes(changed.head(SHOWN)),
        more=len(changed) - SHOWN,
        settings=_settings(meta_a, meta_b),
    )


def _beats(mine: float, theirs: float, sense: int) -> bool:
    """Whether the first is a better objective, or one where the other is unknown (NaN)."""
    return mine == mine and (theirs != theirs or better(mine, theirs, sense))


def _methods(both: pd.DataFrame) -> Grid:
    rows: list[list[object]] = []
    for (problem, method), part in both.groupby(["problem", "label"], sort=False):
        heuristic = part.heuristic_a.iloc[0]
        finite = part[np.isfinite(part.ratio_a) & np.isfinite(part.ratio_b)] if heuristic else part.iloc[:0]
        cells: list[object] = [problem, method, len(part)]
        for side in "ab":
            status, took = part[f"status_{side}"], part[f"seconds_{side}"]
            cells += [
                significant(finite[f"ratio_{side}"].mean()),
                significant(part[f"ratio_{side}"].max() if heuristic else None),
                int(part[f"objective_{side}"].notna().sum()),
                int(status.isin(["optimal", "infeasible"]).sum()),
                seconds(took.mean()),
            ]
        rows.append([*cells, int(part.a_better.sum()), int(part.b_better.sum())])
    sides = [f"{what} {side}" for side in "AB" for what in ("mean ratio", "worst", "solved", "proven", "seconds")]
    return ["problem", "method", "runs", *sides, "A better", "B better"], rows, "ll" + "r" * 13


def _changes(changed: pd.DataFrame) -> Grid:
    rows: list[list[object]] = []
    for a, b in zip(changed.record_a, changed.record_b, strict=True):
        cells: list[object] = [a.problem, a.instance_name or a.instance_hash[:12], a.label]
        for record in (a, b):
            cells += [str(record.result.status), number(record.result.objective)]
        rows.append(cells)
    head = ["problem", "instance", "method", "status A", "objective A", "status B", "objective B"]
    return head, rows, "llllrlr"


def _settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> Grid:
    facts_a, facts_b = _facts_of_both(a), _facts_of_both(b)
    names = list(dict.fromkeys([*facts_a, *facts_b]))
    return ["", "A", "B"], [[name, facts_a.get(name, "-"), facts_b.get(name, "-")] for name in names], ""


def _facts_of_both(meta: Mapping[str, Any]) -> dict[str, str]:
    facts = {name: str(meta.get(name)) for name in ("suites", "seed", "scale", "time_limit")}
    sessions = meta.get("sessions", [])
    if sessions:
        last = sessions[-1]
        facts |= {name: str(last.get(name)) for name in ("python", "system", "processor", "cores", "workers", "code")}
        facts |= {name: str(version) for name, version in last["packages"].items()}
    return facts
