"""The instance of ddljs: a network, a horizon, and jobs whose utility grows with their worker-slots."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import FailFast, Field, model_validator

from schedgap.formulations.common.instance import (
    MOST_JOBS,
    Count,
    Frozen,
    Identifier,
    NonNegative,
    Part,
    Positive,
    unique_ids,
)
from schedgap.formulations.g_vne.substrate import (
    MOST_WORKERS,
    Finite,
    RingJob,
    SubstrateInstance,
    most_multiples,
    worker_cap,
)

LONGEST_HORIZON = 10**6
"""A solution has an entry for every slot."""


class Utility(Part):
    """What a job is worth after x units of work, x = efficiency * worker-slots.

    Attributes
    ----------
    kind : ``linear``: scale x; ``sqrt``: scale sqrt(x); ``log1p``: scale ln(1 + x); ``log``: scale ln(max(x, least));
        ``energy``: -scale x^2, a cost; ``sigmoid``: scale / (1 + exp(-steepness (x - midpoint))), which is not 0 at
        x = 0; 0 or scale where the exponent is beyond 300
    scale : >= 0
    least : > 0, only, and always, with ``log``: the work that a job which never ran counts as having, since ln 0 is
        no number
    steepness : >= 0, only, and always, with ``sigmoid``
    midpoint : midpoint of either sign; given exactly with ``sigmoid``
    """

    kind: Literal["linear", "sqrt", "log1p", "log", "energy", "sigmoid"]
    scale: NonNegative
    least: Positive | None = None
    steepness: NonNegative | None = None
    midpoint: Finite | None = None

    @model_validator(mode="after")
    def _numbers_belong_to_the_kind(self) -> Self:
        for name, kind in (("steepness", "sigmoid"), ("midpoint", "sigmoid"), ("least", "log")):
            value = getattr(self, name)
            if self.kind == kind and value is None:
                raise ValueError(f'{name}: is missing (kind "{kind}")')
            if self.kind != kind and value is not None:
                raise ValueError(f'{name}: only kind "{kind}" has one, got {value:g} with kind "{self.kind}"')
        return self


class Job(RingJob):
    """A job of the horizon.

    Attributes
    ----------
    arrival : a_i, the first slot it may run in
    max_workers : N_i, the largest ring
    budget : F_i, what it may use over the whole horizon, by resource; a missing one is no limit
    efficiency : zeta_i, work per worker and slot
    utility : mu_i
    """

    arrival: Count
    max_workers: Annotated[int, Field(ge=1, le=MOST_WORKERS)]
    budget: Frozen[Identifier, NonNegative]
    efficiency: NonNegative
    utility: Utility

    @cached_property
    def slot_limit(self) -> int | None:
        """min over resources of floor(budget / demand), in worker-slots (0.3 / 0.1 is 3); None is no limit."""
        limits = [
            most_multiples(self.budget[name], amount) for name, amount in self.demand.items() if name in self.budget
        ]
        return min((limit for limit in limits if limit is not None), default=None)

    @property
    def concave(self) -> bool:
        """Whether mu_i is concave in whole worker-slots: not a sigmoid that rises at a positive midpoint.

        A ``log`` is, where the first worker-slot at least doubles ``least``.
        """
        shape = self.utility
        if not (shape.scale and self.efficiency):
            return True
        if shape.kind == "log":
            return self.efficiency >= 2 * (shape.least or 0.0)
        return shape.kind != "sigmoid" or not shape.steepness or (shape.midpoint or 0.0) <= 0.0

    @property
    def rising(self) -> bool:
        """Whether mu_i is never negative and never falls, as the paper assumes."""
        return self.utility.kind not in ("log", "energy")


class DdljsInstance(SubstrateInstance):
    """An instance of ddljs; time runs in slots 1..horizon.

    Raises InputError: on ``parse``: what a network or a job may not be, ids used twice, an arrival beyond the horizon.
    """

    problem_id: ClassVar[str] = "ddljs"
    problem: Literal["ddljs"]
    horizon: Annotated[int, Field(ge=1, le=LONGEST_HORIZON)]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1, max_length=MOST_JOBS), FailFast()]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        unique_ids(self.jobs, "jobs")
        for position, job in enumerate(self.jobs):
            if job.arrival > self.horizon:
                raise ValueError(
                    f"jobs[{position}].arrival: must be at most the horizon ({self.horizon}), got {job.arrival}"
                )
        return self

    @cached_property
    def caps(self) -> tuple[tuple[int, ...], ...]:
        """Workers of each job that each server hosts alone, at most N_i: the paper's (5) without the budget."""
        kinds: dict[tuple[object, ...], int] = {}
        rows = []
        for job in self.jobs:
            row = []
            for server in self.servers:
                key = (job.demand, job.max_workers, server.resources)
                if key not in kinds:
                    kinds[key] = worker_cap(server.resources, job.demand, job.max_workers)
                row.append(kinds[key])
            rows.append(tuple(row))
        return tuple(rows)
