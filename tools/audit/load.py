"""What a log says of its cluster: load, peak demand, queues, and who waited while GPUs were idle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.formulations.common.arrays import Floats

LONGEST = 10
"""Jobs that are named."""


@dataclass(frozen=True)
class Clash:
    """A start for which a server had too few free GPUs."""

    # slot, server: when and where
    slot: int
    server: str
    missing: int  # GPUs that were not free
    jobs: tuple[str, ...]  # ids: the job that started, then those that held GPUs of the server


@dataclass(frozen=True)
class Steps:
    """A number that changes at moments: ``values[i]`` from ``moments[i]`` to the next; seconds."""

    moments: Floats
    values: Floats

    @property
    def peak(self) -> float:
        """The largest value."""
        return float(self.values.max(initial=0.0))


def steps(begin: Floats, end: Floats, amount: Floats, moments: Floats | None = None) -> Steps:
    """The sum of amounts from `begin` to `end`, at every moment; what ends counts no more when the next begins."""
    where = np.unique(np.concatenate([begin, end])) if moments is None else moments
    change = np.zeros(len(where))
    np.add.at(change, np.searchsorted(where, begin), amount)
    np.add.at(change, np.searchsorted(where, end), -amount)
    return Steps(where, np.cumsum(change))


@dataclass(frozen=True)
class Share:
    """Load and peak demand of one type or tenant."""

    # name, jobs: whose, and how many jobs
    name: str
    jobs: int
    capacity: int  # GPUs
    load: float | None  # offered load
    peak: float  # most GPUs wanted at once
    wait: float | None  # mean seconds, None without a record


@dataclass(frozen=True)
class Idle:
    """A job that waited while enough GPUs were idle."""

    id: str
    gpus: int
    waited: float  # seconds in all
    idle: float  # seconds of these with enough idle GPUs


@dataclass(frozen=True)
class Load:
    """Figures of a log that need no scheduler; times in seconds, GPU time in GPU seconds."""

    # jobs, capacity, span: how many, GPUs, and seconds from the first submission to the last end, or to the last
    # submission where there is no record
    jobs: int
    capacity: int
    span: float
    offered: float | None  # GPU time over capacity and span; None where it lasts no time
    # demand, busy: GPUs wanted if every job started when it was submitted; GPUs that really ran jobs, None without
    demand: Steps
    busy: Steps | None
    # queued, idle_queued, full_queued: GPU time of waiting; GPU time idle though a waiting job would have fitted; GPU
    # time of waiting while too few GPUs were idle
    queued: float | None
    idle_queued: float | None
    full_queued: float | None
    utilisation: float | None  # busy GPU time over capacity and span
    # kinds, tenants: by type and by tenant
    kinds: tuple[Share, ...]
    tenants: tuple[Share, ...]
    waited: tuple[Idle, ...]  # the jobs that waited longest while enough GPUs were idle


def load_of(
    jobs: Sequence[TraceJob],
    servers: Sequence[TraceServer],
    recorded: bool,  # every job has a start and an end
    # GPUs of each job on each server, where the record says so: then a job that asked for a type waits for that
    held: Mapping[str, Mapping[str, int]] | None = None,
) -> Load:
    """The load of these jobs on these servers.

    Notes
    -----
    O(J log J + J K) for K different requests (GPUs and type); 82,000 jobs take a second or two.
    """
    capacity = sum(server.gpus for server in servers)
    submit = np.array([job.arrival for job in jobs])
    length = np.array([job.duration or 0.0 for job in jobs])
    gpus = np.array([float(job.gpus) for job in jobs])
    part = gpus * np.array([job.share for job in jobs])
    last = max(job.end or 0.0 for job in jobs) if recorded else float(submit.max())
    span = last - float(submit.min())
    start = np.array([job.start if recorded and job.start is not None else np.nan for job in jobs])

    def share(name: str, chosen: NDArray[np.bool_], room: int) -> Share:
        wanted = steps(submit[chosen], (submit + length)[chosen], gpus[chosen])
        offered = float(part[chosen] @ length[chosen]) / room / span if span > 0 else None
        wait = float((start - submit)[chosen].mean()) if recorded else None
        return Share(name, int(chosen.sum()), room, offered, wanted.peak, wait)

    def shares(of: Callable[[TraceJob], str | None], room: Mapping[str, int]) -> tuple[Share, ...]:
        names = np.array([of(job) or "any" for job in jobs])
        found = [share(str(name), names == name, room.get(str(name), capacity)) for name in np.unique(names)]
        return tuple(sorted(found, key=lambda one: -(one.load or 0.0))) if len(found) > 1 else ()

    by_kind: dict[str, int] = {}
    for server in servers:
        by_kind[server.kind or "any"] = by_kind.get(server.kind or "any", 0) + server.gpus
    kinds = shares(lambda job: job.asked if job.asked in by_kind else None, by_kind)
    tenants = shares(lambda job: job.tenant, {})
    demand = steps(submit, submit + length, gpus)
    offered = float(part @ length) / capacity / span if span > 0 else None
    if not recorded:
        nothing = (None, None, None, None, None)
        return Load(len(jobs), capacity, span, offered, demand, *nothing, kinds, tenants, ())
    end = np.array([job.end or 0.0 for job in jobs])
    moments = np.unique(np.concatenate([submit, start, end]))
    busy = steps(start, end, gpus, moments)
    queues = _Queues(jobs, servers, held, moments, submit, start, end, gpus)
    used = float(part @ (end - start)) / capacity / span if span > 0 else None
    queued, idle, full = queues.totals()
    return Load(
        *(len(jobs), capacity, span, offered, demand, busy, queued, idle, full, used, kinds, tenants, queues.longest())
    )


class _Queues:
    """Free GPUs and waiting jobs at every moment, by what jobs asked for."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        servers: Sequence[TraceServer],
        held: Mapping[str, Mapping[str, int]] | None,
        moments: Floats,
        submit: Floats,
        start: Floats,
        end: Floats,
        gpus: Floats,
    ) -> None:
        self.jobs, self.moments, self.submit, self.start, self.gpus = jobs, moments, submit, start, gpus
        self.lengths = np.append(np.diff(moments), 0.0)
        everything = float(sum(server.gpus for server in servers))
        self.free = {"": everything - steps(start, end, gpus, moments).values}
        kind_of = {server.id: server.kind for server in servers}
        if held is not None:
            for kind in {server.kind for server in servers if server.kind}:
                there = float(sum(server.gpus for server in servers if server.kind == kind))
                amount = np.array(
                    [sum(n for at, n in held[job.id].items() if kind_of.get(at) == kind) for job in jobs], dtype=float
                )
                self.free[kind] = there - steps(start, end, amount, moments).values
        asked = [job.asked if job.asked in self.free else "" for job in jobs]
        self.requests: dict[tuple[str, int], list[int]] = {}
        for k, (kind, job) in enumerate(zip(asked, jobs, strict=True)):
            self.requests.setdefault((str(kind), job.gpus), []).append(k)

    def totals(self) -> tuple[float, float, float]:
        """GPU time queued, idle though a waiting job would have fitted, and queued while too few were idle."""
        fitting = np.zeros(len(self.moments))
        queued = full = 0.0
        for (kind, amount), members in self.requests.items():
            waiting = steps(self.submit[members], self.start[members], self.gpus[members], self.moments).values
            fits = self.free[kind] >= amount
            fitting += np.where(fits, np.minimum(waiting, self.free[kind]), 0.0)
            queued += float(waiting @ self.lengths)
            full += float(waiting[~fits] @ self.lengths[~fits])
        idle = np.minimum(np.maximum(self.free[""], 0.0), fitting)
        return queued, float(idle @ self.lengths), full

    def longest(self) -> tuple[Idle, ...]:
        """The jobs that waited longest while enough GPUs were idle."""
        waits_idle = []
        for (kind, amount), members in self.requests.items():
            enough = np.concatenate([[0.0], np.cumsum((self.free[kind] >= amount) * self.lengths)])
            idle = np.interp(self.start[members], self.moments, enough[:-1])
            idle -= np.interp(self.submit[members], self.moments, enough[:-1])
            waits_idle += [(float(seconds), k) for seconds, k in zip(idle, members, strict=True) if seconds > 0]
        named = sorted(waits_idle, key=lambda one: (-one[0], one[1]))[:LONGEST]
        waits = self.start - self.submit
        return tuple(Idle(self.jobs[k].id, self.jobs[k].gpus, float(waits[k]), idle) for idle, k in named)
