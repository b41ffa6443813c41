"""Job traces as instances of gpu-sharing: arrivals and gangs from the trace, times of fitted tasks."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.throughputs import timed
from schedgap.benchmarks.importers.traces import Trace, list_horizon
from schedgap.benchmarks.instances.gpu_sharing.paper import (
    iteration_seconds,
    task_instance,
    task_job,
)
from schedgap.benchmarks.instances.profiles.model_names import match_profile
from schedgap.benchmarks.instances.profiles.pollux_tasks import TASKS
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

_DRAWN_UP_TO = 1000
"""Jobs; the table of interference is quadratic."""


def to_gpu_sharing(
    trace: Trace,
    *,
    profile: Annotated[str, Field(description="fitted task of jobs whose own is not named or not fitted")] = "cifar10",
    xi: Annotated[
        float | None,
        Field(
            ge=1,
            le=1000,
            description="interference of a pair that shares a GPU; where not given, drawn by pairs of tasks where "
            "the trace names them (up to 1,000 jobs)",
        ),
    ] = None,
    xi_seed: Annotated[int, Field(ge=0, le=10**9, description="seed of interference that is drawn")] = 0,
    share: Annotated[
        bool | None,
        Field(description="two jobs may share a GPU; where not given, only where an interference is given or drawn"),
    ] = None,
    slot_length: Annotated[float, Field(gt=0, le=10**6, description="seconds per slot")] = 10.0,
) -> GpuSharingInstance:
    """The jobs of a trace, each as one of the six fitted tasks of Pollux, with as many iterations as it ran for.

    Raises InputError: no job fits.
    """
    largest = max(server.gpus for server in trace.servers)
    parts: list[dict[str, Any]] = []
    kinds: list[str] = []
    lengths: list[tuple[int, int]] = []
    jobs = trace.fitting(sum(server.gpus for server in trace.servers))
    for job, duration in zip(jobs, timed(trace, jobs), strict=True):
        task, said = match_profile(job.model, job.batch, list(TASKS), profile)
        if said is not None:
            trace.notes.add(said)
        batch = job.batch if said is None else None
        part = task_job(job.id, task, job.gpus, job.arrival, slot_length, duration, batch, largest)
        if job.limit is not None:
            part["limit"] = job.limit
        seconds = part["iterations"] * iteration_seconds(task, job.gpus, batch, largest)
        lengths.append((job.gpus, math.ceil(1.01 * seconds / slot_length) + 1))
        parts.append(part)
        kinds.append(task)
    named = all(job.model in TASKS for job in jobs)
    drawn = xi is None and named and len(jobs) <= _DRAWN_UP_TO and share is not False
    if share is None:
        share = drawn or xi is not None
    if xi is None and not drawn:
        xi = 1.0
    trace.notes.add(
        f"{len(parts)} jobs; "
        + (
            "each has its GPUs to itself (share=yes: two on a GPU; the log has no interference)"
            if not share
            else f"two may share a GPU, interference is {xi:g} for every pair"
            if xi is not None
            else "two may share a GPU, interference is drawn by pairs of tasks from 1 to 2"
        )
    )
    trace.notes.add("memory is assumed (benchmarks/instances/profiles/pollux_tasks.py), on GPUs of 11 GB")
    last = max(part["arrival"] for part in parts)
    servers = [(server.id, server.gpus) for server in trace.servers]
    horizon = min(
        last + sum(slots for _, slots in lengths), list_horizon(last, lengths, sum(size for _, size in servers))
    )
    rng, cap = np.random.default_rng(xi_seed), 2 if share else 1
    return task_instance(rng, trace.name, parts, kinds, servers, xi, slot_length, horizon=horizon, cap=cap)
