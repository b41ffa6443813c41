"""SCIP through PySCIPOpt: an engine that is installed on demand (``pip install 'schedgap[scip]'``)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.errors import EngineMissing, ModelRefused
from schedgap.solvers.engines.answer import EngineProgress
from schedgap.solvers.engines.arrays import ModelArrays
from schedgap.solvers.engines.native import Native, NativeEngine
from schedgap.solvers.engines.watch import watched
from schedgap.solvers.engines.whole import Range, WholeModel
from schedgap.solvers.result import SolveOptions, Status, Termination

try:
    import pyscipopt
    from pyscipopt.scip import PY_SCIP_EVENTTYPE, Expr, ExprCons, Term
except ImportError as missing:
    raise EngineMissing(f"engine scip: PySCIPOpt is not here ({missing}): pip install 'schedgap[scip]'") from missing

SMALLEST_COEFFICIENT = 1e-9
"""SCIP takes what is smaller for 0 (numerics/epsilon)."""
LARGEST_NUMBER = 1e15
"""It takes 1e20 for infinite, and warns of "huge" values from 1e15 on."""

RELATIVE_RANGE = Range(coefficient=2.0**13, activity=2.0**18, objective=2.0**18)
"""Its tolerances of 1e-6 are relative: at 2^18 a row is violated by about 1/4 at most, at 2^20 by 1."""

# What each native status says: what is proven, and why the run ended. None: look at point and bound.
_NATIVE: Mapping[str, tuple[Status | None, Termination]] = {
    "optimal": (None, Termination.GAP_LIMIT),
    "gaplimit": (None, Termination.GAP_LIMIT),
    "infeasible": (Status.INFEASIBLE, Termination.PROVEN),
    "unbounded": (Status.UNBOUNDED, Termination.PROVEN),
    "inforunbd": (Status.UNBOUNDED, Termination.PROVEN),
    "timelimit": (None, Termination.TIME_LIMIT),
    "nodelimit": (None, Termination.WORK_LIMIT),
    "totalnodelimit": (None, Termination.WORK_LIMIT),
    "userinterrupt": (None, Termination.INTERRUPTED),
    "memlimit": (None, Termination.FAILED),
}


class _Bests(pyscipopt.Eventhdlr):
    """Hands every new best point to the run."""

    def __init__(self, run: _Run) -> None:
        self._run = run

    def eventinit(self) -> None:
        self.model.catchEvent(PY_SCIP_EVENTTYPE.BESTSOLFOUND, self)

    def eventexit(self) -> None:
        self.model.dropEvent(PY_SCIP_EVENTTYPE.BESTSOLFOUND, self)

    def eventexec(self, event: object) -> None:
        self._run.point_is_there()


class _Run:
    """One native run: a fresh solver object with the model in it, its events, its thread."""

    def __init__(self, model: WholeModel, options: SolveOptions, progress: EngineProgress | None) -> None:
        self._objective = model.objective
        self._options = options
        self._progress = progress
        self._error: BaseException | None = None
        self._log: Path | None = None
        self._solver = pyscipopt.Model()
        self._solver.hideOutput()
        self._set("misc/catchctrlc", False)  # Python handles it, see watched
        self._set("limits/gap", float(options.relative_gap))
        self._set("randomization/randomseedshift", int(options.seed) % 2**31)
        if options.feasibility_tolerance is not None:
            self._set("numerics/feastol", max(1e-9, options.feasibility_tolerance))
        if options.work_limit is not None:
            self._set("limits/totalnodes", max(1, round(1000 * options.work_limit)))
        self._variables = self._hand_over(model.arrays)

    def _set(self, name: str, value: object) -> None:
        self._solver.setParam(name, value)

    def _hand_over(self, arrays: ModelArrays) -> list[Any]:
        """Variables and rows; one expression a row, from its nonzeros."""
        solver = self._solver
        kinds = np.where(arrays.integral, "I", "C").tolist()
        columns = zip(kinds, arrays.lower.tolist(), arrays.upper.tolist(), self._objective.cost.tolist(), strict=True)
        variables = [solver.addVar("", kind, low, high, cost) for kind, low, high, cost in columns]
        # relative gaps are of the whole objective
        own = self._objective
        solver.addObjoffset(float(own.constant / (own.sense * own.unit)) if self._options.relative_gap else 0.0)
        terms = [Term(variable) for variable in variables]
        places, weights, starts = arrays.indices.tolist(), arrays.coefficients.tolist(), arrays.starts.tolist()
        limits = zip(arrays.row_lower.tolist(), arrays.row_upper.tolist(), strict=True)
        for row, (low, high) in enumerate(limits):
            part = range(starts[row], starts[row + 1])
            activity = Expr({terms[places[k]]: weights[k] for k in part})
            solver.addCons(
                ExprCons(activity, None if np.isinf(low) else low, None if np.isinf(high) else high), modifiable=False
            )
        return variables

    def warm_start(self, start: dict[int, float]) -> None:
        """Give SCIP a (possibly partial) point; it completes and checks it."""
        if not start:
            return
        point = self._solver.createPartialSol()
        for place, value in start.items():
            self._solver.setSolVal(point, self._variables[place], value)
        self._solver.addSol(point)

    def go(self) -> Native:
        """Run until it ends, the deadline passes or Ctrl-C comes."""
        deadline = self._options.deadline
        remaining = deadline.remaining()
        if remaining == 0.0:
            return Native("timelimit")
        if remaining is not None:
            self._set("limits/time", remaining)
        if self._progress is not None:
            self._solver.includeEventhdlr(_Bests(self), "best points", "hands every new best point on")
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "scip.log"
            if self._options.log is not None:
                self._solver.setLogfile(str(log))
            run = watched(self._solver.optimizeNogil, self._solver.interruptSolve, deadline)
            if self._error is not None:
                raise self._error
            if not run.finished:
                return self._left_behind(run.interrupted)
            if self._options.log is not None:
                self._solver.setLogfile(None)
                for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
                    self._options.log(line)
        name = str(self._solver.getStatus())
        if name == "userinterrupt" and run.late and not run.interrupted:
            name = "timelimit"
        bound = self._bound()
        return Native(name, self._best(), bound, int(self._solver.getNTotalNodes()), run.interrupted)

    def point_is_there(self) -> None:
        """Called by SCIP, in its thread."""
        try:
            values = self._best()
            if self._progress is not None and values is not None:
                self._progress.incumbent(values, self._bound())
        except BaseException as error:  # must not unwind through native code; raised again in go()
            self._error = error
            self._solver.interruptSolve()

    def _best(self) -> Floats | None:
        if not self._solver.getNSols():
            return None
        best = self._solver.getBestSol()
        return np.array([self._solver.getSolVal(best, variable) for variable in self._variables], dtype=np.float64)

    def _bound(self) -> float | None:
        dual, offset = float(self._solver.getDualbound()), float(self._solver.getObjoffset())
        return None if abs(dual) >= self._solver.infinity() else self._objective.bound(dual - offset)

    def _left_behind(self, interrupted: bool) -> Native:
        name = "userinterrupt" if interrupted else "timelimit"
        if self._progress is None:
            return Native(name, interrupted=interrupted)
        return Native(name, self._progress.values, self._progress.bound, None, interrupted)


class Scip(NativeEngine):
    """SCIP: linear and mixed-integer models, on one thread."""

    name = "scip"
    limits = RELATIVE_RANGE
    handover_cost = 1.0
    meanings = _NATIVE
    optimal = "optimal"
    unbounded = "inforunbd"

    def version(self) -> str:
        """The version of SCIP behind PySCIPOpt."""
        solver = pyscipopt.Model()
        return f"{solver.getMajorVersion()}.{solver.getMinorVersion()}.{solver.getTechVersion()}"

    def run(
        self, model: WholeModel, options: SolveOptions, progress: EngineProgress | None, start: dict[int, float]
    ) -> Native:
        """One run."""
        run = _Run(model, options, progress)
        run.warm_start(start)
        return run.go()

    def refuse_numbers(self, arrays: ModelArrays) -> None:
        """Refuse a number that SCIP would take for 0 or for infinite."""
        sizes_of = np.abs(arrays.coefficients)
        bad = (sizes_of < SMALLEST_COEFFICIENT) | (sizes_of > LARGEST_NUMBER)
        self.refuse_coefficient(arrays, bad, "too small or too large for SCIP")
        limits = (
            ("bound of", arrays.lower),
            ("bound of", arrays.upper),
            ("row", arrays.row_lower),
            ("row", arrays.row_upper),
        )
        for what, levels in limits:
            large = np.isfinite(levels) & (np.abs(levels) > LARGEST_NUMBER)
            if large.any():
                place = int(np.argmax(large))
                name = arrays.names[place] if what == "row" else arrays.variables[place].name
                raise ModelRefused(f"engine scip: {what} {name}: {levels[place]:g} is too large for SCIP")


ENGINE = Scip()
