"""The best schedule with a given order of events: a small linear program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution

Event = tuple[int, bool]
"""Task position, and whether it is the start (else the completion)."""


def best_of_order(instance: CommContentionInstance, order: Sequence[Event]) -> Solution | None:
    """The schedule of least mean flow time whose starts and completions come in this order.

    One variable per event, the length of the gap before it: seconds while the link is idle, otherwise the volume
    that each active task moves. Latency shifts releases.

    Parameters
    ----------
    instance : the instance
    order : all 2 n events, each start before its completion

    Returns
    -------
    The solution, or None where no schedule has this order.

    Notes
    -----
    A linear program with 2 n variables (scipy's HiGHS, dual simplex).
    """
    from scipy.optimize import linprog  # slow to load, and only this function needs it

    link, tasks = instance.link, instance.tasks
    n = len(tasks)
    first = min(task.release for task in tasks)
    pace = np.ones(2 * n)
    volume = np.zeros((n, 2 * n))
    active: list[int] = []
    done = 0
    cost = np.zeros(2 * n)
    begun = np.zeros(n, dtype=np.int64)
    for position, (j, starts) in enumerate(order):
        if active:
            pace[position] = link.seconds_per_unit_among(len(active))
            volume[active, position] = 1.0
        cost[position] = pace[position] * (n - done)
        if starts:
            active.append(j)
            begun[j] = position
        else:
            active.remove(j)
            done += 1
    until = np.array([[pace[p] if p <= begun[j] else 0.0 for p in range(2 * n)] for j in range(n)])
    release = np.array([task.release - first for task in tasks])
    found = linprog(
        cost,
        A_ub=-until,
        b_ub=-release,
        A_eq=volume,
        b_eq=np.array([task.size for task in tasks]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0:
        return None
    moments = until @ found.x + first
    return {"start": {task.id: max(task.release, float(t)) for task, t in zip(tasks, moments, strict=True)}}
