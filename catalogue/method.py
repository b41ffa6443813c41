"""A method: one thing a user can name after ``--method``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from typing_extensions import deprecated

from schedgap.formulations.common.check import CheckReport
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
        return self.load()[self.id]

    @property
    def options(self) -> Mapping[str, Option]:
        """What ``--set`` accepts: the function's annotated keywords."""
        return {} if self.load is None else options_of(self.call)

    def has_keyword(self, keyword: str) -> bool:
        """Whether the function has this keyword, such as ``deadline``."""
        return keyword in inspect.signature(self.call).parameters

    @property
    @deprecated("Method.users is called is_user_defined")
    def users(self) -> bool:
        """The former name of `is_user_defined`."""
        return self.is_user_defined

    @deprecated("Method.takes is called has_keyword")
    def takes(self, keyword: str) -> bool:
        """The former name of `has_keyword`."""
        return self.has_keyword(keyword)


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
