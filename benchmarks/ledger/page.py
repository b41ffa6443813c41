"""The ledger as a page: every claim with its verdict, and every counterexample drawn beside the optimum."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from schedgap.benchmarks.instances import figure_of, workload_of
from schedgap.benchmarks.judging.judge import finite
from schedgap.benchmarks.ledger.rows import Ledger, LedgerRow
from schedgap.benchmarks.report.page import Picture, picture, render
from schedgap.benchmarks.report.sheet import Marked
from schedgap.benchmarks.text import fixed, number
from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_method, parse_instance
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Solution, read_json
from schedgap.solvers.result import SolveOptions, Status

WORK_LIMIT = 20.0
"""Repeatable limit for solving a counterexample again, to draw its optimum."""


def write_ledger(ledger: Ledger, folder: Path) -> Path:
    """Write ``ledger.json`` and ``ledger.html`` beside the counterexamples.

    Returns the page's path.

    Parameters
    ----------
    ledger : what :func:`~schedgap.benchmarks.ledger.verify.verify` returned
    folder : where its counterexamples are
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "ledger.json", json.dumps(ledger.to_dict(), indent=1, allow_nan=False) + "\n")
    path = folder / "ledger.html"
    count = Counter(row.shown for row in ledger.rows)
    by_problem = [
        (problem, [row for row in ledger.rows if row.guarantee.problem == problem.id])
        for problem in all_problems().values()
    ]
    page = render(
        "ledger.html",
        "The ledger of guarantees",
        seed=ledger.seed,
        tiles=[
            (count[name], name)
            for name in ("held", "refuted", "measured", "not refuted here", "not applicable")
            if count[name]
        ],
        problems=[(problem, rows) for problem, rows in by_problem if rows],
        target=lambda row: row.counterexample.name if row.counterexample.parent == folder else row.counterexample,
        verdict=_verdict,
        numbers=_numbers,
        drawn=_counterexample,
    )
    return write_text(path, page)


def _verdict(row: LedgerRow) -> Marked:
    words = f"refuted ({row.refuted} of {row.held + row.refuted})" if row.refuted else row.words
    return Marked(words, row.shown if row.shown in ("held", "refuted") else "")


def _numbers(row: LedgerRow) -> list[str]:
    bounds = "" if row.bounds is None else " to ".join(dict.fromkeys(number(b, 4) for b in row.bounds))
    return [row.nearest, fixed(row.power), bounds, fixed(row.worst_ratio)]


def _counterexample(problem: Problem, row: LedgerRow) -> list[Picture]:
    """The refuting run and an optimal solution, as far as they can be drawn."""
    if row.counterexample is None or workload_of(problem).figure is None:
        return []
    data = read_json(row.counterexample)
    _, instance = parse_instance(data, str(row.counterexample))
    solution = data.get("reference_solution")
    info = data.get("reference_counterexample", {}).get("run") or {}
    named = row.guarantee.method
    method = None if named is None else find_method(problem, named)
    outside = method is None or method.kind is not Kind.HEURISTIC or method.outside_model or info.get("outside_model")
    pictures = []
    if solution is not None and not outside:
        objective = data["reference_counterexample"]["objective"]
        pictures.append(_drawn(problem, instance, solution, f"{named}: {_told(problem, objective)}"))
    exact = problem.default_method(instance)
    best = run_method(problem, instance, exact, SolveOptions(threads=1, work_limit=WORK_LIMIT))
    if best.solution is not None:
        what = "optimum" if best.status is Status.OPTIMAL else "best known"
        pictures.append(_drawn(problem, instance, best.solution, f"{what}: {_told(problem, best.objective)}"))
    return pictures


def _told(problem: Problem, objective: float | None) -> str:
    return f"{problem.objective_name} {number(objective)} {problem.unit}" if finite(objective) is not None else "none"


def _drawn(problem: Problem, instance: Instance, solution: Solution, caption: str) -> Picture:
    return picture(figure_of(problem)(instance, solution), caption)
