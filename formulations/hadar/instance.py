"""The instance of hadar: machines with devices of several types, gang jobs with utilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    FailFast,
    Field,
    Strict,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from schedgap.formulations.common.instance import (
    MOST_JOBS,
    MOST_SERVERS,
    Count,
    Frozen,
    Identifier,
    JobsInstance,
    Listed,
    NonNegative,
    Part,
    Positive,
    Slot,
    TypedSolution,
    count_gpus,
    listed,
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


# The solution of hadar: the devices that each job holds, by runs of slots or slot by slot.


def _number(name: Any) -> Any:
    """A slot as a key of a JSON object: text, written the one way."""
    if isinstance(name, str) and len(name) <= 12 and name.lstrip("-").isdecimal() and name == str(int(name)):
        return int(name)
    return name


def _none_twice(slots: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    found = handler(slots)
    if len(found) < len(slots):  # 1 and "1"
        raise PydanticCustomError("twice", "a slot is given twice")
    return found


_T = TypeVar("_T")
BySlot = Annotated[dict[Annotated[Slot, BeforeValidator(_number)], _T], WrapValidator(_none_twice)]
"""An object whose keys are slots."""


class Devices(TypedDict):
    """Devices of one type on one machine."""

    # a model takes twice as long to make, and a trace has 10^5 of these
    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]
    machine: str
    type: str
    gpus: Count


Run = tuple[int, int, Sequence[Devices]]
"""First slot, last slot, and the devices held in all of them."""


def _disjoint(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    for first, last, _ in runs:
        if first > last:
            raise PydanticCustomError("run", f"a run ends before it begins: slots {first} to {last}")
    for before, after in pairwise(sorted(runs, key=itemgetter(0))):
        if after[0] <= before[1]:
            raise PydanticCustomError("run", f"slot {after[0]} is given twice")
    return runs


_Run = Annotated[tuple[Slot, Slot, Listed[Devices]], Strict(False), BeforeValidator(listed)]
Held = Annotated[
    # the names of the two forms are no places in the file: error lines leave out what begins with "function-"
    Annotated[Listed[_Run], AfterValidator(_disjoint), Tag("function-runs")]
    | Annotated[BySlot[Listed[Devices]], Tag("function-slots")],
    Discriminator(lambda held: "function-runs" if isinstance(held, list | tuple) else "function-slots"),
]
"""What a job holds: a list of runs ``[first, last, devices]`` that share no slot, or an object by slot."""


class HadarSolution(TypedSolution):
    """A schedule.

    Attributes
    ----------
    allocation : by job, the runs ``[first, last, devices]`` of slots in which it holds the same devices, or the
        devices by slot; a job that is not named is rejected
    """

    allocation: dict[str, Held]


def runs_of(held: Mapping[int, Sequence[Devices]] | Sequence[Run]) -> list[Run]:
    """The runs of what a job holds in a valid solution, in either form, by first slot; by slot each is a run."""
    if isinstance(held, Mapping):
        return [(slot, slot, held[key]) for slot, key in sorted((int(key), key) for key in held)]
    return sorted(((first, last, devices) for first, last, devices in held), key=itemgetter(0))


def by_slot(held: Mapping[int, Sequence[Devices]] | Sequence[Run]) -> dict[int, Sequence[Devices]]:
    """What a job holds in a valid solution, in either form, slot by slot; O(slots)."""
    return {slot: devices for first, last, devices in runs_of(held) for slot in range(first, last + 1)}


class Copy(Part):
    """What a copy of a job does on one machine in one slot; `steps` are iterations."""

    job: str
    steps: Annotated[float, Field(gt=0, lt=1e18)]


class ForkedSolution(TypedSolution):
    """A forked schedule of HadarE, outside the model.

    Attributes
    ----------
    rounds : by slot and machine, the copy that runs there
    """

    rounds: BySlot[dict[str, Copy]]


# HadarE's forked model: a job's copies run at once, one copy at most on a node, steps split among them.
#
# Outside the model of :mod:`schedgap.formulations.hadar.instance`, where a gang is one. A node runs a copy with a gang
# of W_j of its own devices; how fast that is follows (1a) and (1b) on the node's devices alone.

Floats = NDArray[np.float64]


def node_speeds(instance: HadarInstance) -> Floats:
    """(J, H) iterations per unit of time of a copy of a job on a node; 0 where the node cannot hold its gang.

    The W_j fastest devices of the node: the slowest of them sets the rate. O(J H R log R).
    """
    speeds = np.zeros((len(instance.jobs), len(instance.machines)))
    for j, job in enumerate(instance.jobs):
        for h, machine in enumerate(instance.machines):
            need = job.workers
            for rate, count in sorted(
                ((job.throughput.get(kind, 0.0), count) for kind, count in machine.gpus.items()), reverse=True
            ):
                if rate <= 0:
                    break
                need -= count
                if need <= 0:
                    speeds[j, h] = job.workers * rate
                    break
    return speeds
