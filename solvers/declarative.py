"""A declarative model solved by an engine, its answer re-scored by the problem's checker."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import EngineMissing, InputError, ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import agrees
from schedgap.solvers.engine_run import Check, ModelSearch, disagreement, refute_bound, run_engine
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.answer import Engine, EngineAnswer
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.engines.dual_bound import exact_bound
from schedgap.solvers.engines.whole import whole_model
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Proof, Result, SolveOptions, Status, Termination
from schedgap.solvers.size import too_large

MOST_EXACT_FIRST = ("cpsat", "highs", "cbc")
"""The engines that are asked where another's declared range is exceeded."""
RELAXATION_SHARE = 0.3
"""Of the time that is left, for the linear relaxation where its bound is the only one that counts."""


def solve_declarative(
    build: Callable[[], DeclarativeModel],
    engine_name: str,
    options: SolveOptions,
    check: Check,
    nonzeros: int | None = None,
    fallback: Callable[[], Solution | None] | None = None,
) -> Result:
    """Build a model, solve it, and return what the checker confirms.

    Every solution is re-scored by `check`; its objective is the Result's. A solution that is off by the
    engine's feasibility tolerance is mended (``model.repair``), or the point is cut off and the model solved
    again. With whole-number objectives the bound is rounded to the next whole number. OPTIMAL is returned
    only when the bound meets the checker's objective. A feasible ``options.start`` is never lost, nor are
    the start and the bound that the model's builder knows; the engine starts from the better solution. Of a model
    that is a restriction of the problem only solutions count, and its builder's bound.

    Parameters
    ----------
    build : builds the model; its time counts against the deadline
    engine_name : such as "cbc", "highs" or "cpsat"
    options : limits, seed, start, progress
    check : the problem's independent checker for this instance
    nonzeros : an estimate of the model's size before it is built; a model that cannot be built in the time
        left (or in the memory there is) is not attempted: termination TOO_LARGE, status FEASIBLE with a
        feasible ``options.start`` or the fallback's solution, UNKNOWN where there is neither
    fallback : finds a quick solution; asked where the model is not attempted and no start is feasible

    Raises
    ------
    EngineMissing, ModelRefused
        The engine is not there, or cannot solve this model truthfully.
    Disagreement
        Engine and checker contradict each other by more than tolerance. The exception carries the solution
        and the numbers; the caller, who knows the instance, writes it to a file.
    """
    solver = engine(engine_name)
    began = time.monotonic()
    version = solver.version()
    if nonzeros is not None and (
        reason := too_large(nonzeros, options.deadline, solver.handover_cost, options.memory_limit)
    ):
        known = _first_feasible(check, options.start, fallback)
        info = {"nonzeros": nonzeros, "reason": reason}
        return _unsolved(solver, version, Termination.TOO_LARGE, began, known, info)
    try:
        model = _built(build)
    except KeyboardInterrupt:
        return _unsolved(solver, version, Termination.INTERRUPTED, began, _first_feasible(check, options.start), {})
    built = time.monotonic()
    search = ModelSearch(model, solver, check, Incumbent(model.sense, SolveOptions(stages=options.stages)))
    for start in (options.start, model.start if search.best.stage("start") else None):
        if start is not None:
            _take_start(search, start)
    if search.best.solution is not None:
        options = replace(options, start=search.best.solution)
    if search.best.stage("bound"):
        search.tighten(model.bound)
    search.best.stage("engine")
    try:
        if options.deadline.moment is not None and not model.restriction:
            _bound_beforehand(search, options)
        status, termination = _solve(search, options)
    except KeyboardInterrupt:  # between native runs, or in a relaxation; engines handle it during their own
        status, termination = None, Termination.INTERRUPTED
    seconds = built - began, time.monotonic() - built
    return _result(search, status, termination, options.relative_gap, version, *seconds)


def second_engines(name: str) -> tuple[str, ...]:
    """Engines of other makes than the one called `name`, in the order in which they are asked."""
    return tuple(other for other in MOST_EXACT_FIRST if other != name)


def _built(build: Callable[[], DeclarativeModel]) -> DeclarativeModel:
    """Build without cycle collection, which would walk the growing model again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return build()
    finally:
        if collecting:
            gc.enable()


def _take_start(search: ModelSearch, start: Solution) -> None:
    report = search.check(start)
    if report.feasible and report.objective is not None:
        search.best.accept(start, float(report.objective))


def _bound_beforehand(search: ModelSearch, options: SolveOptions) -> None:
    """The exact bound of the linear relaxation, where the engine's own would not count and time may run out."""
    whole = whole_model(model_arrays(search.model))
    left = options.deadline.left()
    if left and not whole.arrays.contradiction and search.engine.limits.exceeded(whole):
        search.tighten(exact_bound(whole, options.deadline.capped(RELAXATION_SHARE * left)))


def _solve(search: ModelSearch, options: SolveOptions) -> tuple[Status | None, Termination]:
    """Solve until the answer stands. The status where one was proven without a solution."""
    answer, termination = run_engine(search, search.engine, options)
    if answer is None or search.model.restriction or not answer.doubt:
        return (None if answer is None else _without_solution(search, answer)), termination
    search.info["doubt"] = answer.doubt
    failed = termination is Termination.FAILED  # the engine contradicts itself, as it may out of its range
    if not answer.claimed and not failed and answer.status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        return None, termination
    if options.deadline.moment is None and search.best.solution is not None:  # else it is known already
        search.tighten(exact_bound(whole_model(model_arrays(search.model)), options.deadline))
    if search.best.proven:
        return None, Termination.PROVEN
    first = None if answer.values is None else _scored(search, answer)
    status, termination = _second_opinion(search, options, answer, first)
    if status is not None or search.best.proven:
        return status, Termination.PROVEN
    return None, Termination.TIME_LIMIT if options.deadline.passed else termination


def _second_opinion(
    search: ModelSearch, options: SolveOptions, answer: EngineAnswer, first: float | None
) -> tuple[Status | None, Termination]:
    """What an engine of another make says of an answer that its engine cannot prove alone.

    What it proves is kept; where both are in doubt, they must agree.

    Parameters
    ----------
    first : the checker's objective of the first answer's own point

    Returns
    -------
    (status that was proven without a solution, why the engine stopped)
    """
    for name in second_engines(search.engine.name):
        try:
            hint = options.start if name == "cpsat" else None  # a start would make an engine in doubt agree
            second, termination = run_engine(search, engine(name), replace(options, start=hint, log=None))
        except (EngineMissing, ModelRefused):
            continue
        if second is None:
            return None, termination
        search.info["second engine"] = name
        checked = None if second.values is None else _scored(search, second)
        same_value = first is not None and checked is not None and agrees(first, checked)
        without = second.status is answer.status and second.status in (Status.INFEASIBLE, Status.UNBOUNDED)
        if not second.doubt:
            search.info["proof"] = Proof.AGREED if same_value or without else Proof.CLAIMED
            return _without_solution(search, second), termination
        if same_value and second.claimed:
            search.info["proof"] = Proof.AGREED
            search.tighten(first)
        elif without and search.best.solution is None:
            search.info["proof"] = Proof.AGREED
            return second.status, termination
        return None, termination
    return None, Termination.FINISHED


def _scored(search: ModelSearch, answer: EngineAnswer) -> float | None:
    """The checker's objective of the answer's own point; None where it is not feasible."""
    try:
        report = search.check(search.model.extract(answer.value))
    except (InputError, ValueError):
        return None
    return float(report.objective) if report.feasible and report.objective is not None else None


def _without_solution(search: ModelSearch, answer: EngineAnswer) -> Status | None:
    """The status of an answer that proves that there is no solution, or no bounded one."""
    if answer.status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        return Status.ERROR if answer.status is Status.ERROR and search.best.solution is None else None
    if search.model.restriction and answer.status is Status.INFEASIBLE:
        return None
    _refute_by_solution(search, answer)
    return answer.status


def _refute_by_solution(search: ModelSearch, answer: EngineAnswer) -> None:
    """No solution may be known where a believed engine proves that there is none."""
    if answer.status is Status.INFEASIBLE and search.best.solution is not None:
        raise disagreement(
            search.engine,
            f"engine {search.engine.name} proves infeasibility, the checker confirms a solution "
            f"of {search.best.objective:.12g}",
            search.best.solution,
            objective=search.best.objective,
        )


def _result(
    search: ModelSearch,
    status: Status | None,
    termination: Termination,
    relative_gap: float,
    version: str,
    build_seconds: float,
    solve_seconds: float,
) -> Result:
    best = search.best
    objective, bound = best.in_own(best.objective), best.in_own(best.bound)
    if objective is not None:
        refute_bound(search, search.engine, bound, objective, search.best.solution)
    search.info.update(search.best.decided_by)
    if search.best.proven:
        status, termination, bound = Status.OPTIMAL, Termination.PROVEN, objective
    if status is None:
        status = Status.UNKNOWN if objective is None else Status.FEASIBLE
        if termination is Termination.PROVEN and search.model.restriction:  # the engine's proof was of the model
            termination = Termination.FINISHED
        if termination is Termination.PROVEN or (termination is Termination.GAP_LIMIT and not relative_gap):
            termination = Termination.FINISHED  # the engine's proof was of a point that the checker scores worse
            search.info["reason"] = "what is left between value and bound is the rounding of the model's numbers"
    if search.cuts:
        search.info["cut off"] = search.cuts
    return Result(
        status=status,
        objective=objective,
        bound=bound if status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN) else None,
        solution=search.best.solution,
        termination=termination,
        build_seconds=build_seconds,
        solve_seconds=solve_seconds,
        engine=search.engine.name,
        engine_version=version,
        info=search.info,
    )


def _first_feasible(
    check: Check, start: Solution | None, fallback: Callable[[], Solution | None] | None = None
) -> tuple[Solution, float] | None:
    """The start, or else what the fallback finds, with the checker's objective; None where neither is feasible."""
    if start is not None:
        report = check(start)
        if report.feasible and report.objective is not None:
            return start, float(report.objective)
    return None if fallback is None else _first_feasible(check, fallback())


def _unsolved(
    solver: Engine,
    version: str,
    termination: Termination,
    began: float,
    known: tuple[Solution, float] | None,
    info: dict[str, Any],
) -> Result:
    """The result where the engine never ran."""
    return Result(
        Status.UNKNOWN if known is None else Status.FEASIBLE,
        objective=None if known is None else known[1],
        solution=None if known is None else known[0],
        termination=termination,
        build_seconds=time.monotonic() - began,
        solve_seconds=0.0,
        engine=solver.name,
        engine_version=version,
        info=info,
    )
