"""Rows and an objective of a user's own over rings: what a ring counts in them, and what their duals charge for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.changes import Changes, Place
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.network_tables import NetworkTables, tables
from schedgap.solvers.changed_master import whole_changes


@dataclass(frozen=True)
class OwnRows:
    """Sums over rings: a number for the job and the size, and one for every worker on a server.

    Attributes
    ----------
    rings, workers : (N, J, K + 1) by job and size, and (N, J, V) by job and server
    upper : (N,) levels; every sum is at most its own
    worth : (J, K + 1) what a ring is worth instead of its utility, to be maximised; None where the utility stands
    worker_worth : (J, V) what each of its workers adds to that
    factor : what one unit of the user's objective is in units of these
    """

    rings: Floats
    workers: Floats
    upper: Floats
    worth: Floats | None
    worker_worth: Floats
    factor: float

    def entries(self, job: int, hosts: Sequence[int], counts: Sequence[int]) -> tuple[Floats, float]:
        """(N,) what a ring adds to the sums, and what its workers add to its worth."""
        where, many = list(hosts), np.array(counts, dtype=float)
        sums = self.rings[:, job, int(many.sum())] + self.workers[:, job, where] @ many
        return sums, float(self.worker_worth[job, where] @ many)

    def worker_prices(self, duals: Floats, weight: float) -> Floats:
        """(J, V) charge for a worker at the duals, less `weight` times what it is worth."""
        charge: Floats = np.tensordot(duals, self.workers, axes=1) - weight * self.worker_worth
        return charge

    def ring_prices(self, duals: Floats) -> Floats:
        """(J, K + 1) charge for a ring of a size."""
        charge: Floats = np.tensordot(duals, self.rings, axes=1)
        return charge


def own_rows(instance: GVneInstance, changes: Changes) -> OwnRows | None:
    """The changes as sums over rings.

    Returns
    -------
    OwnRows; None where a row or the objective is about links, tells the positions or the sizes of a ring apart in
    what it says of a server, or has numbers that are no small whole ones.
    """
    data = tables(instance)
    if not changes.families() <= {"ring", "place"}:
        return None
    whole = whole_changes(changes)
    if whole is None:
        return None
    limited, goal, factor = whole
    sums = [_sums(instance, data, terms) for terms, _ in limited]
    objective = None if goal is None else _sums(instance, data, goal)
    if any(part is None for part in sums) or (goal is not None and objective is None):
        return None
    kept = [part for part in sums if part is not None]
    shape = (len(kept), *data.utility.shape), (len(kept), data.jobs, data.nodes)
    return OwnRows(
        np.array([ring for ring, _ in kept]).reshape(shape[0]),
        np.array([worker for _, worker in kept]).reshape(shape[1]),
        np.array([level for _, level in limited], dtype=float),
        None if objective is None else changes.sense * MAXIMISE * objective[0],
        np.zeros(shape[1][1:]) if objective is None else changes.sense * MAXIMISE * objective[1],
        factor,
    )


def _sums(instance: GVneInstance, data: NetworkTables, terms: Mapping[Place, int]) -> tuple[Floats, Floats] | None:
    """(J, K + 1) and (J, V) coefficients; None where they differ between positions or sizes."""
    rings, workers = np.zeros(data.utility.shape), np.zeros((data.jobs, data.nodes))
    placed: dict[tuple[int, int], list[int]] = defaultdict(list)
    for (family, key), coefficient in terms.items():
        j = instance.job_index[str(key[0])]
        if family == "ring":
            rings[j, int(key[1])] += coefficient
        elif coefficient:
            placed[j, instance.server_index[str(key[3])]].append(coefficient)
    for (j, node), coefficients in placed.items():
        longest = int(data.longest[j])
        # every position of every size, each with the same number: then it is one for each worker
        if len(coefficients) != longest * (longest + 1) // 2 or len(set(coefficients)) > 1:
            return None
        workers[j, node] = coefficients[0]
    return rings, workers
