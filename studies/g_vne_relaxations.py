"""Linear relaxations of g-vne written out: node-only, plain (12)-(19), augmented with one flow per root.

All of them only put workers on servers where one fits. With identical workers that may share a server, and without a
cap of a job on a server, the three have the same value, and none of them feels a link: all workers of a ring can
stay on one server, in the shares in which they were spread. That is why columns are capped
(solvers/exact/g_vne/METHODS.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.network_tables import NetworkTables, tables
from schedgap.solvers.linear_program import solve_once

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Relaxed:
    """The value of a linear relaxation, and how large it was."""

    value: float
    variables: int
    rows: int
    nonzeros: int


@dataclass
class _Matrix:
    """Rows collected as blocks of coordinates."""

    at_most: list[float] = field(default_factory=list)
    _upper: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)
    _equal: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)
    equalities: int = 0
    cost: list[Floats] = field(default_factory=list)
    variables: int = 0

    def add_variables(self, worth: Floats) -> Ints:
        """New variables >= 0 with these objective coefficients; their numbers."""
        first = self.variables
        self.variables += len(worth)
        self.cost.append(np.asarray(worth, dtype=float))
        return np.arange(first, self.variables)

    def add_row(self, limit: float) -> int:
        """A new row ``<= limit``."""
        self.at_most.append(limit)
        return len(self.at_most) - 1

    def at(self, rows: Any, columns: Ints, values: Any) -> None:
        """Entries of ``<=`` rows."""
        self._upper.append(_block(rows, columns, values))

    def balance(self, rows: Any, columns: Ints, values: Any) -> None:
        """Entries of ``= 0`` rows."""
        self._equal.append(_block(rows, columns, values))

    def maximum(self) -> Relaxed:
        """The optimum."""
        if not self.variables:
            return Relaxed(0.0, 0, 0, 0)
        rows = len(self.at_most) + self.equalities
        below = [(len(self.at_most) + row, column, value) for row, column, value in self._equal]
        matrix = _matrix(self._upper + below, rows, self.variables)
        high = np.concatenate([np.array(self.at_most), np.zeros(self.equalities)])
        low = np.concatenate([np.full(len(self.at_most), -np.inf), np.zeros(self.equalities)])
        free = np.full(self.variables, np.inf)
        found = solve_once(matrix, -np.concatenate(self.cost), free, low, high)
        if found is None:
            raise RuntimeError("g-vne relaxation: no optimum")
        return Relaxed(-found.value, self.variables, rows, matrix.nnz)


def _block(rows: Any, columns: Ints, values: Any) -> tuple[Ints, Ints, Floats]:
    count = len(columns)
    return np.broadcast_to(rows, count), columns, np.broadcast_to(np.asarray(values, dtype=float), count)


def _matrix(blocks: list[tuple[Ints, Ints, Floats]], rows: int, columns: int) -> sparse.csc_matrix:
    parts = [np.concatenate([block[i] for block in blocks]) if blocks else np.zeros(0) for i in range(3)]
    return sparse.csc_matrix((parts[2], (parts[0].astype(int), parts[1].astype(int))), shape=(rows, columns))


class _RelaxationBuilder:
    """Rows (13), (18) and (19), shared by the relaxations."""

    def __init__(self, instance: GVneInstance, sizes: Ints | None) -> None:
        self.data: NetworkTables = tables(instance)
        self.matrix = _Matrix()
        data = self.data
        self.one = [self.matrix.add_row(1.0) for _ in range(data.jobs)]
        shape = data.capacity.shape
        self.node = np.array(
            [[self.matrix.add_row(float(data.capacity[v, r])) for r in range(shape[1])] for v in range(shape[0])]
        )
        self.link = np.array([self.matrix.add_row(float(width)) for width in data.bandwidth], dtype=np.int64)
        self.sizes = sizes

    def wanted(self, j: int) -> list[int]:
        """Ring sizes that the relaxation mixes."""
        if self.sizes is not None:
            return [int(self.sizes[j])] if self.sizes[j] > 0 else []
        return [k for k in range(1, int(self.data.longest[j]) + 1) if self.data.utility[j, k] > 0]

    def load_nodes(self, j: int, hosts: Ints, variables: Ints, workers: float = 1.0) -> None:
        """`workers` of job j on each of the hosts, per unit of the variables."""
        for r in np.flatnonzero(self.data.demand[j]):
            self.matrix.at(self.node[hosts, r], variables, workers * self.data.demand[j, r])


def node_relaxation(instance: GVneInstance, sizes: Ints | None = None) -> Relaxed:
    """(12)-(14), (16), (18): nodes only, as if links were free.

    Variables for job, size and server: workers there. O(J K V).
    """
    build = _RelaxationBuilder(instance, sizes)
    for j in range(build.data.jobs):
        hosts = np.flatnonzero(build.data.eligible[j])
        for k in build.wanted(j) if len(hosts) else []:
            chi = build.matrix.add_variables(build.data.utility[j, k : k + 1])
            build.matrix.at(build.one[j], chi, 1.0)
            there = build.matrix.add_variables(np.zeros(len(hosts)))
            build.load_nodes(j, hosts, there)
            row = build.matrix.equalities
            build.matrix.equalities += 1
            build.matrix.balance(row, there, 1.0)
            build.matrix.balance(row, chi, -float(k))
    return build.matrix.maximum()


def plain_relaxation(instance: GVneInstance, sizes: Ints | None = None) -> Relaxed:
    """(12)-(19) without integrality, on servers where one worker fits.

    O(sum_j N_j^2 (V + E)) nonzeros.
    """
    build = _RelaxationBuilder(instance, sizes)
    data = build.data
    for j in range(data.jobs):
        hosts = np.flatnonzero(data.eligible[j])
        for k in build.wanted(j) if len(hosts) else []:
            chi = build.matrix.add_variables(data.utility[j, k : k + 1])
            build.matrix.at(build.one[j], chi, 1.0)
            places = [build.matrix.add_variables(np.zeros(len(hosts))) for _ in range(k)]
            for place in places:
                build.load_nodes(j, hosts, place)
                row = build.matrix.equalities
                build.matrix.equalities += 1
                build.matrix.balance(row, place, 1.0)
                build.matrix.balance(row, chi, -1.0)
            for a in range(k if k > 1 else 0):
                _edge(build, j, hosts, places[a], hosts, places[(a + 1) % k])
    return build.matrix.maximum()


def augmented_relaxation(instance: GVneInstance, sizes: Ints | None = None) -> Relaxed:
    """The augmented LP of Rost and Schmid as arc flows: one copy of the ring for each node that position 0 is on.

    O(sum_j N_j^2 V (V + E)) nonzeros: 20 nodes and 10 jobs have hundreds of thousands. Source: paper 004,
    Algorithm 2, line 4; Rost and Schmid, IFIP Networking 2018, Formulation 2.
    """
    build = _RelaxationBuilder(instance, sizes)
    data = build.data
    for j in range(data.jobs):
        hosts = np.flatnonzero(data.eligible[j])
        for k in build.wanted(j):
            for root in hosts:
                alone = np.array([root])
                chosen = build.matrix.add_variables(data.utility[j, k : k + 1])
                build.matrix.at(build.one[j], chosen, 1.0)
                build.load_nodes(j, alone, chosen)
                if k == 1:
                    continue
                # flow conservation makes the mass of every position equal to the root's
                places = [(alone, chosen)]
                for _ in range(1, k):
                    place = build.matrix.add_variables(np.zeros(len(hosts)))
                    build.load_nodes(j, hosts, place)
                    places.append((hosts, place))
                for a in range(k):
                    _edge(build, j, *places[a], *places[(a + 1) % k])
    return build.matrix.maximum()


def _edge(build: _RelaxationBuilder, j: int, here: Ints, start: Ints, there: Ints, end: Ints) -> None:
    """One ring edge (15), (17): flow from the shares `start` on nodes `here` to `end` on nodes `there`."""
    data, matrix = build.data, build.matrix
    flow = matrix.add_variables(np.zeros(len(data.tail)))
    row = matrix.equalities
    matrix.equalities += data.nodes
    matrix.balance(row + data.tail, flow, 1.0)
    matrix.balance(row + data.head, flow, -1.0)
    matrix.balance(row + here, start, -1.0)
    matrix.balance(row + there, end, 1.0)
    if data.job_bandwidth[j] > 0:
        matrix.at(build.link, flow, data.job_bandwidth[j])
