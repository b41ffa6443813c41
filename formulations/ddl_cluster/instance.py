"""The instance of ddl-cluster: servers of GPUs behind one link each, jobs of compute and all-reduce tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
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
from schedgap.formulations.common.link import Link

LONGEST = 1e11
"""Seconds that an instance may run for at most (see ``longest_run``)."""


Gpu = tuple[int, int]
"""Position of a server, and the index of a GPU on it, from 0."""


Worker = tuple[Identifier, Annotated[int, Field(ge=0)]]
"""A GPU in a file: the id of its server, and its index there."""


class Job(Part):
    """A data-parallel training job.

    Attributes
    ----------
    arrival : seconds, when it enters the queue
    gpus : its workers, each on a GPU of its own
    iterations : how often forward, backward and all-reduce repeat
    forward, backward : seconds of one compute task on one GPU
    message : MB of one all-reduce, which takes place when the job spans servers
    memory : MB it holds on each of its GPUs from its placement to its finish
    placement : its GPUs, where they are given
    """

    id: Identifier
    arrival: NonNegative
    gpus: Count
    iterations: Count
    forward: Positive
    backward: Positive
    message: Positive
    memory: NonNegative
    placement: Annotated[tuple[Worker, ...], Field(min_length=1)] | None = None


class DdlClusterInstance(ClusterInstance):
    """An instance of ddl-cluster, in seconds and MB, in continuous time.

    ``parse`` raises InputError: unknown keys, wrong types, ids used twice, numbers out of range, a job that needs more
    GPUs or more memory than there is, a given placement of another number of GPUs, on an unknown server
    or GPU, or with a GPU listed twice, more than 10^6 GPUs, an instance that runs for more than 10^11 seconds.
    """

    problem_id: ClassVar[str] = "ddl-cluster"
    problem: Literal["ddl-cluster"]
    gpu_memory: Positive
    servers: Annotated[tuple[GpuServer, ...], Field(min_length=1, max_length=MOST_SERVERS), FailFast()]
    link: Link
    jobs: Annotated[tuple[Job, ...], Field(min_length=1, max_length=MOST_JOBS), FailFast()]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_ids(self.servers, "servers")
        unique_ids(self.jobs, "jobs")
        for position, job in enumerate(self.jobs):
            where = f'jobs[{position}] ("{job.id}")'
            if job.gpus > self.total_gpus:
                raise ValueError(f"{where}: needs {job.gpus} GPUs, the cluster has {self.total_gpus}")
            if job.memory > self.gpu_memory:
                raise ValueError(f"{where}: needs {job.memory:.12g} MB on each GPU, a GPU has {self.gpu_memory:.12g}")
            if job.placement is not None:
                if len(job.placement) != job.gpus:
                    raise ValueError(f"{where}.placement: {len(job.placement)} GPUs given, needs {job.gpus}")
                self.located(job.placement, f"jobs[{position}].placement")

        if self.longest_run > LONGEST:
            text = f"all tasks one after another take {self.longest_run:.3g} s"
            raise ValueError(f"jobs: {text}, at most {LONGEST:g} s are supported")
        return self

    def located(self, workers: Sequence[tuple[str, int]], where: str) -> tuple[Gpu, ...]:
        """The GPUs that `workers` names.

        Raises ValueError: an unknown server, an index that the server does not have, or a GPU listed twice; the
        message begins with `where`.
        """
        found: dict[Gpu, int] = {}
        for position, (server_id, index) in enumerate(workers):
            server = self.server_index.get(server_id)
            if server is None:
                raise ValueError(f'{where}[{position}]: there is no server "{server_id}"')
            count = self.servers[server].gpus
            if index >= count:
                raise ValueError(f"{where}[{position}]: server {server_id} has GPUs 0 to {count - 1}, got {index}")
            if (server, index) in found:
                first = found[server, index]
                raise ValueError(f"{where}[{position}]: GPU {index} of {server_id} is already at {where}[{first}]")
            found[server, index] = position
        return tuple(found)

    @cached_property
    def longest_run(self) -> float:
        """Seconds until everything is done at the latest, with room to spare.

        The last arrival, and then one after another every task of every job, counted for each of its GPUs,
        with every all-reduce among three.
        """
        work = (
            job.gpus
            * job.iterations
            * (job.forward + job.backward + self.link.latency + job.message * self.link.seconds_per_unit_among(3))
            for job in self.jobs
        )
        return max(job.arrival for job in self.jobs) + sum(work)

    @cached_property
    def first_gpu(self) -> tuple[int, ...]:
        """The number of each server's GPU 0 when all GPUs are counted through, server by server."""
        return tuple(accumulate((server.gpus for server in self.servers[:-1]), initial=0))

    @cached_property
    def given(self) -> tuple[tuple[Gpu, ...] | None, ...]:
        """Each job's given GPUs in the order of the file, or None where the placement is free."""
        return tuple(None if job.placement is None else self.located(job.placement, "placement") for job in self.jobs)
