"""A search over event orders of tiny comm-contention instances, with an exact linear program per order.

For the tests and the suite ``cross``. It knows nothing of the models, the dynamics or the checker: orders grow event
by event, and one is given up when the linear program of its beginning is no better than the best schedule known. All
numbers are rational, so that optima which differ by a billionth, or sizes over many magnitudes, are told apart.
"""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

from oracles import TooManyError
from oracles.exact_lp import ZERO, Vector, minimum
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

Prefix = tuple[int, ...]
"""Event e < n is the start of task e, event n + j the completion of task j."""


def brute_force(instance: CommContentionInstance, limit: int = 100_000) -> tuple[Fraction, Solution]:
    """(optimum, a solution that has it); TooManyError beyond `limit` linear programs.

    Starts are rounded up to the next float: a transfer never begins before the one that it follows is over.
    """
    search = _Search(instance, limit)
    search.extend(())
    starts = zip((task.id for task in instance.tasks), map(_rounded_up, search.start), strict=True)
    return search.best / len(instance.tasks) + exact(instance.link.latency), {"start": dict(starts)}


def _rounded_up(value: Fraction) -> float:
    near = float(value)
    return near if exact(near) >= value else math.nextafter(near, math.inf)


class _Search:
    def __init__(self, instance: CommContentionInstance, limit: int) -> None:
        self.size = [exact(task.size) for task in instance.tasks]
        self.release = [exact(task.release) for task in instance.tasks]
        self.b = exact(instance.link.seconds_per_unit)
        self.eta = exact(instance.link.contention_penalty)
        self.n = len(self.size)
        self.left = limit
        self.start: Vector = []
        totals = []
        for order in itertools.permutations(range(self.n)):  # one after the other, to begin with
            clock, total = ZERO, ZERO
            starts = [ZERO] * self.n
            for j in order:
                starts[j] = max(clock, self.release[j])
                clock = starts[j] + self.b * self.size[j]
                total += clock - self.release[j]
            totals.append((total, starts))
        self.best, self.start = min(totals)

    def extend(self, prefix: Prefix) -> None:
        """Every order that begins like this."""
        found = self.value(prefix) if prefix else (ZERO, [])
        if found is None or found[0] >= self.best:
            return
        if len(prefix) == 2 * self.n:
            self.best, self.start = found
            return
        active = [j for j in range(self.n) if j in prefix and self.n + j not in prefix]
        for j in active:
            self.extend((*prefix, self.n + j))
        for j in range(self.n):
            if j not in prefix:
                self.extend((*prefix, j))

    def value(self, prefix: Prefix) -> tuple[Fraction, Vector] | None:
        """The least sum of flow times that a beginning allows, and the moments of the starts in it.

        Variables: the moment t_0 of the first event less its release, the time from each event to the next, then
        for every unfinished task its completion. An unfinished task needs b seconds for every unit not moved.
        """
        if not self.left:
            raise TooManyError("too many linear programs")
        self.left -= 1
        m = len(prefix)
        open_tasks = [j for j in range(self.n) if self.n + j not in prefix]
        width = m + len(open_tasks)
        moved = [[ZERO] * width for _ in range(self.n)]  # units moved by the last event
        active: set[int] = set()
        rows: list[Vector] = []  # rows x <= right
        right: Vector = []

        def add(row: Vector, limit: Fraction) -> None:
            rows.append(row)
            right.append(limit)

        def until(p: int) -> Vector:
            """The moment of event p."""
            return [Fraction(q <= p) for q in range(m)] + [ZERO] * len(open_tasks)

        cost = [ZERO] * m + [Fraction(1)] * len(open_tasks)
        for p, event in enumerate(prefix):
            k = len(active)
            for j in active:
                moved[j][p] = 1 / (k * self.b + (k - 1) * self.eta)
            if event < self.n:
                active.add(event)
                add([-x for x in until(p)], -self.release[event])
            else:
                j = event - self.n
                active.remove(j)
                cost = [a + b for a, b in zip(cost, until(p), strict=True)]
                add(moved[j].copy(), self.size[j])
                add([-x for x in moved[j]], -self.size[j])
        for place, j in enumerate(open_tasks):
            row = [t - self.b * x for t, x in zip(until(m - 1), moved[j], strict=True)]
            row[m + place] = Fraction(-1)
            add(row, -self.b * self.size[j])
            if j in active:
                add(moved[j], self.size[j])
            else:
                alone = [ZERO] * width
                alone[m + place] = Fraction(-1)
                add(alone, -(self.release[j] + self.b * self.size[j]))
        found = minimum(cost, rows, right)
        if found is None:
            return None
        clock = list(itertools.accumulate(found[1][:m]))
        starts = [ZERO] * self.n
        for p, event in enumerate(prefix):
            if event < self.n:
                starts[event] = clock[p]
        return found[0] - sum(self.release), starts


def solve_brute_force(instance: CommContentionInstance, options: SolveOptions) -> Result:
    """The search as an exact method, for the suite ``cross``; limits are not kept."""
    del options
    began = time.monotonic()
    found, solution = brute_force(instance)
    seconds, value = time.monotonic() - began, float(found)
    return Result(Status.OPTIMAL, value, value, solution, Termination.PROVEN, solve_seconds=seconds)
