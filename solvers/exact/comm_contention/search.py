"""The search tree of method `bb` of comm-contention (compiled): sequences of events, in order of time.

Idea: between two events nothing changes, so a schedule is a sequence of starts and completions. The tree branches on
the next event, and a start may stay open on an interval. Source: branch and bound; the event tree with open starts is
ours. Guarantee: where starts may also stay open (`later`), the search is exhaustive; an emptied stack then proves the
best schedule to the margin, if no node was skipped. Proof in METHODS.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.compiled import njit_cached, njit_inner, njit_part
from schedgap.solvers.exact.comm_contention.bounds import (
    ACTIVE,
    CLOCK,
    COST,
    DONE,
    LEFT,
    WAITING,
    Tasks,
    rest_bound,
    set_bound,
)
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
from schedgap.solvers.exact.comm_contention.hulls import OVERFULL, thin

States = NDArray[np.int8]

EFFORT = 1_000_000
"""Work between two looks at the clock: a node counts 100 and 5 times the square of its points."""
COUNT, LAST, FREE, OPEN, OWED = 0, 1, 2, 3, 4
"""Places in a node's whole numbers: its points, the task that started last at this very moment, the open starts
(as bits), the dimension of the set, and how many tasks must still start at this very moment."""


class Nodes(NamedTuple):
    """Nodes of the tree, one after another; the children of one, or the stack, whose last one is expanded next."""

    points: Floats  # (N, POINTS, 3 + 2 n) the partial schedules of each, as points whose hull they are
    numbers: NDArray[np.int64]  # (N, 5) whole numbers, see COUNT
    states: States  # (N, n) WAITING, ACTIVE or DONE
    bounds: Floats  # (N,) no schedule below the node has a smaller sum of flow times


class Node(NamedTuple):
    """The node that is expanded: its part of :class:`Nodes`, the counts of its tasks, and room to work in."""

    # points, state: (POINTS, 3 + 2 n) of which the first are in use; (n,)
    points: Floats
    state: States
    # used, last, free, dimension, owed: the whole numbers, see COUNT; `used` points
    used: int
    last: int
    free: int
    dimension: int
    owed: int
    active: int  # how many tasks move
    work: Floats  # (POINTS, 3 + 2 n) where a child's points are made
    least: Floats  # (n,) where the least volumes left of a set are put


@njit_cached
def room_for(nodes: int, n: int) -> Nodes:
    """Room for so many nodes of n tasks."""
    return Nodes(
        np.zeros((nodes, POINTS, 3 + 2 * n)),
        np.zeros((nodes, 5), np.int64),
        np.zeros((nodes, n), np.int8),
        np.zeros(nodes),
    )


@njit_cached
def most_children(n: int) -> int:
    """Children of a node at most: four starts a waiting task, an end an active one and a tie a pair of these."""
    return max(4 * n, n * (n + 3) // 2)


@njit_cached
def expand_nodes(
    tasks: Tasks, stack: Nodes, top: int, kept: Floats, start: Floats, nodes: int, later: bool
) -> tuple[int, int]:
    """Expand up to `nodes` nodes from the top of the stack, or as many as take about a fifth of a second.

    Returns (nodes on the stack, nodes expanded).

    Parameters
    ----------
    tasks : the instance, the latency already in the releases
    stack, top : open nodes, and how many there are
    kept : what the search keeps (BEST, ...), changed in place
    start : starts of the best schedule, changed in place
    nodes : how many to expand
    later : whether starts may be left open; without, the search finds good schedules fast and proves nothing
    """
    n = tasks.size.shape[0]
    children = room_for(most_children(n), n)
    points = np.empty((POINTS, 3 + 2 * n))
    work = np.empty((POINTS, 3 + 2 * n))
    state = np.empty(n, np.int8)
    least = np.empty(n)
    done = effort = 0
    while top > 0 and done < nodes and effort < EFFORT:
        top -= 1
        if stack.bounds[top] >= kept[BEST] - kept[MARGIN]:
            continue
        numbers = stack.numbers[top]
        count, last, free, dimension, owed = numbers[COUNT], numbers[LAST], numbers[FREE], numbers[OPEN], numbers[OWED]
        done += 1
        effort += 100 + 5 * count**2
        # The children are pushed where the node lies, so it is worked on in a copy.
        _copy(stack.points[top], points, count)
        active = waiting = 0
        for i in range(n):
            state[i] = stack.states[top, i]
            active += state[i] == ACTIVE
            waiting += state[i] == WAITING
        node = Node(points, state, count, last, free, dimension, owed, active, work, least)
        if waiting == 0:
            _score(node, tasks, kept, start)
        else:
            born = _make_children(node, stack.bounds[top], tasks, kept, later, children)
            _push_children(children, born, stack, top)
            top += born
    return top, done


@njit_part
def _score(node: Node, tasks: Tasks, kept: Floats, start: Floats) -> None:
    """All have started: every point is one whole schedule. Keep the best of them."""
    n = tasks.size.shape[0]
    for p in range(node.used):
        point = node.points[p]
        total = _replay(point[LEFT + n : LEFT + 2 * n], tasks, kept[TOLERANCE_TIME])
        if total < np.inf:  # a replay may put a start before the completion that it follows
            for i in range(n):
                node.least[i] = point[LEFT + i]
            total = min(total, point[COST] + rest_bound(point[CLOCK], node.least, node.state, tasks))
        if total < kept[BEST]:
            kept[BEST] = total
            for i in range(n):
                start[i] = point[LEFT + n + i]


@njit_part
def _make_children(node: Node, node_bound: float, tasks: Tasks, kept: Floats, later: bool, children: Nodes) -> int:
    """One child for every event that may come next and is not refuted; how many."""
    n = tasks.size.shape[0]
    born = 0
    for kind in range(6):
        for turn in range(n * n if kind == TIE else n):
            j, other = turn % n, turn // n  # other: the second task of a tie
            owed = _starts_owed(node, kind, j, other, tasks, later)
            if owed < 0:
                continue
            _copy(node.points, node.work, node.used)
            count = _follow(node, kind, j, other, tasks, kept)
            if count == OVERFULL:
                # The bound of this node stands for the schedules of the child that is not made.
                kept[SKIPPED] = min(kept[SKIPPED], node_bound)
            elif count > 0:
                _enter(node, kind, j, other, count, tasks, children.states[born])
                born += _keep_child(node, kind, j, count, owed, tasks, kept, children, born)
    return born


@njit_inner
def _starts_owed(node: Node, kind: int, j: int, other: int, tasks: Tasks, later: bool) -> int:
    """How many tasks must start at this very moment after an event; -1 where the event cannot follow.

    A tie of two completions settles an open start only if enough tasks start at once (METHODS.md),
    so while some are owed, only starts now and a further completion at the same moment (a tie of a task with itself:
    with the last event) may follow.
    """
    state, owed = node.state, node.owed
    if kind == END:
        return 0 if state[j] == ACTIVE and owed == 0 else -1
    if kind == TIE:
        if state[j] != ACTIVE or node.dimension == 0 or other < j or state[other] != ACTIVE:
            return -1
        if other == j:
            return owed if owed > 0 else -1
        if owed > 0:
            return -1
        owed = starts_due(node.points, node.used, state, tasks.release, node.dimension)
        return owed if owed > 0 else -1
    if state[j] != WAITING or (kind == LATER and not later):
        return -1
    if owed > 0:
        return owed - 1 if kind in (NOW, MEETING) else -1
    return 0


@njit_part
def _follow(node: Node, kind: int, j: int, other: int, tasks: Tasks, kept: Floats) -> int:
    """Cut the copied points down to those where the event is the next one, and move them there; how many stay."""
    work, count, state, active = node.work, node.used, node.state, node.active
    if kind == END:
        return end_next(work, count, j, state, active, tasks, kept)
    if kind == TIE:
        return end_together(work, count, j, other, state, active, tasks, kept)
    if active == 0:
        return start_idle(work, count, j, kind, state, tasks, kept)
    if kind == NOW:
        # Tasks that start at one moment do so in one order only, that of their numbers.
        return 0 if j < node.last else beyond(work, count, tasks.release[j], 1.0, kept)
    if kind == AT_RELEASE:
        return start_at_release(work, count, j, state, active, tasks, kept)
    if kind == LATER:
        return start_later(work, count, j, state, active, tasks, kept)
    return meet_release(work, count, tasks.release[j], node.dimension, kept)


@njit_inner
def _enter(node: Node, kind: int, j: int, other: int, count: int, tasks: Tasks, state: States) -> None:
    """Write the event down: flow times of who ends, volume and start of who starts, and the child's states."""
    n = tasks.size.shape[0]
    work = node.work
    for i in range(n):
        state[i] = node.state[i]
    if kind in (END, TIE):
        state[j] = DONE
        for p in range(count):
            work[p, COST] += work[p, CLOCK] - tasks.release[j]
        if kind == TIE and other != j:
            state[other] = DONE
            for p in range(count):
                work[p, COST] += work[p, CLOCK] - tasks.release[other]
    else:
        state[j] = ACTIVE
        for p in range(count):
            work[p, LEFT + j] = tasks.size[j]
            work[p, LEFT + n + j] = work[p, CLOCK]


@njit_part
def _keep_child(
    node: Node, kind: int, j: int, count: int, owed: int, tasks: Tasks, kept: Floats, children: Nodes, place: int
) -> bool:
    """Put the child at its place unless its set is not needed or its bound refutes it."""
    n = tasks.size.shape[0]
    work, state = node.work, children.states[place]
    free, dimension = node.free, node.dimension
    if kind == LATER:
        free |= 1 << j
        dimension += 1
    elif kind in (MEETING, TIE):
        dimension -= 1  # an open start is settled
    count = thin(work, count, free, dimension, n, kept[TOLERANCE_TIME])
    if kind == LATER and count == 1:
        return False  # no freedom: one of the other children
    count, free, dimension = _same_future(work, count, free, dimension, n)
    if dimension > 0 and owed == 0 and not can_settle(work, count, state, tasks.release, kept):
        return False  # an open start that nothing settles is never better than one of its ends
    bound = interval_bound(work, state, tasks) if count == 2 else set_bound(work, count, state, tasks)
    if bound >= kept[BEST] - kept[MARGIN]:
        return False
    _copy(work, children.points[place], count)
    numbers = children.numbers[place]
    numbers[COUNT], numbers[LAST] = count, j if kind in (NOW, LATER) else -1
    numbers[FREE], numbers[OPEN], numbers[OWED] = free, dimension, owed
    children.bounds[place] = bound
    return True


@njit_part
def _push_children(children: Nodes, count: int, stack: Nodes, top: int) -> None:
    """Move the children onto the stack, the best one last, on top."""
    for place in range(top, top + count):
        worst = -1
        for c in range(count):
            if children.bounds[c] > -np.inf and (worst < 0 or children.bounds[c] > children.bounds[worst]):
                worst = c
        _copy(children.points[worst], stack.points[place], children.numbers[worst, COUNT])
        for i in range(stack.numbers.shape[1]):
            stack.numbers[place, i] = children.numbers[worst, i]
        for i in range(stack.states.shape[1]):
            stack.states[place, i] = children.states[worst, i]
        stack.bounds[place] = children.bounds[worst]
        children.bounds[worst] = -np.inf  # it has been moved


@njit_part
def _replay(start: Floats, tasks: Tasks, tolerance: float) -> float:
    """The sum of flow times with these starts; infinite where one is before its release."""
    size, release, b, eta = tasks
    n = size.shape[0]
    remaining = np.zeros(n)
    begun = np.zeros(n, np.bool_)
    clock = total = 0.0
    active, over = 0, 0
    for i in range(n):
        if start[i] < release[i] - tolerance:
            return np.inf
    while over < n:
        # The next event: the start of the earliest that has not begun, or the end of the one with least left.
        following = np.inf
        first = -1
        for i in range(n):
            if not begun[i]:
                following = min(following, max(start[i], release[i]))
            elif remaining[i] >= 0.0 and (first < 0 or remaining[i] < remaining[first]):
                first = i
        pace = active * b + (active - 1) * eta
        if active > 0 and clock + pace * remaining[first] <= following:
            volume = remaining[first]
            clock += pace * volume
            total += clock - release[first]
            for i in range(n):
                if begun[i] and remaining[i] >= 0.0:
                    remaining[i] = max(0.0, remaining[i] - volume)
            remaining[first] = -1.0  # done
            active -= 1
            over += 1
            continue
        for i in range(n):
            if active > 0 and begun[i] and remaining[i] >= 0.0:
                remaining[i] = max(0.0, remaining[i] - (following - clock) / pace)
        clock = following
        for i in range(n):
            if not begun[i] and max(start[i], release[i]) <= clock:
                begun[i] = True
                remaining[i] = size[i]
                active += 1
    return total


@njit_inner
def _copy(source: Floats, target: Floats, count: int) -> None:
    for p in range(count):
        for d in range(source.shape[1]):
            target[p, d] = source[p, d]


PIECES = 8
"""An interval of partial schedules is bounded in so many pieces."""


@njit_cached
def interval_bound(points: Floats, state: States, tasks: Tasks) -> float:
    """:func:`set_bound` of the worst piece of the interval between two points."""
    ends = np.empty((2, points.shape[1]))
    bound = np.inf
    for piece in range(PIECES):
        for p in range(2):
            part = (piece + p) / PIECES
            for d in range(points.shape[1] - 1):  # the mask is no number
                ends[p, d] = (1 - part) * points[0, d] + part * points[1, d]
        bound = min(bound, set_bound(ends, ends.shape[0], state, tasks))
    return float(bound)


@njit_inner
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
