"""Commands of schedgap in processes of their own, for studies and tests that end them."""

from __future__ import annotations

import atexit
import importlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from schedgap.benchmarks.records import Record
from schedgap.benchmarks.sweep.store import Store
from schedgap.tools.evaluation import run as evaluation

PATIENCE = 600.0
"""Seconds that an undisturbed run may take."""
_WRITES = os.O_WRONLY | os.O_RDWR
READY = b"ready\n"
"""Said by a run once the command line is loaded; before it Python itself tells of Ctrl-C."""
CHECKOUT = Path(__file__).resolve().parents[2]
RUNS = f"""
import os, sys
from pathlib import Path
sys.path.append({str(CHECKOUT)!r})
from studies.robustness.processes import end_at, hunt_briefly
from schedgap.cli.main import main
folder, change, number = sys.argv[1:4]
del sys.argv[1:4]
hunt_briefly(sys.argv[1])
end_at(Path(folder), int(change), int(number))
os.write(2, {READY!r})
sys.exit(main())
"""
SCHEDULER = '''def schedule(instance, *, seed):
    """Every job at once on the first GPUs."""
    from schedgap import methods, solve
    return solve(instance, "ls", seed=seed).solution
'''


@dataclass(frozen=True)
class Command:
    """What is run in a folder of its own.

    Attributes
    ----------
    arguments : arguments of ``schedgap``; ``FOLDER`` stands for the folder, in which ``x.json`` is an instance
    again : what a repetition has besides
    tables : the files that are compared, without what depends on the clock
    """

    arguments: tuple[str, ...]
    tables: tuple[str, ...]
    again: tuple[str, ...] = ()


def end_at(folder: Path, change: int, number: int) -> None:
    """Send this process a signal at a change of a file below `folder`, the first of which has number 1.

    Changes are opened for writing, renamed and removed files, and rows of a store, before each and after.
    """
    seen = 0

    def tick() -> None:
        nonlocal seen
        seen += 1
        if seen == change:  # never the change 0
            os.kill(os.getpid(), number)

    def hook(event: str, given: tuple[object, ...]) -> None:
        writes = event == "open" and isinstance(given[2], int) and given[2] & _WRITES
        changes = writes or event in ("os.rename", "os.remove")
        if changes and isinstance(given[0], str | os.PathLike) and Path(given[0]).is_relative_to(folder):
            tick()

    put = Store.put

    def ticking(self: Store, row: Record) -> None:
        tick()
        put(self, row)
        tick()

    Store.put = ticking  # type: ignore[method-assign]
    sys.addaudithook(hook)


def hunt_briefly(command: str) -> None:
    """The hunt of ``evaluate`` has no option for its length that does not depend on the clock."""
    if command == "evaluate":
        evaluation.EVALUATIONS = 10


class Run(Protocol):
    """A process, as :class:`subprocess.Popen` has it."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int) -> None: ...


class Loaded:
    """A run in a copy of this process, which has imported everything; the first of a group of its own."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                self._run(folder, arguments)
            finally:
                os._exit(70)

    @staticmethod
    def _run(folder: Path, arguments: list[str]) -> None:
        """A run of :data:`RUNS`, up to the end of Python, which would throw away the study's own folder."""
        os.chdir(folder)
        os.environ.update(variables(folder))
        tempfile.tempdir = None
        said = os.open(folder / "said", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number, target in enumerate((nowhere, nowhere, said)):
            os.dup2(target, number)
        sys.argv[:] = ["schedgap", *arguments]
        hunt_briefly(arguments[0])
        os.write(2, READY)
        status = importlib.import_module("schedgap.cli.main").main()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(status)

    def poll(self) -> int | None:
        if self.returncode is None and (ended := os.waitpid(self.pid, os.WNOHANG))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (timeout or PATIENCE)
        while (status := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("schedgap", timeout or PATIENCE)
            time.sleep(0.01)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def variables(folder: Path) -> dict[str, str]:
    """The variables of a run in this folder: where its temporary files are, and what its processes are known by."""
    return {"TMPDIR": str(folder / "scratch"), "SCHEDGAP_KILLS": str(folder)}


def begin(command: Command, folder: Path, *more: str, at: tuple[int, int] = (0, 0), loaded: bool = False) -> Run:
    """Start a command whose temporary files, and whose processes, are known by the folder.

    Parameters
    ----------
    more : arguments besides its own
    at : change of a file and signal, see :func:`end_at`
    loaded : in a copy of this process
    """
    scratch = folder / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text(SCHEDULER, encoding="utf-8")
    given = [part.replace("FOLDER", str(folder)) for part in command.arguments]
    if "FOLDER/x.json" in command.arguments and not (folder / "x.json").exists():
        make = [sys.executable, "-m", "schedgap.cli.main", "generate", "hadar", "--preset", "tiny"]
        subprocess.run([*make, "--out", str(folder / "x.json")], check=True, timeout=PATIENCE)
    if loaded:
        return Loaded(folder, [*given, *more])
    return subprocess.Popen(
        [sys.executable, "-c", RUNS, str(folder), *map(str, at), *given, *more],
        cwd=folder,
        env={**os.environ, **variables(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(folder / "said").open("ab"),
        start_new_session=True,
    )
