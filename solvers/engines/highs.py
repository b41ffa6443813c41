"""HiGHS through highspy: our own array hand-off, true bounds, every native status mapped on purpose."""

from __future__ import annotations

import importlib.metadata
import os
import time
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from highspy import cb

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.solvers.engines.answer import EngineAnswer, Progress, conclude
from schedgap.solvers.engines.arrays import FloatArray, ModelArrays, model_arrays
from schedgap.solvers.engines.watch import watched
from schedgap.solvers.result import SolveOptions, Status, Termination

SMALLEST_COEFFICIENT = 1e-12
"""HiGHS drops smaller matrix entries; at its default of 1e-9 it would do so silently."""
BOUND_INTERVAL = 0.25
"""Seconds between two bounds told to the progress line."""

_CALLBACKS = cb.HighsCallbackType
_INTERRUPTS = (
    _CALLBACKS.kCallbackMipInterrupt,
    _CALLBACKS.kCallbackSimplexInterrupt,
    _CALLBACKS.kCallbackIpmInterrupt,
)

# What each native model status says: what is proven, and why the run ended. None: look at point and bound.
_NATIVE: dict[str, tuple[Status | None, Termination]] = {
    "kOptimal": (None, Termination.GAP_LIMIT),
    "kModelEmpty": (None, Termination.GAP_LIMIT),
    "kInfeasible": (Status.INFEASIBLE, Termination.PROVEN),
    "kUnbounded": (Status.UNBOUNDED, Termination.PROVEN),
    "kUnboundedOrInfeasible": (Status.UNBOUNDED, Termination.PROVEN),
    "kTimeLimit": (None, Termination.TIME_LIMIT),
    "kSolutionLimit": (None, Termination.WORK_LIMIT),
    "kIterationLimit": (None, Termination.WORK_LIMIT),
    "kInterrupt": (None, Termination.INTERRUPTED),
    "kHighsInterrupt": (None, Termination.INTERRUPTED),
    "kMemoryLimit": (None, Termination.FAILED),
    "kUnknown": (None, Termination.FAILED),
    "kObjectiveBound": (None, Termination.FAILED),
    "kObjectiveTarget": (None, Termination.FAILED),
    "kNotset": (Status.ERROR, Termination.FAILED),
    "kLoadError": (Status.ERROR, Termination.FAILED),
    "kModelError": (Status.ERROR, Termination.FAILED),
    "kPresolveError": (Status.ERROR, Termination.FAILED),
    "kSolveError": (Status.ERROR, Termination.FAILED),
    "kPostsolveError": (Status.ERROR, Termination.FAILED),
}


def native_meaning(name: str) -> tuple[Status | None, Termination]:
    """What the native status `name` (as ``HighsModelStatus.name``) says.

    Raises
    ------
    RuntimeError
        A status that is not mapped: a newer HiGHS than this was written for.
    """
    if name not in _NATIVE:
        raise RuntimeError(f"HiGHS ended with a status that is not mapped: {name}")
    return _NATIVE[name]


@dataclass
class _Native:
    """The end of one native run."""

    status: str
    values: FloatArray | None
    bound: float | None
    nodes: int | None
    interrupted: bool


class _Run:
    """One native run: a fresh solver object, its callbacks, its thread."""

    def __init__(self, arrays: ModelArrays, options: SolveOptions, progress: Progress | None) -> None:
        self._arrays = arrays
        self._options = options
        self._progress = progress
        self._stopping = False
        self._error: BaseException | None = None
        self._last_bound = time.monotonic()
        self._solver = highspy._core._Highs()  # the class without the Python-side callback tables
        _set(self._solver, "output_flag", options.log is not None)
        _set(self._solver, "log_to_console", False)
        _set(self._solver, "small_matrix_value", SMALLEST_COEFFICIENT)
        _set(self._solver, "mip_rel_gap", float(options.relative_gap))
        _set(self._solver, "mip_abs_gap", 0.0)
        _set(self._solver, "random_seed", int(options.seed) % 2**31)
        _set(self._solver, "threads", options.threads or os.cpu_count() or 1)
        if options.feasibility_tolerance is not None:
            for name in ("mip_feasibility_tolerance", "primal_feasibility_tolerance"):
                _set(self._solver, name, max(1e-10, options.feasibility_tolerance))
        if options.work_limit is not None:
            _set(self._solver, "mip_max_nodes", max(1, min(2**31 - 1, round(1000 * options.work_limit))))

    def set(self, name: str, value: Any) -> None:
        """Set a native option."""
        _set(self._solver, name, value)

    def hand_over(self) -> None:
        """Pass the arrays in one call."""
        pass_arrays(self._solver, self._arrays)

    def warm_start(self, start: dict[int, float]) -> None:
        """Give HiGHS a (possibly partial) point; it completes and checks it."""
        if not start:
            return
        places = np.fromiter(start.keys(), np.int32, len(start))
        values = np.fromiter(start.values(), np.float64, len(start))
        self._solver.setSolution(len(start), places, values)

    def go(self) -> _Native:
        """Run until it ends, the deadline passes or Ctrl-C comes."""
        deadline = self._options.deadline
        left = deadline.left()
        if left is not None:
            _set(self._solver, "time_limit", left)
        self._solver.setCallback(self._callback, None)
        wanted = [*_INTERRUPTS, _CALLBACKS.kCallbackMipImprovingSolution]
        if self._options.log is not None:
            wanted.append(_CALLBACKS.kCallbackLogging)
        for kind in wanted:
            self._solver.startCallback(kind)
        run = watched(self._solver.run, self._stop, deadline)
        if self._error is not None:
            raise self._error
        if not run.finished:
            return self._left_behind(run.interrupted)
        name = self._solver.getModelStatus().name
        if name == "kInterrupt" and run.late and not run.interrupted:
            name = "kTimeLimit"
        info = self._solver.getInfo()
        feasible = info.primal_solution_status == highspy.kSolutionStatusFeasible
        values = np.asarray(self._solver.getSolution().col_value, dtype=np.float64) if feasible else None
        if self._arrays.is_mip:
            return _Native(name, values, info.mip_dual_bound, int(info.mip_node_count), run.interrupted)
        # a linear program's objective is its own bound, by duality
        bound = info.objective_function_value if name in ("kOptimal", "kModelEmpty") else None
        return _Native(name, values, bound, None, run.interrupted)

    def _left_behind(self, interrupted: bool) -> _Native:
        name = "kInterrupt" if interrupted else "kTimeLimit"
        if self._progress is None:
            return _Native(name, None, None, None, interrupted)
        return _Native(name, self._progress.values, self._progress.bound, None, interrupted)

    def _stop(self) -> None:
        self._stopping = True

    def _callback(self, kind: Any, message: str, out: Any, inward: Any, _: Any) -> None:
        try:
            if kind == _CALLBACKS.kCallbackLogging:
                if self._options.log is not None:
                    for line in message.rstrip("\n").split("\n"):
                        self._options.log(line)
            elif kind == _CALLBACKS.kCallbackMipImprovingSolution:
                if self._progress is not None and not self._stopping:
                    self._progress.incumbent(np.asarray(out.mip_solution, dtype=np.float64), out.mip_dual_bound)
            elif self._stopping or self._error is not None:
                inward.user_interrupt = True
            elif kind == _CALLBACKS.kCallbackMipInterrupt and self._progress is not None:
                now = time.monotonic()
                if now - self._last_bound > BOUND_INTERVAL:
                    self._last_bound = now
                    self._progress.new_bound(out.mip_dual_bound)
        except BaseException as error:  # must not unwind through native code; raised again in go()
            self._error = error


class Highs:
    """HiGHS: linear and mixed-integer models."""

    name = "highs"

    def version(self) -> str:
        """The version of highspy."""
        return importlib.metadata.version("highspy")

    def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
        """Solve `model`; gap limit 0 unless the caller asks for another, so OPTIMAL means a proof.

        An unbounded or infeasible model is told apart by solving it without its objective: a mixed-integer
        model with rational data is unbounded exactly when it has a feasible point and its linear relaxation
        is unbounded (Meyer 1974, On the existence of optimal solutions to integer programs).

        Raises
        ------
        ModelRefused
            A number that HiGHS would drop or misread.
        """
        started = time.monotonic()
        arrays = model_arrays(model)
        _refuse_small(arrays)
        progress = Progress(model, arrays, options)
        run = _Run(arrays, options, progress)
        run.hand_over()
        run.warm_start(arrays.start(model, options.start))
        native = run.go()
        status, termination = native_meaning(native.status)
        if status is Status.UNBOUNDED:
            status, termination = _unbounded_or_infeasible(arrays, options)
        seconds = time.monotonic() - started
        if status is not None:
            return EngineAnswer(status, termination, self.version(), seconds, nodes=native.nodes)
        info = {} if termination is not Termination.FAILED else {"native status": native.status}
        return conclude(
            model,
            arrays,
            values=native.values,
            bound=native.bound,
            termination=Termination.INTERRUPTED if native.interrupted else termination,
            version=self.version(),
            seconds=seconds,
            nodes=native.nodes,
            info=info,
        )


ENGINE = Highs()


def pass_arrays(solver: Any, arrays: ModelArrays) -> None:
    """Hand the arrays to a highspy solver object in one call, with sense and constant.

    Raises
    ------
    ModelRefused
        HiGHS does not accept them.
    """
    sense = highspy.ObjSense.kMinimize if arrays.sense == MINIMISE else highspy.ObjSense.kMaximize
    status = solver.passModel(
        len(arrays.variables),
        len(arrays.names),
        len(arrays.indices),
        int(highspy.MatrixFormat.kRowwise),
        int(sense),
        arrays.constant,
        arrays.cost,
        arrays.lower,
        arrays.upper,
        arrays.row_lower,
        arrays.row_upper,
        arrays.starts,
        arrays.indices,
        arrays.coefficients,
        arrays.integral.astype(np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise ModelRefused("engine highs: HiGHS does not accept the model (a number out of its range)")


def _unbounded_or_infeasible(arrays: ModelArrays, options: SolveOptions) -> tuple[Status, Termination]:
    """Which of the two a model is that cannot have a bounded optimum."""
    left = options.deadline.left()
    if left == 0.0:
        return Status.UNKNOWN, Termination.TIME_LIMIT
    plain = SolveOptions(deadline=options.deadline, seed=options.seed, threads=options.threads, log=options.log)
    without = _replace_cost(arrays)
    run = _Run(without, plain, None)
    run.hand_over()
    native = run.go()
    status, termination = native_meaning(native.status)
    if native.interrupted:
        return Status.UNKNOWN, Termination.INTERRUPTED
    if status is Status.INFEASIBLE:
        return Status.INFEASIBLE, Termination.PROVEN
    if native.values is not None:
        return Status.UNBOUNDED, Termination.PROVEN
    return Status.UNKNOWN, termination


def _replace_cost(arrays: ModelArrays) -> ModelArrays:
    fields = {name: getattr(arrays, name) for name in arrays.__dataclass_fields__}
    return ModelArrays(**{**fields, "cost": np.zeros_like(arrays.cost), "constant": 0.0})


def _refuse_small(arrays: ModelArrays) -> None:
    small = np.abs(arrays.coefficients) < SMALLEST_COEFFICIENT
    if small.any():
        place = int(np.argmax(small))
        row = int(np.searchsorted(arrays.starts, place, side="right")) - 1
        raise ModelRefused(
            f"engine highs: row {arrays.names[row]}: coefficient {arrays.coefficients[place]:g} of "
            f"{arrays.variables[arrays.indices[place]].name} is so small that HiGHS would drop it"
        )


def _set(solver: Any, name: str, value: Any) -> None:
    if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
        raise RuntimeError(f"HiGHS refuses the option {name} = {value!r}")
