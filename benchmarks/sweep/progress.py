"""Progress of long work and of one solve: a line that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Protocol, Self, TextIO, TypeVar, runtime_checkable

from schedgap.benchmarks.text import number
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import better, gap
from schedgap.solvers.result import Listener

Sink = TextIO | Callable[[str], None]
"""A stream, or a function that is told whole lines."""

LINE_EVERY = 5.0
"""Seconds between plain lines of long work."""
TICK = 0.5
"""Seconds between looks at the clock while work goes on."""
SHOWN = 3
"""Pieces of work that a line names."""
BAR = 24
REFRESH = 0.25
"""Seconds between updates of a solve's line on a terminal."""
QUIET = 1.0
"""Seconds of a solve without any line where it is not a terminal, and the least time between two lines."""
HEARTBEAT = 30.0
"""Seconds after which a plain line of a solve is printed even when nothing is new."""


class _Lines:
    """Where lines go. On a terminal the last one can be written over."""

    def __init__(self, sink: Sink | None) -> None:
        self._sink = sink
        self.terminal = sink is not None and not callable(sink) and sink.isatty()
        self.closed = sink is None
        self._shown = False

    def show(self, text: str) -> None:
        """On a terminal: this instead of the line that is shown now."""
        width = shutil.get_terminal_size().columns - 1
        self._write("\r" + text[:width].ljust(width))
        self._shown = True

    def say(self, text: str) -> None:
        """A whole line that stays."""
        if callable(self._sink):
            self._sink(text)
            return
        self.clear()
        self._write(text + "\n")

    def clear(self) -> None:
        """Take away the line that is shown."""
        if self._shown:
            self.show("")
            self._write("\r")
            self._shown = False

    def end(self) -> None:
        """Leave the line that is shown."""
        if self._shown:
            self._write("\n")
            self._shown = False

    def _write(self, text: str) -> None:
        if self.closed or self._sink is None or callable(self._sink):
            return
        try:
            self._sink.write(text)
            self._sink.flush()
        except (OSError, ValueError):  # standard error was closed: nobody reads the progress
            self.closed = True


_T = TypeVar("_T")


@contextmanager
def ticking(tick: Callable[[Iterable[tuple[_T, float]]], None], item: _T) -> Iterator[None]:
    """While this process works on an item: a thread tells every :data:`TICK` seconds how long that has taken."""
    began, over = time.monotonic(), threading.Event()

    def watch() -> None:
        while not over.wait(TICK):
            tick([(item, time.monotonic() - began)])

    thread = threading.Thread(target=watch, daemon=True, name="progress")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Progress:
    """Tells how far work of many pieces has come.

    Parameters
    ----------
    total : how many pieces of work there are
    sink : a stream (a bar where it is a terminal), or a function for plain lines; None is silent
    title : the first word of every line
    """

    def __init__(self, total: int, sink: Sink | None, title: str) -> None:
        self.total = total
        self.title = title
        self.done = 0
        self._lines = _Lines(sink)
        self._began = time.monotonic()
        self._last = -math.inf  # the first line comes at once

    def before(self, what: str) -> None:
        """`what` goes on before the pieces of work, or some of it."""
        now = time.monotonic()
        if self._lines.terminal:
            self._lines.show(f"{self.title} {what}")
        elif now - self._last >= LINE_EVERY:
            self._last = now
            self.say(f"{self.title} {what}")

    def step(self, what: str, pieces: int = 1) -> None:
        """`pieces` more are done, the last of them `what`."""
        self.done += pieces
        self._tell(what, self.done == self.total)

    def tick(self, running: Iterable[tuple[str, float]]) -> None:
        """What runs now, each with its seconds: told at times, so that long work is not silent."""
        longest = sorted(running, key=lambda piece: -piece[1])
        if longest:
            names = ", ".join(f"{what} for {seconds:.0f} s" for what, seconds in longest[:SHOWN])
            more = f" and {len(longest) - SHOWN} more" if len(longest) > SHOWN else ""
            self._tell(f"at work on {names}{more}")

    def at_work(self, what: str) -> AbstractContextManager[None]:
        """While this process does one long thing."""
        return ticking(self.tick, what)

    def _tell(self, what: str, last: bool = False) -> None:
        now = time.monotonic()
        count = f"{self.done}/{self.total} " * (self.total > 0) + f"after {now - self._began:.0f} s"
        if self._lines.terminal:
            filled = BAR * self.done // max(1, self.total)
            self._lines.show(f"{self.title} [{'#' * filled}{'.' * (BAR - filled)}] {count} {what}")
        elif now - self._last >= LINE_EVERY or last:
            self._last = now
            self.say(f"{self.title} {count}: {what}")

    def say(self, line: str) -> None:
        """A whole line of its own."""
        self._lines.say(line)

    def finish(self) -> None:
        """End the bar's line."""
        self._lines.end()


@runtime_checkable
class Watcher(Protocol):
    """What is told of new solutions and bounds, and, where several methods run, which one runs now."""

    def __call__(self, solution: Solution | None, objective: float | None, bound: float | None) -> None:
        """Something new."""

    def running(self, method: str) -> None:
        """`method` begins."""


class SolveProgress:
    """The line of one solve: its time, the best objective, the bound and the gap; a :class:`Watcher`.

    It keeps the best solution it was told of. On a terminal one line is updated; elsewhere a plain line is printed
    when something is new, at most one a second, and every 30 s otherwise. A solve of less than a second leaves no
    line.

    Parameters
    ----------
    sense : +1 minimise, -1 maximise
    title : how the line begins, the method
    sink : a stream, or a function for plain lines; None is silent
    listener : told all that this is told
    """

    def __init__(self, sense: int, title: str, sink: Sink | None, listener: Listener | None = None) -> None:
        self.sense = sense
        self.title = title
        self.solution: Solution | None = None
        self.objective: float | None = None
        self.bound: float | None = None
        self.began = time.monotonic()
        self._listener = listener
        self._method = ""
        self._lines = _Lines(sink)
        self._news = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="progress")

    def running(self, method: str) -> None:
        """One of several methods begins; what the one before had found is not its own."""
        with self._lock:
            self._method, self._news = f" {method}", True
            self.solution = self.objective = self.bound = None
        if isinstance(self._listener, Watcher):
            self._listener.running(method)

    def __call__(self, solution: Solution | None, objective: float | None, bound: float | None) -> None:
        """Called by the method, from any thread, with what is new."""
        with self._lock:
            if solution is not None and (
                self.objective is None or (objective is not None and better(objective, self.objective, self.sense))
            ):
                self.solution, self.objective, self._news = solution, objective, True
            if bound is not None and (self.bound is None or better(self.bound, bound, self.sense)):
                self.bound, self._news = bound, True
        if self._listener is not None:
            self._listener(solution, objective, bound)

    def say(self, line: str) -> None:
        """A whole line of its own."""
        self._lines.say(line)

    def line(self) -> str:
        """What is known now."""
        with self._lock:
            parts = [
                f"{self.title}{self._method} {time.monotonic() - self.began:7.1f} s",
                f"objective {number(self.objective)}",
            ]
            parts.append(f"bound {number(self.bound)}")
            distance = gap(self.objective, self.bound)
        if distance is not None:
            parts.append(f"gap {100 * distance:.2f}%")
        return "  ".join(parts)

    def __enter__(self) -> Self:
        self.began = time.monotonic()
        if not self._lines.closed:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1.0)
        self._lines.clear()

    def _watch(self) -> None:
        printed = self.began
        while not self._over.wait(REFRESH) and not self._lines.closed:
            now = time.monotonic()
            if now - self.began < QUIET:
                continue
            if self._lines.terminal:
                self._lines.show(self.line())
            elif (self._news and now - printed >= QUIET) or now - printed >= HEARTBEAT:
                self._news = False
                printed = now
                self._lines.say(self.line())
