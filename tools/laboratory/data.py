"""What the runs of an item measured, as arrays over the draws."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import Json

Key: TypeAlias = tuple[str, Json, str]
"""Choice, x, series."""


@dataclass(frozen=True)
class Data:
    """An item's measurements under one choice."""

    # by (choice, x, series) the metrics of every draw, in the order of the seeds
    found: Mapping[Key, Sequence[Mapping[str, Any]]]
    seeds: Sequence[int]  # the draws
    choice: str = "main"  # the choice that is looked at

    def under(self, choice: str) -> Data:
        """The same data, looked at under another choice."""
        return replace(self, choice=choice)

    def draws(self, series: str, at: Json = None) -> Sequence[Mapping[str, Json]]:
        """The metrics of every draw of one series at one x."""
        return self.found[self.choice, at, series]

    def values(self, metric: str, series: str, at: Json = None) -> Floats:
        """A metric by draw; NaN where a run did not give it (unfinished, or outside the model)."""
        rows = self.draws(series, at)
        return np.array([np.nan if row.get(metric) is None else float(row[metric]) for row in rows])

    def pooled(self, metric: str, series: str, at: Json = None) -> Floats:
        """A metric that is a list of numbers, over all draws."""
        lists = [row[metric] for row in self.draws(series, at) if row.get(metric) is not None]
        return np.concatenate([np.atleast_1d(np.asarray(one, dtype=float)) for one in lists]) if lists else np.empty(0)


# The numbers that the papers print, as they print them (misprints too); one file a paper.


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
    paper, item : number of the paper, printed name of the item
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
