"""What surrounds a run of a method: imports before the clock starts, a start that is never lost, Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import better
from schedgap.solvers.result import Result, SolveOptions, Status, Termination


def preload(problem: Problem, method: Method) -> None:
    """Import what `method` needs, so that a time limit does not pay for it.

    Raises
    ------
    EngineMissing
        The method's engine is not installed, or does not load here.
    """
    if method.kind is Kind.ENGINE:
        from schedgap.solvers import declarative  # noqa: F401
        from schedgap.solvers.engines import engine

        engine(method.id)
    elif not method.users:
        _ = method.call
    for preset in workload_of(problem).presets[:1]:
        instance = preset.generator(0, **preset.settings)
        problem.bound(instance)
        with suppress(InputError):  # an empty solution: the checker is imported
            problem.check(instance, {})
        if method.kind is Kind.ENGINE:
            problem.model_size(instance)
            problem.model(instance)


def warm_up(problem: Problem, method: Method) -> None:
    """Compile what `method` needs, or load it from the cache, so that a time limit does not pay for it.

    Runs the method on the first instance of the problem's first preset, which takes about 0.1 s once everything
    is compiled. Engines on the declarative model have nothing to compile.
    """
    if method.kind is Kind.ENGINE or method.users:
        return
    from schedgap.catalogue.run import run_method

    for preset in workload_of(problem).presets[:1]:
        instance = preset.generator(0, **preset.settings)
        problem.bound(instance)
        problem.warm_up(instance)
        run_method(problem, instance, method, SolveOptions(threads=1, work_limit=1.0))


def not_worse(problem: Problem, instance: Instance, result: Result, solution: Solution, objective: float) -> Result:
    """The result, or the start where that is better than what was found."""
    if result.status in (Status.INFEASIBLE, Status.UNBOUNDED):
        from schedgap.catalogue.agreement import write_disagreement

        path = write_disagreement(instance)
        raise Disagreement(
            f"the start has objective {objective:.9g}, but the instance is claimed {result.status}; it is in {path}"
        )
    if result.objective is not None and not better(objective, result.objective, problem.sense):
        return result
    info = {**result.info, "solution_from": "start"}
    return replace(result, status=Status.FEASIBLE, objective=objective, solution=solution, info=info)


def interrupted(
    problem: Problem, instance: Instance, best: Solution | None, bound: float | None, seconds: float
) -> Result:
    """The result of a run that Ctrl-C ended from outside the method: the best it had told of, scored by the checker.

    Parameters
    ----------
    best, bound : what the method reported last, or None
    seconds : since the start
    """
    objective = None
    if best is not None:
        report = problem.check(instance, best)
        objective = None if report.violations or report.objective is None else float(report.objective)
    found = objective is not None
    return Result(
        Status.FEASIBLE if found else Status.UNKNOWN,
        objective=objective,
        bound=bound,
        solution=best if found else None,
        termination=Termination.INTERRUPTED,
        solve_seconds=seconds,
    )
