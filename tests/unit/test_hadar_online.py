"""hadar-online looks at a window of slots for every job: the same schedules as over the whole horizon."""

from typing import Any

import numpy as np
import pytest
from oracles import hadar_online as plain

from schedgap.benchmarks.instances.hadar.random import contended, small, tiny
from schedgap.heuristics.hadar import online, online_prices


def test_windows_give_the_schedules_of_the_whole_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, payoff = online.best_plan, online._payoff
    seen = {"admitted": 0, "refused": 0, "short": 0, "payoffs": 0}

    def both(job: Any, machine: Any, prices: Any) -> Any:
        found, wanted = fast(job, machine, prices), plain.best_plan(job, machine, prices)
        assert (found is None) == (wanted is None)
        seen["refused" if found is None else "admitted"] += 1
        if found is not None and wanted is not None:
            assert found[:2] == wanted[:2]
            devices = np.zeros_like(wanted[2])
            devices[job.arrival - 1 : job.arrival - 1 + len(found[2])] = found[2]
            assert np.array_equal(devices, wanted[2])
            seen["short"] += job.arrival - 1 + len(found[2]) < len(wanted[2])
        return found

    def alike(data: Any, prices: Any, machine: Any, j: int) -> float:
        found = payoff(data, prices, machine, j)
        if machine is not None and machine.exact:
            wanted = plain.best_plan(data.jobs[j], machine, prices, fitting=False)
            assert wanted is None or found == wanted[0]
            assert wanted is not None or found <= 1e-12 * data.jobs[j].max_utility
            seen["payoffs"] += 1
        return float(found)

    monkeypatch.setattr(online, "best_plan", both)
    monkeypatch.setattr(online, "_payoff", alike)
    for seed in range(1008):
        make = (tiny, small, contended)[seed % 3]
        instance = make(seed)
        method = (online.hadar_online, online.hadar_online_plus)[seed // 3 % 2]
        method(instance, restart_delay=0.2 * instance.slot_length * (seed % 5 == 4))
    assert min(seen.values()) > 500, seen


def test_runs_of_equal_prices_bound_as_slots_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificate of jobs whose progress is rounded: relaxed by runs of slots with equal prices, and by slots."""
    merged, rounded = 0, 0

    def slots(prices: online_prices.Prices) -> online_prices.Blocks:
        start = np.arange(1, len(prices.price))
        return online_prices.Blocks(start, np.ones_like(start), np.concatenate([[0], start - 1]))

    runs = online_prices.Prices.segments

    def counted(prices: online_prices.Prices) -> online_prices.Blocks:
        nonlocal merged
        found = runs(prices)
        merged += len(found.start) < len(prices.price) - 1
        assert found.length.sum() == len(prices.price) - 1
        for first, length in zip(found.start, found.length, strict=True):
            assert (prices.price[first : first + length] == prices.price[first]).all()
        return found

    for seed in range(300):
        instance = (tiny, small, contended)[seed % 3](seed)
        bounds = []
        for way in (counted, slots):
            monkeypatch.setattr(online_prices.Prices, "segments", way)
            run = online.hadar_online_plus(instance, grid=16, restart_delay=0.1 * instance.slot_length * (seed % 2))
            bounds.append(run.bound)
        rounded += not run.info.get("exact", True)
        assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)
    assert merged > 100 and rounded > 100, (merged, rounded)
