"""Every statement of the papers beside what is measured: ratio and proven bound on the same instance.

The statements are those of the ledger. Each is tried on the families that meet its assumptions, until it has applied to
enough instances, so that no line is empty because a suite happens to hold nothing that it speaks of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from schedgap.benchmarks.judging.judge import Judgement, evaluate
from schedgap.benchmarks.judging.statement import Point, Statement
from schedgap.benchmarks.ledger.verify import SEED_STRIDE, Trials, families_of, sharing_trials
from schedgap.benchmarks.sweep.progress import Progress
from schedgap.benchmarks.sweep.sweep import sweep
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems, find_method
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.numbers import ratio
from schedgap.heuristics.common.guarantee import Case, Guarantee, Verdict

ENOUGH = 5
"""Instances to which a statement has applied after which no further one is drawn."""
MOST = 20
"""Instances that are drawn for a statement, at most."""
SAMPLES = 5
"""Samples of a statement about pairs, pools or graphs."""


def statements(
    problems: Sequence[Problem], seed: int, bar: Progress, workers: int, cluster: str | None = None
) -> list[Statement]:
    """Try every statement about these problems; papers in order, a repaired statement beneath the printed one.

    Those that a dead worker was trying are among them, with the reason in ``missing``.

    Raises
    ------
    Disagreement
        A heuristic beat a proven optimum, or the checker rejected a solution.
    """
    registered = all_problems()
    claimed = [problem for problem in problems if problem.guarantees()]
    order = [guarantee.id for problem in claimed for guarantee in problem.guarantees()]
    made: dict[str, Statement] = {}
    if any(registered.get(problem.id) is not problem for problem in claimed) or workers == 1:
        for problem in claimed:
            for group in sharing_trials(problem.guarantees()):
                made |= {one.id: one for one in _tried(problem, group, seed)}
    else:
        tasks = [
            _Task(p.id, tuple(g.id for g in group), seed) for p in claimed for group in sharing_trials(p.guarantees())
        ]

        def done(task: _Task, outcome: Sequence[Statement] | str) -> None:
            if isinstance(outcome, str):
                raise Disagreement(outcome)
            made.update({one.id: one for one in outcome})
            bar.step(f"{task.ids[0]}: {made[task.ids[0]].verdict}")

        def died(task: _Task, reason: str, _: float) -> None:
            problem = registered[task.problem]
            for guarantee in problem.guarantees():
                if guarantee.id in task.ids:
                    made[guarantee.id] = replace(_untried(problem, guarantee), missing=reason)
            bar.say(f"bench: {', '.join(task.ids)} not tried: {reason}")
            bar.step(task.ids[0])

        bar.total += len(tasks)
        sweep(tasks, _run, done, died, label=_label, bar=bar, workers=workers, cluster=cluster)
    return sorted((made[name] for name in order), key=lambda one: one.paper)


@dataclass(frozen=True)
class _Task:
    """Statements about one heuristic, which share its trials."""

    problem: str
    ids: tuple[str, ...]
    seed: int


def _label(task: _Task) -> str:
    return task.ids[0]


def _run(task: _Task) -> list[Statement] | str:
    problem = all_problems()[task.problem]
    try:
        return _tried(problem, [one for one in problem.guarantees() if one.id in task.ids], task.seed)
    except Disagreement as error:
        return str(error)


def _tried(problem: Problem, group: Sequence[Guarantee], seed: int) -> list[Statement]:
    method = group[0].method
    trials = Trials(problem, None if method is None else find_method(problem, method))
    return [_statement(problem, guarantee, trials, seed) for guarantee in group]


def _untried(problem: Problem, guarantee: Guarantee) -> Statement:
    shape = "measured" if guarantee.measure else "samples" if guarantee.sample else "sides"
    shape = "ratio" if shape == "sides" and guarantee.ratio_bound is not None else shape
    return Statement(
        guarantee.id,
        problem.id,
        guarantee.source,
        guarantee.kind,
        guarantee.method,
        guarantee.statement,
        guarantee.needs_text,
        shape,
    )


def _statement(problem: Problem, guarantee: Guarantee, trials: Trials, seed: int) -> Statement:
    statement = _untried(problem, guarantee)
    if guarantee.measure is not None:
        return replace(statement, measured=guarantee.measure(seed).summary)
    if guarantee.sample is not None:
        evaluations = [guarantee.sample(seed * SEED_STRIDE + k) for k in range(SAMPLES)]
        applied = [evaluation for evaluation in evaluations if evaluation.verdict is not Verdict.NOT_APPLICABLE]
        points = tuple(Point("", None, None, evaluation.tightness) for evaluation in applied)
        refuted = sum(evaluation.verdict is Verdict.REFUTED for evaluation in applied)
        each, things = guarantee.per_sample
        counted = replace(statement, drawn=SAMPLES, applied=len(applied), refuted=refuted)
        return replace(counted, per_sample=each, things=things, points=points)
    return _on_families(problem, guarantee, trials, seed, statement)


def _on_families(problem: Problem, guarantee: Guarantee, trials: Trials, seed: int, statement: Statement) -> Statement:
    """Families take turns, until the statement has applied often enough."""
    names = families_of(problem, guarantee)
    drawn, refuted = 0, 0
    points: list[Point] = []
    while drawn < MOST and len(points) < ENOUGH:
        family, number = names[drawn % len(names)], seed * SEED_STRIDE + drawn // len(names)
        drawn += 1
        trial = trials.get(family, number)
        judged = evaluate(guarantee, trial.case)
        if judged.verdict is Verdict.NOT_APPLICABLE:
            continue
        refuted += judged.verdict is Verdict.REFUTED
        points.append(_point(problem, judged, trial.case, f"{family} {number}"))
    return replace(statement, drawn=drawn, applied=len(points), refuted=refuted, points=tuple(points))


def _point(problem: Problem, judged: Judgement, case: Case, where: str) -> Point:
    """Ratio, bound and share of one instance."""
    measured, share = None, judged.evaluation.tightness
    if judged.guarantee.ratio_bound is not None:
        measured = ratio(case.objective, case.optimum, problem.sense)
    if measured is not None and judged.ratio_bound:
        share = measured / judged.ratio_bound if math.isfinite(judged.ratio_bound) else 0.0
    loads = [case.info.get(name) for name in ("server_share", "link_share")]
    over = max((load for load in loads if isinstance(load, int | float) and load > 1 + 1e-9), default=None)
    return Point(where, measured, judged.ratio_bound, share, over)
