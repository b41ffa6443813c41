"""What a partial schedule of comm-contention still costs: the bound against all schedules that start at events."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from schedgap.solvers.exact.comm_contention.bounds import ACTIVE, WAITING, Tasks, rest_bound, set_bound
from schedgap.solvers.exact.comm_contention.search import interval_bound

State = tuple[Fraction, dict[int, Fraction], frozenset[int]]
"""Clock, volumes left of the active tasks, waiting tasks."""


def least_flow(state: State, size: list[Fraction], release: list[Fraction], b: Fraction, eta: Fraction) -> Fraction:
    """The least sum of flow times if every start is at a release or a completion: all of these are tried."""
    clock, left, waiting = state
    options = []
    for j in waiting:
        if release[j] <= clock:
            options.append(least_flow((clock, {**left, j: size[j]}, waiting - {j}), size, release, b, eta))
    # nobody starts before the next release or completion
    coming = min((release[j] for j in waiting if release[j] > clock), default=None)
    if left:
        pace = len(left) * b + (len(left) - 1) * eta
        end = clock + pace * min(left.values())
        if coming is None or end <= coming:
            volume = min(left.values())
            over = [i for i, x in left.items() if x == volume]
            rest = {i: x - volume for i, x in left.items() if x > volume}
            flow = sum((end - release[i] for i in over), Fraction(0))
            return min([*options, flow + least_flow((end, rest, waiting), size, release, b, eta)])
        rest = {i: x - (coming - clock) / pace for i, x in left.items()}
        return min([*options, least_flow((coming, rest, waiting), size, release, b, eta)])
    if coming is not None:
        options.append(least_flow((coming, left, waiting), size, release, b, eta))
    return min(options, default=Fraction(0))


class Drawn:
    """A partial schedule of up to five tasks, two of them active at most, or a second one with the same events."""

    def __init__(self, seed: int, waiting: int) -> None:
        rng = self.rng = random.Random(seed)
        self.n = rng.randint(1, 2) + waiting
        self.active = range(self.n - waiting)
        self.size = [Fraction(rng.randint(1, 24), 2) for _ in range(self.n)]
        self.release = [Fraction(0)] * (self.n - waiting) + [Fraction(rng.randint(0, 16), 2) for _ in range(waiting)]
        self.b, self.eta = Fraction(1), rng.choice([Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(2)])
        self.tasks = Tasks(
            np.array([float(m) for m in self.size]),
            np.array([float(r) for r in self.release]),
            float(self.b),
            float(self.eta),
        )
        self.state = np.array([ACTIVE] * len(self.active) + [WAITING] * waiting, dtype=np.int8)

    def point(self) -> tuple[Fraction, Fraction, list[Fraction]]:
        """Clock, cost so far, volumes left."""
        left = [Fraction(self.rng.randint(1, 8), 8) * self.size[i] for i in self.active]
        return Fraction(self.rng.randint(0, 10), 2), Fraction(self.rng.randint(0, 40), 2), left

    def least(self, clock: Fraction, left: list[Fraction]) -> Fraction:
        """By trying everything."""
        waiting = frozenset(range(len(left), self.n))
        return least_flow((clock, dict(enumerate(left)), waiting), self.size, self.release, self.b, self.eta)

    def row(self, clock: Fraction, cost: Fraction, left: list[Fraction]) -> list[float]:
        """As the search writes it."""
        starts_and_mask = [0.0] * (self.n + 1)
        volumes = [float(x) for x in left] + [0.0] * (self.n - len(left))
        return [float(clock), float(cost), *volumes, *starts_and_mask]


@pytest.mark.parametrize("waiting", [1, 2, 3])
def test_comm_contention_rest_bound_is_below_every_schedule(waiting: int) -> None:
    met = 0
    for seed in range(200):
        drawn = Drawn(seed, waiting)
        clock, _, left = drawn.point()
        wanted = drawn.least(clock, left)
        volumes = np.array([float(x) for x in left] + [0.0] * waiting)
        bound = rest_bound(float(clock), volumes, drawn.state, drawn.tasks)
        assert bound <= float(wanted) * (1 + 1e-12), seed
        met += bound >= float(wanted) * (1 - 1e-12)
    assert met >= {1: 200, 2: 110, 3: 60}[waiting]


def test_comm_contention_bound_of_a_set_is_below_every_schedule_of_it() -> None:
    better = 0
    for seed in range(150):
        drawn = Drawn(seed, 2)
        one, other = drawn.point(), drawn.point()
        rows = np.array([drawn.row(*one), drawn.row(*other)])
        bounds = (set_bound(rows, 2, drawn.state, drawn.tasks), interval_bound(rows, drawn.state, drawn.tasks))
        better += bounds[1] > bounds[0] + 1e-9
        for k in range(9):
            part = Fraction(k, 8)
            clock, cost = ((1 - part) * one[d] + part * other[d] for d in (0, 1))
            left = [(1 - part) * x + part * y for x, y in zip(one[2], other[2], strict=True)]
            wanted = float(cost + drawn.least(clock, left))
            assert max(bounds) <= wanted * (1 + 1e-12), (seed, k)
    assert better >= 75
