"""Prices of the column LP as potentials: what the rest of a schedule costs at least, from any state.

Idea: prices on the slots tell for any state what the rest of a schedule costs at least. Source: Lagrangian relaxation
as a lower bound of a dynamic program. Guarantee: any prices from 0 give a valid bound.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices
from schedgap.solvers.exact.gpu_sharing.lp import (
    ColumnBound,
    Columns,
    fitting,
    mean_loss,
    shortest_runs,
)
from schedgap.solvers.exact.gpu_sharing.states import Potentials, SlotTables


def tables_of(instance: GpuSharingInstance, choices: Choices, columns: Columns) -> SlotTables:
    """What the compiled search knows of an instance whose runs of interest are these."""
    last = int((columns.start + columns.slots).max()) - 1
    first, fits = fitting(choices)
    data = choices.tables
    worst = np.where(data.may_share, data.slowdown, 1.0).max(axis=1)
    latest = np.zeros((first[-1], last + 1), dtype=np.int64)
    np.maximum.at(latest, (first[columns.job] + columns.mode, columns.start), columns.start + columns.slots - 1)
    return SlotTables(
        arrival=data.arrival.astype(np.int64),
        gpus=data.gpus.astype(np.int64),
        worst=worst,
        first=first,
        work=np.array([float(mode.work) for choice in choices.jobs for mode in choice.modes]),
        slowdown=data.slowdown.copy(),
        fits=fits,
        latest=latest,
        shortest=shortest_runs(columns, len(choices.jobs)),
        total=instance.total_gpus,
        last=last,
    )


Sharing = tuple[Ints, Ints, NDArray[np.bool_]]


def potential(
    choices: Choices, columns: Columns, sharing: Sharing, bound: ColumnBound, tables: SlotTables
) -> Potentials:
    """One potential, with a first axis of length 1, from the prices of an LP of this instance or of a rest of it.

    Any prices >= 0 bound the rest of any schedule from below (Lagrange): a run of job j costs its JCT, and
    ``G_j (idle - alone)`` in each slot, less ``unspent`` times the slots that it may lose, less ``unshared`` for each
    GPU that it could share with a job in a slot; a GPU shared by two jobs costs what its column of the LP does, no less
    than 0, in each slot, and where both run already, without ``unshared``, it may be less; N GPUs are worth ``idle`` in
    each slot. Where the LP has no column of a kind, ``alone = idle``, so that nothing costs less than 0 beside it.

    Returns
    -------
    Potentials
        ``worth[t]`` of all GPUs from slot t on; ``held[q, t]`` of a gang up to slot t; ``unspent[q]``;
        ``least_wait[j, t]`` the least of a run that starts in t or later; ``least_start[q, t]`` in t;
        up to slot t: ``pair[q, r, t]`` of a shared GPU, ``fixed[q, r, t]`` of one shared by running jobs, ``lower`` the
        part of that below 0, and ``side[q, k, t]`` of all GPUs that a kind could share with a job.
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
    jobs = len(tables.gpus)
    size = np.minimum(tables.gpus[job][:, None], tables.gpus)
    unshared = np.zeros((kinds, jobs, last + 3))
    unshared[:, :, 1 : known + 1] = bound.unshared[:, :, :known] * size[:, :, None]
    owner, when, able = sharing
    cost = cost - np.bincount(owner, (unshared[kind[owner], :, when] * able).sum(axis=1), len(cost))
    least_start = np.full((kinds, last + 3), np.inf)
    np.minimum.at(least_start, (kind, columns.start), cost)
    by_job = np.minimum.reduceat(least_start, first[:-1], axis=0)
    least_wait = np.minimum.accumulate(by_job[:, ::-1], axis=1)[:, ::-1]
    loss = mean_loss(choices, job[:, None], job[None, :]) * unspent[:, None]
    shared = (alone - idle)[:, None, :] + alone[None, :, :] + (loss + loss.T)[:, :, None]
    shared[:, :, 0] = 0.0
    fixed = shared
    shared = fixed + (unshared / size[:, :, None])[:, job] + (unshared / size[:, :, None])[:, job].transpose(1, 0, 2)
    # Tolerances of the LP make some of them negative, very little: what that may come to is taken off.
    size = size[:, job]
    worth = worth + float((-np.minimum(shared, 0.0).sum(axis=2) * size)[tables.fits].sum()) + 1e-6
    pair = np.cumsum(np.maximum(shared, 0.0), axis=2)
    lower = np.cumsum(np.minimum(fixed, 0.0), axis=2)
    parts = (worth, held, unspent, least_wait, least_start, pair)
    return Potentials(*(part[None] for part in (*parts, np.cumsum(fixed, axis=2), lower, np.cumsum(unshared, axis=2))))
