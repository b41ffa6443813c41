"""The instance of hadar: machines with devices of several types, gang jobs with utilities."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import (
    FailFast,
    Field,
    model_validator,
)

from schedgap.formulations.common.instance import (
    MOST_JOBS,
    MOST_SERVERS,
    Count,
    Frozen,
    Identifier,
    JobsInstance,
    NonNegative,
    Part,
    Positive,
    count_gpus,
    unique_ids,
)


class Machine(Part):
    """A machine and its devices by type, c_h^r of the paper."""

    id: Identifier
    gpus: Annotated[Frozen[Identifier, Count], Field(min_length=1)]


class Utility(Part):
    """What a job is worth when it completes after the duration d (same unit of time as ``slot_length``).

    Attributes
    ----------
    kind : ``effective-throughput``: weight E N / d; ``linear``: max(0, weight (1 - d / deadline));
        ``constant``: weight
    weight : >= 0
    deadline : only, and always, with ``linear``
    """

    kind: Literal["effective-throughput", "linear", "constant"]
    weight: NonNegative
    deadline: Positive | None = None

    @model_validator(mode="after")
    def _deadline_belongs_to_linear(self) -> Self:
        if self.kind == "linear" and self.deadline is None:
            raise ValueError('deadline: is missing (kind "linear")')
        if self.kind != "linear" and self.deadline is not None:
            raise ValueError(f'deadline: only kind "linear" has one, got {self.deadline:g} with kind "{self.kind}"')
        return self


class Job(Part):
    """A gang job.

    Attributes
    ----------
    arrival : a_j, the first slot it may run in
    workers : W_j, devices it holds whenever it runs
    epochs, iterations_per_epoch : E_j and N_j; E_j N_j iterations finish it
    throughput : X_j^r by device type, iterations per unit of time per worker; a type that is missing or 0 cannot
        be used
    """

    id: Identifier
    arrival: Count
    workers: Count
    epochs: Count
    iterations_per_epoch: Count
    throughput: Frozen[Identifier, NonNegative]
    utility: Utility

    @property
    def work(self) -> int:
        """E_j N_j, iterations."""
        return self.epochs * self.iterations_per_epoch


class HadarInstance(JobsInstance):
    """An instance of hadar; time runs in slots 1..horizon of `slot_length` each.

    Raises InputError: on ``parse``: unknown keys, wrong types, ids used twice, numbers out of range, an arrival beyond
    the horizon.

    Attributes
    ----------
    all_jobs_must_finish : problem P1 (true) or P2 (false)
    """

    problem_id: ClassVar[str] = "hadar"
    problem: Literal["hadar"]
    horizon: Count
    slot_length: Positive
    all_jobs_must_finish: bool = False
    machines: Annotated[tuple[Machine, ...], Field(min_length=1, max_length=MOST_SERVERS), FailFast()]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1, max_length=MOST_JOBS), FailFast()]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        count_gpus(
            (f"machines[{position}].gpus.{kind}", devices)
            for position, machine in enumerate(self.machines)
            for kind, devices in machine.gpus.items()
        )
        unique_ids(self.machines, "machines")
        unique_ids(self.jobs, "jobs")
        for position, job in enumerate(self.jobs):
            if job.arrival > self.horizon:
                raise ValueError(
                    f"jobs[{position}].arrival: must be at most the horizon ({self.horizon}), got {job.arrival}"
                )
        return self

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The device types of the cluster, in the order in which the machines name them."""
        return tuple(dict.fromkeys(kind for machine in self.machines for kind in machine.gpus))

    @cached_property
    def capacity(self) -> dict[str, int]:
        """Devices of each type in the whole cluster."""
        return {kind: sum(machine.gpus.get(kind, 0) for machine in self.machines) for kind in self.types}

    @cached_property
    def total_gpus(self) -> int:
        """All devices of the cluster."""
        return sum(self.capacity.values())

    @cached_property
    def machine_index(self) -> dict[str, int]:
        """Position of each machine by id."""
        return {machine.id: position for position, machine in enumerate(self.machines)}
