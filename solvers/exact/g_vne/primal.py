"""Whole choices of rings: greedy completion at given prices, ruin and recreate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from schedgap.solvers.column_generation import Column
from schedgap.solvers.exact.g_vne.space import Space

Floats = NDArray[np.float64]

Choice = list[Column | None]
"""A ring or None for every job."""

SLACK = 1e-12
"""Rounding of sums that is no overuse; row limits carry the checker's tolerance already."""
COOLING = 0.02
"""First temperature of the search over the mean worth of a job."""


class Improver:
    """Choices of rings that fit together.

    Parameters
    ----------
    space : the rings, with their caps
    seed : of the search
    """

    def __init__(self, space: Space, seed: int) -> None:
        self.space = space
        self.limit = np.array([row.upper for row in space.rows])
        self.rng = np.random.default_rng(seed)

    def renew(self) -> None:
        """Take the rows of the space over, after some were added."""
        self.limit = np.array([row.upper for row in self.space.rows])

    def load(self, choice: Sequence[Column | None]) -> Floats:
        """(rows,) what a choice uses."""
        load = np.zeros(len(self.limit))
        for column in choice:
            if column is not None:
                load[column.rows] += column.values
        return load

    def fits(self, column: Column, load: Floats) -> bool:
        """Whether a ring fits beside the others."""
        return bool(np.all(load[column.rows] + column.values <= self.limit[column.rows] * (1 + SLACK)))

    @staticmethod
    def value(choice: Sequence[Column | None]) -> float:
        """Sum of the utilities."""
        return float(sum(column.objective for column in choice if column is not None))

    def greedy(self, wanted: Sequence[Column], duals: Floats) -> Choice:
        """Take rings in the given order where they fit, then the best ring that fits for each job left."""
        choice: Choice = [None] * self.space.data.jobs
        load = np.zeros(len(self.limit))
        for column in wanted:
            if choice[column.group] is None and column.objective > 0 and self.fits(column, load):
                choice[column.group] = column
                load[column.rows] += column.values
        left = [j for j in range(len(choice)) if choice[j] is None and self.space.longest[j] > 0]
        self.insert(choice, load, sorted(left, key=lambda j: -float(np.max(self.space.worth[j]))), duals)
        return choice

    def insert(self, choice: Choice, load: Floats, jobs: Sequence[int], duals: Floats) -> None:
        """Give each of the jobs its best ring at the prices that fits beside the others; changes both arguments."""
        for j in jobs:
            column = self.space.best_fitting(j, self.limit - load, duals)
            if column is not None and column.objective > 0 and self.fits(column, load):
                choice[j] = column
                load[column.rows] += column.values

    def improve(self, choice: Choice, duals: Floats, rounds: int, stop: Callable[[], bool]) -> Choice:
        """Ruin and recreate: take some jobs out, put them and those left out back in another order.

        Worse choices are accepted at a temperature that falls to 0 over the rounds; the best choice is returned.
        Repeatable for a seed unless `stop` ends it.
        """
        jobs = len(choice)
        current, best = list(choice), list(choice)
        load = self.load(current)
        value = top = self.value(current)
        scale = COOLING * max(1e-9, top / max(1, sum(c is not None for c in current)))
        for number in range(rounds):
            if stop():
                break
            ruined = list(current)
            trial = load.copy()
            out = self._neighbours(ruined, int(self.rng.integers(1, max(2, min(7, jobs + 1)))))
            for j in out:
                column = ruined[j]
                if column is not None:
                    trial[column.rows] -= column.values
                    ruined[j] = None
            absent = [j for j in range(jobs) if ruined[j] is None and self.space.longest[j] > 0]
            if len(absent) > len(out) + 4:
                others = [j for j in absent if j not in out]
                absent = [*out, *self.rng.choice(others, size=4, replace=False).tolist()]
            self.rng.shuffle(absent)
            noise = duals * self.rng.uniform(0.0, 1.6)
            self.insert(ruined, trial, absent, noise)
            new = self.value(ruined)
            heat = scale * (1 - number / rounds)
            if new >= value or self.rng.random() < np.exp((new - value) / max(1e-12, heat)):
                current, load, value = ruined, trial, new
                if value > top + 1e-12 * abs(top):
                    best, top = list(current), value
                if number % 64 == 0:
                    load = self.load(current)  # sums of differences drift
        return best

    def _neighbours(self, choice: Choice, count: int) -> list[int]:
        """A job and others that use the same rows."""
        there = [j for j, column in enumerate(choice) if column is not None]
        if not there:
            return []
        seed = int(self.rng.choice(there))
        first = choice[seed]
        assert first is not None
        rows = set(first.rows.tolist())
        near = []
        for j in there:
            column = choice[j]
            if j != seed and column is not None and not rows.isdisjoint(column.rows.tolist()):
                near.append(j)
        self.rng.shuffle(near)
        return [seed, *near[: count - 1]]
