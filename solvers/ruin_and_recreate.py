"""Ruin and recreate: choices of at most one item a group, by greedy insertion, and by taking out and inserting
again. A problem says what items are, which of them fit beside a choice, and which one is the best at given
prices; the search is the same for all (Schrimpf, Schneider, Stamm-Wilbrandt and Dueck 2000, Record breaking
optimization results using the ruin and recreate principle, Journal of Computational Physics 159).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")


Prices = TypeVar("Prices")


Load = NDArray[Any]


ROUNDING = 1e-12
"""Relative: sums of the same numbers in another order differ by this much."""


SUM_AGAIN = 64
"""Rounds after which a load is summed up anew, since sums of differences drift."""


@dataclass
class Choice(Generic[Item]):
    """The item of each group, None for a group without one."""

    items: list[Item | None]  # item of each group
    load: Load  # what they use together, in the problem's own form
    missing: int  # groups that must have an item and have none
    worth: float  # worth of all items

    def better_than(self, other: Choice[Item]) -> bool:
        """Fewer groups are missing, or as many and it is worth more."""
        if self.missing != other.missing:
            return self.missing < other.missing
        return self.worth > other.worth + ROUNDING * abs(other.worth)


class RuinAndRecreate(ABC, Generic[Item, Prices]):
    """Greedy insertion and its improvement, for one instance; repeatable for a seed unless the caller stops it.

    Parameters
    ----------
    groups : how many there are
    must : every group must have an item
    seed : seed of all randomness
    """

    def __init__(self, groups: int, must: bool, seed: int) -> None:
        self.groups = groups
        self.must = must
        self.rng = np.random.default_rng(seed)

    @abstractmethod
    def empty(self) -> Load:
        """The load of no item."""

    @abstractmethod
    def change(self, load: Load, group: int, item: Item, sign: int) -> None:
        """Add (+1) or take away (-1) an item's load in place."""

    @abstractmethod
    def fits(self, load: Load, group: int, item: Item) -> bool:
        """Whether an item fits beside a load."""

    @abstractmethod
    def best(self, load: Load, group: int, prices: Prices) -> Item | None:
        """The item of a group that fits beside a load and is worth most at the prices; None where none is wanted."""

    @abstractmethod
    def worth(self, group: int, item: Item) -> float:
        """The worth of one item."""

    @abstractmethod
    def order(self) -> list[int]:
        """The groups in the order in which they are inserted into an empty choice."""

    @abstractmethod
    def ruin(self, items: Sequence[Item | None]) -> tuple[list[int], Callable[[list[int]], list[int]]]:
        """Groups to take out, and what then orders those without an item for insertion."""

    @abstractmethod
    def perturbed(self, prices: Prices) -> Prices:
        """The prices with noise."""

    @abstractmethod
    def accepts(self, loss: float, progress: float, start: Choice[Item], best: Choice[Item]) -> bool:
        """Whether to go on from a choice that is worth `loss` less; `progress` runs from 0 to 1."""

    def choice(self, items: Iterable[Item | None]) -> Choice[Item]:
        """A choice with its load and worth."""
        own = list(items)
        load = self.empty()
        for group, item in enumerate(own):
            if item is not None:
                self.change(load, group, item, 1)
        return self._valued(own, load)

    def _valued(self, items: list[Item | None], load: Load) -> Choice[Item]:
        worth = sum(self.worth(group, item) for group, item in enumerate(items) if item is not None)
        missing = sum(item is None for item in items) if self.must else 0
        return Choice(items, load, missing, float(worth))

    def insert(self, items: list[Item | None], load: Load, order: Iterable[int], prices: Prices) -> None:
        """Give each group of `order` the best item that fits; changes items and load."""
        for group in order:
            item = self.best(load, group, prices)
            if item is not None:
                items[group] = item
                self.change(load, group, item, 1)

    def complete(self, wanted: Iterable[tuple[int, Item]], prices: Prices) -> Choice[Item]:
        """Take the wanted (group, item) pairs in order where they fit, then insert the other groups."""
        items: list[Item | None] = [None] * self.groups
        load = self.empty()
        for group, item in wanted:
            if items[group] is None and self.fits(load, group, item):
                items[group] = item
                self.change(load, group, item, 1)
        self.insert(items, load, [group for group in self.order() if items[group] is None], prices)
        return self._valued(items, load)

    def improve(
        self, start: Sequence[Item | None], prices: Prices, rounds: int, stop: Callable[[], bool]
    ) -> Choice[Item]:
        """Take some items out and insert again, `rounds` times or until `stop`; the best choice seen."""
        first = best = now = self.choice(start)
        for step in range(rounds):
            if stop():
                break
            items, load = list(now.items), now.load.copy()
            removed, ordered = self.ruin(items)
            for group in removed:
                item = items[group]
                if item is not None:
                    self.change(load, group, item, -1)
                    items[group] = None
            order = ordered([group for group in range(self.groups) if items[group] is None])
            self.insert(items, load, order, self.perturbed(prices))
            trial = self._valued(items, load)
            if self.accepts(now.worth - trial.worth, step / rounds, first, best) and trial.missing <= now.missing:
                now = trial
                if now.better_than(best):
                    best = now
                if step % SUM_AGAIN == 0:
                    now.load = self.choice(now.items).load
        return best
