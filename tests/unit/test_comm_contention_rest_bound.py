"""What a partial schedule of comm-contention still costs at the least: values by hand, with b = 1 and eta = 1/2."""

from __future__ import annotations

import numpy as np
import pytest

from schedgap.solvers.exact.comm_contention.bounds import ACTIVE, DONE, WAITING, Tasks, rest_bound


@pytest.mark.parametrize(
    ("clock", "tasks", "wanted"),
    [
        # (state, size or what is left of it, release); on one machine, the short one interrupts the long one
        (0, [(WAITING, 3, 0), (WAITING, 1, 2)], 5),
        (1, [(WAITING, 3, 0), (WAITING, 1, 2)], 6),
        (0, [(WAITING, 3, 4), (WAITING, 1, 2), (DONE, 9, 0)], 4),
        (0, [(WAITING, 2, 1), (WAITING, 2, 1)], 6),
        # nobody waits: two share until the shorter is done, at 2 b + eta a unit
        (5, [(ACTIVE, 2, 0), (ACTIVE, 4, 0)], 22),
        (5, [(ACTIVE, 4, 1), (ACTIVE, 2, 3), (DONE, 1, 0)], 18),
        # one active: the newcomer shares at 2 (b + eta) a unit, or waits
        (0, [(ACTIVE, 4, 0), (WAITING, 1, 1)], 8),
        (0, [(ACTIVE, 4, 0), (WAITING, 0.5, 1)], 6),
        (0, [(ACTIVE, 4, 0), (WAITING, 3, 1)], 10),
        (2, [(ACTIVE, 4, 0), (WAITING, 3, 1)], 14),
        # two active: from the start, from the first completion, or after both
        (0, [(ACTIVE, 1, 0), (ACTIVE, 4, 0), (WAITING, 2, 1)], 14.5),
        (0, [(ACTIVE, 4, 0), (ACTIVE, 1, 0), (WAITING, 2, 3)], 12.5),
        (0, [(ACTIVE, 1, 0), (ACTIVE, 4, 0), (WAITING, 0.5, 3)], 10),
        (0, [(ACTIVE, 1, 0), (ACTIVE, 4, 0), (WAITING, 0.5, 2)], 10.5),
        (0, [(ACTIVE, 1, 0), (ACTIVE, 4, 0), (WAITING, 2, 6)], 10),
        # many wait for one that is nearly done: all of them on one machine
        (0, [(ACTIVE, 1, 0), (WAITING, 2, 0), (WAITING, 2, 0)], 9),
        # the active one has long been done when the others come
        (0, [(ACTIVE, 3, 0), (WAITING, 1, 10), (WAITING, 1, 10)], 6),
    ],
)
def test_comm_contention_rest_bound(clock: float, tasks: list[tuple[int, float, float]], wanted: float) -> None:
    assert bound_of(clock, tasks, 0.5) == pytest.approx(wanted, abs=1e-12)


def test_comm_contention_rest_bound_without_a_penalty() -> None:
    assert bound_of(0, [(ACTIVE, 1, 0), (ACTIVE, 4, 0), (WAITING, 2, 6)], 0.0) == 9  # 2 and 5, then 2
    assert bound_of(0, [(ACTIVE, 4, 0), (WAITING, 1, 1)], 0.0) == 7  # sharing costs 2 b a unit


def bound_of(clock: float, tasks: list[tuple[int, float, float]], eta: float) -> float:
    state = np.array([kind for kind, _, _ in tasks], dtype=np.int8)
    amount = np.array([amount for _, amount, _ in tasks], dtype=float)
    release = np.array([release for _, _, release in tasks], dtype=float)
    left = np.where(state == ACTIVE, amount, 0.0)
    size = np.where(state == ACTIVE, amount + 1, amount)  # what an active task has moved does not count
    return float(rest_bound(float(clock), left, state, Tasks(size, release, 1.0, eta)))
