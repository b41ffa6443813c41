"""A quick schedule without contention, for where nothing better is known."""

from __future__ import annotations

import heapq
from fractions import Fraction

from schedgap.formulations.comm_contention.admissions import not_before
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact


def one_at_a_time(instance: CommContentionInstance) -> Solution:
    """Whenever the link is free, the smallest task that is there starts; always feasible.

    Starts are rounded up, in exact arithmetic, so that no transfer meets the one before it.

    Notes
    -----
    O(n log n).
    """
    tasks = instance.tasks
    latency, alone, _ = instance.link.exact_parameters()
    arriving = sorted(range(len(tasks)), key=lambda j: (tasks[j].release, j), reverse=True)
    waiting: list[tuple[float, int]] = []
    start: dict[str, float] = {}
    clock = Fraction(0)
    while arriving or waiting:
        if not waiting:
            clock = max(clock, exact(tasks[arriving[-1]].release))
        while arriving and exact(tasks[arriving[-1]].release) <= clock:
            j = arriving.pop()
            heapq.heappush(waiting, (tasks[j].size, j))
        size, j = heapq.heappop(waiting)
        start[tasks[j].id] = not_before(clock)
        clock = exact(start[tasks[j].id]) + latency + alone * exact(size)
    return {"start": start}
