"""The one rule of when a bound proves an optimum."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import pytest

from schedgap.formulations.common.compiled import first_use
from schedgap.formulations.common.numbers import MAXIMISE, MINIMISE, gap
from schedgap.solvers.incumbent import Incumbent, contradicts, optimal
from schedgap.solvers.result import SolveOptions


@pytest.mark.parametrize(
    ("objective", "bound", "sense", "proven"),
    [
        (10.0, 10.0, MINIMISE, True),
        (10.0, 10.0 - 9e-9, MINIMISE, True),
        (10.0, 10.0 - 11e-9, MINIMISE, False),
        (10.0, 10.0 + 9e-9, MAXIMISE, True),
        (10.0, 10.0 + 11e-9, MAXIMISE, False),
        (1e-7, 0.0, MINIMISE, False),  # no absolute tolerance hides small objectives
        (0.0, 1e-12, MAXIMISE, False),
        (1e-20, 5e-19, MAXIMISE, False),
        (0.0, 5e-19, MAXIMISE, False),
        (5e-19, 0.0, MINIMISE, False),
        (5e-19, 5e-19 - 4e-28, MINIMISE, True),
        (0.0, 0.0, MAXIMISE, True),
        (10**12, 10**12 - 1, MINIMISE, False),  # whole numbers are compared exactly
        (Fraction(1, 3), Fraction(10**12, 3 * 10**12 + 1), MINIMISE, False),
        (10**12, 10.0**12 - 1, MINIMISE, True),  # a float is only as exact as it is
        (5.0, None, MINIMISE, False),
        (None, 5.0, MINIMISE, False),
        (5.0, math.inf, MAXIMISE, False),
        (5.0, math.nan, MAXIMISE, False),
    ],
)
def test_a_bound_proves_an_optimum(objective: float, bound: float, sense: int, proven: bool) -> None:
    assert optimal(objective, bound, sense) is proven


def test_a_better_objective_contradicts_a_bound_beyond_rounding() -> None:
    assert contradicts(9.0, 10.0, MINIMISE) and contradicts(11.0, 10.0, MAXIMISE)
    assert not contradicts(11.0, 10.0, MINIMISE) and not contradicts(None, 10.0, MINIMISE)
    assert not contradicts(10.0 - 9e-9, 10.0, MINIMISE) and contradicts(10.0 - 11e-9, 10.0, MINIMISE)
    assert contradicts(10**12 - 1, 10**12, MINIMISE)
    assert (
        contradicts(5e-19, 1e-20, MAXIMISE) and contradicts(1e-20, 0.0, MAXIMISE) and not contradicts(0, 0.0, MAXIMISE)
    )


def test_no_gap_is_small_because_its_numbers_are() -> None:
    assert (gap(10.0, 8.0), gap(-10.0, -8.0), gap(1e-12, 5e-12)) == (0.2, 0.2, 4.0)
    assert (gap(0.0, 0.0), gap(0.0, 5e-19), gap(None, 1.0), gap(1.0, None)) == (0.0, None, None, None)
    best = Incumbent(MAXIMISE, SolveOptions(relative_gap=0.01))
    best.accept({}, 1e-12)
    best.tighten(5e-12)
    assert not best.gap_reached
    best.tighten(1.005e-12)
    assert best.gap_reached


def test_an_incumbent_keeps_the_best_of_both() -> None:
    best = Incumbent(MAXIMISE)
    assert not best.proven and not best.contradictory
    assert best.accept({"a": 1}, 3.0) and not best.accept({"b": 1}, 3.0) and not best.accept({"c": 1}, 2.0)
    assert best.tighten(5.0) and not best.tighten(6.0) and not best.tighten(None) and not best.tighten(math.inf)
    assert (best.solution, best.objective, best.bound, best.proven) == ({"a": 1}, 3.0, 5.0, False)
    assert best.tighten(3.0) and best.proven
    assert best.accept({"d": 1}, 4.0) and best.contradictory


def test_seconds_hold_no_first_use_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """They say how long a second engine may look at the answer."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    best = Incumbent(MINIMISE, SolveOptions())
    with first_use.counted():
        now[0] += 30.0
    now[0] += 2.0
    assert best.result().solve_seconds == 2.0
