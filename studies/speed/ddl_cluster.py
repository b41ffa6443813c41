"""How fast the simulator of ddl-cluster is: the paper's cluster, and 1,000 jobs on 512 GPUs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

from schedgap.benchmarks.instances.ddl_cluster.random import paper, tiny
from schedgap.formulations.common.instance import Json
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES
from schedgap.heuristics.ddl_cluster.simulation import PLACEMENTS, simulate


def _timed(
    instance: DdlClusterInstance, policy: str, placement: str, seed: int, strides: bool = True
) -> dict[str, Any]:
    """One simulation after compilation: its times and its mean JCT."""
    began, cpu = time.perf_counter(), time.process_time()
    run = simulate(instance, policy, placement, seed=seed, strides=strides)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    clock = clock_of(instance)
    flow = sum(clock.seconds(end - begin) for end, begin in zip(run.finish, clock.arrival, strict=True))
    return {
        "policy": policy,
        "placement": placement,
        "mean JCT": flow / len(instance.jobs),
        "events": run.moments,
        "seconds": seconds,
        "cpu_seconds": cpu,
    }


def policy_times(*, seed: int) -> Sequence[dict[str, Json]]:
    """Every scheduling with LWF-1, and Ada-SRSF with every placement, on the paper's workload."""
    simulate(tiny(seed), "srsf-1", "lwf")
    instance = paper(seed)
    clock_of(instance)
    chosen = [(policy, "lwf") for policy in POLICIES] + [("ada-srsf", name) for name in PLACEMENTS if name != "lwf"]
    rows = []
    for policy, placement in chosen:
        row = _timed(instance, policy, placement, seed)
        slow = _timed(instance, policy, placement, seed, strides=False)
        row |= {
            "events without": slow["events"],
            "without fast-forward": slow["seconds"],
            "same": slow["mean JCT"] == row["mean JCT"],
            "load": os.getloadavg()[0],
        }
        rows.append(row)
    return rows


def large_times(*, seed: int, jobs: int = 1000, servers: int = 128) -> Sequence[dict[str, Json]]:
    """Every scheduling with LWF-1, and SRSF(3) with every placement, on a larger cluster in the paper's proportions."""
    simulate(tiny(seed), "srsf-1", "lwf")
    instance = paper(seed, jobs=jobs, servers=servers)
    clock_of(instance)
    chosen = [(policy, "lwf") for policy in POLICIES] + [("srsf-3", name) for name in PLACEMENTS if name != "lwf"]
    return [{**_timed(instance, *pair, seed), "load": os.getloadavg()[0]} for pair in chosen]
