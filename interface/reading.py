"""Instances and solutions as a caller gives them: objects, JSON objects, files; instances are the registry's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import InstanceLike as InstanceLike
from schedgap.catalogue.registry import Text as Text
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.registry import as_instance as as_instance
from schedgap.catalogue.registry import read_instance as read_instance
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.errors import near as near
from schedgap.formulations.common.files import bounded as bounded
from schedgap.formulations.common.files import check_writable as check_writable
from schedgap.formulations.common.files import decoded as decoded
from schedgap.formulations.common.files import write_text as write_text
from schedgap.formulations.common.instance import Instance, Json, Solution, read_json
from schedgap.solvers.result import Result

if TYPE_CHECKING:
    from schedgap.catalogue.agreement import Check


SolutionLike = Result | Mapping[str, Json] | str | Path | Text
"""What ``solve`` returns, a bare solution object, the object that ``solve --json`` prints, or the path of a file."""


def name_of(given: InstanceLike | SolutionLike, otherwise: str) -> str:
    """How messages name what was given: the path of its file, or `otherwise`."""
    return str(given) if isinstance(given, str | Path | Text) else otherwise


def read_solution(solution: SolutionLike, problem: Problem) -> Solution:
    """The bare solution object in `solution`: bare itself, or inside the object that ``solve --json`` prints.

    Parameters
    ----------
    solution : the object, or the path of its file
    problem : whose solution is expected

    Raises
    ------
    InputError
        Not JSON, not an object, of another problem, or a result without a solution.
    """
    return read_result(solution, problem)[0]


def read_result(solution: SolutionLike, problem: Problem) -> tuple[Solution, Mapping[str, Json] | None]:
    """The solution of :func:`read_solution`, with the whole object of ``solve --json`` where it was one."""
    source = name_of(solution, "solution")
    data: object
    if isinstance(solution, Result):
        data = solution.to_dict()
    elif isinstance(solution, Text):
        data = read_json(solution.name, solution.content)
    else:
        data = read_json(solution) if isinstance(solution, str | Path) else solution
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: a solution must be a JSON object, got {type(data).__name__}")
    if not ("solution" in data and "status" in data):
        if data.get("problem") in all_problems():
            raise InputError(f"{source}: is an instance of {data['problem']}, not a solution")
        return dict(data), None
    if data.get("problem", problem.id) != problem.id:
        raise InputError(f"{source}: problem: is {data['problem']!r}, the instance is of {problem.id}")
    inner = data["solution"]
    if inner is None:
        raise InputError(f"{source}: solution: is null (status {data['status']}), there is nothing to check")
    if not isinstance(inner, Mapping):
        raise InputError(f"{source}: solution: must be a JSON object, got {type(inner).__name__}")
    return dict(inner), data


def outside_method(problem: Problem, solution: Solution, whole: Mapping[str, object] | None = None) -> Method | None:
    """The method outside the model that made this solution: named in the object of ``solve --json``, or known by a
    key that only its solutions have. None where the problem's own checker is the one to ask."""
    named = None if whole is None else whole.get("method")
    for method in problem.methods:
        if method.checker is not None and (
            method.id == named or (method.solution_key and method.solution_key in solution)
        ):
            return method
    return None


def checked(
    problem: Problem,
    instance: Instance,
    solution: Solution,
    source: str,
    outside: Method | None = None,
    check: Check | None = None,
) -> CheckReport:
    """The checker's report; what is malformed is told with `source`, the file it came from.

    Parameters
    ----------
    outside : the method whose own checker is asked instead of the problem's
    check : the problem's checker for the instance, where there is one that remembers

    Raises
    ------
    InputError
        The solution is malformed.
    """
    try:
        if outside is not None and outside.checker is not None:
            return outside.checker()(instance, solution)
        other = outside_method(problem, solution)
        if other is not None:
            raise InputError(f"is a schedule outside the model, as of {other.id}: only check reads those")
        return problem.check(instance, solution) if check is None else check(solution)
    except InputError as error:
        raise InputError(f"{source}: {str(error).removeprefix('solution: ')}") from None


def feasible_start(
    problem: Problem, instance: Instance, solution: Solution, source: str, check: Check | None = None
) -> float:
    """The objective of a start; one that the checker rejects is bad input.

    Raises
    ------
    InputError
        Malformed, or not feasible: the line names the first violated constraint.
    """
    report = checked(problem, instance, solution, source, check=check)
    if report.violations:
        raise InputError(f"{source}: not a feasible start: {report.violations[0].message}")
    if report.objective is None:
        raise InputError(f"{source}: not a feasible start: it has no objective")
    return report.value


def of_tools(name: str) -> Any:
    """The function that an installed tool offers under this name (entry points of ``schedgap.functions``).

    Raises
    ------
    InputError
        No installed tool has it.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group="schedgap.functions", name=name):
        return entry.load()
    raise InputError(f"{name}: the tool that has it is not installed")
