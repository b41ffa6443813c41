"""One CP-SAT model solved under a deadline, with Ctrl-C noticed, callbacks that may raise and crashes survived."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ortools.sat.python import cp_model
from ortools.sat.python import cp_model_helper as native

from schedgap.solvers.cp_sat.process import forget, search_apart
from schedgap.solvers.cp_sat.solver import Listener, cp_parameters
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Deadline

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)


Value = Callable[[Any], int]
"""The value of a variable or of a linear expression in one solution."""


CAREFUL = {"cut_level": 0}
"""With what a search that ended its process is tried once more: ortools 9.15 fails a check ("threshold > 0") in its
cuts on wide domains (docs/notes/upstream-reports.md)."""


BOUND_WORK = 0.01
"""Deterministic time that a better bound counts for at least: on fine grids CP-SAT can raise it by one step at a time,
for minutes, of which it counts next to nothing."""


@dataclass(frozen=True)
class CpAnswer:
    """How a search ended."""

    infeasible: bool  # proven that the model has no solution
    optimal: bool  # proven that the last solution is optimal (or the first, without an objective)
    has_solution: bool  # some solution was found
    bound: int | None  # proven lower bound on the objective in whole numbers; None where none is known
    interrupted: bool  # Ctrl-C came
    work: float  # deterministic time it took
    value: Value | None  # values of the last solution; None when there is none, or when the search was left behind
    died: str = ""  # what CP-SAT said when it ended its process; "" where it did not


def run_cp(
    model: cp_model.CpModel,
    *,
    seconds: float | None,
    work: float | None,
    workers: int,
    seed: int,
    seen: Callable[[Value], bool] | None = None,
    bounded: Callable[[int], bool] | None = None,
    parameters: Mapping[str, object] | None = None,
    log: Callable[[str], None] | None = None,
) -> CpAnswer:
    """Search a model with a whole-number objective of at least 0 to be minimised, or without one.

    Raises ValueError: the model is not valid, for instance because numbers exceed 64 bits.

    Parameters
    ----------
    seconds, work : limits in wall-clock seconds and in deterministic time; None is no limit
    workers, seed : threads and random seed; one thread with the same seed and work repeats itself
    seen : called with the values of every better solution; returns whether to stop
    bounded : called with every better lower bound; returns whether to stop
    parameters : further parameters of CP-SAT; a tuple is the value of a repeated one
    log : receives CP-SAT's log, line by line
    """
    if problem := model.validate():
        raise ValueError(problem.strip().splitlines()[0])
    bounds = 0

    def new_bound(value: float) -> bool:
        nonlocal bounds
        bounds += 1
        over = work is not None and bounds * BOUND_WORK > work
        return (bounded is not None and bounded(_whole(value))) or over

    settings = cp_parameters(seed=seed, workers=workers, seconds=seconds, work=work)
    for parameter, setting in (parameters or {}).items():
        if isinstance(setting, tuple):
            getattr(settings, parameter).extend(setting)
        else:
            setattr(settings, parameter, setting)
    listener = Listener(
        point=None if seen is None else lambda values, _: seen(values_of(values)),
        bound=None if bounded is None else new_bound,
        log=log,
    )
    deadline = Deadline() if seconds is None else Deadline.after(max(1e-3, seconds))
    run = search_apart(model.proto, settings, listener, deadline)
    if run.value is not None and run.value.died and not run.interrupted and not deadline.passed:
        if log is not None:
            log(f"{run.value.died}; tried again without cuts")
        for parameter, setting in CAREFUL.items():
            setattr(settings, parameter, setting)
        settings.max_time_in_seconds = deadline.remaining() or math.inf
        run = search_apart(model.proto, settings, listener, deadline)
    end = run.value
    if end is None:
        return CpAnswer(False, False, False, None, run.interrupted, 0.0, None)
    spent = max(end.work, bounds * BOUND_WORK)
    found = end.values is not None
    bound = _whole(end.bound) if not end.died and end.status != "INFEASIBLE" and model.has_objective() else None
    value = None if end.values is None else values_of(end.values)
    optimal = end.status == "OPTIMAL"
    return CpAnswer(end.status == "INFEASIBLE", optimal, found, bound, run.interrupted, spent, value, end.died)


def values_of(values: Sequence[int]) -> Value:
    """The value of every variable and linear expression, from those of the variables by index."""
    response = native.CpSolverResponse()
    response.solution.extend(values)
    return partial(native.ResponseHelper.value, response)


def search_cp(
    model: cp_model.CpModel,
    incumbent: Incumbent,
    *,
    seen: Callable[[Value], bool] | None = None,
    bounded: Callable[[int], bool] | None = None,
    parameters: Mapping[str, object] | None = None,
    share: float = 1.0,
    workers: int | None = None,
    attempt: int = 0,
    most_work: float | None = None,
) -> CpAnswer:
    """:func:`run_cp` in a share of the time and work that an incumbent's run has left, which are counted there.

    The seed is that of the run plus `attempt`; `most_work` is a further limit on the deterministic time.
    """
    answer = run_cp(
        model,
        seconds=incumbent.seconds_left(share),
        work=min((w for w in (incumbent.work_left(share), most_work) if w is not None), default=None),
        workers=workers or incumbent.workers,
        seed=incumbent.options.seed + attempt,
        seen=seen,
        bounded=bounded,
        parameters=parameters,
        log=incumbent.options.log,
    )
    incumbent.work += answer.work
    incumbent.interrupted = incumbent.interrupted or answer.interrupted
    incumbent.failure = incumbent.failure or answer.died
    return answer


def _whole(value: float) -> int:
    return math.ceil(value - 1e-6)
