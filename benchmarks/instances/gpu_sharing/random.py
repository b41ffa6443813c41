"""Random instances of gpu-sharing: small ones, contended ones, and pairs of jobs."""

from __future__ import annotations

import math
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field

from schedgap.formulations.gpu_sharing.dynamics import iteration_time, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

BATCHES = (4, 6, 8, 16)

Spread: TypeAlias = Annotated[float, Field(ge=0, le=1000, description="interference is drawn from 1 to 1 + 2 spread")]
Ample: TypeAlias = Annotated[
    bool, Field(description="instead of `horizon`, one that cuts off no schedule of any heuristic")
]


def ample_horizon(instance: GpuSharingInstance) -> int:
    """A horizon within which every schedule ends that never leaves the cluster idle while jobs wait.

    The last arrival, and for every job the slots it takes with the most accumulation steps and beside the worst
    partner all the time: in every slot after the last arrival some job makes at least such progress.
    """
    data = tables(instance)
    slowest = data.slowdown.max(axis=1)
    slots = [math.ceil(work[-1] * float(slowest[j])) + 1 for j, work in enumerate(data.work) if work]
    return max(job.arrival for job in instance.jobs) + sum(slots)


def tiny(
    seed: int,
    *,
    jobs: Annotated[int | None, Field(ge=1, le=1000, description="number of jobs; 3 or 4 where not given")] = None,
    gpus: Annotated[int | None, Field(ge=1, le=1000, description="number of GPUs; 2 or 3 where not given")] = None,
    slots: Annotated[int, Field(ge=2, le=10000, description="longest duration of a job alone")] = 4,
    arrivals: Annotated[int, Field(ge=1, le=10**6, description="last arrival slot")] = 3,
    horizon: Annotated[
        int | None, Field(ge=1, le=10**9, description="slots; an instance may then be infeasible")
    ] = None,
    cap: Annotated[int | None, Field(ge=1, le=2, description="jobs per GPU; mostly 2 where not given")] = None,
    spread: Spread = 0.5,
    ample: Ample = False,
) -> GpuSharingInstance:
    """3 or 4 jobs on 2 or 3 GPUs, small enough that every schedule can be tried.

    Parameters
    ----------
    horizon : the horizon; random between tight (sometimes infeasible) and ample where not given
    """
    rng = np.random.default_rng(seed)
    n_jobs = int(rng.integers(3, 5)) if jobs is None else jobs
    total = int(rng.integers(2, 4)) if gpus is None else gpus
    limit = cap if cap is not None else (1 if rng.random() < 1 / 6 else 2)
    end = int(rng.integers(slots + arrivals, 4 * slots)) if horizon is None else horizon
    found = _random(rng, f"tiny-{seed}", n_jobs, total, total, slots, arrivals, end, limit, spread)
    return _lengthened(found) if ample else found


def contended(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=1000, description="number of jobs")] = 4,
    gpus: Annotated[int, Field(ge=1, le=1000, description="number of GPUs")] = 2,
    slots: Annotated[int, Field(ge=2, le=10000, description="longest duration of a job alone")] = 4,
    horizon: Annotated[int, Field(ge=1, le=10**9, description="slots")] = 20,
) -> GpuSharingInstance:
    """Gangs of the whole cluster or half of it, all there from the first slot, strong interference, tight memory."""
    rng = np.random.default_rng(seed)
    return _random(rng, f"contended-{seed}", jobs, gpus, gpus, slots, 1, horizon, 2, 0.5, memory=8.5)


def small(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=2000, description="number of jobs")] = 16,
    gpus: Annotated[int, Field(ge=1, le=100000, description="number of GPUs")] = 8,
    horizon: Annotated[int, Field(ge=1, le=10**9, description="slots")] = 48,
    slots: Annotated[int, Field(ge=2, le=10000, description="longest duration of a job alone")] = 5,
    arrivals: Annotated[int, Field(ge=1, le=10**6, description="last arrival slot")] = 16,
    gang: Annotated[int, Field(ge=1, le=100000, description="most GPUs of a job")] = 4,
    spread: Spread = 0.25,
    ample: Ample = False,
) -> GpuSharingInstance:
    """16 jobs on 8 GPUs within 48 slots: the size that the exact method is meant to prove."""
    rng = np.random.default_rng(seed)
    found = _random(rng, f"small-{seed}", jobs, gpus, gang, slots, arrivals, horizon, 2, spread)
    return _lengthened(found) if ample else found


def pair(
    seed: int,
    *,
    gpus: Annotated[int, Field(ge=1, le=1000, description="number of GPUs")] = 2,
    slots: Annotated[int, Field(ge=2, le=10000, description="longest duration of a job alone")] = 20,
    spread: Spread = 0.5,
) -> GpuSharingInstance:
    """Two jobs, the second of which arrives while the first one, started at once, still runs: Theorem 1's pair."""
    rng = np.random.default_rng(seed)
    made = _random(rng, f"pair-{seed}", 2, gpus, gpus, slots, 1, 1, 2, spread)
    first, second = made.jobs
    seconds = first.iterations * iteration_time(first, tables(made).steps[0][0])
    arrival = first.arrival + int(rng.uniform(0, seconds / made.slot_length))
    return _lengthened(made.model_copy(update={"jobs": (first, second.model_copy(update={"arrival": arrival}))}))


def _lengthened(instance: GpuSharingInstance) -> GpuSharingInstance:
    return instance.model_copy(update={"horizon": ample_horizon(instance)})


def _random(
    rng: np.random.Generator,
    name: str,
    jobs: int,
    gpus: int,
    gang: int,
    slots: int,
    arrivals: int,
    horizon: int,
    cap: int,
    spread: float,
    memory: float | None = None,
) -> GpuSharingInstance:
    """Jobs of 2 to `slots` solo slots whose memory makes about half of the pairs need accumulation."""
    length = float(rng.choice([0.5, 1.0]))
    parts = [_random_job(rng, f"j{position}", gang, slots, arrivals, length) for position in range(jobs)]
    interference: dict[str, dict[str, float]] = {}
    for one in parts:
        row = {
            other["id"]: round(float(rng.uniform(1.0, 1.0 + 2 * spread)), 2)
            for other in parts
            if other is not one and rng.random() < 0.9
        }
        if row:
            interference[one["id"]] = row
    sizes = _server_sizes(rng, gpus)
    return GpuSharingInstance.parse(
        {
            "problem": "gpu-sharing",
            "name": name,
            "horizon": horizon,
            "slot_length": length,
            "servers": [{"id": f"s{i}", "gpus": size} for i, size in enumerate(sizes)],
            "gpu_memory": float(rng.choice([8.8, 11.0])) if memory is None else memory,
            "max_jobs_per_gpu": cap,
            "jobs": parts,
            "interference": interference,
        },
        name,
    )


def _server_sizes(rng: np.random.Generator, gpus: int) -> list[int]:
    sizes = []
    while gpus:
        sizes.append(int(rng.integers(1, min(4, gpus) + 1)))
        gpus -= sizes[-1]
    return sizes


def _random_job(
    rng: np.random.Generator, name: str, gang: int, slots: int, arrivals: int, length: float
) -> dict[str, Any]:
    """A job whose iterations fill a random duration, not always to a slot's end."""
    compute = {"fixed": round(float(rng.uniform(0, 0.05)), 4), "per_sample": round(float(rng.uniform(0.001, 0.01)), 4)}
    link = {
        "latency": round(float(rng.uniform(0, 0.02)), 4),
        "per_unit": round(float(rng.uniform(0, 0.05)), 4),
        "message": round(float(rng.uniform(0.2, 3.0)), 2),
    }
    size = int(rng.integers(1, gang + 1))
    batch = int(rng.choice(BATCHES))
    overlap = float(rng.choice([1.0, 1.5, 2.0, 4.0]))
    computing = compute["fixed"] + compute["per_sample"] * batch
    sending = 0.0 if size == 1 else link["latency"] + link["per_unit"] * link["message"]
    iteration = (computing**overlap + sending**overlap) ** (1 / overlap)
    duration = float(rng.uniform(1.0, slots))
    return {
        "id": name,
        "arrival": int(rng.integers(1, arrivals + 1)),
        "gpus": size,
        "iterations": max(1, int(duration * length / iteration)),
        "batch_size": batch,
        "compute": compute,
        "communication": link,
        "overlap": overlap,
        "memory": {"fixed": round(float(rng.uniform(1, 4)), 2), "per_sample": round(float(rng.uniform(0.1, 0.45)), 3)},
    }
