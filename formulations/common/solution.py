"""Solutions: validated as a whole, like instances; checkers judge them and do not parse."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    Strict,
)
from pydantic_core import PydanticCustomError

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST, LARGEST_COUNT, Json, Part, validated


def listed(value: object) -> Json:
    """The validator of list fields: a list or a tuple, nothing else that can be looped over."""
    if not isinstance(value, list | tuple):
        raise PydanticCustomError("list_type", "input should be a list")
    return value


_T = TypeVar("_T")


Listed = Annotated[tuple[_T, ...], Strict(False), BeforeValidator(listed)]
"""A list field of a solution, kept as a tuple: ``Listed[int]``."""


Seconds = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
"""A moment; one before 0 is for the checker to judge."""


Slot = Annotated[int, Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]
"""A time slot; one before 1 is for the checker to judge."""


class TypedSolution(Part):
    """A solution of a problem; a subclass per problem adds the fields of its JSON object.

    What it names (jobs, servers) is compared with an instance by the checker.
    """

    @classmethod
    def parse(cls, data: object, source: str = "solution") -> Self:
        """Validate `data`, a bare solution object, as a whole.

        Raises InputError: one line: the source, the path in it, what is wrong and the value.
        """
        return validated(cls, data, source)


def one_for_each(part: Mapping[str, object], ids: Collection[str], where: str, what: str = "job") -> None:
    """Refuse a part of a solution that does not have exactly one entry for each of `ids`.

    Raises InputError: an id is unknown, or missing.
    """
    known_only(part, ids, where, what)
    if len(part) < len(ids):
        missing = next(name for name in ids if name not in part)
        raise InputError(f'solution: {where}: {what} "{missing}" is missing')


def known_only(names: Collection[str], ids: Collection[str], where: str, what: str = "job") -> None:
    """Refuse a name that the instance does not have; `ids` is a set or a mapping.

    Raises InputError: it names the first such.
    """
    for name in names:
        if name not in ids:
            raise InputError(f'solution: {where}: the instance has no {what} "{name}"')


_I = TypeVar("_I")


_S = TypeVar("_S", bound=TypedSolution)


def parsed(check: Callable[[_I, _S], CheckReport], form: type[_S]) -> Callable[[_I, Mapping[str, Json]], CheckReport]:
    """`check` for bare solution objects: each is parsed as a `form` first."""

    def read_and_check(instance: _I, solution: Mapping[str, Any]) -> CheckReport:
        return check(instance, form.parse(solution))

    return read_and_check
