"""Methods against each other on one instance: `compare`, and `run_method` for a single one."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from schedgap.benchmarks.anytime import Curve, Recorder, best_objective, curve_of, horizon, primal_integral
from schedgap.benchmarks.judging.judge import Judgement, finite, judge, unjudged
from schedgap.benchmarks.records import Record, mean_metrics, metrics_of
from schedgap.benchmarks.sweep.progress import Watcher
from schedgap.benchmarks.sweep.warm import warm_once
from schedgap.benchmarks.text import apart, fixed, number, seconds, significant, table, with_interpreted
from schedgap.catalogue.agreement import (
    DISAGREEMENTS,
    REJECTED,
    Agreement,
    Answer,
    agree,
    joint_proof,
    kept,
    write_disagreement,
)
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_method
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import (
    Disagreement,
    EngineMissing,
    InputError,
    ModelRefused,
    RejectedSolution,
    near,
)
from schedgap.formulations.common.instance import Instance, Json
from schedgap.heuristics.common.guarantee import Evaluation, Verdict, at_most
from schedgap.solvers.result import NO_DEADLINE, Proof, Result, SolveOptions, Status, Termination

if TYPE_CHECKING:
    import pandas as pd

    from schedgap.benchmarks.judging.judge import Judgement


__all__ = ["Comparison", "MethodRuns", "compare", "run_method"]


@dataclass(frozen=True)
class MethodRuns:
    """One method's records on the instance of a comparison, a line of its table."""

    method: Method  # what ran
    # one per seed (exactly one for an exact method); the last one has `error` where it could not answer
    records: tuple[Record, ...]
    ratios: tuple[float, ...]  # ratios of the seeds that found something, always >= 1; empty where nothing is known
    ratio_to: str  # "optimum", "bound", or "" where there is no ratio
    judgements: tuple[Judgement, ...]  # the method's guarantees, each on the result that is worst for it
    outside_model: bool = False  # its schedules are not schedules of the problem

    @property
    def results(self) -> tuple[Result, ...]:
        """What the method returned, by seed."""
        return tuple(record.result for record in self.records if not record.error)

    @property
    def settings(self) -> Mapping[str, Json]:
        """The options it ran with, as far as they are not the defaults."""
        return self.records[0].settings

    @property
    def error(self) -> str:
        """Why it could not answer, one line."""
        return self.records[-1].error

    @property
    def complete(self) -> bool:
        """Every seed found something and was not cut by a limit; else a mean would be over the easy ones."""
        return len(self.objectives) == len(self.records) and not self.cut

    @property
    def cut(self) -> int:
        """How many seeds a limit ended before the algorithm did."""
        return sum(result.cut for result in self.results)

    @property
    def ratio(self) -> float | None:
        """The mean over the seeds, where all found something."""
        return statistics.fmean(self.ratios) if self.ratios and self.complete else None

    @property
    def worst_ratio(self) -> float | None:
        """The worst over the seeds, where all found something."""
        return max(self.ratios, default=None) if self.complete else None

    @property
    def status(self) -> Status:
        """The weakest status over the seeds."""
        order = list(Status)
        return max((r.status for r in self.results), key=order.index) if self.results else Status.ERROR

    @property
    def objectives(self) -> tuple[float, ...]:
        """The objectives found, by seed."""
        return tuple(r.objective for r in self.results if r.objective is not None)

    @property
    def objective(self) -> float | None:
        """The mean objective over the seeds, where all found something."""
        return statistics.fmean(self.objectives) if self.objectives and self.complete else None

    @property
    def bound(self) -> float | None:
        """The method's bound (the same for every seed, or that of the first)."""
        return self.results[0].bound if self.results else None

    @property
    def proof(self) -> Proof | None:
        """The weakest level of proof over the seeds, see :attr:`~schedgap.solvers.result.Result.proof`."""
        levels = {result.proof for result in self.results}
        return next((level for level in (None, *reversed(Proof)) if level in levels), None)

    @property
    def seconds(self) -> float | None:
        """Mean seconds over the seeds, building included."""
        times = [r.seconds for r in self.results if r.seconds is not None]
        return statistics.fmean(times) if times else None

    @property
    def interpreted_seconds(self) -> float:
        """Mean seconds beside these, for which compiled functions ran as Python in place of a first compilation."""
        times = [float(r.info.get("interpreted_seconds", 0.0)) for r in self.results]
        return statistics.fmean(times) if times else 0.0

    @property
    def curve(self) -> Curve | None:
        """When each better schedule came, of an exact method or a search."""
        return curve_of(self.results[0]) if self.results else None

    @property
    def reason(self) -> str:
        """Why there is no solution, or none that is certain; empty where there is nothing to tell."""
        if self.error:
            return self.error
        for result in self.results:
            if result.status is Status.UNKNOWN or result.cut:
                ended = result.termination is Termination.FINISHED
                return str(result.info.get("reason", "found no schedule" if ended else result.termination))
        return ""

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {
            "method": self.method.id,
            "repairs": self.method.repairs or None,
            "settings": dict(self.settings),
            "status": str(self.status),
            "objective": self.objective,
            "objectives": list(self.objectives),
            "found": len(self.objectives),
            "runs": len(self.records),
            "cut": self.cut,
            "bound": self.bound,
            "ratio": finite(self.ratio),
            "worst_ratio": finite(self.worst_ratio),
            "ratio_to": self.ratio_to or None,
            "outside_model": self.outside_model,
            "reason": self.reason or None,
            "guarantees": [{**j.to_dict(), "ledger": j.ledger} for j in self.judgements],
            "seconds": self.seconds,
            **({"interpreted_seconds": self.interpreted_seconds} if self.interpreted_seconds else {}),
            "error": self.error or None,
            "proof": self.proof,
        }


@dataclass(frozen=True)
class Comparison:
    """Methods side by side on one instance.

    Attributes
    ----------
    problem, instance : what was solved
    agreement : the optimum or the best bound that all of them together prove
    rows : one per method
    printed : every method was asked to run as its paper prints it
    """

    problem: Problem
    instance: Instance
    agreement: Agreement
    rows: tuple[MethodRuns, ...]
    printed: bool = False

    @property
    def repeated(self) -> bool:
        """Some method ran with several seeds."""
        return any(len(row.records) > 1 for row in self.rows)

    def __repr__(self) -> str:
        """One line; :meth:`to_text` is the table."""
        return f"<comparison of {len(self.rows)} methods on {self.problem.id} {self.instance.name!r}>"

    def to_frame(self) -> pd.DataFrame:
        """One row for each run, as :func:`schedgap.run` gives them."""
        from schedgap.benchmarks.report.frame import tidy

        return tidy([self])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        columns = ["method", "settings", "status", "objective", "bound", "ratio", "ratio_to", "seconds", "proof"]
        return self.to_frame()[columns].to_html(index=False, na_rep="unknown")

    @property
    def exit_status(self) -> int:
        """0 found, 2 a method could not answer, 3 proven infeasible or unbounded, 4 nothing, 130 Ctrl-C."""
        if any(result.termination is Termination.INTERRUPTED for row in self.rows for result in row.results):
            return 130
        if any(row.error for row in self.rows):
            return 2
        if any(row.objectives for row in self.rows):
            return 0
        proven = any(row.status in (Status.INFEASIBLE, Status.UNBOUNDED) for row in self.rows)
        return 3 if proven else 4

    def metrics(self, row: MethodRuns) -> dict[str, float | None]:
        """What a method's runs report beside the objective, by title: the mean over the seeds, None where one of them
        found nothing or does not know it."""
        told = [metrics_of(self.problem, result.info) for result in row.results if result.solution]
        return {title: value if row.complete else None for title, value in mean_metrics(told).items()}

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form, as ``compare --json`` prints it."""
        return {
            "problem": self.problem.id,
            "instance": self.instance.name,
            "optimum": self.agreement.optimum,
            "bound": self.agreement.bound,
            "horizon": self.horizon or None,
            "rows": [
                {
                    **row.to_dict(),
                    "metrics": self.metrics(row),
                    "anytime": row.curve,
                    "primal_integral": self.primal_integral(row),
                }
                for row in self.rows
            ],
        }

    @property
    def horizon(self) -> float:
        """Seconds over which primal integrals are taken: the longest run of an exact method or a search."""
        return horizon(curve for row in self.rows if (curve := row.curve))

    def primal_integral(self, row: MethodRuns) -> float | None:
        """The primal integral of an anytime curve, against the optimum or else the best objective of all methods."""
        curves = [[[0.0, value, None]] for one in self.rows if not one.outside_model for value in one.objectives]
        reference = best_objective(self.agreement.optimum, curves, self.problem.sense)
        if row.curve is None or row.outside_model or reference is None:
            return None
        return primal_integral(row.curve, reference, self.horizon)

    def to_text(self) -> str:
        """The text that ``compare`` prints."""
        return comparison_text(self)

    __str__ = to_text


def chosen_methods(problem: Problem, instance: Instance, names: Sequence[str] | None) -> list[Method]:
    """The methods of these ids; None is the strongest exact one and every heuristic.

    Raises InputError: an unknown method, one that is named twice, or none at all.
    """
    if names is None:
        return [problem.default_method(instance), *problem.heuristics()]
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise InputError(f"methods: {twice} is named twice")
    if not names:
        raise InputError("methods: at least one is needed")
    return [find_method(problem, name) for name in names]


def compare(
    problem: Problem,
    instance: Instance,
    methods: Sequence[str] | None,
    options: SolveOptions,
    settings: Mapping[str, Json] | None = None,
    repeat: int = 1,
    *,
    printed: bool = False,
    disagreements: Path = DISAGREEMENTS,
) -> Comparison:
    """Run several methods on one instance and put them side by side.

    Before its clock starts, the process is warm for each method: no time holds an import or a compilation.

    Parameters
    ----------
    methods : ids, or ``package.module:function``; None is the strongest exact method and every heuristic
    options : the time left on its deadline is given to each method anew; a report that is a
        :class:`~schedgap.benchmarks.sweep.progress.Watcher` is told which method runs
    settings : each goes to every method that has an option of that name
    repeat : how many seeds (options.seed, +1, ...) each heuristic is tried with
    printed : every method runs as its paper prints it, but for what `settings` says
    disagreements : the directory an instance is written to when parts disagree

    Raises
    ------
    InputError
        Before anything runs: an unknown method, an option that none of the methods has, a bad value.
    Disagreement
        Two answers cannot both be true (a heuristic better than a proven optimum, say).
    """
    if repeat < 1:
        raise InputError(f"repeat: must be at least 1, got {repeat}")
    chosen = chosen_methods(problem, instance, methods)
    given = dict(settings or {})
    for name in given:
        if not any(name in method.options for method in chosen):
            meant = near(name, (option for method in chosen for option in method.options))
            raise InputError(f"option {name}: none of the methods {', '.join(m.id for m in chosen)} has it{meant}")
    plans = []
    for method in chosen:
        own = {name: value for name, value in given.items() if name in method.options}
        if printed:
            own = {**method.printed, **own}
        plans.append((method, {name: method.options[name].parse(value) for name, value in own.items()}))

    limit = options.deadline.remaining()
    runs: list[tuple[Method, list[Record]]] = []
    for method, own in plans:
        warm_once(problem, method, own, disagreements)
        records: list[Record] = []
        if isinstance(options.report, Watcher):
            options.report.running(method.id)
        for k in range(repeat if method.kind is Kind.HEURISTIC else 1):
            recorder = Recorder(problem.sense, options.report)
            deadline = NO_DEADLINE if limit is None else NO_DEADLINE.capped(limit)
            asked = replace(options, deadline=deadline, seed=options.seed + k, report=recorder)
            record = Record(problem.id, method.id, own, asked.seed, instance.name)
            try:
                result = run_method(problem, instance, method, asked, own, disagreements=disagreements)
                records.append(replace(record, result=recorder.kept(method, result)))
            except InputError as failure:
                # What is printed need not work on every instance.
                users = method.is_user_defined or (printed and method.printed)
                if not (users or isinstance(failure, EngineMissing | ModelRefused)):
                    raise
                see = (
                    f"; see: {kept(failure.solution, instance, method.id, disagreements.with_name(REJECTED))}"
                    if isinstance(failure, RejectedSolution)
                    else ""
                )
                records.append(replace(record, result=Result(Status.ERROR), error=f"{failure}{see}"))
                break
        runs.append((method, records))
    return replace(_side_by_side(problem, instance, runs, disagreements), printed=printed)


def _side_by_side(
    problem: Problem, instance: Instance, runs: Sequence[tuple[Method, list[Record]]], disagreements: Path
) -> Comparison:
    answers = [answer_of(method, one.result) for method, records in runs for one in records if not one.error]
    agreement = agree(answers, problem.sense, problem.certified_bound(instance))
    if agreement.contradictions:
        message = "; ".join(agreement.contradictions)
        path = write_disagreement(instance, disagreements, message=message)
        raise Disagreement(f"{message}; the instance is in {path}")
    rows = []
    reference, to = agreement.reference
    for method, records in runs:
        results = [record.result for record in records if not record.error]
        outside = method.outside_model or any(r.info.get("outside_model") for r in results)
        found = [] if outside else [problem.ratio(instance, r.objective, reference) for r in results]
        ratios = tuple(value for value in found if value is not None)
        own = records[0].settings
        judged = [judge(problem, method, own, instance, r.objective, r.info, agreement, sides=True) for r in results]
        worst = tuple(worst_judgement(per_claim) for per_claim in zip(*judged, strict=True))
        if not results:
            worst = unjudged(problem, method, f"{method.id} gave no answer")
        rows.append(MethodRuns(method, tuple(records), ratios, to if ratios else "", worst, outside))
    return Comparison(problem, instance, agreement, tuple(rows))


def answer_of(method: Method, result: Result) -> Answer:
    """A result as the others see it."""
    outside = method.outside_model or bool(result.info.get("outside_model"))
    return Answer(method.id, result.status, result.objective, result.bound, method.proves, outside)


def worst_judgement(judgements: Sequence[Judgement]) -> Judgement:
    """The run that is worst for one claim."""
    return max(judgements, key=lambda j: (j.verdict == "refuted", j.verdict == "held", j.evaluation.tightness or 0.0))


# What `compare` prints: the methods, what is claimed of each, their metrics, and the words under the tables.


WIDTH = 100
"""Columns of a comparison, where the names of its methods and claims allow it."""


def comparison_text(found: Comparison) -> str:
    """The table, and under it why something is unknown or does not apply, and which settings were not defaults."""
    tables = [_summary(found), _methods_table(found), *_claims_table(found), *_notes(found), *_metrics_table(found)]
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
        time = with_interpreted(row.seconds, row.interpreted_seconds)
        lines.append([row.method.shown, status, *shown, _bound_cell(row), _ratio_cell(row), time, proof])
    return table([*head, "seconds", "proof"], lines, "ll" + "r" * (5 if repeated else 2) + "lrl")


def _summary(found: Comparison) -> str:
    """The optimum or the bound, in minutes or hours where a slot has seconds, and how far heuristics are from it."""
    rows = [row for row in found.rows if row.ratio is not None]
    ranked = sorted(
        ([row for row in rows if row.method.kind is Kind.HEURISTIC] or rows), key=lambda row: row.ratio or math.inf
    )
    told = [_known(found) + _hours(found, found.agreement.bound)]
    if ranked:
        ends = [f"{row.method.shown}, ratio {_ratio_cell(row)}" for row in ranked[:1] + ranked[1:][-1:]]
        told.append("closest: " + "; furthest: ".join(ends))
    return "\n".join(told) + "\n"


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
    if any(row.interpreted_seconds for row in found.rows):
        notes.append("+ s of Python in place of a first compilation; SCHEDGAP_COMPILE=always: none (docs/compiling.md)")
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
