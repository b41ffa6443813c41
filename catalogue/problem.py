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
    checker : "module:name" of its own checker where it is outside the model
    solution_key : a key by which its solutions are known where they are not of the problem's form
    """

    id: str
    title: str
    kind: Kind
    function: str
    options: Mapping[str, Option] = field(default_factory=dict)
    source: str = "ours"
    outside_model: bool = False
    deadline: bool = False
    checker: str = ""
    solution_key: str = ""

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
class Batch:
    """A row of a suite: instances of one preset, and the methods that run on each of them.

    Attributes
    ----------
    suite : the suite's name
    preset : a preset's id, or "module:name" of a generator ``f(seed, **settings) -> Instance``
    count : how many instances at ``--scale 1``
    exact : exact methods (ids of the problem's methods or of `extra`) to run on each
    heuristics : heuristics to run on each; None is all of the problem's, within the model or not
    group : what tables call these instances; the preset's id where empty
    settings : of the generator
    method_settings : of single methods, by id; a list of settings runs the method once with each
    first : number of the first instance, so that batches of one preset can differ
    work_limit : repeatable limit of each exact solve (see ``SolveOptions.work_limit``)
    extra : exact methods that only suites know, such as a brute force
    series, axis : the figure this batch belongs to, and its x: the name of a setting of the generator or of
        a method's option
    """

    suite: str
    preset: str
    count: int
    exact: tuple[str, ...] = ()
    heuristics: tuple[str, ...] | None = None
    group: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    method_settings: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)
    first: int = 0
    work_limit: float | None = None
    extra: tuple[Method, ...] = ()
    series: str = ""
    axis: str = ""


@dataclass(frozen=True)
class Measurement:
    """A row of a suite that measures something else than a ratio: ``f(*, seed, **settings) -> rows``.

    The function is also given ``scale`` and ``time_limit`` where it names them and the run has them. It runs
    alone, after everything else, so that its times are not disturbed by the run itself.

    Attributes
    ----------
    suite, id, title : the suite's name, its own, and one line for the table's head
    function : "module:name", returns a sequence of rows; a row is a mapping of column name to a JSON value
    settings : keywords of the function
    timed : columns that hold times or what follows from them; they are left out of comparisons
    figure : "module:name", ``f(rows) -> Figure``, which the report shows below the table; empty for none
    """

    suite: str
    id: str
    title: str
    function: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    timed: tuple[str, ...] = ()
    figure: str = ""


@dataclass(frozen=True)
class Importer:
    """A format that instances of one problem can be made from.

    Attributes
    ----------
    id, title : its name after ``schedgap import``, and one line
    function : "module:name", ``f(files, [throughputs=path,] **settings) -> (Instance, messages)``
    options : what ``--set`` accepts
    throughputs : whether it takes a file of measured rates
    """

    id: str
    title: str
    function: str
    options: Mapping[str, Option] = field(default_factory=dict)
    throughputs: bool = False


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
    quick : "module:name", ``f(instance) -> Solution | None``, a quick solution for where the model is too large to
        build; empty where there is none
    metrics : what runs report beside the objective: key of ``info`` to the title of its column
    warm_up : "module:name", ``f(instance)`` runs the compiled code that only large instances need; empty where a
        method on an instance of the first preset runs all there is
    methods : in the order of ``schedgap list``; the first EXACT or ENGINE one is the default method
    presets, importers, guarantees, figure : as named; a figure is ``f(instance, solution) -> Figure``
    suites : "module:name" of a tuple of :class:`Batch` and :class:`Measurement`: its part in every suite
    families : "module:name" of a mapping of name to ``f(seed) -> (instance, options)``: instances on which
        guarantees are tried, with the options that the heuristic runs with; a guarantee's
        ``hint["families"]`` names those worth trying, the others are tried on all
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
    importers: tuple[Importer, ...] = ()
    suites: str = ""
    families: str = ""
    quick: str = ""
    warm_up: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)

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
    def suite_rows(self) -> tuple[Batch | Measurement, ...]:
        """Its part in every suite."""
        rows: tuple[Batch | Measurement, ...] = tuple(resolve(self.suites)) if self.suites else ()
        return rows

    @cached_property
    def trial_families(self) -> Mapping[str, Callable[[int], tuple[Instance, Mapping[str, Any]]]]:
        """Families of instances on which its guarantees are tried; its presets where it names none."""
        if self.families:
            found: Mapping[str, Callable[[int], tuple[Instance, Mapping[str, Any]]]] = resolve(self.families)
            return found
        return {preset.id: _plain_trial(preset) for preset in self.presets}

    @cached_property
    def method_ids(self) -> tuple[str, ...]:
        """Ids of its methods, in order."""
        return tuple(method.id for method in self.methods)


def _plain_trial(preset: Preset) -> Callable[[int], tuple[Instance, Mapping[str, Any]]]:
    """Instances of a preset, on which a heuristic runs with its defaults."""
    return lambda seed: (resolve(preset.function)(seed, **preset.settings), {})
