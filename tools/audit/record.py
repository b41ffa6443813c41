"""The recorded schedule, rebuilt: starts as they were, and indices of GPUs by colouring intervals."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.formulations.common.instance import LARGEST_COUNT
from schedgap.tools.audit.load import Clash, steps


@dataclass(frozen=True)
class Rebuilt:
    """The recorded schedule."""

    starts: Mapping[str, int]  # first slot of each job
    gpus: Mapping[str, Sequence[Sequence[object]]]  # server and index of each GPU of each job
    held: Mapping[str, Mapping[str, int]]  # GPUs of each job on each server
    clashes: tuple[Clash, ...]  # where it cannot be a schedule of this cluster


_CLOSE = 1e-6
"""Share of a slot that rounding may take from a time of whole slots."""


def slot_of(jobs: Sequence[TraceJob], time_scale: float) -> float:
    """Seconds of a slot in which all times are whole: a second of the log, or a tenth to a thousandth.

    Where a thousandth is too long or makes too many slots, the finest that does not; times are then rounded down.
    """
    times = np.array([(job.arrival, job.start or 0.0, job.duration or 0.0) for job in jobs]) / time_scale
    total = float(times.sum(axis=1).max() + times[:, 2].sum())
    units = [unit for unit in (1.0, 0.1, 0.01, 0.001) if unit == 1.0 or total / unit < LARGEST_COUNT / 2]
    whole = (unit for unit in units if np.abs(times / unit - np.rint(times / unit)).max(initial=0.0) < _CLOSE)
    return time_scale * next(whole, units[-1])


def slots_of(job: TraceJob, slot_length: float) -> tuple[int, int, int | None]:
    """Slots of a job: that of its arrival, how many it runs, and its first, None without a record.

    A slot ends where the next begins, so whole slots are exact.
    """
    arrival = 1 + math.floor(job.arrival / slot_length + _CLOSE)
    if job.start is None or job.end is None:
        return arrival, max(1, round((job.duration or 0.0) / slot_length)), None
    first = 1 + math.floor(job.start / slot_length + _CLOSE)
    return arrival, max(1, 1 + math.floor(job.end / slot_length + _CLOSE) - first), first


def from_eligible(jobs: Sequence[TraceJob]) -> tuple[list[TraceJob], set[str], set[str]]:
    """The jobs as if submitted when they became eligible, the ids of those that move, and of those nobody knows it of.

    Before it is eligible no scheduler may start a job: it waits for a time that it named, another job or a hold. A
    moment before its submission or after its start is none. Of a job that started at once nobody needs it.
    """
    found, late, unknown = list[TraceJob](), set[str](), set[str]()
    for job in jobs:
        latest = math.inf if job.start is None else job.start
        if job.eligible is None or not job.arrival <= job.eligible <= latest:
            unknown |= {job.id} if job.arrival < latest else set()
        elif job.eligible > job.arrival:
            late.add(job.id)
            job = replace(job, arrival=job.eligible)
        found.append(job)
    return found, late, unknown


def placed_on(jobs: Sequence[TraceJob], servers: Sequence[TraceServer]) -> str | None:
    """Why the record does not say on which of these servers every job ran; None where it does."""
    known = {server.id for server in servers}
    without = sum(not job.nodes for job in jobs)
    elsewhere = next((node for job in jobs for node, _ in job.nodes if node not in known), None)
    if without == len(jobs):
        return "the log does not say where jobs ran"
    if without:
        return f"the log does not say where {without} of {len(jobs)} jobs ran"
    return None if elsewhere is None else f"jobs ran on {elsewhere}, which is not among the servers"


def rebuild(jobs: Sequence[TraceJob], servers: Sequence[TraceServer], slot_length: float = 1.0) -> Rebuilt:
    """The recorded schedule on these servers; a job without nodes may be on any of them.

    Jobs are taken by their start; each gets free indices of its servers, which is always possible where no more are
    busy than there are (colouring of intervals). Of a job on several servers the log may not say how many GPUs it had
    on each: :func:`_splits` finds shares. Where too few are free, busy ones are taken: the checker then tells.

    Notes
    -----
    O(J log J + G) for J jobs with G GPUs in all; each job on several servers looks at all others there.
    """
    size = {server.id: server.gpus for server in servers}
    free = {server.id: list(range(server.gpus - 1, -1, -1)) for server in servers}
    starts: dict[str, int] = {}
    gpus: dict[str, list[list[object]]] = {}
    held: dict[str, dict[str, int]] = {}
    running: list[tuple[int, int]] = []
    on: dict[str, set[int]] = {server.id: set() for server in servers}
    clashes = []
    spans = [slots_of(job, slot_length) for job in jobs]
    order = sorted(range(len(jobs)), key=lambda k: (spans[k][2] or 0, k))
    splits = _splits(jobs, spans, order, size)
    for k in order:
        job, (_, length, first) = jobs[k], spans[k]
        assert first is not None  # only jobs with a record are asked for
        while running and running[0][0] <= first:
            _, ended = heapq.heappop(running)
            for server, index in gpus[jobs[ended].id]:
                free[str(server)].append(int(str(index)))
            for server in held[jobs[ended].id]:
                on[server].discard(ended)
        shares = splits[k] if job.nodes else _even(job.gpus, _any(free, job.gpus))
        got: list[list[object]] = []
        for server, amount in shares.items():
            indices = [free[server].pop() for _ in range(min(amount, len(free[server])))]
            if len(indices) < amount:
                names = (job.id, *(jobs[other].id for other in sorted(on[server])))
                clashes.append(Clash(first, server, amount - len(indices), names))
                busy = [index for index in range(size[server]) if index not in indices]
                indices += (busy + [0] * amount)[: amount - len(indices)]
            got += [[server, index] for index in indices]
            on[server].add(k)
        starts[job.id], gpus[job.id] = first, got
        held[job.id] = {server: amount for server, amount in shares.items() if amount}
        heapq.heappush(running, (first + length, k))
    return Rebuilt(starts, gpus, held, tuple(clashes))


def _splits(
    jobs: Sequence[TraceJob],
    spans: Sequence[tuple[int, int, int | None]],
    order: Sequence[int],
    size: Mapping[str, int],
) -> dict[int, dict[str, int]]:
    """GPUs of each job that names its servers, on each of them.

    As the log says; else even shares, as far as the others leave room there all the while that it ran: those whose
    shares are known come first, then by start. So a job that cannot have lain evenly does not.
    """
    splits: dict[int, dict[str, int]] = {}
    on: dict[str, list[tuple[int, int, int]]] = {server: [] for server in size}

    def put(k: int, shares: dict[str, int]) -> None:
        splits[k] = shares
        begin = spans[k][2] or 0
        for server, amount in shares.items():
            on[server].append((begin, begin + spans[k][1], amount))

    open_splits = []
    for k in order:
        said = {node: amount for node, amount in jobs[k].nodes if amount is not None}
        if len(jobs[k].nodes) == 1:
            put(k, {jobs[k].nodes[0][0]: jobs[k].gpus})
        elif said and sum(said.values()) == jobs[k].gpus:
            put(k, said)
        elif jobs[k].nodes:
            open_splits.append(k)
    for k in open_splits:
        begin, end = spans[k][2] or 0, (spans[k][2] or 0) + spans[k][1]
        room = {}
        for node, _ in jobs[k].nodes:
            beside = np.array([row for row in on[node] if row[0] < end and row[1] > begin], dtype=float).reshape(-1, 3)
            taken = steps(np.maximum(beside[:, 0], begin), np.minimum(beside[:, 1], end), beside[:, 2]).peak
            room[node] = max(0, size[node] - int(taken))
        put(k, _even(jobs[k].gpus, room))
    return splits


def _any(free: Mapping[str, Sequence[int]], wanted: int) -> dict[str, int]:
    """Servers for a job that may be anywhere: those with free GPUs, until there are enough."""
    found: dict[str, int] = {}
    for server, indices in free.items():
        if indices and sum(found.values()) < wanted:
            found[server] = len(indices)
    return found or {next(iter(free)): 0}


def _even(gpus: int, room: Mapping[str, int]) -> dict[str, int]:
    """So many GPUs on these servers: even shares as far as there is room, the rest where there is more."""
    rest = gpus
    shares = dict.fromkeys(room, 0)
    for position, server in enumerate(room):
        shares[server] = min(room[server], -(-rest // (len(room) - position)))
        rest -= shares[server]
    for server in room:  # what did not fit where it was even
        more = min(rest, room[server] - shares[server])
        shares[server] += more
        rest -= more
    shares[next(iter(room))] += rest
    return shares
