"""Worker processes that stay between rounds: what they import and compile is paid for once."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from schedgap.formulations.common.errors import InputError

_T = TypeVar("_T")
_R = TypeVar("_R")
GRACE = 5.0
"""Seconds that a piece of work may take beyond the end of the time."""
TRIES = 3
"""How often work is given out again when worker processes die."""


class WorkerPool(Generic[_T, _R]):
    """Runs a function on pieces of work, in this process or in several.

    Parameters
    ----------
    function : the work goes to it, and what it returns comes back, by pickling (closures too)
    workers : processes; 1 works in this one
    """

    def __init__(self, function: Callable[[_T], _R], workers: int) -> None:
        self._function = function
        self._workers = workers
        self._executor: Any = None

    def run(self, work: Iterable[_T], done: Callable[[_T, _R], None], until: float | None = None) -> None:
        """Do all the work; `done` is called with each piece in this process as soon as it is there.

        Worker processes that have not answered :data:`GRACE` seconds after `until`, on the wall clock, are ended.

        Raises
        ------
        InputError
            Worker processes died again and again: a crash, or out of memory.
        """
        if self._workers == 1:
            for piece in work:
                done(piece, self._function(piece))
            return
        left = list(work)
        for _ in range(TRIES):
            left = self._once(left, done, until)
            if not left:
                return
        raise InputError("worker processes died again and again (a crash, or out of memory); --resume goes on")

    def _once(self, work: list[_T], done: Callable[[_T, _R], None], until: float | None) -> list[_T]:
        """Do what can be done until a worker dies; the work that is left."""
        from joblib.externals.loky import ProcessPoolExecutor

        from schedgap.benchmarks.harness.worker import prepare

        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                max_workers=self._workers, initializer=prepare, initargs=(os.getpid(),)
            )
        left = dict(enumerate(work))
        waiting = deque(left)
        running: dict[Future[_R], int] = {}
        try:
            while waiting or running:
                # No more than there are workers: an executor that is ended with work in its queue complains.
                while waiting and len(running) < self._workers:
                    k = waiting.popleft()
                    running[self._executor.submit(self._function, left[k])] = k
                patience = None if until is None else max(0.0, until + GRACE - time.time())
                finished, _ = wait(running, timeout=patience, return_when=FIRST_COMPLETED)
                if not finished:
                    self._end()
                    return []
                for future in finished:
                    k = running.pop(future)
                    outcome = future.result()
                    done(left.pop(k), outcome)
        except BrokenExecutor:
            self._end()
        return list(left.values())

    def _end(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
