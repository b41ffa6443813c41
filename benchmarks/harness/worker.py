"""What a worker process does: one item of a suite, whatever happens to it turned into a plain outcome."""

from __future__ import annotations

import inspect
import math
import os
import signal
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedgap.benchmarks.harness.warm import warm_once
from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.run import run_method
from schedgap.catalogue.workload import Measurement
from schedgap.formulations.common.errors import Disagreement, SchedgapError
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.parent import end_with_parent
from schedgap.solvers.result import Deadline, SolveOptions, Status


@dataclass(frozen=True)
class Task:
    """What a worker is sent.

    Attributes
    ----------
    problem, instance, what, settings, seed : a method on an instance, or a measurement (no instance)
    time_limit, work_limit : see :class:`~schedgap.solvers.result.SolveOptions`
    disagreements : folder for the instance of a disagreement
    """

    problem: Problem
    instance: Instance | None
    what: Method | Measurement
    settings: Mapping[str, Any]
    seed: int
    time_limit: float | None
    work_limit: float | None
    disagreements: str


@dataclass(frozen=True)
class Outcome:
    """What comes back: the fields of a store row that the work itself determines."""

    status: str
    termination: str = ""
    objective: float | None = None
    bound: float | None = None
    engine: str | None = None
    engine_version: str | None = None
    solution: Any = None
    info: Mapping[str, Any] = field(default_factory=dict)
    payload: Any = None
    build_seconds: float | None = None
    solve_seconds: float | None = None
    seconds: float | None = None
    error: str = ""
    disagreement: bool = False
    worker: int = 0


def prepare(parent: int) -> None:
    """Set a new worker up: Ctrl-C is the parent's affair, and a worker whose parent is gone ends itself.

    It leads a process group of its own, so that an engine it has started (CBC is a program) ends with it.

    Parameters
    ----------
    parent : the parent's process id, see :func:`~schedgap.formulations.common.parent.end_with_parent`
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    end_with_parent(parent)


def execute(task: Task) -> Outcome:
    """Do one item with one thread; an exception becomes an outcome with status "error".

    Before its clock starts, the process is warm for this work, see :func:`~schedgap.benchmarks.harness.warm.warm_once`.
    """
    began = None
    try:
        warm_once(task.problem, task.what, task.settings, Path(task.disagreements))
        began = time.monotonic()
        outcome = _measure(task, task.what) if isinstance(task.what, Measurement) else _solve(task, task.what)
    except SchedgapError as error:
        outcome = {"status": str(Status.ERROR), "error": str(error), "disagreement": isinstance(error, Disagreement)}
    except Exception as error:  # the sweep goes on; the row tells what happened, with its traceback
        text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
        outcome = {"status": str(Status.ERROR), "error": text}
    took = None if began is None else time.monotonic() - began
    return Outcome(**outcome, seconds=took, worker=os.getpid())


def _solve(task: Task, method: Method) -> dict[str, Any]:
    if task.instance is None:
        raise ValueError("a method needs an instance")
    options = SolveOptions(
        deadline=Deadline.after(task.time_limit), seed=task.seed, threads=1, work_limit=task.work_limit
    )
    result = run_method(
        task.problem, task.instance, method, options, task.settings, disagreements=Path(task.disagreements)
    )
    return {
        "status": str(result.status),
        "termination": str(result.termination),
        "objective": result.objective,
        "bound": result.bound,
        "engine": result.engine,
        "engine_version": result.engine_version,
        "solution": plain(result.solution),
        "info": plain(result.info),
        "build_seconds": result.build_seconds,
        "solve_seconds": result.solve_seconds,
    }


def _measure(task: Task, row: Measurement) -> dict[str, Any]:
    function = row.load()
    takes = inspect.signature(function).parameters
    keywords = {"seed": task.seed, "time_limit": task.time_limit, **task.settings}
    # A measurement that has no use for a limit or a scale does not name it.
    given = {name: value for name, value in keywords.items() if name in takes and value is not None}
    return {"status": "measured", "payload": [plain(row) for row in function(**given)]}


def plain(value: Any) -> Any:
    """`value` as JSON holds it: numpy numbers and arrays unpacked, keys as text, infinities as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [plain(item) for item in items]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
