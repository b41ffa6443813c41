"""A method: one thing a user can name after ``--method``; and a user's own heuristic, handed over or named."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, TypeAlias

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import InputError, near
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.options import Option, options_of

Function: TypeAlias = Callable[..., object]
"""EXACT and SEARCH: ``f(instance, options: SolveOptions, **settings) -> Result``. HEURISTIC: ``f(instance, *, seed,
**settings)`` returns a HeuristicRun, a bare solution, or None where it found nothing."""
Checker: TypeAlias = Callable[..., CheckReport]
"""``check(instance, solution)``"""


class Kind(StrEnum):
    """How a method answers.

    An engine on the declarative model, another exact method, a heuristic, or a search that improves on the heuristics
    until a limit: called as an exact method is, it proves nothing.
    """

    ENGINE = "engine"
    EXACT = "exact"
    HEURISTIC = "heuristic"
    SEARCH = "search"


@dataclass(frozen=True)
class Method:
    """One thing a user can name after ``--method``.

    Attributes
    ----------
    id, title : its name, and one line for ``schedgap list``
    kind : ENGINE (its id is the engine's), EXACT, HEURISTIC or SEARCH
    load : imports the functions of some methods and returns them by id, so that listing loads no engine
    started : makes the method of its function: one that starts from heuristics; None where the function is the method
    source : where it comes from ("paper 000, Algorithm 1"), "ours" where it is ours
    outside_model : its schedules are not what the problem's meaning allows: no ratio to the optimum
    checker : imports its own checker, where some of its schedules are outside the model
    solution_key : a key by which its solutions are known where they are not of the problem's form
    repairs : the id of the published form that this one repairs; empty where it is no repaired form
    printed : the options that make it the algorithm as its paper prints it, where they are not the defaults
    is_user_defined : it is a user's own, and its errors are theirs
    engines : what it rests on beside the engine that its results name; none of them confirms its answers
    """

    id: str
    title: str
    kind: Kind
    load: Callable[[], Mapping[str, Function]] | None = None
    started: Callable[..., Function] | None = None
    source: str = "ours"
    outside_model: bool = False
    checker: Callable[[], Checker] | None = None
    solution_key: str = ""
    repairs: str = ""
    printed: Mapping[str, Any] = field(default_factory=dict)
    is_user_defined: bool = False
    engines: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Its id, with the word "repaired" where a repaired form has the plain name."""
        return f"{self.id} (repaired)" if self.repairs and not self.id.endswith("+") else self.id

    @property
    def proves(self) -> bool:
        """Whether it is made to prove what it finds."""
        return self.kind in (Kind.ENGINE, Kind.EXACT)

    @property
    def call(self) -> Function:
        """The function itself, imported now."""
        if self.load is None:
            raise LookupError(f"method {self.id} is an engine and has no function")
        found = self.load()[self.id]
        return found if self.started is None else self.started(found)

    @property
    def options(self) -> Mapping[str, Option]:
        """What ``--set`` accepts: the function's annotated keywords."""
        return {} if self.load is None else options_of(self.call)

    def has_keyword(self, keyword: str) -> bool:
        """Whether the function has this keyword, such as ``deadline``."""
        return keyword in inspect.signature(self.call).parameters


ENGINES = (
    Method("cbc", "declarative model solved by CBC (PuLP's bundled solver)", Kind.ENGINE),
    Method("highs", "declarative model solved by HiGHS", Kind.ENGINE),
    Method("cpsat", "declarative model translated to CP-SAT", Kind.ENGINE),
)


@dataclass(frozen=True)
class Given:
    """The `load` of a method that was handed over as a callable."""

    id: str
    function: Function

    def __call__(self) -> Mapping[str, Function]:
        """Its one function."""
        return {self.id: self.function}


def own_method(function: Function, name: str | None = None) -> Method:
    """A user's own callable ``(instance, *, seed, **own options) -> solution`` as a heuristic."""
    module = getattr(function, "__module__", None) or "callable"
    chosen = name or f"{module}:{getattr(function, '__qualname__', type(function).__name__)}"
    title = (inspect.getdoc(function) or "a user's own heuristic").splitlines()[0]
    return Method(chosen, title, Kind.HEURISTIC, Given(chosen, function), source="user", is_user_defined=True)


def full_settings(method: Method, given: Mapping[str, Json]) -> dict[str, Json]:
    """Every option of the method: as in `given`, its default otherwise."""
    return {name: option.default for name, option in method.options.items()} | dict(given)


SHAPE = "package.module:function or file.py:function"


@dataclass(frozen=True)
class Named:
    """The `load` of a user's own heuristic that is named: imported anew in every process."""

    name: str

    def __call__(self) -> Mapping[str, Function]:
        return {self.name: import_users(self.name)}


_FOLDERS: dict[str, None] = {}
"""Folders of the users' files that this process has imported, in this order."""


@contextmanager
def users_code(file: Path | None = None) -> Iterator[None]:
    """While a user's code is imported or runs: what lies beside its files and in the working directory is importable.

    What it prints goes to stderr. Raises ImportError: two of the folders have a module of one name, and it is imported:
    whose it is depends on the order.

    Parameters
    ----------
    file : what is imported, where it is a file
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

    Raises InputError: the module cannot be imported, or has no such function; one line with the reason.
    """
    module_name, _, function_name = name.rpartition(":")
    what = f"method {name}"
    if not module_name or not function_name:
        raise InputError(f"{what}: must look like {SHAPE}")
    if "/" in module_name and not module_name.endswith(".py"):
        raise InputError(f"{what}: {module_name} is no file of Python (its name ends in .py); write {SHAPE}")
    try:
        file = Path(module_name) if module_name.endswith(".py") else None
        with users_code(file):
            module = importlib.import_module(module_name) if file is None else users_file(file)
    except (Exception, SystemExit) as error:  # whatever the user's module raises while it is imported
        raise InputError(f"{what}: cannot import {module_name}: {one_line(error)}{last_line_of(error)}") from error
    function = getattr(module, function_name, None)
    if not callable(function):
        there = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise InputError(f"{what}: module {module_name} has no function {function_name!r}{near(function_name, there)}")
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


def label(method: str, settings: Mapping[str, Json]) -> str:
    """A method and its settings as one word for tables: ``sjf-bco kappa=4``."""
    return " ".join([method, *(f"{key}={value}" for key, value in sorted(settings.items()))])


def one_line(error: BaseException) -> str:
    """The kind of an error and the first line of its text."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def last_line_of(error: BaseException) -> str:
    """Where a user's code raised an error: `` (file.py, line 12)``, or nothing.

    That is the innermost line of a file of theirs: it lies beside or below the file that was called first, and is no
    installed package. A library that it called (pydantic, NumPy) may have raised the error further in.
    """
    called = [
        (Path(frame.f_code.co_filename), line)
        for frame, line in walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__package__")).partition(".")[0] != "schedgap"
    ]
    first = next((file for file, _ in called if file.is_absolute() and _apart(file, _PYTHON)), None)
    own = [] if first is None else [one for one in called if not _apart(one[0], first.parent)]
    return f" ({own[-1][0].name}, line {own[-1][1]})" if own else ""


_PYTHON = Path(sysconfig.get_path("stdlib"))


def _apart(file: Path, folder: Path) -> bool:
    """Whether a file is none of the folder's own: elsewhere, or of a package that is installed in it."""
    return not file.is_relative_to(folder) or "site-packages" in file.relative_to(folder).parts


def check_signature(function: Function, who: str, given: Mapping[str, object]) -> None:
    """Refuse a function that cannot be called with an instance and the keywords `given`.

    Raises InputError: the line names the call and the signature that a heuristic has; it begins with `who`, if not "".
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # compiled code that tells none
        return
    try:
        signature.bind(None, **given)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        call = ", ".join(["instance", *(f"{key}={value!r}" for key, value in given.items())])
        cause = f"cannot be called as {name}({call}): {error}; write it as def {name}(instance, *, seed)"
        raise InputError(f"{who}: {cause}" if who else cause) from None
