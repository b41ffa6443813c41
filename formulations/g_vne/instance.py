"""The instance of g-vne: a network and jobs that are worth something by the size of their ring."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import FailFast, Field, model_validator

from schedgap.formulations.common.instance import MOST_JOBS, unique_ids
from schedgap.formulations.common.numbers import unit_of
from schedgap.formulations.g_vne.substrate import MOST_WORKERS, Finite, RingJob, RingSolution, SubstrateInstance

ORDINARY = (0.1, 1e6)
"""Where the largest utility of an instance may be so that tolerances of 1e-9 mean what they should."""


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
    jobs: Annotated[tuple[Job, ...], Field(min_length=1, max_length=MOST_JOBS), FailFast()]

    @model_validator(mode="after")
    def _unique_jobs(self) -> Self:
        unique_ids(self.jobs, "jobs")
        return self

    @cached_property
    def largest_utility(self) -> float:
        """max pi, at least 0: a ring that is worth less than nothing is left out."""
        return max(0.0, max(value for job in self.jobs for value in job.utility))


def in_ordinary_units(
    instance: GVneInstance, largest: float | None = None, ordinary: tuple[float, float] = ORDINARY
) -> tuple[GVneInstance, float]:
    """The instance with its utilities in a unit in which absolute tolerances are small, and that unit.

    Parameters
    ----------
    largest : the largest utility that matters; that of the instance where not given
    ordinary : where it may be already

    Returns
    -------
    (instance, unit) : utilities are divided by `unit` (see :func:`unit_of`), a power of two, so without rounding
        unless they vanish beside the largest; the instance itself and 1 where that is 0 or ordinary
    """
    unit = unit_of(instance.largest_utility if largest is None else largest, ordinary)
    if unit == 1.0:
        return instance, unit
    jobs = tuple(
        job.model_copy(update={"utility": tuple(value / unit for value in job.utility)}) for job in instance.jobs
    )
    return GVneInstance.model_construct(**{**dict(instance), "jobs": jobs}), unit


# The solution of g-vne: a ring for each job that is accepted.


class GVneSolution(RingSolution):
    """Embedded rings; a job that is not named is left out."""
