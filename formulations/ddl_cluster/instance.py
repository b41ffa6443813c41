"""The instance of ddl-cluster: servers of GPUs behind one link each, jobs of compute and all-reduce tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from math import ceil, floor
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, FailFast, Field, Strict, model_validator

from schedgap.formulations.common.errors import ModelTooLarge
from schedgap.formulations.common.instance import (
    MOST_JOBS,
    MOST_SERVERS,
    ClusterInstance,
    Count,
    GpuServer,
    Identifier,
    Listed,
    NonNegative,
    Part,
    Positive,
    Seconds,
    TypedSolution,
    listed,
    unique_ids,
)
from schedgap.formulations.common.link import Link
from schedgap.formulations.common.numbers import exact

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
        """By server, the number of its GPU 0 when all GPUs are counted through, server by server."""
        return tuple(accumulate((server.gpus for server in self.servers[:-1]), initial=0))

    @cached_property
    def given(self) -> tuple[tuple[Gpu, ...] | None, ...]:
        """By job, its given GPUs in the order of the file, or None where the placement is free."""
        return tuple(None if job.placement is None else self.located(job.placement, "placement") for job in self.jobs)


# The solution of ddl-cluster: GPUs and finish times, under a policy or with the start of every task.

NamedGpu = Annotated[tuple[str, Annotated[int, Field(ge=0)]], Strict(False), BeforeValidator(listed)]
"""[server, index]"""


class TaskTimes(Part):
    """The start times of one job's tasks.

    Attributes
    ----------
    forward, backward : seconds, by iteration and worker
    allreduce : seconds, the admissions by iteration, for a job that spans servers
    """

    forward: Listed[Listed[Seconds]]
    backward: Listed[Listed[Seconds]]
    allreduce: Listed[Seconds] | None = None


class DdlClusterSolution(TypedSolution):
    """A schedule: either a policy, which is replayed, or explicit task times; all by job.

    Attributes
    ----------
    placement : GPUs of its workers
    finish : seconds, as stated
    policy : which messages wait for which
    release : seconds until which jobs are held back from the queue, beyond their arrival; only with a policy
    schedule : task times, workers in the order of the placement
    """

    placement: dict[str, Listed[NamedGpu]]
    finish: dict[str, Seconds]
    policy: Literal["srsf-1", "srsf-2", "srsf-3", "srsf-4", "ada-srsf"] | None = None
    release: dict[str, Seconds] | None = None
    schedule: dict[str, TaskTimes] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.policy is None) == (self.schedule is None):
            raise ValueError("needs either a policy or a schedule")
        if self.release is not None and self.policy is None:
            raise ValueError("release: only a policy holds jobs back, a schedule has its start times")
        return self


# An instance in whole numbers: time in ticks, memory in parts of a GPU. Both simulators read this.

FINEST_DIGITS = 60
"""Of ticks that are no finer, 10^digits and its inverse are ordinary floats."""
LARGEST_TICK = 2**60
LARGEST_SUM = 2**62
FINE_TASK = 2**42
"""Ticks that no task and no all-reduce alone reaches: their products with a slowdown are exact to 0.001 tick."""
COARSE_TASK = 2**35
"""Ticks of the longest task, but for a factor of ten, where the sum of all finishes then passes LARGEST_SUM."""
MEMORY_PARTS = 10**15
MEMORY_CAPACITY = MEMORY_PARTS + 10**6
"""What the jobs of a GPU may hold together: all of it, and 1e-9 more, so that 0.1 + 0.2 fits 0.3."""
LARGEST_SETS = 10_000
"""Sets of jobs that do not fit a GPU that a linear model may have rows for."""
JobSet = tuple[int, ...]


def misfits(here: Sequence[int], parts: Sequence[int], limit: int = LARGEST_SETS) -> list[JobSet]:
    """The smallest sets of jobs that do not fit one GPU. Raises ModelTooLarge: they are more than `limit`."""
    sets: list[JobSet] = []
    order = sorted(here, key=lambda j: -parts[j])
    # by place in the order, what the jobs from there on hold: only what goes on to some such set is tried
    rest = list(accumulate((parts[j] for j in reversed(order)), initial=0))[::-1]
    fitting: list[tuple[JobSet, int, int]] = [((), 0, 0)] if rest[0] > MEMORY_CAPACITY else []
    while fitting and len(sets) + len(fitting) <= limit:
        chosen, held, place = fitting.pop()
        while held + rest[place] > MEMORY_CAPACITY:
            j = order[place]
            place += 1
            total = held + parts[j]
            if total > MEMORY_CAPACITY:
                # without any other, none of which is less, it fits
                sets.append((*chosen, j))
            elif total + rest[place] > MEMORY_CAPACITY:
                fitting.append(((*chosen, j), total, place))
    if len(sets) + len(fitting) > limit:
        raise ModelTooLarge(f"more than {limit} sets of jobs that do not fit a GPU")
    return sets


@dataclass(frozen=True)
class Clock:
    """An instance in ticks of 10^-digits seconds.

    Simultaneous events are then exactly simultaneous, in whatever order the times were added up, and a
    pattern that repeats does so exactly. Durations are rounded up, so nothing is faster than it can be. How fine
    ticks are follows from the instance alone: the longest task has 4e11 to 4e12 of them, or at least 3e9 where
    sums would become too large. So units do not matter: the same instance in milliseconds or in bytes is the same
    in ticks.
    """

    digits: int  # a tick is 10^-digits seconds
    # arrival, forward, backward: by job, ticks
    arrival: tuple[int, ...]
    forward: tuple[int, ...]
    backward: tuple[int, ...]
    latency: int  # ticks, the same for all jobs
    transfer: tuple[int, ...]  # by job, ticks in which its message is moved by an all-reduce that meets no other
    solo: tuple[int, ...]  # by job, latency + transfer
    # by number of transfers k from 0 to 4, how many times longer each takes: k + (k - 1) eta / b
    slowdown: tuple[float, ...]
    pair_factor: float  # 2 (b + eta) / b, for AdaDUAL's comparison
    # by job, parts of 10^-15 of a GPU's memory, rounded down; a GPU has MEMORY_CAPACITY of them
    memory: tuple[int, ...]

    def seconds(self, ticks: int) -> float:
        """`ticks` in seconds, correctly rounded."""
        scale: int = 10**self.digits
        return int(ticks) / scale


@lru_cache(maxsize=64)
def clock_of(instance: DdlClusterInstance, digits: int | None = None) -> Clock:
    """The clock of an instance.

    Where `digits` are not given they are the most for which every task and every all-reduce alone takes less than
    FINE_TASK ticks and the sum of all finishes less than LARGEST_SUM; at least as many as COARSE_TASK allows; but
    at most so many that everything ends within LARGEST_TICK (see ``longest_run``).
    """
    if digits is None:
        link = instance.link
        task = max(max(job.forward, job.backward, link.seconds_per_unit * job.message) for job in instance.jobs)
        task = max(task, link.latency)
        last = instance.longest_run
        digits = min(_digits(task, FINE_TASK), _digits(len(instance.jobs) * last, LARGEST_SUM))
        digits = min(max(digits, _digits(task, COARSE_TASK)), _digits(last, LARGEST_TICK))
    scale: int = 10**digits
    a, b, eta = instance.link.exact_parameters()

    def ticks(seconds: Fraction) -> int:
        return ceil(seconds * scale)

    memory = exact(instance.gpu_memory)
    jobs = instance.jobs
    return Clock(
        digits=digits,
        arrival=tuple(ticks(exact(job.arrival)) for job in jobs),
        forward=tuple(ticks(exact(job.forward)) for job in jobs),
        backward=tuple(ticks(exact(job.backward)) for job in jobs),
        latency=ticks(a),
        transfer=tuple(ticks(b * exact(job.message)) for job in jobs),
        solo=tuple(ticks(a) + ticks(b * exact(job.message)) for job in jobs),
        slowdown=(0.0, *(float(k + (k - 1) * eta / b) for k in (1, 2, 3, 4))),
        pair_factor=float(2 * (b + eta) / b),
        memory=tuple(floor(exact(job.memory) / memory * MEMORY_PARTS) for job in jobs),
    )


def _digits(seconds: float, limit: int) -> int:
    """The most digits up to FINEST_DIGITS for which `seconds` are less than `limit` ticks."""
    digits = FINEST_DIGITS
    while exact(seconds) * 10**digits >= limit:
        digits -= 1
    return digits
