"""Utilities as exact tables over whole worker-slots, cut into concave runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.ddljs.instance import DdljsInstance, Job
from schedgap.formulations.ddljs.reach import reaches
from schedgap.formulations.ddljs.utility import gain, size, utility

DIGITS = 13
"""Marginal utilities are rounded up to this many digits of the largest possible total."""


@dataclass(frozen=True)
class Piece:
    """`length` worker-slots that each add `slope`."""

    length: int
    slope: float


@dataclass(frozen=True)
class Table:
    """mu_i over 0..B worker-slots: ``start`` plus pieces, in runs within which slopes fall.

    Between two runs the slope rises, so the later one counts only when the earlier one is full. One run: concave.
    """

    start: float
    runs: tuple[tuple[Piece, ...], ...]


def resolution(instance: DdljsInstance) -> float:
    """A power of ten: 1e-13 of the largest sum of utilities, in absolute values, rounded to the next power above."""
    total = sum(size(job, reach.max_work) for job, reach in zip(instance.jobs, reaches(instance), strict=True))
    return 10.0 ** (math.ceil(math.log10(total)) - DIGITS) if total > 0 else 1.0


def table(job: Job, most: int, unit: float) -> Table:
    """The table of a job.

    Parameters
    ----------
    most : B, worker-slots
    unit : every marginal utility is rounded up to a multiple of it, so that a table is never below mu_i, and above
        by less than B units; rounding keeps concave tables concave
    """
    start = float(utility(job, 0))
    if most == 0 or not size(job, most):
        return Table(start, ())
    if job.utility.kind == "linear":
        return Table(start, ((Piece(most, job.utility.scale * job.efficiency),),))
    steps = np.ceil(gain(job, np.arange(most), 1) / unit * (1 - 1e-15))
    if job.concave:  # whatever rounding does to equal ones
        steps = np.maximum.accumulate(steps[::-1])[::-1]
    cuts = np.flatnonzero(np.diff(steps)) + 1
    firsts, lasts = np.concatenate([[0], cuts]), np.concatenate([cuts, [most]])
    runs: list[list[Piece]] = []
    previous = math.inf
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        if not runs or steps[first] > previous:
            runs.append([])
        previous = float(steps[first])
        runs[-1].append(Piece(last - first, float(f"{previous * unit:.15g}")))
    return Table(start, tuple(tuple(run) for run in runs))
