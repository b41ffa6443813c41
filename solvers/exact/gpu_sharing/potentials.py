"""Prices of the column LP as potentials: what the rest of a schedule costs at least, from any state."""

from __future__ import annotations

import numpy as np

from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices
from schedgap.solvers.exact.gpu_sharing.lp import ColumnBound, Columns, mean_loss
from schedgap.solvers.exact.gpu_sharing.states import Potentials, Tables


def tables_of(instance: GpuSharingInstance, choices: Choices, columns: Columns) -> Tables:
    """What the compiled search knows of an instance whose runs of interest are these."""
    last = int((columns.start + columns.slots).max()) - 1
    counts = [len(own.modes) for own in choices.jobs]
    first = np.array([0, *np.cumsum(counts)], dtype=np.int64)
    fits = np.zeros((first[-1], first[-1]), dtype=np.bool_)
    for j, k in choices.pairs:
        fits[first[j] : first[j + 1], first[k] : first[k + 1]] = True
        for a, b in choices.clashes(j, k):
            fits[first[j] + a, first[k] + b] = False
    data = choices.tables
    worst = np.where(data.may_share, data.slowdown, 1.0).max(axis=1)
    latest = np.zeros((first[-1], last + 1), dtype=np.int64)
    np.maximum.at(latest, (first[columns.job] + columns.mode, columns.start), columns.start + columns.slots - 1)
    return Tables(
        arrival=data.arrival.astype(np.int64),
        gpus=data.gpus.astype(np.int64),
        worst=worst,
        first=first,
        work=np.array([float(mode.work) for own in choices.jobs for mode in own.modes]),
        slowdown=data.slowdown.copy(),
        fits=fits | fits.T,
        latest=latest,
        total=instance.total_gpus,
        last=last,
    )


def potential(choices: Choices, columns: Columns, bound: ColumnBound, tables: Tables) -> Potentials:
    """One potential, with a first axis of length 1, from the prices of an LP of this instance or of a rest of it.

    Any prices >= 0 bound the rest of any schedule from below (Lagrange): a run of job j costs its JCT, and
    ``G_j (idle - alone)`` in each slot, less ``unspent`` times the slots that it may lose; a GPU shared by two jobs
    costs ``reduced >= 0`` in each slot; N GPUs are worth ``idle`` in each slot. Where the LP has no column
    of a kind, ``alone = idle``, so that nothing costs less than 0 beside it.

    Returns
    -------
    Potentials
        ``worth[t]`` of all GPUs from slot t on; ``held[q, t]`` of a gang up to slot t; ``unspent[q]``;
        ``least_wait[j, t]`` the least of a run that starts in t or later; ``least_start[q, t]`` in t;
        ``pair[q, r, t]`` of a shared GPU up to slot t.
    """
    first, last = tables.first, tables.last
    kinds = len(tables.work)
    job = np.arange(len(tables.gpus)).repeat(np.diff(first))
    gpus = tables.gpus[job]
    known = min(last, len(bound.idle))
    idle, alone = np.zeros(last + 3), np.zeros((kinds, last + 3))
    idle[1 : known + 1] = bound.idle[:known]
    slots = np.arange(1, known + 1)
    priced = (bound.window[:, :1] <= slots) & (slots <= bound.window[:, 1:])
    alone[:, 1 : known + 1] = np.where(priced, bound.alone[:, :known], bound.idle[:known])
    unspent = bound.unspent
    held = np.cumsum(gpus[:, None] * (idle - alone), axis=1)
    worth = tables.total * np.cumsum(idle[::-1])[::-1]
    kind = first[columns.job] + columns.mode
    cost = columns.cost - unspent[kind] * columns.slack
    cost = cost + held[kind, columns.start + columns.slots - 1] - held[kind, columns.start - 1]
    least_start = np.full((kinds, last + 3), np.inf)
    np.minimum.at(least_start, (kind, columns.start), cost)
    by_job = np.minimum.reduceat(least_start, first[:-1], axis=0)
    least_wait = np.minimum.accumulate(by_job[:, ::-1], axis=1)[:, ::-1]
    loss = mean_loss(choices, job[:, None], job[None, :]) * unspent[:, None]
    shared = (alone - idle)[:, None, :] + alone[None, :, :] + (loss + loss.T)[:, :, None]
    shared[:, :, 0] = 0.0
    # Tolerances of the LP make some of them negative, very little: what that may come to is taken off.
    size = np.minimum(gpus[:, None], gpus[None, :])
    worth = worth + float((-np.minimum(shared, 0.0).sum(axis=2) * size)[tables.fits].sum()) + 1e-6
    pair = np.cumsum(np.maximum(shared, 0.0), axis=2)
    return Potentials(worth[None], held[None], unspent[None], least_wait[None], least_start[None], pair[None])
