"""The instance of gpu-sharing: interchangeable GPUs, gang jobs with gradient accumulation, interference."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import FailFast, Field, model_validator

from schedgap.formulations.common.instance import (
    MOST_JOBS,
    MOST_SERVERS,
    ClusterInstance,
    Count,
    Frozen,
    FrozenDict,
    GpuServer,
    Identifier,
    NonNegative,
    Part,
    Positive,
    unique_ids,
)

Slowdown = Annotated[float, Field(ge=1, le=1e6)]
"""An interference ratio xi: the factor on an iteration time, from 1 to 10^6."""


class Compute(Part):
    """t_comp(b) = fixed + per_sample * b seconds for a sub-batch of b samples (eq. 3)."""

    fixed: NonNegative
    per_sample: NonNegative


class Communication(Part):
    """t_comm = latency + per_unit * message seconds for a gang of two or more (eq. 4)."""

    latency: NonNegative
    per_unit: NonNegative
    message: NonNegative


class Memory(Part):
    """fixed + per_sample * b on each GPU of the job, in the unit of ``gpu_memory``."""

    fixed: NonNegative
    per_sample: NonNegative


class Job(Part):
    """A data-parallel training job.

    Attributes
    ----------
    arrival : the first slot in which it may run, 1 or later
    gpus : G_j, workers of the gang
    iterations : I_j
    batch_size : B_j, samples per GPU and iteration
    overlap : delta of eq. (7), how far communication hides behind computation, from 1 to 100
    limit : seconds that its user asked for, where a log has them. No schedule depends on it: the online loop tells it
        as the user's estimate
    """

    id: Identifier
    arrival: Count
    gpus: Count
    iterations: Count
    batch_size: Count
    compute: Compute
    communication: Communication
    overlap: Annotated[float, Field(ge=1, le=100)]
    memory: Memory
    limit: Positive | None = None

    @cached_property
    def accumulation_steps(self) -> tuple[int, ...]:
        """The powers of two that divide the batch: 1, 2, 4, ..."""
        largest = self.batch_size & -self.batch_size
        return tuple(1 << power for power in range(largest.bit_length()))


class GpuSharingInstance(ClusterInstance):
    """An instance of gpu-sharing; time runs in slots 1..horizon of ``slot_length`` seconds.

    ``interference[j][k]`` is xi, the factor on j's iteration time while it shares a GPU with k; 1 where it, its row
    or the whole table is not given. Raises InputError: on ``parse``: unknown keys, wrong types, ids used twice,
    interference of unknown jobs or of a job with itself, numbers out of range, a job whose iteration would take no time
    at all.
    """

    problem_id: ClassVar[str] = "gpu-sharing"
    problem: Literal["gpu-sharing"]
    horizon: Count
    slot_length: Positive
    servers: Annotated[tuple[GpuServer, ...], Field(min_length=1, max_length=MOST_SERVERS), FailFast()]
    gpu_memory: Positive
    max_jobs_per_gpu: Annotated[int, Field(ge=1, le=2)]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1, max_length=MOST_JOBS), FailFast()]
    interference: Frozen[str, Frozen[str, Slowdown]] = Field(default_factory=FrozenDict)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_ids(self.servers, "servers")
        unique_ids(self.jobs, "jobs")
        for position, job in enumerate(self.jobs):
            compute = job.compute.fixed + job.compute.per_sample * job.batch_size
            link = job.communication
            communication = 0.0 if job.gpus == 1 else link.latency + link.per_unit * link.message
            if compute == 0 and communication == 0:
                raise ValueError(f'jobs[{position}] ("{job.id}"): an iteration takes no time (all its times are 0)')
        for job_id, row in self.interference.items():
            if job_id not in self.job_index:
                raise ValueError(f'interference: there is no job "{job_id}"')
            for other in row:
                if other not in self.job_index:
                    raise ValueError(f'interference.{job_id}: there is no job "{other}"')
                if other == job_id:
                    raise ValueError(f"interference.{job_id}.{other}: a job does not share a GPU with itself")
        return self

    def slowdown(self, job_id: str, other_id: str) -> float:
        """xi: the factor on the iteration time of `job_id` while it shares a GPU with `other_id`."""
        return self.interference.get(job_id, {}).get(other_id, 1.0)
