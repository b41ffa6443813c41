"""Worker processes, each alone in its executor: one that dies takes nothing but its own item with it."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from types import TracebackType
from typing import Generic, Self, TypeVar

from joblib.externals.loky import ProcessPoolExecutor

from schedgap.benchmarks.sweep.progress import TICK, ticking
from schedgap.catalogue.method import one_line
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.parent import end_with_parent
from schedgap.solvers.budget import share_memory

_T = TypeVar("_T")
_R = TypeVar("_R")
TRIES = 2
"""How often an item is tried when its worker dies."""
GRACE = 5.0
"""Seconds that an item may take beyond the end of the time."""


def prepare(parent: int, workers: int = 1) -> None:
    """Set a new worker up: Ctrl-C is the parent's affair, and a worker whose parent is gone ends itself.

    It leads a process group of its own, so that an engine it has started (CBC is a program) ends with it.

    Parameters
    ----------
    parent : the parent's process id, see :func:`~schedgap.formulations.common.parent.end_with_parent`
    workers : how many there are; they share the memory that is free
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setpgid(0, 0)
    end_with_parent(parent)
    share_memory(workers)


def _executor(sharers: int) -> ProcessPoolExecutor:
    """An executor of one process, which is not started yet.

    Raises InputError: the system gives no semaphores, which lie in shared memory.
    """
    try:
        return ProcessPoolExecutor(max_workers=1, initializer=prepare, initargs=(os.getpid(), sharers))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"workers: their locks need shared memory (/dev/shm on Linux): {reason}") from error


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Within it a process that is started has Ctrl-C blocked from its first moment, not only from :func:`prepare` on.

    A terminal sends Ctrl-C to all processes of a command. One that still imports its modules would print a traceback.
    This process gets its own at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which ends by unblocking Ctrl-C
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass
class _Slot(Generic[_T, _R]):
    """One worker process and what it is doing."""

    executor: ProcessPoolExecutor | None = None
    future: Future[_R] | None = None
    item: _T | None = None
    tries: int = 0
    began: float = 0.0
    sharers: int = 1

    def begin(self, function: Callable[[_T], _R], item: _T, tries: int) -> None:
        """Give the process an item; it is started where it has to be."""
        self.item, self.tries, self.began = item, tries, time.monotonic()
        for again in (True, False):
            if self.executor is None:
                self.executor = _executor(self.sharers)
            try:
                with _deaf_children():
                    self.future = self.executor.submit(function, item)
                return
            except BrokenExecutor:  # it died while idle; that is not this item's doing
                self.end()
                if not again:
                    raise

    @property
    def seconds(self) -> float:
        """Since the item began."""
        return time.monotonic() - self.began

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.executor is not None:
            try:
                self.executor.shutdown(wait=True, kill_workers=True)
            except RuntimeError:  # an interrupt came before the thread began that ends the process
                for process in list(self.executor._processes.values()):
                    process.terminate()
            self.executor = None
        self.future = None


@dataclass
class Pool(Generic[_T, _R]):
    """Runs a function on items in `workers` processes and hands each outcome to the caller as it comes.

    joblib's process executor (loky), one per worker: when a process is killed, only its executor breaks. A context:
    inside it the processes stay between runs, so that what they import and compile is paid for once.
    """

    function: Callable[[_T], _R]  # runs in the worker; the item goes there and its outcome comes back by pickling
    workers: int  # how many processes
    # seconds an item may take before its worker is killed, or None; a last resort, since methods keep their own limits
    allowed: Callable[[_T], float | None] = lambda _: None
    inside: bool = False  # a single worker works in this process
    clock: Callable[[], float] = time.monotonic  # one for all processes of a machine, which nobody sets back
    _slots: list[_Slot[_T, _R]] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for slot in self._slots:
            slot.end()

    def run(
        self,
        items: Iterable[_T],
        done: Callable[[_T, _R], None],
        died: Callable[[_T, str, float], None],
        until: float | None = None,
        tick: Callable[[Iterable[tuple[_T, float]]], None] = lambda _: None,
    ) -> None:
        """Run every item.

        Parameters
        ----------
        items : the work, in the order in which it is begun
        done : told of each outcome, in this process
        died : told of each item whose worker died or hung every time it was tried: item, reason, seconds
        until : :data:`GRACE` seconds after this moment of `clock` all that still runs is ended, and dropped
        tick : called every :data:`TICK` seconds with the items that run, and how long each has; while a single worker
            works in this process it is called by a thread
        """
        if self.inside and self.workers == 1:
            for item in items:
                with ticking(tick, item):
                    outcome = self.function(item)
                done(item, outcome)
            return
        with warnings.catch_warnings():
            # loky replaces a worker that has grown by 300 MB, and warns if the next item waits: here one always does
            warnings.filterwarnings("ignore", "A worker stopped while some jobs were given", UserWarning)
            self._run(deque((item, 0) for item in items), done, died, until, tick)

    def _run(
        self,
        queue: deque[tuple[_T, int]],
        done: Callable[[_T, _R], None],
        died: Callable[[_T, str, float], None],
        until: float | None,
        tick: Callable[[Iterable[tuple[_T, float]]], None],
    ) -> None:
        self._slots += [_Slot(sharers=self.workers) for _ in range(min(self.workers, len(queue)) - len(self._slots))]
        while queue or any(slot.future for slot in self._slots):
            for slot in self._slots:
                if slot.future is None and queue:
                    item, tries = queue.popleft()
                    slot.begin(self.function, item, tries + 1)
            running = {slot.future for slot in self._slots if slot.future is not None}
            wait(running, timeout=TICK, return_when=FIRST_COMPLETED)
            if until is not None and self.clock() > until + GRACE:
                for slot in self._slots:
                    slot.end()
                return
            for slot in self._slots:
                if slot.future is not None and slot.item is not None:
                    self._look(slot, slot.future, slot.item, queue, done, died)
            tick([(slot.item, slot.seconds) for slot in self._slots if slot.future and slot.item is not None])

    def _look(
        self,
        slot: _Slot[_T, _R],
        future: Future[_R],
        item: _T,
        queue: deque[tuple[_T, int]],
        done: Callable[[_T, _R], None],
        died: Callable[[_T, str, float], None],
    ) -> None:
        """Take what has come back, and end what takes too long."""
        if not future.done():
            allowed = self.allowed(item)
            if allowed is not None and slot.seconds > allowed:
                slot.end()
                died(item, f"its worker was ended after {allowed:.0f} s without an answer", slot.seconds)
            return
        slot.future = None
        try:
            outcome = future.result()
        except BrokenExecutor:
            slot.end()
            if slot.tries < TRIES:
                queue.appendleft((item, slot.tries))
            else:
                why = f"its worker process died {slot.tries} times (a crash, or out of memory)"
                died(item, why, slot.seconds)
            return
        except Exception as error:  # the item or its outcome cannot be pickled
            died(item, one_line(error), slot.seconds)
            return
        done(item, outcome)
