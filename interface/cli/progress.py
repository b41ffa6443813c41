"""The progress line of one solve: the time, the best objective, the bound and the gap, on standard error."""

from __future__ import annotations

import shutil
import threading
import time
from types import TracebackType
from typing import TextIO

from schedgap.benchmarks.report.text import number
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import better, gap

REFRESH = 0.25
"""Seconds between updates of the line on a terminal."""
QUIET = 1.0
"""Seconds of a solve without any line where it is not a terminal, and the least time between two lines."""
HEARTBEAT = 30.0
"""Seconds after which a plain line is printed even when nothing is new."""


class _Report:
    """What a method is given: the progress, told what is new and which method runs."""

    def __init__(self, progress: SolveProgress) -> None:
        self._progress = progress

    def __call__(self, solution: Solution | None, objective: float | None, bound: float | None) -> None:
        self._progress.news(solution, objective, bound)

    def running(self, method: str) -> None:
        self._progress.running(method)


class SolveProgress:
    """Shows how a solve gets on, and keeps the best solution it was told of.

    On a terminal one line is updated; elsewhere a plain line is printed when something is new, at most one a
    second, and every 30 s otherwise. A solve of less than a second leaves no line.

    Parameters
    ----------
    sense : +1 minimise, -1 maximise
    title : how the line begins, the method
    stream : where to

    Attributes
    ----------
    report : the ``report`` of SolveOptions; a :class:`~schedgap.benchmarks.harness.progress.Watcher`
    """

    def __init__(self, sense: int, title: str, stream: TextIO) -> None:
        self.sense = sense
        self.title = title
        self.stream = stream
        self.report = _Report(self)
        self._method = ""
        self.solution: Solution | None = None
        self.objective: float | None = None
        self.bound: float | None = None
        self.began = time.monotonic()
        self._terminal = stream.isatty()
        self._news = False
        self._shown = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="progress")

    def running(self, method: str) -> None:
        """One of several methods begins; what the one before had found is not its own."""
        with self._lock:
            self._method, self._news = f" {method}", True
            self.solution = self.objective = self.bound = None

    def news(self, solution: Solution | None, objective: float | None, bound: float | None) -> None:
        """Called by the method, from any thread, with what is new."""
        with self._lock:
            if solution is not None and (
                self.objective is None or (objective is not None and better(objective, self.objective, self.sense))
            ):
                self.solution, self.objective, self._news = solution, objective, True
            if bound is not None and (self.bound is None or better(self.bound, bound, self.sense)):
                self.bound, self._news = bound, True

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

    def __enter__(self) -> SolveProgress:
        self.began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(timeout=1.0)
        if self._terminal and self._shown:
            self._write("\r" + " " * self._width() + "\r")

    def _watch(self) -> None:
        printed = self.began
        while not self._over.wait(REFRESH):
            now = time.monotonic()
            if now - self.began < QUIET:
                continue
            if self._terminal:
                self._write("\r" + self.line()[: self._width()].ljust(self._width()))
                self._shown = True
            elif (self._news and now - printed >= QUIET) or now - printed >= HEARTBEAT:
                self._news = False
                printed = now
                self._write(self.line() + "\n")

    def _width(self) -> int:
        return shutil.get_terminal_size().columns - 1

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # standard error was closed: nobody reads the progress
            self._over.set()
