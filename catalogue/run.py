"""One method on one instance: run it, let the checker score it, put a certified bound beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from schedgap.catalogue.agreement import (
    DISAGREEMENTS,
    Check,
    best_accepted,
    tighter,
    written,
)
from schedgap.catalogue.method import Function, Kind, Method, check_signature, last_line_of, one_line, users_code
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_method, method_settings
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.compiled import first_use
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import Disagreement, EngineMissing, InputError, RejectedSolution
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import agrees
from schedgap.formulations.common.options import keywords
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.solvers.budget import Budget, OutOfBudgetError
from schedgap.solvers.engines import engine
from schedgap.solvers.incumbent import contradicts, optimal
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status, Termination, clock

GRACE, SHARE_OF_GRACE = 0.5, 0.04
"""Seconds and share of the time limit after which a method that has not ended by itself is ended."""
LAST_GRACE = 0.4
"""Seconds for a quick solution after that."""
PATIENCE = 60.0
"""The same where memory was the limit."""
_SECONDS_NOTED = 0.001
"""Seconds of interpreted kernels from which on a result says so."""

T = TypeVar("T")


def run_method(
    # problem, instance: what to solve
    problem: Problem,
    instance: Instance,
    # a method's id, a user's ``package.module:function``, a callable, or a method itself
    method: str | Method | Function,
    options: SolveOptions,  # limits, seed, threads; a heuristic is given the seed, and the deadline where it takes one
    settings: Mapping[str, object] | None = None,  # options of the method, as text or as values
    *,
    disagreements: Path = DISAGREEMENTS,  # the directory an instance is written to when parts disagree
    # what :func:`checker_of` made, where the caller has asked it already (about the start, say)
    check: Check | None = None,
) -> Result:
    """Run one method on one instance.

    Whoever made a solution, the problem's checker scores it, and the result's objective is the checker's.
    The certified bound of the problem stands beside whatever bound the method proves itself (``info`` says
    ``"bound_from": "certified"`` where it is the better one); a solution that meets it is optimal.

    Raises
    ------
    InputError
        Unknown method or option; a user's heuristic that cannot be imported, raises, or returns something
        that is not a feasible solution.
    Disagreement
        A method of ours returned a solution that the checker rejects, an objective that the checker does
        not confirm, or one better than a proven bound.
    """
    chosen = find_method(problem, method)
    given = method_settings(chosen, settings)
    check = checker_of(problem, instance) if check is None else check
    known: list[Solution] = [] if options.start is None else [options.start]
    interpreted = first_use.seconds()
    least, left = problem.first_seconds(instance), options.deadline.remaining()
    if left is not None and left < least and not known:
        reason = f"a first schedule and its check take at least {least:.0f} s here, {left:.3g} s are left"
        return Result(Status.UNKNOWN, termination=Termination.TIME_LIMIT, solve_seconds=0.0, info={"reason": reason})
    try:

        def work(own: SolveOptions) -> Result:
            return _run(problem, instance, chosen, own, given, check)

        result = _within_budget(problem, instance, chosen, options, check, known, work)
        interpreted = first_use.seconds() - interpreted
        if interpreted > _SECONDS_NOTED:
            result = replace(result, info={**result.info, "interpreted_seconds": round(interpreted, 3)})
        if chosen.kind is Kind.HEURISTIC:
            return result
        if result.solution is not None:
            known.append(result.solution)
        return _apply_certified_bound(problem, instance, _rescored(problem, chosen, result, check))
    except Disagreement as error:
        candidates = [] if chosen.outside_model else [*known, error.solution]
        raise written(error, instance, candidates, check, problem.sense, disagreements) from error


def load(problem: Problem, method: Method) -> None:
    """Import what a method runs, before a clock starts; an engine that is not there tells so when it is asked."""
    problem.import_parts()
    if method.kind is Kind.ENGINE:
        import schedgap.solvers.engines.declarative  # noqa: F401

        with suppress(EngineMissing):
            engine(method.id)
        return
    _ = method.call
    if method.kind is not Kind.HEURISTIC:  # most of them start from the best of the heuristics
        for heuristic in problem.heuristics():
            _ = None if heuristic.is_user_defined else heuristic.call


def checker_of(problem: Problem, instance: Instance) -> Check:
    """The problem's checker for the instance, which is asked only once about each solution."""
    known: dict[str, CheckReport] = {}

    def check(solution: Solution) -> CheckReport:
        name = json.dumps(solution, sort_keys=True, default=repr)
        if name not in known:
            known[name] = problem.check(instance, solution)
        return known[name]

    return check


def _within_budget(
    problem: Problem,
    instance: Instance,
    method: Method,
    options: SolveOptions,
    check: Check,
    known: list[Solution],  # begins with the start, where there is one, and keeps what the method reports last
    work: Callable[[SolveOptions], Result],  # the method itself
) -> Result:
    """The result of a method; what it has, or else a quick solution, where its time or memory is over."""
    result: Result | None = None
    scored: float | None = None  # the objective of the solution that was reported last
    bounded = options.deadline.moment is None or method.kind is Kind.HEURISTIC
    reports_bound = method.started is not None or method.kind is Kind.ENGINE
    tell = options.report

    def report(solution: Solution | None, objective: float | None, bound: float | None) -> None:
        nonlocal bounded, scored
        bounded = bounded or bound is not None
        if solution is not None:
            known[:], scored = [solution], objective
        if tell is not None:
            tell(solution, objective, bound)

    budget = Budget(options.deadline, grace=GRACE, share=SHARE_OF_GRACE, memory=options.memory_limit)
    try:
        with budget:
            if options.deadline.moment is not None:
                if method.kind is Kind.EXACT and not known:  # checked now: at the end there is no time for that either
                    accepted = best_accepted([problem.quick(instance)], check, problem.sense)
                    known.extend([] if accepted is None else [accepted[0]])
                if not (bounded or reports_bound):  # at the end there is no time for it
                    problem.certified_bound(instance)
                    bounded = True
            result = work(replace(options, report=report))
    except OutOfBudgetError:  # nothing in it took this for Ctrl-C
        budget.end()
    cut = result is None
    result = result or Result(Status.UNKNOWN)
    if budget.over is None or result.termination is Termination.PROVEN:
        return result
    info = {"reason": budget.reason, **result.info} | ({} if bounded else {"unbounded": True})
    result = replace(result, termination=budget.over, info=info)
    if result.solution is not None:
        return result
    seconds = LAST_GRACE if budget.over is Termination.TIME_LIMIT else PATIENCE
    if method.kind is Kind.HEURISTIC:
        if cut and not method.outside_model:  # the bound comes after it, and was not begun
            return replace(result, bound=_quickly(lambda: problem.certified_bound(instance), seconds))
        return result

    def quick() -> tuple[Solution, float] | None:
        if known and scored is not None:  # whoever reports it has asked the checker
            return known[0], scored
        return best_accepted([known[0] if known else problem.quick(instance)], check, problem.sense)

    last = _quickly(quick, seconds)
    if last is None:
        return result
    return replace(result, status=Status.FEASIBLE, objective=last[1], solution=last[0])


def _quickly(work: Callable[[], T], seconds: float) -> T | None:
    """What a call returns; None where it takes longer."""
    found: T | None = None
    budget = Budget(Deadline.after(seconds))
    try:
        with budget:
            found = work()
    except OutOfBudgetError:
        budget.end()
    return found


def _run(
    problem: Problem,
    instance: Instance,
    method: Method,
    options: SolveOptions,
    settings: Mapping[str, Any],
    check: Check,
) -> Result:
    if method.kind is Kind.HEURISTIC:
        return run_heuristic(problem, instance, method, options, settings, check)
    if method.kind is Kind.ENGINE:

        def alone(given: Instance, own: SolveOptions) -> Result:
            return _run_engine(problem, given, method, own, check)

        return problem.started_within_limits(alone)(instance, options)
    return _run_exact(method, instance, options, settings)


def _run_exact(method: Method, instance: Instance, options: SolveOptions, settings: Mapping[str, Any]) -> Result:
    began = clock()
    result = method.call(instance, options, **keywords(settings))
    if not isinstance(result, Result):
        raise TypeError(f"exact method {method.id}: must return a Result, got {type(result).__name__}")
    return result if result.seconds is not None else replace(result, solve_seconds=clock() - began)


def _run_engine(problem: Problem, instance: Instance, method: Method, options: SolveOptions, check: Check) -> Result:
    from schedgap.solvers.engines.declarative import solve_declarative

    def build() -> DeclarativeModel:
        model = problem.model(instance)
        if model is None:
            raise InputError(f"method {method.id}: {problem.id} has no declarative model")
        return model

    size = problem.model_size(instance)
    return solve_declarative(build, method.id, options, check, size, lambda: problem.quick(instance))


def _rescored(problem: Problem, method: Method, result: Result, check: Check) -> Result:
    """The result of an exact method with the checker's objective; a real mismatch is a Disagreement."""
    if result.solution is None:
        return result
    try:
        report = check(result.solution)
    except InputError as error:
        raise Disagreement(f"the checker cannot read the solution of {method.id}: {error}") from error
    objective = _objective(report, f"the solution of {method.id}")
    if result.objective is not None and not agrees(result.objective, objective):
        raise Disagreement(
            f"{method.id} reports objective {result.objective:.12g}, the checker computes {objective:.12g}"
        )
    _not_beyond(method.id, objective, result.bound, problem.sense, "its own bound")
    return replace(result, objective=objective)


def _apply_certified_bound(problem: Problem, instance: Instance, result: Result) -> Result:
    """The result with the certified bound where that is better than the method's own."""
    if result.info.get("relaxation") or result.info.get("unbounded"):  # its own value, or no time for a certified one
        return result
    if result.status not in (Status.FEASIBLE, Status.UNKNOWN):
        if result.status is Status.OPTIMAL:
            _not_beyond("the optimum", result.objective, problem.certified_bound(instance), problem.sense)
        return result
    certified = problem.certified_bound(instance)
    bound = tighter(result.bound, certified, problem.sense)
    _not_beyond("the solution found", result.objective, certified, problem.sense)
    if bound is None or bound == result.bound:
        return result
    met = optimal(result.objective, bound, problem.sense)
    return replace(
        result,
        bound=bound,
        status=Status.OPTIMAL if met else result.status,
        info={**result.info, "bound_from": "certified", "own_bound": result.bound},
    )


def run_heuristic(
    problem: Problem,
    instance: Instance,
    method: Method,
    options: SolveOptions,
    settings: Mapping[str, object],
    check: Check | None = None,
) -> Result:
    """A heuristic's result with `settings` passed on as they are, which may be more than ``--set`` can say.

    Raises
    ------
    InputError, Disagreement
        As :func:`run_method`, but no file is written.
    """
    users, call = method.is_user_defined, method.call
    # What a user's method changes is a copy: the checker and other methods do not see it.
    handed = type(instance).parse(instance.to_dict()) if users else instance
    given: dict[str, Any] = {**keywords(settings), "seed": options.seed}
    if method.has_keyword("deadline"):
        given["deadline"] = options.deadline
    if users:
        check_signature(call, f"method {method.id}", given)
    began = clock()
    try:
        with users_code() if users else nullcontext():
            answer = call(handed, **given)
    except (Exception, SystemExit) as error:
        if users:  # a user's code may raise anything; it is their error, told in one line
            place = last_line_of(error)
            raise InputError(f"method {method.id}: raised {one_line(error)}{place}") from error
        raise
    seconds = clock() - began
    run = _run_of(answer, method)
    info = dict(run.info)
    outside = method.outside_model or bool(info.get("outside_model"))
    if outside:
        return _outside(instance, method, run, {**info, "outside_model": True}, seconds)
    try:
        bound = tighter(run.bound, problem.certified_bound(instance), problem.sense)
    except OutOfBudgetError:  # its schedule was there first
        bound = run.bound
    stopped = info.get("stopped") == "time limit"
    if run.solution is None:
        late = stopped or options.deadline.passed
        return Result(
            Status.UNKNOWN,
            bound=bound,
            termination=Termination.TIME_LIMIT if late else Termination.FINISHED,
            solve_seconds=seconds,
            info=info,
        )
    objective = _scored(problem, method, run.solution, users, check or checker_of(problem, instance))
    try:
        _not_beyond(method.id, objective, bound, problem.sense)
    except Disagreement as error:
        error.solution = run.solution
        raise
    met = optimal(objective, bound, problem.sense)
    if info.get("stopped") and not met:
        info.setdefault("reason", f"cut ({info['stopped']}): the whole algorithm may make something else")
    return Result(
        Status.OPTIMAL if met else Status.FEASIBLE,
        objective=objective,
        bound=bound,
        solution=run.solution,
        termination=Termination.PROVEN if met else Termination.TIME_LIMIT if stopped else Termination.FINISHED,
        solve_seconds=seconds,
        info=info,
    )


def _run_of(answer: object, method: Method) -> HeuristicRun:
    """A heuristic's answer as a run; a user's own may be the bare solution.

    Raises InputError: it is neither, nor None.
    """
    if isinstance(answer, HeuristicRun):
        return answer
    if answer is None or isinstance(answer, Mapping):
        return HeuristicRun(None if answer is None else dict(answer))
    raise InputError(f"method {method.id}: must return a solution object or None, got {type(answer).__name__}")


def _outside(instance: Instance, method: Method, run: HeuristicRun, info: Mapping[str, Any], seconds: float) -> Result:
    """A schedule outside the model: scored by its own checker or its own metrics, never optimal, no ratio."""
    objective = None
    if run.solution is not None and method.checker is not None:
        report = method.checker()(instance, run.solution)
        objective = _objective(report, f"the solution of {method.id}")
    elif isinstance(info.get("objective"), int | float):
        objective = float(info["objective"])
    found = run.solution is not None
    return Result(
        Status.FEASIBLE if found else Status.UNKNOWN,
        objective=objective,
        bound=run.bound,
        solution=run.solution,
        solve_seconds=seconds,
        info=info,
    )


def _scored(problem: Problem, method: Method, solution: Solution, users: bool, check: Check) -> float:
    """The checker's objective of a heuristic's solution; blames a user's heuristic, or ourselves."""
    try:
        return _objective(check(solution), "its solution" if users else f"the solution of {method.id}")
    except InputError as error:
        if users:
            raise InputError(f"method {method.id}: does not return a solution of {problem.id}: {error}") from error
        raise Disagreement(f"the checker cannot read the solution of {method.id}: {error}") from error
    except Disagreement as error:
        if users:
            raise RejectedSolution(f"method {method.id}: {error}", solution) from error
        raise


def _objective(report: CheckReport, whose: str) -> float:
    """The objective of a feasible report; Disagreement with the first violation otherwise."""
    if report.violations:
        first, more = report.violations[0], len(report.violations) - 1
        rest = f" (and {more} more)" if more else ""
        raise Disagreement(f"{whose} is rejected by the checker: {first.constraint}: {first.message}{rest}")
    if report.objective is None:
        raise Disagreement(f"the checker computes no objective for {whose}")
    return report.value


def _not_beyond(
    who: str, objective: float | None, bound: float | None, sense: int, whose: str = "the certified bound"
) -> None:
    if contradicts(objective, bound, sense):
        raise Disagreement(f"{who}: objective {objective:.12g} is better than {whose} {bound:.12g}")
