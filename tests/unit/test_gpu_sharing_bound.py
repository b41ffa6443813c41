"""The certified bound of gpu-sharing where it can be worked out by hand, and its prices against a linear program."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from schedgap.benchmarks.instances.gpu_sharing.random import small
from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.heuristics.gpu_sharing.sharing import sjf_bsbf, sjf_bsbf_plus, sjf_ffs
from schedgap.solvers.exact.gpu_sharing import bound


def instance_of(*jobs: tuple[int, int, float], horizon: int = 40, gpus: int = 2, **changes: Any) -> GpuSharingInstance:
    """Jobs as (arrival, GPUs, slots of work alone)."""
    rows = [
        {
            "id": f"j{k}",
            "arrival": arrival,
            "gpus": wanted,
            "iterations": 10,
            "batch_size": 1,
            "compute": {"fixed": slots / 10, "per_sample": 0.0},
            "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
            "overlap": 1.0,
            "memory": {"fixed": 1.0, "per_sample": 0.0},
        }
        for k, (arrival, wanted, slots) in enumerate(jobs)
    ]
    data = {
        "problem": "gpu-sharing",
        "horizon": horizon,
        "slot_length": 1.0,
        "servers": [{"id": "s", "gpus": gpus}],
        "gpu_memory": 10.0,
        "max_jobs_per_gpu": 1,
        "jobs": rows,
        "interference": {},
        **changes,
    }
    return GpuSharingInstance.parse(data)


def shared(xi: float, other: float) -> dict[str, Any]:
    return {"max_jobs_per_gpu": 2, "interference": {"j0": {"j1": xi}, "j1": {"j0": other}}}


@pytest.mark.parametrize(
    ("instance", "mean"),
    [
        (instance_of((1, 2, 4)), 4.0),
        (instance_of((1, 1, 2.5)), 3.0),  # whole slots
        (instance_of((1, 2, 4), (1, 2, 4)), 6.0),  # 4 and 8
        (instance_of((1, 1, 4), (1, 1, 4)), 4.0),  # side by side
        (instance_of((1, 2, 1), (1, 2, 4)), 3.0),  # the short one first: 1 and 5
        (instance_of((1, 2, 4), (3, 2, 4)), 5.0),  # 4, and 8 - 2
        (instance_of((5, 2, 4), (7, 2, 4)), 5.0),  # the same, later
        (instance_of((1, 2, 1), (1, 2, 2), (1, 2, 3)), 10 / 3),  # 1, 3, 6
        (instance_of((1, 2, 4), (1, 2, 4), horizon=8), 6.0),
        # phi = 2/1.25: both are done in 5 slots at the least; their mean busy times 2.5 each, and half of 4
        (instance_of((1, 2, 4), (1, 2, 4), **shared(1.25, 1.25)), 4.5),
        # xi = 3 both ways: sharing does less than one job alone
        (instance_of((1, 2, 4), (1, 2, 4), **shared(3.0, 3.0)), 6.0),
    ],
)
def test_the_bound_by_hand(instance: GpuSharingInstance, mean: float) -> None:
    assert bound.lower_bound(instance) == pytest.approx(mean, rel=1e-12)


def test_there_is_no_bound_where_nothing_is_feasible() -> None:
    assert bound.lower_bound(instance_of((1, 3, 4))) is None


def test_a_part_of_a_slot_counts_as_in_the_latest_run() -> None:
    """W = 2.5 on all GPUs twice: mean busy times add up to 5, the rest to (4 + 2 + 0.5) / 5 each."""
    instance = instance_of((1, 2, 2.5), (1, 2, 2.5))
    found = bound.mean_busy(instance, tables(instance))
    # z: 5 slots of work from slot 1 on, at (t - 1/2) / 2.5
    assert found.value == pytest.approx(12.5 / 2.5 + 2 * 6.5 / 5.0, rel=1e-6)
    assert (found.first, found.width) == (1, 1) and found.weights.tolist() == [1.0, 1.0]


def test_phi_and_weights_of_pairs() -> None:
    data = tables(instance_of((1, 2, 4), (1, 1, 4), **shared(1.25, 1.6)))
    assert bound.sharing_factor(data) == pytest.approx(1 / 1.25 + 1 / 1.6)
    weights = bound.capacity_weights(data)
    # the larger job first, as far as 1/phi of the other leaves room
    low = 1 / (1 / 1.25 + 1 / 1.6)
    first = 1.25 * (1 - low / 1.6)
    assert weights == pytest.approx([first, max(low, 1.6 * (1 - first / 1.25))])
    alone = tables(instance_of((1, 2, 4), (1, 1, 4)))
    assert bound.sharing_factor(alone) == 1.0 and bound.capacity_weights(alone).tolist() == [1.0, 1.0]


def test_wider_buckets_are_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_of((1, 2, 4), (3, 1, 7), (2, 2, 5.5), (6, 1, 3))
    data = tables(instance)
    values = []
    for buckets in (400, 12, 5, 3, 2):
        monkeypatch.setattr(bound, "_LEAST_BUCKETS", buckets)
        monkeypatch.setattr(bound, "_CELLS", 1)
        values.append(bound.mean_busy(instance, data))
    assert [found.width for found in values] == sorted(found.width for found in values)
    assert values[0].width == 1 and values[-1].width > 5
    assert all(fine.value >= coarse.value - 1e-6 for fine, coarse in pairwise(values))
    monkeypatch.undo()
    assert bound.mean_busy(instance, data).value == pytest.approx(values[0].value, rel=1e-9)


@pytest.mark.parametrize("capacity", [5.0, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_what_prices_prove_is_the_lagrangian(seed: int, capacity: float) -> None:
    """A job at its cheapest under the prices, by a linear program; and prices from the whole one are the best."""
    rng = np.random.default_rng(seed)
    jobs, buckets = 3, 4
    room = np.append(rng.uniform(0, 3, (jobs, buckets)), np.full((jobs, 1), np.inf), axis=1)
    room[0, 0] = 0.0
    position = np.sort(rng.uniform(0, 5, (jobs, buckets + 1)), axis=1)
    work, gpus, constant = rng.uniform(2, 6, jobs), rng.uniform(0.5, 2, jobs), rng.uniform(-1, 1, jobs)
    solo = np.zeros(jobs, dtype=np.int64)
    problem = bound._Prices(position, room, work, gpus, constant, solo, capacity)

    def proven(prices: np.ndarray) -> float:
        total = -capacity * prices.sum() + constant.sum()
        for j in range(jobs):
            cost = position[j] + np.append(gpus[j] * prices, 0.0)
            limits = [(0.0, None if np.isinf(most) else most) for most in room[j]]
            total += linprog(cost, A_eq=np.ones((1, buckets + 1)), b_eq=[work[j]], bounds=limits).fun
        return float(total)

    for prices in (np.zeros(buckets), rng.uniform(0, 2, buckets)):
        assert problem.evaluate(prices) == pytest.approx(proven(prices), rel=1e-9)
    best = problem.best()
    rows = np.zeros((buckets, jobs * (buckets + 1)))
    each = np.zeros((jobs, jobs * (buckets + 1)))
    for j in range(jobs):
        each[j, j * (buckets + 1) : (j + 1) * (buckets + 1)] = 1.0
        for b in range(buckets):
            rows[b, j * (buckets + 1) + b] = gpus[j]
    limits = [(0.0, None if np.isinf(most) else most) for most in room.ravel()]
    whole = linprog(position.ravel(), A_ub=rows, b_ub=np.full(buckets, capacity), A_eq=each, b_eq=work, bounds=limits)
    assert problem.evaluate(best) == pytest.approx(whole.fun + constant.sum(), rel=1e-7)
    floor = bound._Prices(position, room, work, gpus, constant, np.array([100, 0, 0]), capacity)
    assert floor.evaluate(np.zeros(buckets)) > 100 - 1


def test_buckets_cover_all_slots_up_to_the_latest_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slots 1 to 13: one after the other, and once more the longest."""
    instance = instance_of((1, 2, 5.5))
    seen: list[np.ndarray] = []

    class Spied(bound._Prices):
        def __init__(self, position: np.ndarray, *more: Any) -> None:
            seen.append(position)
            super().__init__(position, *more)

    monkeypatch.setattr(bound, "_Prices", Spied)
    monkeypatch.setattr(bound, "_CELLS", 1)
    for least, width, count in ((14, 1, 13), (13, 1, 13), (12, 2, 7), (6, 3, 5)):
        monkeypatch.setattr(bound, "_LEAST_BUCKETS", least)
        found = bound.mean_busy(instance, tables(instance))
        assert (found.width, len(found.prices)) == (width, count)
        # the middle of the first slot of every bucket, what is beyond the last one included
        assert seen[-1][0] * 5.5 == pytest.approx(0.5 + width * np.arange(count + 1))


def test_prices_are_tried_in_other_sizes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = instance_of((1, 2, 4), (1, 2, 4), (2, 1, 3))
    best, data = bound._Prices.best, tables(instance)
    right = bound.mean_busy(instance, data)
    for off in (0.8, 1.1):
        monkeypatch.setattr(bound._Prices, "best", lambda self, off=off: best(self) / off)
        found = bound.mean_busy(instance, data)
        assert found.value == pytest.approx(right.value, rel=1e-12) and found.prices == pytest.approx(right.prices)
    monkeypatch.setattr(bound._Prices, "best", lambda self: 3 * best(self))
    assert bound.mean_busy(instance, data).value < right.value - 0.1


@pytest.mark.parametrize("seed", range(12))
def test_weights_by_class_are_those_of_all_pairs(seed: int) -> None:
    """An interference of 1 changes nothing but the way: with it, all pairs are looked at."""
    data = small(seed).to_dict()
    data.update(max_jobs_per_gpu=2, interference={})
    ids = [job["id"] for job in data["jobs"]]
    by_class = GpuSharingInstance.parse(data)
    by_pair = GpuSharingInstance.parse({**data, "interference": {ids[0]: {ids[1]: 1.0}}})
    assert bound.sharing_factor(tables(by_class)) == bound.sharing_factor(tables(by_pair))
    assert bound.capacity_weights(tables(by_class)).tolist() == bound.capacity_weights(tables(by_pair)).tolist()
    for policy in (sjf_ffs, sjf_bsbf, sjf_bsbf_plus):
        assert policy(by_class).solution == policy(by_pair).solution
