"""The one table that ties a problem to its parts: a row per problem, written out in its file of catalogue/."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedgap.catalogue import comm_contention, ddl_cluster, ddljs, g_vne, gpu_sharing, hadar, rar_ddls
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, read_json

_ROWS = (rar_ddls, hadar, gpu_sharing, comm_contention, ddl_cluster, g_vne, ddljs)
PROBLEMS: Mapping[str, Problem] = {row.PROBLEM.id: row.PROBLEM for row in _ROWS}


def find_problem(problem_id: object, source: str = "problem") -> Problem:
    """The problem with this id.

    Raises
    ------
    InputError
        There is none; the line lists those that there are.
    """
    if isinstance(problem_id, str) and problem_id in PROBLEMS:
        return PROBLEMS[problem_id]
    known = ", ".join(PROBLEMS)
    raise InputError(f"{source}: unknown problem {problem_id!r}, one of: {known}")


def parse_instance(data: Any, source: str = "instance") -> tuple[Problem, Instance]:
    """The problem and the validated instance that a decoded JSON object describes.

    Raises
    ------
    InputError
        One line that names the source, the path in it and the value.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: an instance must be a JSON object, got {type(data).__name__}")
    if "problem" not in data:
        raise InputError(f"{source}: problem: is missing (one of: {', '.join(PROBLEMS)})")
    problem = find_problem(data["problem"], f"{source}: problem")
    return problem, problem.instance_class.parse(data, source)


def load_instance(path: str | Path, text: str | None = None) -> tuple[Problem, Instance]:
    """Read an instance file, or the `text` that was read from it already.

    Raises
    ------
    InputError
        The file cannot be read, is not JSON, or is not a valid instance.
    """
    return parse_instance(read_json(path, text), str(path))
