"""The solution of rar-ddls: when each job starts, and where."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schedgap.formulations.common.instance import (
    Count,
)
from schedgap.formulations.common.solution import Slot, TypedSolution


class RarDdlsSolution(TypedSolution):
    """A schedule.

    Attributes
    ----------
    start : first slot, by job
    placement : GPUs by server, by job
    """

    start: dict[str, Slot]
    placement: dict[str, Annotated[dict[str, Count], Field(min_length=1)]]
