"""Worker processes, each alone in its executor: one that dies takes nothing but its own item with it."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from joblib.externals.loky import ProcessPoolExecutor

from schedgap.benchmarks.harness.worker import prepare

_T = TypeVar("_T")
_R = TypeVar("_R")
TRIES = 2
"""How often an item is tried when its worker dies."""
TICK = 0.5
"""Seconds between looks at the clock while waiting."""


@dataclass
class _Slot(Generic[_T, _R]):
    """One worker process and what it is doing."""

    executor: Any = None
    future: Future[_R] | None = None
    item: _T | None = None
    tries: int = 0
    began: float = 0.0


@dataclass
class Pool(Generic[_T, _R]):
    """Runs a function on items in `workers` processes and hands each outcome to the caller as it comes.

    joblib's process executor (loky), one per worker: when a process is killed, only its executor breaks.

    Attributes
    ----------
    function : runs in the worker; the item goes there and its outcome comes back by pickling
    workers : how many processes
    allowed : seconds an item may take before its worker is killed, or None; a last resort, since methods
        keep their own limits
    """

    function: Callable[[_T], _R]
    workers: int
    allowed: Callable[[_T], float | None] = lambda _: None
    _slots: list[_Slot[_T, _R]] = field(default_factory=list)

    def run(self, items: Iterable[_T], done: Callable[[_T, _R], None], died: Callable[[_T, str, float], None]) -> None:
        """Run every item.

        Parameters
        ----------
        items : the work, in the order in which it is begun
        done : told of each outcome, in this process
        died : told of each item whose worker died or hung every time it was tried: item, reason, seconds

        Raises
        ------
        KeyboardInterrupt
            After Ctrl-C, with every worker ended.
        """
        queue = deque((item, 0) for item in items)
        self._slots = [_Slot() for _ in range(min(self.workers, len(queue)))]
        try:
            while queue or any(slot.future for slot in self._slots):
                for slot in self._slots:
                    if slot.future is None and queue:
                        self._begin(slot, *queue.popleft())
                running = {slot.future for slot in self._slots if slot.future is not None}
                wait(running, timeout=TICK, return_when=FIRST_COMPLETED)
                for slot in self._slots:
                    if slot.future is None or slot.item is None:
                        continue
                    if slot.future.done():
                        self._collect(slot, queue, done, died)
                    else:
                        self._check_clock(slot, died)
        finally:
            for slot in self._slots:
                if slot.executor is not None:
                    slot.executor.shutdown(wait=True, kill_workers=True)

    def _begin(self, slot: _Slot[_T, _R], item: _T, tries: int) -> None:
        if slot.executor is None:
            slot.executor = ProcessPoolExecutor(max_workers=1, initializer=prepare, initargs=(os.getpid(),))
        slot.item, slot.tries, slot.began = item, tries + 1, time.monotonic()
        try:
            slot.future = slot.executor.submit(self.function, item)
        except BrokenExecutor:  # it died while idle; that is not this item's doing
            slot.executor.shutdown(wait=True, kill_workers=True)
            slot.executor = ProcessPoolExecutor(max_workers=1, initializer=prepare, initargs=(os.getpid(),))
            slot.future = slot.executor.submit(self.function, item)

    def _collect(
        self,
        slot: _Slot[_T, _R],
        queue: deque[tuple[_T, int]],
        done: Callable[[_T, _R], None],
        died: Callable[[_T, str, float], None],
    ) -> None:
        item, future = slot.item, slot.future
        slot.item = slot.future = None
        assert item is not None and future is not None
        try:
            outcome = future.result()
        except BrokenExecutor:
            slot.executor.shutdown(wait=True, kill_workers=True)
            slot.executor = None
            if slot.tries < TRIES:
                queue.appendleft((item, slot.tries))
            else:
                died(item, f"its worker process died {slot.tries} times (a crash, or out of memory)", _since(slot))
            return
        except Exception as error:  # the item or its outcome cannot be pickled
            died(item, f"{type(error).__name__}: {_first_line(error)}", _since(slot))
            return
        done(item, outcome)

    def _check_clock(self, slot: _Slot[_T, _R], died: Callable[[_T, str, float], None]) -> None:
        assert slot.item is not None
        allowed = self.allowed(slot.item)
        if allowed is None or _since(slot) <= allowed:
            return
        item = slot.item
        slot.item = slot.future = None
        slot.executor.shutdown(wait=True, kill_workers=True)
        slot.executor = None
        died(item, f"its worker was ended after {allowed:.0f} s without an answer", _since(slot))


def _since(slot: _Slot[Any, Any]) -> float:
    return time.monotonic() - slot.began


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
