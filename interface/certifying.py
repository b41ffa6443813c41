"""Certificates: made, written, and checked beside a solution."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.benchmarks.proving import compressed, exact_value
from schedgap.benchmarks.records import plain_number
from schedgap.benchmarks.sweep.store import locked_file as locked_file
from schedgap.catalogue.agreement import closed_by
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_method
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, Json
from schedgap.interrupt import at_work
from schedgap.reading import InstanceLike, checked, name_of, of_tools, read_instance
from schedgap.solvers.result import Deadline, Proof, Result, Status

if TYPE_CHECKING:
    from schedgap.benchmarks.sweep.progress import Sink
    from schedgap.solvers.certificates.checker import Verdict

_FOR_SOLVING = 0.5
"""Share of a time limit for solving; the rest is for the proof."""
_GRACE = 0.5
"""Seconds after a time limit at which a proof that does not look at it is ended."""


@dataclass(frozen=True)
class Certified:
    """What :func:`certify` found.

    Attributes
    ----------
    result : answer of the method
    certificate : accepted by the checker, of the optimum or else of a bound; None where there is neither
    bound : what it proves about the optimum, exactly; None without one, and where it proves that nothing is feasible
    leaves : number of leaves of its tree
    reason : why there is no certificate of an optimum, where there is none
    seconds : duration of making and checking it, without solving
    """

    problem: Problem = field(repr=False)
    instance: Instance
    result: Result
    certificate: Mapping[str, Any] | None = field(repr=False)
    bound: Fraction | None
    leaves: int
    reason: str
    seconds: float

    @property
    def infeasible(self) -> bool:
        """Whether it proves that there is no schedule."""
        return self.certificate is not None and self.bound is None

    @cached_property
    def value(self) -> Fraction | None:
        """The exact objective of the schedule, None where there is none."""
        solution = self.result.solution
        return None if solution is None else exact_value(self.problem, self.instance, solution)

    @property
    def optimal(self) -> bool:
        """Whether it proves the schedule that was found to be an optimum."""
        return self.bound is not None and self.value is not None and closed_by(self.problem, self.value, self.bound)

    @property
    def size(self) -> int:
        """Bytes, compressed."""
        return 0 if self.certificate is None else len(compressed(self.certificate))

    def write(self, path: str | Path) -> None:
        """Write the certificate, compressed.

        Raises
        ------
        InputError
            There is none.
        """
        if self.certificate is None:
            raise InputError(f"{path}: no certificate to write: {self.reason}")
        from schedgap.formulations.common.files import write_bytes

        write_bytes(Path(path), compressed(self.certificate))

    def write_vipr(self, path: str | Path) -> None:
        """Write the certificate as a file of VIPR 1.0, which checkers of others read (``docs/certificates.md``).

        Raises
        ------
        InputError
            There is none, or it is of a form without rows.
        """
        from schedgap.formulations.common.files import write_bytes
        from schedgap.solvers.certificates.linear import Rejected

        if self.certificate is None:
            raise InputError(f"{path}: no certificate to write: {self.reason}")
        try:
            text: str = of_tools("as_vipr")(self.instance, self.certificate)
        except Rejected as fault:
            raise InputError(f"{path}: not written: {fault}") from None
        write_bytes(Path(path), text.encode())

    def to_dict(self) -> dict[str, Json]:
        """The object that ``certify --json`` prints."""
        return {
            "problem": self.problem.id,
            "instance": self.instance.name,
            "status": self.result.status.value,
            "objective": plain_number(self.result.objective),
            "proof": self.result.proof,
            "bound": None if self.bound is None else plain_number(float(self.bound)),
            "exact_bound": None if self.bound is None else str(self.bound),
            "leaves": self.leaves,
            "bytes": self.size,
            "seconds": self.seconds,
            "reason": self.reason or None,
        }

    def to_text(self) -> str:
        """What is proven, and how large the proof is."""
        if self.certificate is None:
            return f"not certified: {self.reason}"
        size = f"{self.leaves} leaves, {self.size} bytes compressed, {self.seconds:.2f} s"
        if self.bound is None:
            return f"certified: there is no schedule; {size}"
        value = self.value if self.optimal and self.value is not None else self.bound
        shown = f"{self.problem.objective_name} {float(value):.12g} {self.problem.unit}".rstrip()
        if self.optimal:
            exactly = f"exactly {value}" if value == self.bound else f"to 1e-9: the bound is {self.bound}"
            return f"certified: optimal, {shown} ({exactly}); {size}"
        side = "at least" if self.problem.sense > 0 else "at most"
        return f"certified bound: the optimum is {side} {shown}; {size}; not the optimum: {self.reason}"


@at_work()
def certify(
    instance: InstanceLike,
    method: str | Result | None = None,
    *,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    seed: int = 0,
    rows: bool = False,
    progress: Sink | None = None,
) -> Certified:
    """Solve an instance, and prove what was found in exact rational arithmetic.

    Parameters
    ----------
    instance : an instance, its JSON object, or the path of its file
    method : finds the schedule; the strongest exact one where not given. A result of :func:`schedgap.solve` is taken
        as it is and not solved again: its claim is what is to be proven
    time_limit : seconds, without imports and what is compiled the first time;
        half of them for the schedule, the rest for the proof
    memory_limit : GB that the method may take
    seed : seed of the method
    rows : a certificate that can be written as VIPR, or none
    progress : a stream, or a function that is told whole lines

    Returns
    -------
    Certified
        Its certificate has been accepted by :mod:`schedgap.solvers.certificates.checker`.

    Raises
    ------
    InputError
        Bad input, a method outside the model, or a result whose schedule the checker rejects;
        `rows` where no form of the problem can be written.
    """
    from schedgap.solvers.budget import Budget, OutOfBudgetError
    from schedgap.solvers.certificates.make import Effort, check, prove
    from schedgap.solvers.certificates.make_bound import prove_bound
    from schedgap.solvers.certificates.rows_only import says_bounds, unsaid
    from schedgap.solvers.certificates.tree import Unproven
    from schedgap.solving import solve

    problem, given = read_instance(instance)
    if rows and (why := unsaid(problem.id)):
        name = name_of(instance, "instance")
        raise InputError(f"{name}: certificates of {problem.id} are not written: {why}")
    ends = Deadline.after(time_limit)
    if isinstance(method, Result):
        result = _at_hand(problem, given, method)
    else:
        if method is not None and find_method(problem, method).outside_model:
            raise InputError(f"method {method}: {_outside(problem)}")
        share = None if time_limit is None else _FOR_SOLVING * time_limit
        result = solve(
            given, method, time_limit=share, memory_limit=memory_limit, seed=seed, confirm=False, progress=progress
        )
    began = time.monotonic()
    accepted: tuple[dict[str, Any], Verdict] | None = None
    reason = ""
    budget = Budget(ends, grace=_GRACE)
    try:
        with budget:
            value = None
            if result.status is not Status.INFEASIBLE and (not rows or says_bounds(problem.id)):
                try:
                    bounded = prove_bound(given, problem.sense)
                    accepted = bounded, check(given, bounded)
                except Unproven as fault:
                    reason = str(fault)
            if result.status is Status.OPTIMAL and result.solution is not None:
                value = exact_value(problem, given, result.solution)
            elif result.status is not Status.INFEASIBLE:
                raise Unproven(f"the method ends with status {result.status.value}")
            known = (given, value, result.solution, Effort(ends), accepted[0] if accepted else {})
            found = prove(*known, rows=rows, sense=problem.sense)
            accepted = found, check(given, found)
            reason = ""
            result = result.proven(Proof.CERTIFIED)
    except Unproven as fault:
        reason = f"{reason}; {fault}" if reason else str(fault)
    except OutOfBudgetError:
        budget.end()
        reason = budget.reason
    certificate, verdict = accepted or (None, None)
    return Certified(
        problem,
        given,
        result,
        certificate,
        None if verdict is None else verdict.bound,
        0 if verdict is None else verdict.leaves,
        reason,
        time.monotonic() - began,
    )


def _at_hand(problem: Problem, instance: Instance, result: Result) -> Result:
    """A result with the objective that the checker computes of its schedule."""
    if result.info.get("outside_model"):
        raise InputError(f"result: {_outside(problem)}")
    if result.solution is None:
        return result
    report = checked(problem, instance, result.solution, "result")
    if report.violations or report.objective is None:
        why = report.violations[0].message if report.violations else "it has no objective"
        raise InputError(f"result: its schedule is rejected: {why}")
    return replace(result, objective=report.value)


def _outside(problem: Problem) -> str:
    return f"its schedules are outside the model of {problem.id}, there is no proof of them"
