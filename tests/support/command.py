"""Runs the command line in this process, as a user would see it."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import pytest

from schedgap.benchmarks.sweep import progress
from schedgap.cli.main import main

QUIET = 600.0
"""Seconds without a line of progress, so that a slow machine prints what a quick one does."""


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The one line of an error; fails when there is more, or a traceback."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("schedgap: error: "), self.err
        return lines[0].removeprefix("schedgap: error: ")


class Command:
    """``command("solve", path, stdin=text)``."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: object, stdin: str | bytes = b"") -> Ran:
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        self._monkeypatch.setattr(progress, "QUIET", QUIET)
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
        self._capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        return Ran(status, out, err)
