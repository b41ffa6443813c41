"""A second look at an answer that rests on one solver alone: a certificate, or an engine of another make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

from schedgap.benchmarks.proving import exact_value
from schedgap.catalogue.agreement import Check, closed_by, written
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import Disagreement, EngineMissing, ModelRefused
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.common.numbers import agrees, better
from schedgap.solvers.budget import Budget, OutOfBudgetError, too_large
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.make import Effort, prove
from schedgap.solvers.certificates.tree import Unproven
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.arrays import model_arrays
from schedgap.solvers.engines.declarative import ModelSearch, disagreement, run_engine, second_engines
from schedgap.solvers.engines.whole import whole_model
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Deadline, Proof, Result, SolveOptions, Status

SECONDS = 1.0
"""What a confirmation may take however quick the solve was; it may take as long as the solve did."""
LEAVES, SIZE = 20_000, 20_000
"""Largest certificate: leaves of its tree; variables and rows of its model."""
GRACE = 0.3
"""Seconds after its time at which a confirmation that does not look at it is ended."""
SHARE = 0.5
"""Share of the remaining time for each way but the last one."""

FLOATING_FIRST = ("highs", "cbc", "cpsat")
"""Asked of a method that rests on no engine: those that take every model come first."""
Way = Callable[[Deadline], Proof | None]
"""(when to give up) -> the level of proof that is reached."""


def confirmed(
    problem: Problem,
    instance: Instance,
    method: Method,
    # of `method`; one that is not an optimum or "infeasible", or is more than claimed, is returned as it is
    result: Result,
    options: SolveOptions,  # deadline, threads, seed and memory limit
    check: Check,  # the problem's checker for the instance
    note: Callable[[str], None] = lambda line: None,  # told of a confirmation that failed for a reason of its own
) -> Result:
    """The result, with a higher level of proof where an independent program says the same.

    Asked are a certificate, then engines of another make on the declarative model. All of them together take no
    longer than `result` took, or :data:`SECONDS`, and end by the deadline of `options`. Nothing but the level of proof
    changes; ``info["confirmed_by"]`` says who confirmed. Raises Disagreement: a better solution, or one of an instance
    without any, is accepted by the checker; or an engine that is believed proves that there is none. The instance is
    written to a file.
    """
    if result.proof is not Proof.CLAIMED or result.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        return result
    ends = options.deadline.capped(max(SECONDS, result.seconds or 0.0))
    for name, way in _ways(problem, instance, method, result, options, check):
        left = ends.remaining()
        if not left:
            break
        try:
            level = _within(ends.capped(SHARE * left if name == "certificate" else left), options, way)
        except (EngineMissing, ModelRefused):
            continue
        except Disagreement as error:
            raise written(error, instance, [error.solution, result.solution], check, problem.sense) from error
        except Exception as fault:  # of the confirmation: what was solved is not lost with it
            note(f"schedgap: note: no confirmation by {name}: {type(fault).__name__}: {fault}")
            continue
        if level is not None:
            known = result.proven(level)
            return replace(known, info={**known.info, "confirmed_by": name})
    return result


def _within(deadline: Deadline, options: SolveOptions, way: Way) -> Proof | None:
    """What a way reaches in its time and memory."""
    budget = Budget(deadline, grace=GRACE, memory=options.memory_limit)
    try:
        with budget:
            return way(deadline)
    except OutOfBudgetError:
        budget.end()
        return None


def _ways(
    problem: Problem, instance: Instance, method: Method, result: Result, options: SolveOptions, check: Check
) -> Iterator[tuple[str, Way]]:
    """The ways to confirm an answer, by name, the strongest first."""
    yield "certificate", lambda deadline: _certificate(problem, instance, result, deadline)
    used = {result.engine, result.info.get("second engine"), *method.engines}
    able = {other.id for other in problem.methods if other.kind is Kind.ENGINE} - used
    for engine_id in second_engines(result.engine) if result.engine else FLOATING_FIRST:
        if engine_id in able:

            def ask(deadline: Deadline, name: str = engine_id) -> Proof | None:
                limits = replace(options, deadline=deadline, relative_gap=0.0, work_limit=None, report=None, log=None)
                return _second_engine(problem, instance, result, name, limits, check)

            yield engine_id, ask


def _certificate(problem: Problem, instance: Instance, result: Result, deadline: Deadline) -> Proof | None:
    value = None if result.solution is None else exact_value(problem, instance, result.solution)
    try:
        effort = Effort(deadline, LEAVES, SIZE)
        claim = prove(instance, value, result.solution, effort, sense=problem.sense)["claim"]
    except (Unproven, Rejected):  # none was found, or the problem has no such rules
        return None
    # A claim of less than the value leaves open
    # whether the value is the optimum.
    if value is None or closed_by(problem, value, Fraction(claim)):
        return Proof.CERTIFIED
    return None


def _second_engine(
    problem: Problem, instance: Instance, result: Result, name: str, options: SolveOptions, check: Check
) -> Proof | None:
    """Whether an engine on the declarative model says the same, by its own bound and not by one of ours.

    An engine within its range starts from the solution: it has only to show that nothing is better. One beyond it
    has to find the value again by itself. Raises Disagreement: it says something else.
    """
    solver, size = engine(name), problem.model_size(instance)
    if size is not None and too_large(size, options.deadline, solver.handover_cost, options.memory_limit):
        return None
    model = problem.model(instance)
    if model is None or model.restriction:
        return None
    in_range = not solver.limits.exceeded(whole_model(model_arrays(model)))
    search = ModelSearch(model, solver, check, Incumbent(model.sense))
    answer, _ = run_engine(search, solver, replace(options, start=result.solution if in_range else None))
    value = search.best.in_own(search.best.objective)
    if value is not None and (result.objective is None or better(value, result.objective, problem.sense)):
        claim = "no solution" if result.objective is None else f"no better solution than {result.objective:.12g}"
        raise disagreement(solver, f"{claim} is claimed, {name} has one of {value:.12g}", search.best.solution)
    if answer is None:
        return None
    if answer.status is Status.INFEASIBLE and not answer.doubt and result.solution is not None:
        raise disagreement(
            solver, f"{name} proves infeasibility, the checker accepts a solution of {result.objective:.12g}", None
        )
    if result.status is Status.INFEASIBLE:
        return Proof.AGREED if answer.status is Status.INFEASIBLE else None
    said = answer.status is Status.OPTIMAL or (bool(answer.doubt) and answer.claimed)
    if not said or value is None or result.objective is None:
        return None
    return Proof.AGREED if agrees(value, result.objective) else None
