"""The solution of hadar: the devices that each job holds, by runs of slots or slot by slot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Strict,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from schedgap.formulations.common.instance import (
    Count,
    Part,
)
from schedgap.formulations.common.solution import Listed, Slot, TypedSolution, listed


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
    allocation : runs of each job, ``[first, last, devices]`` of slots in which it holds the same devices, or the
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
    rounds : copy that runs in each slot on each machine
    """

    rounds: BySlot[dict[str, Copy]]
