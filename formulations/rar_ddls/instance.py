"""The instance of rar-ddls: servers with GPUs, gang jobs that run ring-all-reduce, a contended network."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import FailFast, Field, model_validator

from schedgap.formulations.common.instance import (
    MOST_JOBS,
    MOST_SERVERS,
    ClusterInstance,
    Count,
    GpuServer,
    Identifier,
    NonNegative,
    Part,
    Positive,
    unique_ids,
)


class Network(Part):
    """Bandwidths in data units per slot, and how contention and spreading slow a ring down.

    Attributes
    ----------
    inter_bandwidth, intra_bandwidth : b^e and b^i of the paper, intra >= inter > 0
    contention_scale : xi_1 of eq. (7), in (0, 1]
    contention_penalty : alpha of f(alpha, k) = k + alpha (k - 1), >= 0
    server_overhead : xi_2 of section 4.1, slots per server used, >= 0
    """

    inter_bandwidth: Positive
    intra_bandwidth: Positive
    contention_scale: Annotated[float, Field(gt=0, le=1)]
    contention_penalty: NonNegative
    server_overhead: NonNegative

    @model_validator(mode="after")
    def _intra_is_faster(self) -> Self:
        if self.intra_bandwidth < self.inter_bandwidth:
            raise ValueError(
                f"intra_bandwidth: must be at least inter_bandwidth ({self.inter_bandwidth:g}), "
                f"got {self.intra_bandwidth:g}"
            )
        return self


class Job(Part):
    """A ring-all-reduce training job.

    Attributes
    ----------
    gpus : G_j, workers of the gang
    iterations : F_j
    gradient_size : m_j, data units
    batch_size : M_j, samples
    forward_time : slots per sample
    backward_time : slots per iteration
    """

    id: Identifier
    gpus: Count
    iterations: Count
    gradient_size: NonNegative
    batch_size: Count
    forward_time: NonNegative
    backward_time: NonNegative


class RarDdlsInstance(ClusterInstance):
    """An instance of rar-ddls; time runs in slots 1..horizon.

    Raises InputError: on ``parse``: unknown keys, wrong types, ids used twice, numbers out of range, a job whose
    iteration would take no time at all.
    """

    problem_id: ClassVar[str] = "rar-ddls"
    problem: Literal["rar-ddls"]
    horizon: Count
    network: Network
    reduce_speed: Positive
    servers: Annotated[tuple[GpuServer, ...], Field(min_length=1, max_length=MOST_SERVERS), FailFast()]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1, max_length=MOST_JOBS), FailFast()]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_ids(self.servers, "servers")
        unique_ids(self.jobs, "jobs")
        for position, job in enumerate(self.jobs):
            compute = job.forward_time * job.batch_size + job.backward_time
            if compute == 0 and self.network.server_overhead == 0 and (job.gpus == 1 or job.gradient_size == 0):
                raise ValueError(f'jobs[{position}] ("{job.id}"): an iteration takes no time (all its times are 0)')
        return self

    @cached_property
    def largest_gang(self) -> int:
        """n_g = max_j G_j."""
        return max(job.gpus for job in self.jobs)
