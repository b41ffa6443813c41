"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Protocol, TextIO, runtime_checkable

from schedgap.formulations.common.instance import Solution

Sink = TextIO | Callable[[str], None]
"""A stream, or a function that is told whole lines."""

LINE_EVERY = 5.0
"""Seconds between plain lines."""
BAR = 24


@runtime_checkable
class Watcher(Protocol):
    """What is told of new solutions and bounds, and, where several methods run, which one runs now."""

    def __call__(self, solution: Solution | None, objective: float | None, bound: float | None) -> None:
        """Something new."""

    def running(self, method: str) -> None:
        """`method` begins."""


class Progress:
    """Tells how far the work has come.

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
        self._sink = sink
        self._began = time.monotonic()
        self._last = self._began
        self._bar: TextIO | None = None
        if sink is not None and not callable(sink) and sink.isatty():
            self._bar = sink

    def step(self, what: str, pieces: int = 1) -> None:
        """`pieces` more are done, the last of them `what`."""
        self.done += pieces
        now = time.monotonic()
        if self._bar is not None:
            filled = BAR * self.done // max(1, self.total)
            text = f"{self.title} [{'#' * filled}{'.' * (BAR - filled)}] {self._count(now)} {what}"
            width = shutil.get_terminal_size().columns - 1
            self._bar.write("\r" + text[:width].ljust(width))
            self._bar.flush()
        elif now - self._last >= LINE_EVERY or self.done == self.total:
            self._last = now
            self.say(f"{self.title} {self._count(now)}: {what}")

    def say(self, line: str) -> None:
        """A whole line of its own."""
        if self._sink is None:
            return
        if callable(self._sink):
            self._sink(line)
            return
        if self._bar is not None:
            self._bar.write("\r" + " " * (shutil.get_terminal_size().columns - 1) + "\r")
        print(line, file=self._sink, flush=True)

    def finish(self) -> None:
        """End the bar's line."""
        if self._bar is not None and self.done:
            print(file=self._bar, flush=True)

    def _count(self, now: float) -> str:
        return f"{self.done}/{self.total} after {now - self._began:.0f} s"
