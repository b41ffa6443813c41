"""What surrounds a run of a method: a start that is never lost, Ctrl-C."""

from __future__ import annotations

from dataclasses import replace

from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.numbers import better
from schedgap.solvers.result import Result, Status, Termination


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
