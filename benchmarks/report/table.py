"""The tables of a run as text, 120 columns wide at most; without times they are the same on every run."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from schedgap.benchmarks.harness.analysis import (
    Analysis,
    Claim,
    EngineSummary,
    Solved,
    engine_summaries,
    headline,
    summaries,
)
from schedgap.benchmarks.harness.store import Row
from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.library import known
from schedgap.benchmarks.report.metrics import mean_metrics, metrics_of
from schedgap.benchmarks.report.text import fixed, number, seconds, table
from schedgap.catalogue.method import Kind
from schedgap.catalogue.methods import label
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.workload import Measurement
from schedgap.formulations.common.numbers import MINIMISE

TABLE = "table.txt"
WIDTH = 120
METRICS_IN = ("paper",)
"""Suites whose text shows the metrics: those at the papers' scale. The report shows them for every suite."""


def run_text(analysis: Analysis, times: bool = True) -> str:
    """Every table of a run.

    Parameters
    ----------
    analysis : the run
    times : with columns of seconds and of what follows from them
    """
    parts: list[str] = [f"{analysis.unfinished} items; bench --resume goes on"] if analysis.unfinished else []
    for suite, problem in sections(analysis):
        here = [s for s in analysis.solved if (s.suite, s.problem.id) == (suite, problem.id)]
        plain = [s for s in here if not s.entries[0].row.series]
        parts.append(_title(suite, problem) + (f"\n{_wrapped(counted(plain))}" if plain else ""))
        if plain:
            parts += [heuristic_table(plain), claim_table(plain), exact_table(plain, times)]
        if suite in METRICS_IN:
            parts.append(metrics_table(here))
        parts += series_tables([s for s in here if s.entries[0].row.series])
        rows = [row for row in analysis.measurements if (row.suite, row.problem) == (suite, problem.id)]
        parts += [measurement_table(row, problem, times) for row in rows]
    parts.append(_findings(analysis))
    return "\n\n".join(part for part in parts if part) + "\n"


def sections(analysis: Analysis) -> list[tuple[str, Problem]]:
    """Every suite with each problem that takes part in it, in the order of the plan."""
    rows = [s.entries[0].row for s in analysis.solved] + list(analysis.measurements)
    pairs = [(row.suite, row.problem) for row in sorted(rows, key=lambda row: row.position)]
    suites = dict.fromkeys(suite for suite, _ in pairs)
    return [(suite, problem) for suite in suites for problem in analysis.problems if (suite, problem.id) in pairs]


def heuristic_table(solved: Sequence[Solved]) -> str:
    """Per heuristic: mean and worst ratio with what it is to, the worst known anywhere, its bounds and verdicts."""
    head = ["heuristic", "ratio to", "runs", "mean", "worst", "none", "known"]
    head += ["printed bound", "verdict", "repaired bound", "verdict"]
    rows: list[list[str]] = []
    for summary in summaries(solved):
        claims = [bound_cells(summary.claims, kind) for kind in ("printed", "repaired")]
        tail = [cell for pair in claims for cell in pair]
        none = str(summary.nothing_found + summary.errors)
        tail = [worst_known(solved, summary.label), *tail]
        if not summary.ratios:
            what = "outside model" if summary.outside else "-"
            rows.append([summary.label, what, str(summary.runs), "-", "-", none, *tail])
        for position, ratios in enumerate(summary.ratios):
            name, rest = (summary.label, [none, *tail]) if position == 0 else ("", [])
            rows.append([name, ratios.to, str(len(ratios.values)), ratios.mean_text, fixed(ratios.worst[0]), *rest])
    return table(head, rows, "llrrrrr") if rows else ""


def worst_known(solved: Sequence[Solved], label: str) -> str:
    """The worst ratio known for a heuristic with its default options, whatever this run has seen."""
    one = known().get((solved[0].problem.id, label))
    if one is None:
        return "-"
    return fixed(one.ratio) if one.ratio < 1000 or math.isinf(one.ratio) else f"{one.ratio:.3g}"


def metrics_rows(solved: Sequence[Solved]) -> tuple[list[str], list[list[str]]]:
    """Titles and cells: per group of instances and heuristic the mean of the objective and of each metric.

    A mean is over the runs that tell the metric, "-" where none does. No rows where the problem has no metrics.
    """
    if not solved or not solved[0].problem.metrics:
        return [], []
    problem = solved[0].problem
    groups: dict[tuple[str, str], list[dict[str, float | None]]] = {}
    for one in solved:
        for entry in one.entries:
            if entry.method.kind is Kind.HEURISTIC and entry.row.objective is not None:
                found = {problem.objective_name: entry.row.objective, **metrics_of(problem, entry.row.info)}
                groups.setdefault((one.batch, entry.label), []).append(found)
    titles = [problem.objective_name, *problem.metrics.values()]
    rows = []
    for (batch, name), runs in groups.items():
        means = mean_metrics(runs)
        rows.append([batch, name, str(len(runs)), *(number(means.get(title), 4) for title in titles)])
    return ["instances", "heuristic", "runs", *titles], rows


def metrics_table(solved: Sequence[Solved]) -> str:
    """The same as text; empty where there is nothing to tell."""
    head, rows = metrics_rows(solved)
    return "Means over the runs\n" + table(head, rows, "ll" + "r" * (len(head) - 2)) if rows else ""


def claim_table(solved: Sequence[Solved]) -> str:
    """The claims as formulas, each with its largest left / right and its verdict on these runs."""
    rows = []
    for summary in summaries(solved):
        for claim in summary.claims:
            statement = claim.guarantee.statement
            bound = f"{fixed(claim.tightness)}"
            rows.append([claim.method, claim.guarantee.id, _clipped(statement, 44), bound, claim.verdict])
    if not rows:
        return ""
    return "Guarantees on these runs (worst left / right: above 1 refutes the claim)\n" + table(
        ["heuristic", "claim", "statement", "worst", "verdict"], rows, "lllrl"
    )


def exact_table(solved: Sequence[Solved], times: bool) -> str:
    """Per exact method and group: how many instances it proved, and its seconds."""
    rows = []
    for one in engine_summaries(solved):
        row = [one.batch, one.label, *(str(n) for n in (one.runs, one.proven, one.infeasible, one.feasible))]
        row.append(str(one.nothing + one.errors))
        rows.append(row + (seconds_cells(one) if times else []))
    head = ["instances", "exact method", "runs", "optimal", "infeasible", "feasible", "nothing"]
    if times:
        head += ["seconds mean", "worst"]
    return table(head, rows, "llrrrrrrr") if rows else ""


def series_tables(solved: Sequence[Solved]) -> list[str]:
    """One table per series: x against methods, the mean objective and the mean ratio."""
    result = []
    for name in dict.fromkeys(s.entries[0].row.series for s in solved):
        points = series_points([s for s in solved if s.entries[0].row.series == name])
        problem = next(s.problem for s in solved if s.entries[0].row.series == name)
        axis = next(s.entries[0].row.axis for s in solved if s.entries[0].row.series == name)
        methods = list(dict.fromkeys(method for _, method in points))
        rows = []
        for at in dict.fromkeys(x for x, _ in points):
            cells = [points.get((at, method)) for method in methods]
            rows.append([str(at), *("-" if c is None else f"{c[0]:.1f} ({fixed(c[1], 2)})" for c in cells)])
        head = [axis or "all", *methods]
        title = f"{name}: {mean_of(problem)} in {problem.unit} (mean ratio to the best bound)"
        result.append(title + "\n" + table(head, rows, "r" * len(head)))
    return result


def mean_of(problem: Problem) -> str:
    """The name of an objective's mean."""
    name = problem.objective_name
    return name if name.startswith("mean ") else f"mean {name}"


def series_points(solved: Iterable[Solved]) -> dict[tuple[Any, str], tuple[float, float | None]]:
    """(x, method without the axis) to (mean objective, mean ratio) over the instances of a series."""
    gathered: dict[tuple[Any, str], list[tuple[float, float | None]]] = {}
    for one in solved:
        for entry in one.entries:
            row = entry.row
            if row.objective is None:
                continue
            own = {key: value for key, value in row.settings.items() if key != row.axis}
            x = row.at if row.axis else ""
            gathered.setdefault((x, label(row.method, own)), []).append((row.objective, entry.ratio))
    points: dict[tuple[Any, str], tuple[float, float | None]] = {}
    for key, values in gathered.items():
        ratios = [ratio for _, ratio in values if ratio is not None]
        points[key] = (statistics.fmean(v for v, _ in values), statistics.fmean(ratios) if ratios else None)
    return points


def measurement_table(row: Row, problem: Problem, times: bool) -> str:
    """The rows that a measurement gave, with its own columns."""
    if row.error or not row.payload:
        return f"{row.batch}: {row.error.splitlines()[0] if row.error else 'no rows'}"
    head, cells, right = measurement_cells(row, problem, times)
    return f"{row.batch}\n" + table(head, cells, right)


def measurement_cells(row: Row, problem: Problem, times: bool) -> tuple[list[str], list[list[str]], str]:
    """Titles, cells and alignment of a measurement's table."""
    part = measurement_of(row, problem)
    timed = () if part is None else part.timed
    columns = [c for c in dict.fromkeys(key for line in row.payload for key in line) if times or c not in timed]
    cells = [[_cell(line.get(column)) for column in columns] for line in row.payload]
    right = "".join("r" if all(_is_number(line.get(c)) for line in row.payload) else "l" for c in columns)
    return [c.replace("_", " ") for c in columns], cells, right


def measurement_of(row: Row, problem: Problem) -> Measurement | None:
    """The part of a suite whose rows these are; None where this version has no such part."""
    for part in workload_of(problem).suites:
        if isinstance(part, Measurement) and (part.suite, part.id) == (row.suite, row.method):
            return part
    return None


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 4) if isinstance(value, int | float) else str(value)


def _title(suite: str, problem: Problem) -> str:
    what = "smaller is better" if problem.sense == MINIMISE else "larger is better"
    line = f"== {suite} == {problem.id}: {problem.title} ({what}; {problem.source})"
    return _clipped(line, WIDTH)


def counted(solved: Sequence[Solved]) -> str:
    """One line: how many instances of which groups, and for how many the optimum is proven."""
    groups: dict[str, int] = {}
    for one in solved:
        groups[one.batch] = groups.get(one.batch, 0) + 1
    proven = sum(1 for one in solved if one.agreement.optimum is not None)
    infeasible = sum(1 for one in solved if one.agreement.infeasible)
    text = ", ".join(f"{count} {name}" for name, count in groups.items())
    rest = len(solved) - proven - infeasible
    parts = [f"{proven} with a proven optimum"]
    parts += [f"{infeasible} proven infeasible"] if infeasible else []
    parts += [f"{rest} with a certified bound only"] if rest else []
    return f"{len(solved)} instances ({text}): {', '.join(parts)}"


def bound_cells(claims: Sequence[Claim], kind: str) -> list[str]:
    """The range of values of the headline bound of this kind, and its verdict."""
    claim = headline(claims, kind)
    if claim is None:
        return ["-", "none"]
    if claim.least is None or claim.most is None:
        return ["-", claim.verdict]
    return [" to ".join(dict.fromkeys((fixed(claim.least, 2), fixed(claim.most, 2)))), claim.verdict]


def seconds_cells(one: EngineSummary) -> list[str]:
    """Mean and worst seconds."""
    if not one.seconds:
        return ["-", "-"]
    return [seconds(statistics.fmean(one.seconds)), seconds(max(one.seconds))]


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  "))


def _clipped(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _findings(analysis: Analysis) -> str:
    """Disagreements and failures, each on its line; their number even where there is none."""
    lines = [f"disagreements between methods, engines and checker: {len(analysis.disagreements)}"]
    lines += [f"  {line}" for line in analysis.disagreements]
    if analysis.failures:
        lines.append(f"items that failed: {len(analysis.failures)}")
        lines += [f"  {line}" for line in analysis.failures]
    return "\n".join(lines)
