"""What `compare` prints: the methods, what is claimed of each, their metrics, and the words under the tables."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from schedgap.benchmarks.text import apart, fixed, number, seconds, significant, table
from schedgap.catalogue.agreement import joint_proof
from schedgap.catalogue.method import Kind
from schedgap.heuristics.common.guarantee import Evaluation, Verdict, at_most
from schedgap.solvers.result import Proof, Status

if TYPE_CHECKING:
    from schedgap.benchmarks.judging.judge import Judgement
    from schedgap.benchmarks.report.compare import Comparison, MethodRuns

WIDTH = 100
"""Columns of a comparison, where the names of its methods and claims allow it."""


def comparison_text(found: Comparison) -> str:
    """The table, and under it why something is unknown or does not apply, and which settings were not defaults."""
    tables = [_methods_table(found), _summary(found), *_claims_table(found), *_notes(found), *_metrics_table(found)]
    return "\n".join(tables)


def _methods_table(found: Comparison) -> str:
    repeated = found.repeated
    head = ["method", "status", *(["found", "mean", "best", "worst"] if repeated else ["objective"]), "bound", "ratio"]
    lines: list[list[str]] = []
    for row in found.rows:
        lost = row.status is Status.UNKNOWN and row.method.kind is Kind.HEURISTIC
        status = "found nothing" if lost and not repeated else str(row.status)
        values = sorted(row.objectives, key=lambda value: found.problem.sense * value)
        shown = [f"{number(values[0])}, cut" if row.cut and not repeated else number(row.objective)]
        if repeated:
            worst = number(values[-1]) if row.complete else "cut" if row.cut else "nothing found"
            cut = f", {row.cut} cut" if row.cut else ""
            shown = [f"{len(values)} of {len(row.records)}{cut}", *shown, number(values[0]) if values else "-", worst]
        proof = row.proof or "-"
        lines.append(
            [row.method.shown, status, *shown, _bound_cell(row), _ratio_cell(row), seconds(row.seconds), proof]
        )
    return table([*head, "seconds", "proof"], lines, "ll" + "r" * (5 if repeated else 2) + "lrl")


def _summary(found: Comparison) -> str:
    """The optimum or the bound, in minutes or hours where a slot has seconds, and what is left to gain at most."""
    bound = found.agreement.bound
    inside = [(row.objective, row.method.shown) for row in found.rows if row.objective and not row.outside_model]
    ranked = sorted(inside, key=lambda one: found.problem.sense * one[0])
    gains = []
    if bound is not None:
        for value, name in ranked[:1] + ranked[1:][-1:]:
            gains.append(f"{100 * abs(1 - bound / value):.3g}% beyond {name}")
    told = [_known(found) + _hours(found, bound), f"left to gain: at most {', '.join(gains)}" if gains else ""]
    return "\n".join(line for line in told if line)


def _hours(found: Comparison, value: float | None) -> str:
    """Slots as a duration."""
    length = getattr(found.instance, "slot_length", None)
    if value is None or length is None or "slot" not in found.problem.unit:
        return ""
    took = value * length
    return f" ({took / 3600:.3g} hours)" if took >= 7200 else f" ({took / 60:.3g} minutes)"


def _known(found: Comparison) -> str:
    known = found.agreement
    level = joint_proof(result for row in found.rows if not row.outside_model for result in row.results)
    sure = level in (Proof.CERTIFIED, Proof.AGREED)
    if known.optimum is not None:
        return f"{'proven optimum' if sure else 'optimum, claimed'}: {number(known.optimum)} {found.problem.unit}"
    if known.infeasible:
        return "proven infeasible" if sure else "infeasible, claimed"
    return f"optimum not proven; best bound: {number(known.bound)} {found.problem.unit}"


def _claims_table(found: Comparison) -> list[str]:
    """What is claimed of each method, with the method's ratio beside the bound on it."""
    lines: list[list[str]] = []
    for row in found.rows:
        if row.judgements:
            lines.append([row.method.shown + ("" if row.ratio is None else f": ratio {fixed(row.ratio)}")])
            lines += [_judgement_cells(judgement) for judgement in row.judgements]
    head, right = ["claim", "ratio <=", "verdict", "left", "right", "ledger"], "lrlrrl"
    if all(line[1] == "-" for line in lines if len(line) > 1):  # no claim here is about the ratio
        lines, head, right = [[*line[:1], *line[2:]] for line in lines], [*head[:1], *head[2:]], "llrrl"
    return ["", table(head, lines, right)] if lines else []


def _notes(found: Comparison) -> list[str]:
    """What the table cannot hold."""
    notes = [
        f"{row.method.id} ran with {' '.join(f'{name}={value}' for name, value in row.settings.items())}"
        for row in found.rows
        if row.settings
    ]
    usual = [row.method.id for row in found.rows if row.method.source.startswith("paper") and not row.method.printed]
    if found.printed and usual:
        line = f"the printed settings of {', '.join(usual)} are the defaults"
        notes.append(textwrap.fill(line, WIDTH, subsequent_indent="  "))
    judged = [judgement for row in found.rows for judgement in row.judgements]
    why: dict[str, list[str]] = {}
    for j in judged:
        if j.verdict is Verdict.NOT_APPLICABLE:
            why.setdefault(j.evaluation.reason + _outside(j.evaluation), []).append(j.guarantee.id)
    for reason, names in why.items():
        line = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {Verdict.NOT_APPLICABLE}: {reason}"
        notes.append(textwrap.fill(line, WIDTH, subsequent_indent="  "))
    if any(row.objectives and not row.complete for row in found.rows):
        notes.append("no mean, no ratio where a seed found nothing or was cut: it would be over the lucky seeds alone")
    levels = [level for level in Proof if any(row.proof == level for row in found.rows)]
    if levels:
        notes.append(
            "proof of what is optimal or infeasible: " + ", ".join(f"{level} = {level.meaning}" for level in levels)
        )
    if any(one.cut and one.objective is None for row in found.rows for one in row.results):
        line = "a limit came before a schedule: without one heuristics end by themselves; of a log, import fewer jobs"
        line += " (--set jobs=50) or shorter ones (time_scale=0.1)"
        notes.append(textwrap.fill(line, WIDTH, subsequent_indent="  "))
    if any(row.outside_model and row.bound is not None for row in found.rows):
        notes.append("* a bound on what the method's own model allows, not on this problem")
    if any(row.seconds is not None for row in found.rows):
        notes.append("seconds hold no import or compilation: before its clock each method ran on a tiny instance")
    soon = [(row.method.id, value) for row in found.rows if (value := found.primal_integral(row)) is not None]
    if len(soon) > 1:  # one alone says nothing
        line = f"primal integral over {seconds(found.horizon)} s, less is sooner: "
        notes.append(line + ", ".join(f"{name} {seconds(value)}" for name, value in soon))
    if any(j.verdict is Verdict.HELD for j in judged):
        notes.append("not refuted here: left <= right on this instance, which proves nothing beyond it")
    return notes + [
        f"{row.method.id}: {row.reason.removeprefix(f'{row.method.id}: ')}" for row in found.rows if row.reason
    ]


def _metrics_table(found: Comparison) -> list[str]:
    told = [(row.method.shown, found.metrics(row)) for row in found.rows]
    titles = list(dict.fromkeys(title for _, known in told for title in known))
    lines = [[name, *(number(known.get(title), 4) for title in titles)] for name, known in told if known]
    if not lines:
        return []
    note = textwrap.wrap(found.problem.metrics_note, WIDTH, subsequent_indent="  ")
    return ["", table(["method", *titles], lines, "l" + "r" * len(titles)), *note]


def _bound_cell(row: MethodRuns) -> str:
    return number(row.bound) + ("*" if row.outside_model and row.bound is not None else "")


def _ratio_cell(row: MethodRuns) -> str:
    if row.outside_model:
        return "outside the model"
    if row.ratio is None:
        return "-"
    text = f"{fixed(row.ratio)} to {row.ratio_to}"
    return f"{text}, worst {fixed(row.worst_ratio)}" if len(row.results) > 1 else text


def _judgement_cells(judgement: Judgement) -> list[str]:
    """Claim, its bound on the ratio, its verdict here, both sides, and what the ledger says of it."""
    held, refuted = judgement.verdict is Verdict.HELD, judgement.verdict is Verdict.REFUTED
    verdict = "not refuted here" if held else "refuted" if refuted else str(judgement.verdict)
    left, right = judgement.evaluation.left, judgement.evaluation.right
    sides = apart(left, right) if refuted else (significant(left), significant(right))
    verdict += ": not <" if refuted and sides[0] == sides[1] else ""
    name = judgement.guarantee.id
    return [f"  {name}", significant(judgement.ratio_bound), verdict, *sides, judgement.ledger]


def _outside(evaluation: Evaluation) -> str:
    """Where both sides are known though the claim is not about this case: which is larger."""
    if evaluation.left is None or evaluation.right is None:
        return ""
    compared = "<=" if at_most(evaluation.left, evaluation.right, size=evaluation.size).verdict is Verdict.HELD else ">"
    return f" (outside of its assumptions left {compared} right)"
