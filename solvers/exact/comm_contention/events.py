"""The events of comm-contention's search: what each leaves of a set of partial schedules (compiled).

Every function changes a set of points in place and returns its new number of points: 0 when the event is not
possible, OVERFULL when there is no room. ``kept`` holds the tolerances.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_inner, njit_part
from schedgap.solvers.exact.comm_contention.bounds import ACTIVE, CLOCK, LEFT, WAITING, Tasks

# Sets of partial schedules as convex hulls of points (compiled).
#
# All partial schedules with the same sequence of events form a polytope: clock, cost, volumes left and starts are
# affine in the few starts that are not tied to an event. A set is kept as its corners, or as more points with the same
# hull. Two points count as joined by an edge when no third one satisfies all the inequalities with equality that both
# do (the combinatorial test of the double description method, Fukuda and Prodon 1996). After what bounds.py reads of a
# point come n starts, and last the mask: which of the inequalities that made the set hold with equality there, as bits
# of a whole number.

Floats = NDArray[np.float64]

OVERFULL = -1
BITS = 52
"""Bits of a mask, as many as a float holds exactly."""


@njit_part
def keep_where(points: Floats, count: int, level: Floats, tolerance: float) -> int:
    """The part of the hull where an affine function is not negative.

    Parameters
    ----------
    points : (P, D), changed in place; the first `count` are the set
    level : the function at each of them
    tolerance : how far below 0 still counts

    Returns
    -------
    The new count, 0 when nothing is left. Where there is no room for the result, in points or in bits, the set
    stays as it is, which is a larger one.

    Notes
    -----
    An edge from a point inside to one outside gives a point where the function is 0. O(P^3) at worst.
    """
    outside = 0
    for p in range(count):
        if level[p] < -tolerance:
            outside += 1
    if outside == 0 or outside == count:
        return count - outside
    return _cut(points, count, level, tolerance, True)


@njit_part
def keep_on(points: Floats, count: int, level: Floats, tolerance: float) -> int:
    """The part of the hull where an affine function is 0; otherwise as :func:`keep_where`, OVERFULL without room."""
    return _cut(points, count, level, tolerance, False)


@njit_inner
def _joined(points: Floats, count: int, p: int, q: int, common: int) -> bool:
    """Whether an edge joins two points: no third one satisfies all that both do with equality, too."""
    mask = points.shape[1] - 1
    for r in range(count):  # noqa: SIM110 - numba has no all() of a generator
        if r not in (p, q) and common & int(points[r, mask]) == common:
            return False
    return True


@njit_part
def _cut(points: Floats, count: int, level: Floats, tolerance: float, above: bool) -> int:
    room, wide = points.shape
    mask = wide - 1
    cut = np.empty((room, wide))
    place = free_bit(points, count, 0)
    if above and place == BITS - 1:
        return count
    bit = 1 << place
    m = 0
    for p in range(count):
        if abs(level[p]) <= tolerance or (above and level[p] > 0):
            if m == room:
                return count if above else OVERFULL
            for d in range(wide):
                cut[m, d] = points[p, d]
            if above and level[p] <= tolerance:
                cut[m, mask] = float(int(cut[m, mask]) | bit)
            m += 1
        if level[p] <= tolerance:
            continue
        for q in range(count):
            if level[q] >= -tolerance:
                continue
            common = int(points[p, mask]) & int(points[q, mask])
            if count > 4 and not _joined(points, count, p, q, common):  # of a few points every pair counts
                continue
            if m == room:
                return count if above else OVERFULL
            part = level[p] / (level[p] - level[q])
            for d in range(mask):
                cut[m, d] = points[p, d] + part * (points[q, d] - points[p, d])
            cut[m, mask] = float(common | bit if above else common)
            m += 1
    for p in range(m):
        for d in range(wide):
            points[p, d] = cut[p, d]
    return m


@njit_part
def free_bit(points: Floats, count: int, after: int) -> int:
    """The first place from `after` on that no point's mask uses; BITS - 1 if there is none."""
    used = 0
    for p in range(count):
        used |= int(points[p, points.shape[1] - 1])
    place = after
    while place < BITS - 1 and (used >> place) & 1:
        place += 1
    return place


@njit_part
def thin(points: Floats, count: int, free: int, dimension: int, n: int, tolerance: float) -> int:
    """Leave out points that the hull does not need.

    Of an interval the two ends stay, of a polygon over two free starts its corners, otherwise every point that
    differs from the others. Returns the new count.

    Parameters
    ----------
    points : (P, 3 + 2 n), changed in place
    free : bit mask of the tasks whose starts are free
    dimension : of the hull, at most
    tolerance : seconds, below which points count as equal or on a line
    """
    axes = np.empty(n, np.int64)
    number = 0
    for i in range(n):
        if (free >> i) & 1:
            axes[number] = 2 + n + i
            number += 1
    if count <= 1:
        return count
    keep = np.zeros(count, np.bool_)
    if dimension == 0:
        keep[0] = True
    elif dimension == 1:
        spread = -1.0
        for place in range(number):
            low = high = 0
            for p in range(count):
                if points[p, axes[place]] < points[low, axes[place]]:
                    low = p
                if points[p, axes[place]] > points[high, axes[place]]:
                    high = p
            if points[high, axes[place]] - points[low, axes[place]] > spread:
                spread = points[high, axes[place]] - points[low, axes[place]]
                keep[:] = False
                keep[low] = True
                keep[high] = True
    elif number == 2:
        keep = _corners(points, count, axes[0], axes[1], tolerance)
    else:
        keep = _different(points, count, axes, number, tolerance)
    m = 0
    for p in range(count):
        if keep[p]:
            if m != p:
                for d in range(points.shape[1]):
                    points[m, d] = points[p, d]
            m += 1
    return m


@njit_part
def _different(
    points: Floats, count: int, axes: NDArray[np.int64], dimension: int, tolerance: float
) -> NDArray[np.bool_]:
    """Which points differ from every earlier one that stays; an equal one leaves it its mask."""
    mask = points.shape[1] - 1
    keep = np.ones(count, np.bool_)
    for p in range(count):
        for q in range(p):
            if keep[q]:
                same = True
                for d in range(dimension):
                    if abs(points[p, axes[d]] - points[q, axes[d]]) > tolerance:
                        same = False
                        break
                if same:
                    keep[p] = False
                    points[q, mask] = float(int(points[q, mask]) | int(points[p, mask]))
                    break
    return keep


@njit_part
def _corners(points: Floats, count: int, first: int, second: int, tolerance: float) -> NDArray[np.bool_]:
    """The corners of the polygon: its lower and upper chain from left to right (Andrew 1979).

    A point goes only when it is on the inner side of a chord, or within the tolerance of it.
    """
    order = np.empty(count, np.int64)
    for p in range(count):
        place = p
        while place > 0 and (
            points[order[place - 1], first] > points[p, first]
            or (
                points[order[place - 1], first] == points[p, first]
                and points[order[place - 1], second] > points[p, second]
            )
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = p
    keep = np.zeros(count, np.bool_)
    chain = np.empty(count, np.int64)
    for turn in (1.0, -1.0):
        m = 0
        for q in range(count):
            p = int(order[q])
            while m >= 2:
                a, c = chain[m - 2], chain[m - 1]
                dx, dy = points[p, first] - points[a, first], points[p, second] - points[a, second]
                ex, ey = points[c, first] - points[a, first], points[c, second] - points[a, second]
                if turn * (dx * ey - dy * ex) < -tolerance * (dx * dx + dy * dy) ** 0.5:
                    break
                m -= 1
            chain[m] = p
            m += 1
        for q in range(m):
            keep[chain[q]] = True
    return keep


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
    (docs/proofs-comm-contention.md).
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
