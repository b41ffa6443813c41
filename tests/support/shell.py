"""One process in which command after command runs, where a process each would import everything anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from support.command import Ran

RUNS = """
import contextlib, io, json, os, sys
from schedgap.cli.main import main
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for line in sys.stdin:
    folder, arguments = json.loads(line)
    os.chdir(folder)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    print(json.dumps([status, out.getvalue(), err.getvalue()]), file=answers, flush=True)
"""


class Shell:
    """``shell(folder, "solve", path)``; commands are those of a new process that sees packages in some folders."""

    def __init__(self, packages: Iterable[Path]) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, packages))}
        command = [sys.executable, "-c", RUNS]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def __call__(self, folder: Path, *arguments: object) -> Ran:
        """Run a command in a folder."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([str(folder), list(map(str, arguments))]), file=self._process.stdin, flush=True)
        status, out, err = json.loads(self._process.stdout.readline())
        return Ran(status, out, err)
