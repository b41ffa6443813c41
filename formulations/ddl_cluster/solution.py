"""The solution of ddl-cluster: GPUs and finish times, under a policy or with the start of every task."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, Strict, model_validator

from schedgap.formulations.common.instance import (
    Part,
)
from schedgap.formulations.common.solution import Listed, Seconds, TypedSolution, listed

NamedGpu = Annotated[tuple[str, Annotated[int, Field(ge=0)]], Strict(False), BeforeValidator(listed)]
"""[server, index]"""


class TaskTimes(Part):
    """The start times of one job's tasks.

    Attributes
    ----------
    forward, backward : seconds, by iteration and worker
    allreduce : seconds, the admissions by iteration, for a job that spans servers
    """

    forward: Listed[Listed[Seconds]]
    backward: Listed[Listed[Seconds]]
    allreduce: Listed[Seconds] | None = None


class DdlClusterSolution(TypedSolution):
    """A schedule: either a policy, which is replayed, or explicit task times; all by job.

    Attributes
    ----------
    placement : GPUs of its workers
    finish : seconds, as stated
    policy : which messages wait for which
    release : seconds until which jobs are held back from the queue, beyond their arrival; only with a policy
    schedule : task times, workers in the order of the placement
    """

    placement: dict[str, Listed[NamedGpu]]
    finish: dict[str, Seconds]
    policy: Literal["srsf-1", "srsf-2", "srsf-3", "srsf-4", "ada-srsf"] | None = None
    release: dict[str, Seconds] | None = None
    schedule: dict[str, TaskTimes] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.policy is None) == (self.schedule is None):
            raise ValueError("needs either a policy or a schedule")
        if self.release is not None and self.policy is None:
            raise ValueError("release: only a policy holds jobs back, a schedule has its start times")
        return self
