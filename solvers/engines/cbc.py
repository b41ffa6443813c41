"""CBC, the program that PuLP bundles, as an engine: what it may be given, and what its endings mean."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pulp

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import EngineMissing
from schedgap.solvers.engines.answer import EngineAnswer, EngineProgress, conclude, settled, sizes
from schedgap.solvers.engines.arrays import ModelArrays, model_arrays
from schedgap.solvers.engines.cbc_run import CbcRun, read_log
from schedgap.solvers.engines.whole import BOUND_TOLERANCE, FLOATING_RANGE, WholeModel, whole_model
from schedgap.solvers.result import SolveOptions, Status, Termination

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


def _confirmed(model: WholeModel, values: Floats, heading: str | None) -> float | None:
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
