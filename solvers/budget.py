"""The last line of defence of a time limit and of a memory budget: stages that build do not always look at them."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from schedgap.solvers.result import Deadline, Termination, clock
from schedgap.solvers.size import memory_budget

POLL = 0.05
"""Seconds between two looks at the clock and at the memory in use."""
AGAIN = 40
"""Looks after which whoever has not ended by then is asked once more: what is raised in a finaliser or in a callback
of native code is lost."""
LOADERS = frozenset({"importlib", "_frozen_importlib", "_frozen_importlib_external"})
"""What imports: a package that is interrupted then stays half made for whoever imports it next."""
COMPILERS = frozenset({"numba", "llvmlite"})
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class OutOfBudgetError(KeyboardInterrupt):
    """Raised in the thread of a method whose time or memory is over; methods treat it as they do Ctrl-C."""


def used_bytes() -> int | None:
    """Memory that this process and those it started (CBC, CP-SAT) have now; None where the system does not tell."""
    try:
        used = _resident("self")
        for child in _children():
            with suppress(OSError, ValueError, IndexError):  # it has ended
                used += _resident(child)
        return used
    except (OSError, ValueError, IndexError):
        return None


def _resident(process: str) -> int:
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def _children() -> list[str]:
    found: list[str] = []
    with suppress(OSError):  # a system that does not tell whose child a process is
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread that has ended
                found += (task / "children").read_text(encoding="ascii").split()
    return found


class Budget:
    """Ends what runs inside of it by :class:`OutOfBudgetError`, when its time or memory is over.

    Python code notices at its next step. Compiled code is not interrupted, nor is an import, nor compilation (numba's),
    which no time limit counts. Whatever has not ended :data:`AGAIN` looks later is asked again.

    Parameters
    ----------
    deadline : when the time is over; never where it has no moment
    grace, share : seconds after it, and share of the seconds that are left now, at which it is enforced: whoever looks
        at the deadline has ended by then
    memory : bytes that may be used more than now; :func:`~schedgap.solvers.size.memory_budget` where not given

    Attributes
    ----------
    over : which limit came first; None while none has
    reason : the same in words
    """

    def __init__(
        self, deadline: Deadline, *, grace: float = 0.0, share: float = 0.0, memory: int | None = None
    ) -> None:
        now, moment = clock(), deadline.moment
        self._moment = None if moment is None else now + max(0.0, moment - now) * (1 + share) + grace
        self._budget, used = memory_budget(memory), used_bytes()
        self._most = None if self._budget is None or used is None else used + self._budget
        self._thread = threading.get_ident()
        self._within = 0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.over: Termination | None = None
        self.reason = ""

    def __enter__(self) -> Self:
        self._within = id(sys._getframe(1))
        if self._moment is not None or self._most is not None:
            threading.Thread(target=self._watch, daemon=True, name="budget").start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """Nothing is raised from now on; to be called again where :class:`OutOfBudgetError` came out of the context."""
        while True:
            with suppress(OutOfBudgetError):
                with self._lock:
                    self._ended.set()
                if self.over is not None:  # what came too late to be noticed is noticed here
                    for _ in range(100):
                        pass
                return

    def _watch(self) -> None:
        looks = 0
        while not self._ended.wait(POLL):
            if looks % AGAIN == 0 and not self.look():
                continue
            looks += 1

    def look(self) -> bool:
        """Whether a limit is over; then it is raised in the thread that made this budget, unless that has ended."""
        over = self.over or self._limit()
        if over is None or self._runs(LOADERS):
            return False
        if over is Termination.TIME_LIMIT and self._runs(COMPILERS):
            return False
        with self._lock:
            if not self._ended.is_set():
                self.over = over
                # Never taken back by raising None: that alone tells every thread to look for something, for ever,
                # which slows each call of Python and makes a profiler wait without end.
                error = ctypes.py_object(OutOfBudgetError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), error)
        return True

    def _limit(self) -> Termination | None:
        if self._moment is not None and clock() >= self._moment:
            self.reason = "the time limit came in a stage that cannot tell what it has so far"
            return Termination.TIME_LIMIT
        used = None if self._most is None else used_bytes()
        if used is not None and self._most is not None and used > self._most:
            assert self._budget is not None
            self.reason = f"the memory budget of {self._budget / 1e9:.3g} GB is used up"
            return Termination.MEMORY_LIMIT
        return None

    def _runs(self, packages: frozenset[str]) -> bool:
        """Whether what runs inside of the budget is at work, at some depth, in one of these packages."""
        frame: FrameType | None = sys._current_frames().get(self._thread)
        # Further out somebody may import the very program that solves: that does not count.
        while frame is not None and id(frame) != self._within:
            if str(frame.f_globals.get("__name__", "")).partition(".")[0] in packages:
                return True
            frame = frame.f_back
        return False
