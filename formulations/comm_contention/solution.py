"""The solution of comm-contention: when each transfer is admitted."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Self

from pydantic import Field, model_validator

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.common.solution import Seconds, TypedSolution

LONGEST = 1000
"""Characters of a start that is written as text."""


Decimal = Annotated[str, Field(pattern=r"^-?[0-9]+(\.[0-9]+)?$", max_length=LONGEST)]
"""A number as text, such as "0.25"."""


class CommContentionSolution(TypedSolution):
    """Admissions.

    Attributes
    ----------
    start : seconds, by task
    exact : starts with more digits than a floating-point number has; each rounds to its start and is used instead
    """

    start: dict[str, Seconds]
    exact: dict[str, Decimal] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _exact_rounds_to_start(self) -> Self:
        for task, text in self.exact.items():
            if task not in self.start:
                raise ValueError(f"exact.{task}: has no start")
            if float(Fraction(text)) != self.start[task]:
                value = self.start[task]
                raise ValueError(f"exact.{task}: does not round to the start, {value!r}, got {float(Fraction(text))!r}")
        return self

    def moment(self, task: str) -> Fraction:
        """The admission of a task, in seconds."""
        return Fraction(self.exact[task]) if task in self.exact else exact(self.start[task])
