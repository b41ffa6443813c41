"""What jobs cost at least under prices, against a plain search over slots; and prices that are looked for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from schedgap.solvers.certificates.rules.gpu_sharing import held
from schedgap.solvers.certificates.rules.pausing import GRID, paused
from schedgap.solvers.exact.job_prices import PricedJobs, ascend, best_starts, event_edges, least


def plain(
    first: int, work: Fraction, rate: int, edges: list[int], price: list[int], holds: bool, soonest: int = 0
) -> Fraction:
    """The least of completion and cost over all starts, or all last slots with the cheapest slots before them."""

    def at(slot: int) -> int:
        return next((p for p, a, b in zip(price, edges, edges[1:], strict=False) if a <= slot < b), 0)

    length, best = math.ceil(work), None
    for end in range(first + length, max([first, *edges]) + 2 * length + soonest + 2):
        if holds:
            cost = Fraction(sum(at(t) for t in range(end - length, end)))
        else:
            need, cost = work, Fraction(0)
            for p in sorted(at(t) for t in range(first, end)):
                cost, need = cost + p * min(need, 1), need - min(need, 1)
        value = max(end - first, soonest) + rate * cost / GRID
        best = value if best is None else min(best, value)
    assert best is not None
    return best


@pytest.mark.parametrize("holds", [True, False])
def test_the_least_of_completion_and_cost(holds: bool) -> None:
    """1,000 jobs, job by job: the checker's sum is equal, the compiled one to rounding; what is held costs the rest."""
    rng = np.random.default_rng(7)
    waited = 0
    for _ in range(1_000):
        edges = np.unique(rng.integers(1, 16, int(rng.integers(2, 7))))
        price = (np.round(rng.uniform(0, 2, len(edges) - 1), 3) * (rng.random(len(edges) - 1) < 0.8) * GRID).astype(int)
        first, rate = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        work = Fraction(int(rng.integers(1, 7))) if rng.random() < 0.4 else Fraction(int(rng.integers(1, 6 * 64)), 64)
        length = math.ceil(work)
        soonest = 0 if holds else length + int(rng.integers(0, 6)) * int(rng.integers(0, 2))
        best = plain(first, work, rate, edges.tolist(), price.tolist(), holds, soonest)
        if holds:
            before = [0, *np.cumsum(price * np.diff(edges)).tolist()]
            exact = Fraction(held(first, length, rate * GRID, edges.tolist(), price.tolist(), before), GRID**2)
        else:
            own = paused(first, int(work * GRID), rate * GRID, edges.tolist(), price.tolist(), soonest)
            exact = Fraction(own, GRID**3)
        assert exact == best
        waited += best > length + rate * Fraction(int(price.min(initial=0)), GRID)
        job = PricedJobs(
            np.array([first]),
            np.array([length if holds else 0]),
            np.array([float(work)]),
            np.array([float(rate)]),
            np.zeros(1, dtype=np.int64),
            np.array([soonest]),
        )
        prices = price[None, :] / GRID
        use = np.zeros_like(prices)
        value = least(job, edges, prices, use)
        assert value == pytest.approx(float(best), rel=1e-9)
        if holds:
            start = int(best_starts(job, edges, prices)[0])
            at = [
                p
                for t in range(start, start + length)
                for p, a, b in zip(prices[0], edges, edges[1:], strict=False)
                if a <= t < b
            ]
            assert start >= first and start - first + length + rate * sum(at) == pytest.approx(value)
        rest = value - float((use * prices).sum())  # the time until it completes, in whole slots
        assert rest == pytest.approx(round(rest), abs=1e-7) and rest >= length - 1e-7
    assert waited > 300


def test_work_of_next_to_nothing_takes_a_slot() -> None:
    assert paused(3, 0, GRID, [1, 9], [GRID]) == GRID**3


def test_prices_of_one_machine_prove_the_order_of_shortest_jobs() -> None:
    """Jobs of 1, 2 and 4 slots at once on one machine: 1 + 3 + 7, by prices of the slots until then."""
    length = np.array([1, 2, 4])
    first = np.ones(3, dtype=np.int64)
    jobs = PricedJobs(first, length, length.astype(float), np.ones(3), np.zeros(3, dtype=np.int64), 0 * first)
    edges = event_edges(first, length, length.astype(float), 1.0, 300)
    assert edges.tolist() == list(range(1, 13))
    width = np.diff(edges).astype(float)

    def evaluate(prices: np.ndarray, use: np.ndarray) -> tuple[float, np.ndarray]:
        return least(jobs, edges, prices, use) - float(prices[0] @ width), np.ones_like(prices)

    value, prices = ascend(evaluate, width, 1, 400)
    assert 10.9 < value <= 11 + 1e-9 and prices.min() >= 0
    few, _ = ascend(evaluate, width, 1, 5)
    assert 7 <= few < value


def test_edges_are_at_events_where_there_are_many_slots() -> None:
    arrival, length = np.array([1, 5_000, 5_000]), np.array([10_000, 20, 3])
    edges = event_edges(arrival, length, length * 2.0, 2.0, 5)
    assert edges.tolist() == sorted(set(edges.tolist())) and len(edges) <= 6
    assert edges[0] == 1 and edges[-1] >= 10_000 + 20 + 3
