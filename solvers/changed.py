"""What a model that a user changed starts from: a schedule that keeps the own rows, a bound, and an order of equals."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pulp

from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import EngineMissing, InputError, ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import NamedRow
from schedgap.solvers.engines.declarative import Check, solve_declarative
from schedgap.solvers.result import Result, SolveOptions

REPAIR_SHARE = 0.15
"""Share of the time left that the repair of one schedule may take."""
REPAIR_SECONDS = 20.0
"""The same where there is no limit."""


def _no_schedules(options: SolveOptions) -> Iterable[tuple[str, Solution]]:
    return ()


def _no_exact_method(changes: Changes, options: SolveOptions, check: Check) -> Result | None:
    return None


@dataclass(frozen=True)
class Aids:
    """What the problem gives to a changed model of an instance.

    Attributes
    ----------
    schedules : heuristics' schedules, each with the name of who made it
    exact : an exact method's answer to the changed problem; None where it cannot say the changes
    bound : certified bound on the instance's own objective; None where there is none
    """

    schedules: Callable[[SolveOptions], Iterable[tuple[str, Solution]]] = _no_schedules
    exact: Callable[[Changes, SolveOptions, Check], Result | None] = _no_exact_method
    bound: Callable[[], float | None] = lambda: None


class Beginning:
    """The start and the bound of one run.

    Parameters
    ----------
    check : checker of the changed model, own rows included
    """

    def __init__(
        self, aids: Aids, model: DeclarativeModel, changes: Changes, check: Check, options: SolveOptions
    ) -> None:
        self.aids, self.model, self.changes, self.check, self.options = aids, model, changes, check, options
        self.info: dict[str, Any] = {}

    def bound(self) -> float | None:
        """A bound on the problem's own objective: rows leave fewer schedules, so it stays one."""
        return None if self.changes.objective is not None or self.model.restriction else self.aids.bound()

    def start(self, engine: str, given: Solution | None) -> SolveOptions:
        """The options with the best schedule that keeps the own rows as the start, repaired where none does.

        Raises
        ------
        InputError
            The given start is malformed or breaks the problem's own constraints.
        """
        kept: list[tuple[float, str, Solution]] = []
        broken: list[tuple[str, Solution]] = []
        offered = [("start", given)] if given is not None else list(self.aids.schedules(self.options))
        for name, solution in offered:
            try:
                report = self.check(solution)
            except InputError:
                if given is not None:
                    raise
                continue
            own_rows_alone = all(v.constraint == "own row" for v in report.violations)
            if given is not None and not own_rows_alone:
                raise InputError(f"start: {report.violations[0].message}")
            if report.feasible and report.objective is not None:
                kept.append((self.model.sense * float(report.objective), name, solution))
            elif own_rows_alone:
                broken.append((name, solution))
        if kept:
            _, name, solution = min(kept, key=lambda row: row[0])
            self.info["start by"] = name
            return replace(self.options, start=solution)
        for name, solution in broken[:1]:
            mended = self._repaired(engine, solution)
            if mended is not None:
                self.info["start by"] = f"{name}, repaired"
                return replace(self.options, start=mended)
        return self.options

    def _repaired(self, engine: str, solution: Solution) -> Solution | None:
        """A schedule that keeps the own rows and the decisions about all that no own row is about; None without one.

        What rows are about are members of the first index of some family: jobs, gangs, tasks.
        """
        layout, assign = self.model.layout, self.model.assign
        values = assign(solution) if assign is not None else None
        if layout is None or not values:
            return None
        kinds = {names[0] for names in self.changes.indices.values() if names}
        freed = {part for kind in kinds for part in self.changes.mentioned(kind)}
        if not freed:
            return None
        until = self.options.deadline.part(REPAIR_SHARE, REPAIR_SECONDS)
        problem = self.model.problem.copy()
        for family, members in layout.variables.items():
            if not layout.kinds[family].decision:
                continue
            for key, variable in members.items():
                member = key[0] if isinstance(key, tuple) else key
                if member not in freed:
                    name = f"repair[{variable.name}]"
                    row = NamedRow(pulp.LpAffineExpression([(variable, 1.0)]), 0, None, float(values[variable]))
                    problem.addConstraint(row, name)
        options = replace(self.options, deadline=until)
        fixed = replace(self.model, problem=problem, restriction=True, start=None, bound=None, repair=None)
        try:
            return solve_declarative(lambda: fixed, engine, options, self.check).solution
        except (EngineMissing, ModelRefused):
            return None


def with_orderings(model: DeclarativeModel, problem: pulp.LpProblem, changes: Changes) -> DeclarativeModel:
    """The model on a copy of its problem, with the order of all equals that no change tells apart."""
    if model.layout is not None:
        for one in model.layout.orderings:
            if not changes.tell_apart(one.kind, one.first, one.second):
                terms = pulp.LpAffineExpression(list(one.terms))
                problem.addConstraint(NamedRow(terms, -1, None, 0.0), one.name)
    return replace(model, problem=problem)
