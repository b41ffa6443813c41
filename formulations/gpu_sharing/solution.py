"""Solutions of gpu-sharing: when each job starts, on which GPUs, in how many accumulation steps."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, Strict

from schedgap.formulations.common.instance import (
    LARGEST_COUNT,
    Count,
    NonNegative,
)
from schedgap.formulations.common.solution import Listed, Slot, TypedSolution, listed

Steps = Annotated[int, Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]


Gpu = Annotated[tuple[str, int], Strict(False), BeforeValidator(listed)]
"""[server, index]"""


Segment = Annotated[tuple[Slot, Slot, Count], Strict(False), BeforeValidator(listed)]
"""[first slot, last slot, GPUs]"""


class GpuSharingSolution(TypedSolution):
    """A schedule; all by job.

    Attributes
    ----------
    start : first slot
    gpus : its GPUs
    accumulation : accumulation steps
    """

    start: dict[str, Slot]
    gpus: dict[str, Listed[Gpu]]
    accumulation: dict[str, Steps]


class ElasticSolution(TypedSolution):
    """A preemptive or elastic schedule, outside the model.

    Attributes
    ----------
    segments : each job's runs of slots in which it holds so many GPUs, shared with nobody
    noise : gradient noise scale that larger batches are discounted with
    restart : slots lost at the beginning of every segment but the first
    """

    segments: dict[str, Annotated[Listed[Segment], Field(min_length=1)]]
    noise: NonNegative
    restart: Annotated[int, Field(ge=0, le=LARGEST_COUNT)]
