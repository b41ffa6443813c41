"""The one place that searches with CP-SAT, so that every model is searched with the same safe parameters.

Only the compiled part of ortools is loaded here: the process that searches (:mod:`.child`) starts quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ortools.sat.python import cp_model_helper as native


def cp_parameters(
    *, seed: int = 0, workers: int | None = None, seconds: float | None = None, work: float | None = None
) -> native.SatParameters:
    """Parameters of CP-SAT.

    Its presolve's detection of rows that are included in others is off: ortools 9.15 adds coefficients there in 32
    bits, and calls wrong points optimal where those of Boolean variables add up beyond 2^31 (google/or-tools#5293;
    ``tests/regression/test_cpsat_versions.py`` has a model that it gets wrong).

    Parameters
    ----------
    seed : random seed, taken modulo 2^31
    workers : threads; None is one for each core
    seconds, work : limits in wall-clock seconds and in deterministic time; None is no limit
    """
    settings = native.SatParameters()
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
    return settings


@dataclass(frozen=True)
class Listener:
    """What a search reports to while it goes on."""

    # called with the values of every better solution, by index of variable, and of the bound; returns whether to stop.
    # None where nobody asks
    point: Callable[[Sequence[int], float], bool] | None = None
    # called with every better bound; returns whether to stop. None where nobody asks
    bound: Callable[[float], bool] | None = None
    log: Callable[[str], None] | None = None  # receives the log, line by line, or None


@dataclass(frozen=True)
class CpEnd:
    """How CP-SAT ended."""

    # its own name: OPTIMAL, FEASIBLE, INFEASIBLE, UNKNOWN or MODEL_INVALID; UNKNOWN where it was left behind or died
    status: str = "UNKNOWN"
    values: Sequence[int] | None = None  # values of the best solution by index of variable; None where there is none
    bound: float = 0.0  # its bound on the objective
    work: float = 0.0  # deterministic time
    branches: int = 0  # branches of its search tree
    died: str = ""  # what it said when it ended its process; "" where it did not


class _Points(native.SolutionCallback):
    def __init__(self, search: CpSearch, point: Callable[[Sequence[int], float], bool]) -> None:
        super().__init__()
        self._search = search
        self._point = point

    def OnSolutionCallback(self) -> None:
        self._search.tell(lambda: self._point(list(self._response().solution), self.BestObjectiveBound()))

    def _response(self) -> native.CpSolverResponse:
        response: native.CpSolverResponse = self.Response()  # type: ignore[no-untyped-call]
        return response


@dataclass
class CpSearch:
    """One search of one model in this process."""

    # model, parameters: what is searched, and how
    model: native.CpModelProto
    parameters: native.SatParameters
    listener: Listener  # an error of its own ends the search and is raised by :meth:`go`
    abandoned: bool = False  # nobody listens any more
    _solver: native.SolveWrapper = field(default_factory=native.SolveWrapper)
    _errors: list[BaseException] = field(default_factory=list)

    def go(self) -> CpEnd:
        """Search; how it ended."""
        solver, listener = self._solver, self.listener
        if listener.log is not None:
            self.parameters.log_search_progress = True
            self.parameters.log_to_stdout = False
            solver.add_log_callback(self._log)
        solver.set_parameters(self.parameters)
        points = None if listener.point is None else _Points(self, listener.point)
        if points is not None:
            solver.add_solution_callback(points)
        if listener.bound is not None:
            report = listener.bound
            solver.add_best_bound_callback(lambda value: self.tell(lambda: report(value)))
        response: native.CpSolverResponse = solver.solve(self.model)  # type: ignore[no-untyped-call]
        if points is not None:
            solver.clear_solution_callback(points)
        if self._errors:
            raise self._errors[0]
        found = response.status in (native.OPTIMAL, native.FEASIBLE)
        return CpEnd(
            status=response.status.name,
            values=list(response.solution) if found else None,
            bound=response.best_objective_bound,
            work=float(response.deterministic_time),
            branches=int(response.num_branches),
        )

    def stop(self) -> None:
        """Ask the search to end; from any thread, at any time."""
        self._solver.stop_search()

    def tell(self, news: Callable[[], bool]) -> None:
        """Tell the listener; an error must not unwind through native code."""
        try:
            stop = self.abandoned or bool(self._errors) or news()
        except BaseException as error:
            self._errors.append(error)
            stop = True
        if stop:
            self.stop()

    def _log(self, text: str) -> None:
        try:
            for line in text.rstrip("\n").split("\n"):
                if self.listener.log is not None and not self.abandoned:
                    self.listener.log(line)
        except BaseException as error:
            self._errors.append(error)
