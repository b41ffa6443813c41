"""The workloads of Tables II to IV of paper 003, regenerated: 30, 240 and 480 jobs of the six Pollux tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from schedgap.benchmarks.instances import LARGE_HOURS, PER_SERVER, SMALL_HOURS, log_uniform
from schedgap.benchmarks.instances.profiles.interference import drawn_ratio
from schedgap.benchmarks.instances.profiles.pollux_tasks import TASKS
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

GPU_MEMORY = 11.0
"""GB of a GeForce 2080 Ti, the paper's GPU."""
_LARGE = (8, 12, 16)
_SMALL = (1, 2, 4)
_LARGE_PART = 0.12
"""The share of jobs with more than 4 GPUs that the averages of Table III imply: 1.01 = 3.38 p + 0.68 (1 - p)."""

Pairs: TypeAlias = Annotated[
    Literal["uniform", "v100", "p100", "k80"],
    Field(description="interference of pairs: uniform from 1 to 2, or as measured pairs on one GPU of this type"),
]


def simulated(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=100000, description="number of jobs")] = 240,
    servers: Annotated[int, Field(ge=4, le=10000, description="servers of 4 GPUs")] = 16,
    hours: Annotated[float, Field(gt=0, le=10000, description="hours of arrivals")] = 12.0,
    xi: Annotated[
        float | None,
        Field(ge=1, le=1000, description="interference of every pair; a random table over the tasks where not given"),
    ] = None,
    slot_length: Annotated[float, Field(gt=0, le=10**6, description="seconds per slot")] = 10.0,
    pairs: Pairs = "uniform",
    least: Annotated[float, Field(gt=0, le=1, description="least solo hours of a small job")] = SMALL_HOURS[0],
    most: Annotated[float, Field(gt=1, le=100, description="most solo hours of a small job")] = SMALL_HOURS[1],
) -> GpuSharingInstance:
    """The simulated workload: jobs of six tasks that arrive uniformly over `hours` on 16 x 4 GPUs.

    Parameters
    ----------
    jobs, servers : 240 jobs for Table III, 480 for Table IV; servers of 4 GPUs
    xi : the interference ratio of every pair of jobs (Figure 6b); where not given, a table over the ordered
        pairs of tasks drawn from 1 to 2, since the paper's measured table is only a figure
    pairs : where that table comes from: uniform, or drawn from the ratios of measured pairs (``throughputs.py``)
    """
    rng = np.random.default_rng(seed)
    names = list(TASKS)
    weights = np.array([TASKS[name].weight for name in names], dtype=float)
    tasks = rng.choice(len(names), size=jobs, p=weights / weights.sum())
    moments = np.sort(rng.uniform(0.0, hours * 3600.0, jobs))
    parts: list[dict[str, Any]] = []
    kinds: list[str] = []
    for position in range(jobs):
        name = names[int(tasks[position])]
        large = rng.random() < _LARGE_PART
        gpus = int(rng.choice(_LARGE if large else _SMALL))
        low, high = LARGE_HOURS if large else (least, most)
        seconds = 3600.0 * log_uniform(rng, low, high)
        kinds.append(name)
        parts.append(task_job(f"{name}-{position}", name, gpus, moments[position], slot_length, seconds))
    return task_instance(rng, f"simulated-{jobs}-{seed}", parts, kinds, _equal(servers), xi, slot_length, pairs)


def physical(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=2000, description="number of jobs")] = 30,
    servers: Annotated[int, Field(ge=4, le=10000, description="servers of 4 GPUs")] = 4,
    minutes: Annotated[float, Field(gt=0, le=100000, description="minutes of arrivals")] = 20.0,
    xi: Annotated[
        float | None,
        Field(ge=1, le=1000, description="interference of every pair; a random table over the tasks where not given"),
    ] = None,
    pairs: Pairs = "uniform",
) -> GpuSharingInstance:
    """The workload of Table II: 30 jobs on 4 x 4 GPUs, a third of them with 12 or 16 GPUs.

    Solo times are drawn log-uniformly from 30 to 300 s (ours: longer ones would not fit the paper's makespan of
    2,317 s), then iterations are kept within the paper's 100 to 5000.

    Parameters
    ----------
    xi, pairs : slowdowns, see :func:`simulated`
    """
    rng = np.random.default_rng(seed)
    if servers < PER_SERVER:
        raise InputError(f"preset table-ii: servers: must be at least 4, got {servers}")
    names = list(TASKS)
    moments = np.sort(rng.uniform(0.0, minutes * 60.0, jobs))
    large = set(rng.permutation(jobs)[: jobs // 3].tolist())
    parts: list[dict[str, Any]] = []
    kinds: list[str] = []
    for position in range(jobs):
        name = names[int(rng.integers(len(names)))]
        gpus = int(rng.choice((12, 16) if position in large else (1, 2, 4, 8)))
        drawn = log_uniform(rng, 30.0, 300.0)
        seconds = min(5000, max(100, round(drawn / iteration_seconds(name, gpus)))) * iteration_seconds(name, gpus)
        kinds.append(name)
        parts.append(task_job(f"{name}-{position}", name, gpus, moments[position], 1.0, seconds))
    return task_instance(rng, f"physical-{jobs}-{seed}", parts, kinds, _equal(servers), xi, 1.0, pairs)


def _equal(servers: int) -> list[tuple[str, int]]:
    return [(f"s{i}", PER_SERVER) for i in range(servers)]


@cache
def iteration_seconds(name: str, gpus: int, batch: int | None = None, per_server: int = PER_SERVER) -> float:
    """Fitted iteration time of a task on `gpus` GPUs, packed on servers; its own batch where none is given."""
    task = TASKS[name]
    nodes = math.ceil(gpus / per_server)
    return task.model.seconds(nodes, gpus, task.batch if batch is None else batch)


def task_job(
    job_id: str,
    name: str,
    gpus: int,
    moment: float,
    slot_length: float,
    seconds: float,
    batch: int | None = None,
    per_server: int = PER_SERVER,
) -> dict[str, Json]:
    """A job of a task that takes about `seconds` alone at its full sub-batch, as a part of an instance."""
    task = TASKS[name]
    base, slope = task.model.local if gpus <= per_server else task.model.network
    return {
        "id": job_id,
        "arrival": 1 + int(moment / slot_length),
        "gpus": gpus,
        "iterations": max(1, round(seconds / iteration_seconds(name, gpus, batch, per_server))),
        "batch_size": task.batch if batch is None else batch,
        "compute": {"fixed": task.model.fixed, "per_sample": task.model.per_sample},
        "communication": {"latency": base, "per_unit": slope, "message": float(max(0, gpus - 2))},
        "overlap": task.model.overlap,
        "memory": {"fixed": task.memory[0], "per_sample": task.memory[1]},
    }


def task_instance(
    rng: np.random.Generator,
    name: str,
    jobs: list[dict[str, Json]],
    kinds: Sequence[str],
    servers: Sequence[tuple[str, int]],
    xi: float | None,
    slot_length: float,
    pairs: str = "uniform",
    horizon: int | None = None,
    cap: int = 2,
) -> GpuSharingInstance:
    """With interference by task, and where not given a horizon in which the jobs would fit one after another.

    At most `cap` jobs share a GPU.
    """
    drawn = {
        (one, other): round(float(rng.uniform(1.0, 2.0)) if pairs == "uniform" else drawn_ratio(rng, pairs), 2)
        for one in TASKS
        for other in TASKS
    }
    table = drawn if xi is None else dict.fromkeys(drawn, float(xi))
    interference = {
        job["id"]: {other["id"]: table[kind, kinds[k]] for k, other in enumerate(jobs) if k != j}
        for j, (job, kind) in enumerate(zip(jobs, kinds, strict=True) if xi != 1.0 else ())
    }
    if horizon is None:
        serial = sum(
            job["iterations"] * iteration_seconds(kind, job["gpus"], job["batch_size"])
            for job, kind in zip(jobs, kinds, strict=True)
        )
        horizon = max(job["arrival"] for job in jobs) + math.ceil(1.01 * serial / slot_length) + len(jobs)
    return GpuSharingInstance.parse(
        {
            "problem": "gpu-sharing",
            "name": name,
            "horizon": horizon,
            "slot_length": slot_length,
            "servers": [{"id": server, "gpus": gpus} for server, gpus in servers],
            "gpu_memory": GPU_MEMORY,
            "max_jobs_per_gpu": cap,
            "jobs": jobs,
            "interference": interference,
        },
        name,
    )
