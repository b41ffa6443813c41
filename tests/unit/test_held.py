"""The least of JCT and cost of a job that may not pause: every vector of prices of a small grid, against all starts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from schedgap.solvers.certificates.rules import pausing

EDGES = ([0, 1, 2, 4], [0, 3, 5, 9], [1, 2, 6], [0, 2])
PRICES = (0, pausing.GRID // 4, pausing.GRID)
"""Prices of a slot, in 2^-40: nothing, a quarter of a slot and a whole one."""
Held = Callable[[int, int, int, list[int], list[int], list[int]], int]


def plain(first: int, length: int, rate: int, edges: list[int], price: list[int]) -> int:
    """Start by start, slot by slot; nothing has a price before the first edge and from the last one on."""

    def of(slot: int) -> int:
        return next((p for p, low, high in zip(price, edges, edges[1:], strict=False) if low <= slot < high), 0)

    starts = range(first, max(first, edges[-1]) + 1)
    cost = {start: rate * sum(of(slot) for slot in range(start, start + length)) for start in starts}
    return min((start - first + length) * pausing.GRID**2 + cost[start] * pausing.GRID for start in starts)


def wrong(held: Held) -> int:
    """On how many of all small cases it is not the least."""
    count = 0
    for edges, first, length, rate in itertools.product(EDGES, (0, 1, 3), (1, 2, 3, 5), (1, 3)):
        for prices in itertools.product(PRICES, repeat=len(edges) - 1):
            price = list(prices)
            sums = [p * (high - low) for p, low, high in zip(price, edges, edges[1:], strict=False)]
            before = [0, *itertools.accumulate(sums)]
            value = held(first, length, rate * pausing.GRID, edges, price, before)
            count += value != plain(first, length, rate, edges, price)
    return count


def test_it_is_the_least_over_all_starts() -> None:
    assert wrong(pausing.held) == 0


@pytest.mark.parametrize("hole", ["(0,)", "(length,)"])
def test_a_job_that_looks_at_one_kind_of_edge_only_is_noticed(hole: str) -> None:
    """Starts at edges alone, or ends at edges alone, overstate what a job costs, and so the bound."""
    source = Path(pausing.__file__).read_text(encoding="utf-8")
    assert source.count("for ahead in (0, length)") == 1
    names: dict[str, object] = {}
    exec(source.replace("for ahead in (0, length)", f"for ahead in {hole}"), names)
    assert wrong(names["held"]) > 0  # type: ignore[arg-type]
