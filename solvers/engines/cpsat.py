"""CP-SAT through ortools: a direct, exact translation; what cannot be translated exactly is refused."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.numbers import gap
from schedgap.solvers.cp_sat.process import search_apart
from schedgap.solvers.cp_sat.solver import Listener, cp_parameters
from schedgap.solvers.engines.answer import EngineAnswer, EngineProgress, conclude, settled, sizes
from schedgap.solvers.engines.arrays import ModelArrays, model_arrays
from schedgap.solvers.engines.finite_domains import bound_domains
from schedgap.solvers.engines.integers import (
    LARGEST_ACTIVITY,
    IntegerModel,
    integer_model,
    refuse_overflow,
    round_cost,
)
from schedgap.solvers.engines.whole import INTEGER_RANGE
from schedgap.solvers.result import SolveOptions, Status, Termination, package_version

# What each native status says: what is proven, if anything. OPTIMAL is concluded from point and bound.
_NATIVE: dict[str, Status | None] = {
    "OPTIMAL": None,
    "FEASIBLE": None,
    "UNKNOWN": None,
    "INFEASIBLE": Status.INFEASIBLE,
    "MODEL_INVALID": Status.ERROR,
}


def native_meaning(name: str) -> Status | None:
    """What the native status `name` proves, or None where point and bound tell.

    Raises RuntimeError: a status that is not mapped: a newer CP-SAT than this was written for.
    """
    if name not in _NATIVE:
        raise RuntimeError(f"CP-SAT ended with a status that is not mapped: {name}")
    return _NATIVE[name]


class _Run:
    """One CP-SAT model and its search."""

    def __init__(
        self, arrays: ModelArrays, integers: IntegerModel, options: SolveOptions, progress: EngineProgress | None
    ) -> None:
        self.close_enough = False
        self.died = ""
        self._integers = integers
        self._options = options
        self._progress = progress
        self._model = cp_model.CpModel()
        self.places = [p for p in range(len(arrays.variables)) if p not in integers.fixed]
        self._low, self._high = integers.domains()
        self._place = {p: i for i, p in enumerate(self.places)}
        one_thread = options.threads is None and options.work_limit is not None
        self._parameters = cp_parameters(
            seed=options.seed,
            workers=1 if one_thread else (options.threads or os.cpu_count() or 1),
            seconds=options.deadline.remaining(),
            work=options.work_limit,
        )
        self._build()

    def _build(self) -> None:
        """Fill the model's protocol buffer: the expression classes take two to five times as long."""
        proto = self._model.proto
        for p in self.places:
            proto.variables.add().domain.extend((self._low[p], self._high[p]))
        place = self._place
        for row in self._integers.rows:
            if not row.places:  # it holds (see IntegerModel.contradictory)
                continue
            linear = proto.constraints.add().linear
            linear.vars.extend([place[p] for p in row.places])
            linear.coeffs.extend(row.coefficients)
            low = -LARGEST_ACTIVITY if row.low is None else max(row.low, -LARGEST_ACTIVITY)
            high = LARGEST_ACTIVITY if row.high is None else min(row.high, LARGEST_ACTIVITY)
            linear.domain.extend((low, high))
        if self._integers.cost:
            proto.objective.vars.extend([place[p] for p in self._integers.cost])
            proto.objective.coeffs.extend(self._integers.cost.values())

    @property
    def _least_cost(self) -> int:
        """What sum(cost * x) is at least, by bounds of variables alone."""
        return sum(c * (self._low[p] if c > 0 else self._high[p]) for p, c in self._integers.cost.items())

    def hint(self, start: dict[int, float]) -> None:
        """Values to try first."""
        known = [p for p in start if p in self._place]
        hint = self._model.proto.solution_hint
        hint.vars.extend([self._place[p] for p in known])
        ticks = self._integers.ticks
        steps = [round(start[p] / float(ticks[p]) if p in ticks else start[p]) for p in known]
        hint.values.extend([min(max(x, self._low[p]), self._high[p]) for p, x in zip(known, steps, strict=True)])

    def _point(self, values: Sequence[int], internal_bound: float) -> bool:
        """A better solution; whether the caller's gap is reached."""
        if self._progress is not None:
            self._progress.incumbent(self.full(values), self._outer_bound(internal_bound))
            self._look_at_gap()
        return self.close_enough

    def _bound(self, internal: float) -> bool:
        """A better bound; whether the caller's gap is reached."""
        if self._progress is not None:
            self._progress.new_bound(self._outer_bound(internal))
            self._look_at_gap()
        return self.close_enough

    def _look_at_gap(self) -> None:
        assert self._progress is not None
        found = gap(self._progress.objective, self._progress.bound)
        if self._options.relative_gap > 0 and found is not None and found <= self._options.relative_gap:
            self.close_enough = True

    def _outer_bound(self, internal: float) -> float | None:
        """The bound in the model's own sense. CP-SAT's is a whole number, exact below 2^53."""
        if not self._integers.cost or not math.isfinite(internal):
            return None
        return self._integers.objective(max(self._least_cost, math.ceil(internal - 1e-6)))

    def _known_bound(self) -> float | None:
        """The last bound that the search reported, or what bounds of variables give.

        Without a solution CP-SAT's own ``best_objective_bound`` is 0, whether that is known or not.
        """
        reported = None if self._progress is None else self._progress.bound
        return self._outer_bound(self._least_cost) if reported is None else reported

    def full(self, values: Sequence[int]) -> Floats:
        """Values of all variables by position, fixed ones included."""
        result = np.zeros(len(self.places) + len(self._integers.fixed))
        result[self.places] = values
        for place, tick in self._integers.ticks.items():
            result[place] = float(values[self._place[place]] * tick)
        for place, value in self._integers.fixed.items():
            result[place] = float(value)
        return result

    def go(self) -> tuple[str, Floats | None, float | None, Termination, int | None]:
        """Search; the native status' name, the best point, the bound, why it stopped, and branches."""
        options = self._options
        remaining = options.deadline.remaining()
        if remaining == 0.0:
            return "UNKNOWN", None, self._known_bound(), Termination.TIME_LIMIT, None
        listener = Listener(self._point, self._bound, options.log)
        run = search_apart(self._model.proto, self._parameters, listener, options.deadline)
        end = run.value
        if end is None or end.died:
            self.died = "" if end is None else end.died
            ending = Termination.INTERRUPTED if run.interrupted else Termination.TIME_LIMIT
            ending = Termination.FAILED if self.died else ending
            if self._progress is None:
                return "UNKNOWN", None, None, ending, None
            return "UNKNOWN", self._progress.values, self._known_bound(), ending, None
        values = None if end.values is None else self.full(end.values)
        if values is None:
            bound = self._known_bound()
        elif self._integers.cost:
            bound = self._outer_bound(end.bound)
        else:
            bound = float(self._integers.offset)  # nothing to optimise: every point is best
        return end.status, values, bound, self._ending(end.status, run.interrupted), end.branches

    def _ending(self, status: str, interrupted: bool) -> Termination:
        if interrupted:
            return Termination.INTERRUPTED
        if self.close_enough or status == "OPTIMAL":  # in costs that are rounded, perhaps
            return Termination.GAP_LIMIT
        if self._options.work_limit is not None and not self._options.deadline.passed:
            return Termination.WORK_LIMIT
        return Termination.TIME_LIMIT


class CpSat:
    """CP-SAT: integer models."""

    name = "cpsat"
    limits = INTEGER_RANGE
    handover_cost = 1.5

    def version(self) -> str:
        """The version of ortools."""
        return package_version("ortools") or "unknown"

    def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
        """Solve `model` over integers; the optimum is the model's own, or the model is refused.

        Raises ModelRefused: a continuous variable that matters and is no multiple of a tick, a domain that cannot be
        proven finite, or numbers that cannot be scaled to whole numbers within 64 bits.
        """
        started = time.monotonic()
        arrays = model_arrays(model)
        if (known := settled(model, arrays, self.version(), time.monotonic() - started)) is not None:
            return known
        names = [v.name for v in arrays.variables]
        info: dict[str, Any] = dict(sizes(arrays))
        integers = integer_model(arrays, model.restated_integral)
        rays = bound_domains(integers, names)
        if integers.contradictory:
            return self._answer(Status.INFEASIBLE, Termination.PROVEN, started, info)
        round_cost(integers)
        refuse_overflow(integers, names)
        run = _Run(arrays, integers, options, None if rays.directions else EngineProgress(model, arrays, options))
        run.hint(arrays.start(model, options.start))
        native, values, bound, termination, branches = run.go()
        if run.died:
            info["reason"] = run.died
        status = native_meaning(native)
        if status is not None:
            failed = status is Status.ERROR
            return self._answer(status, Termination.FAILED if failed else Termination.PROVEN, started, info, branches)
        if rays.directions:  # only feasibility was solved: unbounded exactly when there is a point
            found = Status.UNKNOWN if values is None else Status.UNBOUNDED
            return self._answer(found, termination if values is None else Termination.PROVEN, started, info, branches)
        return conclude(
            model,
            arrays,
            values=values,
            bound=bound,
            termination=termination,
            version=self.version(),
            seconds=time.monotonic() - started,
            nodes=branches,
            info=info,
            resolution=integers.resolution,
        )

    def _answer(
        self,
        status: Status,
        termination: Termination,
        started: float,
        info: dict[str, Any],
        branches: int | None = None,
    ) -> EngineAnswer:
        seconds = time.monotonic() - started
        return EngineAnswer(status, termination, self.version(), seconds, nodes=branches, info=info)


ENGINE = CpSat()
