"""The instance of comm-contention: one link and the transfers that want it."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import FailFast, Field, model_validator

from schedgap.formulations.common.instance import (
    LARGEST,
    MOST_JOBS,
    Identifier,
    Instance,
    Moment,
    Part,
    Positive,
    unique_ids,
)
from schedgap.formulations.common.link import Link


class Task(Part):
    """A transfer.

    Attributes
    ----------
    release : seconds, the first moment at which it may be admitted
    size : M_j, units to move
    """

    id: Identifier
    release: Moment
    size: Positive


class CommContentionInstance(Instance):
    """Transfers on one link; minimise mean (completion - release) in seconds."""

    problem_id: ClassVar[str] = "comm-contention"
    problem: Literal["comm-contention"]
    link: Link
    tasks: Annotated[tuple[Task, ...], Field(min_length=1, max_length=MOST_JOBS), FailFast()]

    @model_validator(mode="after")
    def _distinct_ids(self) -> Self:
        unique_ids(self.tasks, "tasks")
        return self

    @model_validator(mode="after")
    def _ends_in_time(self) -> Self:
        if self.longest_run > LARGEST:
            text = f"after the last release all of them take up to {self.longest_run:.3g} s"
            raise ValueError(f"tasks: {text}, at most {LARGEST:g} s are supported")
        return self

    @property
    def longest_run(self) -> float:
        """Seconds until everything is done at the latest, where the link is never idle after the last release.

        The last release, every latency, and every volume at b + eta, the slowest that the link moves.
        """
        link = self.link
        slowest = link.seconds_per_unit + link.contention_penalty
        volume = sum(task.size for task in self.tasks)
        return max(task.release for task in self.tasks) + len(self.tasks) * link.latency + slowest * volume

    @cached_property
    def task_index(self) -> dict[str, int]:
        """Position of each task by its id."""
        return {task.id: position for position, task in enumerate(self.tasks)}
