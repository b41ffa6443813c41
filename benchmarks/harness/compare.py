"""Methods against each other on one instance: `compare`, and `run_method` for a single one."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schedgap.benchmarks.harness.progress import Watcher
from schedgap.benchmarks.harness.warm import warm_once
from schedgap.benchmarks.ledger.judge import Judgement, finite, judge
from schedgap.benchmarks.ledger.verdicts import ledger_verdict
from schedgap.benchmarks.records import Record
from schedgap.benchmarks.report.metrics import mean_metrics, metrics_of
from schedgap.benchmarks.report.text import fixed, number, seconds, significant, table
from schedgap.catalogue.agreement import DISAGREEMENTS, Agreement, Answer, agree, certified_bound, write_disagreement
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.methods import find_method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.errors import Disagreement, EngineMissing, InputError, ModelRefused, near
from schedgap.formulations.common.instance import Instance, Json
from schedgap.heuristics.common.guarantee import Evaluation, Verdict, at_most
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status, Termination

__all__ = ["Comparison", "MethodRuns", "certified_bound", "compare", "run_method"]

WIDTH = 100
"""Columns of a comparison, where the names of its methods and claims allow it."""


@dataclass(frozen=True)
class MethodRuns:
    """One method's records on the instance of a comparison, a line of its table.

    Attributes
    ----------
    method : what ran
    records : one per seed (exactly one for an exact method); the last one has `error` where it could not answer
    ratios : of the seeds that found something, always >= 1; empty where nothing is known
    ratio_to : "optimum", "bound", or "" where there is no ratio
    judgements : the method's guarantees, each on the result that is worst for it
    outside_model : its schedules are not schedules of the problem
    """

    method: Method
    records: tuple[Record, ...]
    ratios: tuple[float, ...]
    ratio_to: str
    judgements: tuple[Judgement, ...]
    outside_model: bool = False

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
    def ratio(self) -> float | None:
        """The mean over the seeds."""
        return statistics.fmean(self.ratios) if self.ratios else None

    @property
    def worst_ratio(self) -> float | None:
        """The worst over the seeds."""
        return max(self.ratios, default=None)

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
        """The mean objective over the seeds."""
        return statistics.fmean(self.objectives) if self.objectives else None

    @property
    def bound(self) -> float | None:
        """The method's bound (the same for every seed, or that of the first)."""
        return self.results[0].bound if self.results else None

    @property
    def proof(self) -> str:
        """The weakest level of proof over the seeds, see :attr:`~schedgap.solvers.result.Result.proof`."""
        levels = {result.proof for result in self.results}
        return next((level for level in ("none", "claimed", "agreed", "certified") if level in levels), "none")

    @property
    def seconds(self) -> float | None:
        """Mean seconds over the seeds, building included."""
        times = [r.seconds for r in self.results if r.seconds is not None]
        return statistics.fmean(times) if times else None

    @property
    def reason(self) -> str:
        """Why there is no solution, or none that is certain; empty where there is nothing to tell."""
        if self.error:
            return self.error
        for result in self.results:
            if result.status is Status.UNKNOWN:
                ended = result.termination is Termination.FINISHED
                return str(result.info.get("reason", "found no schedule" if ended else result.termination))
        return ""

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {
            "method": self.method.id,
            "settings": dict(self.settings),
            "status": str(self.status),
            "objective": self.objective,
            "objectives": list(self.objectives),
            "bound": self.bound,
            "ratio": finite(self.ratio),
            "worst_ratio": finite(self.worst_ratio),
            "ratio_to": self.ratio_to or None,
            "outside_model": self.outside_model,
            "reason": self.reason or None,
            "guarantees": [{**j.to_dict(), "ledger": ledger_verdict(j.guarantee.id).words} for j in self.judgements],
            "seconds": self.seconds,
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
    """

    problem: Problem
    instance: Instance
    agreement: Agreement
    rows: tuple[MethodRuns, ...]

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
        """What a method's runs report beside the objective, by title: the mean over the seeds that know it."""
        return mean_metrics([metrics_of(self.problem, result.info) for result in row.results if result.solution])

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form, as ``compare --json`` prints it."""
        return {
            "problem": self.problem.id,
            "instance": self.instance.name,
            "optimum": self.agreement.optimum,
            "bound": self.agreement.bound,
            "rows": [{**row.to_dict(), "metrics": self.metrics(row)} for row in self.rows],
        }

    def to_text(self) -> str:
        """The table, and under it why something is unknown or does not apply, and which settings were not defaults."""
        repeated = any(len(row.results) > 1 for row in self.rows)
        head = ["method", "status", "objective", *(["best", "worst"] if repeated else []), "bound", "ratio"]
        head += ["seconds", "proof"]
        right = "llr" + ("rr" if repeated else "") + "rlrl"
        sense = self.problem.sense
        lines: list[list[str]] = []
        for row in self.rows:
            found = sorted(row.objectives, key=lambda value: sense * value)
            ends = [number(found[0]) if found else "-", number(found[-1]) if found else "-"]
            status = str(row.status) + (" (outside the model)" if row.outside_model else "")
            own = [row.method.id, status, number(row.objective), *(ends if repeated else [])]
            lines.append([*own, number(row.bound), _ratio_cell(row), seconds(row.seconds), row.proof])
        known = self.agreement
        if known.optimum is not None:
            summary = f"proven optimum: {number(known.optimum)} {self.problem.unit}"
        elif known.infeasible:
            summary = "proven infeasible"
        else:
            summary = f"optimum not proven; best bound: {number(known.bound)} {self.problem.unit}"
        return "\n".join(
            [table(head, lines, right), summary, *self._claims_table(), *self._notes(), *self._metrics_table()]
        )

    def _claims_table(self) -> list[str]:
        """What is claimed of each method, with the method's ratio beside the bound on it."""
        lines: list[list[str]] = []
        for row in self.rows:
            if row.judgements:
                lines.append([f"{row.method.id}: {_ratio_cell(row)}"])
                lines += [_judgement_cells(judgement) for judgement in row.judgements]
        head = ["claim on the ratio", "at most", "verdict", "left", "right", "ledger"]
        return ["", table(head, lines, "lrlrrl")] if lines else []

    def _notes(self) -> list[str]:
        """What the table cannot hold."""
        notes = [
            f"{row.method.id} ran with {' '.join(f'{name}={value}' for name, value in row.settings.items())}"
            for row in self.rows
            if row.settings
        ]
        judged = [judgement for row in self.rows for judgement in row.judgements]
        why: dict[str, list[str]] = {}
        for j in judged:
            if j.verdict is Verdict.NOT_APPLICABLE:
                why.setdefault(j.evaluation.reason + _outside(j.evaluation), []).append(j.guarantee.id)
        for reason, names in why.items():
            line = f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} {Verdict.NOT_APPLICABLE}: {reason}"
            notes.append(textwrap.fill(line, WIDTH, subsequent_indent="  "))
        if any(row.seconds is not None for row in self.rows):
            notes.append("seconds hold no import or compilation: before its clock each method ran on a tiny instance")
        if any(j.verdict is Verdict.HELD for j in judged):
            notes.append("not refuted here: left <= right on this instance, which proves nothing beyond it")
        return notes + [
            f"{row.method.id}: {row.reason.removeprefix(f'{row.method.id}: ')}" for row in self.rows if row.reason
        ]

    def _metrics_table(self) -> list[str]:
        told = [(row.method.id, self.metrics(row)) for row in self.rows]
        titles = list(dict.fromkeys(title for _, found in told for title in found))
        lines = [[name, *(number(found.get(title), 4) for title in titles)] for name, found in told if found]
        return ["", table(["method", *titles], lines, "l" + "r" * len(titles))] if lines else []


def chosen_methods(problem: Problem, instance: Instance, names: Sequence[str] | None) -> list[Method]:
    """The methods of these ids; None is the strongest exact one and every heuristic.

    Raises
    ------
    InputError
        An unknown method, one that is named twice, or none at all.
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
        :class:`~schedgap.benchmarks.harness.progress.Watcher` is told which method runs
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

    limit = options.deadline.left()
    runs: list[tuple[Method, list[Record]]] = []
    for method, own in plans:
        warm_once(problem, method, own, disagreements)
        records: list[Record] = []
        if isinstance(options.report, Watcher):
            options.report.running(method.id)
        for k in range(repeat if method.kind is Kind.HEURISTIC else 1):
            asked = replace(options, deadline=Deadline.after(limit), seed=options.seed + k)
            record = Record(problem.id, method.id, own, asked.seed, instance.name)
            try:
                result = run_method(problem, instance, method, asked, own, disagreements=disagreements)
                records.append(replace(record, result=result))
            except InputError as failure:
                users = method.users or (printed and method.printed)  # what is printed need not work on every instance
                if not (users or isinstance(failure, EngineMissing | ModelRefused)):
                    raise
                records.append(replace(record, result=Result(Status.ERROR), error=str(failure)))
                break
        runs.append((method, records))
    return _side_by_side(problem, instance, runs, disagreements)


def _side_by_side(
    problem: Problem, instance: Instance, runs: Sequence[tuple[Method, list[Record]]], disagreements: Path
) -> Comparison:
    answers = [answer_of(method, one.result) for method, records in runs for one in records if not one.error]
    agreement = agree(answers, problem.sense, certified_bound(problem, instance))
    if agreement.contradictions:
        message = "; ".join(agreement.contradictions)
        path = write_disagreement(instance, disagreements, message=message)
        raise Disagreement(f"{message}; the instance is in {path}")
    rows = []
    for method, records in runs:
        results = [record.result for record in records if not record.error]
        outside = method.outside_model or any(r.info.get("outside_model") for r in results)
        found = [] if outside else [agreement.ratio(r.objective, problem.sense)[0] for r in results]
        ratios = tuple(value for value in found if value is not None)
        own = records[0].settings
        judged = [judge(problem, method, own, instance, r.objective, r.info, agreement, sides=True) for r in results]
        worst = tuple(worst_judgement(per_claim) for per_claim in zip(*judged, strict=True))
        to = agreement.ratio(None, problem.sense)[1] if ratios else ""
        rows.append(MethodRuns(method, tuple(records), ratios, to, worst, outside))
    return Comparison(problem, instance, agreement, tuple(rows))


def answer_of(method: Method, result: Result) -> Answer:
    """A result as the others see it."""
    outside = method.outside_model or bool(result.info.get("outside_model"))
    exact = method.kind is not Kind.HEURISTIC
    return Answer(method.id, result.status, result.objective, result.bound, exact, outside)


def worst_judgement(judgements: Sequence[Judgement]) -> Judgement:
    """Of one claim on several runs, the run that is worst for it."""
    return max(judgements, key=lambda j: (j.verdict == "refuted", j.verdict == "held", j.evaluation.tightness or 0.0))


def _ratio_cell(row: MethodRuns) -> str:
    if row.ratio is None:
        return "-"
    text = f"{fixed(row.ratio)} to {row.ratio_to}"
    return f"{text}, worst {fixed(row.worst_ratio)}" if len(row.results) > 1 else text


def _judgement_cells(judgement: Judgement) -> list[str]:
    """Claim, its bound on the ratio, its verdict here, both sides, and what the ledger says of it."""
    held, refuted = judgement.verdict is Verdict.HELD, judgement.verdict is Verdict.REFUTED
    verdict = "not refuted here" if held else "refuted" if refuted else str(judgement.verdict)
    sides = (significant(judgement.evaluation.left), significant(judgement.evaluation.right))
    name = judgement.guarantee.id
    return [f"  {name}", significant(judgement.ratio_bound), verdict, *sides, ledger_verdict(name).words]


def _outside(evaluation: Evaluation) -> str:
    """Where both sides are known though the claim is not about this case: which is larger."""
    if evaluation.left is None or evaluation.right is None:
        return ""
    compared = "<=" if at_most(evaluation.left, evaluation.right, size=evaluation.size).verdict is Verdict.HELD else ">"
    return f" (outside of its assumptions left {compared} right)"
