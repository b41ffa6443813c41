"""A quick schedule without contention, for where nothing better is known."""

from __future__ import annotations

import heapq
import math

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution


def one_at_a_time(instance: CommContentionInstance) -> Solution:
    """Whenever the link is free, the smallest task that is there starts; always feasible.

    Parameters
    ----------
    instance : the instance

    Notes
    -----
    O(n log n).
    """
    tasks = instance.tasks
    arriving = sorted(range(len(tasks)), key=lambda j: (tasks[j].release, j), reverse=True)
    waiting: list[tuple[float, int]] = []
    start: dict[str, float] = {}
    clock = -math.inf
    while arriving or waiting:
        if not waiting:
            clock = max(clock, tasks[arriving[-1]].release)
        while arriving and tasks[arriving[-1]].release <= clock:
            j = arriving.pop()
            heapq.heappush(waiting, (tasks[j].size, j))
        size, j = heapq.heappop(waiting)
        start[tasks[j].id] = clock
        clock += instance.link.latency + instance.link.seconds_per_unit * size
    return {"start": start}
