"""A declarative model solved by an engine, its answer re-scored by the problem's checker."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import Disagreement, EngineMissing, InputError, ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import RELATIVE_TOLERANCE, agrees
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.answer import Engine, EngineAnswer, rounded_bound
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.engines.dual_bound import exact_bound
from schedgap.solvers.engines.whole import BOUND_TOLERANCE, whole_model
from schedgap.solvers.incumbent import Incumbent, contradicts
from schedgap.solvers.no_good_cuts import TIGHT_TOLERANCE, BrokenRow, add_no_good_cut, worst_broken_row
from schedgap.solvers.result import Result, SolveOptions, Status, Termination
from schedgap.solvers.size import too_large

Check = Callable[[Solution], CheckReport]

ATTEMPTS = 50
"""How often a model is solved again after a solution that missed by tolerance was cut off."""
SECOND = {"highs": ("cpsat", "cbc"), "cbc": ("cpsat", "highs"), "cpsat": ("highs", "cbc")}
"""Engines of other makes to ask where an engine's declared range is exceeded, the most exact one first."""
RELAXATION_SHARE = 0.3
"""Of the time that is left, for the linear relaxation where its bound is the only one that counts."""


@dataclass
class _Search:
    """What is known so far while one model is solved, possibly several times and by several engines."""

    model: DeclarativeModel
    engine: Engine
    check: Check
    best: Incumbent
    cuts: int = 0
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def sense(self) -> int:
        return self.model.sense

    def tighten(self, bound: float | None) -> None:
        """Keep a proven bound when it is the best so far."""
        if bound is not None and self.model.objective_is_integral:
            bound = rounded_bound(bound, self.sense)
        self.best.tighten(bound)

    def tighten_from(self, answer: EngineAnswer) -> None:
        """A bound on the model: one on the problem too, where the engine is believed and the model no restriction."""
        if self.model.restriction:
            if answer.bound is not None:
                self.info["restricted bound"] = answer.bound
        elif not answer.doubt:
            self.tighten(answer.bound)

    def explained(self, checked: float, said: float, answer: EngineAnswer) -> bool:
        """Whether rounding explains that a point is worth `checked` to the checker and `said` to the model."""
        if self.model.objective_is_integral:
            return abs(checked - said) < 0.5
        within = BOUND_TOLERANCE if answer.doubt else RELATIVE_TOLERANCE
        return abs(checked - said) <= within * max(abs(checked), abs(said)) + self.model.resolution + answer.resolution


def solve_declarative(
    build: Callable[[], DeclarativeModel],
    engine_name: str,
    options: SolveOptions,
    check: Check,
    nonzeros: int | None = None,
    fallback: Callable[[], Solution | None] | None = None,
) -> Result:
    """Build a model, solve it, and return what the checker confirms.

    Every solution is re-scored by `check`; its objective is the Result's. A solution that misses by the
    engine's feasibility tolerance is mended (``model.repair``), or the point is cut off and the model solved
    again. With whole-number objectives the bound is rounded to the next whole number. OPTIMAL is returned
    only when the bound meets the checker's objective. A feasible ``options.start`` is never lost, nor are
    the start and the bound that the model's builder knows; the engine starts from the better solution. Of a model
    that is a restriction of the problem only solutions count, and its builder's bound.

    Parameters
    ----------
    build : builds the model; its time counts against the deadline
    engine_name : "cbc", "highs" or "cpsat"
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
    if nonzeros is not None and (reason := too_large(nonzeros, options.deadline, solver.handover_cost)):
        known = _first_feasible(check, options.start, fallback)
        info = {"nonzeros": nonzeros, "reason": reason}
        return _unsolved(solver, version, Termination.TOO_LARGE, began, known, info)
    try:
        model = _built(build)
    except KeyboardInterrupt:
        return _unsolved(solver, version, Termination.INTERRUPTED, began, _first_feasible(check, options.start), {})
    built = time.monotonic()
    search = _Search(model, solver, check, Incumbent(model.sense))
    for start in (options.start, model.start):
        if start is not None:
            _take_start(search, start)
    if search.best.solution is not None:
        options = replace(options, start=search.best.solution)
    search.tighten(model.bound)
    try:
        if options.deadline.moment is not None and not model.restriction:
            _bound_beforehand(search, options)
        status, termination = _solve(search, options)
    except KeyboardInterrupt:  # between native runs, or in a relaxation; engines handle it during their own
        status, termination = None, Termination.INTERRUPTED
    return _result(search, status, termination, version, built - began, time.monotonic() - built)


def _built(build: Callable[[], DeclarativeModel]) -> DeclarativeModel:
    """Build without cycle collection, which would walk the growing model again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return build()
    finally:
        if collecting:
            gc.enable()


def _take_start(search: _Search, start: Solution) -> None:
    report = search.check(start)
    if report.feasible and report.objective is not None:
        search.best.accept(start, float(report.objective))


def _bound_beforehand(search: _Search, options: SolveOptions) -> None:
    """The exact bound of the linear relaxation, where the engine's own would not count and time may run out."""
    whole = whole_model(model_arrays(search.model))
    left = options.deadline.left()
    if left and not whole.arrays.contradiction and search.engine.limits.exceeded(whole):
        search.tighten(exact_bound(whole, options.deadline.capped(RELAXATION_SHARE * left)))


def _solve(search: _Search, options: SolveOptions) -> tuple[Status | None, Termination]:
    """Solve until the answer stands. The status where one was proven without a solution."""
    answer, termination = _run(search, search.engine, options)
    if answer is None or search.model.restriction or not answer.doubt:
        return (None if answer is None else _without_solution(search, answer)), termination
    search.info["doubt"] = answer.doubt
    failed = termination is Termination.FAILED  # the engine contradicts itself, as it may out of its range
    if not answer.claimed and not failed and answer.status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        return None, termination
    if options.deadline.moment is None and search.best.solution is not None:  # else it is known already
        search.tighten(exact_bound(whole_model(model_arrays(search.model)), options.deadline))
    if search.best.proven:
        search.info["proof"] = "exact bound"
        return None, Termination.PROVEN
    first = None if answer.values is None else _scored(search, answer)
    status, termination = _second_opinion(search, options, answer, first)
    if status is not None or search.best.proven:
        return status, Termination.PROVEN
    return None, Termination.TIME_LIMIT if options.deadline.passed else termination


def _second_opinion(
    search: _Search, options: SolveOptions, answer: EngineAnswer, first: float | None
) -> tuple[Status | None, Termination]:
    """What an engine of another make says of an answer that its engine cannot prove alone.

    What it proves is learned; where both are in doubt, they must agree.

    Parameters
    ----------
    first : the checker's objective of the first answer's own point

    Returns
    -------
    (status that was proven without a solution, why the engine stopped)
    """
    for name in SECOND.get(search.engine.name, ()):
        try:
            hint = options.start if name == "cpsat" else None  # a start would make an engine in doubt agree
            second, termination = _run(search, engine(name), replace(options, start=hint, log=None))
        except (EngineMissing, ModelRefused):
            continue
        if second is None:
            return None, termination
        search.info["second engine"] = name
        checked = None if second.values is None else _scored(search, second)
        same_value = first is not None and checked is not None and agrees(first, checked)
        without = second.status is answer.status and second.status in (Status.INFEASIBLE, Status.UNBOUNDED)
        if not second.doubt:
            search.info["proof"] = "agreed" if same_value or without else "claimed"
            return _without_solution(search, second), termination
        if same_value and second.claimed:
            search.info["proof"] = "agreed"
            search.tighten(first)
        elif without and search.best.solution is None:
            search.info["proof"] = "agreed"
            return second.status, termination
        return None, termination
    return None, Termination.FINISHED


def _scored(search: _Search, answer: EngineAnswer) -> float | None:
    """The checker's objective of the answer's own point; None where it is not feasible."""
    try:
        report = search.check(search.model.extract(answer.value))
    except (InputError, ValueError):
        return None
    return float(report.objective) if report.feasible and report.objective is not None else None


def _without_solution(search: _Search, answer: EngineAnswer) -> Status | None:
    """The status of an answer that proves that there is no solution, or no bounded one."""
    if answer.status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        return Status.ERROR if answer.status is Status.ERROR and search.best.solution is None else None
    if search.model.restriction and answer.status is Status.INFEASIBLE:
        return None
    _refute_by_solution(search, answer)
    return answer.status


def _run(search: _Search, solver: Engine, options: SolveOptions) -> tuple[EngineAnswer | None, Termination]:
    """Run one engine until its answer stands: the answer, or None where a limit came first, and why it ended."""
    for attempt in range(ATTEMPTS):
        if options.deadline.passed:
            return None, Termination.TIME_LIMIT
        answer = solver.solve(search.model, options)
        search.info.update(answer.info)
        if answer.nodes is not None:
            search.info["nodes"] = search.info.get("nodes", 0) + answer.nodes
        if answer.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            restricted = search.model.restriction and answer.status is Status.INFEASIBLE
            return answer, Termination.FINISHED if restricted else answer.termination
        if answer.status is Status.ERROR:
            return answer, answer.termination
        broken = None if answer.values is None else _judge(search, solver, answer)
        search.tighten_from(answer)  # tolerances only add points, so the bound holds whatever the point misses
        if broken is None:
            return answer, answer.termination
        if not (answer.claimed or answer.status is Status.OPTIMAL or answer.termination is Termination.GAP_LIMIT):
            return answer, answer.termination
        after = _after_broken_row(search, solver, broken, options, answer, attempt)
        if after is None:
            return replace(answer, claimed=False), Termination.FAILED
        options = after
    return None, Termination.FAILED


def _judge(search: _Search, solver: Engine, answer: EngineAnswer) -> BrokenRow | None:
    """Accept the answer's solution, or say by what it misses.

    Raises
    ------
    Disagreement
        Model and checker contradict each other at a point that satisfies the model.
    """
    assert answer.objective is not None
    assert answer.values is not None
    try:
        solution = search.model.extract(answer.value)
    except ValueError as error:
        broken = worst_broken_row(search.model, answer.values)
        if broken is None:
            raise disagreement(solver, f"engine {solver.name}: {error}", None) from error
        return broken
    try:
        report = search.check(solution)
    except InputError as error:
        raise disagreement(solver, f"engine {solver.name}: malformed solution: {error}", solution) from error
    checked = None if report.objective is None else float(report.objective)
    if report.feasible and checked is not None:
        search.best.accept(solution, checked)
        if search.sense * (checked - answer.objective) <= 0 or search.explained(checked, answer.objective, answer):
            if not (search.model.restriction or answer.doubt):
                _refute_bound(search, solver, answer.bound, checked, solution)
            return None
    broken = worst_broken_row(search.model, answer.values)
    violations = [violation.message for violation in report.violations]
    if broken is None or (broken.amount > broken.allowed and not answer.doubt):
        why = "; ".join(violations[:3]) or f"objective {checked:.12g} where the model says {answer.objective:.12g}"
        if broken is not None:
            why += f"; the engine's point misses row {broken.row} by {broken.amount:.3g}"
        raise disagreement(
            solver,
            f"engine {solver.name} and checker disagree: {why}",
            solution,
            objective=answer.objective,
            checked_objective=checked,
            violations=violations,
        )
    if search.model.repair is not None and not report.feasible:
        mended = search.model.repair(solution)
        if mended is not None:
            again = search.check(mended)
            if again.feasible and again.objective is not None:
                search.best.accept(mended, float(again.objective))
                if search.explained(float(again.objective), answer.objective, answer):
                    return None
    return broken


def _refute_bound(
    search: _Search, solver: Engine, bound: float | None, objective: float, solution: Solution | None
) -> None:
    """No confirmed solution may be better than a bound that is believed."""
    if bound is not None and search.model.objective_is_integral:
        bound = rounded_bound(bound, search.sense)
    if contradicts(objective, bound, search.sense):
        raise disagreement(
            solver,
            f"engine {solver.name} proves the bound {bound:.12g}, the checker confirms a solution of {objective:.12g}",
            solution,
            objective=objective,
            bound=bound,
        )


def _after_broken_row(
    search: _Search, solver: Engine, broken: BrokenRow, options: SolveOptions, answer: EngineAnswer, attempt: int
) -> SolveOptions | None:
    """Make the next attempt differ: the point cut off, or a tighter tolerance; None where doubt is left."""
    if add_no_good_cut(search.model, broken, search.cuts):
        search.cuts += 1
        return options
    if options.feasibility_tolerance is None:
        return replace(options, feasibility_tolerance=TIGHT_TOLERANCE)
    if answer.doubt:
        return None
    raise disagreement(
        solver,
        f"engine {solver.name}: row {broken.row} is missed by {broken.amount:.3g} even with the tightest tolerance",
        None,
    )


def disagreement(solver: Engine, message: str, solution: Solution | None, **details: Any) -> Disagreement:
    """The error, with what is needed to reproduce it."""
    return Disagreement(message, solution=solution, details={"engine": solver.name, **details})


def _refute_by_solution(search: _Search, answer: EngineAnswer) -> None:
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
    search: _Search,
    status: Status | None,
    termination: Termination,
    version: str,
    build_seconds: float,
    solve_seconds: float,
) -> Result:
    best = search.best
    objective, bound = best.in_own(best.objective), best.in_own(best.bound)
    if objective is not None:
        _refute_bound(search, search.engine, bound, objective, search.best.solution)
    if search.best.proven:
        status, termination, bound = Status.OPTIMAL, Termination.PROVEN, objective
    if status is None:
        status = Status.UNKNOWN if objective is None else Status.FEASIBLE
        if termination is Termination.PROVEN and search.model.restriction:  # the engine's proof was of the model
            termination = Termination.FINISHED
        if termination is Termination.PROVEN:  # the engine's proof was of a point that the checker scores worse
            termination = Termination.GAP_LIMIT
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
