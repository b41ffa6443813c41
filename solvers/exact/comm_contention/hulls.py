"""Sets of partial schedules as convex hulls of points (compiled).

All partial schedules with the same sequence of events form a polytope: clock, cost, volumes left and starts are
affine in the few starts that are not tied to an event. A set is kept as its corners, or as more points with the
same hull. Two points count as joined by an edge when no third one satisfies all the inequalities with equality
that both do (the combinatorial test of the double description method, Fukuda and Prodon 1996). After what
bounds.py reads of a point come n starts, and last the mask: which of the inequalities that made the set hold
with equality there, as bits of a whole number.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.compiled import njit_inner, njit_part

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
    dimension : largest dimension of the hull
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
                for p in range(count):
                    keep[p] = False
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
    keep = np.empty(count, np.bool_)
    for p in range(count):
        keep[p] = True
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
                if turn * (dx * ey - dy * ex) < -tolerance * math.sqrt(dx * dx + dy * dy):
                    break
                m -= 1
            chain[m] = p
            m += 1
        for q in range(m):
            keep[chain[q]] = True
    return keep
