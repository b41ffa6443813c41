"""The paper's reformulations of rar-ddls as methods: `schedule-set` (10) to (13), `theta` (14) to (16) by bisection.

Idea: the paper's own reformulations, solved as printed. Source: paper 000, section 5, (10) to (16). Guarantee:
`schedule-set` is exact up to 20,000 joint schedules and 100 slots, by an engine within its range; `theta` gives
u theta* as a bound with realised or best durations only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.rar_ddls.check import check
from schedgap.formulations.rar_ddls.durations import estimated_durations
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution
from schedgap.solvers.incumbent import Incumbent, optimal
from schedgap.solvers.result import Result, SolveOptions, Status, Termination


def solve_schedule_set(instance: RarDdlsInstance, options: SolveOptions) -> Result:
    """Problem (10) to (13) over the enumerated joint schedules, on HiGHS; its optimum is the optimal makespan.

    Returns
    -------
    Result; UNKNOWN with ``Termination.TOO_LARGE`` where there are more than 20,000 joint schedules or more than 100
    slots. ``info["schedules"]`` is their number.

    Notes
    -----
    Exponential: for tiny instances. Source: paper 000, section 5.
    """
    from schedgap.formulations.rar_ddls.models.reformulation import LIMIT, build_reformulation
    from schedgap.solvers.engines.declarative import solve_declarative

    began = time.monotonic()
    try:
        model = build_reformulation(instance, limit=LIMIT)
    except InputError as error:
        return _unfinished(instance, [options.start], Termination.TOO_LARGE, began, {"reason": str(error)})
    return solve_declarative(lambda: model, "highs", options, lambda solution: _check(instance, solution))


def solve_theta(
    instance: RarDdlsInstance,
    options: SolveOptions,
    *,
    rho_hat: Annotated[
        str | Sequence[float] | Mapping[str, float],
        Field(description="durations: realised, best, worst, or slots of each job, 3,4.5"),
    ] = "realised",
    u: Annotated[float, Field(ge=1, description="overestimation: durations count by 1/u in (16)")] = 1.0,
) -> Result:
    """The smallest theta for which (14) to (16) is feasible, by bisection.

    With realised durations theta* is u times less than the least largest execution time of a GPU, which no makespan is
    below; so u theta* is the bound, also with the best durations, which no realised one is below. Other estimates give
    no bound. The solution is the schedule that the last feasible program chose, or the start where that is better:
    ``info["found by"]``. Raises InputError: estimates that are none.

    Returns
    -------
    Result; ``info["theta"]`` is theta*. UNKNOWN, or FEASIBLE with the best schedule known, where the
    instance is too large, as ``schedule-set``, or a limit ends the bisection.

    Notes
    -----
    O(log |Y|) programs. Source: paper 000, section 5, (14) to (16).
    """
    from schedgap.formulations.rar_ddls.models.reformulation import smallest_theta
    from schedgap.solvers.engines import engine

    began = time.monotonic()
    guessed = None if rho_hat == "realised" else estimated_durations(instance, rho_hat)
    solver = engine("highs")
    chosen: list[Solution] = []

    def feasible(model: DeclarativeModel) -> bool:
        answer = solver.solve(model, replace(options, start=None))
        if answer.values is None:
            if answer.status is not Status.INFEASIBLE:
                raise _StoppedError(answer.termination)
            if answer.doubt:  # beyond the range in which the engine is believed
                raise _StoppedError(Termination.FAILED)
            return False
        chosen.append(model.extract(answer.value))
        return True

    try:
        theta = smallest_theta(instance, feasible, rho_hat=guessed, u=u)
    except InputError as error:
        return _unfinished(instance, [options.start], Termination.TOO_LARGE, began, {"reason": str(error)})
    except _StoppedError as stopped:
        return _unfinished(instance, [options.start, *chosen], stopped.termination, began, {})
    seconds = time.monotonic() - began
    if theta is None:
        return Result(Status.INFEASIBLE, termination=Termination.PROVEN, solve_seconds=seconds)
    best = Incumbent(MINIMISE, check=lambda solution: _check(instance, solution))
    for source, solution in (("theta", chosen[-1]), ("start", options.start)):
        if solution is not None:
            best.propose(solution, source)
    makespan = None if best.objective is None else float(best.objective)
    bound = float(math.ceil(theta * exact(u))) if rho_hat in ("realised", "best") else None  # makespans are whole slots
    proven = bound is not None and optimal(makespan, bound, MINIMISE)
    return Result(
        Status.OPTIMAL if proven else Status.FEASIBLE,
        objective=makespan,
        bound=bound,
        solution=best.solution,
        termination=Termination.PROVEN if proven else Termination.FINISHED,
        solve_seconds=seconds,
        engine=solver.name,
        engine_version=solver.version(),
        info={"theta": float(theta), **best.info},
    )


def _check(instance: RarDdlsInstance, solution: Solution) -> CheckReport:
    return check(instance, RarDdlsSolution.parse(solution))


class _StoppedError(Exception):
    """It is not known whether a program is feasible: a limit ended it, or the engine is not believed."""

    def __init__(self, termination: Termination) -> None:
        super().__init__(termination)
        self.termination = termination


def _unfinished(
    instance: RarDdlsInstance,
    known: Sequence[Solution | None],
    termination: Termination,
    began: float,
    info: dict[str, Any],
) -> Result:
    """The best schedule known, where nothing is proven."""
    best = Incumbent(MINIMISE, check=lambda solution: _check(instance, solution))
    for solution in known:
        if solution is not None:
            best.propose(solution)
    return Result(
        Status.UNKNOWN if best.solution is None else Status.FEASIBLE,
        objective=None if best.objective is None else float(best.objective),
        solution=best.solution,
        termination=termination,
        solve_seconds=time.monotonic() - began,
        info=info,
    )
