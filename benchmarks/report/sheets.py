"""The tables of a run as sheets, the same for text and for the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from schedgap.benchmarks.anytime import PRIMAL_INTEGRAL
from schedgap.benchmarks.judging.ledger_verdicts import COUNTEREXAMPLES
from schedgap.benchmarks.report.aggregate import (
    WITHIN,
    Block,
    Claim,
    blocks,
    claims,
    exact_methods,
    mean_metrics,
    survivors,
)
from schedgap.benchmarks.report.analysis import Analysis
from schedgap.benchmarks.report.sheet import Column, Marked, Sheet
from schedgap.benchmarks.text import nearest, percent, seconds, significant, span
from schedgap.benchmarks.worst import worst_instances
from schedgap.catalogue.problem import Problem

ZERO = "on how many it has value 0 where more is possible: no ratio, and in no mean"


CLOCK = (
    "every worker runs a method once before its clock starts, in machine code: times hold no compilation, no import, "
    "and nothing that Python did in their place"
)


_TARGETS = {
    "optimum": "Ratio to the proven optimum",
    "bound": "Ratio to a certified bound, the optimum being unknown",
    "own bound": "Ratio to a bound of the method's own model (its schedules are outside the problem's)",
    "": "Heuristics on instances without a bound",
}


def ratio_sheets(runs: pd.DataFrame) -> list[Sheet]:
    """Per comparison: how often each heuristic solved, mean and worst ratio, and the shares within a factor."""
    found = blocks(runs)
    sheets = [_ratio_sheet(block, runs.problem.iloc[0], sum(b.to == block.to for b in found) > 1) for block in found]
    outside = runs[runs.heuristic & runs.outside_model]
    named = outside.groupby("label", sort=False).own_ratio.count()
    without = ", ".join(str(name) for name, count in named.items() if not count)
    if without and sheets:
        sheets[0] = replace(sheets[0], notes=(*sheets[0].notes, f"Outside the model, so without a ratio: {without}."))
    return sheets


def _ratio_sheet(block: Block, problem: str, several: bool) -> Sheet:
    count, common = len(block.ratios), block.common
    where = f" ({', '.join(block.batches)})" if several else ""
    best = "its own bound" if block.to == "own bound" else "the best schedule known, the optimum where it is proven"
    others = ", ".join(f"<= {factor:g}" for factor in WITHIN[1:])
    shares = f"share of all {count} on which it has a schedule within this factor of {best}; {others} likewise"
    apart = block.to == "bound"  # there the best schedule is something else than what the ratio is to
    to, of = (" to bound", " of best") if apart else ("", "")
    rows = []
    for one in block.table.to_dict("records"):
        cells = [one["label"], *(str(one[name]) for name in ("solved", "none", "infinite"))]
        cells += [significant(one["mean"]), _worst(one["worst"])]
        cells += [percent(one[factor]) for factor in WITHIN]
        rows.append([*cells, worst_known(problem, one["label"]) if block.to == "optimum" else ""])
    columns = (
        Column("heuristic", right=False),
        Column("solved", f"on how many of the {count} it found a schedule"),
        Column("none", "on how many it found nothing, or was cut by a limit", count=True, plain="found nothing"),
        Column("zero", ZERO, count=True, plain="earned nothing"),
        Column(f"mean{to}", plain=f"mean ratio{to}"),
        Column(f"worst{to}", f"the largest ratio on what it solved{_means(rows, 'zero')}", plain=f"worst ratio{to}"),
        *(Column(f"<= {factor:g}{of}", shares if factor == WITHIN[0] else "") for factor in WITHIN),
        Column(
            "known",
            f"the largest ratio to an optimum that any hunt found, default options{_means(rows, 'inf')}",
            plain="worst ratio ever found",
        ),
    )
    notes = (
        f"Means are over the {len(common)} of {count} instances on which all that solved any have a finite ratio.",
        *(f"{name}: cut by a limit on {cuts} of them, which count as none." for name, cuts in block.cut.items()),
    )
    return Sheet(f"{_TARGETS[block.to]}, {count} instance{'s' * (count > 1)}{where}", columns, rows, notes)


def _worst(ratio: float) -> str:
    return "zero" if ratio == math.inf else significant(ratio)


def _means(rows: Sequence[Sequence[str]], word: str) -> str:
    """What a word in place of a ratio means, where it is there."""
    return f"; {word}: it has value 0 where more is possible" if any(word in row for row in rows) else ""


def worst_known(problem: str, label: str) -> str:
    """The worst ratio known for a heuristic with its default options, whatever this run has seen."""
    one = worst_instances().get((problem, label))
    return "-" if one is None else significant(one.ratio)


def answer_sheet(analysis: Analysis) -> Sheet:
    """The answer of a run, a row a heuristic: how far from the best it is.

    Every heuristic of each problem that ran, the papers' first. Those that ran on the same instances stand together.
    The mean of a row is the one of the detailed tables: over the instances that all beside it solved that solved any.
    """
    rows: list[list[str]] = []
    for problem in analysis.problems:
        runs = analysis.runs[analysis.runs.problem == problem.id]
        answers = [_answer(problem, block, k) for block in blocks(runs) for k in range(len(block.labels))]
        ranked = runs[runs.heuristic].drop_duplicates("label")
        rank = {str(label): _rank(problem, method) for label, method in zip(ranked.label, ranked.method, strict=True)}
        named = {row[1] for row in answers}
        answers += [
            [f"{problem.id}: outside the model, so without a ratio", label, *"----"]
            for label in ranked.label
            if label not in named
        ]
        groups = list(dict.fromkeys(row[0] for row in answers))
        rows += sorted(answers, key=lambda row: (groups.index(row[0]), rank[row[1]]))
    half = some = ""
    if any(cell.startswith("unbounded") for row in rows for cell in row):
        half = "; unbounded: on half of them it has value 0 where more is possible"
        some = "; unbounded on n: on so many it has value 0 where more is possible"
    columns = (
        Column("compared", right=False, heading=True, plain="problem, instances, what the ratio is to"),
        Column("heuristic", right=False),
        Column(
            "mean",
            "mean ratio, 1 is the best possible, over the instances on which all of its group that solved any have a"
            " finite ratio; on n: over so many; of your own files with the 95% interval of the mean",
            plain="mean ratio",
        ),
        Column(
            "median",
            f"of all that it solved{half}",
            plain="median ratio",
        ),
        Column(
            "worst",
            f"the largest ratio on what it solved{some}",
            plain="worst ratio",
        ),
        Column("solved", "instances on which it found a schedule, of all with a known optimum, or a bound"),
    )
    return Sheet("How far the heuristics are from the best", columns, rows)


def _rank(problem: Problem, name: str) -> int:
    """0 for a paper's method, 1 for one repaired after a paper, 2 for any other."""
    source = next((method.source for method in problem.methods if method.id == name), "")
    return 0 if source.startswith("paper ") else 1 if "after paper " in source else 2


_FEW = 4
"""Groups of instances that a heading names; of more it says the number."""


def _half_width(values: pd.Series[float]) -> float:
    """Half of the 95% confidence interval of the mean of two values or more."""
    from schedgap.benchmarks.intervals import interval  # scipy takes a moment to import

    spread = interval(np.asarray(values, dtype=np.float64))
    assert spread is not None and spread.half is not None
    return spread.half


def _answer(problem: Problem, block: Block, column: int) -> list[str]:
    every, common = block.ratios.iloc[:, column], block.common
    shared = common[block.ratios.columns[column]] if block.ratios.columns[column] in common else every.iloc[:0]
    solved = every.dropna()
    unbounded = int((solved == math.inf).sum())
    middle = float(solved.median()) if len(solved) else math.nan
    mean = significant(shared.mean()) if len(shared) else "-"
    if block.files and len(shared) > 1:
        mean += f" ± {significant(_half_width(shared))}"
    if 0 < len(shared) < len(every):
        mean += f" on {len(shared)}"
    count = len(block.batches)
    where = ", ".join(block.batches) if count <= _FEW else f"{count} files" if block.files else f"{count} groups"
    to = {"optimum": "ratio to optimum", "bound": "ratio to bound", "own bound": "ratio to a bound of its own"}
    return [
        f"{problem.id}: {where} ({to.get(block.to, 'no bound is known')})",
        block.labels[column],
        mean,
        "unbounded" if middle == math.inf else significant(middle) if len(solved) else "-",
        "-" if not len(solved) else f"unbounded on {unbounded}" if unbounded else significant(solved.max()),
        f"{len(solved)} of {len(every)}",
    ]


def claim_sheets(runs: pd.DataFrame) -> list[Sheet]:
    """Every claim that applies, with its verdict on these runs and the ledger's; then what the claims say."""
    names = dict(zip(runs.instance_hash, runs.instance, strict=True))
    rows, said, missing = [], {}, []
    for claim in claims(runs):
        g = claim.guarantee
        missing += [(g.id, reason, f"{claim.label} (on {n} run{'s' * (n > 1)})") for reason, n in claim.reasons.items()]
        if not claim.held + claim.refuted:
            continue
        said[g.id] = [g.id, g.source, g.statement, str(g.needs_text)]
        file = f"instances/{claim.worst[:16]}.json" if claim.worst else ""
        name = names.get(claim.worst, "") or claim.worst[:12]
        cells = [claim.label, g.id, "-" if claim.least is None else span(claim.least, claim.most)]
        rows.append(
            [
                *cells,
                nearest(claim.tightness, claim.refuted > 0, significant),
                Marked(name, "", file),
                *_verdicts(claim),
            ]
        )
    columns = (
        Column("heuristic", right=False),
        Column("claim", right=False, width=26),
        Column(
            "bound", "values that the claim's bound on the ratio takes on these instances", plain="bound on the ratio"
        ),
        Column(
            "left/right",
            "the claim where it is nearest to failing, 1 is tight and more refutes it",
            plain="share of the bound used",
        ),
        Column("on", "the instance where that is", right=False, page=True, plain="most on instance"),
        Column("these runs", "a run can refute a claim; one that does not has not proven it", right=False),
        Column("ledger", "what verify found on all its instances", right=False),
    )
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, reason, who in missing:
        grouped.setdefault((name, reason), []).append(who)
    notes = tuple(f"Not applicable: {name} to {', '.join(who)}: {why}." for (name, why), who in grouped.items())
    if any(row[-1].startswith("refuted") for row in rows):
        notes = (f"Counterexamples of what the ledger refutes are in {COUNTEREXAMPLES}/ beside the report.", *notes)
    text = (
        Column("claim", right=False, width=26),
        Column("source", right=False, page=True),
        Column("statement", right=False, width=52),
        Column("assumptions", right=False, page=True),
    )
    return [
        Sheet("Guarantees on these runs, and in the ledger", columns, rows, notes),
        Sheet("What the claims say", text, list(said.values())),
    ]


def _verdicts(claim: Claim) -> list[str]:
    """The verdict of these runs and that of the ledger, in their colours; nothing that is refuted is green."""
    ledger = claim.ledger
    link = f"{COUNTEREXAMPLES}/{claim.guarantee.id}.json" if ledger.counterexample is not None else ""
    here = "refuted" if claim.refuted else "held" if claim.kind == "held" else ""
    beside = "refuted" if ledger.verdict == "refuted" else "held" if claim.kind == "held" else ""
    return [Marked(claim.verdict, here), Marked(ledger.words, beside, link)]


def exact_sheet(runs: pd.DataFrame, times: bool) -> Sheet:
    """Per exact method and group: how many instances it proved, and its seconds."""
    columns = [
        Column("instances", right=False),
        Column("exact method", right=False),
        Column("runs"),
        Column("optimal", "the optimum is proven"),
        Column("infeasible", "proven to have no schedule", count=True),
        Column("feasible", "a schedule without proof", count=True),
        Column("nothing", "neither a schedule nor a proof, or an error", count=True),
        Column("certified", "of the proven ones, the checker of certificates accepted a proof in this run", count=True),
        Column("agreed", "engines of different makes prove the same", count=True),
        Column("claimed", "by one solver alone", count=True),
    ]
    if times:
        columns += [Column("mean s", f"seconds of a run, building included; {CLOCK}"), Column("worst s")]
        columns.append(Column("integral s", f"mean primal integral: {PRIMAL_INTEGRAL}"))
    rows = []
    for batch, name, *counts, mean, worst, integral in exact_methods(runs).itertuples(index=False):
        timed = [seconds(mean), seconds(worst), seconds(integral)] if times else []
        rows.append([batch, name, *map(str, counts), *timed])
    return Sheet("Exact methods", tuple(columns), rows)


def metrics_sheet(runs: pd.DataFrame, problem: Problem) -> Sheet:
    """Per group of instances and heuristic the mean of the objective and of each metric; no rows without metrics."""
    if runs.empty or not problem.metrics:
        return Sheet("", (), [])
    common = survivors(runs)
    titles = [problem.objective_name, *problem.metrics.values()]
    means = mean_metrics(common, problem).to_dict("records")
    rows = [[m["batch"], m["label"], str(m["runs"]), *(significant(m[title]) for title in titles)] for m in means]
    columns = (Column("instances", right=False), Column("heuristic", right=False), Column("runs"))
    return Sheet(
        f"Means over the {_of(common, runs)} that every heuristic solved",
        (*columns, *(Column(title) for title in titles)),
        rows,
        (f"A mean is over all these runs; {problem.metrics_note}.",) if problem.metrics_note else (),
    )


def _of(common: pd.DataFrame, runs: pd.DataFrame) -> str:
    count = runs.one.nunique()
    return f"{common.one.nunique()} of {count} instance{'s' * (count > 1)}"
