"""The search tree of method `bb` of comm-contention (compiled): sequences of events, in order of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import kept
from schedgap.solvers.exact.comm_contention.bounds import ACTIVE, DONE, WAITING, rest_bound
from schedgap.solvers.exact.comm_contention.events import (
    AT_RELEASE,
    BEST,
    END,
    LATER,
    MARGIN,
    MEETING,
    NOW,
    POINTS,
    SKIPPED,
    TIE,
    TOLERANCE_TIME,
    beyond,
    can_settle,
    end_next,
    end_together,
    meet_release,
    start_at_release,
    start_idle,
    start_later,
    starts_due,
)
from schedgap.solvers.exact.comm_contention.points import CLOCK, COST, LEFT, OVERFULL, thin

Floats = NDArray[np.float64]

EFFORT = 1_000_000
"""Work between two looks at the clock: a node counts 100 and 5 times the square of its points."""
COUNT, LAST, FREE, OPEN, OWED = 0, 1, 2, 3, 4
"""Places in a node's whole numbers: its points, the task that started last at this very moment, the open starts
(as bits), the dimension of the set, and how many tasks must still start at this very moment."""


@kept
def search(
    size: Floats,
    release: Floats,
    b: float,
    eta: float,
    points: Floats,
    numbers: NDArray[np.int64],
    states: NDArray[np.int8],
    bounds: Floats,
    top: int,
    kept: Floats,
    start: Floats,
    nodes: int,
    later: bool,
) -> tuple[int, int]:
    """Expand up to `nodes` nodes from the top of the stack, or as many as take about a fifth of a second.

    Parameters
    ----------
    size, release, b, eta : the instance, the latency already in the releases
    points, numbers, states, bounds : the stack: (N, POINTS, 3 + 2 n), (N, 5), (N, n), (N,)
    top : nodes on the stack
    kept : what the search keeps (BOUND, ...), changed in place
    start : starts of the best schedule, changed in place
    nodes : how many to expand
    later : whether starts may be left open; without, the search finds good schedules fast and proves nothing

    Returns
    -------
    (nodes on the stack, nodes expanded).
    """
    n = size.shape[0]
    room = n * (5 + n)
    child_points = np.empty((room, POINTS, 3 + 2 * n))
    child_numbers = np.empty((room, 5), np.int64)
    child_states = np.empty((room, n), np.int8)
    child_bounds = np.empty(room)
    set_points = np.empty((POINTS, 3 + 2 * n))
    work = np.empty((POINTS, 3 + 2 * n))
    state = np.empty(n, np.int8)
    least = np.empty(n)
    done = effort = 0
    while top > 0 and done < nodes and effort < EFFORT:
        top -= 1
        if bounds[top] >= kept[BEST] - kept[MARGIN]:
            continue
        done += 1
        effort += 100 + 5 * numbers[top, COUNT] ** 2
        count, last, free = numbers[top, COUNT], numbers[top, LAST], numbers[top, FREE]
        _copy(points[top], set_points, count)
        active = waiting = 0
        for i in range(n):
            state[i] = states[top, i]
            active += state[i] == ACTIVE
            waiting += state[i] == WAITING
        if waiting == 0:
            for p in range(count):
                total = _replay(set_points[p, LEFT + n : LEFT + 2 * n], size, release, b, eta, kept[TOLERANCE_TIME])
                if total < np.inf:  # a replay may put a start before the completion that it follows
                    for i in range(n):
                        least[i] = set_points[p, LEFT + i]
                    rest = rest_bound(set_points[p, CLOCK], least, state, size, release, b, eta)
                    total = min(total, set_points[p, COST] + rest)
                if total < kept[BEST]:
                    kept[BEST] = total
                    for i in range(n):
                        start[i] = set_points[p, LEFT + n + i]
            continue
        children = 0
        dimension, owed = numbers[top, OPEN], numbers[top, OWED]
        for kind in range(6):
            for turn in range(n * n if kind == TIE else n):
                j, other = turn % n, turn // n  # other: the second task of a tie
                if kind in (END, TIE):
                    if state[j] != ACTIVE or (owed > 0) != (kind == TIE and other == j):
                        continue
                elif (
                    (kind == LATER and not later)
                    or state[j] != WAITING
                    or (owed > 0 and kind != NOW and kind != MEETING)
                ):
                    continue
                now_owed = owed
                if kind == TIE:
                    if dimension == 0 or other < j or state[other] != ACTIVE:
                        continue
                    if owed == 0:
                        now_owed = starts_due(set_points, count, state, release, dimension)
                        if now_owed == 0:
                            continue
                _copy(set_points, work, count)
                if kind == END:
                    m = end_next(work, count, j, state, active, b, eta, kept)
                elif kind == TIE:
                    m = end_together(work, count, j, other, state, active, b, eta, kept)
                elif active == 0:
                    m = start_idle(work, count, j, kind, state, size, release, b, kept)
                elif kind == NOW:
                    m = 0 if j < last else beyond(work, count, release[j], 1.0, kept)
                elif kind == AT_RELEASE:
                    m = start_at_release(work, count, j, state, active, release, b, eta, kept)
                elif kind == LATER:
                    m = start_later(work, count, j, state, active, release, b, eta, kept)
                else:
                    m = meet_release(work, count, release[j], dimension, kept)
                if m == OVERFULL:
                    kept[SKIPPED] = min(kept[SKIPPED], bounds[top])
                    continue
                if m == 0:
                    continue
                now_free, now_dimension = free, dimension
                now_state = child_states[children]
                for i in range(n):
                    now_state[i] = state[i]
                if kind in (END, TIE):
                    now_state[j] = DONE
                    for p in range(m):
                        work[p, COST] += work[p, CLOCK] - release[j]
                    if kind == TIE and other != j:
                        now_state[other] = DONE
                        for p in range(m):
                            work[p, COST] += work[p, CLOCK] - release[other]
                else:
                    now_state[j] = ACTIVE
                    now_owed = max(0, owed - 1)
                    for p in range(m):
                        work[p, LEFT + j] = size[j]
                        work[p, LEFT + n + j] = work[p, CLOCK]
                if kind == LATER:
                    now_free |= 1 << j
                    now_dimension += 1
                elif kind in (MEETING, TIE):
                    now_dimension -= 1
                m = thin(work, m, now_free, now_dimension, n, kept[TOLERANCE_TIME])
                if kind == LATER and m == 1:
                    continue  # no freedom: one of the other children
                m, now_free, now_dimension = _same_future(work, m, now_free, now_dimension, n)
                if now_dimension > 0 and now_owed == 0 and not can_settle(work, m, now_state, release, kept):
                    continue
                bound = _bound(work, m, least, now_state, size, release, b, eta)
                if bound >= kept[BEST] - kept[MARGIN]:
                    continue
                _copy(work, child_points[children], m)
                child_numbers[children, COUNT] = m
                child_numbers[children, LAST] = j if kind in (NOW, LATER) else -1
                child_numbers[children, FREE] = now_free
                child_numbers[children, OPEN] = now_dimension
                child_numbers[children, OWED] = now_owed
                child_bounds[children] = bound
                children += 1
        for _ in range(children):  # the best one comes last, on top
            worst = -1
            for c in range(children):
                if child_bounds[c] > -np.inf and (worst < 0 or child_bounds[c] > child_bounds[worst]):
                    worst = c
            _copy(child_points[worst], points[top], child_numbers[worst, COUNT])
            for d in range(5):
                numbers[top, d] = child_numbers[worst, d]
            for i in range(n):
                states[top, i] = child_states[worst, i]
            bounds[top] = child_bounds[worst]
            child_bounds[worst] = -np.inf
            top += 1
    return top, done


@kept
def _replay(start: Floats, size: Floats, release: Floats, b: float, eta: float, tolerance: float) -> float:
    """The sum of flow times with these starts; infinite where one is before its release."""
    n = size.shape[0]
    left = np.zeros(n)
    begun = np.zeros(n, np.bool_)
    clock = total = 0.0
    active, over = 0, 0
    for i in range(n):
        if start[i] < release[i] - tolerance:
            return np.inf
    while over < n:
        following = np.inf
        first = -1
        for i in range(n):
            if not begun[i]:
                following = min(following, max(start[i], release[i]))
            elif left[i] >= 0.0 and (first < 0 or left[i] < left[first]):
                first = i
        pace = active * b + (active - 1) * eta
        if active > 0 and clock + pace * left[first] <= following:
            volume = left[first]
            clock += pace * volume
            total += clock - release[first]
            for i in range(n):
                if begun[i] and left[i] >= 0.0:
                    left[i] = max(0.0, left[i] - volume)
            left[first] = -1.0
            active -= 1
            over += 1
            continue
        for i in range(n):
            if active > 0 and begun[i] and left[i] >= 0.0:
                left[i] = max(0.0, left[i] - (following - clock) / pace)
        clock = following
        for i in range(n):
            if not begun[i] and max(start[i], release[i]) <= clock:
                begun[i] = True
                left[i] = size[i]
                active += 1
    return total


@kept
def _copy(source: Floats, target: Floats, count: int) -> None:
    for p in range(count):
        for d in range(source.shape[1]):
            target[p, d] = source[p, d]


@kept
def _bound(
    work: Floats,
    count: int,
    least: Floats,
    state: NDArray[np.int8],
    size: Floats,
    release: Floats,
    b: float,
    eta: float,
) -> float:
    """A lower bound for every schedule of a set: least cost so far, and the rest from the least of each number."""
    n = state.shape[0]
    clock = cost = np.inf
    for i in range(n):
        least[i] = np.inf
    for p in range(count):
        clock = min(clock, work[p, CLOCK])
        cost = min(cost, work[p, COST])
        for i in range(n):
            least[i] = min(least[i], work[p, LEFT + i])
    return float(cost + rest_bound(clock, least, state, size, release, b, eta))


@kept
def _same_future(work: Floats, count: int, free: int, dimension: int, n: int) -> tuple[int, int, int]:
    """One point, the cheapest, where all have the same clock and the same volumes left."""
    best = 0
    for p in range(count):
        for d in range(n + 2):
            if d != COST and work[p, d] != work[0, d]:
                return count, free, dimension
        if work[p, COST] < work[best, COST]:
            best = p
    if best > 0:
        for d in range(work.shape[1]):
            work[0, d] = work[best, d]
    work[0, work.shape[1] - 1] = 0.0
    return 1, 0, 0
