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
from dataclasses import replace
from pathlib import Path

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import EngineMissing
from schedgap.formulations.common.numbers import agrees, gap
from schedgap.solvers.engines.answer import EngineAnswer, Progress, conclude, settled, sizes
from schedgap.solvers.engines.arrays import FloatArray, ModelArrays, model_arrays
from schedgap.solvers.engines.cbc_files import (
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
        arguments += ["-preprocess", "off", "-increment", repr(INCREMENT), "-ratioGap", "0", "-allowableGap", "0"]
        if self._arrays.endless:
            arguments += ["-presolve", "off"]
        left = options.deadline.left()
        if left is not None:
            arguments += ["-seconds", f"{max(0.01, left):.3f}"]
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

    def _talk(self, command: list[str], home: Path) -> None:
        """Run the program and read its log to the end."""
        # a session of its own: a terminal's Ctrl-C must reach CBC once, through _stop
        reader, writer = _log_channel()
        try:
            self._process = subprocess.Popen(
                command, cwd=home, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, start_new_session=True
            )
        except BaseException:
            os.close(reader)
            raise
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
        return _outer(self._arrays, internal)

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
        progress = None if ray else Progress(model, arrays, options)
        run = _Run(program, arrays, options, progress)
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
            seconds = time.monotonic() - started
            return EngineAnswer(status, termination, version, seconds, nodes=log.nodes, info=sizes(arrays))
        assert progress is not None
        bound = progress.bound
        if termination is Termination.PROVEN and values is not None:
            bound = _confirmed(arrays, values, run.heading)
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


def _meaning(run: _Run) -> tuple[Status | None, Termination]:
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


def _outer(arrays: ModelArrays, internal: float) -> float:
    """From what CBC says, minimised, scaled and without constant, to the model's own sense."""
    return arrays.sense * internal / arrays.cost_scale + arrays.constant


def _confirmed(arrays: ModelArrays, values: FloatArray, heading: str | None) -> float | None:
    """The proven optimum in a heading such as ``Optimal - objective value -977.00000000``.

    It is compared with the point's own objective, for CBC can return a point that is not the one it proved
    (then both differ, and the answer is FEASIBLE). Where they agree, the point's has all digits.
    """
    match = re.search(r"objective value\s+(\S+)$", heading or "")
    if match is None:
        return None
    claimed = _outer(arrays, float(match.group(1)))
    own = arrays.objective(arrays.tidy(values))
    return own if agrees(claimed, own) or abs(claimed - own) * arrays.cost_scale <= 1e-8 else claimed


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
    mixed-integer programs), which a run with all integers relaxed tells; that a relaxation with a known point
    is "infeasible" then means that it has no bounded optimum.
    """
    plain = SolveOptions(deadline=options.deadline, seed=options.seed, threads=options.threads, log=options.log)

    def solved(which: ModelArrays, with_cost: bool) -> tuple[Status | None, Termination]:
        if options.deadline.passed:
            return Status.UNKNOWN, Termination.TIME_LIMIT
        run = _Run(program, which, plain, None)
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


def _log_channel() -> tuple[int, int]:
    """(reading end, writing end). A pseudo-terminal where there is one, so that CBC writes line by line."""
    try:
        return os.openpty()
    except (OSError, AttributeError):  # none left, or no such thing here: the log then comes in blocks
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
