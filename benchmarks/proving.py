"""What a certificate proves of a solution: the checker of certificates beside the problem's own."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.catalogue.agreement import closed_by
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import check_ends
from schedgap.formulations.common.instance import Instance, Json, Solution
from schedgap.formulations.common.numbers import agrees

if TYPE_CHECKING:
    from schedgap.solvers.certificates.checker import Verdict

CertificateLike = Mapping[str, Json] | str | Path
"""A certificate object, or the path of its file, compressed or not."""


def compressed(certificate: Mapping[str, Json]) -> bytes:
    """The content of a certificate's file."""
    return gzip.compress(json.dumps(certificate, separators=(",", ":")).encode(), mtime=0)


def read_certificate(certificate: CertificateLike) -> str:
    """Its JSON text.

    Raises InputError: the file cannot be read, or has more bytes or values than the checker reads.
    """
    from schedgap.solvers.certificates.checker import text_of
    from schedgap.solvers.certificates.linear import Rejected

    if isinstance(certificate, Mapping):
        return json.dumps(certificate)
    try:
        check_ends(certificate)
        return text_of(str(certificate)).decode()
    except Rejected as fault:
        raise InputError(str(fault)) from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        text = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{certificate}: cannot be read as a certificate: {text}") from None


def with_certificate(
    problem: Problem, instance: Instance, solution: Solution, report: CheckReport, certificate: CertificateLike
) -> tuple[CheckReport, Verdict | None]:
    """The report with what a certificate proves of the solution.

    A certificate that is rejected, or that contradicts the solution, is a violation. ``details["certificate"]`` says
    what is proven.
    """
    from schedgap.solvers.certificates.content import other_sense
    from schedgap.solvers.certificates.linear import Rejected
    from schedgap.solvers.certificates.make import check

    text = read_certificate(certificate)
    try:
        mapped = not report.violations and problem.id not in ("comm-contention", "ddl-cluster")  # times are floats
        verdict = check(instance, text, solution if mapped else None)
        if verdict.sense != problem.sense:
            raise Rejected(other_sense(verdict.sense))
        by_rules = verdict.value
        if by_rules is not None and not agrees(float(by_rules), report.value):
            told = f"the rules give the schedule {float(by_rules):.12g}"
            own = f"the problem's checker {report.value:.12g}"
            raise Rejected(f"{told}, {own}")
    except Rejected as fault:
        violation = Violation("certificate", f"rejected: {fault}")
        return CheckReport((*report.violations, violation), report.objective, report.details), None
    value, bound = report.objective, verdict.bound
    found = list(report.violations)
    details: dict[str, Any] = {"bound": None if bound is None else str(bound), "leaves": verdict.leaves}
    if not report.violations and value is not None:
        closed = bound is not None and closed_by(problem, value, bound)
        if bound is None:
            found.append(Violation("certificate", "there is no schedule, says the certificate"))
        elif not closed and problem.sense * (value - bound) < 0:
            text = f"{problem.objective_name} {float(value):.12g} is better than the certified {float(bound):.12g}"
            found.append(Violation("certificate", text))
        else:
            details |= {"optimal": closed, "exact": value == bound, "gap": float(abs(value - bound))}
    return CheckReport(tuple(found), report.objective, {**report.details, "certificate": details}), verdict


def exact_value(problem: Problem, instance: Instance, solution: Solution) -> Fraction:
    """The exact objective, by the problem's checker."""
    objective = problem.check(instance, solution).objective
    assert objective is not None  # the solution was confirmed
    return Fraction(objective)
