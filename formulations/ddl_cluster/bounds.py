"""Certified lower bounds on the mean JCT, at any size."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance

_MARGIN = 1e-12
"""What the rounding of sums in floating point may have added, relative."""

SHARE_GRID = 2**20
"""Shares are whole multiples of 1 / SHARE_GRID, so that a certificate adds up the very same ones."""

_ROUNDS = 200
_MOST_PIECES = 100_000
"""Pieces that the search for shares goes through in all: well below a second."""

Resource = str | int | tuple[int, int]
"""``gpus`` or ``links`` of all servers, the link of a server by position, a GPU by (server, index)."""


@dataclass(frozen=True)
class Piece:
    """What one job needs of one resource."""

    job: int  # its position
    release: float  # seconds, before which it needs nothing
    work: float  # seconds that the resource is busy for it in all
    tail: float  # seconds from the end of that work to the job's finish, at least
    after_mean: float  # seconds from the mean moment of that work to the job's finish, at least


@once_per_instance
def lower_bound(instance: DdlClusterInstance) -> float:
    """A lower bound on the mean of finish - arrival, in seconds: the better one of the two below.

    Returns
    -------
    Seconds. It holds for any schedule, not only for those of the policies.
    """
    return max(resource_bound(instance), shared_bound(instance, shares(instance)))


def resource_bound(instance: DdlClusterInstance) -> float:
    """A lower bound on the mean of finish - arrival by one resource, in seconds.

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

    Notes
    -----
    O(R J log J) for R resources that are bounded on their own.
    """
    alone = alone_times(instance)
    best = sum(alone)
    for pieces in _resources(instance).values():
        jobs = {piece.job for piece in pieces}
        rest = sum(time for j, time in enumerate(alone) if j not in jobs)
        arrivals = sum(instance.jobs[j].arrival for j in jobs)
        ends = shortest_first(pieces) + sum(piece.tail for piece in pieces)
        means = mean_busy(pieces) + sum(piece.after_mean for piece in pieces)
        best = max(best, rest + max(ends, means) - arrivals - _MARGIN * (ends + means))
    return best / len(alone) * (1 - _MARGIN)


def shared_bound(instance: DdlClusterInstance, given: Mapping[Resource, Mapping[int, int]]) -> float:
    """A lower bound on the mean of finish - arrival by several resources at once, in seconds.

    With shares u_rj >= 0 whose sum over the resources is at most 1 for each job, and C_rj what resource r alone says of
    job j (mean busy time plus the rest, see :func:`resource_bound`), finish_j - arrival_j >= sum_r u_rj C_rj +
    (1 - sum_r u_rj) alone_j. On a machine that may pause, sum_j u_rj M_j of the mean busy times M is least when the
    job of the largest u_rj / work that is there runs (Goemans 1997).

    Parameters
    ----------
    given : shares by resource and job, in units of 1 / SHARE_GRID
    """
    alone = alone_times(instance)
    total, sums = sum(alone), 0.0
    for resource, pieces in _resources(instance).items():
        own = given.get(resource, {})
        for piece, busy in _weighted(pieces, own):
            share = own[piece.job] / SHARE_GRID
            there = busy + piece.after_mean
            total += share * (there - instance.jobs[piece.job].arrival - alone[piece.job])
            sums += share * there
    return (total - _MARGIN * sums) / len(alone) * (1 - _MARGIN)


@once_per_instance
def shares(instance: DdlClusterInstance) -> dict[Resource, dict[int, int]]:
    """Shares for :func:`shared_bound`, by subgradient ascent from equal ones; in units of 1 / SHARE_GRID.

    Notes
    -----
    At most 200 rounds of O(P log P) for P pieces of work; fewer for more than 500 pieces. The bound is concave in the
    shares, a subgradient is what the resource says of a job less what the job needs alone.
    """
    alone = alone_times(instance)
    resources = _resources(instance)
    if not resources:
        return {}
    has = np.zeros((len(resources), len(alone)), dtype=bool)
    for r, pieces in enumerate(resources.values()):
        has[r, [piece.job for piece in pieces]] = True
    share = has / np.maximum(1, has.sum(axis=0))
    best, kept, step, vain = -np.inf, share, 1.0, 0
    for _ in range(min(_ROUNDS, _MOST_PIECES // max(1, int(has.sum())))):
        gain = np.zeros(has.shape)
        for r, pieces in enumerate(resources.values()):
            # a job without a share comes last
            for piece, busy in _weighted(pieces, dict(enumerate(np.maximum(share[r], 1e-9).tolist()))):
                gain[r, piece.job] = busy + piece.after_mean - instance.jobs[piece.job].arrival - alone[piece.job]
        value = float((share * gain).sum())
        if value > best:
            best, kept, vain = value, share, 0
        else:
            step, vain = (step * 0.7, 0) if vain == 4 else (step, vain + 1)
        share = _projected(share + step * gain / max(1e-300, float(np.abs(gain).max(initial=0.0))), has)
    whole = np.floor(kept * SHARE_GRID).astype(np.int64)
    return {
        resource: {int(j): int(whole[r, j]) for j in np.flatnonzero(whole[r])} for r, resource in enumerate(resources)
    }


def _projected(share: NDArray[np.float64], has: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The nearest shares of at least 0 that sum to at most 1 by column, 0 where a job does not use the resource."""
    share = np.where(has, np.maximum(share, 0.0), 0.0)
    falling = -np.sort(-share, axis=0)
    over = (np.cumsum(falling, axis=0) - 1.0) / np.arange(1, len(share) + 1)[:, None]
    count = (falling > over).sum(axis=0)
    cut = np.take_along_axis(over, np.maximum(0, count - 1)[None, :], axis=0)
    return np.where(share.sum(axis=0) > 1.0, np.maximum(0.0, share - cut) * has, share)


def alone_times(instance: DdlClusterInstance) -> list[float]:
    """The least seconds from each job's arrival to its finish."""
    return [
        job.iterations * (job.forward + job.backward + message)
        for job, message in zip(instance.jobs, _message_times(instance), strict=True)
    ]


def servers_spanned(instance: DdlClusterInstance) -> list[int]:
    """The least number of servers that each job spans: of its given placement, or of any."""
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
    """The seconds of each job's all-reduce on its own; 0 where it may need none."""
    link = instance.link
    return [
        link.latency + link.seconds_per_unit * job.message if servers > 1 else 0.0
        for job, servers in zip(instance.jobs, servers_spanned(instance), strict=True)
    ]


def _resources(instance: DdlClusterInstance) -> dict[Resource, list[Piece]]:
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
    resources: dict[Resource, list[Piece]] = {
        "gpus": [computing(j, jobs[j].gpus / instance.total_gpus) for j in everyone],
        "links": [sending(j, spanned[j] / len(instance.servers)) for j in everyone if spanned[j] > 1],
    }
    for j, given in enumerate(instance.given):
        for gpu in given or ():
            resources.setdefault(gpu, []).append(computing(j, 1.0))
        if given is not None and spanned[j] > 1:
            for server in sorted({server for server, _ in given}):
                resources.setdefault(server, []).append(sending(j, 1.0))
    return {resource: pieces for resource, pieces in resources.items() if len(pieces) > 1}


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
    return sum(busy for _, busy in _weighted(pieces, {piece.job: 1.0 for piece in pieces}))


def _weighted(pieces: Sequence[Piece], weight: Mapping[int, float]) -> Iterator[tuple[Piece, float]]:
    """(piece, mean busy time) where the largest weight / work first has the least weighted sum of them.

    Pieces without weight are left out.
    """
    coming = sorted((piece for piece in pieces if weight.get(piece.job, 0)), key=lambda piece: piece.release)
    waiting: list[tuple[float, int, float]] = []
    busy = [0.0] * len(coming)
    now = 0.0
    for position in range(len(coming) + 1):
        until = coming[position].release if position < len(coming) else float("inf")
        while waiting and now < until:
            rank, index, remaining = waiting[0]
            step = min(remaining, until - now)
            busy[index] += step / coming[index].work * (now + step / 2)
            now += step
            if step < remaining:
                heapq.heapreplace(waiting, (rank, index, remaining - step))
            else:
                heapq.heappop(waiting)
        if position < len(coming):
            now = max(now, until)
            piece = coming[position]
            heapq.heappush(waiting, (piece.work / weight[piece.job], position, piece.work))
    return zip(coming, busy, strict=True)
