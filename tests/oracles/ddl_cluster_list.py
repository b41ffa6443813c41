"""List scheduling that holds GPUs in its plain form: every block that waits is tried at every moment.

Which GPUs a job gets is written here from what the methods' pages say, and shares nothing with the code but how long
blocks take: all that is kept is who holds what until when.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.solvers.exact.ddl_cluster.gangs import Block, Gangs

Laid = tuple[list[Block], dict[int, tuple[Gpu, ...]]]
"""Blocks in the order in which they begin, and each job's GPUs."""


class Holding:
    """Who holds what until when.

    A job on one server holds its GPUs. One that is given GPUs on several holds these and the servers' links. One
    that is wider than any server, and is given none, holds whole servers with their links.
    """

    def __init__(self, instance: DdlClusterInstance) -> None:
        self.instance = instance
        self.size = {s: server.gpus for s, server in enumerate(instance.servers)}
        self.ends: dict[Gpu | int, list[int]] = {}  # of those that have held a GPU, or a server's link
        self.gpus: dict[int, tuple[Gpu, ...]] = {}

    def is_free(self, what: Gpu | int, now: int) -> bool:
        """Whether nobody holds a GPU or a link any more."""
        return all(end <= now for end in self.ends.get(what, []))

    def across(self, j: int) -> bool:
        """Whether a job needs more than one server."""
        given = self.instance.given[j]
        if given is None:
            return self.instance.jobs[j].gpus > max(self.size.values())
        return len({s for s, _ in given}) > 1

    def choice(self, j: int, now: int) -> tuple[Gpu, ...] | None:
        """The GPUs with which a job would begin now; None where it cannot."""
        given, need = self.instance.given[j], self.instance.jobs[j].gpus
        if given is not None:
            links = {s for s, _ in given} if self.across(j) else set()
            return given if all(self.is_free(what, now) for what in [*given, *links]) else None
        idle = {s: [g for g in range(size) if self.is_free((s, g), now)] for s, size in self.size.items()}
        if self.across(j):
            whole = [s for s, size in self.size.items() if len(idle[s]) == size and self.is_free(s, now)]
            every = [(s, g) for s in whole for g in range(self.size[s])]
            return tuple(every[:need]) if len(every) >= need else None
        enough = {s: own for s, own in idle.items() if len(own) >= need}
        if not enough:
            return None
        s = min(enough, key=lambda s: (len(enough[s]), s))  # the one with the least room, and of its GPUs the
        longest_idle = sorted(enough[s], key=lambda g: (max(self.ends.get((s, g), [0])), g))  # longest idle
        return tuple((s, g) for g in sorted(longest_idle[:need]))

    def begin(self, jobs: Sequence[int], gpus: tuple[Gpu, ...], end: int) -> None:
        """The jobs hold these, and what goes with them, until the end."""
        taken: set[Gpu | int] = {*gpus}
        if self.across(jobs[0]):
            taken |= {s for s, _ in gpus}
            if self.instance.given[jobs[0]] is None:
                taken |= {(s, g) for s, _ in gpus for g in range(self.size[s])}
        for what in taken:
            self.ends.setdefault(what, []).append(end)
        self.gpus |= dict.fromkeys(jobs, gpus)

    def first_room(self, j: int, now: int) -> int:
        """When a job could begin if nothing else did."""
        moments = sorted({now, *(end for ends in self.ends.values() for end in ends if end > now)})
        return next(moment for moment in moments if self.choice(j, moment) is not None)


def plain_listed(gangs: Gangs, groups: Iterable[tuple[int, ...]], ready: Sequence[int]) -> Laid:
    """What Gangs.listed means."""

    def arrived(own: tuple[int, ...]) -> int:
        return max(ready[j] for j in own)

    cluster = Holding(gangs.instance)
    coming = sorted(groups, key=lambda own: (arrived(own), own), reverse=True)
    moments = sorted({arrived(own) for own in coming})
    waiting: list[tuple[float, tuple[int, ...]]] = []
    blocks: list[Block] = []
    while coming or waiting:
        now = heapq.heappop(moments)
        while coming and arrived(coming[-1]) <= now:
            own = coming.pop()
            waiting.append((sum(gangs.lengths(own)) / len(own) ** 2, own))
        waiting.sort()
        kept = []
        for length, own in waiting:
            gpus = cluster.choice(own[0], now)
            if gpus is None:
                kept.append((length, own))
                continue
            end = now + max(gangs.lengths(own))
            heapq.heappush(moments, end)
            cluster.begin(own, gpus, end)
            blocks.append(Block(own, now))
        waiting = kept
    return blocks, cluster.gpus


def plain_queue(gangs: Gangs, passing: bool) -> Laid:
    """The jobs of fifo-hold, or easy-hold where some may pass."""
    cluster = Holding(gangs.instance)
    waiting = sorted(range(len(gangs.alone)), key=lambda j: (gangs.arrival[j], j))
    moments = sorted(set(gangs.arrival))
    blocks: list[Block] = []

    def begins(j: int, until: float) -> bool:
        """Whether a job begins, if it may end by then; it does at once where it can."""
        end = now + gangs.alone[j]
        gpus = cluster.choice(j, now) if gangs.arrival[j] <= now and end <= until else None
        if gpus is None:
            return False
        cluster.begin((j,), gpus, end)
        heapq.heappush(moments, end)
        blocks.append(Block((j,), now))
        waiting.remove(j)
        return True

    while waiting:
        now = heapq.heappop(moments)
        while waiting and begins(waiting[0], math.inf):
            pass
        if waiting and passing and gangs.arrival[waiting[0]] <= now:
            reserved = cluster.first_room(waiting[0], now)
            for j in sorted(waiting[1:], key=lambda j: (gangs.alone[j], j)):
                begins(j, reserved)
    return blocks, cluster.gpus
