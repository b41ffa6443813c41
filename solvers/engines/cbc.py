"""CBC, the program that PuLP bundles: own files, own process, true bounds from its log."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import EngineMissing
from schedgap.formulations.common.numbers import gap
from schedgap.solvers.engines.answer import EngineAnswer, Progress, conclude
from schedgap.solvers.engines.arrays import FloatArray, ModelArrays, model_arrays
from schedgap.solvers.engines.cbc_files import (
    Log,
    bound_in,
    objective_in,
    read_log,
    read_values,
    write_mps,
    write_start,
)
from schedgap.solvers.engines.watch import watched
from schedgap.solvers.result import SolveOptions, Status, Termination

INCREMENT = 1e-9
"""CBC ignores solutions that improve by less than this; its default of 1e-5 can miss an optimum."""

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

    Raises
    ------
    RuntimeError
        A status that is not mapped.
    """
    for prefix, status, termination in _NATIVE:
        if text.startswith(prefix):
            return status, termination
    raise RuntimeError(f"CBC ended with a status that is not mapped: {text.strip()[:80]!r}")


class _Run:
    """One run of the program in a private folder that is always removed."""

    def __init__(self, program: str, arrays: ModelArrays, options: SolveOptions, progress: Progress | None) -> None:
        self._program = program
        self._arrays = arrays
        self._options = options
        self._progress = progress
        self._process: subprocess.Popen[bytes] | None = None
        self._error: BaseException | None = None
        self._objective: float | None = None
        self._signalled: float | None = None
        self.close_enough = False
        self.lines: list[str] = []
        self.heading: str | None = None
        self.values: FloatArray | None = None
        self.interrupted = False
        self.late = False

    def go(self, start: dict[int, float], *, with_cost: bool = True) -> None:
        """Write the files, run, read the answer."""
        with tempfile.TemporaryDirectory(prefix="schedgap-cbc-", ignore_cleanup_errors=True) as folder:
            home = Path(folder)
            write_mps(self._arrays, home / "model.mps", with_cost=with_cost)
            command = [self._program, "model.mps"]
            if start:
                write_start(start, home / "start.txt")
                command += ["-mipstart", "start.txt"]
            command += [*self._arguments(), "-solve", "-solution", "answer.txt", "-saveSolution", "answer.bin"]
            try:
                ended = watched(lambda: self._talk(command, home), self._stop, self._options.deadline)
                self.interrupted, self.late = ended.interrupted, ended.late
            finally:
                self._kill()
            if self._error is not None:
                raise self._error
            answer = home / "answer.txt"
            if answer.exists() and ended.finished:
                with answer.open(encoding="ascii", errors="replace") as file:
                    self.heading = file.readline().strip() or None
                if self.heading is not None:
                    self.values = read_values(home / "answer.bin", len(self._arrays.variables))

    def _arguments(self) -> list[str]:
        options = self._options
        # seed 0 means the time of day to CBC, so seeds begin at 1
        seed = str(1 + int(options.seed) % (2**31 - 2))
        arguments = ["-timeMode", "elapsed", "-randomSeed", seed, "-randomCbcSeed", seed]
        arguments += ["-increment", repr(INCREMENT), "-ratioGap", "0", "-allowableGap", "0"]
        left = options.deadline.left()
        if left is not None:
            arguments += ["-seconds", f"{max(0.01, left):.3f}"]
        if options.feasibility_tolerance is not None:
            tolerance = repr(float(options.feasibility_tolerance))
            arguments += ["-primalTolerance", tolerance, "-integerTolerance", tolerance]
        if options.work_limit is not None:
            arguments += ["-maxNodes", str(max(1, min(2**31 - 1, round(1000 * options.work_limit))))]
        if options.relative_gap > 0 and self._arrays.constant == 0:
            arguments += ["-ratioGap", repr(float(options.relative_gap))]
        if options.threads is not None and options.threads > 1:
            arguments += ["-threads", str(100 + min(options.threads, 99))]  # 100 + n is CBC's repeatable mode
        return arguments

    def _talk(self, command: list[str], home: Path) -> None:
        """Run the program and read its log to the end."""
        # a session of its own: a terminal's Ctrl-C must reach CBC once, through _stop
        reader, writer = _log_channel()
        try:
            self._process = subprocess.Popen(
                command, cwd=home, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, start_new_session=True
            )
        finally:
            os.close(writer)
        with os.fdopen(reader, "rb", buffering=0) as stream:
            rest = b""
            while True:
                try:
                    data = stream.read(65536)
                except OSError:  # a pseudo-terminal whose other end is closed
                    data = b""
                if not data:
                    break
                *complete, rest = (rest + data).split(b"\n")
                for line in complete:
                    self._line(line.decode("ascii", "replace").rstrip("\r"))
            if rest:
                self._line(rest.decode("ascii", "replace"))
        self._process.wait()

    def _line(self, line: str) -> None:
        self.lines.append(line)
        try:
            if self._options.log is not None:
                self._options.log(line)
            if self._progress is None:
                return
            if (bound := bound_in(line)) is not None:
                self._progress.new_bound(self._outer(bound))
            if (objective := objective_in(line)) is not None:
                self._objective = self._outer(objective)
            wanted = self._options.relative_gap
            found = gap(self._objective, self._progress.bound)
            if wanted > 0 and found is not None and found <= wanted and not self.close_enough:
                self.close_enough = True
                self._stop()
        except BaseException as error:  # raised again in go()
            self._error = error
            self._kill()

    def _outer(self, internal: float) -> float:
        """From CBC's minimised form without constant to the model's own sense."""
        return self._arrays.sense * internal + self._arrays.constant

    def _stop(self) -> None:
        """Ask CBC to stop and write the best solution it has: once, it ends at once when asked twice."""
        if self._process is not None and self._signalled is None:
            self._signalled = time.monotonic()
            self._process.send_signal(signal.SIGINT)

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class Cbc:
    """CBC: linear and mixed-integer models."""

    name = "cbc"

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
        arrays = model_arrays(model)
        progress = Progress(model, arrays, options)
        run = _Run(program, arrays, options, progress)
        run.go(arrays.start(model, options.start))
        log = read_log(run.lines)
        version = _version(program)

        def answer(status: Status, termination: Termination) -> EngineAnswer:
            seconds = time.monotonic() - started
            return EngineAnswer(status, termination, version, seconds, nodes=log.nodes)

        ending = _ending(run)
        if run.heading is None:
            values, bound, termination = None, progress.bound, ending or Termination.FAILED
            if ending is None:
                return answer(Status.ERROR, Termination.FAILED)
        else:
            status, native = native_meaning(run.heading)
            if status is Status.UNBOUNDED or (status is Status.INFEASIBLE and _doubtful(run, log)):
                status, native = _unbounded_or_infeasible(program, arrays, options, status)
                if status in (Status.UNBOUNDED, Status.INFEASIBLE, Status.UNKNOWN):
                    return answer(status, native)
            if status is not None:
                return answer(status, native)
            termination = ending if ending is not None and native is not Termination.PROVEN else native
            values = None if "no integer solution" in run.heading or log.without_point else run.values
            bound = progress.bound
            if native is Termination.PROVEN and values is not None and not log.gap_stop:
                bound = arrays.objective(arrays.tidy(values))
                termination = Termination.GAP_LIMIT  # replaced by PROVEN, as the bound meets the objective
        return conclude(
            model,
            arrays,
            values=values,
            bound=bound,
            termination=termination,
            version=version,
            seconds=time.monotonic() - started,
            nodes=log.nodes,
        )


ENGINE = Cbc()


def _ending(run: _Run) -> Termination | None:
    """Why the run ended, where that was our doing."""
    if run.interrupted:
        return Termination.INTERRUPTED
    if run.close_enough:
        return Termination.GAP_LIMIT
    return Termination.TIME_LIMIT if run.late else None


def _doubtful(run: _Run, log: Log) -> bool:
    """Whether CBC says infeasible where it may mean unbounded."""
    return any("infeasible or unbounded" in line for line in run.lines) and not log.relaxation_bounded


def _unbounded_or_infeasible(
    program: str, arrays: ModelArrays, options: SolveOptions, claim: Status
) -> tuple[Status, Termination]:
    """Whether a model without a bounded optimum is feasible, by solving it without its objective."""
    if options.deadline.left() == 0.0:
        return Status.UNKNOWN, Termination.TIME_LIMIT
    plain = SolveOptions(deadline=options.deadline, seed=options.seed, threads=options.threads, log=options.log)
    run = _Run(program, arrays, plain, None)
    run.go({}, with_cost=False)
    if run.heading is None:
        return Status.UNKNOWN, _ending(run) or Termination.FAILED
    status, termination = native_meaning(run.heading)
    if status is Status.INFEASIBLE:
        return Status.INFEASIBLE, Termination.PROVEN
    if status is None and termination in (Termination.PROVEN, Termination.GAP_LIMIT):
        return Status.UNBOUNDED, Termination.PROVEN
    return Status.UNKNOWN, termination


def _log_channel() -> tuple[int, int]:
    """(reading end, writing end). A pseudo-terminal where there is one, so that CBC writes line by line."""
    if hasattr(os, "openpty"):
        return os.openpty()
    return os.pipe()


@functools.cache
def _program() -> str:
    """The path of the CBC program: PuLP's own, else the one of the package cbcbox, else one on the path.

    Raises
    ------
    EngineMissing
        There is none that can be executed.
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

    Raises
    ------
    EngineMissing
        It cannot be run here.
    """
    try:
        said = subprocess.run([program, "-quit"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineMissing(f"engine cbc: {program} does not run here: {error}") from error
    found = re.search(r"Version:\s*(\S+)", said)
    return found.group(1) if found else "unknown"
