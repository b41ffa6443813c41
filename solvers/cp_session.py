"""One CP-SAT model solved under a deadline, with Ctrl-C noticed and callbacks that may raise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from schedgap.solvers.cp_solver import cp_solver
from schedgap.solvers.engines.watch import watched
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Deadline

Value = Callable[[Any], int]
"""The value of a variable or of a linear expression in one solution."""

BOUND_WORK = 0.01
"""Deterministic time that a better bound counts for at least: on fine grids CP-SAT can raise it by one step at a time,
for minutes, of which it counts next to nothing."""


@dataclass(frozen=True)
class CpAnswer:
    """How a search ended.

    Attributes
    ----------
    infeasible : proven that the model has no solution
    optimal : proven that the last solution is optimal (or the first, without an objective)
    found : some solution was found
    bound : proven lower bound on the objective in whole numbers; None where none is known
    interrupted : Ctrl-C came
    work : deterministic time it took
    value : values of the last solution; None when there is none, or when the search was left behind
    """

    infeasible: bool
    optimal: bool
    found: bool
    bound: int | None
    interrupted: bool
    work: float
    value: Value | None


class _Watcher(cp_model.CpSolverSolutionCallback):
    def __init__(self, seen: Callable[[Value], bool], errors: list[BaseException]) -> None:
        super().__init__()
        self._seen = seen
        self._errors = errors

    def on_solution_callback(self) -> None:
        """Called by CP-SAT at every better solution."""
        try:
            stop = bool(self._errors) or self._seen(self.value)
        except BaseException as error:  # must not unwind through native code; raised again below
            self._errors.append(error)
            stop = True
        if stop:
            self.stop_search()


def run_cp(
    model: cp_model.CpModel,
    *,
    seconds: float | None,
    work: float | None,
    workers: int,
    seed: int,
    seen: Callable[[Value], bool] | None = None,
    bounded: Callable[[int], bool] | None = None,
    parameters: Mapping[str, Any] | None = None,
    log: Callable[[str], None] | None = None,
) -> CpAnswer:
    """Search a model with a whole-number objective of at least 0 to be minimised, or without one.

    Parameters
    ----------
    model : the model
    seconds, work : limits in wall-clock seconds and in deterministic time; None is no limit
    workers, seed : threads and random seed; one thread with the same seed and work repeats itself
    seen : called with the values of every better solution; returns whether to stop
    bounded : called with every better lower bound; returns whether to stop
    parameters : further parameters of CP-SAT
    log : receives CP-SAT's log, line by line

    Raises
    ------
    ValueError
        The model is not valid, for instance because numbers exceed 64 bits.
    """
    if problem := model.validate():
        raise ValueError(problem.strip().splitlines()[0])
    errors: list[BaseException] = []

    bounds = 0

    def new_bound(value: float) -> None:
        nonlocal bounds
        bounds += 1
        try:
            if work is not None and bounds * BOUND_WORK > work:
                solver.stop_search()
            stop = bool(errors) or (bounded is not None and bounded(_whole(value)))
        except BaseException as error:  # as in the watcher
            errors.append(error)
            stop = True
        if stop:
            solver.stop_search()

    def lines(text: str) -> None:
        try:
            for line in text.rstrip("\n").split("\n"):
                assert log is not None
                log(line)
        except BaseException as error:  # as in the watcher
            errors.append(error)

    solver = cp_solver(seed=seed, workers=workers, seconds=seconds, work=work, log=None if log is None else lines)
    for parameter, setting in (parameters or {}).items():
        setattr(solver.parameters, parameter, setting)
    if bounded is not None:
        solver.best_bound_callback = new_bound
    watcher = None if seen is None else _Watcher(seen, errors)
    deadline = Deadline() if seconds is None else Deadline.after(max(1e-3, seconds))
    run = watched(lambda: solver.solve(model, watcher), solver.stop_search, deadline)
    if errors:
        raise errors[0]
    if not run.finished:
        return CpAnswer(False, False, False, None, run.interrupted, 0.0, None)
    name = solver.status_name(run.value)
    spent = max(float(solver.response_proto.deterministic_time), bounds * BOUND_WORK)
    found = name in ("OPTIMAL", "FEASIBLE")
    bounded_from = found or name == "UNKNOWN"
    bound = _whole(solver.best_objective_bound) if bounded_from and model.has_objective() else None
    value: Value | None = solver.value if found else None
    return CpAnswer(name == "INFEASIBLE", name == "OPTIMAL", found, bound, run.interrupted, spent, value)


def search_cp(
    model: cp_model.CpModel,
    incumbent: Incumbent,
    *,
    seen: Callable[[Value], bool] | None = None,
    bounded: Callable[[int], bool] | None = None,
    parameters: Mapping[str, Any] | None = None,
    share: float = 1.0,
    workers: int | None = None,
) -> CpAnswer:
    """:func:`run_cp` in a share of the time and work that an incumbent's run has left, which are counted there."""
    answer = run_cp(
        model,
        seconds=incumbent.seconds_left(share),
        work=incumbent.work_left(share),
        workers=workers or incumbent.workers,
        seed=incumbent.options.seed,
        seen=seen,
        bounded=bounded,
        parameters=parameters,
        log=incumbent.options.log,
    )
    incumbent.work += answer.work
    incumbent.interrupted = incumbent.interrupted or answer.interrupted
    return answer


def _whole(value: float) -> int:
    return math.ceil(value - 1e-6)
