"""Lower bounds on what a partial schedule of comm-contention can still become (compiled)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached, njit_part

Floats = NDArray[np.float64]
States = NDArray[np.int8]

WAITING, ACTIVE, DONE = 0, 1, 2
"""States of a task in a partial schedule; WAITING also before its release."""


class Tasks(NamedTuple):
    """The instance: (n,) sizes in units and releases in seconds, seconds per unit, contention penalty."""

    size: Floats
    release: Floats
    b: float
    eta: float


@njit_cached
def rest_bound(clock: float, left: Floats, state: States, tasks: Tasks) -> float:
    """A lower bound on the sum of flow times of the tasks that are not done.

    The larger of

    1. SRPT of everything that is left, on one machine of speed 1/b;
    2. the active tasks among themselves, plus the waiting ones by whichever says more: SRPT of the waiting ones
       alone, or for each of them the best start against the active ones alone.

    By the volume identity the sum of completion times from here on is
    alone + sum_j (s_j + b M_j) + 2 (b + eta) (sum_ij V_ij + sum_jk V_jk) with alone that of the active tasks without
    anybody else, j and k waiting, i active. Leaving out one of the two sums of V gives the two cases of 2.

    Parameters
    ----------
    clock : seconds, now
    left : units left of the active tasks
    state : WAITING, ACTIVE or DONE by task
    tasks : the instance; the flow time of a task counts from its release

    Notes
    -----
    O(n^2). It never falls when `clock` or an entry of `left` grows, and neither does what it bounds.
    """
    whole = _srpt(clock, left, state, tasks, True)
    waiting = _srpt(clock, left, state, tasks, False)
    alone, apart = _against_active(clock, left, state, tasks)
    return max(whole, alone + max(waiting, apart))


@njit_part
def _srpt(clock: float, left: Floats, state: States, tasks: Tasks, with_active: bool) -> float:
    """The least sum of flow times on one machine of speed 1/b that may pause."""
    size, release, b, _ = tasks
    n = state.shape[0]
    work = np.full(n, -1.0)
    count = 0
    for i in range(n):
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


@njit_part
def _against_active(clock: float, left: Floats, state: States, tasks: Tasks) -> tuple[float, float]:
    """Flow times of the active tasks alone, and of each waiting one at its best start against them alone.

    Between two completions the time is linear and the shared volume concave in the start, so the best start is
    the first possible moment or a completion.
    """
    size, release, b, eta = tasks
    n = state.shape[0]
    volumes = np.empty(n + 1)
    ends = np.empty(n + 1)
    # The active tasks by what is left of them, and their ends if nobody else came.
    k = 0
    alone = 0.0
    for i in range(n):
        if state[i] == ACTIVE:
            alone -= release[i]
            place = k
            while place > 0 and volumes[place - 1] > left[i]:
                volumes[place] = volumes[place - 1]
                place -= 1
            volumes[place] = left[i]
            k += 1
    moment, moved = clock, 0.0
    for q in range(k):
        moment += (volumes[q] - moved) * ((k - q) * b + (k - q - 1) * eta)
        moved = volumes[q]
        ends[q] = moment
        alone += moment
    # Each waiting task: the wait and the shared volume if it starts at once, or at one of the ends after that.
    apart = 0.0
    for j in range(n):
        if state[j] != WAITING:
            continue
        first = max(release[j], clock)
        apart += first - release[j] + b * size[j]
        q = 0
        while q < k and ends[q] <= first:
            q += 1
        if q == k:
            continue
        since = ends[q - 1] if q > 0 else clock
        at = (volumes[q - 1] if q > 0 else 0.0) + (first - since) / ((k - q) * b + (k - q - 1) * eta)
        best = _shared(volumes, q, k, size[j], at) * 2 * (b + eta)
        for end in range(q, k):
            wait = ends[end] - first + _shared(volumes, end + 1, k, size[j], volumes[end]) * 2 * (b + eta)
            best = min(best, wait)
        apart += best
    return alone, apart


@njit_part
def _shared(volumes: Floats, first: int, k: int, size: float, at: float) -> float:
    """The volume a newcomer shares with tasks first, ..., k - 1 when it starts at a volume."""
    total = 0.0
    for i in range(first, k):
        total += min(size, volumes[i] - at)
    return total
