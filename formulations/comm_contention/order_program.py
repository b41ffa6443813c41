"""The best schedule with a given order of events: a small linear program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from schedgap.formulations.comm_contention.admissions import Admission, starts_of, written
from schedgap.formulations.comm_contention.dynamics import simulate
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact

Event = tuple[int, bool]
"""Task position, and whether it is the start (else the completion)."""


_NEAR = 1e-10
"""Share of the span of the starts within which a start counts as its release."""


_TWINS = 1e-5
"""Share of their size by which twins differ at most, in size and in what passes between their releases."""


_FINEST = 1e-12
"""Shortest unit of time, as a share of the span of the releases."""


def best_among_twins(instance: CommContentionInstance, order: Sequence[Event]) -> Solution | None:
    """The best schedule with this order of events, or with twins exchanged in it, whatever an engine took them for.

    Tasks are twins where sizes and releases differ by less than an engine's tolerances tell apart: to an engine, the
    orders that differ in twins alone have the same value, so it may return any of them. Exchanges are made while one
    gains, by values that are right to 1e-13. Returns the solution, or None where no schedule has this order.

    Parameters
    ----------
    order : all 2 n events, each start before its completion

    Notes
    -----
    One linear program for the order, and one for each exchange that is tried.
    """
    best = best_of_order(instance, order)
    pairs = [(i, j) for j in range(len(instance.tasks)) for i in range(j) if _twins(instance, i, j)]
    if best is None or not pairs:
        return best
    value, gained = _flow(instance, best), True
    while gained:
        gained = False
        for i, j in pairs:
            other = {i: j, j: i}
            changed = [(other.get(k, k), starts) for k, starts in order]
            found = best_of_order(instance, changed)
            if found is not None and (flow := _flow(instance, found)) < value:
                best, value, order, gained = found, flow, changed, True
    return best


def _twins(instance: CommContentionInstance, i: int, j: int) -> bool:
    one, other = instance.tasks[i], instance.tasks[j]
    apart = max(abs(one.release - other.release) / instance.link.seconds_per_unit, abs(one.size - other.size))
    return apart <= _TWINS * max(one.size, other.size)


def _flow(instance: CommContentionInstance, solution: Solution) -> float:
    return math.fsum(simulate(instance, starts_of(solution)).completion.values())


def best_of_order(instance: CommContentionInstance, order: Sequence[Event]) -> Solution | None:
    """The schedule of least mean flow time whose starts and completions come in this order.

    One variable per event, the length of the gap before it: seconds while the link is idle, otherwise the volume
    that each active task moves. Latency shifts releases.

    Parameters
    ----------
    order : all 2 n events, each start before its completion

    Returns
    -------
    The solution, or None where no schedule has this order. Its starts follow the completions before them in the
    order, in exact arithmetic; where rounding may change the order of two completions, the value may be better.

    Notes
    -----
    A linear program with 2 n variables (scipy's HiGHS, dual simplex).
    """
    from scipy.optimize import linprog  # slow to load, and only this function needs it

    link, tasks = instance.link, instance.tasks
    n = len(tasks)
    # Volumes are shares of the largest, time is in what that takes alone: the program's tolerances are absolute.
    first, last = (pick(task.release for task in tasks) for pick in (min, max))
    largest = max(task.size for task in tasks)
    second = max(largest * link.seconds_per_unit, _FINEST * (last - first))
    pace = np.ones(2 * n)
    volume = np.zeros((n, 2 * n))
    active: list[int] = []
    done = 0
    cost = np.zeros(2 * n)
    begun = np.zeros(n, dtype=np.int64)
    for position, (j, starts) in enumerate(order):
        if active:
            pace[position] = link.seconds_per_unit_among(len(active)) * largest / second
            volume[active, position] = 1.0
        cost[position] = pace[position] * (n - done)
        if starts:
            active.append(j)
            begun[j] = position
        else:
            active.remove(j)
            done += 1
    until = np.array([[pace[p] if p <= begun[j] else 0.0 for p in range(2 * n)] for j in range(n)])
    release = np.array([(task.release - first) / second for task in tasks])
    found = linprog(
        cost,
        A_ub=-until,
        b_ub=-release,
        A_eq=volume,
        b_eq=np.array([task.size / largest for task in tasks]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0 or found.x is None:
        return None
    admissions = _admissions(instance, order, found.x, (until @ found.x) * second + first)
    return written(instance, admissions, [j for j, starts in order if not starts], overlap=True)


def _admissions(
    instance: CommContentionInstance, order: Sequence[Event], gaps: Floats, moments: Floats
) -> list[Admission]:
    """The starts of an order: with the event before it, at its release, or at the moment of the linear program."""
    near = _NEAR * (float(max(moments)) - min(task.release for task in instance.tasks))
    result: list[Admission] = []
    done, latest = 0, Fraction(0)
    for position, (j, starts) in enumerate(order):
        if not starts:
            done += 1
            continue
        release, moment = instance.tasks[j].release, float(moments[j])
        latest = max(latest, exact(release))
        if gaps[position] > 0 and moment > release + near:
            latest = max(latest, exact(moment))
        result.append(Admission(j, latest, done))
    return result
