"""A declarative model: a PuLP problem and the way back from its variables to a solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from schedgap.formulations.common.instance import Instance, Solution
from schedgap.formulations.common.options import Option, options_of

if TYPE_CHECKING:  # importing PuLP loads HiGHS
    import pulp

    from schedgap.formulations.common.layout import Layout


@dataclass(frozen=True)
class DeclarativeModel:
    """What an engine is given, and what it takes to read its answer.

    Attributes
    ----------
    problem : the PuLP model, objective included (its sense and its constant count)
    extract : turns variable values (by variable, as ``value(variable)``) into a solution
    assign : turns a solution into the values of all variables (empty, or LookupError, where the model does not have
        it), for a warm start and, of an untightened model, for any feasible schedule; None where there is none
    sense : +1 minimise, -1 maximise
    objective_is_integral : every feasible objective value is a whole number, so that bounds are rounded
    whole_results : results carry the objective, and so its bound, as a whole number (``CheckReport.whole``)
    restated_integral : names of continuous variables that are integral in some optimal solution, so that
        an engine for integers may declare them integer without changing the optimum
    repair : mends a solution that is off by an engine's feasibility tolerance, or returns None
    start : a feasible solution that the builder knows; it is re-scored like any other
    bound : a certified bound on the optimum that the builder knows (of an infeasible model it says nothing)
    resolution : largest amount by which rounding makes the model's objective better than the problem's
    rounded : rows of integer variables that had to be rounded, so that they admit what they should not: by name, the
        exact coefficients of a sum that is at most 0; a point that breaks one is cut off
    restriction : the model has only some of the problem's solutions: an engine's bound, or its proof that there is
        none, holds for the model and says nothing about the problem
    layout : its variables and rows by name
    tightened : something in it relies on the objective; False where every feasible schedule is a feasible point and
        every feasible integer point a schedule
    abstract : its points are no schedules (a relaxation, a dual), so there is nothing that a checker could judge
    until, later : the last moment of its schedules, in seconds, where the instance has none, and a bound on the
        objective of all schedules that end later: rows of a user's own may need those
    """

    problem: pulp.LpProblem
    extract: Callable[[Callable[[pulp.LpVariable], float]], Solution]
    sense: int
    assign: Callable[[Solution], Mapping[pulp.LpVariable, float]] | None = None
    _: KW_ONLY
    objective_is_integral: bool = False
    whole_results: bool = False
    restated_integral: frozenset[str] = frozenset()
    repair: Callable[[Solution], Solution | None] | None = None
    start: Solution | None = None
    bound: float | None = None
    restriction: bool = False
    resolution: float = 0.0
    rounded: Mapping[str, Mapping[pulp.LpVariable, Fraction]] = field(default_factory=dict)
    layout: Layout | None = None
    tightened: bool = True
    abstract: bool = False
    until: float | None = None
    later: float = 0.0
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.objective_is_integral and self.problem.objective is not None:
            for variable, cost in self.problem.objective.items():
                if variable.isInteger() and not float(cost).is_integer():
                    raise ValueError(f"objective_is_integral: one more of {variable.name} changes it by {cost:g}")


Builder: TypeAlias = Callable[..., DeclarativeModel]
"""``build(instance, tighten, **settings)``; its annotated keywords are the form's options."""


@dataclass(frozen=True)
class Form:
    """One way to write a problem as a declarative model."""

    # id, title: its name, and one line for ``schedgap list``
    id: str
    title: str
    source: str  # the paper's equations
    build: Builder  # makes the model of (instance, tighten, **options) and imports what it needs inside
    tightens: bool = True  # there is a tightened variant, which engines solve
    opens: bool = True  # there is an untightened variant, which a user can change
    # an exact method's answer to (instance, changes, options, check), where a user changed the untightened variant; the
    # answer is None where the method cannot say the changes
    changed: Callable[..., Any] | None = None

    @property
    def options(self) -> Mapping[str, Option]:
        """What ``--set`` accepts."""
        return options_of(self.build)

    def model(self, instance: Instance, tighten: bool, **settings: object) -> DeclarativeModel:
        """The model of an instance."""
        return self.build(instance, tighten, **settings)
