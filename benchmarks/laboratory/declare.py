"""What an experiment is: its workload, methods and metrics, the printed numbers, and the claims with their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from schedgap.benchmarks.laboratory.measure import Run, solved
from schedgap.benchmarks.laboratory.rules import Rule
from schedgap.formulations.common.instance import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from schedgap.benchmarks.laboratory.data import Data

Measure: TypeAlias = Callable[[Run, int], Mapping[str, Json]]
"""``f(run, seed) -> metrics``: numbers, lists of numbers, or None where unknown."""
Panel: TypeAlias = "Callable[[Axes, Data, Item], None]"
"""Draws one panel of an item's figure."""
MAIN = "main"
"""The name of the main choice."""
ABSOLUTE = "An absolute value: it hangs on the workload, which is not printed. Ours stands in the table."
"""Why such a claim cannot be decided."""


@dataclass(frozen=True)
class Series:
    """A line, a bar or a row: a method, or whatever else an item compares.

    Attributes
    ----------
    label : its name in tables, figures and rules
    method : a method's id
    settings : of the method
    workload : of the generator, where it differs from the item's
    preset : of the generator, where it differs from the item's
    ours : not in the paper
    main_only : measured under the main choice only; no claim is about it
    """

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    preset: str = ""
    ours: bool = False
    main_only: bool = False


@dataclass(frozen=True)
class Axis:
    """What varies along x: a setting of the generator, or of the methods.

    Attributes
    ----------
    label : in tables and figures
    option : the setting's name
    values : in order
    of : "workload" or "method"
    log : whether the figure's x is logarithmic
    """

    label: str
    option: str
    values: tuple[Any, ...]
    of: str = "workload"
    log: bool = False


@dataclass(frozen=True)
class Choice:
    """A second choice for something that the paper leaves open; the verdict is given under it, too.

    Attributes
    ----------
    label : its name
    workload : settings of the generator that differ
    methods : settings of single series that differ, by label; "*" is every series
    preset : another preset, where it is one
    """

    label: str
    workload: Mapping[str, Any] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    preset: str = ""


@dataclass(frozen=True)
class Metric:
    """A column of the tables.

    Attributes
    ----------
    name : key of what a run measures
    label, unit : for people
    factor : multiplies the values in tables and figures (100 for shares in percent)
    digits : after the point
    """

    name: str
    label: str
    unit: str = ""
    factor: float = 1.0
    digits: int = 1

    @property
    def title(self) -> str:
        """Label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


RATIO = Metric("ratio", "ratio to the bound", digits=3)
"""What no paper reports: how far the method is from the certified bound on the optimum, at least 1."""


@dataclass(frozen=True)
class Claim:
    """Something the paper says, in our words, and how it is judged.

    Attributes
    ----------
    text, section : what is claimed and where
    parts : rules; what they say together is the verdict (``verdicts.py``)
    printed : what the paper prints for it, in short; empty where it prints no number
    choices : labels of the second choices it is judged under, too; None is all of the item's
    cannot : why no data can decide it; it then has no parts
    ours : not said in the paper; judged beside its claims, and counted apart
    """

    text: str
    section: str
    parts: tuple[Rule, ...] = ()
    printed: str = ""
    choices: tuple[str, ...] | None = None
    cannot: str = ""
    ours: bool = False


@dataclass(frozen=True)
class Item:
    """One table or figure of a paper, or what stands in for it.

    Attributes
    ----------
    id, title : its name after ``--item``, and one line
    plots : what the paper shows there, in our words
    left_open : what the paper does not say and what is chosen here
    instead : why the paper's own measurement cannot be repeated here, and what stands in; empty where it can
    problem, preset, workload : where instances come from; empty where the item runs nothing
    series, axis, metrics : what is measured; `metrics` are the columns of the tables
    choices : second choices
    claims : what is to be decided
    panels : of the figure
    measure : a run's metrics; by default the method is run, checked and measured
    seeds, max_seeds : draws to begin with, and when a verdict is still undecided; 1 and 1 for a deterministic item
    printed : what the paper prints, by series and metric, in the unit of the table
    remarks : written below the tables from the data, one paragraph each
    """

    id: str
    title: str
    plots: str = ""
    left_open: str = ""
    instead: str = ""
    problem: str = ""
    preset: str = ""
    workload: Mapping[str, Any] = field(default_factory=dict)
    series: tuple[Series, ...] = ()
    axis: Axis | None = None
    metrics: tuple[Metric, ...] = ()
    choices: tuple[Choice, ...] = ()
    claims: tuple[Claim, ...] = ()
    panels: tuple[Panel, ...] = ()
    measure: Measure = solved
    seeds: int = 10
    max_seeds: int = 40
    printed: Mapping[tuple[str, str], float] = field(default_factory=dict)
    remarks: tuple[Callable[[Data], str], ...] = ()

    @property
    def points(self) -> tuple[Json, ...]:
        """The values of x; one None where there is no axis."""
        return self.axis.values if self.axis is not None else (None,)

    def choices_of(self, claim: Claim) -> list[str]:
        """Labels of the second choices that a claim is judged under."""
        return [one.label for one in self.choices if claim.choices is None or one.label in claim.choices]

    def runs(self) -> Iterator[tuple[tuple[str, Json, str], Run]]:
        """Every run of one draw: (choice, x, series) and what is run."""
        for choice in (Choice(MAIN), *self.choices):
            for x in self.points:
                for series in self.series:
                    if series.main_only and choice.label != MAIN:
                        continue
                    yield (choice.label, x, series.label), self._run(choice, x, series)

    def _run(self, choice: Choice, x: Any, series: Series) -> Run:
        at = {} if self.axis is None else {self.axis.option: x}
        of_workload = at if self.axis is not None and self.axis.of == "workload" else {}
        of_method = at if self.axis is not None and self.axis.of == "method" else {}
        return Run(
            self.problem,
            choice.preset or series.preset or self.preset,
            {**self.workload, **series.workload, **choice.workload, **of_workload},
            series.method,
            {**series.settings, **choice.methods.get("*", {}), **choice.methods.get(series.label, {}), **of_method},
        )


@dataclass(frozen=True)
class Paper:
    """A paper: its items and what is true of all of them.

    Attributes
    ----------
    id, name, title : "000", the name in file names, one line
    workload : what the paper prints of its workload, what it leaves open and what is chosen
    items : in the paper's order
    without : tables and figures that are no experiments, and why
    """

    id: str
    name: str
    title: str
    workload: str
    items: Sequence[Item]
    without: Mapping[str, str] = field(default_factory=dict)
