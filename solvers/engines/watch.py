"""Running an engine so that Ctrl-C and the deadline are noticed while native code works."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from schedgap.solvers.result import Deadline, clock

T = TypeVar("T")

POLL = 0.05
"""Seconds between two looks at the clock; a run that ends, or Ctrl-C, is noticed at once."""
STOP_AFTER = 0.1
"""Seconds after the deadline at which an engine that did not stop by itself is stopped."""
ABANDON_AFTER = 0.6
"""Seconds after the deadline (or after Ctrl-C, see :data:`PATIENCE`) at which it is left behind."""
PATIENCE = 3.0
"""Seconds an engine has to stop after Ctrl-C; a second Ctrl-C ends the wait at once."""


EXIT_PATIENCE = 10.0
"""Seconds the interpreter waits at its end for engines that were left behind."""

_left_behind: list[tuple[threading.Thread, Callable[[], None]]] = []


@dataclass(frozen=True)
class Watched(Generic[T]):
    """How a watched run ended."""

    value: T | None  # what the work returned, or None when it was left behind
    finished: bool  # it returned
    interrupted: bool  # Ctrl-C came
    late: bool  # it had to be stopped because of the deadline


def watched(work: Callable[[], T], stop: Callable[[], None], deadline: Deadline) -> Watched[T]:
    """Run `work` in a thread; this thread waits, so that Python handles signals.

    Raises BaseException: what `work` raised.

    Parameters
    ----------
    work : releases the interpreter lock while its native code runs
    stop : asks it to end early; called again until it does
    deadline : `stop` is called 0.1 s after it, and 0.6 s after it the work is left behind (its thread is a
        daemon, and ends at the next moment at which the engine looks at the request)
    """
    begun, done = threading.Event(), threading.Event()
    once = threading.Lock()
    values: list[T] = []
    errors: list[BaseException] = []
    threads: list[threading.Thread] = []

    def body() -> None:
        if not once.acquire(blocking=False):
            return
        threads.append(threading.current_thread())
        begun.set()
        try:
            values.append(work())
        except BaseException as error:  # handed to the waiting thread
            errors.append(error)
        finally:
            done.set()

    interrupts = 0
    late = False
    given_up = Deadline()
    while True:
        try:
            while not begun.is_set():  # Ctrl-C may come while the thread starts; a second one has nothing to do
                threading.Thread(target=body, daemon=True, name="engine").start()
                begun.wait()
            while not done.wait(POLL):
                overdue = _overdue(deadline)
                late = late or overdue > STOP_AFTER
                if interrupts or late:
                    stop()
                if overdue > ABANDON_AFTER or given_up.passed:
                    break
            break
        except KeyboardInterrupt:
            interrupts += 1
            if interrupts > 1:
                break
            given_up = Deadline.after(PATIENCE)
            stop()
    if done.is_set():
        threads[0].join()
    else:
        _left_behind.extend((thread, stop) for thread in threads)
    if errors:
        raise errors[0]
    return Watched(values[0] if values else None, bool(values), interrupts > 0, late)


def still_running() -> bool:
    """Whether an engine that was left behind has not ended yet.

    A program that wants to end now should then flush its output and call ``os._exit``: the interpreter's own
    end waits (see :func:`wait_for_engines`).
    """
    _left_behind[:] = [(thread, stop) for thread, stop in _left_behind if thread.is_alive()]
    return bool(_left_behind)


@atexit.register
def wait_for_engines(seconds: float = EXIT_PATIENCE) -> None:
    """Wait for engines that were left behind; called when the interpreter ends.

    A thread that comes back from native code while the interpreter is being torn down is killed inside that
    code, and the C++ runtime then aborts the process.
    """
    end = Deadline.after(seconds)
    while still_running() and not end.passed:
        for thread, stop in list(_left_behind):
            stop()
            thread.join(POLL)


def _overdue(deadline: Deadline) -> float:
    """Seconds since the deadline, negative before it."""
    if deadline.moment is None:
        return -1.0
    return clock() - deadline.moment
