"""The recorded schedule as a solution of gpu-sharing, with GPUs that a job has to itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from schedgap.benchmarks.audit.load import Clash
from schedgap.benchmarks.audit.record import placed_on, rebuild, slots_of
from schedgap.benchmarks.audit.result import Times
from schedgap.benchmarks.importers.servers import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.formulations.common.instance import LARGEST_COUNT, Solution
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance

BASE = "gpu-sharing"
"""The problem whose schedules a record is."""


def exclusive_instance(
    name: str, jobs: Sequence[TraceJob], servers: Sequence[TraceServer], slot_length: float = 1.0
) -> GpuSharingInstance:
    """The jobs with their recorded durations, each with its GPUs to itself, all GPUs alike.

    The horizon holds any schedule that is never idle while jobs wait, and the record.
    """
    rows = []
    end = serial = 0
    for job in jobs:
        arrival, length, first = slots_of(job, slot_length)
        end, serial = max(end, (first or arrival) + length), serial + length
        rows.append(
            {
                "id": job.id,
                "arrival": arrival,
                "gpus": job.gpus,
                "iterations": length,
                "batch_size": 1,
                "compute": {"fixed": slot_length, "per_sample": 0.0},
                "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
                "overlap": 1.0,
                "memory": {"fixed": 0.0, "per_sample": 0.0},
            }
        )
    return GpuSharingInstance.parse(
        {
            "problem": "gpu-sharing",
            "name": name,
            "horizon": min(LARGEST_COUNT, end + serial),
            "slot_length": slot_length,
            "servers": [{"id": server.id, "gpus": server.gpus} for server in servers],
            "gpu_memory": 1.0,
            "max_jobs_per_gpu": 1,
            "jobs": rows,
        },
        name,
    )


def exclusive_record(
    jobs: Sequence[TraceJob], servers: Sequence[TraceServer], slot_length: float = 1.0
) -> tuple[Solution, tuple[Clash, ...]]:
    """The recorded schedule and its clashes, on any servers where the log does not say on which."""
    if placed_on(jobs, servers) is not None:
        jobs = [replace(job, nodes=()) for job in jobs]
    rebuilt = rebuild(jobs, servers, slot_length)
    once = {job.id: 1 for job in jobs}
    return {"start": rebuilt.starts, "gpus": rebuilt.gpus, "accumulation": once}, rebuilt.clashes


def exclusive_times(instance: GpuSharingInstance, solution: Solution, completion: Mapping[str, int]) -> Times:
    """Seconds of submission, start and end by job."""
    unit = instance.slot_length
    submit = unit * np.array([job.arrival - 1.0 for job in instance.jobs])
    start = unit * np.array([solution["start"][job.id] - 1.0 for job in instance.jobs])
    return submit, start, unit * np.array([float(completion[job.id]) for job in instance.jobs])
