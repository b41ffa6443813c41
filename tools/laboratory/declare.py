"""What an experiment is: its workload, methods and metrics, the printed numbers, and the claims with their rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from schedgap.formulations.common.instance import Json
from schedgap.tools.laboratory.measure import Run, solved
from schedgap.tools.laboratory.rules import Rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from schedgap.tools.laboratory.data import Data

Measure: TypeAlias = Callable[[Run, int], Mapping[str, Json]]
"""``f(run, seed) -> metrics``: numbers, lists of numbers, or None where unknown."""
Panel: TypeAlias = "Callable[[Axes, Data, Item], None]"
"""Draws one panel of an item's figure."""
MAIN = "main"
"""The name of the main choice."""


@dataclass(frozen=True)
class Series:
    """A line, a bar or a row: a method, or whatever else an item compares."""

    label: str  # its name in tables, figures and rules
    method: str  # a method's id
    settings: Mapping[str, Any] = field(default_factory=dict)  # settings of the method
    workload: Mapping[str, Any] = field(default_factory=dict)  # generator's, where not the item's
    preset: str = ""  # generator's, where not the item's
    ours: bool = False  # not in the paper
    main_only: bool = False  # measured under the main choice only; no claim is about it


@dataclass(frozen=True)
class Axis:
    """What varies along x: a setting of the generator, or of the methods."""

    label: str  # in tables and figures
    option: str  # the setting's name
    values: tuple[Any, ...]  # in order
    of: str = "workload"  # "workload" or "method"
    log: bool = False  # whether the figure's x is logarithmic


@dataclass(frozen=True)
class Choice:
    """A second choice for something that the paper leaves open; the verdict is given under it, too."""

    label: str  # its name
    workload: Mapping[str, Any] = field(default_factory=dict)  # settings of the generator that differ
    # settings of single series that differ, by label; "*" is every series
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    preset: str = ""  # another preset, where it is one


@dataclass(frozen=True)
class Metric:
    """A column of the tables."""

    name: str  # key of what a run measures
    # label, unit: for people
    label: str
    unit: str = ""
    factor: float = 1.0  # multiplies the values in tables and figures (100 for shares in percent)
    digits: int = 1  # after the point

    @property
    def title(self) -> str:
        """Label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


RATIO = Metric("ratio", "ratio to the bound", digits=3)
"""What no paper reports: how far the method is from the certified bound on the optimum, at least 1."""


@dataclass(frozen=True)
class Claim:
    """Something the paper says, in our words, and how it is judged."""

    # text, section: what is claimed and where
    text: str
    section: str
    parts: tuple[Rule, ...] = ()  # rules; what they say together is the verdict (``running.py``)
    printed: str = ""  # what the paper prints for it, in short; empty where it prints no number
    # labels of the second choices it is judged under, too; None is all of the item's
    choices: tuple[str, ...] | None = None
    cannot: str = ""  # why no data can decide it; it then has no parts
    ours: bool = False  # not said in the paper; judged beside its claims, and counted apart


def simulated_beside(claims: Iterable[Claim], cannot: str) -> tuple[Claim, ...]:
    """Claims about what machines measured, which a simulation stands in for.

    None of them is decided, for the reason `cannot`; each is judged in the simulation beside it, as ours.
    """
    pairs: list[Claim] = []
    for claim in claims:
        pairs.append(replace(claim, parts=(), choices=None, cannot=cannot))
        pairs.append(replace(claim, text=f"In the simulation: {claim.text}", ours=True))
    return tuple(pairs)


@dataclass(frozen=True)
class Item:
    """One table or figure of a paper, or what stands in for it."""

    # id, title: its name after ``--item``, and one line
    id: str
    title: str
    plots: str = ""  # what the paper shows there, in our words
    left_open: str = ""  # what the paper does not say and what is chosen here
    instead: str = ""  # why the paper's own measurement cannot be repeated here, and what stands in; empty where it can
    # problem, preset, workload: where instances come from; empty where the item runs nothing
    problem: str = ""
    preset: str = ""
    workload: Mapping[str, Any] = field(default_factory=dict)
    # series, axis, metrics: what is measured; `metrics` are the columns of the tables
    series: tuple[Series, ...] = ()
    axis: Axis | None = None
    metrics: tuple[Metric, ...] = ()
    choices: tuple[Choice, ...] = ()  # second choices
    claims: tuple[Claim, ...] = ()  # what is to be decided
    panels: tuple[Panel, ...] = ()  # panels of the figure
    measure: Measure = solved  # a run's metrics; by default the method is run, checked and measured
    # seeds, max_seeds: draws to begin with, and when a verdict is still undecided; 1 and 1 for a deterministic item
    seeds: int = 10
    max_seeds: int = 40
    # what the paper prints, by series and metric, in the unit of the table
    printed: Mapping[tuple[str, str], float] = field(default_factory=dict)
    remarks: tuple[Callable[[Data], str], ...] = ()  # written below the tables from the data, one paragraph each

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
    """A paper: its items and what is true of all of them."""

    # id, name, title: "000", the name in file names, one line
    id: str
    name: str
    title: str
    workload: str  # what the paper prints of its workload, what it leaves open and what is chosen
    items: Sequence[Item]  # in the paper's order
    without: Mapping[str, str] = field(default_factory=dict)  # tables and figures that are no experiments, and why
