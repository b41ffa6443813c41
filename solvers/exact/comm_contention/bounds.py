"""Lower bounds on what a partial schedule of comm-contention can still become (compiled).

Idea: what is left runs no faster than one machine does it in the order of shortest remaining processing time (SRPT),
and what contention adds is counted pair by pair. Source: SRPT is optimal for one machine (Schrage, 1968); the pairs
and the bound of a whole set of points are ours. Guarantee: below every completion of the partial schedule; proof in
METHODS.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.compiled import njit_cached, njit_part

States = NDArray[np.int8]

WAITING, ACTIVE, DONE = 0, 1, 2
"""States of a task in a partial schedule; WAITING also before its release."""


class Tasks(NamedTuple):
    """The instance: (n,) sizes in units and releases in seconds, seconds per unit, contention penalty."""

    size: Floats
    release: Floats
    b: float
    eta: float


CLOCK, COST, LEFT = 0, 1, 2
"""Places in a point, which is one partial schedule: clock, sum of flow times so far, and n volumes left."""


@njit_cached
def rest_bound(clock: float, left: Floats, state: States, tasks: Tasks) -> float:
    """A lower bound on the sum of flow times of the tasks that are not done: :func:`set_bound` of one point.

    Parameters
    ----------
    clock : seconds, now
    left : units left of the active tasks
    state : WAITING, ACTIVE or DONE by task
    tasks : the instance; the flow time of a task counts from its release
    """
    point = np.zeros((1, LEFT + left.shape[0]))
    point[0, CLOCK] = clock
    for i in range(left.shape[0]):
        point[0, LEFT + i] = left[i]
    return float(set_bound(point, point.shape[0], state, tasks))  # a literal 1 would be compiled apart


@njit_cached
def set_bound(points: Floats, count: int, state: States, tasks: Tasks) -> float:
    """A lower bound on the sum of flow times of every schedule that begins as one in the hull of some points.

    The larger of

    1. cost so far, and SRPT of everything that remains, on one machine of speed 1/b;
    2. cost so far, the active tasks among themselves, SRPT of the waiting ones alone, and for each of these what it
       and the active ones add to each other's flow times if it starts at its best moment.

    METHODS.md has the proof, and what makes parts of it concave over the hull, hence least at one
    of the points. The other parts never fall when clock and volumes left grow, so the least of each number bounds them.

    Parameters
    ----------
    points : (P, at least 2 + n), the first `count` are used
    state : WAITING, ACTIVE or DONE by task, the same in all of them

    Notes
    -----
    O(count n^3).
    """
    n = state.shape[0]
    least, ordered = np.empty(LEFT + n), np.empty((n, n), np.bool_)  # [i, q]: nowhere has i less left than q
    for d in range(LEFT + n):
        least[d] = np.inf
    for i in range(n):
        for q in range(n):
            ordered[i, q] = True
    for p in range(count):
        for d in range(LEFT + n):
            least[d] = min(least[d], points[p, d])
        for i in range(n):
            for q in range(n):
                ordered[i, q] &= points[p, LEFT + i] >= points[p, LEFT + q]
    clock = least[CLOCK]
    whole = apart = np.inf
    for p in range(count):
        value = points[p, COST]
        for i in range(n):
            if state[i] == ACTIVE or (state[i] == WAITING and tasks.release[i] <= clock):
                value += points[p, CLOCK] - clock
        whole = min(whole, value)
        apart = min(apart, value + _present(clock, points[p, LEFT : LEFT + n], ordered, state, tasks))
    volumes = least[LEFT:]
    for i in range(n):
        for q in range(n):
            ordered[i, q] = volumes[i] >= volumes[q]
    for j in range(n):
        if state[j] == WAITING and tasks.release[j] > clock:
            moved = _moved(volumes, tasks.release[j] - clock, state, tasks)
            apart += _best_start(volumes, moved, tasks.size[j], ordered, state, tasks)
    apart += _srpt(clock, volumes, state, tasks, False)
    return max(whole + _srpt(clock, volumes, state, tasks, True), apart)


@njit_part
def _present(clock: float, volumes: Floats, ordered: NDArray[np.bool_], state: States, tasks: Tasks) -> float:
    """Flow times of the active tasks from a clock, and what waiting ones that are there add; without their own."""
    total = 0.0
    for i in range(state.shape[0]):
        if state[i] == ACTIVE:
            total += clock - tasks.release[i] + tasks.b * volumes[i]
            for q in range(i):
                if state[q] == ACTIVE:
                    total += 2 * (tasks.b + tasks.eta) * min(volumes[i], volumes[q])
        elif state[i] == WAITING and tasks.release[i] <= clock:
            total += _best_start(volumes, 0.0, tasks.size[i], ordered, state, tasks)
    return total


@njit_part
def _moved(volumes: Floats, seconds: float, state: States, tasks: Tasks) -> float:
    """The volume that each active task moves in so many seconds, if nobody else comes; at most the largest left."""
    moved = 0.0
    while seconds > 0.0:
        following, k = np.inf, 0
        for i in range(state.shape[0]):
            if state[i] == ACTIVE and volumes[i] > moved:
                following = min(following, volumes[i])
                k += 1
        if k == 0:
            break
        pace = k * tasks.b + (k - 1) * tasks.eta
        if seconds < pace * (following - moved):
            return moved + seconds / pace
        seconds -= pace * (following - moved)
        moved = following
    return moved


@njit_part
def _best_start(
    volumes: Floats, moved: float, size: float, ordered: NDArray[np.bool_], state: States, tasks: Tasks
) -> float:
    """What a newcomer and the active tasks add to each other's flow times, if it starts at the best moment.

    That is now, when `moved` of each volume left is gone, or at a completion. Of a task that is not `ordered` after
    the one that completes, what it may share with the newcomer does not count.
    """
    n = state.shape[0]
    twice = 2 * (tasks.b + tasks.eta)
    best = 0.0
    for i in range(n):
        if state[i] == ACTIVE:
            best += twice * min(size, max(0.0, volumes[i] - moved))
    for q in range(n):
        # One without volume left, too: over a set of points all of these moments have to count.
        if state[q] == ACTIVE and volumes[q] >= moved:
            wait = -tasks.eta * (volumes[q] - moved)
            for i in range(n):
                if state[i] == ACTIVE:
                    wait += twice / 2 * max(0.0, min(volumes[i], volumes[q]) - moved)
                    if ordered[i, q]:
                        wait += twice * min(size, volumes[i] - volumes[q])
            best = min(best, wait)
    return best


@njit_part
def _srpt(clock: float, left: Floats, state: States, tasks: Tasks, with_active: bool) -> float:
    """The least sum of flow times on one machine of speed 1/b that may pause."""
    size, release, b, _ = tasks
    n = state.shape[0]
    work, count = np.empty(n), 0
    for i in range(n):
        work[i] = -1.0
        if state[i] == WAITING:
            work[i] = b * size[i]
            count += 1
        elif with_active and state[i] == ACTIVE:
            work[i] = b * left[i]
            count += 1
    total = 0.0
    while count > 0:
        first = -1
        following = np.inf
        for i in range(n):
            if work[i] >= 0.0:
                if state[i] == ACTIVE or release[i] <= clock:
                    if first < 0 or work[i] < work[first]:
                        first = i
                elif release[i] < following:
                    following = release[i]
        if first < 0:
            clock = following
        elif clock + work[first] <= following:
            clock += work[first]
            work[first] = -1.0
            total += clock - release[first]
            count -= 1
        else:
            work[first] -= following - clock
            clock = following
    return total
