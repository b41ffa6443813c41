"""The numbers that the papers print, as they print them (misprints too); one file a paper."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Printed:
    """One printed number: what it is of, and whether it stands in a table, in the text or at an axis."""

    item: str
    series: str
    x: str
    metric: str
    value: str
    unit: str
    source: str


@cache
def printed_numbers(paper: str) -> tuple[Printed, ...]:
    """Every number of a paper's evaluation."""
    path = Path(__file__).parent / "printed" / f"{paper}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(Printed(**row) for row in csv.DictReader(file))


def printed_table(
    paper: str, item: str, metrics: Mapping[str, str], series: Mapping[str, str] | None = None, x: str | None = None
) -> dict[tuple[str, str], float]:
    """The numbers of one table by (series, metric), under the names that an item uses.

    Parameters
    ----------
    paper, item : as printed
    metrics : the metric as printed to ours; others are left out
    series : the series as printed to ours, where they differ
    x : only rows with this x
    """
    names = series or {}
    return {
        (names.get(row.series, row.series), metrics[row.metric]): float(row.value)
        for row in printed_numbers(paper)
        if row.item == item and row.metric in metrics and (x is None or row.x == x)
    }
