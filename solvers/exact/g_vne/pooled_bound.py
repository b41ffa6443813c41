"""A bound on the LP over rings of networks without cycles in two pricings, for networks too large for that LP."""

from __future__ import annotations

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.column_generation import Column, GenerationLimits, Master, Priced, RowBounds
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem

PRICINGS = 30
"""Pricings of the linear program per row; prices that are not optimal are valid too."""


def pooled_bound(subproblem: RingSubproblem) -> tuple[float, Floats]:
    """The smaller of L(0) and L(pi), where L(pi) = sum_i pi_i u_i + sum_j max(0, best ring of j at pi) >= the LP.

    L(0) lets every job have its best ring alone; pi has one price for each resource on all servers and none on
    links: the prices at which ring sizes are packed into the total of all servers. Both are valid whatever pi is;
    where links or single servers are scarce the bound is above the LP's. Returns a bound, at least the LP over
    the rings of `subproblem`, and (rows,) the prices that prove it.

    Parameters
    ----------
    subproblem : subproblem of a network without cycles, or without its links

    Notes
    -----
    O(J V K^2) for pricing twice, and a linear program of R rows.
    """
    limit = np.array([row.upper for row in subproblem.rows], dtype=float)
    candidates = (np.zeros(len(limit)), _pooled_duals(subproblem))
    values = [float(d @ limit) + float(np.maximum(subproblem.best_values(d), 0.0).sum()) for d in candidates]
    return min(values), candidates[int(np.argmin(values))]


def _pooled_duals(subproblem: RingSubproblem) -> Floats:
    """(rows,) the same price of a resource on every server."""
    data = subproblem.data
    numbers = np.arange(subproblem.worth.shape[1])
    total = data.capacity.sum(axis=0)
    every = np.arange(len(total))

    def pricing(duals: Floats, weight: float) -> Priced:
        value = weight * subproblem.worth - (data.demand @ duals)[:, None] * numbers
        size = 1 + np.argmax(value[:, 1:], axis=1)
        best = np.take_along_axis(value, size[:, None], axis=1)[:, 0]
        rings = [
            Column(j, float(subproblem.worth[j, size[j]]), every, size[j] * data.demand[j])
            for j in np.flatnonzero(best > 0).tolist()
        ]
        return Priced(best, rings)

    master = Master(MAXIMISE, [RowBounds(upper=float(amount)) for amount in total], [False] * data.jobs)
    found = master.generate(pricing, GenerationLimits(iterations=PRICINGS, tolerance=1e-4))
    prices = np.maximum(0.0, found.duals)
    duals = np.zeros(len(subproblem.rows))
    nodes, resources = np.nonzero(subproblem.node_row >= 0)
    duals[subproblem.node_row[nodes, resources]] = prices[resources]
    return duals
