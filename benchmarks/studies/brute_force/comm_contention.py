"""A search over event orders of tiny comm-contention instances, with a linear program per order.

For the tests and the suite ``cross``. It knows nothing of the models, the dynamics or the checker: orders grow event
by event, and one is given up when the linear program of its beginning is no better than the best schedule known.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from scipy.optimize import linprog

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

_LESS = 1e-9
"""Relative: an order must be better by this to be looked at."""

Prefix = tuple[int, ...]
"""Event e < n is the start of task e, event n + j the completion of task j."""


def brute_force(instance: CommContentionInstance, limit: int = 100_000) -> tuple[float, Solution]:
    """(optimum, a solution that has it); RuntimeError beyond `limit` linear programs."""
    search = _Search(instance, limit)
    search.extend(())
    return search.best / len(instance.tasks) + instance.link.latency, {
        "start": dict(zip((task.id for task in instance.tasks), search.start, strict=True))
    }


class _Search:
    def __init__(self, instance: CommContentionInstance, limit: int) -> None:
        self.size = [task.size for task in instance.tasks]
        self.release = [task.release for task in instance.tasks]
        self.b = instance.link.seconds_per_unit
        self.eta = instance.link.contention_penalty
        self.n = len(self.size)
        self.left = limit
        self.best = float("inf")
        self.start: list[float] = []
        for order in itertools.permutations(range(self.n)):  # one after the other, to begin with
            clock, total = 0.0, 0.0
            starts = [0.0] * self.n
            for j in order:
                starts[j] = max(clock, self.release[j])
                clock = starts[j] + self.b * self.size[j]
                total += clock - self.release[j]
            if total < self.best:
                self.best, self.start = total, starts

    def extend(self, prefix: Prefix) -> None:
        """Every order that begins like this."""
        found = self.value(prefix) if prefix else (0.0, [])
        if found is None or found[0] >= self.best * (1 - _LESS):
            return
        if len(prefix) == 2 * self.n:
            self.best = found[0]
            self.start = [max(t, r) for t, r in zip(found[1], self.release, strict=True)]
            return
        active = [j for j in range(self.n) if j in prefix and self.n + j not in prefix]
        for j in active:
            self.extend((*prefix, self.n + j))
        for j in range(self.n):
            if j not in prefix:
                self.extend((*prefix, j))

    def value(self, prefix: Prefix) -> tuple[float, list[float]] | None:
        """The least sum of flow times that a beginning allows, and the moments of the starts in it.

        Variables: the moments t_0 <= t_1 <= ... of its events, then for every unfinished task its completion. An
        unfinished task needs b seconds for every unit that it has not moved.
        """
        if not self.left:
            raise RuntimeError("too many linear programs")
        self.left -= 1
        m = len(prefix)
        open_tasks = [j for j in range(self.n) if self.n + j not in prefix]
        width = m + len(open_tasks)
        cost = np.zeros(width)
        for p, event in enumerate(prefix):
            cost[p] = 1.0 if event >= self.n else 0.0
        cost[m:] = 1.0
        moved = np.zeros((self.n, width))  # units moved by the last event
        active: set[int] = set()
        rows: list[Any] = []
        right: list[float] = []
        low = [0.0] * width
        for p, event in enumerate(prefix):
            if p:
                row = np.zeros(width)
                row[p - 1], row[p] = 1.0, -1.0
                rows.append(row)
                right.append(0.0)
                k = len(active)
                for j in active:
                    moved[j, p] += 1 / (k * self.b + (k - 1) * self.eta)
                    moved[j, p - 1] -= 1 / (k * self.b + (k - 1) * self.eta)
            if event < self.n:
                active.add(event)
                low[p] = self.release[event]
            else:
                active.remove(event - self.n)
        equal = [moved[e - self.n] for e in prefix if e >= self.n]
        for place, j in enumerate(open_tasks):
            row = self.b * -moved[j]
            row[m - 1] += 1.0
            row[m + place] = -1.0
            rows.append(row)
            right.append(-self.b * self.size[j])
            if j in active:
                rows.append(moved[j])
                right.append(self.size[j])
            else:
                low[m + place] = self.release[j] + self.b * self.size[j]
        found = linprog(
            cost,
            A_ub=np.array(rows) if rows else None,
            b_ub=np.array(right) if rows else None,
            A_eq=np.array(equal) if equal else None,
            b_eq=np.array([self.size[e - self.n] for e in prefix if e >= self.n]) if equal else None,
            bounds=[(value, None) for value in low],
            method="highs-ds",
        )
        if found.status != 0 or found.x is None or found.fun is None:
            return None
        starts = [0.0] * self.n
        for p, event in enumerate(prefix):
            if event < self.n:
                starts[event] = float(found.x[p])
        return float(found.fun) - sum(self.release), starts


def solve_brute_force(instance: CommContentionInstance, options: SolveOptions) -> Result:
    """The search as an exact method, for the suite ``cross``; limits are not kept."""
    del options
    began = time.monotonic()
    value, solution = brute_force(instance)
    seconds = time.monotonic() - began
    return Result(Status.OPTIMAL, value, value, solution, Termination.PROVEN, solve_seconds=seconds)
