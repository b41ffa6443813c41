"""A declarative model solved by an engine: its answer judged by the checker, mended, cut off, and solved again."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pulp

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import Disagreement, EngineMissing, InputError, ModelRefused, ModelTooLarge
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, RELATIVE_TOLERANCE, agrees, exact
from schedgap.solvers.budget import too_large
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.answer import Engine, EngineAnswer, rounded_bound
from schedgap.solvers.engines.arrays import INTEGRALITY_TOLERANCE, model_arrays, rows_of
from schedgap.solvers.engines.exact_bound import exact_bound, nothing_better
from schedgap.solvers.engines.integers import slack_of
from schedgap.solvers.engines.whole import BOUND_TOLERANCE, whole_model
from schedgap.solvers.incumbent import Incumbent, contradicts
from schedgap.solvers.result import Proof, Result, SolveOptions, Status, Termination

TIGHT_TOLERANCE = 1e-9
"""The tolerance with which a model is solved again."""
LARGEST_ROW = 10_000
"""Variables of a row up to which a point that breaks it is excluded by a no-good cut."""


@dataclass(frozen=True)
class BrokenRow:
    """The row that a point breaks most, beyond the checker's tolerance."""

    row: str  # its name
    amount: float  # size of the violation in the row's own units
    # how much an engine's tolerances can explain: 1e-5 times the sum of the row's |coefficients| and |right-hand side|,
    # since integer variables within 1e-5 of a whole number are rounded
    allowed: float
    point: Mapping[pulp.LpVariable, float]  # the values of the row's variables


def worst_broken_row(model: DeclarativeModel, values: Mapping[pulp.LpVariable, float]) -> BrokenRow | None:
    """The row that `values` breaks most in exact arithmetic, or None where all hold within 1e-9 relative.

    A row that had to be rounded (``model.rounded``) and is broken as it should be comes first.
    The limit of a row over integers gives way just as it does where engines round it to a whole number.
    """
    worst: BrokenRow | None = None
    ratio = Fraction(0)
    for name, terms in model.rounded.items():
        point = {v: float(round(values[v])) for v in terms}
        lost = sum((c * int(point[v]) for v, c in terms.items()), Fraction(0))
        off = max(abs(values[v] - point[v]) for v in terms)
        if lost > 0 and off <= INTEGRALITY_TOLERANCE:
            return BrokenRow(
                name,
                float(lost),
                math.inf,
                point,
            )
    for name, row in rows_of(model.problem):
        level = exact(float(-row.constant))
        total = sum((exact(float(c)) * exact(float(values[v])) for v, c in row.items()), Fraction(0))
        excess = total - level
        amount = abs(excess) if row.sense == 0 else max(Fraction(0), excess * -int(row.sense))
        largest = max((abs(exact(float(c))) for c in row.values()), default=Fraction(1))
        size = max(min(Fraction(1), largest), abs(level), abs(total))
        slack = CHECK_TOLERANCE * size
        if all(v.cat == pulp.LpInteger for v in row.keys()):  # noqa: SIM118 - a constraint is not a mapping
            slack = slack_of(float(level), float(largest))
        if amount > slack and amount / size > ratio:
            ratio = amount / size
            weight = sum(abs(float(c)) for c in row.values()) + abs(float(level))
            worst = BrokenRow(
                name,
                float(amount),
                INTEGRALITY_TOLERANCE * max(1.0, weight),
                {v: values[v] for v in row.keys()},  # noqa: SIM118 - a constraint is not a mapping
            )
    return worst


def add_no_good_cut(model: DeclarativeModel, broken: BrokenRow, number: int) -> bool:
    """Forbid the values that break ``broken.row``, when its variables are all integer.

    Their combination breaks the row in exact arithmetic, whatever the other variables are, so no feasible
    point is lost. Adds to ``model.problem``: for a binary x with value 1 the term 1 - x, with value 0 the term
    x; for another integer x in [l, u] with value v two binaries d, e with x <= v - 1 + (u - v + 1)(1 - d) and
    x >= v + 1 - (v + 1 - l)(1 - e), and the terms d and e; the sum of all terms is at least 1.

    Returns
    -------
    bool
        False where a variable of the row is continuous or unbounded: then no such cut exists.
    """
    if len(broken.point) > LARGEST_ROW:
        return False
    for variable, value in broken.point.items():
        bounds = (variable.lowBound, variable.upBound)
        if variable.cat != pulp.LpInteger or None in bounds or value != round(value):
            return False
    problem = model.problem
    create = getattr(problem, "add_variable", pulp.LpVariable)
    terms: list[tuple[pulp.LpVariable, float]] = []
    constant = 0.0
    for place, (variable, value) in enumerate(broken.point.items()):
        low, high = math.ceil(variable.lowBound), math.floor(variable.upBound)
        if low == high:
            continue
        if value == low and high == low + 1:
            terms.append((variable, 1.0))
            constant -= low
        elif value == high and high == low + 1:
            terms.append((variable, -1.0))
            constant += high
        else:
            below = create(f"cut{number}_{place}_below", 0, 1, cat=pulp.LpInteger)
            above = create(f"cut{number}_{place}_above", 0, 1, cat=pulp.LpInteger)
            reach_down, reach_up = high - value + 1, value + 1 - low
            problem += (
                pulp.LpAffineExpression([(variable, 1.0), (below, float(reach_down))]) <= value - 1 + reach_down,
                f"cut{number}_{place}_down",
            )
            problem += (
                pulp.LpAffineExpression([(variable, 1.0), (above, -float(reach_up))]) >= value + 1 - reach_up,
                f"cut{number}_{place}_up",
            )
            terms += [(below, 1.0), (above, 1.0)]
    problem += (pulp.LpAffineExpression(terms, constant) >= 1, f"cut{number}")
    return True


Check = Callable[[Solution], CheckReport]

ATTEMPTS = 50
"""Solves of a model, the first one included, while solutions that break a row by the tolerance are cut off."""


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
            bound = int(bound) if self.model.whole_results else bound
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
    for _ in range(ATTEMPTS):
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
        after = _after_broken_row(search, solver, broken, options, answer)
        if after is None:
            return replace(answer, claimed=False), Termination.FAILED
        options = after
    return None, Termination.FAILED


def _judge(search: ModelSearch, solver: Engine, answer: EngineAnswer) -> BrokenRow | None:
    """Accept the answer's solution, or say what it violates.

    Raises Disagreement: model and checker contradict each other at a point that satisfies the model.
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
    checked = None if report.objective is None else report.value
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
                search.best.accept(mended, again.value)
                if search.explained(again.value, answer.objective, answer):
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
    search: ModelSearch, solver: Engine, broken: BrokenRow, options: SolveOptions, answer: EngineAnswer
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


MOST_EXACT_FIRST = ("cpsat", "highs", "cbc")
"""The engines that are asked where another's declared range is exceeded."""
RELAXATION_SHARE = 0.3
"""Share of the remaining time for the linear relaxation, where its bound is the only one that counts."""


def solve_declarative(
    build: Callable[[], DeclarativeModel],  # builds the model; its time counts against the deadline
    engine_name: str,  # such as "cbc", "highs" or "cpsat"
    options: SolveOptions,  # limits, seed, start, progress
    check: Check,  # the problem's independent checker for this instance
    # an estimate of the model's size before it is built; a model that cannot be built in the time left (or in the
    # memory there is) is not attempted: termination TOO_LARGE, status FEASIBLE with a feasible ``options.start`` or the
    # fallback's solution, UNKNOWN where there is neither
    nonzeros: int | None = None,
    # finds a quick solution; asked where the model is not attempted and no start is feasible
    fallback: Callable[[], Solution | None] | None = None,
) -> Result:
    """Build a model, solve it, and return what the checker confirms.

    Every solution is re-scored by `check`; its objective is the Result's. A solution that is off by the
    engine's feasibility tolerance is mended (``model.repair``), or the point is cut off and the model solved
    again. With whole-number objectives the bound is rounded to the next whole number. OPTIMAL is returned
    only when the bound meets the checker's objective. A feasible ``options.start`` is never lost, nor are
    the start and the bound that the model's builder knows; the engine starts from the better solution. Of a model
    that is a restriction of the problem only solutions count, and its builder's bound.

    Raises
    ------
    EngineMissing, ModelRefused
        The engine is not there, or cannot solve this model truthfully.
    Disagreement
        Engine and checker contradict each other by more than tolerance. The exception carries the solution
        and the numbers; the caller, who knows the instance, writes it to a file.
    """
    solver = engine(engine_name)
    began = time.monotonic()
    version = solver.version()
    if nonzeros is not None and (
        reason := too_large(nonzeros, options.deadline, solver.handover_cost, options.memory_limit)
    ):
        known = _first_feasible(check, options.start, fallback)
        info = {"nonzeros": nonzeros, "reason": reason}
        return _unsolved(solver, version, Termination.TOO_LARGE, began, known, info)
    try:
        model = _built(build)
    except ModelTooLarge as fault:
        kept = _first_feasible(check, options.start, fallback)
        info = {"reason": str(fault)}
        return _unsolved(solver, version, Termination.TOO_LARGE, began, kept, info)
    except KeyboardInterrupt:
        return _unsolved(solver, version, Termination.INTERRUPTED, began, _first_feasible(check, options.start), {})
    built = time.monotonic()
    search = ModelSearch(model, solver, check, Incumbent(model.sense, SolveOptions(stages=options.stages)))
    for start in (options.start, model.start if search.best.stage("start") else None):
        if start is not None:
            _take_start(search, start)
    if search.best.solution is not None:
        options = replace(options, start=search.best.solution)
    if search.best.stage("bound"):
        search.tighten(model.bound)
    status, termination = None, Termination.FINISHED
    try:
        if search.best.stage("engine"):
            if options.deadline.moment is not None and not model.restriction:
                _bound_beforehand(search, options)
            status, termination = _solve(search, options)
    except KeyboardInterrupt:  # between native runs, or in a relaxation; engines handle it during their own
        status, termination = None, Termination.INTERRUPTED
    seconds = built - began, time.monotonic() - built
    return _result(search, status, termination, options.relative_gap, version, *seconds)


def second_engines(name: str) -> tuple[str, ...]:
    """Engines of other makes than the one called `name`, in the order in which they are asked."""
    return tuple(other for other in MOST_EXACT_FIRST if other != name)


def _built(build: Callable[[], DeclarativeModel]) -> DeclarativeModel:
    """Build without cycle collection, which would walk the growing model again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return build()
    finally:
        if collecting:
            gc.enable()


def _take_start(search: ModelSearch, start: Solution) -> None:
    report = search.check(start)
    if report.feasible and report.objective is not None:
        search.best.accept(start, report.value)


def _bound_beforehand(search: ModelSearch, options: SolveOptions) -> None:
    """The exact bound of the linear relaxation, where the engine's own would not count and time may run out."""
    whole = whole_model(model_arrays(search.model))
    remaining = options.deadline.remaining()
    if remaining and not whole.arrays.contradiction and search.engine.limits.exceeded(whole):
        search.tighten(exact_bound(whole, options.deadline.capped(RELAXATION_SHARE * remaining)))


def _solve(search: ModelSearch, options: SolveOptions) -> tuple[Status | None, Termination]:
    """Solve until the answer stands. The status where one was proven without a solution."""
    answer, termination = run_engine(search, search.engine, options)
    if answer is None or search.model.restriction or not answer.doubt:
        return (None if answer is None else _without_solution(search, answer)), termination
    search.info["doubt"] = answer.doubt
    failed = termination is Termination.FAILED  # the engine contradicts itself, as it may out of its range
    if not answer.claimed and not failed and answer.status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        return None, termination
    if options.deadline.moment is None and search.best.solution is not None:  # else it is known already
        search.tighten(exact_bound(whole_model(model_arrays(search.model)), options.deadline))
    if search.best.proven:
        return None, Termination.PROVEN
    first = None if answer.values is None else _scored(search, answer)
    status, termination = _second_opinion(search, options, answer, first)
    if status is not None or search.best.proven:
        return status, Termination.PROVEN
    return None, Termination.TIME_LIMIT if options.deadline.passed else termination


def _second_opinion(
    search: ModelSearch, options: SolveOptions, answer: EngineAnswer, first: float | None
) -> tuple[Status | None, Termination]:
    """What an engine of another make says of an answer that its engine cannot prove alone.

    What it proves is kept; where both are in doubt, they must agree, and an exact tree tells what they cannot. Returns
    (status that was proven without a solution, why the engine stopped).

    Parameters
    ----------
    first : the checker's objective of the first answer's own point
    """
    for name in second_engines(search.engine.name):
        try:
            hint = options.start if name == "cpsat" else None  # a start would make an engine in doubt agree
            second, termination = run_engine(search, engine(name), replace(options, start=hint, log=None))
        except (EngineMissing, ModelRefused):
            continue
        if second is None:
            return None, termination
        search.info["second engine"] = name
        checked = None if second.values is None else _scored(search, second)
        same_value = first is not None and checked is not None and agrees(first, checked)
        without = second.status is answer.status and second.status in (Status.INFEASIBLE, Status.UNBOUNDED)
        if not second.doubt:
            search.info["proof"] = Proof.AGREED if same_value or without else Proof.CLAIMED
            return _without_solution(search, second), termination
        nothing = without and search.best.solution is None
        if not nothing and not (same_value and second.claimed):
            return None, termination
        # Engines in floating point agree to 1e-6, and on what they cut off: a tree shows the rest.
        model, value = whole_model(model_arrays(search.model)), None if nothing else first
        if second.status is not Status.UNBOUNDED and not nothing_better(model, value, options.deadline):
            what = "there is no schedule" if nothing else "nothing better lies within 1e-6"
            search.info["reason"] = f"{name} finds the same; that {what} is not shown"
            return None, termination
        search.info["proof"] = Proof.AGREED
        if nothing:
            return second.status, termination
        search.tighten(first)
        return None, termination
    return None, Termination.FINISHED


def _scored(search: ModelSearch, answer: EngineAnswer) -> float | None:
    """The checker's objective of the answer's own point; None where it is not feasible."""
    try:
        report = search.check(search.model.extract(answer.value))
    except (InputError, ValueError):
        return None
    return report.value if report.feasible and report.objective is not None else None


def _without_solution(search: ModelSearch, answer: EngineAnswer) -> Status | None:
    """The status of an answer that proves that there is no solution, or no bounded one."""
    if answer.status not in (Status.INFEASIBLE, Status.UNBOUNDED):
        return Status.ERROR if answer.status is Status.ERROR and search.best.solution is None else None
    if search.model.restriction and answer.status is Status.INFEASIBLE:
        return None
    _refute_by_solution(search, answer)
    return answer.status


def _refute_by_solution(search: ModelSearch, answer: EngineAnswer) -> None:
    """No solution may be known where a believed engine proves that there is none."""
    if answer.status is Status.INFEASIBLE and search.best.solution is not None:
        raise disagreement(
            search.engine,
            f"engine {search.engine.name} proves infeasibility, the checker confirms a solution "
            f"of {search.best.objective:.12g}",
            search.best.solution,
            objective=search.best.objective,
        )


def _result(
    search: ModelSearch,
    status: Status | None,
    termination: Termination,
    relative_gap: float,
    version: str,
    build_seconds: float,
    solve_seconds: float,
) -> Result:
    best = search.best
    objective, bound = best.in_own(best.objective), best.in_own(best.bound)
    if objective is not None:
        refute_bound(search, search.engine, bound, objective, search.best.solution)
    search.info.update(search.best.decided_by)
    if search.best.proven:
        status, termination, bound = Status.OPTIMAL, Termination.PROVEN, objective
    if status is None:
        status = Status.UNKNOWN if objective is None else Status.FEASIBLE
        if termination is Termination.PROVEN and search.model.restriction:  # the engine's proof was of the model
            termination = Termination.FINISHED
        if termination is Termination.PROVEN or (termination is Termination.GAP_LIMIT and not relative_gap):
            termination = Termination.FINISHED  # the engine's proof was of a point that the checker scores worse
            search.info.setdefault("reason", "what is left between value and bound is the model's rounded numbers")
    if search.cuts:
        search.info["cut off"] = search.cuts
    return Result(
        status=status,
        objective=objective,
        bound=bound if status in (Status.OPTIMAL, Status.FEASIBLE, Status.UNKNOWN) else None,
        solution=search.best.solution,
        termination=termination,
        build_seconds=build_seconds,
        solve_seconds=solve_seconds,
        engine=search.engine.name,
        engine_version=version,
        info=search.info,
    )


def _first_feasible(
    check: Check, start: Solution | None, fallback: Callable[[], Solution | None] | None = None
) -> tuple[Solution, float] | None:
    """The start, or else what the fallback finds, with the checker's objective; None where neither is feasible."""
    if start is not None:
        report = check(start)
        if report.feasible and report.objective is not None:
            return start, report.value
    return None if fallback is None else _first_feasible(check, fallback())


def _unsolved(
    solver: Engine,
    version: str,
    termination: Termination,
    began: float,
    known: tuple[Solution, float] | None,
    info: dict[str, Any],
) -> Result:
    """The result where the engine never ran."""
    return Result(
        Status.UNKNOWN if known is None else Status.FEASIBLE,
        objective=None if known is None else known[1],
        solution=None if known is None else known[0],
        termination=termination,
        build_seconds=time.monotonic() - began,
        solve_seconds=0.0,
        engine=solver.name,
        engine_version=version,
        info=info,
    )
