"""The ledger: every guarantee tried on many instances, every verdict computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.judging.judge import evaluate
from schedgap.benchmarks.judging.users_claims import claims_from, claims_of
from schedgap.benchmarks.ledger.counterexamples import Trial, instance_size, write_counterexample
from schedgap.benchmarks.ledger.rows import Ledger, LedgerRow, Tally
from schedgap.benchmarks.sweep.progress import Progress, Sink
from schedgap.benchmarks.sweep.store import locked
from schedgap.benchmarks.sweep.sweep import sweep
from schedgap.benchmarks.text import refuting
from schedgap.catalogue.agreement import Answer, agree, with_certificate, write_disagreement
from schedgap.catalogue.method import Method, full_settings
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_method
from schedgap.catalogue.run import run_heuristic, run_method
from schedgap.formulations.common.errors import Disagreement, InputError, near
from schedgap.formulations.common.instance import Instance, read_json
from schedgap.formulations.common.numbers import ratio
from schedgap.heuristics.common.guarantee import Case, Evaluation, Guarantee, Verdict
from schedgap.solvers.result import Proof, Result, SolveOptions

OUT = Path("counterexamples")
"""Where counterexamples are written unless the caller says otherwise."""


INSTANCES = 200
"""Instances tried for each guarantee unless the caller says otherwise."""


HUNTS = Path("hunts")
"""Where hunts write unless the caller says otherwise."""


WORK_LIMIT = 20.0
"""Repeatable limit of each exact solve; an optimum that is not proven within it counts as unknown."""


SEED_STRIDE = 1_000_000


def verify(
    guarantees: Sequence[str] | None = None,
    *,
    claims: str | Path | None = None,
    instances: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    progress: Sink | None = None,
    problems: Iterable[Problem] | None = None,
    workers: int | None = None,
    certify: bool = False,
    cluster: str | None = None,
) -> Ledger:
    """Try guarantees on many instances; every verdict is computed.

    Each heuristic run is scored by the checker; the optimum comes from the problem's strongest exact method
    with one thread and a repeatable limit, so that the same seed gives the same ledger.

    Parameters
    ----------
    guarantees : ids; all where not given, those of `claims` where that is
    claims : a Python file with ``CLAIMS``, guarantees of your own
    instances : how many for each; 200 where not given
    seed : seed of all instances
    out : the directory for counterexample files and the ledger as ``ledger.json`` and ``ledger.html``;
        ``counterexamples`` where not given
    progress : a stream, or a function that is told whole lines
    problems : objects, instead of those that are known; they are tried in this process
    workers : processes; all cores where not given; the ledger does not depend on the number
    certify : count how many of the optima are certified; slow
    cluster : address of a Dask scheduler, whose workers are taken instead of processes of this machine

    Returns
    -------
    Ledger
        One row per guarantee.

    Raises
    ------
    InputError
        An unknown guarantee, or a folder that cannot be written.
    Disagreement
        A heuristic beat a proven optimum, or the checker rejected a solution.
    """
    from schedgap.benchmarks.ledger.page import write_ledger

    folder = (OUT if out is None else Path(out)).resolve()
    with locked(folder), claims_from(claims) as own:
        known = {g.id: (p, g) for p in (problems or all_problems().values()) for g in claims_of(p)}
        ids = guarantees or [claim.id for claim in own] or known
        for name in ids:
            if name not in known:
                others = near(name, known) or f", one of: {', '.join(known)}"
                raise InputError(f"guarantee: unknown guarantee {name!r}{others}")
        chosen = [known[name] for name in dict.fromkeys(ids)]
        count = INSTANCES if instances is None else instances
        if count < 1:
            raise InputError(f"instances: must be at least 1, got {count}")
        tasks = _tasks(chosen, count, seed, folder, certify)
        processes = min(workers or os.cpu_count() or 1, len(tasks))
        bar = Progress(len(chosen) * count, progress, "verify")
        try:
            if problems is not None or (processes == 1 and cluster is None):
                rows = _rows(chosen, count, seed, folder, bar, certify)
            else:
                rows = _in_processes(tasks, processes, bar, cluster)
        finally:
            bar.finish()
        ledger = Ledger(tuple(rows[guarantee.id] for _, guarantee in chosen), seed)
        bar = Progress(0, progress, "verify")
        with bar.at_work("the ledger's page"):
            write_ledger(ledger, folder)
        bar.finish()
    return ledger


@dataclass(frozen=True)
class _Task:
    """Guarantees for one process."""

    ids: tuple[str, ...]
    count: int
    seed: int
    folder: Path
    certify: bool


def sharing_trials(rows: Iterable[Guarantee]) -> list[list[Guarantee]]:
    """Guarantees of one problem in groups: those of one heuristic stay together, since they share its trials."""
    groups: dict[str, list[Guarantee]] = {}
    for guarantee in rows:
        alone = guarantee.measure is not None or guarantee.sample is not None
        groups.setdefault(guarantee.id if alone else f"method {guarantee.method}", []).append(guarantee)
    return list(groups.values())


def _tasks(
    chosen: Iterable[tuple[Problem, Guarantee]], count: int, seed: int, folder: Path, certify: bool
) -> list[_Task]:
    """A task for each group of guarantees that share trials."""
    of_problem: dict[str, list[Guarantee]] = {}
    for problem, guarantee in chosen:
        of_problem.setdefault(problem.id, []).append(guarantee)
    groups = [group for rows in of_problem.values() for group in sharing_trials(rows)]
    return [_Task(tuple(one.id for one in group), count, seed, folder, certify) for group in groups]


@dataclass(frozen=True)
class _TaskRows:
    """The rows of a task by id, without the guarantees (functions do not travel), or what went wrong."""

    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    disagreement: str = ""


def _rows(
    chosen: Iterable[tuple[Problem, Guarantee]], count: int, seed: int, folder: Path, bar: Progress, certify: bool
) -> dict[str, LedgerRow]:
    trials: dict[tuple[str, str], Trials] = {}
    rows = {}
    for problem, guarantee in chosen:
        end = bar.done + count
        with bar.at_work(guarantee.id):
            row = rows[guarantee.id] = _row(problem, guarantee, count, seed, folder, trials, bar, certify)
        bar.step(f"{guarantee.id} {row.words}", end - bar.done)
    return rows


def _run_task(task: _Task) -> _TaskRows:
    known = {g.id: (p, g) for p in all_problems().values() for g in claims_of(p)}
    chosen = [known[name] for name in task.ids]
    try:
        found = _rows(chosen, task.count, task.seed, task.folder, Progress(0, None, ""), task.certify)
    except Disagreement as error:
        return _TaskRows(disagreement=str(error))
    names = [part.name for part in fields(LedgerRow) if part.name != "guarantee"]
    return _TaskRows({key: {name: getattr(row, name) for name in names} for key, row in found.items()})


def _in_processes(tasks: Sequence[_Task], processes: int, bar: Progress, cluster: str | None) -> dict[str, LedgerRow]:
    known = {g.id: g for p in all_problems().values() for g in claims_of(p)}
    rows: dict[str, LedgerRow] = {}

    def done(task: _Task, outcome: _TaskRows) -> None:
        if outcome.disagreement:
            raise Disagreement(outcome.disagreement)
        for name, values in outcome.rows.items():
            rows[name] = LedgerRow(known[name], **values)
            bar.step(f"{name} {rows[name].words}", task.count)

    def label(task: _Task) -> str:
        return task.ids[0] + ", ..." * (len(task.ids) > 1)

    def died(task: _Task, reason: str, _: float) -> None:
        raise RuntimeError(f"{', '.join(task.ids)}: {reason}")

    kept = "only counterexamples found so far are kept, verify begins anew"
    sweep(tasks, _run_task, done, died, label=label, bar=bar, workers=processes, cluster=cluster, kept=kept)
    return rows


class Trials:
    """Trials of one method, each made once and shared by all its guarantees."""

    def __init__(self, problem: Problem, method: Method | None, certify: bool = False) -> None:
        self.problem, self.certify = problem, certify
        self.method = method
        self._made: dict[tuple[str, int], Trial] = {}

    def get(self, family: str, seed: int) -> Trial:
        """The trial with this seed in this family."""
        key = (family, seed)
        if key not in self._made:
            self._made[key] = self.run(*workload_of(self.problem).trials()[family](seed), family, seed)
        return self._made[key]

    def run(self, instance: Instance, given: Mapping[str, object], family: str, seed: int) -> Trial:
        """The method and the strongest exact one on an instance."""
        limits = SolveOptions(threads=1, work_limit=WORK_LIMIT, seed=seed)
        exact = run_method(self.problem, instance, self.problem.default_method(instance), limits)
        if self.certify:
            exact = with_certificate(self.problem, instance, exact)
        answers = [Answer("the exact method", exact.status, exact.objective, exact.bound, exact=True)]
        result: Result | None = None
        lost = ""
        options: dict[str, Any] = dict(given)
        if self.method is not None:
            given = {key: value for key, value in given.items() if key in self.method.options}  # of another method
            options = full_settings(self.method, given)
            try:
                result = run_heuristic(self.problem, instance, self.method, SolveOptions(seed=seed), given)
            except Disagreement as error:
                path = write_disagreement(instance, message=str(error))
                raise Disagreement(f"{error}; the instance is in {path}") from error
            except InputError as error:
                if not self.method.is_user_defined:
                    raise
                lost = str(error)
        if self.method is not None and result is not None:
            outside = bool(result.info.get("outside_model"))
            answers.append(Answer(self.method.id, result.status, result.objective, result.bound, outside_model=outside))
        known = agree(answers, self.problem.sense, self.problem.certified_bound(instance))
        if known.contradictions:
            path = write_disagreement(instance, message="; ".join(known.contradictions))
            raise Disagreement(f"{'; '.join(known.contradictions)}; the instance is in {path}")
        objective = None if result is None else result.objective
        info = {} if result is None else result.info
        case = Case(instance, objective, info, known.optimum, known.bound, options)
        return Trial(instance, family, seed, given, result, case, exact.proof is Proof.CERTIFIED, lost)


def _row(
    problem: Problem,
    guarantee: Guarantee,
    count: int,
    seed: int,
    folder: Path,
    trials: dict[tuple[str, str], Trials],
    bar: Progress,
    certify: bool,
) -> LedgerRow:
    if guarantee.measure is not None:
        measured = guarantee.measure(seed)
        return LedgerRow(guarantee, Verdict.MEASURED, reason=measured.summary, values=measured.values)
    if guarantee.sample is not None:
        return _sampled(guarantee, guarantee.sample, count, seed, bar)
    key = (problem.id, guarantee.method or "")
    if key not in trials:
        method = find_method(problem, guarantee.method) if guarantee.method is not None else None
        trials[key] = Trials(problem, method, certify)
    families = families_of(problem, guarantee)
    tally = Tally(certified=0 if certify else None)
    smallest: tuple[tuple[int, int], Trial, Evaluation] | None = None
    hunted = _hunted(problem, guarantee)
    for k in range(count + len(hunted)):
        if k < count:
            _step(bar, guarantee, k, count)
            # Families take turns; the k-th trial of a family is the same for every guarantee.
            trial = trials[key].get(families[k % len(families)], seed * SEED_STRIDE + k // len(families))
        else:
            trial = trials[key].run(*hunted[k - count])
        if trial.lost:
            tally.lose(trial.lost, f"family {trial.family}, seed {trial.seed}")
            continue
        judged = evaluate(guarantee, trial.case)
        tally.add(judged.evaluation, f"family {trial.family}, seed {trial.seed}", trial.certified)
        if judged.verdict is Verdict.NOT_APPLICABLE:
            continue
        if judged.ratio_bound is not None:
            tally.bounds.append(judged.ratio_bound)
        seen = ratio(trial.case.objective, trial.case.optimum, problem.sense)
        if seen is not None and not (trial.result and trial.result.info.get("outside_model")):
            tally.worst_ratio = seen if tally.worst_ratio is None else max(tally.worst_ratio, seen)
        if judged.verdict is Verdict.REFUTED:
            size = instance_size(trial.instance)
            if smallest is None or size < smallest[0]:
                smallest = (size, trial, judged.evaluation)
    if smallest is None:
        return tally.row(guarantee)
    _, trial, evaluation = smallest
    path = folder / f"{guarantee.id}.json"
    write_counterexample(path, guarantee, trial, evaluation)
    sides = refuting(evaluation.left, evaluation.right)
    return tally.row(guarantee, path, f"{sides} ({evaluation.reason})" if evaluation.reason else sides)


def _hunted(problem: Problem, guarantee: Guarantee) -> list[tuple[Instance, Mapping[str, Any], str, int]]:
    """What hunts for this claim found, in the folder ``hunts``: a claim that a hunt refuted here is not held.

    As it was found and shrunk: the one may have the larger ratio, the other is the smaller counterexample.
    """
    found: list[tuple[Instance, Mapping[str, Any], str, int]] = []
    for path in sorted([*HUNTS.glob("*/found.json"), *HUNTS.glob("*/worst.json")]):
        data = read_json(path)
        told = data.get("reference_hunt") if isinstance(data, dict) else None
        if isinstance(told, dict) and (told.get("target"), told.get("problem")) == (guarantee.id, problem.id):
            instance, options = problem.instance_class.parse(data, str(path)), dict(told.get("options") or {})
            if all((instance, options) != one[:2] for one in found):  # one that could not be shrunk is there twice
                found.append((instance, options, str(path), int(told.get("seed") or 0)))
    return found


def families_of(problem: Problem, guarantee: Guarantee) -> list[str]:
    """The families that the guarantee's hint names, or all of the problem's."""
    there = workload_of(problem).trials()
    named = list(guarantee.hint.get("families", ())) or list(there)
    for name in named:
        if name not in there:
            raise InputError(f"{guarantee.id}: {problem.id} has no family {name!r} of trials")
    return named


def _step(bar: Progress, guarantee: Guarantee, trial: int, count: int) -> None:
    """Trial number `trial` (from 0) begins; the last one is done when the verdict is there."""
    if trial:
        bar.step(f"{guarantee.id}, {trial} of {count} trials")


def _sampled(
    guarantee: Guarantee, sample: Callable[[int], Evaluation], count: int, seed: int, bar: Progress
) -> LedgerRow:
    """A claim about things that are not instances of the problem."""
    tally = Tally()
    first: str | None = None
    for k in range(count):
        _step(bar, guarantee, k, count)
        evaluation = sample(seed * SEED_STRIDE + k)
        tally.add(evaluation, f"sample {seed * SEED_STRIDE + k}")
        if evaluation.verdict is Verdict.REFUTED and first is None:
            first = f"sample {seed * SEED_STRIDE + k}: {evaluation.reason}"
    return tally.row(guarantee, reason=first)
