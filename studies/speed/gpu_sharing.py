"""How fast gpu-sharing is: proofs, policies at the paper's scale, one decision on a large cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import numpy as np

from schedgap.benchmarks.instances.gpu_sharing.paper import simulated
from schedgap.benchmarks.instances.gpu_sharing.random import small
from schedgap.catalogue.gpu_sharing import PROBLEM as GPU_SHARING
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.schedule import Cluster
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gpu_sharing.kernel import BEST_BENEFIT, BEST_BENEFIT_PLUS, FIRST_FIT
from schedgap.heuristics.gpu_sharing.sharing import SharingPolicy
from schedgap.solvers.exact.gpu_sharing.cp import solve_cp
from schedgap.solvers.result import Deadline, SolveOptions

_RULES = {"sjf-bsbf": BEST_BENEFIT, "sjf-bsbf+": BEST_BENEFIT_PLUS, "sjf-ffs": FIRST_FIT}


def proofs(*, seed: int, time_limit: float | None = None, instances: int = 10) -> Sequence[dict[str, Json]]:
    """`cp` on instances of the preset `small`; sums of JCT. Without a limit of the run: 60 s each, 2 threads."""
    solve_cp(small(seed, jobs=3, gpus=2, horizon=20), SolveOptions(threads=1))
    rows = []
    for number in range(instances):
        instance = small(seed + number)
        began = time.monotonic()
        options = SolveOptions(Deadline.after(60.0 if time_limit is None else time_limit), threads=2)
        result = solve_cp(instance, options)
        rows.append(
            {
                "instance": instance.name,
                "status": str(result.status),
                "objective": result.objective,
                "bound": result.bound,
                "seconds": time.monotonic() - began,
                "load": os.getloadavg()[0],
            }
        )
    return rows


def policy_times(*, seed: int, jobs: int = 480) -> Sequence[dict[str, Json]]:
    """Every policy on the workload of Table IV."""
    instance = simulated(seed, jobs=jobs)
    tables(instance)
    bound = GPU_SHARING.bound(instance)
    assert bound is not None
    rows = []
    for method in GPU_SHARING.methods:
        if method.kind != "heuristic":
            continue
        method.call(small(seed, horizon=400), seed=seed)
        began, cpu = time.monotonic(), time.process_time()
        run = method.call(instance, seed=seed)
        assert isinstance(run, HeuristicRun)
        seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        mean = run.info["jct all"]
        rows.append(
            {
                "policy": method.id,
                "mean JCT": mean,
                "ratio to bound": None if method.outside_model else mean / bound,
                "seconds": seconds,
                "cpu_seconds": cpu,
                "load": os.getloadavg()[0],
            }
        )
    return rows


def decision_times(*, seed: int, gpus: int = 1024, waiting: int = 1000, xi: float = 1.5) -> Sequence[dict[str, Json]]:
    """One decision of each sharing policy: every GPU holds one single-GPU job, `waiting` jobs of 1 to 8 wait.

    Interference spreads around `xi`, so that some pairs share and most are refused after a full look.
    """
    instance = crowded(seed, gpus, waiting, xi)
    data = tables(instance)
    rows = []
    for name, rule in _RULES.items():
        policy = SharingPolicy(tables(instance), rule)
        times: list[tuple[float, float]] = []
        for _ in range(4):
            cluster = Cluster(data)
            for job in range(gpus):
                cluster.begin(job, 0, [job])
            order = sorted(range(gpus, gpus + waiting), key=lambda j: (data.solo_work[j], j))
            cluster.slot = 2
            began, cpu = time.perf_counter(), time.process_time()
            started = policy.decide(cluster, order)
            times.append((time.perf_counter() - began, time.process_time() - cpu))
        rows.append(
            {
                "policy": name,
                "waiting": waiting,
                "GPUs": gpus,
                "started": len(started),
                "seconds": min(wall for wall, _ in times[1:]),
                "cpu_seconds": min(cpu for _, cpu in times[1:]),
                "load": os.getloadavg()[0],
            }
        )
    return rows


def crowded(seed: int, gpus: int, waiting: int, xi: float) -> GpuSharingInstance:
    """`gpus` single-GPU jobs, and `waiting` jobs of 1 to 8 GPUs; interference depends on the newcomer only."""
    rng = np.random.default_rng(seed)
    count = gpus + waiting
    jobs = [
        {
            "id": f"j{j}",
            "arrival": 1,
            "gpus": 1 if j < gpus else int(rng.choice([1, 2, 4, 8])),
            "iterations": int(rng.integers(100, 5000)),
            "batch_size": 16,
            "compute": {"fixed": 0.01, "per_sample": 0.002},
            "communication": {"latency": 0.005, "per_unit": 0.01, "message": 1.0},
            "overlap": 2.0,
            "memory": {"fixed": 2.0, "per_sample": 0.25},
        }
        for j in range(count)
    ]
    factors = np.round(np.maximum(1.0, rng.normal(xi, 0.3, count)), 2).tolist()
    names = [f"j{j}" for j in range(count)]
    interference = {names[j]: dict.fromkeys(names[gpus:], factors[j]) for j in range(gpus)}
    interference |= {names[j]: dict.fromkeys(names[:gpus], factors[j]) for j in range(gpus, count)}
    return GpuSharingInstance.parse(
        {
            "problem": "gpu-sharing",
            "name": f"crowded-{seed}",
            "horizon": 10**6,
            "slot_length": 1.0,
            "servers": [{"id": f"s{i}", "gpus": 4} for i in range(gpus // 4)],
            "gpu_memory": 11.0,
            "max_jobs_per_gpu": 2,
            "jobs": jobs,
            "interference": interference,
        }
    )
