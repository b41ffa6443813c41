"""A certified lower bound at any size."""

from __future__ import annotations

import heapq

from schedgap.formulations.comm_contention.instance import CommContentionInstance


def lower_bound(instance: CommContentionInstance) -> float:
    """The mean flow time of shortest remaining processing time first on a machine that may pause.

    k active transfers together move k / (k b + (k - 1) eta) <= 1 / b units per second, so at every moment any
    schedule has moved at most what one machine of speed 1 / b could have, transfer by transfer: it is a
    preemptive schedule of processing times b M_j and releases r_j + a on one machine, whose least total
    completion time SRPT attains. Hence OPT >= bound, and OPT = bound when no transfer arrives while a larger
    one runs.

    Parameters
    ----------
    instance : the instance

    Returns
    -------
    float
        Seconds, rounded down by 1e-10 relative to stay valid.

    Notes
    -----
    O(n log n). Source: SRPT is optimal for 1 | r_j, pmtn | sum C_j (Schrage 1968); the reduction is ours.
    """
    link = instance.link
    tasks = sorted(instance.tasks, key=lambda task: task.release, reverse=True)
    left: list[float] = []
    clock = flow = 0.0
    while tasks or left:
        if not left:
            clock = max(clock, tasks[-1].release)
        while tasks and tasks[-1].release <= clock:
            task = tasks.pop()
            heapq.heappush(left, task.size * link.seconds_per_unit)
        until = tasks[-1].release if tasks else float("inf")
        if clock + left[0] <= until:
            step = heapq.heappop(left)
            flow += step * (len(left) + 1)  # as many wait or run for that long
            clock += step
        else:
            flow += (until - clock) * len(left)
            heapq.heapreplace(left, left[0] - (until - clock))
            clock = until
    return (flow / len(instance.tasks) + link.latency) * (1 - 1e-10)
