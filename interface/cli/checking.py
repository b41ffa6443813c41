"""``schedgap check`` and ``schedgap verify``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedgap.cli.arguments import add_seed, count

if TYPE_CHECKING:
    from schedgap.formulations.common.check import CheckReport, Violation


def add_check(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``check``."""
    parser.add_argument("instance", metavar="INSTANCE", help="instance file, or - for standard input")
    parser.add_argument(
        "solution",
        metavar="SOLUTION",
        help="a bare solution, or the object that solve --json prints; - for standard input",
    )
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def check(arguments: argparse.Namespace) -> int:
    """Check a solution: 0 when it is feasible, 1 when it is not."""
    from schedgap.cli import files
    from schedgap.reading import checked, outside_method

    files.once(arguments.instance, arguments.solution)
    problem, instance = files.read_instance(arguments.instance)
    solution, claimed = files.read_solution(arguments.solution, problem)
    outside = outside_method(problem, solution, claimed)
    report = checked(problem, instance, solution, files.name_of(arguments.solution), outside)
    violations = [*report.violations, *_claims(report, claimed, problem.objective_name, problem.sense)]
    objective = None if report.objective is None else files.plain_number(float(report.objective))
    if arguments.json:
        data = {
            "problem": problem.id,
            "instance": instance.name,
            "feasible": not violations,
            "outside_model": outside is not None,
            "objective": objective,
            "violations": [{"constraint": v.constraint, "message": v.message, "amount": v.amount} for v in violations],
            "details": dict(report.details),
        }
        print(files.to_json(data))
    else:
        for violation in violations:
            print(f"{violation.constraint}: {violation.message}")
        verdict = "feasible" if not violations else f"{len(violations)} violated"
        if outside is not None:
            verdict += ", outside the model (judged by the checker of such schedules)"
        shown = "not defined" if objective is None else f"{objective} {problem.unit}".rstrip()
        print(f"{verdict}; {problem.objective_name}: {shown}")
    return 1 if violations else 0


def _claims(report: CheckReport, claimed: Mapping[str, Any] | None, name: str, sense: int) -> list[Violation]:
    """What came with the solution and cannot be true: its objective, its bound, its being optimal."""
    from schedgap.formulations.common.check import Violation
    from schedgap.formulations.common.numbers import agrees
    from schedgap.solvers.incumbent import contradicts, optimal

    if claimed is None or report.objective is None or report.violations:
        return []
    computed = float(report.objective)
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


def add_verify(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``verify``."""
    parser.add_argument("guarantees", nargs="*", metavar="GUARANTEE", help="ids as in schedgap list (default: all)")
    parser.add_argument("--instances", type=count, metavar="N", help="instances to try for each guarantee")
    add_seed(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="directory for counterexample files")
    parser.add_argument(
        "--power", action="store_true", help="tell how much smaller the constant of each held claim could be"
    )
    parser.add_argument("--json", action="store_true", help="print the ledger as one JSON object")


def verify(arguments: argparse.Namespace) -> int:
    """Try guarantees on many instances; refutations are findings, not failures."""
    from schedgap import api
    from schedgap.cli import files

    ledger = api.verify(
        arguments.guarantees,
        instances=arguments.instances,
        seed=arguments.seed,
        out=arguments.out,
        progress=sys.stderr,
    )
    print(files.to_json(ledger.to_dict()) if arguments.json else ledger.to_text(power=arguments.power))
    return 0
