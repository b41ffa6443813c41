"""How far hadar's exact methods get, how fast a scheduling round is, and how the block-price bound converges."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence

import numpy as np

from schedgap.benchmarks.instances.hadar.random import rounds, small, trace
from schedgap.catalogue.hadar import PROBLEM as HADAR
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Json
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.hadar.rounds import Market
from schedgap.solvers.exact.hadar.block_bound import block_bound
from schedgap.solvers.result import Deadline, SolveOptions, Status

Row = dict[str, Json]

SIZES = ((8, 12), (12, 16), (16, 20))
"""Jobs and slots on 6 devices."""


def _load() -> float | None:
    """Processes that wanted a core during the last minute, where the system tells."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def reach(
    *,
    seed: int = 0,
    instances: int = 3,
    sizes: Sequence[tuple[int, int]] = SIZES,
    methods: Sequence[str] = ("highs", "colgen", "cpsat", "cbc"),
    scale: float = 1.0,
    time_limit: float | None = None,
) -> list[Row]:
    """Every exact method on growing instances: how many are proven, in which mean time.

    Parameters
    ----------
    seed : seed of the first instance of each size
    instances : number of instances of each size, times `scale`
    sizes : pairs of jobs and slots, on 6 devices
    methods : which
    time_limit : seconds for each solve; 60 where not given

    Returns
    -------
    Rows with method, jobs, slots, proven, instances, mean seconds (a solve that ends at the limit counts with it),
    and the mean over the instances of the time of the plain time-indexed program on HiGHS over the method's
    (None where HiGHS is not among the methods).
    """
    count = max(1, round(instances * scale))
    limit = 60.0 if time_limit is None else time_limit
    _warm_up()
    result: list[Row] = []
    for jobs, horizon in sizes:
        cases = [small(seed + k, jobs=jobs, horizon=horizon) for k in range(count)]
        times: dict[str, list[float]] = {}
        proven: dict[str, int] = {}
        for method in methods:
            times[method], proven[method] = [], 0
            for case in cases:
                answer, seconds = _timed(case, method, limit)
                times[method].append(seconds)
                proven[method] += int(answer == Status.OPTIMAL)
        for method, own in times.items():
            plain = times.get("highs")
            faster = sum(a / b for a, b in zip(plain, own, strict=True)) / count if plain else None
            result.append(
                {
                    "method": method,
                    "jobs": jobs,
                    "slots": horizon,
                    "proven": proven[method],
                    "instances": count,
                    "seconds": sum(own) / count,
                    "times_faster": faster,
                    "load": _load(),
                }
            )
    return result


def _timed(case: HadarInstance, method: str, limit: float) -> tuple[Status, float]:
    fresh = HadarInstance.parse(case.to_dict(), case.name)  # nothing kept from another method
    began = time.perf_counter()
    answer = run_method(HADAR, fresh, method, SolveOptions(deadline=Deadline.after(limit), threads=2))
    return answer.status, time.perf_counter() - began


def _warm_up() -> None:
    """Compile everything, or load it from the cache on disk."""
    for name in ("colgen", "hadar-rounds"):
        run_method(HADAR, small(0, jobs=10, horizon=6), name, SolveOptions())


def round_times(*, seed: int = 0, repeat: int = 3, scale: float = 1.0) -> list[Row]:
    """Seconds of one round of ``hadar-rounds`` with 32 to 2,048 waiting jobs; the cluster grows with them.

    Parameters
    ----------
    seed : seed of the instances
    repeat : the least of so many runs counts
    scale : factor of ``bench --scale``; below 1 the largest sizes are left out

    Returns
    -------
    Rows with jobs, devices, jobs placed, seconds; the last one carries the growth exponent (slope of log seconds
    over log jobs).
    """
    sizes = [n for n in (32, 64, 128, 256, 512, 1024, 2048) if n <= 2048 * min(1.0, scale)]
    _warm_up()
    result: list[Row] = []
    for jobs in sizes or [32]:
        instance = rounds(seed, jobs=jobs)
        data = tables(instance)
        market = Market.of(data, True, 0.0)
        left = np.array([job.target for job in data.jobs], dtype=np.int64)
        waiting = np.arange(len(data.jobs), dtype=np.int64)
        best, placed = math.inf, 0
        for _ in range(repeat):
            began = time.perf_counter()
            placed = len(market.take(waiting, data.machine_capacity, left, 1))
            best = min(best, time.perf_counter() - began)
        result.append(
            {"jobs": jobs, "devices": instance.total_gpus, "placed": placed, "seconds": best, "load": _load()}
        )
    if len(result) > 1:
        slope = np.polyfit(np.log([row["jobs"] for row in result]), np.log([row["seconds"] for row in result]), 1)[0]
        result[-1]["exponent"] = float(slope)
    return result


def bound_history(*, seed: int = 0, scale: float = 1.0) -> list[Row]:
    """The best valid block-price bound after every fifth pricing on 480 jobs, 60 devices, 400 rounds.

    Parameters
    ----------
    seed : seed of the workload
    scale : factor of ``bench --scale``; below 1 the number of jobs shrinks
    """
    instance = trace(seed, jobs=max(10, round(480 * min(1.0, scale))))
    began = time.perf_counter()
    found = block_bound(tables(instance), 0.2)
    seconds = time.perf_counter() - began
    last = len(found.history) - 1
    return [
        {
            "pricing": k + 1,
            "bound": value,
            "blocks": found.blocks,
            "seconds": seconds if k == last else None,
            "load": _load() if k == last else None,
        }
        for k, value in enumerate(found.history)
        if k % 5 == 0 or k == last
    ]
