"""comm-contention: a tree over sequences of events, in order of time; the form ``orders``.

``event[p]`` is the p-th event, kind * n + task: an end (0); a start with the last event (1), at the task's release
(2), or open, at any moment up to the next end (3); a start that is with the last event and at its release (4). The
events up to some position leave a set of partial schedules: the hull of points (clock, sum of ends so far, volumes
left). A leaf is ``{}``; its bound is that of the worst event which its box leaves for the first open position.

What makes the sequences enough is proven in comm_contention/METHODS.md: in some optimal schedule every start is of
these kinds, an open start is followed by a contact of its own, and a link is idle only until a release, before which
nothing waiting could have been moved. A contact is an end at the release of a task that starts there (kind 4), or two
ends and three starts at once. `debt` is at most the open starts whose contacts are still to come: a set with a debt
that nothing to come can pay is empty. Sets may be too large: cuts beyond `MOST` points are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

END, NOW, RELEASE, OPEN, MEETING = range(5)
KINDS = 5
MOST = 64
GRID = 2**100
"""Bounds are in whole multiples of 1 / 2^100, rounded down."""

Point = tuple[Any, ...]
"""Clock, sum of ends so far, volumes left by task, moments of open starts; last, as bits, which equalities it has."""
WAITING, ACTIVE, DONE = range(3)


@dataclass(frozen=True)
class Set:
    """Partial schedules with the same events."""

    points: tuple[Point, ...]  # whose hull has them all
    state: tuple[int, ...]  # state of each task
    debt: int = 0
    # ends, starts: how many ends, and starts, have the moment of the last event; both at most so many
    ends: int = 0
    starts: int = 0
    last: int = -1  # the task of the last event if that is a start that others may follow in order; else -1


def cut(points: tuple[Point, ...], level: list[Fraction], on: bool) -> tuple[Point, ...]:
    """The part of a hull where an affine function, given at its points, is not negative (`on`: is 0), or more.

    The points are all corners of the set over the moments of open starts; a new one is on an edge. Two corners are
    joined by an edge if no other one has all the equalities that both have (Fukuda and Prodon 1996).
    """
    signs = [v.numerator for v in level]
    if len(points) > MOST or not any(v < 0 or (on and v > 0) for v in signs):
        return points
    bit = 1 << max(p[-1].bit_length() for p in points)
    kept = [
        p if v else (*p[:-1], p[-1] | bit) for p, v in zip(points, signs, strict=True) if not v or (v > 0 and not on)
    ]
    inside = [(p, level[k]) for k, p in enumerate(points) if signs[k] > 0]
    outside = [(p, level[k]) for k, p in enumerate(points) if signs[k] < 0]
    masks = [p[-1] for p in points]
    for p, v in inside:
        for q, w in outside:
            common = p[-1] & q[-1]
            if sum(mask & common == common for mask in masks) == 2:
                part = v / (v - w)
                between = (x if x is y or x == y else x + part * (y - x) for x, y in zip(p[:-1], q[:-1], strict=True))
                kept.append((*between, common | bit))
    return tuple(kept)


def down(value: Fraction) -> int:
    """In multiples of 1 / 2^100, rounded down."""
    return value.numerator * GRID // value.denominator


class Orders:
    """The sets and bounds of an instance; without latency, which the caller adds."""

    def __init__(self, size: list[Fraction], release: list[Fraction], b: Fraction, eta: Fraction) -> None:
        self.size, self.release, self.b, self.eta = size, release, b, eta
        self.n = len(size)
        root = Set(((min(release), Fraction(0), *[Fraction(0)] * (2 * self.n), 0),), (WAITING,) * self.n)
        self.path: list[tuple[int, Set | None]] = [(-1, root)]
        self.work = [down(b * m) for m in size]
        self.sizes = [down(m) for m in size]
        self.coming = [down(r) for r in release]

    def pace(self, k: int) -> Fraction:
        """Seconds a unit with k active."""
        return k * self.b + (k - 1) * self.eta

    def after(self, events: Sequence[int]) -> Set | None:
        """The set that these events leave; None: no schedule that has to be looked at."""
        same = 0
        while same < min(len(events), len(self.path) - 1) and self.path[same + 1][0] == events[same]:
            same += 1
        del self.path[same + 1 :]
        for event in events[same:]:
            before = self.path[-1][1]
            self.path.append((event, None if before is None else self.follow(before, *divmod(event, self.n))))
        return self.path[-1][1]

    def follow(self, s: Set, kind: int, j: int) -> Set | None:
        """The set after one more event."""
        active = [i for i in range(self.n) if s.state[i] == ACTIVE]
        if s.state[j] != (ACTIVE if kind == END else WAITING):
            return None
        if kind == END:
            return self._end(s, j, active)
        points = self._idle(s, kind, j) if not active else self._start(s, kind, j, active)
        if not points:
            return None
        debt, here = s.debt + (kind == OPEN), kind in (NOW, MEETING)
        starts, ends = (s.starts + 1, s.ends) if here else (1, 0)
        if kind == MEETING or (kind == NOW and all(p[0] == self.release[j] for p in points)):
            debt -= max(1, ends)
        elif ends >= 2 and starts >= 3:
            debt -= ends - 1
        moment = 2 + self.n + j
        begun = tuple(
            (*p[: 2 + j], self.size[j], *p[3 + j : moment], p[0] if kind == OPEN else Fraction(0), *p[moment + 1 :])
            for p in points
        )
        state = (*s.state[:j], ACTIVE, *s.state[j + 1 :])
        last = j if kind in (NOW, OPEN) else -1
        return self._kept(Set(begun, state, max(0, debt), ends, starts, last))

    def _kept(self, s: Set) -> Set | None:
        """The set, or nothing if it has a debt and no later contact can come; one point where the future is one."""
        first = s.points[0]
        if all(p[0] == first[0] and p[2 : 2 + self.n] == first[2 : 2 + self.n] for p in s.points):
            return Set((min(s.points),), s.state, 0, s.ends, s.starts, s.last)
        waiting = [i for i in range(self.n) if s.state[i] == WAITING]
        early = min(p[0] for p in s.points)
        meets = any(self.release[i] >= early for i in waiting)
        ties = len(waiting) >= 3 or (s.ends >= 2 and len(waiting) + s.starts >= 3)
        return s if not s.debt or meets or ties else None

    def _end(self, s: Set, j: int, active: list[int]) -> Set | None:
        """Task j is the next to end; of equals in a single point the first."""
        points = s.points
        for i in active:
            if i != j:
                if len(points) == 1 and i < j and points[0][2 + i] == points[0][2 + j]:
                    return None
                points = cut(points, [p[2 + i] - p[2 + j] for p in points], False)
        if not points:
            return None
        pace, found = self.pace(len(active)), []
        for p in points:
            moved = p[2 + j]
            left = [p[2 + i] - moved if s.state[i] == ACTIVE else p[2 + i] for i in range(self.n)]
            now = p[0] + pace * moved
            found.append((now, p[1] + now, *left, *p[2 + self.n :]))
        state = (*s.state[:j], DONE, *s.state[j + 1 :])
        return self._kept(Set(tuple(found), state, s.debt, s.ends + 1 if s.ends and not s.starts else 1))

    def _idle(self, s: Set, kind: int, j: int) -> tuple[Point, ...]:
        """A start on the idle link: at once or at the release; nothing else could have been moved before."""
        early, late = min(p[0] for p in s.points), max(p[0] for p in s.points)
        others = [i for i in range(self.n) if s.state[i] == WAITING and i != j]
        if any(max(late, self.release[i]) + self.b * self.size[i] <= max(early, self.release[j]) for i in others):
            return ()
        return self._moment(s, kind, j)

    def _moment(self, s: Set, kind: int, j: int) -> tuple[Point, ...]:
        """Starts that do not move on: all but those at a later release or open; and the release on an idle link."""
        r, points = self.release[j], s.points
        if kind == NOW:
            return cut(points, [p[0] - r for p in points], False)
        if kind == MEETING:
            return () if len({p[0] for p in points}) == 1 else cut(points, [p[0] - r for p in points], True)
        if kind == RELEASE and min(p[0] for p in points) < r:
            return tuple((r, *p[1:]) for p in cut(points, [r - p[0] for p in points], False))
        return ()

    def _start(self, s: Set, kind: int, j: int, active: list[int]) -> tuple[Point, ...]:
        """A start beside active tasks, not after their next end."""
        if kind in (NOW, MEETING):
            return () if kind == NOW and j < s.last else self._moment(s, kind, j)
        r, pace, points = self.release[j], self.pace(len(active)), s.points
        early = min(p[0] for p in points)
        if kind == RELEASE:
            if early >= r:
                return ()
            points = cut(points, [r - p[0] for p in points], False)
            for i in active:
                points = cut(points, [pace * p[2 + i] - (r - p[0]) for p in points], False)
            return tuple(self._moved(p, (r - p[0]) / pace, pace, active) for p in points)
        others = [i for i in range(self.n) if s.state[i] == WAITING and i != j]
        latest = max((self.release[i] for i in others), default=early)
        if len(others) < 3 and latest <= max(early, r):
            return ()
        volume = max(min(p[2 + i] for i in active) for p in points)
        if not volume:
            return ()
        bit = 1 << max(p[-1].bit_length() for p in points)
        points = (
            *((*p[:-1], p[-1] | bit) for p in points),
            *((*self._moved(p, volume, pace, active)[:-1], p[-1] | 2 * bit) for p in points),
        )
        for i in active:
            points = cut(points, [p[2 + i] for p in points], False)
        points = cut(points, [p[0] - r for p in points], False)
        if len(others) < 3:
            points = cut(points, [latest - p[0] for p in points], False)
        return points if any(p[:-1] != points[0][:-1] for p in points) else ()

    @staticmethod
    def _moved(p: Point, volume: Fraction, pace: Fraction, active: list[int]) -> Point:
        """A point after all active tasks have moved a volume."""
        q = list(p)
        q[0] += pace * volume
        for i in active:
            q[2 + i] -= volume
        return tuple(q)

    def bound(self, s: Set) -> int:
        """At most the sum of ends of every schedule that begins as one in the set, in 1 / 2^100.

        By the volume identity this is, with A the active and W the waiting tasks,

            (ends so far + ends of A without W) + sum over W of (start + b M) + 2 (b + eta) (V between A and W + in W).

        The first is concave over the set, so least at a point, also with the time that those of W who are there wait
        since the least clock. The rest is at least SRPT's of W and what each adds with A at its best start; less that
        time it never falls when clock or volumes left rise. Or all takes as long as on a machine that may pause.
        """
        active = [i for i, state in enumerate(s.state) if state == ACTIVE]
        waiting = [i for i, state in enumerate(s.state) if state == WAITING]
        points = [(down(p[0]), down(p[1]), [down(p[2 + i]) for i in active]) for p in s.points]
        now, cost = min(p[0] for p in points), min(p[1] for p in points)
        here = sum(self.coming[i] <= now for i in waiting)
        own = min(cost + clock * (len(active) + here) + self.alone(left) for clock, cost, left in points) - here * now
        least = [max(0, min(lefts)) for lefts in zip(*(left for _, _, left in points), strict=True)]
        jobs = [(self.coming[i], self.work[i]) for i in waiting]
        everything = [*jobs, *((now, self.times(self.b, v)) for v in least)]
        apart = self.apart(now, sorted(least), waiting)
        return max(cost + shortest(now, everything), own + apart + shortest(now, jobs))

    @staticmethod
    def times(factor: Fraction, value: int) -> int:
        """Rounded down."""
        return factor.numerator * value // factor.denominator

    def alone(self, left: list[int]) -> int:
        """The sum of ends of tasks that are active from moment 0, with nobody else."""
        ordered = sorted(left, reverse=True)
        shared = sum(k * v for k, v in enumerate(ordered))
        return self.times(self.b, sum(ordered)) + self.times(2 * (self.b + self.eta), shared)

    def apart(self, now: int, left: list[int], waiting: list[int]) -> int:
        """What each waiting task adds with the active ones.

        It starts at once, at its release or at an end of these.
        """
        k, twice = len(left), 2 * (self.b + self.eta)
        ends, moved = [now], 0
        for q, volume in enumerate(left):
            ends.append(ends[-1] + self.times(self.pace(k - q), volume - moved))
            moved = volume
        left = [0, *left]
        total = 0
        for j in waiting:
            first, m = max(self.coming[j], now), self.sizes[j]
            q = max(place for place, end in enumerate(ends) if end <= first)
            best = first
            if q < k:
                at = left[q] - self.times(-1 / self.pace(k - q), first - ends[q])  # rounded up
                best += self.times(twice, sum(max(0, min(m, x - at)) for x in left[q + 1 :]))
                for e in range(q + 1, k + 1):
                    best = min(best, ends[e] + self.times(twice, sum(min(m, x - left[e]) for x in left[e + 1 :])))
            total += best - first
        return total

    def least(self, before: Set, low: int, high: int) -> int | None:
        """The larger of the set's bound and the least after one more event, of these; None: there is none."""
        own = self.bound(before)
        if WAITING not in before.state:
            return own
        after = [self.follow(before, *divmod(event, self.n)) for event in range(low, high + 1)]
        bounds = [self.bound(found) for found in after if found is not None]
        return max(own, min(bounds)) if bounds else None


def shortest(now: int, jobs: list[tuple[int, int]]) -> int:
    """The least sum of ends of (release, work) from now on, on one machine that may pause."""
    coming = sorted(((max(now, r), w) for r, w in jobs), reverse=True)
    waiting: list[int] = []
    total = 0
    while coming or waiting:
        if not waiting:
            now = max(now, coming[-1][0])
        while coming and coming[-1][0] <= now:
            waiting.append(coming.pop()[1])
        waiting.sort(reverse=True)
        if not coming or now + waiting[-1] <= coming[-1][0]:
            now += waiting.pop()
            total += now
        else:
            waiting[-1] -= coming[-1][0] - now
            now = coming[-1][0]
    return total
