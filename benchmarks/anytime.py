"""How soon a method had good schedules: its anytime curve, and the primal integral that sums it up.

T. Berthold, *Measuring the impact of primal heuristics*, Operations Research Letters 41, 2013.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from schedgap.catalogue.method import Kind, Method
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import agrees, better, ratio
from schedgap.solvers.result import Listener, Result, clock

PRIMAL_INTEGRAL = "the gap to the best schedule known, 1 before the first, summed over the longest run's seconds"
"""In a table's words."""

TARGETS = (2.0, 1.5, 1.2, 1.1, 1.05, 1.02, 1.01, 1.0)
"""Ratios to the best schedule known whose times of first arrival are compared."""

Curve = Sequence[Sequence[float | None]]
"""Rows of seconds, the best objective from then on, and the bound that was known; the last row is the run's end."""


class Recorder:
    """A listener that keeps when each better objective came, and hands on what it hears.

    Its clock begins when it is made and holds no compilation.
    """

    def __init__(self, sense: int, listener: Listener | None = None) -> None:
        self._sense, self._listener = sense, listener
        self._began = clock()
        self._rows: list[list[float | None]] = []

    def __call__(self, solution: Solution | None, objective: float | None, bound: float | None) -> None:
        """Something new."""
        best = self._rows[-1][1] if self._rows else None
        if objective is not None and (best is None or self._sense * objective < self._sense * best):
            self._rows.append([round(clock() - self._began, 6), objective, bound])
        if self._listener is not None:
            self._listener(solution, objective, bound)

    def kept(self, method: Method, result: Result) -> Result:
        """The result with its curve, where the method is exact or a search; its own objective is the last row's."""
        if method.kind is Kind.HEURISTIC:
            return result
        rows = [*self._rows, [round(clock() - self._began, 6), result.objective, result.bound]]
        return replace(result, info={**result.info, "anytime": rows})


def curve_of(result: Result) -> Curve | None:
    """The curve of an exact method or a search; None where the run has none, as a heuristic's."""
    curve = result.info.get("anytime")
    return curve if isinstance(curve, list) and curve else None


def primal_gap(objective: float | None, reference: float) -> float:
    """|objective - reference| / max(|objective|, |reference|); 1 without an objective or where signs differ."""
    if objective is None:
        return 1.0
    if objective == reference:
        return 0.0
    if objective * reference < 0:
        return 1.0
    return abs(objective - reference) / max(abs(objective), abs(reference))


def horizon(curves: Iterable[Curve]) -> float:
    """Seconds over which these runs are compared: the longest of them."""
    return max((float(curve[-1][0] or 0.0) for curve in curves), default=0.0)


def descent(curve: Curve, reference: float) -> Iterator[tuple[float, float]]:
    """(seconds, :func:`primal_gap` from then on) of a run, each time that the gap falls; before it is 1."""
    best = 1.0
    for seconds, objective, _ in curve:
        gap = primal_gap(objective, reference)
        if gap < best:
            best = gap
            yield float(seconds or 0.0), gap


def time_to_ratio(curve: Curve, reference: float, sense: int, target: float) -> float | None:
    """Seconds until a schedule came whose ratio to the reference is at most the target; None where none came."""
    for seconds, objective, _ in curve:
        reached = ratio(objective, reference, sense)
        if reached is not None and (reached <= target or agrees(reached, target)):
            return float(seconds or 0.0)
    return None


def mean_descent(runs: Sequence[tuple[Curve, float]]) -> list[tuple[float, float]]:
    """(seconds, mean primal gap from then on) of runs, each given with what its gap is to; O(rows log rows)."""
    falls = []
    for curve, reference in runs:
        before = 1.0
        for seconds, gap in descent(curve, reference):
            falls.append((seconds, before - gap))
            before = gap
    falls.sort()
    rest = itertools.accumulate((fall for _, fall in falls), operator.sub, initial=float(len(runs)))
    next(rest)
    return [(seconds, gap / len(runs)) for (seconds, _), gap in zip(falls, rest, strict=True)]


def primal_integral(curve: Curve, reference: float, until: float) -> float:
    """The integral of :func:`primal_gap` over the seconds from 0 to `until`; what a run ends with stays.

    Between 0 (the reference from the first moment on) and `until` (no schedule at all).

    Parameters
    ----------
    curve : the incumbents of one run over time
    reference : the optimum, or the best objective known
    until : seconds, the same for all runs that are compared
    """
    total, since, distance = 0.0, 0.0, 1.0
    for seconds, gap in descent(curve, reference):
        at = min(seconds, until)
        total += distance * (at - since)
        since, distance = at, gap
    return total + distance * (until - since)


def best_objective(optimum: float | None, curves: Iterable[Curve], sense: int) -> float | None:
    """What gaps are to: the optimum where it is proven, else the best objective of these runs; None without any."""
    best = optimum
    for curve in curves if optimum is None else ():
        last = curve[-1][1]
        if last is not None and (best is None or better(last, best, sense)):
            best = last
    return best
