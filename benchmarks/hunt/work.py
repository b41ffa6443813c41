"""What the workers of a hunt do: one stretch each, whatever happens to it told in one line."""

from __future__ import annotations

import json
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from schedgap.benchmarks.hunt.journal import Journal
from schedgap.benchmarks.hunt.starts import Starts
from schedgap.benchmarks.hunt.stretch import Stretch, Walked, walk
from schedgap.benchmarks.hunt.target import Judge, Probe, Target
from schedgap.benchmarks.sweep.warm import warm_once
from schedgap.catalogue.method import one_line
from schedgap.formulations.common.errors import Disagreement, InputError, SchedgapError
from schedgap.formulations.common.files import write_text

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
