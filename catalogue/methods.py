"""Methods by name: those of a problem, and a user's own heuristic as ``package.module:function``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedgap.catalogue.problem import Kind, Method, Problem
from schedgap.formulations.common.errors import InputError
from schedgap.heuristics.common.run import parse_settings


def is_users(name: str) -> bool:
    """Whether `name` is a user's own heuristic, ``package.module:function``."""
    return ":" in name


def find_method(problem: Problem, name: str) -> Method:
    """The method of `problem` that `name` means.

    Raises
    ------
    InputError
        There is no such method (the line lists those there are), or a user's module or function is not
        there.
    """
    for method in problem.methods:
        if method.id == name:
            return method
    if is_users(name):
        import_users(name)
        return Method(name, "a user's own heuristic", Kind.HEURISTIC, name, source="user")
    known = ", ".join(problem.method_ids)
    raise InputError(f"method: unknown method {name!r} for {problem.id}, one of: {known}, or package.module:function")


@dataclass(frozen=True)
class OwnMethod(Method):
    """A user's heuristic that was handed over as a callable, not named."""

    callable: Callable[..., Any] | None = None


def own_method(function: Callable[..., Any]) -> OwnMethod:
    """A user's own callable as a method."""
    module = getattr(function, "__module__", None) or "callable"
    name = f"{module}:{getattr(function, '__qualname__', type(function).__name__)}"
    title = "a user's own heuristic"
    return OwnMethod(name, title, Kind.HEURISTIC, name, source="user", callable=function)


def default_method(problem: Problem) -> Method:
    """The strongest exact method: the first of kind EXACT or ENGINE in the problem's row."""
    for method in problem.methods:
        if method.kind is not Kind.HEURISTIC:
            return method
    raise InputError(f"{problem.id} has no exact method")


def heuristics_of(problem: Problem) -> tuple[Method, ...]:
    """The problem's heuristics, in the order of its row."""
    return tuple(method for method in problem.methods if method.kind is Kind.HEURISTIC)


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


def import_users(name: str) -> Callable[..., Any]:
    """A user's own function, imported from the path or from the working directory.

    Raises
    ------
    InputError
        The module cannot be imported, or has no such function; one line with the reason.
    """
    module_name, _, function_name = name.partition(":")
    what = f"method {name}"
    if not module_name or not function_name:
        raise InputError(f"{what}: must look like package.module:function")
    try:
        with users_code():
            module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever the user's module raises while it is imported
        raise InputError(f"{what}: cannot import {module_name}: {one_line(error)}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        raise InputError(f"{what}: module {module_name} has no function {function_name!r}")
    found: Callable[..., Any] = function
    return found


def method_settings(method: Method, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options in `given`, as text or as values, validated against those the method has.

    Raises
    ------
    InputError
        An unknown option or a value out of range.
    """
    return parse_settings(method.options, given or {}, f"method {method.id}")


def full_settings(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every option of the method: as in `given`, its default otherwise."""
    return {name: option.default for name, option in method.options.items()} | dict(given)


def label(method: str, settings: Mapping[str, Any]) -> str:
    """A method and its settings as one word for tables: ``sjf-bco kappa=4``."""
    return " ".join([method, *(f"{key}={value}" for key, value in sorted(settings.items()))])


def one_line(error: BaseException) -> str:
    """The kind of an error and the first line of its text."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
