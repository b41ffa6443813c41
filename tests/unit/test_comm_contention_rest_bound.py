"""What a partial schedule of comm-contention still costs at the least: values by hand, with b = 1 and eta = 1/2."""

from __future__ import annotations

import numpy as np
import pytest

from schedgap.solvers.exact.comm_contention.bounds import ACTIVE, DONE, WAITING, Tasks, rest_bound, set_bound
from schedgap.solvers.exact.comm_contention.search import interval_bound


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
        # each of two waits for the active one or shares 2 (b + eta) a unit with it, and one of them waits for the other
        (0, [(ACTIVE, 4, 0), (WAITING, 1, 1), (WAITING, 1, 1)], 4 + 3 + (3 + 3)),
        # the second completion is best for the long one, at once for the short one
        (0, [(ACTIVE, 1, 0), (ACTIVE, 4, 0), (WAITING, 9, 0), (WAITING, 0.5, 0)], 8 + 10 + (5.5 + 3)),
        # the active one has long been done when the others come
        (0, [(ACTIVE, 3, 0), (WAITING, 1, 10), (WAITING, 1, 10)], 6),
    ],
)
def test_comm_contention_rest_bound(clock: float, tasks: list[tuple[int, float, float]], wanted: float) -> None:
    assert bound_of(clock, tasks, 0.5) == pytest.approx(wanted, abs=1e-12)


def test_comm_contention_rest_bound_without_a_penalty() -> None:
    assert bound_of(0, [(ACTIVE, 1, 0), (ACTIVE, 4, 0), (WAITING, 2, 6)], 0.0) == 9  # 2 and 5, then 2
    assert bound_of(0, [(ACTIVE, 4, 0), (WAITING, 1, 1)], 0.0) == 7  # sharing costs 2 b a unit


def test_comm_contention_bound_of_an_interval() -> None:
    """One active task with 4 units left at 0, or 1 unit at 3 after it cost 2; a long one waits for it.

    The flow times come to 4 + 14 or 2 + 4 + 14; the first is least in the whole interval.
    The least of each number is 0, 0 and 1 unit, which is 1 + 11.
    """
    tasks = Tasks(np.array([4.0, 10.0]), np.array([0.0, 0.0]), 1.0, 0.5)
    rows = np.array([[0, 0, 4, 0, 0, 0, 0], [3, 2, 1, 0, 0, 3, 0]], dtype=float)
    state = np.array([ACTIVE, WAITING], dtype=np.int8)
    assert set_bound(rows, 2, state, tasks) == 18
    assert set_bound(np.array([[0, 0, 1, 0]], dtype=float), 1, state, tasks) == 12


def test_comm_contention_a_set_costs_no_more_than_a_point_of_it() -> None:
    """Where the last volumes of a task are 0 at an end of the set, its completion is still a moment to start."""
    tasks = Tasks(np.array([9.0] * 3 + [0.18] * 9), np.zeros(12), 1.0, 0.1)
    state = np.array([ACTIVE] * 3 + [WAITING] * 9, dtype=np.int8)
    rows = np.zeros((2, 3 + 2 * 12))
    rows[:, 2:5] = (2, 0, 0.17), (2, 0.18, 0)
    middle = rows.mean(axis=0, keepdims=True)
    assert set_bound(rows, 2, state, tasks) <= set_bound(middle, 1, state, tasks)


def test_comm_contention_pieces_of_an_interval() -> None:
    """The active one has 4 units left at t in [0, 4], after a cost of 8 - 2 t; another of 2 units comes at 3.

    The best is always to wait: (8 - 2 t) + (t + 4) + (t + 4 - 3) + 2 = 15. The first two are least at 4, where they are
    8, and the others at 0, where they are 3; in an eighth they differ by 1/2.
    """
    tasks = Tasks(np.array([5.0, 2.0]), np.array([0.0, 3.0]), 1.0, 0.5)
    rows = np.array([[0, 8, 4, 0, 0, 0, 0], [4, 0, 4, 0, 0, 0, 0]], dtype=float)
    state = np.array([ACTIVE, WAITING], dtype=np.int8)
    assert set_bound(rows, 2, state, tasks) == 11
    assert interval_bound(rows, state, tasks) == 14.5


def bound_of(clock: float, tasks: list[tuple[int, float, float]], eta: float) -> float:
    state = np.array([kind for kind, _, _ in tasks], dtype=np.int8)
    amount = np.array([amount for _, amount, _ in tasks], dtype=float)
    release = np.array([release for _, _, release in tasks], dtype=float)
    left = np.where(state == ACTIVE, amount, 0.0)
    size = np.where(state == ACTIVE, amount + 1, amount)  # what an active task has moved does not count
    return float(rest_bound(float(clock), left, state, Tasks(size, release, 1.0, eta)))
