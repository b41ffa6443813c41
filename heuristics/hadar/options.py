"""Annotated types of the options that several algorithms of hadar take."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

RestartDelay: TypeAlias = Annotated[
    float, Field(ge=0, le=1e9, description="time lost when a job's devices change (unit of slot_length)")
]
Overhead: TypeAlias = Annotated[
    float, Field(ge=0, le=1e9, description="time lost in every round in which something runs (unit of slot_length)")
]
