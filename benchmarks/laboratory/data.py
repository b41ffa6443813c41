"""What the runs of an item measured, as arrays over the draws."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from schedgap.benchmarks.text import significant
from schedgap.formulations.common.instance import Json

Floats: TypeAlias = NDArray[np.float64]
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


@dataclass(frozen=True)
class Interval:
    """A mean with half the width of a 95% interval about it (Student's t), over `count` draws.

    `half` is None for a single draw: there is no interval.
    """

    mean: float
    half: float | None
    count: int

    @property
    def low(self) -> float:
        """Its lower end; the value itself for a single draw."""
        return self.mean - (self.half or 0.0)

    @property
    def high(self) -> float:
        """Its upper end; the value itself for a single draw."""
        return self.mean + (self.half or 0.0)


def interval(values: Floats) -> Interval | None:
    """The interval of the mean of what is known; None where nothing is."""
    return _about_mean(values, 0.0)


def prediction(values: Floats, averaged: int = 1) -> Interval | None:
    """Where the mean of `averaged` further draws of the same distribution lies with 95%; None where nothing is known.

    Half its width is t s sqrt(1 / m + 1 / n), of m further and n known draws (Student's t, normal draws): unlike the
    interval of the mean it does not shrink to nothing with more draws.
    """
    return _about_mean(values, 1.0 / averaged)


def _about_mean(values: Floats, further: float) -> Interval | None:
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    if len(known) == 1:
        return Interval(float(known[0]), None, 1)
    half = stdtrit(len(known) - 1, 0.975) * known.std(ddof=1) * np.sqrt(further + 1.0 / len(known))
    return Interval(float(known.mean()), float(half), len(known))


def plus_minus(found: Interval | None) -> str:
    """``12.3 ± 0.4``; a dash where nothing is known."""
    if found is None:
        return "-"
    if found.half is None:
        return significant(found.mean)
    # as many places as the half-width needs for two digits, so that both end at the same place
    places = 0 if found.half <= 0 else max(0, 1 - int(np.floor(np.log10(found.half))))
    if found.half <= 0:
        return f"{significant(found.mean)} ± 0"
    return f"{found.mean:,.{min(places, 6)}f} ± {found.half:,.{min(places, 6)}f}"


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
