"""How the work of a printed algorithm grows: steps counted while it is gone through literally, and exponents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cmp_to_key
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


class Steps:
    """Elementary steps: items looked at, and comparisons of sorting."""

    def __init__(self) -> None:
        self.count = 0

    def scan(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items, a step each."""
        for item in items:
            self.count += 1
            yield item

    def sort(self, items: Iterable[Item], key: Callable[[Item], float]) -> list[Item]:
        """The items by key, ties in their order, a step for each comparison; O(n log n)."""

        def compare(one: tuple[float, Item], other: tuple[float, Item]) -> int:
            self.count += 1
            return int(one[0] > other[0]) - int(one[0] < other[0])

        return [item for _, item in sorted(((key(item), item) for item in items), key=cmp_to_key(compare))]


def growth_exponent(sizes: Sequence[float], counts: Sequence[float]) -> float:
    """The slope of a least-squares line through (log size, log count); a count below 1 is taken as 1."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(counts, 1)), 1)[0])
