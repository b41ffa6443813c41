"""CBC, the program that PuLP bundles: own files, a process of its own for each run, true bounds from its log."""

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
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import EngineMissing
from schedgap.formulations.common.numbers import gap
from schedgap.solvers.engines.answer import EngineAnswer, EngineProgress, conclude, settled, sizes
from schedgap.solvers.engines.arrays import FloatArray, ModelArrays, model_arrays
from schedgap.solvers.engines.lp import mps_text
from schedgap.solvers.engines.watch import watched
from schedgap.solvers.engines.whole import BOUND_TOLERANCE, FLOATING_RANGE, WholeModel, whole_model
from schedgap.solvers.result import SolveOptions, Status, Termination

# One run of the CBC program: its start file, its arguments, its log as it comes, its binary solution, its end.

NOTHING_FOUND = 1e49
"""CBC writes 1e+50 for an objective it does not have."""


def write_start(start: dict[int, float], path: Path) -> None:
    """Write a warm start in CBC's form: a heading, then ``index name value cost``."""
    lines = ["Stopped on iterations - objective value 0"]
    lines.extend(f"{j:>7} X{j} {value!r} 0" for j, value in sorted(start.items()))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def read_values(path: Path, columns: int) -> FloatArray | None:
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
        self.values: FloatArray | None = None
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


EXITS_INFEASIBLE = "Problem is infeasible - tightenPrimalBounds"
"""CBC says this and exits without writing a solution file."""

# What the first words of CBC's solution file say: what is proven, and why it ended. None: see point and bound.
# "Stopped on iterations" covers the node limit and Ctrl-C; "Stopped on time (no integer ..." has no point.
_NATIVE: tuple[tuple[str, Status | None, Termination], ...] = (
    ("Optimal (within gap tolerance)", None, Termination.GAP_LIMIT),
    ("Optimal", None, Termination.PROVEN),
    ("Infeasible", Status.INFEASIBLE, Termination.PROVEN),
    ("Integer infeasible", Status.INFEASIBLE, Termination.PROVEN),
    ("Unbounded", Status.UNBOUNDED, Termination.PROVEN),
    ("Stopped on time", None, Termination.TIME_LIMIT),
    ("Stopped on iterations", None, Termination.WORK_LIMIT),
    ("Stopped on solutions", None, Termination.WORK_LIMIT),
    ("Stopped on difficulties", None, Termination.FAILED),
    ("Stopped on ctrl-c", None, Termination.INTERRUPTED),
    ("Status unknown", None, Termination.FAILED),
)


def native_meaning(text: str) -> tuple[Status | None, Termination]:
    """What the first line of a solution file says.

    Raises RuntimeError: a status that is not mapped.
    """
    for prefix, status, termination in _NATIVE:
        if text.startswith(prefix):
            return status, termination
    raise RuntimeError(f"CBC ended with a status that is not mapped: {text.strip()[:80]!r}")


class Cbc:
    """CBC: linear and mixed-integer models."""

    name = "cbc"
    limits = FLOATING_RANGE
    handover_cost = 1.0

    def version(self) -> str:
        """The version that the program states."""
        return _version(_program())

    def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
        """Solve `model`; gap limit 0 unless the caller asks for another.

        Bounds are read from the log, where they are rounded, and moved outwards by half a unit of the last
        printed place. More than one thread is used only when asked for.
        """
        started = time.monotonic()
        program = _program()
        version = _version(program)
        arrays = model_arrays(model)
        if (known := settled(model, arrays, version, time.monotonic() - started)) is not None:
            return known
        arrays, ray = at_rest(arrays)
        whole = whole_model(arrays)
        arrays = whole.arrays
        if (known := settled(model, arrays, version, time.monotonic() - started)) is not None:
            return known
        doubt = self.limits.exceeded(whole)
        progress = None if ray else EngineProgress(model, arrays, options, believed=not doubt)
        run = CbcRun(program, whole, options, progress)
        run.go(arrays.start(model, options.start), with_cost=not ray)
        log = read_log(run.lines)
        status, termination = _meaning(run)
        values = None if log.without_point or "no integer solution" in (run.heading or "") else run.values
        if ray:  # only feasibility was solved: unbounded exactly when there is a point
            found = Status.UNKNOWN if values is None else Status.UNBOUNDED
            status, termination = (status, termination) if status is not None else (found, termination)
        elif status is Status.UNBOUNDED or (status is Status.INFEASIBLE and arrays.endless):
            status, termination = _without_bounded_optimum(program, arrays, options, status)
        if status is not None:
            info: dict[str, Any] = dict(sizes(arrays))
            if status is Status.ERROR:
                info["log"] = list(run.lines)[-10:]
            seconds = time.monotonic() - started
            return EngineAnswer(status, termination, version, seconds, nodes=log.nodes, info=info, doubt=doubt)
        assert progress is not None
        bound = progress.bound
        if termination is Termination.PROVEN and values is not None:
            bound = _confirmed(whole, values, run.heading)
        return conclude(
            model,
            arrays,
            values=values,
            bound=bound,
            termination=termination,
            version=version,
            seconds=time.monotonic() - started,
            nodes=log.nodes,
            doubt=doubt,
            claimed=termination is Termination.PROVEN,
        )


ENGINE = Cbc()


def _ending(run: CbcRun) -> Termination | None:
    """Why the run ended, where that was our doing."""
    if run.interrupted:
        return Termination.INTERRUPTED
    if run.close_enough:
        return Termination.GAP_LIMIT
    return Termination.TIME_LIMIT if run.late else None


def _meaning(run: CbcRun) -> tuple[Status | None, Termination]:
    """What the run's heading says, corrected by what we did to it."""
    ending = _ending(run)
    if run.heading is None:  # killed, or ended without an answer
        if any(line.startswith(EXITS_INFEASIBLE) for line in run.lines):
            return Status.INFEASIBLE, Termination.PROVEN
        return (Status.ERROR, Termination.FAILED) if ending is None else (None, ending)
    status, termination = native_meaning(run.heading)
    if status is None and ending is not None and termination is not Termination.PROVEN:
        return None, ending
    return status, termination


def _confirmed(model: WholeModel, values: FloatArray, heading: str | None) -> float | None:
    """The proven optimum in a heading such as ``Optimal - objective value -977.00000000``.

    It is compared with the point's own objective, for CBC can return a point that is not the one it proved
    (then both differ, and the answer is FEASIBLE). Where they agree but for the rounding of what is printed, the
    point's has all digits.
    """
    match = re.search(r"objective value\s+(\S+)$", heading or "")
    if match is None:
        return None
    claimed = float(match.group(1))
    tidy = model.arrays.tidy(values)
    own = float(model.objective.cost @ tidy)
    if abs(claimed - own) <= BOUND_TOLERANCE * max(1.0, abs(own)):
        return model.arrays.objective(tidy)
    return model.objective.bound(claimed)


def at_rest(arrays: ModelArrays) -> tuple[ModelArrays, bool]:
    """Variables in no row fixed at their best bound, and whether one of them improves without end.

    CBC 2.10.3 calls models infeasible, or even optimal, in which such a variable is unbounded.
    """
    idle = np.ones(len(arrays.variables), dtype=np.bool_)
    idle[arrays.indices] = False
    slope = arrays.sense * arrays.cost
    best = np.where(
        slope > 0, arrays.lower, np.where(slope < 0, arrays.upper, np.clip(0.0, arrays.lower, arrays.upper))
    )
    ray = bool((idle & ~np.isfinite(best)).any())
    value = np.where(np.isfinite(best), best, np.clip(0.0, arrays.lower, arrays.upper))
    lower, upper = np.where(idle, value, arrays.lower), np.where(idle, value, arrays.upper)
    return replace(arrays, lower=lower, upper=upper), ray


def _without_bounded_optimum(
    program: str, arrays: ModelArrays, options: SolveOptions, claim: Status
) -> tuple[Status, Termination]:
    """What a model is that CBC calls unbounded or infeasible: it does not tell the two apart reliably.

    The model is solved without its objective. Infeasible: so is the model. Feasible: the model is unbounded
    exactly when its linear relaxation is (Meyer 1974, On the existence of optimal solutions to integer and
    mixed-integer programming problems, Mathematical Programming 7), which a run with all integers relaxed
    tells; that a relaxation with a known point is "infeasible" then means that it has no bounded optimum.
    """
    plain = SolveOptions(deadline=options.deadline, seed=options.seed, threads=options.threads, log=options.log)

    def solved(which: ModelArrays, with_cost: bool) -> tuple[Status | None, Termination]:
        if options.deadline.passed:
            return Status.UNKNOWN, Termination.TIME_LIMIT
        run = CbcRun(program, whole_model(which), plain, None)
        run.go({}, with_cost=with_cost)
        status, termination = _meaning(run)
        if status is None and termination in (Termination.TIME_LIMIT, Termination.INTERRUPTED):
            status = Status.UNKNOWN
        return status, termination

    status, termination = solved(arrays, False)
    if status is Status.INFEASIBLE:
        return Status.INFEASIBLE, Termination.PROVEN
    if status is not None:
        return (status, termination) if status is Status.UNKNOWN else (Status.ERROR, Termination.FAILED)
    relaxed = arrays.relaxed()
    status, termination = (claim, termination) if claim is Status.UNBOUNDED else solved(relaxed, True)
    if status in (Status.UNBOUNDED, Status.INFEASIBLE):
        return Status.UNBOUNDED, Termination.PROVEN
    return (status, termination) if status is Status.UNKNOWN else (Status.ERROR, Termination.FAILED)


@functools.cache
def _program() -> str:
    """The path of the CBC program: PuLP's own, else the one of the package cbcbox, else one on the path.

    Raises EngineMissing: there is none that can be executed.
    """
    candidates: list[Callable[[], str | None]] = [_bundled, _cbcbox, lambda: shutil.which("cbc")]
    for find in candidates:
        path = find()
        if path is not None and os.access(path, os.X_OK):
            return path
    raise EngineMissing("engine cbc: no CBC program found (PuLP 3 bundles one; or install the package cbcbox)")


def _bundled() -> str | None:
    command = getattr(pulp, "PULP_CBC_CMD", None)
    path = getattr(command, "pulp_cbc_path", None)
    return None if path is None else str(Path(path).resolve())


def _cbcbox() -> str | None:
    try:
        import cbcbox  # type: ignore[import-not-found]
    except ImportError:
        return None
    return str(cbcbox.cbc_bin_path())


@functools.cache
def _version(program: str) -> str:
    """The version that `program` states.

    Raises EngineMissing: it cannot be run here.
    """
    try:
        said = subprocess.run([program, "-quit"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineMissing(f"engine cbc: {program} does not run here: {error}") from error
    found = re.search(r"Version:\s*(\S+)", said)
    return found.group(1) if found else "unknown"
