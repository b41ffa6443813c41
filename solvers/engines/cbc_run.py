"""One run of the CBC program: its start file, its arguments, its log as it comes, its binary solution, its end."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.numbers import gap
from schedgap.solvers.engines.answer import EngineProgress
from schedgap.solvers.engines.lp import mps_text
from schedgap.solvers.engines.watch import watched
from schedgap.solvers.engines.whole import WholeModel
from schedgap.solvers.result import SolveOptions

NOTHING_FOUND = 1e49
"""CBC writes 1e+50 for an objective it does not have."""


def write_start(start: dict[int, float], path: Path) -> None:
    """Write a warm start in CBC's form: a heading, then ``index name value cost``."""
    lines = ["Stopped on iterations - objective value 0"]
    lines.extend(f"{j:>7} X{j} {value!r} 0" for j, value in sorted(start.items()))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def read_values(path: Path, columns: int) -> Floats | None:
    """The point that ``-saveSolution`` wrote, with all digits; None where it wrote none.

    The file holds two ints (rows, columns), then doubles: objective, row activities, row duals, column
    values, reduced costs. Raises RuntimeError: the file does not fit the model.
    """
    data = path.read_bytes() if path.exists() else b""
    if not data:
        return None
    rows, found = struct.unpack_from("=ii", data) if len(data) >= 8 else (-1, -1)
    if found != columns or len(data) != 8 + 8 * (1 + 2 * rows + 2 * columns):
        raise RuntimeError(f"CBC wrote a solution of {found} columns for a model of {columns}")
    return np.frombuffer(data, dtype=np.float64, count=columns, offset=16 + 16 * rows).copy()


@dataclass(frozen=True)
class Log:
    """What CBC's log tells; None where it does not say."""

    nodes: int | None  # enumerated
    without_point: bool  # it found no feasible point (its solution file then holds the relaxation's fractional one)


_LOWER = re.compile(r"^Lower bound:\s+(\S+)")


_NODES = re.compile(r"^Enumerated nodes:\s+(\d+)")


_POSSIBLE = re.compile(r"best possible ([-+0-9.eE]+)")


_SOLUTION = re.compile(r"^Cbc0010I .* ([-+0-9.eE]+) best solution, best possible")


_INTEGER = re.compile(r"^Cbc00(?:04|12|16|38)I .*?[Ss]olution (?:of|for|found of) ([-+0-9.eE]+)")


def safe_lower(text: str) -> float | None:
    """The least number that prints as `text`: half a unit of the last printed place below it.

    CBC prints "Lower bound:" with three decimals, so the number itself may lie above the true bound.
    """
    number = float(text)
    if not abs(number) < NOTHING_FOUND:
        return None
    mantissa, _, exponent = text.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return number - 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def bound_in(line: str) -> float | None:
    """A lower bound that a line of the log states, or None."""
    match = _LOWER.match(line) or _POSSIBLE.search(line)
    return safe_lower(match.group(1).rstrip(".")) if match else None


def objective_in(line: str) -> float | None:
    """The objective of a solution that a line of the log reports, or None."""
    match = _SOLUTION.match(line) or _INTEGER.match(line)
    if match is None:
        return None
    value = float(match.group(1))
    return value if abs(value) < NOTHING_FOUND else None


def read_log(lines: Iterable[str]) -> Log:
    """What the log says at its end."""
    nodes: int | None = None
    for line in lines:
        if match := _NODES.match(line):
            nodes = int(match.group(1))
    return Log(
        nodes,
        any(line.startswith("No feasible solution found") for line in lines),
    )


INCREMENT = 1e-9
"""CBC ignores solutions that improve by less than this; its default of 1e-5 can cut off an optimum."""


WHOLE_INCREMENT = 0.999
"""The same where objectives are whole numbers."""


ASKED_AGAIN = 10
"""Every so many requests to stop, half a second apart, CBC is sent the signal again."""


END_OF_LOG = b"\0"
"""What CBC never writes."""


KEPT_LINES = 1000
"""The end of the log, from which the answer is read; the whole of it can be long."""


_HANDLES = Path("/proc/self/fd")
"""Where Linux shows a process its open files by their numbers."""


class CbcRun:
    """One run of the program; its files leave no trace."""

    def __init__(self, program: str, model: WholeModel, options: SolveOptions, progress: EngineProgress | None) -> None:
        self._program = program
        self._arrays = model.arrays
        self._goal = model.objective
        self._options = options
        self._progress = progress
        self._process: subprocess.Popen[bytes] | None = None
        self._error: BaseException | None = None
        self._objective: float | None = None
        self._requests = 0
        self.close_enough = False
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.heading: str | None = None
        self.values: Floats | None = None
        self.interrupted = False
        self.late = False

    def go(self, start: dict[int, float], *, with_cost: bool = True) -> None:
        """Write the files, run, read the answer."""
        with _files("model.mps", "start.txt", "answer.txt", "answer.bin") as (model, begin, answer, point):
            model.write_text(mps_text(self._arrays, self._goal.cost if with_cost else None), encoding="utf-8")
            command = [*_tied_to_us(), self._program, str(model)]
            if start:
                write_start(start, begin)
                command += ["-mipstart", str(begin)]
            command += [*self._arguments(), "-solve", "-solution", str(answer), "-saveSolution", str(point)]
            handles = [int(path.name) for path in (model, begin, answer, point) if path.parent == _HANDLES]
            try:
                ended = watched(lambda: self._talk(command, handles), self._stop, self._options.deadline)
                self.interrupted, self.late = ended.interrupted, ended.late
            finally:
                self._kill()
            if self._error is not None:
                raise self._error
            if answer.exists() and ended.finished:
                with answer.open(encoding="ascii", errors="replace") as file:
                    self.heading = file.readline().strip() or None
                if self.heading is not None:
                    self.values = read_values(point, len(self._arrays.variables))

    def _arguments(self) -> list[str]:
        options = self._options
        # seed 0 means the time of day to CBC, so seeds begin at 1
        seed = str(1 + int(options.seed) % (2**31 - 2))
        arguments = ["-timeMode", "elapsed", "-randomSeed", seed, "-randomCbcSeed", seed]
        increment = WHOLE_INCREMENT if self._goal.whole else INCREMENT
        # Both look ahead by CBC 2.10.3's probing, which cuts optima off (tests/data/ddl-cluster-gap-filled.json)
        arguments += ["-preprocess", "off", "-probingCuts", "off"]
        arguments += ["-increment", repr(increment), "-ratioGap", "0", "-allowableGap", "0"]
        if self._arrays.endless:
            arguments += ["-presolve", "off"]
        remaining = options.deadline.remaining()
        if remaining is not None:
            arguments += ["-seconds", f"{max(0.01, remaining):.3f}"]
        if options.feasibility_tolerance is not None:
            tolerance = repr(float(options.feasibility_tolerance))
            arguments += ["-primalTolerance", tolerance, "-integerTolerance", tolerance]
        if options.work_limit is not None:
            arguments += ["-maxNodes", str(max(1, min(2**31 - 1, round(1000 * options.work_limit))))]
        if options.relative_gap > 0 and self._arrays.constant == 0:
            # CBC divides by the larger of |objective| and |bound|, we by |objective|
            arguments += ["-ratioGap", repr(options.relative_gap / (1 + options.relative_gap))]
        if options.threads is not None and options.threads > 1:
            arguments += ["-threads", str(100 + min(options.threads, 99))]  # 100 + n is CBC's repeatable mode
        return arguments

    def _talk(self, command: list[str], handles: list[int]) -> None:
        """Run the program and read its log to the end."""
        # a session of its own: a terminal's Ctrl-C must reach CBC once, through _stop
        reader, writer = _log_channel()
        try:
            self._process = subprocess.Popen(
                command,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                start_new_session=True,
                pass_fds=handles,
            )
        except BaseException:
            os.close(reader)
            os.close(writer)
            raise
        marking = threading.Thread(target=_mark_end, args=(self._process, writer), daemon=True)
        marking.start()
        try:
            with os.fdopen(reader, "rb", buffering=0) as stream:
                rest = b""
                while END_OF_LOG not in rest:
                    *complete, rest = (rest + stream.read(65536)).split(b"\n")
                    for line in complete:
                        self._line(line.decode("ascii", "replace").rstrip("\r"))
                if last := rest.removesuffix(END_OF_LOG):
                    self._line(last.decode("ascii", "replace"))
        finally:
            self._kill()
            marking.join()
            os.close(writer)  # not before the mark is read: without a writer a pseudo-terminal's reader gets EIO

    def _line(self, line: str) -> None:
        self.lines.append(line)
        try:
            if self._options.log is not None:
                self._options.log(line)
            if self._progress is None:
                return
            if (bound := bound_in(line)) is not None:
                self._progress.new_bound(self._goal.bound(bound))
            if (objective := objective_in(line)) is not None:
                self._objective = self._goal.outer(objective)
            wanted = self._options.relative_gap
            found = gap(self._objective, self._progress.bound)
            if wanted > 0 and found is not None and found <= wanted and not self.close_enough:
                self.close_enough = True
                self._stop()
        except BaseException as error:  # raised again in go()
            self._error = error
            self._kill()

    def _stop(self) -> None:
        """Ask CBC to stop and write the best solution it has, and again: before it branches it may ignore the first."""
        if self._process is None:
            return
        if self._requests % ASKED_AGAIN == 0:
            self._process.send_signal(signal.SIGINT)
        self._requests += 1

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@contextmanager
def _files(*names: str) -> Iterator[list[Path]]:
    """Files of these names: in memory where the system has such, so that none is left however this process ends."""
    handles: list[int] = []
    try:
        if hasattr(os, "memfd_create") and _HANDLES.is_dir():
            for name in names:
                handles.append(os.memfd_create(name))
            yield [_HANDLES / str(handle) for handle in handles]
            return
    finally:
        for handle in handles:
            os.close(handle)
    with tempfile.TemporaryDirectory(prefix="schedgap-cbc-", ignore_cleanup_errors=True) as folder:
        yield [Path(folder) / name for name in names]


def _mark_end(process: subprocess.Popen[bytes], writer: int) -> None:
    """Write the end of the log once the program has ended.

    A pseudo-terminal whose last writer closes it may drop what it still holds; what stands before the mark arrives.
    """
    process.wait()
    with suppress(OSError):  # nobody reads any more
        os.write(writer, END_OF_LOG)


def _log_channel() -> tuple[int, int]:
    """(reading end, writing end). A pseudo-terminal where there is one, so that CBC writes line by line."""
    try:
        return os.openpty()
    except (OSError, AttributeError):  # none left, or no such thing here: the log then comes in blocks
        return os.pipe()


@functools.cache
def _tied_to_us() -> tuple[str, ...]:
    """What to put before the command so that CBC dies with this process, even by ``kill -9``; Linux only."""
    tool = shutil.which("setpriv") if sys.platform == "linux" else None
    if tool is None:
        return ()
    command = (tool, "--pdeathsig", "KILL")
    try:
        works = subprocess.run([*command, "true"], capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return command if works else ()
