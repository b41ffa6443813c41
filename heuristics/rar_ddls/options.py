"""Annotated types of the options that several algorithms of rar-ddls take."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from schedgap.formulations.common.instance import LARGEST_COUNT

LargestTheta: TypeAlias = Annotated[
    int | None,
    Field(ge=1, le=LARGEST_COUNT, description="T, the largest execution time limit theta; the horizon where not given"),
]


Overestimate: TypeAlias = Annotated[float, Field(ge=1, description="u >= 1: rho_hat / u is added to a GPU's load")]


Underestimate: TypeAlias = Annotated[
    float,
    Field(gt=0, le=1, description="l <= 1: lower end of the estimate's error, used by the guarantees only"),
]


JobOrder: TypeAlias = Annotated[
    Literal["input", "smallest"], Field(description="the order in which jobs are taken: as given, or fewest GPUs first")
]
