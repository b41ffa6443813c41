"""Patterns of bins of several resources that prices ask for: a bounded knapsack with a row for each resource.

Idea: depth first over kinds, the most of each first; a branch is left where what is taken and the fractional knapsack
of one summed row are worth no more than the best so far. The weights of that row come from a few steps of
multiplicative updates. Source: ours, after surrogate relaxation (Glover, 1965). Guarantee: prices are whole numbers,
so that what is called exact is; where the search is cut, the relaxation at its root is the bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached
from schedgap.solvers.exact.gang_placement.bins import Bins

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

FINE = 2**16
"""Capacity of the summed row."""
LARGEST_PRICE = 2**46
"""Prices that times `FINE` are whole numbers of 64 bits; larger ones are counted in larger steps, rounded up."""
UPDATES, STEP, FADING = 24, 1.0, 0.88
"""Updates of the summed row's weights, size of the first, and each one's share of the one before."""
MOST_STEPS, FEW_STEPS = 300_000, 3_000
"""Steps of a search, and of one for the first packing."""
MOST_MORE = 8
"""Patterns of one class of bins that a round adds, each of kinds that those before it do not have."""
MOST_PAIRS = 20_000
"""Kinds times classes of bins beyond which the stage is left out."""


class Filling(NamedTuple):
    """A pattern, what it is worth, and what none is worth more than."""

    worth: int
    pattern: Ints
    most: int


class VectorKnapsacks:
    """Patterns of bins of several resources, by depth-first search."""

    def __init__(self, places: Bins) -> None:
        self.places = places
        used = places.sizes.any(axis=0)
        self.sizes, self.capacity = places.sizes[:, used], places.capacity[:, used]
        self.small = places.waiting.size <= MOST_PAIRS

    def best(self, price: Ints) -> Ints:
        """What no bin of each class holds more than, at prices of kinds."""
        fillings = [self._filled(price, waiting, b, MOST_STEPS) for b, waiting in enumerate(self.places.waiting)]
        return np.array([filling.most for filling in fillings], dtype=np.int64)

    def patterns(self, price: Ints, more_than: Ints) -> Iterator[tuple[int, Ints]]:
        """(class of bins, pattern) of some patterns that are worth more than said of their class, the best first."""
        for b, waiting in enumerate(self.places.waiting):
            rest = waiting
            for _ in range(MOST_MORE):
                filling = self._filled(price, rest, b, MOST_STEPS)
                if filling.worth <= more_than[b]:
                    break
                yield b, filling.pattern
                rest = np.where(filling.pattern > 0, 0, rest)

    def packed(self) -> Iterator[tuple[int, Ints]]:
        """Bin after bin filled as far as what is left goes, the smallest first."""
        shares = (self.sizes / np.maximum(1, self.capacity.max(axis=0))).sum(axis=1)
        price = np.ceil(shares * FINE).astype(np.int64)
        rest = self.places.waiting.max(axis=0)
        for b in np.argsort(self.capacity.sum(axis=1), kind="stable").tolist():
            for _ in self.places.bins[b]:
                pattern = self._filled(price, np.minimum(rest, self.places.waiting[b]), b, FEW_STEPS).pattern
                rest = rest - pattern
                yield b, pattern

    def _filled(self, price: Ints, waiting: Ints, b: int, most_steps: int) -> Filling:
        capacity = self.capacity[b]
        fits = np.flatnonzero((price > 0) & (waiting > 0) & (self.sizes <= capacity).all(axis=1))
        pattern = np.zeros(len(price), dtype=np.int64)
        if not len(fits):
            return Filling(0, pattern, 0)
        step = 1 << max(0, int(price.max()).bit_length() - LARGEST_PRICE.bit_length() + 1)
        sizes, waiting, coarse = self.sizes[fits], waiting[fits], -(-price[fits] // step)
        relaxed, order, summed = _relaxed(coarse, sizes / np.maximum(1, capacity), waiting)
        worth, counts, complete = _searched(
            coarse[order], sizes[order], capacity, waiting[order], summed[order], FINE, most_steps
        )
        pattern[fits[order]] = counts
        return Filling(int(pattern @ price), pattern, step * (int(worth) if complete else relaxed))


def _relaxed(price: Ints, shares: Floats, waiting: Ints) -> tuple[int, Ints, Ints]:
    """The least bound of fractional knapsacks of one summed row; kinds in its order, and the row.

    The row's sizes are rounded down and its capacity is whole, so that a pattern that keeps every resource keeps it:
    errors of floats are far below one unit in all.
    """
    weights = np.full(shares.shape[1], 1 / shares.shape[1])
    best: tuple[int, Ints, Ints] | None = None
    step = STEP
    for _ in range(UPDATES):
        summed = np.floor(shares @ weights * FINE).astype(np.int64)
        order = np.argsort(-(price / np.maximum(summed, 0.5)), kind="stable")
        filled = np.cumsum((summed * waiting)[order])
        whole = int(np.searchsorted(filled, FINE, side="right"))
        bound = int((price * waiting)[order][:whole].sum())
        used = (shares * waiting[:, None])[order][:whole].sum(axis=0)
        if whole < len(order):
            last, room = int(order[whole]), FINE - int(filled[whole - 1] if whole else 0)
            bound += int(price[last]) * room // int(summed[last])
            used = used + shares[last] * room / summed[last]
        if best is None or bound < best[0]:
            best = bound, order, summed
        weights = weights * np.exp(step * np.minimum(used - 1, 30.0))
        weights /= weights.sum()
        step *= FADING
    assert best is not None
    return best


@njit_cached
def _searched(
    price: Ints, sizes: Ints, capacity: Ints, waiting: Ints, summed: Ints, room: int, most_steps: int
) -> tuple[int, Ints, bool]:
    """The pattern that is worth most, and whether the search ended; kinds by their worth in the summed row."""
    kinds, resources = sizes.shape
    counts = np.zeros(kinds, dtype=np.int64)
    best_counts = np.zeros(kinds, dtype=np.int64)
    free = capacity.copy()
    worth = best = steps = first = 0
    while True:
        j = first
        while j < kinds:
            steps += 1
            bound, rest = worth, room
            for i in range(j, kinds):
                needed = summed[i] * waiting[i]
                if needed > rest:
                    bound += price[i] * rest // summed[i]
                    break
                bound += price[i] * waiting[i]
                rest -= needed
            if bound <= best:
                break
            times = waiting[j]
            for r in range(resources):
                if sizes[j, r] > 0:
                    times = min(times, free[r] // sizes[j, r])
            counts[j] = times
            worth += price[j] * times
            room -= summed[j] * times
            for r in range(resources):
                free[r] -= sizes[j, r] * times
            j += 1
        if j == kinds and worth > best:
            best = worth
            best_counts[:] = counts
        j -= 1
        while j >= 0 and counts[j] == 0:
            j -= 1
        if j < 0:
            return best, best_counts, True
        if steps > most_steps:
            return best, best_counts, False
        counts[j] -= 1
        worth -= price[j]
        room += summed[j]
        for r in range(resources):
            free[r] += sizes[j, r]
        first = j + 1
