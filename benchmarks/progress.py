"""Progress of long work: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import time
from typing import TextIO

LINE_EVERY = 5.0
"""Seconds between plain lines."""
BAR = 24


class Progress:
    """Tells a stream how far the work has come.

    Parameters
    ----------
    total : how many pieces of work there are
    stream : where to; None is silent
    title : the first word of every line
    """

    def __init__(self, total: int, stream: TextIO | None, title: str) -> None:
        self.total = total
        self.stream = stream
        self.title = title
        self.done = 0
        self._began = time.monotonic()
        self._last = self._began
        self._bar = bool(stream is not None and stream.isatty())

    def step(self, what: str, pieces: int = 1) -> None:
        """`pieces` more are done, the last of them `what`."""
        self.done += pieces
        if self.stream is None:
            return
        now = time.monotonic()
        if self._bar:
            filled = BAR * self.done // max(1, self.total)
            text = f"{self.title} [{'#' * filled}{'.' * (BAR - filled)}] {self._count(now)} {what}"
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r" + text[:width].ljust(width))
            self.stream.flush()
        elif now - self._last >= LINE_EVERY or self.done == self.total:
            self._last = now
            self.say(f"{self.title} {self._count(now)}: {what}")

    def say(self, line: str) -> None:
        """A whole line of its own."""
        if self.stream is None:
            return
        if self._bar:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r" + " " * width + "\r")
        print(line, file=self.stream, flush=True)

    def finish(self) -> None:
        """End the bar's line."""
        if self.stream is not None and self._bar and self.done:
            print(file=self.stream, flush=True)

    def _count(self, now: float) -> str:
        return f"{self.done}/{self.total} after {now - self._began:.0f} s"
