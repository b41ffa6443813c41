"""Methods by name: those of a problem, and a user's own heuristic, handed over or named."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from schedgap.catalogue.method import Function, Kind, Method, own_method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.options import parse_settings

SHAPE = "package.module:function or file.py:function"


def find_method(problem: Problem, method: str | Method | Function) -> Method:
    """The method of `problem` that is meant: its id, ``package.module:function``, a callable, or a method itself.

    Raises
    ------
    InputError
        There is no such method (the line lists those there are), or a user's module or function is not
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
        load = _Named(method)
        load()
        return Method(method, "a user's own heuristic", Kind.HEURISTIC, load, source="user", users=True)
    ids = [known.id for known in problem.methods]
    known_ones = f"one of: {', '.join(ids)}, or {SHAPE}"
    raise InputError(f"method: unknown method {method!r} for {problem.id}, {known_ones}{near(method, ids)}")


@dataclass(frozen=True)
class _Named:
    """The `load` of a user's own heuristic that is named: imported anew in every process."""

    name: str

    def __call__(self) -> Mapping[str, Function]:
        return {self.name: import_users(self.name)}


@contextmanager
def users_code() -> Iterator[None]:
    """While a user's code is imported or runs: the working directory is importable, prints go to stderr."""
    here = str(Path.cwd())
    added = here not in sys.path
    if added:  # an installed console script does not search the working directory
        sys.path.append(here)
    try:
        with redirect_stdout(sys.stderr):  # standard output is for results
            yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


def import_users(name: str) -> Function:
    """A user's own function, imported from the path, from the working directory or from a file.

    Raises
    ------
    InputError
        The module cannot be imported, or has no such function; one line with the reason.
    """
    module_name, _, function_name = name.rpartition(":")
    what = f"method {name}"
    if not module_name or not function_name:
        raise InputError(f"{what}: must look like {SHAPE}")
    try:
        with users_code():
            module = (
                users_file(Path(module_name)) if module_name.endswith(".py") else importlib.import_module(module_name)
            )
    except (Exception, SystemExit) as error:  # whatever the user's module raises while it is imported
        raise InputError(f"{what}: cannot import {module_name}: {one_line(error)}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"{what}: module {module_name} has no function {function_name!r}")
    found: Function = function
    return found


def users_file(path: Path) -> ModuleType:
    """The module in a file, imported once in a process."""
    name = f"schedgap_users_{path.stem}_{abs(hash(path.resolve()))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def method_settings(method: Method, given: Mapping[str, Json] | None) -> dict[str, Json]:
    """The options in `given`, as text or as values, validated against those the method has.

    Raises
    ------
    InputError
        An unknown option or a value out of range.
    """
    return parse_settings(method.options, given or {}, f"method {method.id}") if given else {}


def label(method: str, settings: Mapping[str, Json]) -> str:
    """A method and its settings as one word for tables: ``sjf-bco kappa=4``."""
    return " ".join([method, *(f"{key}={value}" for key, value in sorted(settings.items()))])


def one_line(error: BaseException) -> str:
    """The kind of an error and the first line of its text."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def last_line_of(error: BaseException) -> str:
    """Where an error was raised: `` (file.py, line 12)``, or nothing."""
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"
