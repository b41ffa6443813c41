"""The rate table against exact rates, and the simulation against the checker."""

from __future__ import annotations

import gc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.checks import rar_ddls as check
from support.rar_brute_force import rate
from support.rar_random_schedules import random_edgy, random_schedule

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.rar_ddls import rates
from schedgap.formulations.rar_ddls.dynamics import Segment, simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import NEVER, RATE_CAP, rate_table


def make(jobs: list[dict[str, Any]], sizes: list[int], horizon: int = 50, **network: float) -> RarDdlsInstance:
    base = {"inter_bandwidth": 1.0, "intra_bandwidth": 50.0, "contention_scale": 1.0}
    base |= {"contention_penalty": 0.0, "server_overhead": 0.0}
    job = {"gpus": 1, "iterations": 1, "gradient_size": 0.0, "batch_size": 1, "forward_time": 0.0, "backward_time": 0.5}
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "horizon": horizon,
            "network": base | network,
            "reduce_speed": 1000.0,
            "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
            "jobs": [{"id": f"j{j}"} | job | own for j, own in enumerate(jobs)],
        }
    )


@pytest.mark.parametrize("seed", range(25))
def test_table_equals_exact_rates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = random_edgy(rng)
    table = rate_table(instance)
    phi = table.phi
    assert phi.shape == (len(instance.jobs), table.n_max + 1, table.p_max + 1)
    assert phi.dtype == np.int64
    assert (phi[:, :, 0] == phi[:, :, 1]).all()
    for j, job in enumerate(instance.jobs):
        most = min(job.gpus, len(instance.servers))
        assert (phi[j, 0] == 0).all() and (phi[j, most + 1 :] == 0).all()
        assert (phi[j, 1] == phi[j, 1, 1]).all()
        n, p = rng.integers(1, most + 1, 12), rng.integers(1, table.p_max + 1, 12)
        exact = [min(RATE_CAP, rate(instance, j, *pair)) for pair in zip(n.tolist(), p.tolist(), strict=True)]
        assert phi[j, n, p].tolist() == exact
        assert table.rates(j, n, p).tolist() == exact
    every = np.arange(len(instance.jobs))[:, None]
    n, p = np.arange(1, table.n_max + 1), np.ones(1, dtype=np.int64)
    assert (table.rates(every, n, p) == phi[:, 1:, 1]).all()


@pytest.mark.parametrize("seed", range(25))
def test_table_is_monotone(seed: int) -> None:
    instance = random_edgy(np.random.default_rng(1000 + seed))
    phi = rate_table(instance).phi
    assert (np.diff(phi, axis=2) <= 0).all()
    assert (np.diff(phi[:, 1:], axis=1) <= 0).all()


def test_ten_tenths_are_one_and_a_hair_less_is_not() -> None:
    # 1/tau: 10 exactly; 3 within 1e-9; 3 minus more than 1e-9; 1 from 0.1 + 0.2 + 0.7
    times = [0.1, 0.33333333334, 0.3333333336, 0.7]
    instance = make([{"backward_time": time} for time in times], [4])
    assert rate_table(instance).phi[:3, 1, 1].tolist() == [10, 3, 2]
    summed = make([{"backward_time": 0.7, "forward_time": 0.1, "batch_size": 3}], [4])
    assert rate_table(summed).phi[0, 1, 1] == 1


def test_factor_is_exact_where_floating_point_would_magnify_its_error() -> None:
    # xi_1 p = 1 exactly at p = 10; in floating point 0.1 * 3 = 0.30000000000000004, times alpha = 1e15
    jobs = [{"gpus": 2, "gradient_size": 0.1, "backward_time": 0.1} for _ in range(30)]
    instance = make(jobs, [20, 20], contention_scale=1 / 3, contention_penalty=1e15)
    table = rate_table(instance)
    for p in range(1, 8):
        assert table.phi[0, 2, p] == rate(instance, 0, 2, p)


def test_best_rates() -> None:
    jobs = [
        {"gpus": 2, "iterations": 7},
        {"gpus": 3, "iterations": 7, "gradient_size": 0.1125, "backward_time": 0.049},
        {"gpus": 6, "iterations": 7},
        {"gpus": 1, "backward_time": 1.5},
    ]
    table = rate_table(make(jobs, [2, 2, 1], server_overhead=0.001))
    assert table.fewest_servers.tolist() == [1, 2, 0, 1]
    assert table.best_rate.tolist() == [1, rate(make(jobs, [2, 2, 1], server_overhead=0.001), 1, 2, 1), 0, 0]
    assert table.best_duration.tolist() == [7, 2, NEVER, NEVER]


def test_rates_are_cut_where_no_job_has_more_iterations() -> None:
    table = rate_table(make([{"backward_time": 1e-300}, {"backward_time": 2e-9}], [1]))
    assert table.phi[:, 1, 1].tolist() == [RATE_CAP, 5 * 10**8]


def test_table_is_built_once_per_instance_and_let_go_with_it() -> None:
    instance = make([{}], [1])
    key = id(instance)
    assert rate_table(instance) is rate_table(instance)
    assert not rate_table(instance).phi.flags.writeable
    del instance
    gc.collect()
    assert key not in rates._TABLES


def test_a_table_that_is_too_large_is_refused_and_single_rates_are_not() -> None:
    jobs = [{"gpus": 10**6, "gradient_size": 1e-9}] * 1000
    instance = make(jobs, [1000] * 1000)
    table = rate_table(instance)
    assert table.best_duration[0] == 1
    assert table.rates(0, 1000, 3) == rate(instance, 0, 1000, 3)
    with pytest.raises(InputError, match="rate table: 1000 jobs x 1000 servers x contention 1000"):
        _ = table.phi


@pytest.mark.parametrize("seed", range(150))
def test_simulation_equals_checker(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = random_edgy(rng)
    start, placement = random_schedule(rng, instance, earliest=-3)
    schedule = simulate(instance, start, placement)
    report = check(instance, {"start": start, "placement": placement})
    assert report.details["completion"] == schedule.completion
    assert report.objective == schedule.makespan
    for job in instance.jobs:
        segments = schedule.segments[job.id]
        end = schedule.completion[job.id]
        assert segments[0].first == start[job.id] and segments[-1].last == end
        assert all(a.last is not None and a.last + 1 == b.first for a, b in pairwise(segments))
        if end is not None:
            made = sum((s.last - s.first + 1) * s.rate for s in segments if s.last is not None)
            assert made - segments[-1].rate < job.iterations <= made


def test_segments_tell_contention() -> None:
    ring = {"gpus": 3, "gradient_size": 0.1125, "backward_time": 0.049, "iterations": 7}
    instance = make([ring, ring, {"iterations": 4}], [2, 2, 3], contention_penalty=1.0)
    placement = {"j0": {"s0": 2, "s1": 1}, "j1": {"s1": 1, "s2": 2}, "j2": {"s2": 1}}
    schedule = simulate(instance, {"j0": 1, "j1": 2, "j2": 1}, placement)
    assert schedule.segments["j0"] == (Segment(1, 1, 1, 5), Segment(2, 2, 2, 2))
    assert schedule.segments["j1"] == (Segment(2, 2, 2, 2), Segment(3, 3, 1, 5))
    assert schedule.segments["j2"] == (Segment(1, 2, 0, 2),)
    assert schedule.completion == {"j0": 2, "j1": 3, "j2": 2}


def test_a_stall_ends_with_its_cause_or_never() -> None:
    ring = {"gpus": 2, "gradient_size": 0.4, "backward_time": 0.1, "iterations": 4}
    instance = make([ring, ring], [1, 1, 1], contention_penalty=1.0)
    both = {"j0": {"s0": 1, "s1": 1}, "j1": {"s1": 1, "s2": 1}}
    stalled = simulate(instance, {"j0": 1, "j1": 1}, both)
    assert stalled.completion == {"j0": None, "j1": None} and stalled.makespan is None
    assert stalled.segments["j0"] == (Segment(1, None, 2, 0),)
    # Two slots of one iteration each, then both stall.
    assert simulate(instance, {"j0": 1, "j1": 3}, both).completion == {"j0": None, "j1": None}
    assert simulate(instance, {"j0": 1, "j1": 5}, both).completion == {"j0": 4, "j1": 8}
    light = {"gpus": 2, "gradient_size": 0.01, "backward_time": 0.1, "iterations": 9}
    passing = simulate(make([ring, light], [1, 1, 1], contention_penalty=1.0), {"j0": 1, "j1": 2}, both)
    assert passing.completion == {"j0": 6, "j1": 3}
    assert passing.segments["j0"] == (Segment(1, 1, 1, 1), Segment(2, 3, 2, 0), Segment(4, 6, 1, 1))


def test_only_the_jobs_that_are_given_run() -> None:
    instance = make([{}, {"iterations": 3}], [1, 1])
    schedule = simulate(instance, {"j1": 2}, {"j1": {"s0": 1}})
    assert schedule.completion == {"j1": 3} and schedule.makespan == 3
