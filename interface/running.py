"""What surrounds a run of a method: imports before the clock starts, a start that is never lost, Ctrl-C."""

from __future__ import annotations

from dataclasses import replace

from schedgap.catalogue.methods import is_users
from schedgap.catalogue.problem import Kind, Method, Problem, resolve
from schedgap.formulations.common.errors import Disagreement
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
    resolve(problem.checker)
    resolve(problem.lower_bound)
    if method.kind is Kind.ENGINE:
        from schedgap.solvers import declarative  # noqa: F401
        from schedgap.solvers.engines import engine

        engine(method.function)
        resolve(problem.model)
        if problem.model_size:
            resolve(problem.model_size)
    elif not is_users(method.id):
        _ = method.call


def warm_up(problem: Problem, method: Method) -> None:
    """Compile what `method` needs, or load it from the cache, so that a time limit does not pay for it.

    Runs the method on the first instance of the problem's first preset, which takes about 0.1 s once everything
    is compiled. Engines on the declarative model have nothing to compile.
    """
    if method.kind is Kind.ENGINE or is_users(method.id) or not problem.presets:
        return
    from schedgap.catalogue.run import run_method

    preset = problem.presets[0]
    instance: Instance = resolve(preset.function)(0, **preset.settings)
    problem.bound(instance)
    if problem.warm_up:
        resolve(problem.warm_up)(instance)
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
