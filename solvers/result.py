"""The one result type, and what a caller may ask of any method."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import gap


class Status(StrEnum):
    """What is known at the end. OPTIMAL only when objective = bound is proven, whoever proved it."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    UNKNOWN = "unknown"
    ERROR = "error"


class Termination(StrEnum):
    """Why a method stopped; a separate thing from what it found."""

    PROVEN = "proven"
    GAP_LIMIT = "gap limit"
    TIME_LIMIT = "time limit"
    WORK_LIMIT = "work limit"
    INTERRUPTED = "interrupted"
    TOO_LARGE = "too large to build in the time"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True)
class Deadline:
    """A moment on the monotonic clock, or never. The clock starts when `solve` starts, building included."""

    moment: float | None = None

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """The deadline `seconds` from now; None is never.

        Raises
        ------
        InputError
            `seconds` is not positive, or not a finite number.
        """
        if seconds is None:
            return cls(None)
        if not 0 < seconds < 1e9:
            raise InputError(f"time limit: must be positive and finite, got {seconds} s")
        return cls(time.monotonic() + seconds)

    def left(self) -> float | None:
        """Seconds left (never negative), or None for no limit."""
        return None if self.moment is None else max(0.0, self.moment - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the moment is over."""
        return self.moment is not None and time.monotonic() >= self.moment

    def capped(self, seconds: float) -> Deadline:
        """The earlier of this deadline and `seconds` from now."""
        other = time.monotonic() + seconds
        return Deadline(other if self.moment is None else min(self.moment, other))


Incumbent = Callable[[Solution | None, float | None, float | None], None]
"""Told of progress: (solution or None, objective or None, bound or None)."""


@dataclass(frozen=True)
class SolveOptions:
    """What a caller may ask of any method.

    Attributes
    ----------
    deadline : wall-clock limit, building included
    relative_gap : stop when the gap is at most this; 0 asks for a proof
    seed : all randomness comes from it
    threads : worker threads; None lets the engine use every core, 1 makes runs repeatable
    work_limit : a repeatable limit instead of seconds: CP-SAT's deterministic time, or branch-and-bound
        nodes in thousands elsewhere; None is no limit
    start : a solution to start from
    report : told of every new incumbent and bound, for the progress line and for Ctrl-C
    log : receives the engine's log, line by line
    feasibility_tolerance : what an engine may miss a row or an integer by; None is the engine's default
    """

    deadline: Deadline = field(default_factory=Deadline)
    relative_gap: float = 0.0
    seed: int = 0
    threads: int | None = None
    work_limit: float | None = None
    start: Solution | None = None
    report: Incumbent | None = None
    log: Callable[[str], None] | None = None
    feasibility_tolerance: float | None = None


@dataclass(frozen=True)
class Result:
    """What one method found on one instance. What is not known is None, never 0 or infinity.

    Attributes
    ----------
    status, termination : what is known, and why the method stopped
    objective : the objective of `solution`
    bound : a proven bound on the optimum (lower when minimising, upper when maximising)
    solution : the bare solution object
    build_seconds, solve_seconds : wall-clock time
    engine, engine_version : what solved it, for example ("highs", "1.13.1"); None for a heuristic
    info : further facts, JSON-compatible: nodes, columns, or what a guarantee needs to know of a run
    """

    status: Status
    objective: float | None = None
    bound: float | None = None
    solution: Solution | None = None
    termination: Termination = Termination.FINISHED
    build_seconds: float | None = None
    solve_seconds: float | None = None
    engine: str | None = None
    engine_version: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> float | None:
        """|objective - bound| / max(1e-9, |objective|), or None."""
        return gap(self.objective, self.bound)

    @property
    def seconds(self) -> float | None:
        """Building and solving together, or None where neither was measured."""
        if self.build_seconds is None and self.solve_seconds is None:
            return None
        return (self.build_seconds or 0.0) + (self.solve_seconds or 0.0)
