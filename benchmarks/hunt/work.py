"""What a worker of a hunt does: islands of instances, and the journal of what it has judged."""

from __future__ import annotations

import fcntl
import json
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from schedgap.benchmarks.hunt.mutate import mutated
from schedgap.benchmarks.hunt.target import Judge, Probe, Starts, Target
from schedgap.benchmarks.sweep.store import StoreError
from schedgap.benchmarks.sweep.warm import warm_once
from schedgap.catalogue.method import one_line
from schedgap.formulations.common.errors import Disagreement, InputError, SchedgapError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Json

# What a hunt has found, on the disk at once: one line of JSON each, appended by any process, never rewritten.

FILE = "journal.jsonl"


class Journal:
    """The lines of a hunt.

    A line is one write under a lock and reaches the disk before :meth:`add` returns. A process that is
    killed leaves at most one line without its end; the next line begins on a line of its own, and reading
    passes over what is not whole.

    Parameters
    ----------
    path : the file; its folder must exist
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: Mapping[str, object]) -> None:
        """Append one line.

        Raises StoreError: it cannot be written.
        """
        text = json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n"
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                size = os.fstat(handle).st_size
                torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
                data = (("\n" if torn else "") + text).encode()
                while data:
                    data = data[os.write(handle, data) :]
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    def lines(self) -> Iterator[dict[str, Json]]:
        """Every whole line, in the order written.

        Raises StoreError: it cannot be read.
        """
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be read: {error.strerror or error}") from error
        for line in text.splitlines():
            try:
                data = json.loads(line)
            except ValueError:  # the end of a line that a killed process did not write
                continue
            if isinstance(data, dict):
                yield data


# One stretch of the search: a start, then so many small steps, each kept unless it makes things better.

DRAWS = 8
"""Random starts of which the worst (for the heuristic) is gone on with."""
MOST_DRAWS = 60
"""Random starts tried at most until one counts."""
MOST_LOST = 10
"""Random starts on which a user's heuristic raises, before any counts, after which a stretch ends."""
MOST_DEFECTS = 3
"""Instances with a defect of ours after which a stretch ends."""
COOLING = (0.0, 0.0, 0.03, 0.1)
"""How much of the value a step may give up at first; falls to 0 along the stretch."""


@dataclass(frozen=True)
class Stretch:
    """What one island does in one round; a pure function of this and of what is hunted."""

    # seed, round, island: of its randomness
    seed: int
    round: int
    island: int
    steps: int  # instances to try
    start: Probe | None  # where it goes on; None begins at random
    partners: tuple[Probe, ...] = ()  # other instances to copy entries from
    deadline: float | None = None  # on the clock, or None
    clock: Callable[[], float] = time.monotonic  # of whoever began the hunt and of its workers


@dataclass(frozen=True)
class Walked:
    """What came of a stretch."""

    current: Probe | None  # where it stands
    best: Probe | None  # the worst instance it has seen
    evaluations: int  # instances tried
    cut: bool = False  # the deadline ended it
    # defects, lost: what the judge met with
    defects: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {
            "current": None if self.current is None else self.current.to_dict(),
            "best": None if self.best is None else self.best.to_dict(),
            "evaluations": self.evaluations,
            "defects": list(self.defects),
            "lost": list(self.lost),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Json]) -> Walked:
        """What :meth:`to_dict` wrote."""
        found = {name: None if data[name] is None else Probe.from_dict(data[name]) for name in ("current", "best")}
        lines = (tuple(data["defects"]), tuple(data.get("lost", ())))
        return cls(found["current"], found["best"], int(data["evaluations"]), False, *lines)


def walk(
    stretch: Stretch, judge: Judge, starts: Starts, goal: float | None, tell: Callable[[Probe], None] = lambda _: None
) -> Walked:
    """Search from one start.

    A step is kept when the value falls by less than the threshold, which sinks to 0 (threshold accepting):
    since it is known before the instance is tried, the exact method is not asked where a bound already
    shows that the step will not be kept.

    Parameters
    ----------
    goal : the stretch ends when this value is reached
    tell : told of every new best, at once
    """
    rng = np.random.default_rng([stretch.seed, stretch.round, stretch.island])
    current = best = stretch.start
    done = 0
    if current is None:
        for _ in range(MOST_DRAWS):
            if _over(stretch, judge) or (current is None and len(judge.lost) >= MOST_LOST):
                return Walked(current, current, done, _late(stretch), *_met(judge))
            data, options = starts.draw(rng)
            done += 1
            found = judge(data, options, 0.0 if current is None else current.value)
            if found is not None and (current is None or found.key < current.key):
                current = best = found
                tell(found)
            if done >= DRAWS and current is not None:
                break
    if current is None or best is None:
        return Walked(None, None, done, False, *_met(judge))
    slack = COOLING[int(rng.integers(len(COOLING)))]
    while done < stretch.steps and not (goal is not None and best.value >= goal) and best.value < float("inf"):
        if _over(stretch, judge):
            return Walked(current, best, done, _late(stretch), *_met(judge))
        done += 1
        partner = stretch.partners[int(rng.integers(len(stretch.partners)))] if stretch.partners else current
        changed = mutated(current.data, starts.space, rng, partner.data)
        if changed is None:
            continue
        need = current.value * (1 - slack * (1 - done / stretch.steps))
        found = judge(changed, current.options, need)
        if found is None or found.value < need:
            continue
        current = found
        if found.value > best.value:
            best = found
            tell(found)
    return Walked(current, best, done, False, *_met(judge))


def _met(judge: Judge) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(judge.defects), tuple(judge.lost)


def _over(stretch: Stretch, judge: Judge) -> bool:
    return len(judge.defects) >= MOST_DEFECTS or _late(stretch)


def _late(stretch: Stretch) -> bool:
    return stretch.deadline is not None and stretch.clock() >= stretch.deadline


# What the workers of a hunt do: one stretch each, whatever happens to it told in one line.

DISAGREEMENTS = "disagreements"


@dataclass(frozen=True)
class Work:
    """What a worker is sent: a stretch and all that it needs; without a stretch it only compiles that."""

    stretch: Stretch | None
    target: Target
    starts: Starts
    work: float
    goal: float | None
    journal: Path

    @property
    def trying(self) -> Path:
        """Holds the instance that is being tried."""
        return self.journal.with_name(f"trying-{self.island}.json")

    @property
    def island(self) -> int:
        """Whose stretch it is."""
        return -1 if self.stretch is None else self.stretch.island


@dataclass(frozen=True)
class Done:
    """What comes back; `error` is (exit status, message) where something ended it."""

    walked: Walked | None
    error: tuple[int, str] | None = None


def do_work(work: Work) -> Done:
    """One stretch; every new best is in the journal before the next step."""
    if work.stretch is None:
        _warm(work)
        return Done(None)
    if not work.journal.parent.is_dir():
        there = f"island {work.island}: {work.journal.parent} is not there at its worker"
        return Done(None, (InputError.exit_status, f"{there}: a hunt on a cluster needs a folder that all nodes share"))
    journal = Journal(work.journal)
    folder = work.journal.parent / DISAGREEMENTS
    stretch = work.stretch
    judge = Judge(work.target, work.work, folder, trying=work.trying, deadline=stretch.deadline, clock=stretch.clock)

    def tell(found: Probe) -> None:
        journal.add({"kind": "found", "found": found.to_dict()})

    try:
        return Done(walk(work.stretch, judge, work.starts, work.goal, tell))
    except SchedgapError as error:
        return Done(None, (error.exit_status, str(error)))
    except Exception as error:  # a fault of ours outside of what the judge guards
        return Done(None, (Disagreement.exit_status, kept(work, one_line(error), traceback.format_exc())))
    finally:
        work.trying.unlink(missing_ok=True)


def _warm(work: Work) -> None:
    """Compile what a stretch runs, so that no budget is spent on that; what fails here fails in a stretch too."""
    for method in (work.target.method, work.target.problem.default_method()):
        if method is not None:
            with suppress(Disagreement):
                warm_once(work.target.problem, method, {}, work.journal.parent / DISAGREEMENTS)


def kept(work: Work, message: str, details: str) -> str:
    """One line that names the file with the instance that was being tried when this happened."""
    message = f"island {work.island}: {message}"
    if not work.trying.is_file():
        return f"{message}, before an instance was tried"
    data = json.loads(work.trying.read_text(encoding="utf-8"))
    name = f"{work.target.problem.id}-island-{work.island}.json"
    path = work.trying.parent / DISAGREEMENTS / name
    path.parent.mkdir(exist_ok=True)
    write_text(path, json.dumps({**data, "reference_disagreement": {"message": details}}, indent=1) + "\n")
    return f"{message}; the instance is in {path}"
