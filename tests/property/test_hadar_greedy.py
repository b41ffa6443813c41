"""hadar-rounds' choices by gangs equal those that sort and price devices for each job, job by job."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.hadar_greedy import Plain

from schedgap.benchmarks.instances.hadar.random import contended, rounds, small
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.hadar.rounds import Market, Recursion


def drawn(seed: int) -> HadarInstance:
    """Up to 60 devices on two dozen machines; gangs that need several types, types as fast as others or of no use."""
    rng = np.random.default_rng(seed)
    size = {"jobs": int(rng.integers(2, 40))}
    sizes = [{**size, "gpus": int(rng.integers(6, 60)), "horizon": 60}, {"jobs": size["jobs"]}, size]
    data = [small, contended, rounds][seed % 3](seed, **sizes[seed % 3]).to_dict()
    for job in data["jobs"]:
        if rng.random() < 0.5:
            job["workers"] = int(rng.integers(1, 7))
        for kind, rate in job["throughput"].items():
            job["throughput"][kind] = float(rng.choice([rate, rate, 1.0, 2.0]))
    return HadarInstance.parse(data)


@pytest.mark.parametrize("first", range(0, 60, 12))
def test_choices_by_gangs_are_those_job_by_job(first: int) -> None:
    """Five rounds an instance, at any devices, work left and slot; the same market in all of them."""
    taken = several = 0
    for seed in range(first, first + 12):
        rng, data = np.random.default_rng(seed), tables(drawn(seed))
        market = Market.of(data, bool(rng.integers(2)), float(rng.choice([0.0, 1e-3, 1.0])))
        for _ in range(5):
            jobs = np.flatnonzero(rng.random(len(data.jobs)) < rng.choice([0.5, 2.0]))
            jobs = jobs if len(jobs) else np.array([0])
            free = np.where(rng.random(data.machine_capacity.shape) < 0.7, data.machine_capacity, 0)
            left = np.array([int(rng.integers(1, job.target + 1)) for job in data.jobs])
            slot = int(rng.integers(1, data.horizon + 1))
            wanted = Plain(market, jobs, left, slot)
            chosen, expected = market.take(jobs, free, left, slot), wanted.take(free)
            assert list(chosen) == list(expected)
            assert all((chosen[j] == expected[j]).all() for j in chosen)
            taken, several = taken + len(chosen), several + sum((grid > 0).sum() > 1 for grid in chosen.values())
            recursion = Recursion(market, jobs[:7], left, slot)
            value, own = recursion.best(0, free)
            plain, theirs = Plain(market, jobs[:7], left, slot), dict(own)
            assert (value, list(theirs)) == (plain.best(0, free)[0], list(plain.best(0, free)[1]))
            assert all((theirs[j] == grid).all() for j, grid in plain.best(0, free)[1].items())
            assert len(recursion.memo) == len(plain.memo)
    assert taken > 100 and several > 20
