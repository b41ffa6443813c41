"""List scheduling that holds GPUs in its plain form: every block that waits is tried at every moment."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence

from schedgap.solvers.exact.ddl_cluster.gangs import Block, Gangs


def plain_listed(gangs: Gangs, groups: Iterable[tuple[int, ...]], ready: Sequence[int]) -> list[Block]:
    """The blocks of what Gangs.listed means."""

    def arrived(own: tuple[int, ...]) -> int:
        return max(ready[j] for j in own)

    free = [[0] * (size + 1) for size in gangs.sizes]
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
            held, start = gangs._held(own, free, now)
            if start > now:
                kept.append((length, own))
                continue
            end = now + max(gangs.lengths(own))
            heapq.heappush(moments, end)
            gangs._hold(own, held, free, end)
            blocks.append(Block(own, now))
        waiting = kept
    return blocks


def plain_queue(gangs: Gangs, passing: bool) -> list[Block]:
    """The jobs of fifo-hold, or easy-hold where some may pass, in the order in which they begin."""
    free = [[0] * (size + 1) for size in gangs.sizes]
    waiting = sorted(range(len(gangs.alone)), key=lambda j: (gangs.arrival[j], j))
    moments = sorted(set(gangs.arrival))
    blocks: list[Block] = []

    def begins(j: int, until: float) -> bool:
        """Whether a job begins, if it may end by then; it does at once where it can."""
        held, start = gangs._held((j,), free, now)
        if gangs.arrival[j] > now or start > now or now + gangs.alone[j] > until:
            return False
        gangs._hold((j,), held, free, now + gangs.alone[j])
        heapq.heappush(moments, now + gangs.alone[j])
        blocks.append(Block((j,), now))
        waiting.remove(j)
        return True

    while waiting:
        now = heapq.heappop(moments)
        while waiting and begins(waiting[0], math.inf):
            pass
        if waiting and passing and gangs.arrival[waiting[0]] <= now:
            reserved = gangs._held((waiting[0],), free, now)[1]
            for j in sorted(waiting[1:], key=lambda j: (gangs.alone[j], j)):
                begins(j, reserved)
    return blocks
