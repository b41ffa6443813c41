"""Intervals of means from few draws (Student's t)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from schedgap.benchmarks.text import significant
from schedgap.formulations.common.arrays import Floats


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
