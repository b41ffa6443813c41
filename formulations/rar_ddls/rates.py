"""How fast a ring runs: iterations per slot by servers used and contention met (paper 000, equations (6) to (8)).

Models and heuristics use these; the checker has its own.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

Integers = npt.NDArray[np.int64]


Floats = npt.NDArray[np.float64]


NEVER = 10**12
"""The duration of a job that makes no progress; longer than any horizon, small enough to be summed in int64."""


RATE_CAP = LARGEST_COUNT
"""Rates are cut here: no job has more iterations, so a higher rate means one slot just as well."""


_LARGEST_TABLE = 3 * 10**8


_CHUNK = 2 * 10**6


_SLACK = Fraction(1, 10**9)


# A sum of at most six products of positive numbers, each read within half a unit in the last place: the
# relative error of 1/tau in floating point is below 20 * 2^-53; five times that is kept as a margin.
_RELATIVE_ERROR = 1e-14


@dataclass(frozen=True, eq=False)
class RateTable:
    """Iterations per slot of every job, by the servers it uses and by the contention it meets.

    phi = floor(1/tau + 1e-9) with tau of eq. (8), k = max(1, xi_1 p), f = k + alpha (k - 1); cut at
    ``RATE_CAP``. Equal to the exact rational value: floating point decides only where its error cannot matter.
    """

    gpus: Integers  # (J,) GPUs of each job, G_j
    iterations: Integers  # (J,) iterations of each job, F_j
    n_max: int  # the most servers a job can use, max_j min(G_j, S)
    p_max: int  # the most rings that can cross one server, max(1, min(jobs with G_j >= 2, max_s O_s))
    fewest_servers: Integers  # (J,) the fewest servers of the empty cluster that hold the job; 0 where none do
    # (J,) iterations per slot alone on ``fewest_servers`` servers, which no placement and no company exceeds; 0 for a
    # job larger than the cluster
    best_rate: Integers
    best_duration: Integers  # (J,) slots, ceil(F_j / best_rate), or ``NEVER`` where the rate is 0
    _most_servers: Integers
    _parts: _TimeParts

    def rates(self, jobs: npt.ArrayLike, servers_used: npt.ArrayLike, contention: npt.ArrayLike) -> Integers:
        """Rates of single combinations, without the whole table.

        Returns int64 array of the common shape, iterations per slot; 0 where n > min(G_j, S).

        Parameters
        ----------
        jobs : job positions
        servers_used : n >= 1 of each; `contention`: p >= 0 of each; the three are broadcast together
        """
        j, n, p = np.broadcast_arrays(np.asarray(jobs), np.asarray(servers_used), np.asarray(contention))
        allowed = (n >= 1) & (n <= self._most_servers[j])
        result: Integers = np.zeros(j.shape, dtype=np.int64)
        result[allowed] = self._parts.rates(j[allowed], n[allowed], p[allowed])
        return result

    @cached_property
    def phi(self) -> Integers:
        """The whole table: phi[j, n, p], int64, shape (J, n_max + 1, p_max + 1), read-only.

        Entries with n = 0 or n > min(G_j, S) are 0; p = 0 and p = 1 are the same, and for n = 1 (a ring
        inside one server) p does not matter. Raises InputError: the table would have more than 3 * 10^8 entries.

        Notes
        -----
        O(J n_max p_max) array operations; jobs that differ only in their iterations, contentions of equal
        factor f and, without server overhead, all n >= 2 are computed once.
        """
        jobs = self.gpus.size
        shape = (jobs, self.n_max + 1, self.p_max + 1)
        if jobs * shape[1] * shape[2] > _LARGEST_TABLE:
            raise InputError(
                f"rate table: {jobs} jobs x {self.n_max} servers x contention {self.p_max} "
                f"is more than the {_LARGEST_TABLE} rates that are tabulated"
            )
        kinds, kind_of = self._parts.distinct_jobs()
        p_from, p_at = np.unique(self._parts.smallest_equal_contention(self.p_max), return_inverse=True)
        kind_most = self._most_servers[kinds]
        table: Integers = np.zeros(shape, dtype=np.int64)
        rows = np.zeros((kinds.size, p_from.size), dtype=np.int64)
        step = max(1, _CHUNK // p_from.size)
        for n in range(1, shape[1]):
            some = np.flatnonzero(kind_most >= n)
            if n <= 2 or self._parts.overhead > 0:
                contention = p_from[:1] if n == 1 else p_from
                for low in range(0, some.size, step):
                    part = some[low : low + step]
                    rows[part] = self._parts.rates(kinds[part, None], n, contention)
            if kinds.size < jobs:
                some = np.flatnonzero(self._most_servers >= n)
            source = rows[kind_of[some]]
            table[some, n] = source if p_from.size == shape[2] else source[:, p_at]
        table.flags.writeable = False
        return table


class _TimeParts:
    """The parts of tau (eq. 8) by job, in floating point and, where it matters, as rationals."""

    def __init__(self, instance: RarDdlsInstance) -> None:
        network = instance.network
        self.overhead = network.server_overhead
        self._network = (
            exact(network.inter_bandwidth),
            exact(network.intra_bandwidth),
            exact(network.contention_scale),
            exact(network.contention_penalty),
            exact(network.server_overhead),
            exact(instance.reduce_speed),
        )
        self._jobs = [
            (job.gpus, job.gradient_size, job.batch_size, job.forward_time, job.backward_time) for job in instance.jobs
        ]
        w, m, batch, forward, backward = (
            np.array(column, dtype=np.float64) for column in zip(*self._jobs, strict=True)
        )
        with np.errstate(over="ignore", under="ignore"):
            share = m / w * (w - 1)
            self._inter: Floats = 2 * share / network.inter_bandwidth
            self._intra: Floats = 2 * share / network.intra_bandwidth
            self._rest: Floats = share / instance.reduce_speed + forward * batch + backward
        self._factors: list[float] = []

    def factor(self, contention: int) -> Fraction:
        """f = k + alpha (k - 1), k = max(1, xi_1 p), exactly."""
        _, _, scale, penalty, _, _ = self._network
        k = max(Fraction(1), scale * contention)
        return k + penalty * (k - 1)

    def _factors_to(self, largest: int) -> Floats:
        # k - 1 cancels near 1, and the penalty magnifies that: f is computed exactly, then rounded once.
        self._factors.extend(float(self.factor(p)) for p in range(len(self._factors), largest + 1))
        return np.array(self._factors)

    def smallest_equal_contention(self, p_max: int) -> Integers:
        """(p_max + 1,) for each p the smallest p' with the same factor f."""
        first: dict[Fraction, int] = {}
        return np.array([first.setdefault(self.factor(p), p) for p in range(p_max + 1)], dtype=np.int64)

    def distinct_jobs(self) -> tuple[Integers, Integers]:
        """The first job of each kind (equal up to the iterations), and the kind of every job."""
        kinds: dict[tuple[Any, ...], int] = {}
        kind_of = np.array([kinds.setdefault(key, len(kinds)) for key in self._jobs], dtype=np.int64)
        _, first = np.unique(kind_of, return_index=True)
        return first.astype(np.int64), kind_of

    def rates(self, j: Integers, n: Integers | int, p: Integers) -> Integers:
        """floor(1/tau + 1e-9), cut at RATE_CAP, of combinations (broadcast together) with n >= 1."""
        factors = self._factors_to(int(p.max(initial=0)))[p]
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            if isinstance(n, int):
                tau = self._intra[j] * np.ones_like(factors) if n == 1 else self._inter[j] * factors
            else:
                tau = np.where(n == 1, self._intra[j], self._inter[j] * factors)
            tau += self._rest[j] + self.overhead * n
            speed = np.divide(1.0, tau, out=tau)
        speed += 1e-9
        capped = ~(speed < RATE_CAP * (1 + 1e-6))
        speed[capped] = RATE_CAP
        result: Integers = np.minimum(speed, RATE_CAP).astype(np.int64)
        margin = np.maximum(speed, 1.0) * _RELATIVE_ERROR
        doubtful = np.abs(np.rint(speed) - speed) <= margin
        doubtful &= ~capped
        if doubtful.any():
            j, n, p = np.broadcast_arrays(j, np.asarray(n), p)
            for at in zip(*np.nonzero(doubtful), strict=True):
                result[at] = self._exact_rate(int(j[at]), int(n[at]), int(p[at]))
        return result

    def _exact_rate(self, j: int, n: int, p: int) -> int:
        inter, intra, _, _, overhead, speed = self._network
        w, m, batch, forward, backward = self._jobs[j]
        share = exact(m) * (w - 1) / w
        bandwidth = intra if n == 1 else inter / self.factor(p)
        tau = 2 * share / bandwidth + share / speed + overhead * n + exact(forward) * batch + exact(backward)
        return min(RATE_CAP, (1 / tau + _SLACK).__floor__())


_TABLES: dict[int, tuple[weakref.ref[RarDdlsInstance], RateTable]] = {}


def rate_table(instance: RarDdlsInstance) -> RateTable:
    """The rates of an instance; computed once per instance object and kept as long as it lives.

    Guarantees phi non-increasing in p and, for n >= 2, in n; phi[j, 1, .] >= phi[j, n, p] for all n, p.

    Returns
    -------
    RateTable; its arrays ``best_*`` are ready, the dense table ``phi`` is built when first asked for.

    Notes
    -----
    O(J log S + S log S) here. Source: paper 000, equations (6) to (8); max(1, .) of k and the 1e-9 are ours.
    """
    key = id(instance)
    known = _TABLES.get(key)
    if known is not None and known[0]() is instance:
        return known[1]
    table = _build(instance)
    _TABLES[key] = (weakref.ref(instance, lambda _: _TABLES.pop(key, None)), table)
    return table


def _build(instance: RarDdlsInstance) -> RateTable:
    gpus = np.array([job.gpus for job in instance.jobs], dtype=np.int64)
    iterations = np.array([job.iterations for job in instance.jobs], dtype=np.int64)
    capacities = np.sort(np.array([server.gpus for server in instance.servers], dtype=np.int64))[::-1]
    held = np.cumsum(capacities)
    fewest = np.searchsorted(held, gpus, side="left") + 1
    fewest = np.where(gpus <= held[-1], fewest, 0).astype(np.int64)
    most = np.minimum(gpus, len(instance.servers))
    parts = _TimeParts(instance)
    best = np.zeros(gpus.size, dtype=np.int64)
    fits = fewest > 0
    best[fits] = parts.rates(np.flatnonzero(fits), fewest[fits], np.ones(int(fits.sum()), dtype=np.int64))
    duration = np.where(best > 0, -(-iterations // np.maximum(best, 1)), NEVER)
    crossing = int(np.count_nonzero(gpus >= 2)) if len(instance.servers) > 1 else 0
    for array in (gpus, iterations, fewest, best, duration, most):
        array.flags.writeable = False
    return RateTable(
        gpus=gpus,
        iterations=iterations,
        n_max=int(most.max()),
        p_max=max(1, min(crossing, int(capacities[0]))),
        fewest_servers=fewest,
        best_rate=best,
        best_duration=duration,
        _most_servers=most,
        _parts=parts,
    )
