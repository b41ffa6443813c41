"""The one result type, and what a caller may ask of any method."""

from __future__ import annotations

import html
import importlib.metadata
import math
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

from schedgap.formulations.common.compiled import first_use
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import gap

if TYPE_CHECKING:
    import pandas as pd


class Status(StrEnum):
    """What is known at the end. OPTIMAL only when objective = bound is proven, whoever proved it."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    UNKNOWN = "unknown"
    ERROR = "error"

    @property
    def needs_proof(self) -> bool:
        """Whether it is an answer that needs a proof."""
        return self in (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)


@cache
def package_version(name: str) -> str | None:
    """The installed version of a package, or None; nothing is imported, and it is looked up once.

    A package that is loaded says so itself; its metadata, which take ten milliseconds to read, are asked otherwise.
    """
    said = getattr(sys.modules.get(name), "__version__", None)
    if isinstance(said, str):
        return said
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


class Proof(StrEnum):
    """How far it is proven that a solution is optimal, or that there is none; the strongest level first.

    Where nothing of the kind is said there is no level: None.
    """

    CERTIFIED = "certified"
    AGREED = "agreed"
    CLAIMED = "claimed"

    @property
    def meaning(self) -> str:
        """The level in words."""
        return {
            Proof.CERTIFIED: "a checker accepted an exact proof",
            Proof.AGREED: "two engines of different makes",
            Proof.CLAIMED: "one solver alone",
        }[self]


class Termination(StrEnum):
    """Why a method stopped; a separate thing from what it found."""

    PROVEN = "proven"
    GAP_LIMIT = "gap limit"
    TIME_LIMIT = "time limit"
    WORK_LIMIT = "work limit"
    MEMORY_LIMIT = "memory limit"
    INTERRUPTED = "interrupted"
    TOO_LARGE = "too large to build in the time"
    FINISHED = "finished"
    FAILED = "failed"


class _Compilation:
    """How long numba has compiled for in this process, from when numba is loaded."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._begun: list[float] = []
        self._heard = False

    def seconds(self) -> float:
        """Until now, what is being compiled included."""
        if not self._heard and "numba.core.event" in sys.modules:
            self._listen()
        begun = self._begun[:1]  # by another thread it may end in between
        return self._seconds + (time.monotonic() - begun[0] if begun else 0.0)

    def _listen(self) -> None:
        from numba.core import event

        begun, add = self._begun, self._add

        class Listener(event.Listener):
            def on_start(self, event: object) -> None:
                begun.append(time.monotonic())

            def on_end(self, event: object) -> None:
                add()

        event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
        self._heard = True

    def _add(self) -> None:
        """The end of a compilation; of one within another, the outermost counts."""
        if len(self._begun) == 1:
            self._seconds += time.monotonic() - self._begun[0]
        self._begun.pop()


_compilation = _Compilation()


def clock() -> float:
    """Seconds since some moment, without those of compilation, or of what runs in its place while that costs less.

    Either is done once, and no time limit pays for it.
    """
    return time.monotonic() - _compilation.seconds() - first_use.seconds()


@dataclass(frozen=True)
class Deadline:
    """A moment on :func:`clock`, or never. The clock starts when `solve` starts, building included."""

    moment: float | None = None

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """The deadline `seconds` from now; None is never.

        Raises InputError: `seconds` is not a number, not positive, or not finite.
        """
        if seconds is None:
            return cls(None)
        if not _number(seconds):
            raise InputError(f"time limit: must be a number of seconds, got {seconds!r}")
        if not 0 < seconds < 1e9:
            raise InputError(f"time limit: must be positive and finite, got {seconds} s")
        return cls(clock() + seconds)

    def remaining(self) -> float | None:
        """Seconds until then (never negative), or None for no limit."""
        return None if self.moment is None else max(0.0, self.moment - clock())

    @property
    def passed(self) -> bool:
        """Whether the moment is over."""
        return self.moment is not None and clock() >= self.moment

    def capped(self, seconds: float) -> Deadline:
        """The earlier of this deadline and `seconds` from now."""
        other = clock() + seconds
        return Deadline(other if self.moment is None else min(self.moment, other))

    def part(self, share: float, otherwise: float | None = None) -> Deadline:
        """A share of what remains, from now; without a limit `otherwise` seconds, or none either."""
        remaining = self.remaining()
        if remaining is None:
            return self if otherwise is None else self.capped(otherwise)
        return self.capped(share * remaining)


NO_DEADLINE = Deadline()
"""No limit."""

Listener = Callable[[Solution | None, float | None, float | None], None]
"""Called with progress: (solution or None, objective or None, bound or None)."""


@dataclass(frozen=True)
class SolveOptions:
    """What a caller may ask of any method.

    Attributes
    ----------
    deadline : wall-clock limit, building included
    relative_gap : stop when the gap is at most this; 0 asks for a proof
    seed : all randomness comes from it; a whole number >= 0, which engines take modulo 2^31
    threads : worker threads; None lets the engine use every core, 1 makes runs repeatable
    work_limit : a repeatable limit instead of seconds: CP-SAT's deterministic time, or branch-and-bound
        nodes in thousands elsewhere; None is no limit
    memory_limit : bytes a method may take beside what the process has already; None is three quarters of what is free
    start : a solution to start from
    report : called with every new incumbent and bound, for the progress line and for Ctrl-C
    log : receives the engine's log, line by line
    feasibility_tolerance : largest violation of a row or an integer by an engine; None is the engine's default
    stages : stages of an exact method that may decide, so that a test can ask one alone; None is all. What later
        stages need of one that is left out is made nevertheless, but it proves and finds nothing itself

    Raises
    ------
    InputError
        The gap is not a finite number >= 0, seed or threads are not whole numbers in range, or the work limit
        is not a positive finite number.
    """

    deadline: Deadline = field(default_factory=Deadline)
    relative_gap: float = 0.0
    seed: int = 0
    threads: int | None = None
    work_limit: float | None = None
    memory_limit: int | None = None
    start: Solution | None = None
    report: Listener | None = None
    log: Callable[[str], None] | None = None
    feasibility_tolerance: float | None = None
    stages: frozenset[str] | None = None

    def allows(self, stage: str) -> bool:
        """Whether a stage of an exact method may decide."""
        return self.stages is None or stage in self.stages

    def __post_init__(self) -> None:
        if not _whole(self.seed) or self.seed < 0:
            raise InputError(f"seed: must be a whole number from 0, got {self.seed!r}")
        if not _finite(self.relative_gap) or self.relative_gap < 0:
            raise InputError(f"relative gap: must be a finite number from 0, got {self.relative_gap!r}")
        if self.threads is not None and (not _whole(self.threads) or self.threads < 1):
            raise InputError(f"threads: must be a whole number from 1, got {self.threads!r}")
        if self.memory_limit is not None and (not _whole(self.memory_limit) or self.memory_limit < 1):
            raise InputError(f"memory limit: must be a whole number of bytes from 1, got {self.memory_limit!r}")
        if self.work_limit is not None and (not _finite(self.work_limit) or self.work_limit <= 0):
            raise InputError(f"work limit: must be a positive finite number, got {self.work_limit!r}")


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


def _finite(value: object) -> bool:
    return _number(value) and math.isfinite(cast(float, value))


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
    info : further facts, JSON-compatible: nodes, columns, or what a guarantee needs to know of a run; ``"proof"`` is
        the level of :attr:`proof` where that is more than claimed; ``"interpreted_seconds"`` are in none of the others:
        compiled functions ran as Python for them, in place of a first compilation

    Raises
    ------
    ValueError
        There is no such level of proof.
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

    def __post_init__(self) -> None:
        Proof(self.info.get("proof", Proof.CLAIMED))

    def __repr__(self) -> str:
        """One line without the solution."""
        return f"Result({', '.join(f'{key}={value}' for key, value in self._summary().items() if value is not None)})"

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = "".join(
            f"<tr><th>{key}</th><td>{'unknown' if value is None else html.escape(str(value))}</td></tr>"
            for key, value in self._summary().items()
        )
        return f"<table>{rows}</table>"

    def to_frame(self) -> pd.DataFrame:
        """One row: status, objective, bound, gap, engine and seconds, the unknown as missing values."""
        import pandas as pd

        return pd.DataFrame([self._summary()])

    def to_dict(self) -> dict[str, str | float | Solution | None]:
        """JSON-compatible: as :meth:`to_frame`, with the level of proof and the solution."""
        return {**self._summary(), "proof": None if self.proof is None else self.proof.value, "solution": self.solution}

    def _summary(self) -> dict[str, str | float | None]:
        """What a person wants to see of a run."""
        return {
            "status": self.status.value,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "engine": self.engine,
            "seconds": None if self.seconds is None else round(self.seconds, 3),
        }

    @property
    def proof(self) -> Proof | None:
        """How far an optimum, or that there is none, is proven; None where the status says neither.

        ``certified``: in exact rationals, by the checker of certificates; ``agreed``: by two engines of different
        makes; ``claimed``: by one program.
        """
        return Proof(self.info.get("proof", Proof.CLAIMED)) if self.status.needs_proof else None

    def proven(self, level: Proof) -> Result:
        """The same with this level of proof."""
        return replace(self, info={**self.info, "proof": level})

    @property
    def cut(self) -> bool:
        """Whether a limit ended a heuristic that has a solution already: it is not what the whole algorithm makes."""
        return bool(self.info.get("stopped")) and self.status is Status.FEASIBLE

    @property
    def gap(self) -> float | None:
        """|objective - bound| / |objective|, or None."""
        return gap(self.objective, self.bound)

    @property
    def seconds(self) -> float | None:
        """Building and solving together, or None where neither was measured."""
        if self.build_seconds is None and self.solve_seconds is None:
            return None
        return (self.build_seconds or 0.0) + (self.solve_seconds or 0.0)
