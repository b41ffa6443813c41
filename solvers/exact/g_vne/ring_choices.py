"""Whole choices of rings: greedy completion at given prices, ruin and recreate.

Idea: at prices of servers and links a job's best ring is a shortest closed walk; jobs are inserted one after another,
then some are removed and inserted again. Source: ruin and recreate (Schrimpf et al., 2000). Choices fit; nothing is
proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.solvers.column_generation import (
    Column,
)
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem
from schedgap.solvers.ruin_and_recreate import Choice, RuinAndRecreate

SLACK = 1e-12
"""Rounding of sums; row limits carry the checker's tolerance already."""


COOLING = 0.02
"""First temperature of the search over the mean worth of a job."""


class RingChoices(RuinAndRecreate[Column, Floats]):
    """Choices of rings that fit together.

    Parameters
    ----------
    subproblem : the rings, with their caps
    seed : seed of all randomness
    """

    def __init__(self, subproblem: RingSubproblem, seed: int) -> None:
        super().__init__(subproblem.data.jobs, False, seed)
        self.subproblem = subproblem
        self.limit = np.array([row.upper for row in subproblem.rows])

    def renew(self) -> None:
        """Take the rows of the subproblem over, after some were added."""
        self.limit = np.array([row.upper for row in self.subproblem.rows])

    def empty(self) -> Floats:
        """(rows,) zeros."""
        return np.zeros(len(self.limit))

    def change(self, load: Floats, group: int, item: Column, sign: int) -> None:
        """Add (+1) or take away (-1) a ring."""
        del group
        load[item.rows] += sign * item.values

    def fits(self, load: Floats, group: int, item: Column) -> bool:
        """Whether a ring is worth something and fits beside the others."""
        del group
        within = load[item.rows] + item.values <= self.limit[item.rows] * (1 + SLACK)
        return item.objective > 0 and bool(np.all(within))

    def best(self, load: Floats, group: int, prices: Floats) -> Column | None:
        """The best ring at the prices that fits beside the others."""
        ring = self.subproblem.best_fitting(group, self.limit - load, prices)
        return ring if ring is not None and self.fits(load, group, ring) else None

    def worth(self, group: int, item: Column) -> float:
        """The ring's utility."""
        del group
        return item.objective

    def order(self) -> list[int]:
        """Jobs that can have a ring, the largest utility first."""
        able = [j for j in range(self.groups) if self.subproblem.longest[j] > 0]
        return sorted(able, key=lambda j: -float(np.max(self.subproblem.worth[j])))

    def ruin(self, items: Sequence[Column | None]) -> tuple[list[int], Callable[[list[int]], list[int]]]:
        """A job and up to five others that use the same rows; they come back with at most four of the others."""
        removed = self._neighbours(items, int(self.rng.integers(1, max(2, min(7, self.groups + 1)))))

        def ordered(out: list[int]) -> list[int]:
            absent = [j for j in out if self.subproblem.longest[j] > 0]
            if len(absent) > len(removed) + 4:
                others = [j for j in absent if j not in removed]
                absent = [*removed, *self.rng.choice(others, size=4, replace=False).tolist()]
            self.rng.shuffle(absent)
            return absent

        return removed, ordered

    def perturbed(self, prices: Floats) -> Floats:
        """Every price times noise."""
        return prices * self.rng.uniform(0.0, 1.6)

    def accepts(self, loss: float, progress: float, start: Choice[Column], best: Choice[Column]) -> bool:
        """No loss, or one by the Metropolis rule at a temperature that falls to 0."""
        del best
        if loss <= 0:
            return True
        scale = COOLING * max(1e-9, start.worth / max(1, sum(item is not None for item in start.items)))
        return bool(self.rng.random() < np.exp(-loss / max(1e-12, scale * (1 - progress))))

    def _neighbours(self, items: Sequence[Column | None], count: int) -> list[int]:
        """A job and others that use the same rows."""
        taken = [j for j, item in enumerate(items) if item is not None]
        if not taken:
            return []
        seed = int(self.rng.choice(taken))
        first = items[seed]
        assert first is not None
        rows = set(first.rows.tolist())
        near = []
        for j in taken:
            item = items[j]
            if j != seed and item is not None and not rows.isdisjoint(item.rows.tolist()):
                near.append(j)
        self.rng.shuffle(near)
        return [seed, *near[: count - 1]]
