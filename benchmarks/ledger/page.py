"""The ledger as a page: every claim with its verdict, and every counterexample drawn beside the optimum."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from schedgap.benchmarks.instances import figure_of
from schedgap.benchmarks.ledger.judge import finite
from schedgap.benchmarks.ledger.ledger import Ledger, LedgerRow
from schedgap.benchmarks.report.page import Raw, grid, page, picture, text, tiles, verdict
from schedgap.benchmarks.report.text import fixed, number
from schedgap.catalogue.method import Kind
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, parse_instance
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance, Solution, read_json
from schedgap.heuristics.common.guarantee import Verdict
from schedgap.solvers.result import SolveOptions, Status

WORK_LIMIT = 20.0
"""Repeatable limit for solving a counterexample again, to draw its optimum."""


def write_ledger(ledger: Ledger, folder: Path) -> Path:
    """Write ``ledger.json`` and ``ledger.html`` beside the counterexamples.

    Parameters
    ----------
    ledger : what :func:`~schedgap.benchmarks.ledger.verify.verify` returned
    folder : where its counterexamples are

    Returns
    -------
    The page's path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "ledger.json", json.dumps(ledger.to_dict(), indent=1, allow_nan=False) + "\n")
    path = folder / "ledger.html"
    write_text(path, page("The ledger of guarantees", _body(ledger, folder)))
    return path


def _body(ledger: Ledger, folder: Path) -> list[str]:
    count = {v: sum(1 for row in ledger.rows if row.verdict is v) for v in Verdict}
    body = ["<h1>The ledger of guarantees</h1>"]
    body.append(
        f'<p class="soft">Every verdict is computed on random and adversarial instances, seed {ledger.seed}. '
        "Trials outside of an assumption count as not applicable. Power is the smallest factor on the right side that "
        "the trials do not refute: 1 means that the constant cannot be any smaller.</p>"
    )
    body.append(tiles([(count[v], str(v)) for v in Verdict if count[v]]))
    for problem in all_problems().values():
        rows = [row for row in ledger.rows if row.guarantee.problem == problem.id]
        if rows:
            body.append(f"<h2>{text(problem.id)}</h2><p>{text(problem.title)}; {text(problem.source)}</p>")
            body.append(_table(rows, folder))
            for row in rows:
                body += _counterexample(problem, row)
    return body


def _table(rows: Sequence[LedgerRow], folder: Path) -> str:
    cells: list[list[object]] = []
    for row in rows:
        g = row.guarantee
        seen = f"seen: {text(row.reason)}" if row.reason else ""
        if row.counterexample is not None:
            inside = row.counterexample.parent == folder
            target = row.counterexample.name if inside else str(row.counterexample)
            seen += f' (<a href="{text(target)}">{text(row.counterexample.name)}</a>)'
        needs = "<br>".join(f"needs: {text(line)}" for line in row.needs)
        outside = "<br>".join(f"not applicable ({count}): {text(why)}" for why, count in row.most_reasons)
        lines = [f"<b>{text(g.statement)}</b>", text(g.source), needs, seen, outside]
        about = Raw(
            "<br>".join(f'<span class="soft">{line}</span>' if k else line for k, line in enumerate(lines) if line)
        )
        bounds = "" if row.bounds is None else " to ".join(dict.fromkeys(number(b, 4) for b in row.bounds))
        trials = row.held + row.refuted
        words = f"refuted ({row.refuted} of {trials})" if row.refuted else row.words
        numbers = [fixed(row.tightness), fixed(row.power), bounds, fixed(row.worst_ratio)]
        cells.append([g.id, about, verdict(words), *numbers])
    head = ["claim", "statement, assumptions, what was seen", "verdict", "left/right", "power", "bound on the ratio"]
    return grid([*head, "worst ratio"], cells, "cllrrrr")


def _counterexample(problem: Problem, row: LedgerRow) -> list[str]:
    """The refuting run beside an optimal solution, where both can be drawn."""
    if row.counterexample is None:
        return []
    data = read_json(row.counterexample)
    _, instance = parse_instance(data, str(row.counterexample))
    solution = data.get("reference_solution")
    info = data.get("reference_counterexample", {}).get("run") or {}
    method = next((m for m in problem.methods if m.id == row.guarantee.method), None)
    outside = method is None or method.kind is not Kind.HEURISTIC or method.outside_model or info.get("outside_model")
    pictures = []
    if solution is not None and not outside:
        objective = data["reference_counterexample"]["objective"]
        pictures.append(_drawn(problem, instance, solution, f"{row.guarantee.method}: {_told(problem, objective)}"))
    best = run_method(problem, instance, problem.default_method(), SolveOptions(threads=1, work_limit=WORK_LIMIT))
    if best.solution is not None:
        what = "optimum" if best.status is Status.OPTIMAL else "best known"
        pictures.append(_drawn(problem, instance, best.solution, f"{what}: {_told(problem, best.objective)}"))
    if not pictures:
        return []
    drawn = f'<div class="pair">{"".join(pictures)}</div>' if len(pictures) == 2 else pictures[0]
    return [f"<h3>{text(row.guarantee.id)} fails: {text(row.reason)}</h3>{drawn}"]


def _told(problem: Problem, objective: float | None) -> str:
    return f"{problem.objective_name} {number(objective)} {problem.unit}" if finite(objective) is not None else "none"


def _drawn(problem: Problem, instance: Instance, solution: Solution, caption: str) -> str:
    return picture(figure_of(problem)(instance, solution), caption)
