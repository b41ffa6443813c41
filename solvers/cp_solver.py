"""The one place that makes CP-SAT solvers, so that every model is searched with the same safe parameters."""

from __future__ import annotations

from collections.abc import Callable

from ortools.sat.python import cp_model


def cp_solver(
    *,
    seed: int = 0,
    workers: int | None = None,
    seconds: float | None = None,
    work: float | None = None,
    log: Callable[[str], None] | None = None,
) -> cp_model.CpSolver:
    """A CP-SAT solver.

    Its presolve's detection of rows that are included in others is off: ortools 9.15 adds coefficients there in 32
    bits, and calls wrong points optimal where those of Boolean variables add up beyond 2^31 (google/or-tools#5293;
    ``tests/regression/test_cpsat_overflow.py`` has a model that it gets wrong).

    Parameters
    ----------
    seed : random seed, taken modulo 2^31
    workers : threads; None is one for each core
    seconds, work : limits in wall-clock seconds and in deterministic time; None is no limit
    log : receives CP-SAT's log
    """
    solver = cp_model.CpSolver()
    settings = solver.parameters
    settings.presolve_inclusion_work_limit = 0
    settings.random_seed = int(seed) % 2**31
    # its own handler would leave SIGINT with the system's default; Ctrl-C is noticed by `watched`
    settings.catch_sigint_signal = False
    if workers is not None:
        settings.num_workers = workers
    if seconds is not None:
        settings.max_time_in_seconds = max(0.0, seconds)
    if work is not None:
        settings.max_deterministic_time = max(0.0, work)
    if log is not None:
        settings.log_search_progress = True
        settings.log_to_stdout = False
        solver.log_callback = log
    return solver
