"""HiGHS through highspy: our own array hand-off, true bounds, every native status mapped on purpose."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from highspy import cb

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.solvers.engines.answer import EngineProgress
from schedgap.solvers.engines.arrays import ModelArrays
from schedgap.solvers.engines.native import Native, NativeEngine
from schedgap.solvers.engines.watch import watched
from schedgap.solvers.engines.whole import FLOATING_RANGE, WholeModel
from schedgap.solvers.result import SolveOptions, Status, Termination

SMALLEST_COEFFICIENT = 1e-12
"""HiGHS drops smaller matrix entries; at its default of 1e-9 it would do so silently."""
LARGEST_COEFFICIENT = 1e20
"""Its default of 1e15 is less than whole numbers of a row can be; such models are beyond where it is believed."""
BOUND_INTERVAL = 0.25
"""Seconds between two bounds on the progress line."""

_SAME_OBJECTIVE = 1e-6
"""Relative: HiGHS 1.16.0 can return the start, a worse point, with the value of the optimum."""

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


ENUMERATION = 1 << 16
"""A rule of presolve, by its bit.

It may drop an equation that still binds, and wrong optima are proven
(ERGO-Code/HiGHS#3216; seen with 1.16.0).
"""


class _Run:
    """One native run: a fresh solver object, its callbacks, its thread."""

    def __init__(self, model: WholeModel, options: SolveOptions, progress: EngineProgress | None) -> None:
        self._arrays = model.arrays
        self._objective = model.objective
        # relative gaps are of the whole objective
        self._offset = float(model.objective.constant / (model.objective.sense * model.objective.unit))
        self._offset *= options.relative_gap > 0
        self._options = options
        self._progress = progress
        self._stopping = False
        self._error: BaseException | None = None
        self._last_bound = time.monotonic()
        self._solver = highspy._core._Highs()  # the class without the Python-side callback tables
        _set(self._solver, "output_flag", False)
        _set(self._solver, "log_to_console", False)
        _set(self._solver, "small_matrix_value", SMALLEST_COEFFICIENT)
        _set(self._solver, "large_matrix_value", LARGEST_COEFFICIENT)
        _set(self._solver, "mip_rel_gap", float(options.relative_gap))
        _set(self._solver, "mip_abs_gap", 0.0)
        _set(self._solver, "presolve_rule_off", ENUMERATION)
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
        pass_arrays(self._solver, self._arrays, self._objective.cost, self._offset)

    def warm_start(self, start: dict[int, float]) -> None:
        """Give HiGHS a (possibly partial) point; it completes and checks it.

        Only where objectives are whole: HiGHS 1.13.1 takes the objective for integral while it reads the start, and
        cuts off every point that is better by less than 1/2, whatever the costs are.
        """
        if not start or not self._objective.whole:
            return
        places = np.fromiter(start.keys(), np.int32, len(start))
        values = np.fromiter(start.values(), np.float64, len(start))
        self._solver.setSolution(len(start), places, values)

    def go(self) -> Native:
        """Run until it ends, the deadline passes or Ctrl-C comes."""
        deadline = self._options.deadline
        remaining = deadline.remaining()
        if remaining == 0.0:
            return Native("kTimeLimit")
        if remaining is not None:
            _set(self._solver, "time_limit", remaining)
        self._solver.setCallback(self._callback, None)
        wanted = [*_INTERRUPTS, _CALLBACKS.kCallbackMipImprovingSolution]
        if self._options.log is not None:
            wanted.append(_CALLBACKS.kCallbackLogging)
        for kind in wanted:
            self._solver.startCallback(kind)
        if self._options.log is not None:  # the callback is served only where a file or the console is, too
            _set(self._solver, "output_flag", True)
            _set(self._solver, "log_file", os.devnull)
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
        if name == "kOptimal" and values is not None and self._arrays.is_mip:
            told = info.objective_function_value - self._offset
            real = float(self._objective.cost @ values)
            if abs(told - real) > _SAME_OBJECTIVE * max(1.0, abs(told)):
                values = None
        if self._arrays.is_mip:
            bound = self._outer(info.mip_dual_bound)
            return Native(name, values, bound, int(info.mip_node_count), run.interrupted)
        # a linear program's objective is its own bound, by duality
        optimal = name in ("kOptimal", "kModelEmpty")
        proven = self._outer(info.objective_function_value) if optimal else None
        return Native(name, values, proven, None, run.interrupted)

    def duals(self) -> Floats | None:
        """Solve a linear program, and return its row duals; those of an unfinished run are as good as they are."""
        if self.go().interrupted:
            raise KeyboardInterrupt
        duals = np.asarray(self._solver.getSolution().row_dual, dtype=np.float64)
        return duals if len(duals) == len(self._arrays.names) else None

    def _outer(self, internal: float) -> float | None:
        return self._objective.bound(internal - self._offset)

    def _left_behind(self, interrupted: bool) -> Native:
        name = "kInterrupt" if interrupted else "kTimeLimit"
        if self._progress is None:
            return Native(name, interrupted=interrupted)
        return Native(name, self._progress.values, self._progress.bound, None, interrupted)

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
                    self._progress.incumbent(
                        np.asarray(out.mip_solution, dtype=np.float64), self._outer(out.mip_dual_bound)
                    )
            elif self._stopping or self._error is not None:
                inward.user_interrupt = True
            elif kind == _CALLBACKS.kCallbackMipInterrupt and self._progress is not None:
                now = time.monotonic()
                if now - self._last_bound > BOUND_INTERVAL:
                    self._last_bound = now
                    self._progress.new_bound(self._outer(out.mip_dual_bound))
        except BaseException as error:  # must not unwind through native code; raised again in go()
            self._error = error


class Highs(NativeEngine):
    """HiGHS: linear and mixed-integer models."""

    name = "highs"
    limits = FLOATING_RANGE
    handover_cost = 0.3
    meanings = _NATIVE
    optimal = "kOptimal"
    unbounded = "kUnboundedOrInfeasible"

    def version(self) -> str:
        """The version of HiGHS, which is highspy's."""
        numbers = (f"HIGHS_VERSION_{part}" for part in ("MAJOR", "MINOR", "PATCH"))
        return ".".join(str(getattr(highspy._core, number)) for number in numbers)

    def refuse_numbers(self, arrays: ModelArrays) -> None:
        """Refuse a coefficient that HiGHS would drop."""
        small = np.abs(arrays.coefficients) < SMALLEST_COEFFICIENT
        self.refuse_coefficient(arrays, small, "so small that HiGHS would drop it")

    def run(
        self, model: WholeModel, options: SolveOptions, progress: EngineProgress | None, start: dict[int, float]
    ) -> Native:
        """One run; a second one without presolve where the first contradicts itself.

        On some models that presolve reduces to nothing HiGHS 1.13.1 ends in kSolveError, or calls optimal
        a point that it knows to be infeasible, and 1.16.0 returns the start with another point's objective.
        Presolve also calls some unbounded linear programs infeasible, so it is off from the start for those
        that bounds leave open.
        """
        native = Native("kNotset")
        arrays = model.arrays
        for presolve in ("off",) if arrays.endless and not arrays.is_mip else ("choose", "off"):
            if options.deadline.passed:
                return replace(native, status="kTimeLimit", values=None, bound=None)
            run = _Run(model, options, progress)
            run.set("presolve", presolve)
            run.hand_over()
            run.warm_start(start)
            native = run.go()
            pointless = native.status == "kOptimal" and native.values is None
            if not pointless and self.native_meaning(native.status)[0] is not Status.ERROR:
                return native
        return replace(native, status="kSolveError")


ENGINE = Highs()


def pass_arrays(solver: Json, arrays: ModelArrays, cost: Floats | None = None, offset: float = 0.0) -> None:
    """Hand the arrays to a highspy solver object in one call, with sense and constant.

    Raises ModelRefused: HiGHS does not accept them.

    Parameters
    ----------
    solver : a highspy solver object
    arrays : the model
    cost, offset : to be minimised in place of the model's own objective
    """
    minimise = cost is not None or arrays.sense == MINIMISE
    sense = highspy.ObjSense.kMinimize if minimise else highspy.ObjSense.kMaximize
    status = solver.passModel(
        len(arrays.variables),
        len(arrays.names),
        len(arrays.indices),
        int(highspy.MatrixFormat.kRowwise),
        int(sense),
        arrays.constant if cost is None else offset,
        arrays.cost if cost is None else cost,
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


def relaxation_duals(model: WholeModel, options: SolveOptions) -> Floats | None:
    """The row duals of the linear relaxation, as far as it was solved; None without time.

    Complexity: one linear program.
    """
    if options.deadline.passed or not model.arrays.names:
        return None
    run = _Run(replace(model, arrays=model.arrays.relaxed()), options, None)
    run.hand_over()
    return run.duals()


def _set(solver: Any, name: str, value: Any) -> None:
    if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
        raise RuntimeError(f"HiGHS refuses the option {name} = {value!r}")
