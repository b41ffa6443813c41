"""Problems and methods by id, by entry point, or handed over as objects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from schedgap.catalogue import comm_contention, ddl_cluster, ddljs, g_vne, gpu_sharing, hadar, rar_ddls
from schedgap.catalogue.method import Function, Kind, Method
from schedgap.catalogue.problem import Problem, ProblemOf
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Instance, read_json

BUILT_IN = (rar_ddls, hadar, gpu_sharing, comm_contention, ddl_cluster, g_vne, ddljs)
PROBLEM_GROUP = "schedgap.problems"
"""Entry points of other packages: ``name = "package.module:Problem"``, a subclass of ProblemOf or an object of one."""
METHOD_GROUP = "schedgap.methods"
"""Entry points of other packages: ``"PROBLEM/METHOD" = "package.module:function"``."""


class _Installed:
    """The `load` of a method that another package registers."""

    def __init__(self, entry: EntryPoint) -> None:
        self.entry = entry

    def __call__(self) -> Mapping[str, Function]:
        """Its one function.

        Raises
        ------
        InputError
            The package's code cannot be imported.
        """
        try:
            return {self.entry.name.partition("/")[2]: self.entry.load()}
        except Exception as error:
            raise InputError(f"entry point {self.entry.name}: cannot load {self.entry.value}: {error}") from error


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


@cache
def all_problems() -> Mapping[str, Problem]:
    """Every problem by id: those here, then those that installed packages register, each with its methods.

    Raises
    ------
    InputError
        An installed package registers what is no problem, an id that is taken, or a method of an unknown problem.
    """
    found: dict[str, Problem] = {row.PROBLEM.id: row.PROBLEM for row in BUILT_IN}
    for entry in entry_points(group=PROBLEM_GROUP):
        try:
            loaded = entry.load()
        except Exception as error:
            raise InputError(f"entry point {entry.name}: cannot load {entry.value}: {error}") from error
        made = loaded() if isinstance(loaded, type) else loaded
        if not isinstance(made, ProblemOf):
            raise InputError(f"entry point {entry.name}: {entry.value} is no schedgap problem")
        if made.id in found:
            raise InputError(f"entry point {entry.name}: there is a problem {made.id} already")
        found[made.id] = made
    for entry in entry_points(group=METHOD_GROUP):
        problem_id, _, method_id = entry.name.partition("/")
        if problem_id not in found or not method_id:
            raise InputError(f"entry point {entry.name}: must be PROBLEM/METHOD, problems: {', '.join(found)}")
        if any(method.id == method_id for method in found[problem_id].methods):
            raise InputError(f"entry point {entry.name}: {problem_id} has a method {method_id} already")
        title, source = f"installed with {_owner(entry)}", _owner(entry)
        method = Method(method_id, title, Kind.HEURISTIC, _Installed(entry), source=source, users=True)
        found[problem_id].methods = (*found[problem_id].methods, method)
    return found


def find_problem(problem: object, source: str = "problem") -> Problem:
    """The problem with this id; a problem itself is handed back.

    Raises
    ------
    InputError
        There is none; the line lists those that there are.
    """
    if isinstance(problem, ProblemOf):
        return problem
    if isinstance(problem, str) and problem in all_problems():
        return all_problems()[problem]
    raise InputError(
        f"{source}: unknown problem {problem!r}, one of: {', '.join(all_problems())}" + near(problem, all_problems())
    )


def shown_method(problem: str, method: str) -> str:
    """How tables name a method: :attr:`~schedgap.catalogue.method.Method.shown`, its id where it is not registered."""
    known = all_problems().get(problem)
    return next((own.shown for own in (known.methods if known else ()) if own.id == method), method)


def parse_instance(data: object, source: str = "instance", problem: Problem | None = None) -> tuple[Problem, Instance]:
    """The problem and the validated instance that a decoded JSON object describes.

    Parameters
    ----------
    data : the object
    source : names it in messages
    problem : a problem that is not registered, whose instance is expected

    Raises
    ------
    InputError
        One line that names the source, the path in it and the value.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: an instance must be a JSON object, got {type(data).__name__}")
    if "problem" not in data:
        raise InputError(f"{source}: problem: is missing (one of: {', '.join(all_problems())})")
    if problem is None or data["problem"] != problem.id:
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
