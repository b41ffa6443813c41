"""Solutions checked, with what is claimed of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from schedgap.benchmarks.proving import CertificateLike, with_certificate
from schedgap.benchmarks.records import plain_number
from schedgap.catalogue.method import Method
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.numbers import agrees
from schedgap.reading import (
    InstanceLike,
    SolutionLike,
    checked,
    name_of,
    of_tools,
    outside_method,
    read_instance,
    read_result,
)
from schedgap.solvers.incumbent import contradicts, optimal


def check(instance: InstanceLike, solution: SolutionLike, certificate: CertificateLike | None = None) -> CheckReport:
    """Check a solution by exact rational arithmetic, independently of every model and heuristic.

    Parameters
    ----------
    instance, solution : objects, JSON objects, or paths of files
    certificate : what is said to bound the optimum; one that is rejected is a violation, and
        ``details["certificate"]`` tells what one that is accepted proves of the solution

    Returns
    -------
    CheckReport
        Every violated constraint with its numbers, and the recomputed objective. A schedule outside the model is
        judged by the checker of its method. Where the whole object of ``solve --json`` is given, also what it claims
        and cannot be true: its objective, its bound, its being optimal.

    Raises
    ------
    InputError
        The solution is malformed: an id the instance does not have, a wrong type, a missing part.
    """
    return checked_solution(instance, solution, certificate).report


@dataclass(frozen=True)
class Checked:
    """A solution that was checked.

    Attributes
    ----------
    problem, instance : whose solution it is
    report : the checker's report, with what was claimed of the solution and cannot be true
    outside : the method outside the model that made it, or None
    """

    problem: Problem
    instance: Instance
    report: CheckReport
    outside: Method | None

    @property
    def objective(self) -> float | int | None:
        """The recomputed objective."""
        return None if self.report.objective is None else plain_number(self.report.value)

    def to_dict(self) -> dict[str, Json]:
        """The object that ``check --json`` prints."""
        return {
            "problem": self.problem.id,
            "instance": self.instance.name,
            "feasible": self.report.feasible,
            "outside_model": self.outside is not None,
            "objective": self.objective,
            "violations": [asdict(violation) for violation in self.report.violations],
            "details": dict(self.report.details),
        }

    def to_text(self) -> str:
        """Every violation on its line, then the verdict and the objective."""
        found = self.report.violations
        verdict = "feasible" if not found else f"{len(found)} violated"
        if self.outside is not None:
            verdict += ", outside the model (judged by the checker of such schedules)"
        shown = "not defined" if self.objective is None else f"{self.objective} {self.problem.unit}".rstrip()
        lines = [f"{violation.constraint}: {violation.message}" for violation in found]
        lines.append(f"{verdict}; {self.problem.objective_name}: {shown}")
        proven = self.report.details.get("certificate")
        if proven is not None and "optimal" in proven:
            how = "exactly" if proven["exact"] else "to 1e-9"
            told = f"optimal, {how}" if proven["optimal"] else f"a gap of {proven['gap']:.9g} is left"
            lines.append(f"certificate: accepted, bound {proven['bound']}, {proven['leaves']} leaves; {told}")
        stated = self.report.details.get("vipr")
        if stated is not None:
            aim = "there is no schedule" if stated["claim"] is None else f"no schedule is better than {stated['claim']}"
            lines.append(f"vipr: its rows are those of the instance; it claims: {aim}; a checker of VIPR judges")
        return "\n".join(lines)


def checked_solution(
    instance: InstanceLike,
    solution: SolutionLike,
    certificate: CertificateLike | None = None,
    vipr: str | Path | None = None,
) -> Checked:
    """The result of :func:`check`, with what identifies the solution.

    `vipr` is a file whose rows should be the instance's.
    """
    problem, given = read_instance(instance)
    bare, whole = read_result(solution, problem)
    outside = outside_method(problem, bare, whole)
    report = checked(problem, given, bare, name_of(solution, "solution"), outside)
    claims = _claims(report, whole, problem.objective_name, problem.sense)
    report = replace(report, violations=(*report.violations, *claims))
    if certificate is not None:
        report, _ = with_certificate(problem, given, bare, report, certificate)
    if vipr is not None:
        report = of_tools("with_vipr")(problem, given, report, vipr)
    return Checked(problem, given, report, outside)


def _claims(report: CheckReport, claimed: Mapping[str, Any] | None, name: str, sense: int) -> list[Violation]:
    """What came with the solution and cannot be true: its objective, its bound, its being optimal."""
    if claimed is None or report.objective is None or report.violations:
        return []
    computed = report.value
    value, bound = (_number(claimed.get(key)) for key in ("objective", "bound"))
    found = []
    if value is not None and not agrees(value, computed):
        message = f"{name} {value:.12g} reported, {computed:.12g} recomputed"
        found.append(Violation("objective", message, abs(value - computed)))
    if bound is not None and contradicts(computed, bound, sense):
        message = f"bound {bound:.12g} reported, but {name} {computed:.12g} is better"
        found.append(Violation("bound", message, abs(bound - computed)))
    elif bound is not None and claimed.get("status") == "optimal" and not optimal(computed, bound, sense):
        message = f"reported optimal with bound {bound:.12g}, but {name} is {computed:.12g}"
        found.append(Violation("optimal", message, abs(bound - computed)))
    return found


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
