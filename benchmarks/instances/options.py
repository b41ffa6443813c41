"""Options that the presets and importers of several problems share."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

Jobs: TypeAlias = Annotated[int, Field(ge=1, le=100000, description="jobs")]


Servers: TypeAlias = Annotated[int, Field(ge=1, le=10000, description="servers")]


Racks: TypeAlias = Annotated[int | None, Field(ge=1, le=10000, description="racks; 2 to 5 where not given")]


Workers: TypeAlias = Annotated[int, Field(ge=1, le=1000, description="workers of the largest ring")]


Memory: TypeAlias = Annotated[bool, Field(description="a second resource")]


Tightness: TypeAlias = Annotated[float, Field(ge=0.001, le=10**6, description="how much narrower all links are")]


Shape: TypeAlias = Annotated[
    Literal["tree", "general"] | None, Field(description="shape of the network; either where not given")
]


Slots: TypeAlias = Annotated[int, Field(ge=1, le=100000, description="slots")]


Longest: TypeAlias = Annotated[int, Field(ge=1, le=10000, description="longest duration of a job alone")]


Spread: TypeAlias = Annotated[float, Field(ge=0, le=1000, description="interference is drawn from 1 to 1 + 2 spread")]


Ample: TypeAlias = Annotated[
    bool, Field(description="instead of `horizon`, one that cuts off no schedule of any heuristic")
]
