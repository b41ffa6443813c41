"""CP-SAT in a process of its own: its failed checks end the process that it runs in, and no other."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from functools import partial
from typing import IO, Any

from ortools.sat.python import cp_model_helper as native

from schedgap.solvers.cp_sat.child import receive, send
from schedgap.solvers.cp_sat.solver import CpEnd, CpSearch, Listener
from schedgap.solvers.engines.watch import ABANDON_AFTER, POLL, STOP_AFTER, Watched, watched
from schedgap.solvers.result import Deadline

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
        """A search like :class:`CpSearch`; a process that dies is reported in the end's ``died``."""
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
                self._answer(listener.point(*values))
            elif kind == "bound" and listener.bound is not None:
                self._answer(listener.bound(*values))

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

    def _answer(self, answer: object) -> None:
        with suppress(OSError):  # it is dead, which the reader finds out
            self._send(("answer", answer))

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
    deadline : moment from :func:`watched`; a process left behind in a search is ended
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


def forget() -> None:
    """A forked process must not talk to its parent's."""
    _idle.clear()
