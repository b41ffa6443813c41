"""Certified lower bounds on the mean JCT, at any size."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance

_MARGIN = 1e-12
"""What the rounding of sums in floating point may have added, relative."""


@dataclass(frozen=True)
class Piece:
    """What one job needs of one resource.

    Attributes
    ----------
    job : its position
    release : seconds, before which it needs nothing
    work : seconds that the resource is busy for it in all
    tail : seconds from the end of that work to the job's finish, at least
    after_mean : seconds from the mean moment of that work to the job's finish, at least
    """

    job: int
    release: float
    work: float
    tail: float
    after_mean: float


def lower_bound(instance: DdlClusterInstance) -> float:
    """A lower bound on the mean of finish - arrival, in seconds.

    The largest of, with c_j = forward + backward, m_j = a + b message where job j spans servers for certain
    (given so, or wider than any server) and 0 otherwise, and I_j iterations:

    1. every job alone: sum I_j (c_j + m_j);
    2. a resource as one machine that may preempt, its jobs bounded together and the others alone. Resources are
       all N GPUs as one machine N times as fast (work G_j I_j c_j / N), all S links likewise (work
       h_j I_j b message_j / S, h_j the servers it spans at least), and, where every job on it is placed, each
       GPU (I_j c_j) and each link (I_j b message_j). A link moves at most 1 / b in all, since
       k / (k b + (k - 1) eta) <= 1 / b. For a machine, both of
       (a) shortest remaining work first, which minimises the sum of the ends of the work, plus the tails, and
       (b) smallest total work first, preemptive, which minimises the sum of mean busy times, plus at least
       (I_j (c_j + m_j) + m_j) / 2 from there to the finish for compute work, I_j (c_j + m_j) / 2 - c_j / 2 for
       messages (the iterations' work comes in equal parts, one iteration at least c_j + m_j after the other).

    Returns
    -------
    Seconds. It holds for any schedule, not only for those of the policies.

    Notes
    -----
    O(R J log J) for R resources that are bounded on their own.
    """
    alone = alone_times(instance)
    best = sum(alone)
    for pieces in _resources(instance):
        jobs = {piece.job for piece in pieces}
        rest = sum(time for j, time in enumerate(alone) if j not in jobs)
        arrivals = sum(instance.jobs[j].arrival for j in jobs)
        ends = shortest_first(pieces) + sum(piece.tail for piece in pieces)
        means = mean_busy(pieces) + sum(piece.after_mean for piece in pieces)
        best = max(best, rest + max(ends, means) - arrivals - _MARGIN * (ends + means))
    return best / len(alone) * (1 - _MARGIN)


def alone_times(instance: DdlClusterInstance) -> list[float]:
    """By job, seconds from its arrival to its finish at the least."""
    return [
        job.iterations * (job.forward + job.backward + message)
        for job, message in zip(instance.jobs, _message_times(instance), strict=True)
    ]


def servers_spanned(instance: DdlClusterInstance) -> list[int]:
    """By job, the number of servers it spans at the least: of its given placement, or of any."""
    sizes = sorted((server.gpus for server in instance.servers), reverse=True)
    spanned = []
    for job, given in zip(instance.jobs, instance.given, strict=True):
        if given is not None:
            spanned.append(len({server for server, _ in given}))
            continue
        count, room = 0, 0
        while room < job.gpus:
            room += sizes[count]
            count += 1
        spanned.append(count)
    return spanned


def _message_times(instance: DdlClusterInstance) -> list[float]:
    """By job, seconds of an all-reduce on its own; 0 where it may need none."""
    link = instance.link
    return [
        link.latency + link.seconds_per_unit * job.message if servers > 1 else 0.0
        for job, servers in zip(instance.jobs, servers_spanned(instance), strict=True)
    ]


def _resources(instance: DdlClusterInstance) -> list[list[Piece]]:
    """What the jobs need of each resource that is worth a bound."""
    jobs, link = instance.jobs, instance.link
    messages, spanned = _message_times(instance), servers_spanned(instance)

    def computing(j: int, share: float) -> Piece:
        job = jobs[j]
        compute = job.forward + job.backward
        whole = job.iterations * (compute + messages[j])
        return Piece(j, job.arrival, job.iterations * compute * share, messages[j], (whole + messages[j]) / 2)

    def sending(j: int, share: float) -> Piece:
        job = jobs[j]
        compute = job.forward + job.backward
        transfer = link.seconds_per_unit * job.message
        release = job.arrival + compute + link.latency
        between = (job.iterations - 1) * (compute + messages[j]) / 2
        return Piece(j, release, job.iterations * transfer * share, 0.0, between + transfer / 2)

    everyone = range(len(jobs))
    resources = [[computing(j, jobs[j].gpus / instance.total_gpus) for j in everyone]]
    resources.append([sending(j, spanned[j] / len(instance.servers)) for j in everyone if spanned[j] > 1])
    on_gpu: dict[tuple[int, int], list[Piece]] = {}
    on_link: dict[int, list[Piece]] = {}
    for j, given in enumerate(instance.given):
        for gpu in given or ():
            on_gpu.setdefault(gpu, []).append(computing(j, 1.0))
        if given is not None and spanned[j] > 1:
            for server in sorted({server for server, _ in given}):
                on_link.setdefault(server, []).append(sending(j, 1.0))
    resources += [*on_gpu.values(), *on_link.values()]
    return [pieces for pieces in resources if len(pieces) > 1]


def shortest_first(pieces: Sequence[Piece]) -> float:
    """The sum of the ends of the work under shortest remaining work first: the least there is (Schrage 1968)."""
    coming = sorted(pieces, key=lambda piece: piece.release)
    waiting: list[float] = []
    now = total = 0.0
    for position in range(len(coming) + 1):
        until = coming[position].release if position < len(coming) else float("inf")
        while waiting and now + waiting[0] <= until:
            now += heapq.heappop(waiting)
            total += now
        if waiting and now < until:
            heapq.heapreplace(waiting, waiting[0] - (until - now))
        if position < len(coming):
            now = max(now, until)
            heapq.heappush(waiting, coming[position].work)
    return total


def mean_busy(pieces: Sequence[Piece]) -> float:
    """The sum of mean busy times under smallest total work first: the least there is (Goemans 1997)."""
    coming = sorted(pieces, key=lambda piece: piece.release)
    waiting: list[tuple[float, int, float]] = []
    now = total = 0.0
    for position in range(len(coming) + 1):
        until = coming[position].release if position < len(coming) else float("inf")
        while waiting and now < until:
            work, index, left = waiting[0]
            step = min(left, until - now)
            total += step / work * (now + step / 2)
            now += step
            if step < left:
                heapq.heapreplace(waiting, (work, index, left - step))
            else:
                heapq.heappop(waiting)
        if position < len(coming):
            now = max(now, until)
            piece = coming[position]
            heapq.heappush(waiting, (piece.work, position, piece.work))
    return total
