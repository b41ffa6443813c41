"""The events of comm-contention's search: what each leaves of a set of partial schedules (compiled).

Every function changes a set of points in place and returns its new number of points: 0 when the event is not
possible, OVERFULL when there is no room. ``kept`` holds the tolerances.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.compiled import njit_inner, njit_part
from schedgap.solvers.exact.comm_contention.bounds import ACTIVE, CLOCK, LEFT, WAITING, Tasks
from schedgap.solvers.exact.comm_contention.hulls import BITS, OVERFULL, free_bit, keep_on, keep_where

States = NDArray[np.int8]


POINTS = 512
"""Room for the points of one set."""


END, NOW, AT_RELEASE, LATER, MEETING, TIE = 0, 1, 2, 3, 4, 5
"""Kinds of events: a completion; a start now, at the task's release, or open until later; a start now that is also
the task's release, which settles an open start; two completions at once, which settles one too."""


BEST, SKIPPED, TOLERANCE_TIME, TOLERANCE_VOLUME, MARGIN = 0, 1, 2, 3, 4
"""Places in the numbers that a search keeps; SKIPPED is the least bound of a node that did not fit."""


@njit_inner
def _earliest(work: Floats, count: int) -> float:
    """The least clock of a set."""
    early = np.inf
    for p in range(count):
        early = min(early, work[p, CLOCK])
    return float(early)


@njit_inner
def can_settle(work: Floats, count: int, state: States, release: Floats, kept: Floats) -> bool:
    """Whether something can still settle an open start: a later release, or three tasks to start together."""
    early = _earliest(work, count)
    waiting = 0
    for i in range(state.shape[0]):
        if state[i] == WAITING:
            waiting += 1
            if release[i] >= early - kept[TOLERANCE_TIME]:
                return True
    return waiting >= 3


@njit_inner
def starts_due(work: Floats, count: int, state: States, release: Floats, dimension: int) -> int:
    """How many tasks must start when two end together, for that to settle an open start; 0: it cannot."""
    early = _earliest(work, count)
    waiting = 0
    later = False
    for i in range(state.shape[0]):
        if state[i] == WAITING:
            waiting += 1
            later = later or release[i] > early
    if dimension >= 2 and later:
        return 1
    return 3 if waiting >= 3 else 0


@njit_part
def meet_release(work: Floats, count: int, moment: float, dimension: int, kept: Floats) -> int:
    """The part of an open set whose clock is at a moment; nothing where all of it is."""
    if dimension == 0:
        return 0
    level = np.empty(POINTS)
    apart = 0.0
    for p in range(count):
        level[p] = work[p, CLOCK] - moment
        apart = max(apart, abs(level[p]))
    if apart <= kept[TOLERANCE_TIME]:
        return 0
    count = keep_on(work, count, level, kept[TOLERANCE_TIME])
    for p in range(count):
        work[p, CLOCK] = moment
    return count


@njit_part
def end_together(
    work: Floats,
    count: int,
    j: int,
    other: int,
    state: States,
    active: int,
    tasks: Tasks,
    kept: Floats,
) -> int:
    """Two tasks are the next to end, at once; where they are the same one, it ends with the last event."""
    level = np.empty(POINTS)
    apart = 0.0
    for p in range(count):
        level[p] = work[p, LEFT + j] - (0.0 if j == other else work[p, LEFT + other])
        apart = max(apart, abs(level[p]))
    if apart <= kept[TOLERANCE_VOLUME]:
        return 0
    count = keep_on(work, count, level, kept[TOLERANCE_VOLUME])
    if count <= 0:
        return count
    for p in range(count):
        if j == other:
            work[p, LEFT + j] = 0.0
        else:
            work[p, LEFT + j] = work[p, LEFT + other] = min(work[p, LEFT + j], work[p, LEFT + other])
    count = end_next(work, count, j, state, active, tasks, kept)
    for p in range(count):
        work[p, LEFT + other] = 0.0
    return count


@njit_part
def end_next(
    work: Floats,
    count: int,
    j: int,
    state: States,
    active: int,
    tasks: Tasks,
    kept: Floats,
) -> int:
    """Task j is the next to end."""
    n = state.shape[0]
    if state[j] != ACTIVE:
        return 0
    level = np.empty(POINTS)
    for i in range(n):
        if state[i] == ACTIVE and i != j:
            if count == 1:  # of several that end together the first in order comes first
                less = work[0, LEFT + i] < work[0, LEFT + j]
                if less or (i < j and work[0, LEFT + i] == work[0, LEFT + j]):
                    return 0
                continue
            for p in range(count):
                level[p] = work[p, LEFT + i] - work[p, LEFT + j]
            count = keep_where(work, count, level, kept[TOLERANCE_VOLUME])
            if count <= 0:
                return count
    pace = active * tasks.b + (active - 1) * tasks.eta
    for p in range(count):
        volume = work[p, LEFT + j]
        work[p, CLOCK] += pace * volume
        for i in range(n):
            if state[i] == ACTIVE:
                work[p, LEFT + i] = max(0.0, work[p, LEFT + i] - volume)
        work[p, LEFT + j] = 0.0
    return count


@njit_part
def beyond(work: Floats, count: int, moment: float, side: float, kept: Floats) -> int:
    """The part of a set whose clock is at a moment or later (side 1), or at it or earlier (side -1)."""
    level = np.empty(POINTS)
    for p in range(count):
        level[p] = side * (work[p, CLOCK] - moment)
    if count == 1 and level[0] < 0:
        return 0
    return keep_where(work, count, level, kept[TOLERANCE_TIME])


@njit_part
def start_idle(
    work: Floats,
    count: int,
    j: int,
    kind: int,
    state: States,
    tasks: Tasks,
    kept: Floats,
) -> int:
    """Task j starts on an idle link, now or at its release; waiting longer never pays."""
    size, release, b, _ = tasks
    n = state.shape[0]
    early, late = np.inf, -np.inf
    for p in range(count):
        early, late = min(early, work[p, CLOCK]), max(late, work[p, CLOCK])
    for i in range(n):  # another one would be over before j starts
        if state[i] == WAITING and i != j and max(late, release[i]) + b * size[i] <= max(early, release[j]):
            return 0
    if kind == NOW:
        return beyond(work, count, release[j], 1.0, kept)
    if kind != AT_RELEASE or early >= release[j]:
        return 0
    count = beyond(work, count, release[j], -1.0, kept)
    for p in range(count):
        work[p, CLOCK] = release[j]
    return count


@njit_part
def start_at_release(
    work: Floats,
    count: int,
    j: int,
    state: States,
    active: int,
    tasks: Tasks,
    kept: Floats,
) -> int:
    """Task j starts at its release, before the next completion."""
    release = tasks.release
    early = _earliest(work, count)
    if early >= release[j]:
        return 0
    # Cut off where the clock is beyond the release, then where somebody would end before it.
    pace = active * tasks.b + (active - 1) * tasks.eta
    count = beyond(work, count, release[j], -1.0, kept)
    level = np.empty(POINTS)
    for i in range(state.shape[0]):
        if state[i] == ACTIVE and count > 0:
            for p in range(count):
                level[p] = pace * work[p, LEFT + i] - (release[j] - work[p, CLOCK])
            if count == 1 and level[0] < 0:
                return 0
            count = keep_where(work, count, level, kept[TOLERANCE_TIME])
    for p in range(count):
        volume = max(0.0, (release[j] - work[p, CLOCK]) / pace)
        work[p, CLOCK] = release[j]
        for i in range(state.shape[0]):
            if state[i] == ACTIVE:
                work[p, LEFT + i] = max(0.0, work[p, LEFT + i] - volume)
    return count


@njit_part
def _room_to_start(work: Floats, count: int, state: States) -> float:
    """The largest volume, over a set's points, that can be sent before the next completion."""
    volume = 0.0
    for p in range(count):
        first = np.inf
        for i in range(state.shape[0]):
            if state[i] == ACTIVE:
                first = min(first, work[p, LEFT + i])
        volume = max(volume, first)
    return volume


@njit_part
def _prism(work: Floats, count: int, volume: float, state: States, pace: float) -> int:
    """Every point twice: as it is, and after the running tasks have sent `volume` each; each copy has its own bit."""
    mask = work.shape[1] - 1
    first_bit = free_bit(work, count, 0)
    second_bit = free_bit(work, count, first_bit + 1)
    if 2 * count > POINTS or second_bit >= BITS - 1:
        return OVERFULL
    for p in range(count):
        for d in range(work.shape[1]):
            work[count + p, d] = work[p, d]
        work[p, mask] = float(int(work[p, mask]) | (1 << first_bit))
        work[count + p, mask] = float(int(work[count + p, mask]) | (1 << second_bit))
        work[count + p, CLOCK] += pace * volume
        for i in range(state.shape[0]):
            if state[i] == ACTIVE:
                work[count + p, LEFT + i] -= volume
    return 2 * count


@njit_part
def _before_completion(work: Floats, count: int, state: States, kept: Floats) -> int:
    """The part of a set in which no running task has sent more than its volume."""
    level = np.empty(POINTS)
    for i in range(state.shape[0]):
        if state[i] == ACTIVE and count > 0:
            for p in range(count):
                level[p] = work[p, LEFT + i]
            count = keep_where(work, count, level, kept[TOLERANCE_VOLUME])
    return count


@njit_part
def start_later(
    work: Floats,
    count: int,
    j: int,
    state: States,
    active: int,
    tasks: Tasks,
    kept: Floats,
) -> int:
    """Task j starts between now and the next completion, at a moment that is left open.

    That can only pay before the release of another waiting task, or when three others are still to start
    (METHODS.md).
    """
    release = tasks.release
    latest, others = -np.inf, 0
    for i in range(state.shape[0]):
        if state[i] == WAITING and i != j:
            others += 1
            latest = max(latest, release[i])
    if others < 3 and latest <= max(_earliest(work, count), release[j]):
        return 0  # nothing can settle it
    volume = _room_to_start(work, count, state)
    if volume <= kept[TOLERANCE_VOLUME]:
        return 0
    # The open start is one dimension more: a prism over the set, then cut off where somebody has ended, where j's
    # release has not come, and what lies after all that can settle it.
    count = _prism(work, count, volume, state, active * tasks.b + (active - 1) * tasks.eta)
    if count > 0:
        count = _before_completion(work, count, state, kept)
    if count > 0:
        count = beyond(work, count, release[j], 1.0, kept)
    if count > 0 and others < 3:
        count = beyond(work, count, latest, -1.0, kept)
    for p in range(count):  # what the tolerance let below 0
        for i in range(state.shape[0]):
            if state[i] == ACTIVE:
                work[p, LEFT + i] = max(0.0, work[p, LEFT + i])
    return count
