"""The jobs of a log as an instance of gpu-sharing, with GPUs that a job has to itself or shares with another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from schedgap.benchmarks.importers.server_tables import TraceServer
from schedgap.benchmarks.importers.traces import TraceJob
from schedgap.formulations.common.instance import LARGEST_COUNT, Solution
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.tools.audit.record import slots_of

BASE = "gpu-sharing"
"""The problem whose schedules know neither types nor shapes."""


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


def shared_instance(instance: GpuSharingInstance, slowdown: float) -> GpuSharingInstance:
    """The same jobs where two may share a GPU, each as much slower beside any other, whatever they are."""
    ids = instance.job_index
    table = {job: {other: slowdown for other in ids if other != job} for job in ids if slowdown > 1}
    horizon = min(LARGEST_COUNT, math.ceil(instance.horizon * slowdown))
    data = {**instance.to_dict(), "max_jobs_per_gpu": 2, "horizon": horizon, "interference": table}
    return GpuSharingInstance.parse(data, instance.name)


def exclusive_times(
    instance: GpuSharingInstance, solution: Solution, completion: Mapping[str, int]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Seconds of submission, start and end by job."""
    unit = instance.slot_length
    submit = unit * np.array([job.arrival - 1.0 for job in instance.jobs])
    start = unit * np.array([solution["start"][job.id] - 1.0 for job in instance.jobs])
    return submit, start, unit * np.array([float(completion[job.id]) for job in instance.jobs])
