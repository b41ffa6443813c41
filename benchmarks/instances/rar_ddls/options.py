"""Options that the presets and importers of rar-ddls share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

Worker: TypeAlias = Annotated[str, Field(description="worker type whose measured rates are taken")]


ContentionPenalty: TypeAlias = Annotated[float, Field(ge=0, le=10**6, description="contention_penalty")]


OverheadSlots: TypeAlias = Annotated[
    float, Field(ge=0, le=0.005, description="server_overhead, slots per iteration and server used")
]


Extra: TypeAlias = Annotated[
    float, Field(ge=0, le=0.5, description="largest share of the exchange in an iteration's time")
]


Longest: TypeAlias = Annotated[int, Field(ge=1, le=10000, description="longest duration of a job alone")]


Slack: TypeAlias = Annotated[float, Field(ge=1, le=100, description="horizon over a certified feasible makespan")]


Horizon: TypeAlias = Annotated[
    int | None, Field(ge=1, le=10**9, description="slots; an instance may then be infeasible")
]


RaisedHorizon: TypeAlias = Annotated[
    int, Field(ge=1, le=10**9, description="slots, raised where needed to be certainly feasible")
]


Ample: TypeAlias = Annotated[
    bool, Field(description="the horizon, where it is not given, cuts off no schedule of any heuristic")
]
