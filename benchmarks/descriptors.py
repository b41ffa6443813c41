"""What one row of the table of problems holds: everything by name, so that listing loads no engine."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Instance, Solution
from schedgap.heuristics.common.guarantee import Guarantee
from schedgap.heuristics.common.run import Option


def resolve(reference: str) -> Any:
    """The object that ``package.module:name`` names; imported when it is first needed."""
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


class Kind(StrEnum):
    """How a method answers: an engine on the declarative model, another exact method, or a heuristic."""

    ENGINE = "engine"
    EXACT = "exact"
    HEURISTIC = "heuristic"


@dataclass(frozen=True)
class Method:
    """One thing a user can name after ``--method``.

    Attributes
    ----------
    id, title : its name, and one line for ``schedgap list``
    kind : ENGINE, EXACT or HEURISTIC
    function : "module:name". EXACT: ``f(instance, options: SolveOptions, **settings) -> Result``.
        HEURISTIC: ``f(instance, *, seed, **settings) -> HeuristicRun``. ENGINE: the engine's id.
    options : what ``--set`` accepts
    source : where it comes from ("paper 000, Algorithm 1"), "ours" where it is ours
    outside_model : its schedules are not what the problem's meaning allows: no ratio to the optimum
    deadline : a heuristic that takes a ``deadline`` keyword and stops by it
    """

    id: str
    title: str
    kind: Kind
    function: str
    options: Mapping[str, Option] = field(default_factory=dict)
    source: str = "ours"
    outside_model: bool = False
    deadline: bool = False

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The function itself."""
        found: Callable[..., Any] = resolve(self.function)
        return found


@dataclass(frozen=True)
class Preset:
    """A named family of instances: ``function(seed, **settings) -> Instance``."""

    id: str
    title: str
    function: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)


@dataclass(frozen=True)
class Problem:
    """Everything that belongs to one problem.

    Attributes
    ----------
    id, title, source : names
    sense : +1 minimise, -1 maximise
    objective_name, unit : what the objective is, for tables and figures
    instance : "module:Class", a subclass of Instance
    checker : "module:name", ``check(instance, solution) -> CheckReport``
    model : "module:name", ``model(instance) -> DeclarativeModel``
    model_size : "module:name", ``f(instance) -> int``, nonzeros before anything is built
    lower_bound : "module:name", ``f(instance) -> float | None``, a certified bound at any size (an upper
        bound when maximising)
    methods : in the order of ``schedgap list``; the first EXACT or ENGINE one is the default method
    presets, importers, guarantees, figure : as named; a figure is ``f(instance, solution) -> Figure``
    """

    id: str
    title: str
    source: str
    sense: int
    objective_name: str
    unit: str
    instance: str
    checker: str
    model: str
    model_size: str
    lower_bound: str
    methods: tuple[Method, ...]
    presets: tuple[Preset, ...]
    guarantees: str
    figure: str
    importers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def instance_class(self) -> type[Instance]:
        """The class of its instances."""
        found: type[Instance] = resolve(self.instance)
        return found

    def check(self, instance: Instance, solution: Solution) -> CheckReport:
        """The independent checker's report on `solution`."""
        report: CheckReport = resolve(self.checker)(instance, solution)
        return report

    def build_model(self, instance: Instance) -> DeclarativeModel:
        """The declarative (PuLP) model."""
        model: DeclarativeModel = resolve(self.model)(instance)
        return model

    def bound(self, instance: Instance) -> float | None:
        """A certified bound on the optimum, at any size."""
        value: float | None = resolve(self.lower_bound)(instance)
        return value

    @cached_property
    def all_guarantees(self) -> tuple[Guarantee, ...]:
        """Its rows of the ledger."""
        rows: tuple[Guarantee, ...] = tuple(resolve(self.guarantees))
        return rows

    @cached_property
    def method_ids(self) -> tuple[str, ...]:
        """Ids of its methods, in order."""
        return tuple(method.id for method in self.methods)
