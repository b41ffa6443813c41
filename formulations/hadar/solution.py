"""The solution of hadar: the devices that each job holds in each slot."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from schedgap.formulations.common.instance import Count, Part
from schedgap.formulations.common.solution import Listed, Slot, TypedSolution


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


class HadarSolution(TypedSolution):
    """A schedule.

    Attributes
    ----------
    allocation : by job and slot, the devices it holds; a job that is not named is rejected
    """

    allocation: dict[str, BySlot[Listed[Devices]]]


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
