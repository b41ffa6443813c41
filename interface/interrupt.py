"""A command and its terminal: Ctrl-C ends what only prepares it, and text of strangers does not steer the terminal.

What is at work gets KeyboardInterrupt.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO

from schedgap.formulations.common.errors import printable

_Handler = Callable[[int, FrameType | None], object]
INTERRUPTED = 130
"""Exit status after Ctrl-C (128 + SIGINT)."""
POLL = 0.02
"""Seconds between two looks at whether an import has ended."""
PATIENCE = 3.0
"""Seconds that Ctrl-C waits for one."""
TORN = threading.Event()  # an import was not waited for
LOADERS = frozenset({"importlib", "_frozen_importlib", "_frozen_importlib_external", "numba", "llvmlite"})
"""Packages that import modules or load compiled code."""
CALLED_BY_C = frozenset({"numpy._core._internal", "numpy.core._internal"})
"""Modules that native code calls, which makes an error of its own of KeyboardInterrupt there."""


def terminate_like_ctrl_c() -> None:
    """From here on SIGTERM, as batch systems and ``timeout`` send it, is handled as Ctrl-C is; for commands.

    Also where Ctrl-C is ignored: a shell starts what a script puts in the background so.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.default_int_handler)


def deaf() -> None:
    """From here on Ctrl-C and SIGTERM change nothing: all is done, and the interpreter only ends.

    In the course of its end it forgets its handlers; a signal then would kill the process and hide its exit status.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.default_int_handler:
            signal.signal(number, signal.SIG_IGN)


def engines_left() -> bool:
    """Whether an engine that nobody waits for any more is still at work in this process."""
    watch = sys.modules.get("schedgap.solvers.engines.watch")  # where it was not loaded, none was
    return watch is not None and watch.still_running()


def leave(status: int) -> None:
    """End the process now, its output flushed: without the interpreter's own end.

    That end waits for engines that were left behind, and native modules that an interruption found at work may
    crash there. Locks of worker processes, which have names that outlive the process, are let go of.
    """
    workers = sys.modules.get("multiprocessing.util")
    if workers is not None:
        with suppress(Exception):  # the process ends whatever fails here
            workers._run_finalizers(0)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


@contextmanager
def at_once() -> Iterator[None]:
    """Within it Ctrl-C ends the process, but for what is :func:`at_work`; for commands, not for a user's own program.

    Where Ctrl-C is handled by someone else already, nothing is changed.
    """
    with _handled((signal.default_int_handler,), _end):
        yield


@contextmanager
def at_work() -> Iterator[None]:
    """Within it Ctrl-C is KeyboardInterrupt, also below :func:`at_once`, but not in the midst of an import.

    KeyboardInterrupt there makes an ImportError of a native module, or leaves it half made for whoever imports it
    next, who may crash. The same holds for compiled code while numba loads it, and in :data:`CALLED_BY_C`. So it comes
    right after that, or after :data:`PATIENCE`, or when Ctrl-C comes again. Where Ctrl-C is handled by someone else
    already, nothing is changed.
    """
    waiting = _Waiting()
    with _handled((signal.default_int_handler, _end), waiting):
        yield
    if waiting.since is not None:
        raise KeyboardInterrupt


@contextmanager
def _handled(before: tuple[_Handler, ...], within: _Handler) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    found = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    replaced = {number: handler for number, handler in found.items() if handler in before}
    for number in replaced:
        signal.signal(number, within)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


class _Waiting:
    """Handles Ctrl-C: KeyboardInterrupt, as soon as nothing is being imported or loaded."""

    def __init__(self) -> None:
        self.since: float | None = None
        self.asked_again = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        again, self.asked_again = self.asked_again, False
        if again and self.since is None:
            return
        now = time.monotonic()
        if self.since is None:
            self.since = now
        elif not again or now - self.since > PATIENCE:
            TORN.set()
            frame = None
        if not _loading(frame):
            self.since = None
            raise KeyboardInterrupt
        timer = threading.Timer(POLL, self._ask_again, (number,))
        timer.daemon = True
        timer.start()

    def _ask_again(self, number: int) -> None:
        handler: object = signal.getsignal(number)
        if self.since is not None and handler is self:
            self.asked_again = True
            signal.pthread_kill(threading.main_thread().ident or 0, number)


def _loading(frame: FrameType | None) -> bool:
    """Whether a module is being imported, or compiled code loaded, by what runs in this frame, or C waits for it."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] in LOADERS or name in CALLED_BY_C:
            return True
        frame = frame.f_back
    return False


def _end(_signal: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, b"schedgap: interrupted\n")
    leave(INTERRUPTED)


class Door:
    """A stream through which no stranger's text steers the terminal."""

    def __init__(self, stream: TextIO, more: str = "") -> None:
        self._stream, self._keep = stream, "\n\t" + more

    def write(self, text: str) -> int:
        """Write it, with what a terminal would obey in JSON's escapes, which JSON stays JSON by."""
        return self._stream.write(printable(text, self._keep))

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)
