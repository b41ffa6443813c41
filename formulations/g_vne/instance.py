"""The instance of g-vne: a network and jobs that are worth something by the size of their ring."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from schedgap.formulations.common.instance import unique_ids
from schedgap.formulations.common.substrate import MOST_WORKERS, Finite, RingJob, SubstrateInstance


class Job(RingJob):
    """A job of one time slot.

    Attributes
    ----------
    utility : pi of a ring of 1, 2, ... workers; its length is the largest ring. Of any sign, not necessarily
        monotone: a job can always be left out, for 0
    """

    utility: Annotated[tuple[Finite, ...], Field(min_length=1, max_length=MOST_WORKERS)]

    @property
    def max_workers(self) -> int:
        """Size of the largest ring."""
        return len(self.utility)


class GVneInstance(SubstrateInstance):
    """An instance of g-vne, problem (12)-(19) of paper 004."""

    problem_id: ClassVar[str] = "g-vne"
    problem: Literal["g-vne"]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _unique_jobs(self) -> Self:
        unique_ids(self.jobs, "jobs")
        return self

    @cached_property
    def job_index(self) -> dict[str, int]:
        """Position of each job by id."""
        return {job.id: position for position, job in enumerate(self.jobs)}
