"""Ctrl-C: KeyboardInterrupt for what is at work; what only prepares a command just ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]
INTERRUPTED = 130
"""Exit status after Ctrl-C (128 + SIGINT)."""


def terminate_like_ctrl_c() -> None:
    """From here on SIGTERM, as batch systems and ``timeout`` send it, is handled as Ctrl-C is; for commands.

    Where nobody handles that (a shell starts what is in the background with SIGINT ignored), it ends the process.
    """

    def terminated(number: int, _frame: FrameType | None) -> None:
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
        else:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminated)


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
        with suppress(Exception):
            workers._run_finalizers(0)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(status)


@contextmanager
def at_once() -> Iterator[None]:
    """Within it Ctrl-C ends the process, but for what is :func:`at_work`; for commands, not for a user's own program.

    KeyboardInterrupt in the midst of a native module's import makes an ImportError of it, or leaves the module half
    made for whoever imports it next. Where Ctrl-C is handled by someone else already, nothing is changed.
    """
    with _handled(signal.default_int_handler, _end):
        yield


@contextmanager
def at_work() -> Iterator[None]:
    """Within it Ctrl-C is KeyboardInterrupt also below :func:`at_once`: there is something to tell of."""
    with _handled(_end, signal.default_int_handler):
        yield


@contextmanager
def _handled(before: _Handler, within: _Handler) -> Iterator[None]:
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not before:
        yield
        return
    signal.signal(signal.SIGINT, within)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(_signal: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, b"schedgap: interrupted\n")
    leave(INTERRUPTED)
