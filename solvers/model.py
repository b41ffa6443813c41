"""A model that a user can read, change and solve."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import Any

import pulp

from schedgap.formulations.common.changes import Changes, OwnRow, Place
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError, RejectedSolution, near
from schedgap.formulations.common.files import check_writable
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Key, Layout, NamedRow
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, MAXIMISE, MINIMISE, exact
from schedgap.solvers.changed import Aids, Beginning, with_orderings
from schedgap.solvers.engines import engine as find_engine
from schedgap.solvers.engines.arrays import drop_row, rows_of
from schedgap.solvers.engines.declarative import Check, solve_declarative
from schedgap.solvers.engines.lp import CONSTANT, columns_of, write_model
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status, Termination

CONTINUOUS_TOLERANCE = Fraction(1, 10**6)
"""Own rows with continuous variables hold within this, relatively: what engines allow."""
OF_SOLVERS = 1e-5
"""How far from a whole number, and out of its range, another solver's value may be."""
FORMATS = ("mps", "lp")
DEFAULT_ENGINE = "highs"
"""The engine where no exact method of the problem takes the changes."""


class Model:
    """A declarative model with a user's own rows and objective.

    Attributes
    ----------
    title : problem and form
    """

    def __init__(self, declarative: DeclarativeModel, check: Check, title: str, aids: Aids | None = None) -> None:
        if declarative.layout is None:
            raise InputError(f"{title}: this model has no named parts")
        self._declarative = declarative
        self._layout: Layout = declarative.layout
        self._check = check
        self._own_objective = False
        self._built_rows = {name for name, _ in rows_of(declarative.problem)}
        self._goal = declarative.problem.objective, declarative.problem.sense
        self._judged: set[str] = set()
        self._aids = aids or Aids()
        self.title = title

    @property
    def problem(self) -> pulp.LpProblem:
        """The PuLP problem. Rows that PuLP adds (``model.problem += row, "name"``) are own rows like those of `add`.

        Raises
        ------
        InputError
            Another problem is assigned, or a row or an objective is refused, as by :meth:`add`.
        """
        return self._layout.problem

    @problem.setter
    def problem(self, changed: pulp.LpProblem) -> None:
        """What ``+=`` assigns back: the same problem, with one more row or another objective."""
        if changed is not self._layout.problem:
            raise InputError("problem: a model keeps the PuLP problem it was built with; change that one")
        self._judge_changes()

    @property
    def own_rows(self) -> list[str]:
        """Names of the rows that a user added, in order."""
        return [name for name, _ in rows_of(self.problem) if name not in self._built_rows]

    @property
    def variables(self) -> Mapping[str, Mapping[Key, pulp.LpVariable]]:
        """The variables by family, then by key: ``variables["start"]["j0", 5]``."""
        return self._layout.variables

    @property
    def declarative(self) -> DeclarativeModel:
        """What engines solve: the model with the rows and the objective it has now."""
        self._judge_changes()
        if not (self._own_objective or self.own_rows):
            return self._declarative
        whole = self._declarative.objective_is_integral if not self._own_objective else self._whole_objective()
        # what builders know of the optimum, they know of the unchanged model
        return replace(
            self._declarative,
            problem=self.problem,
            sense=self.problem.sense,
            objective_is_integral=whole,
            start=None,
            bound=None,
            repair=None,
            restated_integral=self._declarative.restated_integral & self._free,
        )

    def add(self, row: object, name: str | None = None) -> None:
        """Add a row, ``model.add(model.variables["start"]["j0", 3] == 0, name="not_in_slot_3")``.

        Raises
        ------
        InputError
            The model is tightened; `row` is no comparison of a linear expression of this model's variables; the name
            is taken; or the row is about variables that a schedule does not determine.
        """
        self._refuse_tightened("add")
        self._judge_changes()
        if not isinstance(row, pulp.LpConstraint):
            raise InputError(f"row: must be a linear expression compared by <=, == or >=, got {type(row).__name__}")
        label = name if name is not None else f"own_{len(self.own_rows) + 1}"
        if not isinstance(label, str) or not label:
            raise InputError(f"name: must be a non-empty string, got {label!r}")
        if label in dict(rows_of(self.problem)):
            raise InputError(f"name: the model has a row {label!r} already")
        self._refuse_row(label, row)
        self.problem.addConstraint(NamedRow(row.expr.copy(), row.sense, None, _level(row)), label)
        self._judged.add(label)

    def minimise(self, expression: object) -> None:
        """Replace the objective.

        Raises
        ------
        InputError
            As for a row: see :meth:`add`.
        """
        self._objective(expression, MINIMISE)

    def maximise(self, expression: object) -> None:
        """Replace the objective.

        Raises
        ------
        InputError
            As for a row: see :meth:`add`.
        """
        self._objective(expression, MAXIMISE)

    minimize, maximize = minimise, maximise

    @property
    def changes(self) -> Changes:
        """The own rows and the own objective, by the names of their variables, in exact numbers."""
        self._judge_changes()
        rows = dict(rows_of(self.problem))
        places = {v: (family, key) for family, members in self.variables.items() for key, v in members.items()}

        def terms(expression: Any) -> dict[Place, Fraction]:
            named: dict[Place, Fraction] = {}
            for variable, coefficient in expression.items():
                family, key = places[variable]
                named[family, key if isinstance(key, tuple) else (key,)] = exact(float(coefficient))
            return named

        added = [OwnRow(n, terms(rows[n].expr), rows[n].sense, exact(_level(rows[n]))) for n in self.own_rows]
        goal = self.problem.objective
        return Changes(
            tuple(added),
            terms(goal) if self._own_objective else None,
            exact(float(goal.constant)) if self._own_objective else Fraction(0),
            self.problem.sense,
            {name: tuple(i.strip() for i in kind.index.split(",") if i) for name, kind in self._layout.kinds.items()},
        )

    def solve(
        self,
        engine: str | None = None,
        *,
        start: Solution | None = None,
        time_limit: float | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> Result:
        """Solve, and let the problem's checker and the own rows judge the solution.

        Parameters
        ----------
        engine : an engine; where not given, the problem's exact method that takes own rows and objectives
            (rar-ddls: ``cp``), or ``highs`` where there is none or a change is beyond what it can say
        start : a schedule to start from, a heuristic's or that of an earlier result; where it breaks an own row it is
            repaired, as the heuristics' schedules are, the best of which is the start where none is given
        time_limit : seconds, the search for a start included

        Returns
        -------
        Result, its objective the model's; where that was replaced, ``info["problem_objective"]`` is the problem's own
        objective of the same solution. Where a changed model has only the schedules that end by some moment
        (comm-contention, ddl-cluster), ``feasible`` is the best of those, and ``unknown`` says that there is none.

        Raises
        ------
        InputError, EngineMissing, ModelRefused, Disagreement
            As :func:`~schedgap.solvers.engines.declarative.solve_declarative`.
        """
        options = SolveOptions(deadline=Deadline.after(time_limit), seed=seed, threads=threads)
        if self._declarative.abstract:
            return self._solve_abstract(engine or DEFAULT_ENGINE, options)
        changes = self.changes
        beginning = Beginning(self._aids, self.declarative, changes, self.check, options)
        options = beginning.start(engine or DEFAULT_ENGINE, start)
        exact_result = self._aids.exact(changes, options, self.check) if engine is None else None
        if engine is None and exact_result is None and not changes.empty:
            beginning.info["exact method"] = "none that can say these changes"
        bound = beginning.bound()
        if exact_result is not None and not _closed(exact_result) and not options.deadline.passed:
            # what its floats could not settle an engine may, from where it ended
            options = replace(options, start=exact_result.solution or options.start)
            beginning.info["before the engine"] = exact_result.info.get("method")
            bound, exact_result = bound if exact_result.bound is None else exact_result.bound, None
        if exact_result is not None:
            result = exact_result
        else:
            # engines may add cuts of their own: they get a copy
            model = with_orderings(self.declarative, self.problem.copy(), changes)
            model = replace(model, bound=bound)
            result = solve_declarative(lambda: model, engine or DEFAULT_ENGINE, options, self.check)
        result = self._within(replace(result, info={**beginning.info, **result.info}))
        if result.solution is None or not self._own_objective:
            return result
        own = self._check(result.solution).objective
        return replace(result, info={**result.info, "problem_objective": None if own is None else float(own)})

    def _within(self, result: Result) -> Result:
        """What is true of all schedules, not of those alone that end in the time that the model has."""
        until, later = self._declarative.until, self._declarative.later
        if until is None or not (self.own_rows or self._own_objective):
            return result
        if result.status is Status.INFEASIBLE:
            status, bound = Status.UNKNOWN, None
        elif result.status is Status.OPTIMAL and (self._own_objective or (result.objective or 0.0) > later):
            status, bound = Status.FEASIBLE, None if self._own_objective else later
        else:
            return result
        reason = f"best in the model, which has no schedule that ends after {until:g} s"
        reason = (
            reason if status is Status.FEASIBLE else f"no schedule that ends by {until:g} s; the model has no others"
        )
        info = {**result.info, "until": until, "reason": reason}
        return replace(result, status=status, bound=bound, termination=Termination.FINISHED, info=info)

    def _solve_abstract(self, name: str, options: SolveOptions) -> Result:
        solver = find_engine(name)
        began = time.monotonic()
        answer = solver.solve(self.declarative, options)
        named = {v.name: answer.value(v) for v in self._layout.family_of} if answer.values is not None else {}
        return Result(
            answer.status,
            objective=answer.objective,
            bound=answer.bound,
            termination=answer.termination,
            solve_seconds=time.monotonic() - began,
            engine=name,
            engine_version=solver.version(),
            info={**answer.info, "values": named},
        )

    def check(self, solution: Solution) -> CheckReport:
        """The checker's report on a solution, own rows included, with the model's objective.

        Raises
        ------
        InputError
            The solution is malformed, or the model cannot be judged: see :meth:`add`.
        """
        self._refuse_abstract()
        self._judge_changes()
        report = self._check(solution)
        if report.violations or not (self.own_rows or self._own_objective):
            return report
        values = self._values(solution)
        if values is None:
            return replace(report, violations=(Violation("model", "the model does not have this solution"),))
        rows = dict(rows_of(self.problem))
        broken = [v for name in self.own_rows if (v := _violation(name, rows[name], values)) is not None]
        objective = _value(self.problem.objective, values) if self._own_objective else report.objective
        details = {**report.details, "problem_objective": report.objective}
        return CheckReport(tuple(broken), objective, details)

    def point(self, solution: Solution) -> Mapping[pulp.LpVariable, float]:
        """The values of all variables that stand for a feasible solution.

        Raises
        ------
        InputError
            The checker rejects the solution, or the model does not have it.
        """
        self._refuse_abstract()
        report = self._check(solution)
        if report.violations:
            raise InputError(f"solution: not feasible: {report.violations[0].message}")
        values = self._values(solution)
        if values is None:
            raise InputError(f"solution: the model {self.title} does not have it")
        return values

    def solution(self, values: Mapping[pulp.LpVariable, float] | Mapping[str, float]) -> Solution:
        """The schedule that another solver's values stand for, judged by the problem's checker and the own rows.

        Parameters
        ----------
        values : value of each variable, by its name here (``start[j0,5]``) or by its name in a file of :meth:`write`
            (``start(j0,5)``); what is left out is 0, as in the solution files of most solvers

        Returns
        -------
        Solution
            As ``Result.solution``: what ``schedgap.check``, ``plot`` and ``start=`` take.

        Raises
        ------
        InputError
            A name that the model does not have, a value that is no number, is out of the variable's range or not
            whole where the variable is (all within 1e-5); or the schedule is rejected.
        """
        self._refuse_abstract()
        self._judge_changes()
        if not isinstance(values, Mapping):
            raise InputError(f"values: must be by variable, or by its name, got {type(values).__name__}")
        known = columns_of(self.declarative) | {v.name: v for v in self._layout.family_of}
        found = dict.fromkeys(self._layout.family_of, 0.0)
        for key, value in values.items():
            if isinstance(key, str) and key == CONSTANT:
                continue
            variable = known.get(key) if isinstance(key, str) else key
            if variable not in self._layout.family_of:
                raise InputError(f"values: {key} is not a variable of this model{near(str(key), known)}")
            found[variable] = _in_range(variable, value)
        for variable, value in found.items():
            _in_range(variable, value)
        made = self._declarative.extract(found.__getitem__)
        try:
            report = self.check(made)
            if report.violations and self._declarative.repair is not None:
                made = self._declarative.repair(made) or made
                report = self.check(made)
        except InputError as error:
            raise RejectedSolution(f"values: {error}", made) from None
        if report.violations:
            more = f" (and {len(report.violations) - 1} more)" if len(report.violations) > 1 else ""
            raise RejectedSolution(f"values: the schedule is rejected: {report.violations[0].message}{more}", made)
        return made

    def write(self, path: str | Path, form: str | None = None) -> dict[str, str]:
        """Write the model.

        Parameters
        ----------
        path : the file
        form : "lp" or "mps"; where not given, the file's ending

        Returns
        -------
        The name in the file of every variable and row, by its name here.

        Raises
        ------
        InputError
            Another format, or a file that cannot be written.
        """
        path = Path(path)
        if form is None and path.suffix[1:] not in FORMATS:
            raise InputError(f"{path}: must end in .lp or .mps")
        form = path.suffix[1:] if form is None else form
        if form not in FORMATS:
            raise InputError(f"format: must be one of {', '.join(FORMATS)}, got {form!r}")
        check_writable(path)
        return write_model(self.declarative, path, form)

    def __str__(self) -> str:
        layout = self._layout
        direction = "minimise" if self.problem.sense == MINIMISE else "maximise"
        goal = str(self.problem.objective) if self._own_objective else layout.objective_text
        if len(goal) > 200:
            goal = f"{goal[:200]} ..."
        kind = "tightened for the solvers" if self._declarative.tightened else "no row cuts a schedule"
        kind = "its points are no schedules" if self._declarative.abstract else kind
        until = self._declarative.until
        kind += "" if until is None else f"; schedules that end by {until:g} s"
        every = dict(rows_of(self.problem))
        lines = [f"{self.title} ({kind})", f"{direction} {goal}", *layout.listing(len(every))]
        lines += [f"  {name}: {every[name]}" for name in self.own_rows]
        return "\n".join(lines)

    def _values(self, solution: Solution) -> Mapping[pulp.LpVariable, float] | None:
        assign = self._declarative.assign
        return (assign(solution) or None) if assign is not None else None

    def _objective(self, expression: Any, sense: int) -> None:
        self._refuse_tightened("a new objective")
        if isinstance(expression, int | float):
            expression = pulp.LpAffineExpression([], constant=float(expression))
        elif isinstance(expression, pulp.LpVariable):
            expression = pulp.LpAffineExpression([(expression, 1.0)])
        if not isinstance(expression, pulp.LpAffineExpression):
            raise InputError(f"objective: must be a linear expression, got {type(expression).__name__}")
        self._refuse_unknown(expression, "objective", sense)
        self.problem.setObjective(expression.copy())
        self.problem.sense = sense
        self._keep_objective()

    def _keep_objective(self) -> None:
        self._goal = self.problem.objective, self.problem.sense
        self._own_objective = True

    def _judge_changes(self) -> None:
        """Rows and an objective that came through PuLP, judged like those of `add`; a refused one is taken out."""
        objective, sense = self._goal
        if self.problem.objective is not objective or self.problem.sense != sense:
            try:
                self._refuse_tightened("a new objective")
                self._refuse_unknown(self.problem.objective, "objective", self.problem.sense)
            except InputError:
                self.problem.objective, self.problem.sense = objective, sense
                raise
            self._keep_objective()
        for name, row in rows_of(self.problem):
            if name not in self._built_rows and name not in self._judged:
                try:
                    self._refuse_tightened("add")
                    self._refuse_row(name, row)
                except InputError:
                    drop_row(self.problem, name)
                    raise
                self._judged.add(name)

    def _whole_objective(self) -> bool:
        goal = self.problem.objective
        return float(goal.constant).is_integer() and all(
            variable.cat == pulp.LpInteger and float(c).is_integer() for variable, c in goal.items()
        )

    def _refuse_tightened(self, what: str) -> None:
        if self._declarative.tightened:
            raise InputError(
                f"{what}: a tightened model keeps an optimum of its own objective only; use tighten=False to change it"
            )

    def _refuse_abstract(self) -> None:
        if self._declarative.abstract:
            raise InputError(f"solution: the points of {self.title} are no schedules")

    @property
    def _free(self) -> frozenset[str]:
        """Variables that no own row is about, so that rows leave them as whole as they were."""
        return frozenset(v.name for v, family in self._layout.family_of.items() if self._layout.kinds[family].free)

    def _refuse_row(self, name: str, row: Any) -> None:
        self._refuse_unknown(row.expr, f"row {name}", {-1: 1, 1: -1}.get(row.sense))

    def _refuse_unknown(self, expression: Any, what: str, upper: int | None) -> None:
        """`upper`: +1 where less of the expression is fine, -1 where more of it is, None where neither."""
        for variable, coefficient in expression.items():
            family = self._layout.family_of.get(variable)
            if family is None:
                raise InputError(f"{what}: {variable} is not a variable of this model")
            kind = self._layout.kinds[family]
            if kind.free:
                raise InputError(f"{what}: {variable} is not determined by a schedule, so no row can be about it")
            if kind.at_least and (upper is None or coefficient * upper < 0):
                raise InputError(f"{what}: {variable} may be larger than in the schedule, so it can only be limited")


def _closed(result: Result) -> bool:
    """Whether nothing more is to be asked: the answer is proven, or the user has interrupted it."""
    return result.status in (Status.OPTIMAL, Status.INFEASIBLE) or result.termination is Termination.INTERRUPTED


def _in_range(variable: pulp.LpVariable, value: object) -> float:
    """A value of another solver, rounded where the variable is whole."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InputError(f"values: {variable.name}: must be a number, got {value!r}")
    number = float(value)
    rounded = float(round(number)) if variable.cat == pulp.LpInteger else number
    low, high = (bound if bound is None else float(bound) for bound in (variable.lowBound, variable.upBound))
    slack = OF_SOLVERS * max(1.0, abs(number))
    if abs(rounded - number) > slack:
        raise InputError(f"values: {variable.name}: must be a whole number, got {number:.12g}")
    if (low is not None and rounded < low - slack) or (high is not None and rounded > high + slack):
        shown = f"{'-inf' if low is None else f'{low:g}'} to {'inf' if high is None else f'{high:g}'}"
        raise InputError(f"values: {variable.name}: must be in {shown}, got {number:.12g}")
    return rounded


def _value(expression: Any, values: Mapping[pulp.LpVariable, float]) -> Fraction:
    total = exact(float(expression.constant))
    return total + sum(
        (exact(float(c)) * exact(float(values[variable])) for variable, c in expression.items()), Fraction(0)
    )


def _level(row: Any) -> float:
    """The right side that makes a row of the same terms: its expression's constant is part of the row's."""
    return float(row.expr.constant - row.constant)


def _ordinary(expression: Any) -> Fraction:
    """1, or the largest of the terms within their bounds where all are smaller: rows in picoseconds are as exact."""
    reach = (
        abs(c) * (math.inf if v.upBound is None else max(abs(v.upBound), abs(v.lowBound or 0)))
        for v, c in expression.items()
    )
    return Fraction(min(1.0, max(reach, default=1.0)))


def _violation(name: str, row: Any, values: Mapping[pulp.LpVariable, float]) -> Violation | None:
    level = exact(float(-row.constant))
    expression = row.expr
    total = _value(expression, values) - exact(float(expression.constant))
    whole = all(variable.cat == pulp.LpInteger for variable in expression)
    slack = (CHECK_TOLERANCE if whole else CONTINUOUS_TOLERANCE) * max(_ordinary(expression), abs(level), abs(total))
    excess = total - level
    amount = abs(excess) if row.sense == 0 else excess * -row.sense
    if amount <= slack:
        return None
    relation = {-1: "<=", 0: "==", 1: ">="}[row.sense]
    return Violation("own row", f"{name}: {float(total):.12g} {relation} {float(level):.12g}", float(amount))
