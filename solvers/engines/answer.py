"""What every engine returns, and the rules they share: when a proof counts, how progress is reported."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pulp

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.solvers.engines.arrays import ModelArrays
from schedgap.solvers.engines.whole import BOUND_TOLERANCE, Range
from schedgap.solvers.incumbent import optimal
from schedgap.solvers.result import SolveOptions, Status, Termination


@dataclass(frozen=True)
class EngineAnswer:
    """What an engine found, in the model's own sense and with the objective's constant.

    Attributes
    ----------
    status, termination : what is known, and why the engine stopped
    objective : objective of `values`, recomputed from them; None without values
    bound : a proven bound on the optimum (lower when minimising), or None
    values : value of each variable; integer variables are whole numbers. None when there is no feasible point
    nodes : branch-and-bound nodes (CP-SAT: branches), or None
    doubt : why the engine's word alone proves nothing here (its declared range is exceeded), or ""
    claimed : the engine itself calls the point optimal
    resolution : largest amount by which rounded costs make `bound` too generous
    version : version of the engine
    seconds : taken by the engine, handing the model over included
    info : further facts, JSON-compatible
    """

    status: Status
    termination: Termination
    version: str
    seconds: float
    objective: float | None = None
    bound: float | None = None
    values: Mapping[pulp.LpVariable, float] | None = None
    nodes: int | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    doubt: str = ""
    claimed: bool = False
    resolution: float = 0.0

    def value(self, variable: pulp.LpVariable) -> float:
        """The value of `variable`; one that the model never mentions takes the value nearest 0 in its bounds.

        Raises
        ------
        ValueError
            There are no values.
        """
        if self.values is None:
            raise ValueError("the engine found no feasible point, so there is no value to read")
        found = self.values.get(variable)
        return nearest_to_zero(variable) if found is None else found


class Engine(Protocol):
    """Solves declarative models."""

    name: str  # name in a user's spelling
    limits: Range  # the models on which its word alone is believed
    # seconds it takes to take a model over, per second of building it in PuLP (measured at 200,000 nonzeros, rounded
    # up)
    handover_cost: float

    def version(self) -> str:
        """The version of the solver behind it."""
        ...

    def solve(self, model: DeclarativeModel, options: SolveOptions) -> EngineAnswer:
        """Solve `model` within `options`.

        Raises ModelRefused: the engine cannot solve this model truthfully.
        """
        ...


def nearest_to_zero(variable: pulp.LpVariable) -> float:
    """The value nearest 0 within the bounds of `variable`."""
    low = -math.inf if variable.lowBound is None else float(variable.lowBound)
    high = math.inf if variable.upBound is None else float(variable.upBound)
    return min(max(0.0, low), high)


def rounded_bound(bound: float, sense: int) -> float:
    """`bound` moved to the next whole number that the optimum can have, when objectives are whole numbers.

    Up when minimising, down when maximising, after giving way by the tolerance of a floating-point bound:
    ceil(bound - t) with t = min(1/2, 1e-6 max(1, |bound|)).
    """
    slack = min(0.5, BOUND_TOLERANCE * max(1.0, abs(bound)))
    return float(math.ceil(bound - slack)) if sense == MINIMISE else float(math.floor(bound + slack))


def meets(objective: float, bound: float, sense: int, integral: bool) -> bool:
    """Whether `bound` proves `objective` optimal: see :func:`~schedgap.solvers.incumbent.optimal`.

    For whole-number objectives the rounded bound must reach the objective exactly, however large both are.
    """
    if integral:
        return sense * (objective - rounded_bound(bound, sense)) < 0.5
    return optimal(objective, bound, sense)


class EngineProgress:
    """Keeps the best point and bound seen during a run, and tells ``options.report`` of them.

    A bound is reported only where the engine is `believed`: its declared range is kept.
    """

    def __init__(
        self, model: DeclarativeModel, arrays: ModelArrays, options: SolveOptions, believed: bool = True
    ) -> None:
        self._model = model
        self._arrays = arrays
        self._report = options.report
        self._believed = believed
        self.values: Floats | None = None
        self.objective: float | None = None
        self.bound: float | None = None

    def incumbent(self, raw: Floats, bound: float | None = None) -> None:
        """A feasible point (by position), and the bound where the engine knows one."""
        values = self._arrays.tidy(raw)
        self._keep_bound(bound)
        if not self._arrays.fits(values):
            return
        objective = self._arrays.objective(values)
        if self.objective is not None and self._arrays.sense * (objective - self.objective) >= 0:
            return
        self.values, self.objective = values, objective
        if self._report is not None:
            answer = EngineAnswer(
                Status.FEASIBLE, Termination.FINISHED, "", 0.0, objective, self.bound, self._arrays.by_variable(values)
            )
            try:
                solution = self._model.extract(answer.value)
            except ValueError:  # a point that is feasible only within the engine's tolerance
                return
            self._report(solution, objective, self.bound if self._believed else None)

    def new_bound(self, bound: float | None) -> None:
        """A bound that may be better than the last one."""
        if self._keep_bound(bound) and self._believed and self._report is not None:
            self._report(None, self.objective, self.bound)

    def _keep_bound(self, bound: float | None) -> bool:
        if bound is None or not math.isfinite(bound):
            return False
        sense = self._arrays.sense
        if self.bound is not None and sense * (bound - self.bound) <= 1e-9 * abs(bound):
            return False
        self.bound = bound
        return True


def conclude(
    model: DeclarativeModel,
    arrays: ModelArrays,
    *,
    values: Floats | None,
    bound: float | None,
    termination: Termination,
    version: str,
    seconds: float,
    nodes: int | None = None,
    info: Mapping[str, object] | None = None,
    doubt: str = "",
    claimed: bool = False,
    resolution: float = 0.0,
) -> EngineAnswer:
    """The answer that follows from a point, a bound and the reason for stopping.

    OPTIMAL only when the bound meets the objective, whatever the engine calls it; FEASIBLE with a point and
    no such bound; UNKNOWN without a point; ERROR with a point that is far from feasible.
    """
    if bound is not None and not math.isfinite(bound):
        bound = None
    facts = {**sizes(arrays), **(info or {})}
    if values is None:
        return EngineAnswer(Status.UNKNOWN, termination, version, seconds, None, bound, None, nodes, facts, doubt)
    tidy = arrays.tidy(values)
    if not arrays.fits(tidy):
        facts["reason"] = "the engine's point does not satisfy the model"
        return EngineAnswer(Status.ERROR, Termination.FAILED, version, seconds, nodes=nodes, info=facts, doubt=doubt)
    objective = arrays.objective(tidy)
    proven = bound is not None and meets(objective, bound, arrays.sense, model.objective_is_integral)
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    ending = Termination.PROVEN if proven else termination
    by_variable = arrays.by_variable(tidy)
    claimed = claimed or proven
    return EngineAnswer(
        status, ending, version, seconds, objective, bound, by_variable, nodes, facts, doubt, claimed, resolution
    )


def settled(model: DeclarativeModel, arrays: ModelArrays, version: str, seconds: float) -> EngineAnswer | None:
    """The answer to a model that needs no engine, or None: contradictory at sight, or without any row.

    Engines mislead on both: CBC 2.10.3 crashes on a model without rows, and a row without variables is lost
    on the way to CP-SAT and to HiGHS (where no column is left).
    """
    if arrays.contradiction:
        info = {**sizes(arrays), "contradiction": arrays.contradiction}
        return EngineAnswer(Status.INFEASIBLE, Termination.PROVEN, version, seconds, info=info)
    if arrays.names:
        return None
    slope = arrays.sense * arrays.cost
    at_rest = np.clip(0.0, arrays.lower, arrays.upper)
    values = np.where(slope > 0, arrays.lower, np.where(slope < 0, arrays.upper, at_rest))
    if not np.isfinite(values).all():
        return EngineAnswer(Status.UNBOUNDED, Termination.PROVEN, version, seconds, info=sizes(arrays))
    return conclude(
        model,
        arrays,
        values=values,
        bound=arrays.objective(values),
        termination=Termination.PROVEN,
        version=version,
        seconds=seconds,
    )


def sizes(arrays: ModelArrays) -> dict[str, int]:
    """How large the model is, for ``info``."""
    return {"variables": len(arrays.variables), "rows": len(arrays.names), "nonzeros": len(arrays.indices)}
