"""Problems, methods and instances as a caller names them: by id, by entry point, as objects or as files."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from schedgap.catalogue.method import SHAPE, Function, Kind, Method, Named, own_method
from schedgap.catalogue.problem import Problem, ProblemOf
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Instance, Json, read_json
from schedgap.formulations.common.options import parse_settings
from schedgap.solvers.engines import installed_engines

_FAMILY = {
    "rar-ddls": "schedgap.catalogue.rar_ddls",
    "hadar": "schedgap.catalogue.hadar",
    "gpu-sharing": "schedgap.catalogue.gpu_sharing",
    "comm-contention": "schedgap.catalogue.comm_contention",
    "ddl-cluster": "schedgap.catalogue.ddl_cluster",
    "g-vne": "schedgap.catalogue.g_vne",
    "ddljs": "schedgap.catalogue.ddljs",
    "gang-placement": "schedgap.catalogue.gang_placement",
}
"""The problems of the family, each with the module whose ``PROBLEM`` it is: one is asked for, one is imported."""
BUILT_IN = {name: module for name, module in _FAMILY.items() if importlib.util.find_spec(module) is not None}
"""The problems whose table is in this checkout: one that somebody takes out leaves the others whole."""
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

        Raises InputError: the package's code cannot be imported.
        """
        try:
            return {self.entry.name.partition("/")[2]: self.entry.load()}
        except Exception as error:
            raise InputError(f"entry point {self.entry.name}: cannot load {self.entry.value}: {error}") from error


def _owner(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value


@cache
def _installed() -> tuple[Mapping[str, Problem], Mapping[str, tuple[Method, ...]]]:
    """Problems of installed packages by id, and the methods that packages give to a problem, by the problem's id."""
    groups = entry_points()
    found: dict[str, Problem] = {}
    for entry in groups.select(group=PROBLEM_GROUP):
        try:
            loaded = entry.load()
        except Exception as error:
            raise InputError(f"entry point {entry.name}: cannot load {entry.value}: {error}") from error
        made = loaded() if isinstance(loaded, type) else loaded
        if not isinstance(made, ProblemOf):
            raise InputError(f"entry point {entry.name}: {entry.value} is no schedgap problem")
        if made.id in found or made.id in BUILT_IN:
            raise InputError(f"entry point {entry.name}: there is a problem {made.id} already")
        found[made.id] = made
    methods: dict[str, tuple[Method, ...]] = {}
    ids = (*BUILT_IN, *found)
    for entry in groups.select(group=METHOD_GROUP):
        problem_id, _, method_id = entry.name.partition("/")
        if problem_id not in ids or not method_id:
            raise InputError(f"entry point {entry.name}: must be PROBLEM/METHOD, problems: {', '.join(ids)}")
        title, source = f"installed with {_owner(entry)}", _owner(entry)
        method = Method(method_id, title, Kind.HEURISTIC, _Installed(entry), source=source, is_user_defined=True)
        methods[problem_id] = (*methods.get(problem_id, ()), method)
    return found, methods


@cache
def _problem(problem_id: str) -> Problem:
    """The problem with an id that there is, with the methods that installed packages give to it."""
    problems, methods = _installed()
    built_in = BUILT_IN.get(problem_id)
    found: Problem = problems[problem_id] if built_in is None else importlib.import_module(built_in).PROBLEM
    found.methods = _with_engines(found.methods)
    for method in methods.get(problem_id, ()):
        if any(known.id == method.id for known in found.methods):
            name = f"{problem_id}/{method.id}"
            raise InputError(f"entry point {name}: {problem_id} has a method {method.id} already")
        found.methods = (*found.methods, method)
    return found


def _with_engines(methods: tuple[Method, ...]) -> tuple[Method, ...]:
    """Engines that are installed from elsewhere behind those that a problem names; none where it names none."""
    known = {method.id for method in methods}
    last = max((place for place, method in enumerate(methods) if method.kind is Kind.ENGINE), default=None)
    if last is None:
        return methods
    further = tuple(
        Method(name, f"declarative model solved by {name} (an engine of the package {_owner(entry)})", Kind.ENGINE)
        for name, entry in installed_engines().items()
        if name not in known
    )
    return (*methods[: last + 1], *further, *methods[last + 1 :])


def problem_ids() -> tuple[str, ...]:
    """The ids of all problems, those of installed packages last; none of the family is imported.

    Raises InputError: an installed package registers what is no problem, an id that is taken, or a method of an unknown
    problem.
    """
    return (*BUILT_IN, *_installed()[0])


@cache
def all_problems() -> Mapping[str, Problem]:
    """Every problem by id, in the order of :func:`problem_ids`, each with its methods; errors as there."""
    return {problem_id: _problem(problem_id) for problem_id in problem_ids()}


def find_problem(problem: object, source: str = "problem") -> Problem:
    """The problem with this id; a problem itself is handed back.

    Raises InputError: there is none; the line lists those that there are.
    """
    if isinstance(problem, ProblemOf):
        return problem
    ids = problem_ids()
    if isinstance(problem, str) and problem in ids:
        return _problem(problem)
    raise InputError(f"{source}: unknown problem {problem!r}, one of: {', '.join(ids)}{near(problem, ids)}")


def find_method(problem: Problem, method: str | Method | Function) -> Method:
    """The method of `problem` that is meant: its id, ``package.module:function``, a callable, or a method itself.

    Raises InputError: there is no such method (the line lists those there are), or a user's module or function is not
    there.
    """
    if isinstance(method, Method):
        return method
    if not isinstance(method, str):
        if not callable(method):
            raise InputError(f"method: must be an id or a callable, got {type(method).__name__}")
        return own_method(method)
    for known in problem.methods:
        if known.id == method:
            return known
    if ":" in method:
        load = Named(method)
        load()
        return Method(method, "a user's own heuristic", Kind.HEURISTIC, load, source="user", is_user_defined=True)
    ids = [known.id for known in problem.methods]
    known_ones = f"one of: {', '.join(ids)}, or {SHAPE}"
    raise InputError(f"method: unknown method {method!r} for {problem.id}, {known_ones}{near(method, ids)}")


def method_settings(method: Method, given: Mapping[str, Json] | None) -> dict[str, Json]:
    """The options in `given`, as text or as values, validated against those the method has.

    Raises InputError: an unknown option or a value out of range.
    """
    return parse_settings(method.options, given or {}, f"method {method.id}") if given else {}


def shown_method(problem: str, method: str) -> str:
    """How tables name a method: :attr:`~schedgap.catalogue.method.Method.shown`, its id where it is not registered."""
    methods = _problem(problem).methods if problem in problem_ids() else ()
    return next((known.shown for known in methods if known.id == method), method)


def parse_instance(data: object, source: str = "instance", problem: Problem | None = None) -> tuple[Problem, Instance]:
    """The problem and the validated instance that a decoded JSON object describes.

    Raises InputError: one line that names the source, the path in it and the value.

    Parameters
    ----------
    data : the object
    source : names it in messages
    problem : a problem that is not registered, whose instance is expected
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{source}: an instance must be a JSON object, got {type(data).__name__}")
    if "solution" in data and "status" in data:
        raise InputError(f"{source}: is a solution, what solve --json prints, not an instance")
    if "problem" not in data:
        raise InputError(f"{source}: problem: is missing (one of: {', '.join(problem_ids())})")
    if problem is None or data["problem"] != problem.id:
        problem = find_problem(data["problem"], f"{source}: problem")
    return problem, problem.instance_class.parse(data, source)


def load_instance(path: str | Path, text: str | None = None) -> tuple[Problem, Instance]:
    """Read an instance file, or the `text` that was read from it already.

    Raises InputError: the file cannot be read, is not JSON, or is not a valid instance.
    """
    return parse_instance(read_json(path, text), str(path))


@dataclass(frozen=True)
class Text:
    """What was read already, as from standard input: its name in messages, and its content."""

    name: str
    content: str

    def __str__(self) -> str:
        return self.name


InstanceLike = Instance | Mapping[str, Json] | str | Path | Text
"""An instance, its JSON object, or the path of its file."""


def as_instance(instance: InstanceLike) -> Instance:
    """The instance itself, parsed or read where it has to be."""
    if isinstance(instance, Instance):
        return instance
    if isinstance(instance, Text):
        return load_instance(instance.name, instance.content)[1]
    return load_instance(instance)[1] if isinstance(instance, str | Path) else parse_instance(instance)[1]


def read_instance(instance: InstanceLike) -> tuple[Problem, Instance]:
    """The problem and the instance of it."""
    given = as_instance(instance)
    return find_problem(given.problem_id), given
