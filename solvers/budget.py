"""Time and memory: whether a model can be built in what there is, and the last line of defence of both limits.

It is needed because stages that build do not always look at their deadline.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from schedgap.solvers.result import Deadline, Termination, clock

BYTES_PER_NONZERO = 400
"""Peak memory of a PuLP model with its arrays at 5 nonzeros a row: 342 measured (tracemalloc), rounded up."""
SHARE_FOR_BUILDING = 0.8
"""A model whose building would take more than this share of the time left is not attempted."""
SHARE_OF_FREE = 0.75
"""Share of the free memory that may be used where nobody says how much."""
_sharers = 1
BUILDER_FACTOR = 5.0
"""How much slower a real builder is, per nonzero, than the plain loop that is measured (rar-ddls: 3 to 8)."""
MEASUREMENTS = 8
_SAMPLE_ROWS, _SAMPLE_WIDTH = 600, 5
SAMPLE_NONZEROS = _SAMPLE_ROWS * _SAMPLE_WIDTH


@functools.cache
def seconds_per_nonzero() -> float:
    """Seconds that a builder takes per nonzero, measured once per process."""
    return measured(time.thread_time)


def measured(clock: Callable[[], float]) -> float:
    """The best of eight small PuLP models, per nonzero, times ``BUILDER_FACTOR``.

    Without garbage collection, and by a clock of processor time, so that neither what this process holds nor other
    work on the machine makes every model look too large.

    Parameters
    ----------
    clock : seconds since some moment
    """
    times = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(MEASUREMENTS):
            began = clock()
            build_sample()
            times.append(clock() - began)
    finally:
        if collecting:
            gc.enable()
    return BUILDER_FACTOR * min(times) / SAMPLE_NONZEROS


def build_sample() -> None:
    """Build the small model that is measured."""
    import pulp

    problem = pulp.LpProblem("sample")
    create = getattr(problem, "add_variable", pulp.LpVariable)
    variables = [create(f"x{i}", 0, 1, cat=pulp.LpInteger) for i in range(_SAMPLE_ROWS)]
    for row in range(_SAMPLE_ROWS):
        terms = [(variables[(row + 7 * k) % _SAMPLE_ROWS], 1.0) for k in range(_SAMPLE_WIDTH)]
        problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintLE, None, 3))


def share_memory(processes: int) -> None:
    """Where nobody says how much memory may be used, divide it among so many processes, of which this is one."""
    global _sharers
    _sharers = processes


def memory_budget(limit: int | None = None) -> int | None:
    """Bytes that may be used: `limit`, or this process's share of what is free; None where the system does not tell."""
    free = available_bytes() if limit is None else None
    return limit if free is None else int(SHARE_OF_FREE * free / _sharers)


def available_bytes() -> int | None:
    """Memory that a new process could have: what Linux calls available, elsewhere half of what there is."""
    free = _free_on_the_machine()
    try:  # a container may have less than its machine
        group = Path("/sys/fs/cgroup")
        most, used = ((group / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current"))
        return int(most) - int(used) if free is None else max(0, min(free, int(most) - int(used)))
    except (OSError, ValueError):  # no such limit
        return free


def _free_on_the_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass  # not Linux: asked below in another way
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return None


def too_large(
    nonzeros: int, deadline: Deadline, handover_cost: float = 0.0, memory_limit: int | None = None
) -> str | None:
    """Why a model of this size is not attempted, or None where it is.

    Parameters
    ----------
    nonzeros : an estimate of the model's nonzero coefficients
    deadline : building and handing over must end well before it
    handover_cost : seconds an engine takes to take a model over, per second of building it
    memory_limit : bytes there are for it; three quarters of what is free where not given
    """
    remaining = deadline.remaining()
    if remaining is not None:
        needed = nonzeros * seconds_per_nonzero() * (1 + handover_cost)
        if needed > SHARE_FOR_BUILDING * remaining:
            return f"{nonzeros:,} nonzeros take about {needed:.1f} s to build and hand over, {remaining:.1f} s are left"
    memory = memory_budget(memory_limit)
    needed_bytes = nonzeros * BYTES_PER_NONZERO
    if memory is not None and needed_bytes > memory:
        return f"{nonzeros:,} nonzeros take about {needed_bytes / 1e9:.1f} GB, {memory / 1e9:.1f} GB may be used"
    return None


POLL = 0.05
"""Seconds between two looks at the clock and at the memory in use."""
AGAIN = 40
"""Looks after which whoever has not ended by then is asked once more: what is raised in a callback of native code may
be lost without a trace."""
LOADERS = frozenset({"importlib", "_frozen_importlib", "_frozen_importlib_external"})
"""What imports: a package that is interrupted then stays half made for whoever imports it next."""
COMPILERS = frozenset({"numba", "llvmlite"})
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_lost: set[int] = set()
"""Threads in which Python dropped what was raised, in a finaliser or in the callback of a weak reference."""

_sure: list[int] = []
"""Threads, once for each :func:`to_its_end` that is under way in them."""


class OutOfBudgetError(KeyboardInterrupt):
    """Raised in the thread of a method whose time or memory is over; methods treat it as they do Ctrl-C."""


@contextmanager
def to_its_end() -> Iterator[None]:
    """Within it no limit of time ends this thread's work: that is ended after it. Memory stays limited."""
    thread = threading.get_ident()
    _sure.append(thread)
    try:
        yield
    finally:
        _sure.remove(thread)


def used_bytes() -> int | None:
    """Memory that this process and those it started (CBC, CP-SAT) have now; None where the system does not tell."""
    used = _used_by_process()
    return None if used is None else sum(used.values())


def _used_by_process() -> dict[str, int] | None:
    try:
        used = {"self": _resident("self")}
    except (OSError, ValueError, IndexError):
        return None
    for child in _children():
        with suppress(OSError, ValueError, IndexError):  # it has ended
            used[child] = _resident(child)
    return used


def _resident(process: str) -> int:
    return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]) * _PAGE


def _children() -> list[str]:
    found: list[str] = []
    with suppress(OSError):  # a system that does not tell whose child a process is
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError):  # a thread that has ended
                found += (task / "children").read_text(encoding="ascii").split()
    return found


def _notice_lost() -> None:
    """From now on Python tells, in place of a warning, that it dropped an :class:`OutOfBudgetError`."""
    before = sys.unraisablehook
    if getattr(before, "__name__", "") == "notice_lost":
        return

    def notice_lost(dropped: Any) -> None:
        if isinstance(dropped.exc_value, OutOfBudgetError):
            _lost.add(threading.get_ident())
        else:
            before(dropped)

    sys.unraisablehook = notice_lost


class Budget:
    """Ends what runs inside of it by :class:`OutOfBudgetError`, when its time or memory is over.

    Python code notices at its next step. Compiled code is not interrupted, nor is an import, nor compilation (numba's),
    which no time limit counts. Where a finaliser swallowed it, or whoever was asked has not ended :data:`AGAIN` looks
    later, it is raised again.

    Parameters
    ----------
    deadline : when the time is over; never where it has no moment
    grace, share : seconds after it, and share of the seconds that are left now, at which it is enforced: whoever looks
        at the deadline has ended by then
    memory : bytes that may be used more than now; :func:`~schedgap.solvers.budget.memory_budget` where not given

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
        self._budget, self._before = memory_budget(memory), _used_by_process()
        self._counts_memory = self._budget is not None and self._before is not None
        self._thread = threading.get_ident()
        self._within = 0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self.over: Termination | None = None
        self.reason = ""

    def __enter__(self) -> Self:
        self._within = id(sys._getframe(1))
        if self._moment is not None or self._counts_memory:
            _notice_lost()
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
            if (looks % AGAIN == 0 or self._thread in _lost) and not self.look():
                continue
            looks += 1

    def look(self) -> bool:
        """Whether a limit is over; then it is raised in the thread that made this budget, unless that has ended."""
        over = self.over or self._limit()
        if over is None or self._runs(LOADERS):
            return False
        if over is Termination.TIME_LIMIT and (self._thread in _sure or self._runs(COMPILERS)):
            return False
        with self._lock:
            if not self._ended.is_set():
                self.over = over
                _lost.discard(self._thread)
                # Never taken back by raising None: that alone tells every thread to look for something, for ever,
                # which slows each call of Python and makes a profiler wait without end.
                error = ctypes.py_object(OutOfBudgetError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), error)
        return True

    def _limit(self) -> Termination | None:
        if self._moment is not None and clock() >= self._moment:
            self.reason = "the time limit came in a stage that cannot tell what it has so far"
            return Termination.TIME_LIMIT
        now = _used_by_process() if self._counts_memory else None
        if now is None or self._before is None or self._budget is None:
            return None
        # By process: one that was there and has ended since frees nothing for what is at work here.
        if sum(used - self._before.get(process, 0) for process, used in now.items()) <= self._budget:
            return None
        self.reason = f"the memory budget of {self._budget / 1e9:.3g} GB is used up"
        return Termination.MEMORY_LIMIT

    def _runs(self, packages: frozenset[str]) -> bool:
        """Whether what runs inside of the budget is at work, at some depth, in one of these packages."""
        frame: FrameType | None = sys._current_frames().get(self._thread)
        # Further out somebody may import the very program that solves: that does not count.
        while frame is not None and id(frame) != self._within:
            if str(frame.f_globals.get("__name__", "")).partition(".")[0] in packages:
                return True
            frame = frame.f_back
        return False
