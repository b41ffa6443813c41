"""What every simulated run must conserve, from its finish times and the times of its all-reduces alone.

It is cheap enough for every run. It shares no code with the simulator; the complete audit, which also needs the
times of every compute task, is ``formulations.ddl_cluster.audit``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.heuristics.ddl_cluster.simulation import FastLog


class Conservation:
    """A check of one run, to which its record is given at once or chunk by chunk.

    Attributes
    ----------
    broken : every way in which the run breaks conservation; empty where it does not
    fastest : the largest ratio of latency + size b to the time that an all-reduce took; 0 where there is none

    Parameters
    ----------
    limit : how many all-reduces may be active on a server

    Notes
    -----
    One line of `broken` for each of

    - iterations: a job on one server takes less than iterations (forward + backward) from its placement; one on
      several does not have exactly one all-reduce per iteration, each at least forward + backward after the one
      before, the last at its finish; or a cycle that is said to repeat does not have the iterations that it counts
    - message: an all-reduce takes less than latency + size b
    - link: on a server, in some maximal period in which all-reduces are active, their sizes times b are more
      than its length; or more than `limit` are active at a time
    - GPU: in some maximal period in which jobs are placed on a GPU, their compute tasks are more than its length

    What skipped cycles repeat is conserved if one of them is: the run is looked at without them, the time that they
    take taken out on every server concerned (see _without). Chunks are looked at one after another: on a link those
    all-reduces together that ended in the same one, and a cycle is counted where it is whole in one. O(sum over
    servers of A log A) for A recorded all-reduces, vectorised.
    """

    def __init__(self, instance: DdlClusterInstance, limit: int) -> None:
        self.instance, self.limit = instance, limit
        clock = clock_of(instance)
        self.scale, self.solo = 10**clock.digits, clock.solo
        a, self.b, _ = instance.link.exact_parameters()
        self.broken: list[str] = []
        self.fastest = 0.0
        self.since = -1  # tick of the last all-reduce of the chunk before
        self.before = np.full(len(instance.jobs), -1, dtype=np.int64)  # last all-reduce of each job so far
        self.sent = np.zeros(len(instance.jobs), dtype=np.int64)
        self.least: list[
            tuple[int, int]
        ] = []  # whole ticks of the compute tasks of an iteration, and of an all-reduce alone
        for job in instance.jobs:
            compute, solo = exact(job.forward) + exact(job.backward), a + self.b * exact(job.message)
            self.least.append((_whole(compute * self.scale), _whole(solo * self.scale)))

    def add(self, log: FastLog, placement: Sequence[Sequence[Gpu]]) -> None:
        """Look at all-reduces that ended after those before; GPUs of each job as (server position, index)."""
        first_jump = np.searchsorted(log.jumps[:, 0], np.arange(len(self.instance.jobs) + 1))
        until = int(log.done.max()) if len(log.done) else self.since
        on_server: dict[int, list[int]] = {}
        for j in np.flatnonzero(np.diff(log.message_base)).tolist():
            for server in {server for server, _ in placement[j]}:
                on_server.setdefault(server, []).append(j)
            jumps = log.jumps[first_jump[j] : first_jump[j + 1]]
            part = slice(log.message_base[j], log.message_base[j + 1])
            self._job(j, jumps, log.admitted[part], log.done[part], int(log.placed[j]), until)
        for server, jobs in sorted(on_server.items()):
            parts = [slice(log.message_base[j], log.message_base[j + 1]) for j in jobs]
            skips = np.concatenate([log.jumps[first_jump[j] : first_jump[j + 1]] for j in jobs])
            skips = skips[np.unique(skips[:, 1], return_index=True)[1]]  # jobs of a server skip together
            begin = _without(skips, np.concatenate([log.admitted[part] for part in parts]))
            end = _without(skips, np.concatenate([log.done[part] for part in parts]))
            sizes = [np.full(p.stop - p.start, self.instance.jobs[j].message) for j, p in zip(jobs, parts, strict=True)]
            self._server(server, begin, end, np.concatenate(sizes))
        self.since = until

    def _job(self, j: int, jumps: Ints, admitted: Ints, end: Ints, placed: int, until: int) -> None:
        """The all-reduces of one job."""
        job, (shortest, message) = self.instance.jobs[j], self.least[j]
        first = placed if self.before[j] < 0 else self.before[j]
        taken, done = end - admitted, _without(jumps, end)
        before = _without(jumps, np.concatenate([[first], end[:-1]]))
        near = jumps[(jumps[:, 1] - jumps[:, 2] >= self.since) & (jumps[:, 1] <= until)]
        counted = [np.searchsorted(end, near[:, 1] - part, "right") for part in (near[:, 2], 0)]
        if (counted[1] - counted[0] != near[:, 4]).any() or (_without(jumps, admitted) - before < shortest).any():
            self.broken.append(f"job {job.id}: an iteration is missing or took less than its compute tasks")
        short = int((done - _without(jumps, admitted) < message).sum())
        if short:
            solo = message / self.scale
            text = f"{short} all-reduces take less than latency + size b = {solo:.9g} s"
            self.broken.append(f"job {job.id}: {text}")
        self.fastest = max(self.fastest, self.solo[j] / int(taken.min()) if taken.min() > 0 else math.inf)
        self.before[j] = end[-1]
        self.sent[j] += len(end)

    def _server(self, server: int, begin: Ints, end: Ints, size: NDArray[np.float64]) -> None:
        """The all-reduces on one server."""
        where = f"server {self.instance.servers[server].id}"
        order = np.argsort(begin, kind="stable")
        begin, size, ends = begin[order], size[order], np.sort(end)
        most = int((np.arange(1, len(begin) + 1) - np.searchsorted(ends, begin, "right")).max())
        if most > self.limit:
            self.broken.append(f"{where}: {most} all-reduces are active at a time, {self.limit} may be")
        over = _overload(begin, ends, size * float(self.b) * self.scale)
        if over > 1e-9 * float(ends[-1]) + len(begin):
            self.broken.append(f"{where}: messages take {over / self.scale:.3g} s more of the link than there is")

    def finish(self, log: FastLog, placement: Sequence[Sequence[Gpu]], finish: Ints) -> None:
        """Look at what only the whole run says: iterations of each job, its finish in ticks, GPUs."""
        on_gpu: dict[Gpu, list[int]] = {}
        first_jump = np.searchsorted(log.jumps[:, 0], np.arange(len(self.instance.jobs) + 1))
        for j, (job, gpus) in enumerate(zip(self.instance.jobs, placement, strict=True)):
            for gpu in gpus:
                on_gpu.setdefault(gpu, []).append(j)
            jumps = log.jumps[first_jump[j] : first_jump[j + 1]]
            if log.placed[j] < exact(job.arrival) * self.scale:
                self.broken.append(f"job {job.id}: placed before its arrival")
            if len({server for server, _ in gpus}) == 1:
                if self.sent[j] or finish[j] - log.placed[j] < job.iterations * self.least[j][0]:
                    text = "an iteration is missing, or there is an all-reduce on one server"
                    self.broken.append(f"job {job.id}: {text}")
            elif self.sent[j] + (jumps[:, 3] * jumps[:, 4]).sum() != job.iterations or self.before[j] != finish[j]:
                self.broken.append(f"job {job.id}: an iteration is missing or took less than its compute tasks")
        for (server, index), jobs in sorted(on_gpu.items()):
            order = np.argsort(log.placed[jobs], kind="stable")
            work = np.array([self.instance.jobs[j].iterations * self.least[j][0] for j in jobs], dtype=float)
            over = _overload(log.placed[jobs][order], np.sort(finish[jobs]), work[order])
            if over > 1e-9 * float(finish.max()):
                where = f"server {self.instance.servers[server].id}, GPU {index}"
                self.broken.append(f"{where}: tasks take {over / self.scale:.3g} s more than there is")


def _without(jumps: Ints, ticks: Ints) -> Ints:
    """Moments of a job or a server when the time of its skipped cycles, jumps in order, is taken out before them."""
    gone = np.concatenate([[0], np.cumsum(jumps[:, 2] * jumps[:, 3])])
    result: Ints = ticks - gone[np.searchsorted(jumps[:, 1], ticks)]
    return result


def _overload(begin: Ints, end: Ints, load: NDArray[np.float64]) -> float:
    """The largest excess of load over length among the maximal periods that the intervals cover.

    `begin` and `end` are sorted each for itself, `load` belongs to `begin`. The i-th interval opens a period when
    the i before it have ended by then.
    """
    first = np.concatenate([[0], np.flatnonzero(end[:-1] <= begin[1:]) + 1])
    last = np.concatenate([first[1:] - 1, [len(end) - 1]])
    excess = np.add.reduceat(load, first) - (end[last] - begin[first])
    return float(excess.max())


def _whole(ticks: Fraction) -> int:
    """The whole ticks in a duration: what it takes at least."""
    return ticks.numerator // ticks.denominator
