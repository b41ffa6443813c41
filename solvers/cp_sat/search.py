"""Every search of CP-SAT: the same safe parameters, a process of its own whose crashes are survived, and sessions."""

from __future__ import annotations

import atexit
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

from ortools.sat.python import cp_model
from ortools.sat.python import cp_model_helper as native

from schedgap.solvers.cp_sat.child import receive, send
from schedgap.solvers.engines.watch import ABANDON_AFTER, POLL, STOP_AFTER, Watched, watched
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Deadline

# The one place that searches with CP-SAT, so that every model is searched with the same safe parameters.
#
# Only the compiled part of ortools is loaded here: the process that searches (:mod:`.child`) starts quickly.


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
    values: Sequence[int] | None = None  # of the best solution, by index of variable; None where there is none
    bound: float = 0.0  # its bound on the objective
    work: float = 0.0  # deterministic time
    branches: int = 0  # of its search tree
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


# CP-SAT in a process of its own: its failed checks end the process that it runs in, and no other.

_idle: list[CpProcess] = []
_lock = threading.Lock()


class CpProcess:
    """The process; it can search again and again, until it dies."""

    def __init__(self) -> None:
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "schedgap.solvers.cp_sat.child", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            start_new_session=True,  # a terminal's Ctrl-C is the parent's affair
        )
        self._writing = threading.Lock()
        self._last: tuple[list[int], float] | None = None
        self._left = False
        # set when it reads, or is dead
        self._ready = threading.Event()
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        assert self._process.stdout is not None
        receive(self._process.stdout)
        self._ready.set()

    @property
    def alive(self) -> bool:
        """Whether it can be given a search."""
        return self._process.poll() is None

    def search(
        self, model: native.CpModelProto, parameters: native.SatParameters, listener: Listener, deadline: Deadline
    ) -> Watched[CpEnd]:
        """As :class:`CpSearch`; a process that dies is reported in the end's ``died``."""
        if listener.log is not None:
            parameters.log_search_progress = True
            parameters.log_to_stdout = False
        self._last = None
        wanted = {name: getattr(listener, name) is not None for name in ("point", "bound", "log")}
        job = ("search", str(model), str(parameters), wanted)
        stopped = threading.Event()
        stop = partial(self._stop, stopped)
        run = watched(lambda: self._talk(job, listener, stopped), stop, deadline)
        self._left = not run.finished
        return run

    def _talk(self, job: tuple[Any, ...], listener: Listener, stopped: threading.Event) -> CpEnd:
        more = (ABANDON_AFTER - STOP_AFTER) / 2
        while not self._ready.wait(POLL):
            if stopped.is_set() and not self._ready.wait(more):
                # it goes on starting, for the next search
                return CpEnd()
        try:
            self._send(job)
        except OSError:
            return self._dead()
        assert self._process.stdout is not None
        while True:
            message = receive(self._process.stdout)
            if message is None or self._left:
                return CpEnd() if self._left else self._dead()
            kind, values = message[0], message[1:]
            if kind == "end":
                end: CpEnd = values[0]
                return end
            if kind == "log" and listener.log is not None:
                listener.log(*values)
            elif kind == "point" and listener.point is not None:
                self._last = values
                self._send(("answer", listener.point(*values)))
            elif kind == "bound" and listener.bound is not None:
                self._send(("answer", listener.bound(*values)))

    def _dead(self) -> CpEnd:
        """What is left of a search whose process died."""
        code = self._process.wait()
        self._said.seek(0)
        text = self._said.read().decode("utf-8", "replace").splitlines()
        why = next((line for line in text if "Check failed" in line), text[-1] if text else "")
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        values = None if self._last is None else self._last[0]
        return CpEnd(values=values, died=f"CP-SAT ended with {how}" + (f": {why.strip()}" if why else ""))

    def _send(self, message: tuple[Any, ...]) -> None:
        assert self._process.stdin is not None
        with self._writing:
            send(self._process.stdin, message)

    def _stop(self, stopped: threading.Event) -> None:
        stopped.set()
        with suppress(OSError):  # it is dead, which the reader finds out
            if self._ready.is_set():
                self._send(("stop",))

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._said):
            with suppress(OSError):  # what was not written yet has no reader
                if stream is not None:
                    stream.close()


def search_apart(
    model: native.CpModelProto, parameters: native.SatParameters, listener: Listener, deadline: Deadline
) -> Watched[CpEnd]:
    """Search in a process of its own, or here where none can be started.

    However small a search is, it may abort. The first starts the process (0.5 s on a busy
    machine) and may end with nothing before that. The others find it there, or still starting.
    A search waits for what the listener says of each point and bound,
    so that it takes the same course in both places.

    Parameters
    ----------
    model, parameters, listener : see :class:`CpSearch`
    deadline : as of :func:`watched`; a process left behind in a search is ended
    """
    process = _process()
    if process is None:
        search = CpSearch(model, parameters, listener)
        run = watched(search.go, search.stop, deadline)
        search.abandoned = not run.finished
        return run
    kept = False
    try:
        run = process.search(model, parameters, listener, deadline)
        kept = run.finished and process.alive
        return run
    finally:
        if kept:
            with _lock:
                _idle.append(process)
        else:
            process.close()


def _process() -> CpProcess | None:
    with _lock:
        while _idle:
            process = _idle.pop()
            if process.alive:
                return process
            process.close()
    try:
        return CpProcess()
    except OSError:  # no memory, no more processes
        return None


@atexit.register
def _close_all() -> None:
    with _lock:
        while _idle:
            _idle.pop().close()


def _forget() -> None:
    """A forked process must not talk to its parent's."""
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# One CP-SAT model solved under a deadline, with Ctrl-C noticed, callbacks that may raise and crashes survived.

Value = Callable[[Any], int]
"""The value of a variable or of a linear expression in one solution."""

CAREFUL = {"cut_level": 0}
"""With what a search that ended its process is tried once more: ortools 9.15 fails a check ("threshold > 0") in its
cuts on wide domains (docs/upstream-reports.md)."""

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
