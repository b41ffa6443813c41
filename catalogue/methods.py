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
        return Method(method, "a user's own heuristic", Kind.HEURISTIC, load, source="user", is_user_defined=True)
    ids = [known.id for known in problem.methods]
    known_ones = f"one of: {', '.join(ids)}, or {SHAPE}"
    raise InputError(f"method: unknown method {method!r} for {problem.id}, {known_ones}{near(method, ids)}")


@dataclass(frozen=True)
class _Named:
    """The `load` of a user's own heuristic that is named: imported anew in every process."""

    name: str

    def __call__(self) -> Mapping[str, Function]:
        return {self.name: import_users(self.name)}


_FOLDERS: dict[str, None] = {}
"""Of the users' files that this process has imported, in this order."""


@contextmanager
def users_code(file: Path | None = None) -> Iterator[None]:
    """While a user's code is imported or runs: what lies beside its files and in the working directory is importable.

    What it prints goes to stderr.

    Parameters
    ----------
    file : what is imported, where it is a file

    Raises
    ------
    ImportError
        Two of the folders have a module of one name, and it is imported: whose it is depends on the order.
    """
    if file is not None:
        _FOLDERS[str(file.resolve().parent)] = None
    folders = list(dict.fromkeys([*_FOLDERS, str(Path.cwd())]))
    added = [folder for folder in folders if folder not in sys.path]
    known = len(sys.modules)
    sys.path += added  # an installed console script does not search the working directory
    try:
        with redirect_stdout(sys.stderr):  # standard output is for results
            yield
        if len(folders) > 1 and len(sys.modules) != known:
            _alone(folders)
    finally:
        for folder in added:
            if folder in sys.path:
                sys.path.remove(folder)


def _alone(folders: list[str]) -> None:
    """Python keeps one module of a name: a second heuristic would silently run with the first one's."""
    for name, module in list(sys.modules.items()):
        if "." in name or not getattr(module, "__file__", None):
            continue
        file = Path(str(module.__file__))
        home = file.parent.parent if file.name == "__init__.py" else file.parent
        for other in map(Path, folders):
            twice = (other / f"{name}.py").is_file() or (other / name / "__init__.py").is_file()
            if str(home) in folders and home != other and twice:
                raise ImportError(f"both {home} and {other} have a module {name}: rename one, or run them one by one")


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
        file = Path(module_name) if module_name.endswith(".py") else None
        with users_code(file):
            module = importlib.import_module(module_name) if file is None else users_file(file)
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
