"""Diving: rings of large weight are fixed a few at a time, and the LP over what is left is solved again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.column_generation import Column, Generated, GenerationLimits, Master, Priced, RowBounds
from schedgap.solvers.exact.g_vne.rules import Rules
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem
from schedgap.solvers.result import Deadline
from schedgap.solvers.ruin_and_recreate import Choice, RuinAndRecreate

# Whole choices of rings: greedy completion at given prices, ruin and recreate.

Floats = NDArray[np.float64]

SLACK = 1e-12
"""Rounding of sums that is no overuse; row limits carry the checker's tolerance already."""
COOLING = 0.02
"""First temperature of the search over the mean worth of a job."""


class RingChoices(RuinAndRecreate[Column, Floats]):
    """Choices of rings that fit together.

    Parameters
    ----------
    subproblem : the rings, with their caps
    seed : of all randomness
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
        there = [j for j, item in enumerate(items) if item is not None]
        if not there:
            return []
        seed = int(self.rng.choice(there))
        first = items[seed]
        assert first is not None
        rows = set(first.rows.tolist())
        near = []
        for j in there:
            item = items[j]
            if j != seed and item is not None and not rows.isdisjoint(item.rows.tolist()):
                near.append(j)
        self.rng.shuffle(near)
        return [seed, *near[: count - 1]]


Ints = NDArray[np.int64]

SHARE = 0.05
"""Of the jobs that are left, so many are fixed in a step, beside those whose ring has all the weight."""
PRICINGS = 5
"""In a step."""
ALL_OF_IT = 0.999


def dive(
    subproblem: RingSubproblem, rings: RingChoices, root: Generated, deadline: Deadline
) -> tuple[list[Column | None], Floats]:
    """A choice of rings from the LP's weights, with new rings for what the fixed ones leave.

    Parameters
    ----------
    root : the solved LP
    deadline : when to stop; what is fixed by then is returned

    Returns
    -------
    At most one ring for each job, together within all limits; and what they use.

    Notes
    -----
    About 1 / SHARE log J steps of `PRICINGS` pricings and LPs that shrink.
    """
    choice: list[Column | None] = [None] * subproblem.data.jobs
    load = np.zeros(len(rings.limit))
    free = set(range(subproblem.data.jobs))
    weights: Floats = root.weights
    columns: Sequence[Column] = root.columns
    while free and not deadline.passed:
        if not _fix(rings, choice, load, free, columns, weights):
            break
        gone = np.array([j not in free for j in range(subproblem.data.jobs)])
        rules = Rules(_caps(subproblem, rings.limit - load), gone)

        def pricing(duals: Floats, weight: float, rules: Rules = rules) -> Priced:
            priced = subproblem.price_all(duals, weight, rules)
            return Priced(priced.best, [c for c in priced.columns if rings.fits(load, c.group, c)])

        rows = [RowBounds(upper=max(0.0, left)) for left in rings.limit - load]
        master = Master(MAXIMISE, rows, [False] * subproblem.data.jobs)
        master.add([c for c in columns if c.group in free and rings.fits(load, c.group, c)])
        limits = GenerationLimits(deadline=deadline, tolerance=1e-4, iterations=PRICINGS, smoothing=0.0)
        solved = master.generate(pricing, limits)
        weights, columns = solved.weights, solved.columns
    return choice, load


def _fix(
    rings: RingChoices,
    choice: list[Column | None],
    load: Floats,
    free: set[int],
    columns: Sequence[Column],
    weights: Floats,
) -> int:
    """Fix the rings of largest weight that fit; how many there were. Changes choice, load and free."""
    most = max(1, int(SHARE * len(free)))
    fixed = split = 0
    for place in np.argsort(-weights, kind="stable"):
        if weights[place] <= 1e-6:
            break
        column = columns[place]
        if weights[place] < ALL_OF_IT and split >= most:
            break
        if column.group in free and rings.fits(load, column.group, column):
            free.discard(column.group)
            choice[column.group] = column
            load[column.rows] += column.values
            fixed += 1
            split += int(weights[place] < ALL_OF_IT)
    return fixed


def _caps(subproblem: RingSubproblem, left: Floats) -> Ints:
    """(J, V) workers of each job that fit on each node beside the fixed rings."""
    room = np.append(np.maximum(0.0, left), np.inf)
    cap = subproblem.cap.copy()
    for r in range(subproblem.data.demand.shape[1]):
        needy = np.flatnonzero(subproblem.data.demand[:, r] > 0)
        fits = room[subproblem.node_row[:, r]][None, :] / subproblem.data.demand[needy, r][:, None] + 1e-9
        cap[needy] = np.minimum(cap[needy], np.minimum(fits, subproblem.data.longest.max())).astype(np.int64)
    return cap
