"""Utilities of ddljs in floating point, stable where plain formulas overflow or cancel.

The checker computes its own in decimals of 60 digits; a test compares the two.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddljs.instance import Job

FAR = 300.0 * (1 + 1e-12)
"""A sigmoid is worth 0 where its exponent is below minus this, all its scale where it is above, as the checker has it;
what is added is more than the rounding of the exponent, so that nothing is cut off that the checker counts."""


SPLIT = 2.0**27 + 1


LONGEST = 4096
"""Numbers of worker-slots that :func:`steepest` looks at; beyond, evenly spread ones."""


def logistic(z: ArrayLike) -> Floats:
    """1 / (1 + exp(-z)) for any z, without overflow and with full relative accuracy where it is small."""
    at = np.asarray(z, dtype=float)
    small = np.exp(-np.abs(at))
    found: Floats = np.where(at >= 0, 1.0, small) / (1.0 + small)
    return found


def utility(job: Job, slots: ArrayLike) -> Floats:
    """mu_i after so many worker-slots.

    Parameters
    ----------
    slots : worker-slots, >= 0, of any shape

    Returns
    -------
    Array of the same shape; relative error about 1e-15, for a sigmoid about 1e-16 times its exponent.
    """
    shape = job.utility
    x = job.efficiency * np.asarray(slots, dtype=float)
    if shape.kind == "linear":
        return shape.scale * x
    if shape.kind == "sqrt":
        return shape.scale * np.sqrt(x)
    if shape.kind == "log1p":
        return shape.scale * np.log1p(x)
    if shape.kind == "log":
        return shape.scale * _ln(*_counted(job, slots))
    if shape.kind == "energy":
        return -shape.scale * x * x
    assert shape.steepness is not None and shape.midpoint is not None
    exponent = shape.steepness * (x - shape.midpoint)
    return shape.scale * np.where(np.abs(exponent) > FAR, exponent > 0, logistic(exponent))


def _counted(job: Job, slots: ArrayLike) -> tuple[Floats, Floats]:
    """max(x, least) of ``log``, rounded, and what rounding left out, of the numbers as they are written.

    Beside 1 the last bit of the work decides what ln is worth. The product is Dekker's: parts of 26 bits, exactly.
    """
    n = np.asarray(slots, dtype=float)
    work = job.efficiency * n
    whole = SPLIT * job.efficiency
    high = whole - (whole - job.efficiency)
    rest = (high * n - work) + (job.efficiency - high) * n + _unwritten(job.efficiency) * n
    least = job.utility.least or 0.0
    below = (work - least) + (rest - _unwritten(least)) < 0
    return np.where(below, least, work), np.where(below, _unwritten(least), rest)


def _unwritten(value: float) -> float:
    """What the decimal number that is written has more than the binary one that stands for it."""
    return float(exact(value) - Fraction(value))


def _ln(value: Floats, rest: Floats) -> Floats:
    """ln(value + rest): from the distance to 1 where that is small."""
    near = np.abs(value - 1.0) < 0.5
    return np.where(near, np.log1p(np.where(near, (value - 1.0) + rest, 0.0)), np.log(value))


def gain(job: Job, done: ArrayLike, more: ArrayLike) -> Floats:
    """mu_i(done + more) - mu_i(done) without cancellation: negative only for ``energy``.

    Non-increasing in `done` where mu_i is concave.

    Parameters
    ----------
    done, more : worker-slots, >= 0; broadcast against each other

    Notes
    -----
    For a sigmoid, s(b) - s(a) = s(b) s(-a) (1 - exp(a - b)); nothing is cut off, algorithms order by gains of any size.
    """
    shape = job.utility
    x = job.efficiency * np.asarray(done, dtype=float)
    d = job.efficiency * np.asarray(more, dtype=float)
    if shape.kind == "linear":
        return shape.scale * d + 0.0 * x
    if shape.kind == "sqrt":
        total = np.sqrt(x + d) + np.sqrt(x)
        return shape.scale * d / np.where(total > 0, total, 1.0)
    if shape.kind == "log1p":
        return shape.scale * np.log1p(d / (1.0 + x))
    if shape.kind == "log":
        before, left_out = _counted(job, done)
        after, left_out_after = _counted(job, np.asarray(done, dtype=float) + np.asarray(more, dtype=float))
        return shape.scale * np.log1p(((after - before) + (left_out_after - left_out)) / before)
    if shape.kind == "energy":
        return -shape.scale * d * (2.0 * x + d)
    assert shape.steepness is not None and shape.midpoint is not None
    before = shape.steepness * (x - shape.midpoint)
    step = shape.steepness * d
    return shape.scale * logistic(before + step) * logistic(-before) * -np.expm1(-step)


def highest(job: Job, most: int) -> float:
    """The largest mu_i after up to `most` worker-slots; every kind rises, or falls, all the way."""
    return float(utility(job, [0, most]).max())


def size(job: Job, most: int) -> float:
    """The largest absolute value of mu_i after up to `most` worker-slots."""
    return float(np.abs(utility(job, [0, most])).max())


def steepest(job: Job, done: int, most: int) -> tuple[float, int]:
    """The best average gain per worker-slot from here on: max over 1 <= k <= most of gain(done, k) / k.

    Returns the slope of the concave envelope of mu_i at `done`, and the smallest k that has it; (0, 0) where `most` is
    0.
    """
    if most <= 0:
        return 0.0, 0
    if job.concave:
        return float(gain(job, done, 1)), 1
    k = np.unique(np.rint(np.linspace(1, most, min(most, LONGEST)))) if most > LONGEST else np.arange(1, most + 1)
    slope = gain(job, done, k) / k
    best = int(np.argmax(slope))
    return float(slope[best]), int(k[best])


def steepest_up_to(job: Job, done: int, most: int) -> tuple[Floats, Ints]:
    """:func:`steepest` for every limit from 1 to `most`, at most :data:`LONGEST`: slopes and sizes, in one pass."""
    k = np.arange(1, most + 1)
    slope = gain(job, done, k) / k
    best = np.maximum.accumulate(slope)
    fresh = np.concatenate([[True], slope[1:] > best[:-1]])
    return best, np.maximum.accumulate(np.where(fresh, k, 0))
