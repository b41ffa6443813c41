"""List scheduling that holds GPUs in its plain form: every block that waits is tried at every moment."""

from __future__ import annotations

import heapq
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
