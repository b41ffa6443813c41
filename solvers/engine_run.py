"""Runs of one engine on one model until its answer stands: judged by the checker, mended, cut off and tried again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import RELATIVE_TOLERANCE
from schedgap.solvers.engines.answer import Engine, EngineAnswer, rounded_bound
from schedgap.solvers.engines.whole import BOUND_TOLERANCE
from schedgap.solvers.incumbent import Incumbent, contradicts
from schedgap.solvers.no_good_cuts import TIGHT_TOLERANCE, BrokenRow, add_no_good_cut, worst_broken_row
from schedgap.solvers.result import SolveOptions, Status, Termination

Check = Callable[[Solution], CheckReport]

ATTEMPTS = 50
"""How often a model is solved again after a solution that was off by the tolerance was cut off."""


@dataclass
class ModelSearch:
    """What is known so far while one model is solved, possibly several times and by several engines."""

    model: DeclarativeModel
    engine: Engine
    check: Check
    best: Incumbent
    cuts: int = 0
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def sense(self) -> int:
        return self.model.sense

    def tighten(self, bound: float | None) -> None:
        """Keep a proven bound when it is the best so far."""
        if bound is not None and self.model.objective_is_integral:
            bound = rounded_bound(bound, self.sense)
        self.best.tighten(bound)

    def tighten_from(self, answer: EngineAnswer) -> None:
        """A bound on the model: one on the problem too, where the engine is believed and the model no restriction."""
        if self.model.restriction:
            if answer.bound is not None:
                self.info["restricted bound"] = answer.bound
        elif not answer.doubt:
            self.tighten(answer.bound)

    def explained(self, checked: float, said: float, answer: EngineAnswer) -> bool:
        """Whether rounding explains that a point is worth `checked` to the checker and `said` to the model."""
        if self.model.objective_is_integral:
            return abs(checked - said) < 0.5
        within = BOUND_TOLERANCE if answer.doubt else RELATIVE_TOLERANCE
        return abs(checked - said) <= within * max(abs(checked), abs(said)) + self.model.resolution + answer.resolution


def run_engine(search: ModelSearch, solver: Engine, options: SolveOptions) -> tuple[EngineAnswer | None, Termination]:
    """Run one engine until its answer stands: the answer, or None where a limit came first, and why it ended."""
    for attempt in range(ATTEMPTS):
        if options.deadline.passed:
            return None, Termination.TIME_LIMIT
        answer = solver.solve(search.model, options)
        search.info.update(answer.info)
        if answer.nodes is not None:
            search.info["nodes"] = search.info.get("nodes", 0) + answer.nodes
        if answer.status in (Status.INFEASIBLE, Status.UNBOUNDED):
            restricted = search.model.restriction and answer.status is Status.INFEASIBLE
            return answer, Termination.FINISHED if restricted else answer.termination
        if answer.status is Status.ERROR:
            return answer, answer.termination
        broken = None if answer.values is None else _judge(search, solver, answer)
        search.tighten_from(answer)  # tolerances only add points, so the bound holds whatever the point violates
        if broken is None:
            return answer, answer.termination
        if not (answer.claimed or answer.status is Status.OPTIMAL or answer.termination is Termination.GAP_LIMIT):
            return answer, answer.termination
        after = _after_broken_row(search, solver, broken, options, answer, attempt)
        if after is None:
            return replace(answer, claimed=False), Termination.FAILED
        options = after
    return None, Termination.FAILED


def _judge(search: ModelSearch, solver: Engine, answer: EngineAnswer) -> BrokenRow | None:
    """Accept the answer's solution, or say what it violates.

    Raises
    ------
    Disagreement
        Model and checker contradict each other at a point that satisfies the model.
    """
    assert answer.objective is not None
    assert answer.values is not None
    try:
        solution = search.model.extract(answer.value)
    except ValueError as error:
        broken = worst_broken_row(search.model, answer.values)
        if broken is None:
            raise disagreement(solver, f"engine {solver.name}: {error}", None) from error
        return broken
    try:
        report = search.check(solution)
    except InputError as error:
        raise disagreement(solver, f"engine {solver.name}: malformed solution: {error}", solution) from error
    checked = None if report.objective is None else float(report.objective)
    if report.feasible and checked is not None:
        search.best.accept(solution, checked)
        if search.sense * (checked - answer.objective) <= 0 or search.explained(checked, answer.objective, answer):
            if not (search.model.restriction or answer.doubt):
                refute_bound(search, solver, answer.bound, checked, solution)
            return None
    broken = worst_broken_row(search.model, answer.values)
    violations = [violation.message for violation in report.violations]
    if broken is None or (broken.amount > broken.allowed and not answer.doubt):
        why = "; ".join(violations[:3]) or f"objective {checked:.12g} where the model says {answer.objective:.12g}"
        if broken is not None:
            why += f"; the engine's point violates row {broken.row} by {broken.amount:.3g}"
        raise disagreement(
            solver,
            f"engine {solver.name} and checker disagree: {why}",
            solution,
            objective=answer.objective,
            checked_objective=checked,
            violations=violations,
        )
    if search.model.repair is not None and not report.feasible:
        mended = search.model.repair(solution)
        if mended is not None:
            again = search.check(mended)
            if again.feasible and again.objective is not None:
                search.best.accept(mended, float(again.objective))
                if search.explained(float(again.objective), answer.objective, answer):
                    return None
    return broken


def refute_bound(
    search: ModelSearch, solver: Engine, bound: float | None, objective: float, solution: Solution | None
) -> None:
    """No confirmed solution may be better than a bound that is believed."""
    if bound is not None and search.model.objective_is_integral:
        bound = rounded_bound(bound, search.sense)
    if contradicts(objective, bound, search.sense):
        raise disagreement(
            solver,
            f"engine {solver.name} proves the bound {bound:.12g}, the checker confirms a solution of {objective:.12g}",
            solution,
            objective=objective,
            bound=bound,
        )


def _after_broken_row(
    search: ModelSearch, solver: Engine, broken: BrokenRow, options: SolveOptions, answer: EngineAnswer, attempt: int
) -> SolveOptions | None:
    """Make the next attempt differ: the point cut off, or a tighter tolerance; None where doubt is left."""
    if add_no_good_cut(search.model, broken, search.cuts):
        search.cuts += 1
        return options
    if options.feasibility_tolerance is None:
        return replace(options, feasibility_tolerance=TIGHT_TOLERANCE)
    if answer.doubt:
        return None
    raise disagreement(
        solver,
        f"engine {solver.name}: row {broken.row} is violated by {broken.amount:.3g} even with the tightest tolerance",
        None,
    )


def disagreement(solver: Engine, message: str, solution: Solution | None, **details: object) -> Disagreement:
    """The error, with what is needed to reproduce it."""
    return Disagreement(message, solution=solution, details={"engine": solver.name, **details})
