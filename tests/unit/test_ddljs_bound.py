"""The certified bound of ddljs, part by part: against values by hand and against whole enumerations."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.reach import Reach, reaches
from schedgap.formulations.ddljs.utility import utility
from schedgap.solvers.exact.ddljs import bound


def instance_of(jobs: list[dict[str, Any]], servers: list[dict[str, float]], horizon: int = 2) -> DdljsInstance:
    base = {"arrival": 1, "max_workers": 4, "bandwidth": 0.0, "efficiency": 1.0, "demand": {"gpu": 1}, "budget": {}}
    data = {
        "problem": "ddljs",
        "horizon": horizon,
        "servers": [{"id": f"s{k}", "resources": resources} for k, resources in enumerate(servers)],
        "links": [
            {"from": f"s{a}", "to": f"s{b}", "bandwidth": 1.0}
            for a, b in itertools.permutations(range(len(servers)), 2)
        ],
        "jobs": [{"id": f"j{k}", **base, **job} for k, job in enumerate(jobs)],
    }
    return DdljsInstance.parse(data)


LINEAR = {"kind": "linear", "scale": 3.0}
SQRT = {"kind": "sqrt", "scale": 1.0}
LATE = {"kind": "sigmoid", "scale": 10.0, "steepness": 2.0, "midpoint": 3.0}


@pytest.mark.parametrize(
    ("jobs", "servers", "worth"),
    [
        ([{"utility": LINEAR}], [{"gpu": 2}], 12.0),  # two workers in two slots
        ([{"utility": LINEAR}, {"utility": LINEAR}], [{"gpu": 2}], 12.0),  # capacity is shared
        ([{"utility": LINEAR, "arrival": 2}], [{"gpu": 2}], 6.0),
        ([{"utility": LINEAR, "max_workers": 1}], [{"gpu": 2}, {"gpu": 1}], 6.0),
        ([{"utility": SQRT}, {"utility": SQRT}], [{"gpu": 2}], 2 * math.sqrt(2)),
        ([{"utility": SQRT}, {"utility": SQRT, "arrival": 2}], [{"gpu": 2}], 2 * math.sqrt(2)),
        ([{"utility": LINEAR}, {"utility": {**LINEAR, "scale": 1.0}, "arrival": 2}], [{"gpu": 2}], 12.0),
        ([{"utility": LINEAR, "demand": {"gpu": 1, "ram": 2}}], [{"gpu": 4, "ram": 3}, {"gpu": 1, "ram": 9}], 12.0),
        ([{"utility": LINEAR, "demand": {"gpu": 9}}], [{"gpu": 2}], 0.0),
    ],
)
def test_the_bound_where_it_is_the_optimum(
    jobs: list[dict[str, Any]], servers: list[dict[str, float]], worth: float
) -> None:
    found = bound.upper_bound(instance_of(jobs, servers))
    assert found is not None and worth <= found <= worth * (1 + 1e-8) + 2e-12


def test_a_job_that_cannot_run_is_worth_what_it_is_worth_at_rest() -> None:
    at_rest = 10 / (1 + math.exp(6))
    unable = {"utility": LATE, "demand": {"gpu": 9}}
    found = bound.upper_bound(instance_of([unable, {"utility": LINEAR}], [{"gpu": 2}]))
    assert found == pytest.approx(12 + at_rest, rel=1e-8)


def test_points_of_a_table() -> None:
    assert bound._points(0).tolist() == [0] and bound._points(3).tolist() == [0, 1, 2, 3]
    assert bound._points(4096).tolist() == list(range(4097))
    long = bound._points(10_000)
    assert len(long) == 4097 and (long[0], long[-1]) == (0, 10_000) and set(np.diff(long)) == {2, 3}


def test_corners_of_an_envelope() -> None:
    linear, root, late = instance_of([{"utility": LINEAR}, {"utility": SQRT}, {"utility": LATE}], [{"gpu": 4}]).jobs
    at, worth = bound._envelope(linear, 8)
    assert at.tolist() == [0, 8] and worth.tolist() == [0.0, 24.0]
    at, worth = bound._envelope(root, 8)
    assert at.tolist() == list(range(9)) and worth == pytest.approx(np.sqrt(np.arange(9)))
    at, worth = bound._envelope(late, 8)
    every = [float(utility(late, k)) for k in range(9)]
    # the steepest line from 0 touches at 5, beyond that the sigmoid is concave
    slopes = [(every[k] - every[0]) / k for k in range(1, 9)]
    first = 1 + slopes.index(max(slopes))
    assert at.tolist() == [0, *range(first, 9)] and worth == pytest.approx([every[k] for k in at])
    at, worth = bound._envelope(root, 900)
    assert len(at) <= bound.BREAKPOINTS + 1 and (at[0], at[-1]) == (0, 900) and list(at) == sorted(set(at))
    assert worth == pytest.approx(np.sqrt(at)) and len(at) >= bound.BREAKPOINTS - 4


def brute(user: bound._User, unit: np.ndarray) -> float:
    """The best of all ways to have so many workers of each class in each slot."""
    slots = [unit[k] for k in range(len(user.slots)) for _ in range(user.slots[k])]
    best = {0: 0.0}
    for price in slots:
        after: dict[int, float] = {}
        for way in itertools.product(*(range(w + 1) for w in user.workers)):
            if sum(way) <= user.reach.ring:
                for done, paid in best.items():
                    total = done + sum(way)
                    cost = paid + float(np.dot(way, price))
                    after[total] = min(after.get(total, math.inf), cost)
        best = after
    return max(float(utility(user.job, x)) - cost for x, cost in best.items() if x <= user.reach.max_work)


@pytest.mark.parametrize("seed", range(12))
def test_the_payoff_of_a_job_is_that_of_all_its_ways(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = (LINEAR, SQRT, LATE)[seed % 3]
    job = instance_of([{"utility": kind}], [{"gpu": 4}]).jobs[0]
    workers, ring = rng.integers(0, 4, 3), int(rng.integers(1, 6))
    slots = rng.integers(0, 3, 2)
    reach = Reach((), ring, int(rng.integers(1, 9)))
    user = bound._User(job, reach, np.minimum(workers, ring), np.array([1.0]), slots)
    unit = rng.uniform(0, 2, (2, 3))
    assert bound._payoff(user, unit) == pytest.approx(brute(user, unit), abs=1e-12)


def test_coarse_tables_take_the_utility_at_the_end_and_the_cost_at_the_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bound, "GRID", 2)
    job = instance_of([{"utility": LINEAR}], [{"gpu": 4}]).jobs[0]
    user = bound._User(job, Reach((), 4, 8), np.array([4]), np.array([1.0]), np.array([2]))
    assert bound._payoff(user, np.array([[2.0]])) == 24.0 - 8.0  # 0, 4, 8: worth of 8 less the cost of 4
    assert bound._payoff(user, np.array([[9.0]])) == 12.0  # worth of 4, cost of 0


def test_blocks_end_before_arrivals_and_count_slots() -> None:
    jobs = [{"utility": LINEAR, "arrival": arrival} for arrival in (2, 4, 4, 7)]
    instance = instance_of(jobs, [{"gpu": 2}], horizon=9)
    blocks = bound._blocks(instance, reaches(instance))
    assert blocks.ends.tolist() == [3, 6, 9]
    assert blocks.slots(1).tolist() == [3, 3, 3] and blocks.slots(4).tolist() == [0, 3, 3]
    assert blocks.slots(5).tolist() == [0, 2, 3] and blocks.slots(9).tolist() == [0, 0, 1]


def test_servers_are_put_together_where_the_same_jobs_use_them(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = [{"gpu": 2}, {"gpu": 4}, {}, {"gpu": 4}, {"gpu": 1}]
    one = instance_of([{"utility": LINEAR, "demand": {"gpu": 2}}, {"utility": LINEAR}], servers)
    capacity, classes = bound._classes(one, ("gpu",))
    assert classes.tolist() == [0, 0, -1, 0, 1] and capacity.tolist() == [[10.0], [1.0]]
    two = [{**server, "ram": 4} for server in servers]
    both = instance_of([{"utility": LINEAR, "demand": {"gpu": 1, "ram": 1}}], two)
    capacity, classes = bound._classes(both, ("gpu", "ram"))
    assert classes.tolist() == [0, 1, -1, 1, 2]
    assert capacity.tolist() == [[2.0, 4.0], [8.0, 8.0], [1.0, 4.0]]
    monkeypatch.setattr(bound, "MOST_CLASSES", 2)
    capacity, classes = bound._classes(both, ("gpu", "ram"))
    assert classes.tolist() == [0, 0, -1, 0, 0] and capacity.tolist() == [[11.0, 16.0]]
    pairs = instance_of(
        [{"utility": LINEAR, "demand": {"gpu": 1, "ram": size}} for size in (1, 3)],
        [{"gpu": gpu, "ram": ram} for ram in (1, 3) for gpu in (1, 2)],
    )
    assert bound._classes(pairs, ("gpu", "ram"))[1].tolist() == [0, 0, 1, 1]
    mixed = instance_of(
        [{"utility": LINEAR, "demand": {"gpu": 1, "ram": size}} for size in (1, 3, 4)],
        [{"gpu": 1, "ram": 1}, {"gpu": 1, "ram": 3}, {"gpu": 1, "ram": 4}],
    )
    capacity, classes = bound._classes(mixed, ("gpu", "ram"))
    assert classes.tolist() == [0, 0, 0] and capacity.tolist() == [[3.0, 8.0]]


def test_a_job_that_can_run_is_not_paid_at_rest_as_well() -> None:
    instance = instance_of([{"utility": LATE}], [{"gpu": 2}])
    blocks, users, prices = bound.block_prices(instance)
    assert prices is not None
    worth = float(utility(instance.jobs[0], 4))
    assert bound._certified(instance, blocks, users, prices) == pytest.approx(worth, rel=1e-9)
