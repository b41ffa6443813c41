"""A declarative model solved by an engine, its answer re-scored by the problem's checker."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import agrees, better
from schedgap.solvers.cut_off import TIGHT_TOLERANCE, Miss, cut_off, worst_miss
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.answer import Engine, EngineAnswer, meets, rounded_bound
from schedgap.solvers.result import Result, SolveOptions, Status, Termination
from schedgap.solvers.size import too_large

Check = Callable[[Solution], CheckReport]

ATTEMPTS = 50
"""How often a model is solved again after a solution that missed by tolerance was cut off."""


@dataclass
class _Search:
    """What is known so far while one model is solved, possibly several times."""

    model: DeclarativeModel
    engine: Engine
    check: Check
    integral: bool
    solution: Solution | None = None
    objective: float | None = None
    bound: float | None = None
    cuts: int = 0
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def sense(self) -> int:
        return self.model.sense

    def offer(self, solution: Solution, objective: float) -> None:
        """Keep a checked solution when it is the best so far."""
        if self.objective is None or self.sense * objective < self.sense * self.objective:
            self.solution, self.objective = solution, objective

    def learn(self, bound: float | None) -> None:
        """Keep a proven bound when it is the best so far."""
        if bound is None:
            return
        if self.integral:
            bound = rounded_bound(bound, self.sense)
        if self.bound is None or self.sense * bound > self.sense * self.bound:
            self.bound = bound

    def learn_of_model(self, bound: float | None) -> None:
        """A bound on the model: one on the problem too, unless the model is a restriction of it."""
        if not self.model.restriction:
            self.learn(bound)
        elif bound is not None:
            self.info["restricted bound"] = bound

    def same(self, a: float, b: float) -> bool:
        """Whether two objective values are the same."""
        return abs(a - b) < 0.5 if self.integral else agrees(a, b)

    def disagreement(self, message: str, solution: Solution | None, **details: Any) -> Disagreement:
        """The error, with what is needed to reproduce it."""
        return Disagreement(message, solution=solution, details={"engine": self.engine.name, **details})


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
    search = _Search(model, solver, check, model.objective_is_integral)
    for start in (options.start, model.start):
        if start is not None:
            _take_start(search, start)
    if search.solution is not None:
        options = replace(options, start=search.solution)
    search.learn(model.bound)
    status, termination = _solve(search, options)
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
        search.offer(start, float(report.objective))


def _solve(search: _Search, options: SolveOptions) -> tuple[Status | None, Termination]:
    """Solve until the engine's answer stands. The status where the engine proved one without a solution."""
    for attempt in range(ATTEMPTS):
        if options.deadline.passed:
            return None, Termination.TIME_LIMIT
        try:
            answer = search.engine.solve(search.model, options)
        except KeyboardInterrupt:  # between two native runs; engines handle it during one
            return None, Termination.INTERRUPTED
        search.info.update(answer.info)
        if answer.nodes is not None:
            search.info["nodes"] = search.info.get("nodes", 0) + answer.nodes
        if answer.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            if search.model.restriction and answer.status is Status.INFEASIBLE:
                return None, Termination.FINISHED
            _refute_by_solution(search, answer)
            return answer.status, answer.termination
        if answer.status is Status.ERROR:
            return (Status.ERROR if search.solution is None else None), answer.termination
        miss = None if answer.values is None else _judge(search, answer)
        if miss is None:
            search.learn_of_model(answer.bound)
            return None, answer.termination
        search.learn_of_model(answer.bound)  # tolerances only add points, so the bound holds without them
        if answer.status is not Status.OPTIMAL and answer.termination is not Termination.GAP_LIMIT:
            return None, answer.termination
        options = _after_miss(search, miss, options, attempt)
    return None, Termination.FAILED


def _judge(search: _Search, answer: EngineAnswer) -> Miss | None:
    """Accept the answer's solution, or say by what it misses.

    Raises
    ------
    Disagreement
        Model and checker contradict each other at a point that satisfies the model.
    """
    assert answer.objective is not None
    assert answer.values is not None
    solution = search.model.extract(answer.value)
    try:
        report = search.check(solution)
    except InputError as error:
        raise search.disagreement(f"engine {search.engine.name}: malformed solution: {error}", solution) from error
    told = None if report.objective is None else float(report.objective)
    if report.feasible and told is not None:
        worse = search.sense * (told - answer.objective) > 0 and not search.same(told, answer.objective)
        if not worse:
            bound = None if search.model.restriction else answer.bound
            if bound is not None and better(told, bound, search.sense) and not search.same(told, bound):
                raise search.disagreement(
                    f"engine {search.engine.name} proves the bound {bound:.10g}, the checker confirms a solution "
                    f"of {told:.10g}",
                    solution,
                    objective=told,
                    bound=bound,
                )
            search.offer(solution, told)
            return None
        search.offer(solution, told)
    miss = worst_miss(search.model, answer.values)
    violations = [violation.message for violation in report.violations]
    if miss is None or miss.amount > miss.allowed:
        why = "; ".join(violations[:3]) or f"objective {told:.10g} where the model says {answer.objective:.10g}"
        if miss is not None:
            why += f"; the engine's point misses row {miss.row} by {miss.amount:.3g}"
        raise search.disagreement(
            f"engine {search.engine.name} and checker disagree: {why}",
            solution,
            objective=answer.objective,
            checked_objective=told,
            violations=violations,
        )
    if search.model.repair is not None and not report.feasible:
        mended = search.model.repair(solution)
        if mended is not None:
            again = search.check(mended)
            if again.feasible and again.objective is not None:
                search.offer(mended, float(again.objective))
                if search.same(float(again.objective), answer.objective):
                    return None
    return miss


def _after_miss(search: _Search, miss: Miss, options: SolveOptions, attempt: int) -> SolveOptions:
    """Make the next attempt differ: the point cut off, or a tighter tolerance."""
    if cut_off(search.model, miss, attempt):
        search.cuts += 1
        return options
    if options.feasibility_tolerance is None:
        return replace(options, feasibility_tolerance=TIGHT_TOLERANCE)
    raise search.disagreement(
        f"engine {search.engine.name}: row {miss.row} is missed by {miss.amount:.3g} even with the tightest tolerance",
        None,
    )


def _refute_by_solution(search: _Search, answer: EngineAnswer) -> None:
    """No solution may be known where the engine proves that there is none."""
    if answer.status is Status.INFEASIBLE and search.solution is not None:
        raise search.disagreement(
            f"engine {search.engine.name} proves infeasibility, the checker confirms a solution "
            f"of {search.objective:.10g}",
            search.solution,
            objective=search.objective,
        )


def _result(
    search: _Search,
    status: Status | None,
    termination: Termination,
    version: str,
    build_seconds: float,
    solve_seconds: float,
) -> Result:
    objective, bound = search.objective, search.bound
    if objective is not None and bound is not None:
        crossed = search.sense * (bound - objective) > 0
        if crossed and not search.same(objective, bound):
            raise search.disagreement(
                f"engine {search.engine.name} proves the bound {bound:.10g}, the checker confirms a solution "
                f"of {objective:.10g}",
                search.solution,
                objective=objective,
                bound=bound,
            )
        if meets(objective, bound, search.sense, search.integral):
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
        solution=search.solution,
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
