"""A run read back: one table of its records, with what is proven about each instance, ratios and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from schedgap.benchmarks.anytime import curve_of, horizon, primal_integral
from schedgap.benchmarks.judging.judge import Judgement, judge
from schedgap.benchmarks.judging.statement import Statement
from schedgap.benchmarks.records import Record
from schedgap.benchmarks.sweep.store import reading
from schedgap.catalogue.agreement import Answer, agree, joint_proof
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems
from schedgap.formulations.common.instance import Instance, read_json
from schedgap.formulations.common.numbers import ratio
from schedgap.solvers.result import Proof

COLUMNS = (
    "suite", "problem", "batch", "instance", "instance_hash", "method", "settings", "seed", "status", "termination",
    "objective", "bound", "optimum", "best_bound", "ratio", "ratio_to", "outside_model", "engine", "engine_version",
    "build_seconds", "solve_seconds", "seconds", "error", "metrics",
)  # fmt: skip
"""Columns of the table that are exported."""


_NUMBERS = ("objective", "bound", "optimum", "best_bound", "ratio", "own_ratio", "to_best", "best", "primal_integral",
            "build_seconds", "solve_seconds", "seconds")  # fmt: skip


_FLAGS = ("heuristic", "infeasible", "outside_model")


_MORE = ("one", "label", "heuristic", "infeasible", "own_ratio", "to_best", "best",
         "primal_integral", "proven", "position", "disagreement", "record", "judgements")  # fmt: skip


@dataclass(frozen=True)
class Analysis:
    """A whole run, read back."""

    # one row a run of a method, in the order of the plan: the fields of its record (`record` itself too), the number of
    # its instance in the run (`one`), what is proven about the instance by all methods together (`optimum`,
    # `best_bound`, `infeasible`) and how far (`proven`: certified, agreed or claimed), `label` (the method with its
    # settings), `heuristic`, `outside_model`, `ratio` and what it is to (`ratio_to`), `own_ratio` (to a bound of its
    # own, outside the model), `to_best` (to `best`, the best schedule known), `primal_integral` (of exact methods and
    # searches, over the longest of their runs on the instance) and `judgements` (its guarantees on this run); NaN is
    # unknown
    runs: pd.DataFrame
    # disagreements, failures: one line each, with the place of the instance
    disagreements: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = field(default=())  # problems that take part
    # items, planned: how many records there are, and should be; `planned` is None where that is not known
    items: int = 0
    planned: int | None = None
    statements: tuple[Statement, ...] = ()  # what the papers prove, each tried on instances that meet its assumptions

    @property
    def unfinished(self) -> str:
        """``UNFINISHED: 230 of 248 items done`` where records are missing, otherwise empty."""
        if self.planned is None or self.items >= self.planned:
            return ""
        return f"UNFINISHED: {self.items} of {self.planned} items done"

    @property
    def sections(self) -> list[tuple[str, Problem]]:
        """Every suite with each problem that takes part in it, in the order of the plan."""
        pairs = [(r.suite, r.problem) for r in sorted(self.runs.record, key=lambda record: record.position)]
        suites = dict.fromkeys(suite for suite, _ in pairs)
        return [(suite, problem) for suite in suites for problem in self.problems if (suite, problem.id) in pairs]

    def section(self, suite: str, problem: Problem) -> pd.DataFrame:
        """The runs of one problem in one suite."""
        return self.runs[(self.runs.suite == suite) & (self.runs.problem == problem.id)]


def instances(runs: pd.DataFrame) -> pd.DataFrame:
    """The first run of every instance: a row an instance."""
    return runs.drop_duplicates("one")


def claimed_only(every: pd.DataFrame) -> int:
    """How many of these instances have an optimum, or no schedule, by one solver alone."""
    settled = every.optimum.notna() | every.infeasible
    return int((settled & ~every.proven.isin([Proof.CERTIFIED, Proof.AGREED])).sum())


def instance_path(folder: Path, digest: str) -> Path:
    """Where a run keeps an instance."""
    return folder / "instances" / f"{digest[:16]}.json"


def load(folder: Path, problem: Problem, digest: str) -> Instance:
    """An instance of a run."""
    path = instance_path(folder, digest)
    return problem.instance_class.parse(read_json(path), str(path))


def analyse(
    records: Iterable[Record], folder: Path, problems: Sequence[Problem] | None = None, planned: int | None = None
) -> Analysis:
    """Put the records of a run together.

    Parameters
    ----------
    records : in the order of the plan
    folder : the run's folder, which holds the instances
    problems : instead of those in the table
    planned : how many records the run has when it is complete
    """
    known = {p.id: p for p in problems} if problems is not None else dict(all_problems())
    groups: dict[tuple[str, str, str, str], list[Record]] = {}
    disagreements: list[str] = []
    failures: list[str] = []
    items = 0
    for row in records:
        items += 1
        if row.error:
            where = f"{row.suite} {row.problem} {row.instance_name or row.batch} {row.method}"
            line = f"{where}: {row.error.splitlines()[0]}"
            (disagreements if row.disagreement else failures).append(line)
        if row.problem not in known:
            failures.append(f"{row.suite} {row.problem}: this version does not know the problem")
        elif not row.instance_hash:
            failures.append(f"{row.suite} {row.problem}: {row.batch}: a measurement, which this version does not show")
        else:
            groups.setdefault((row.suite, row.problem, row.batch, row.instance_hash), []).append(row)
    rows: list[dict[str, Any]] = []
    for number, ((suite, problem_id, _, digest), members) in enumerate(groups.items()):
        found, contradictions = _one(known[problem_id], members, folder)
        where = f"{suite} {problem_id} {members[0].instance_name}"
        disagreements += [
            f"{where}: {line}; the instance is in {instance_path(folder, digest)}" for line in contradictions
        ]
        rows += [{**row, "one": number} for row in found]
    runs = pd.DataFrame(rows, columns=[*COLUMNS, *_MORE])
    runs = runs.astype(dict.fromkeys(_NUMBERS, float) | dict.fromkeys(_FLAGS, bool))
    used = set(runs.problem)
    there = tuple(p for p in known.values() if p.id in used)
    return Analysis(runs, tuple(disagreements), tuple(failures), there, items, planned)


def _one(problem: Problem, members: Sequence[Record], folder: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The table's rows about one instance, and what its answers contradict each other in."""
    methods = [_method(problem, row) for row in members]
    outside = [
        m.outside_model or bool(r.result.info.get("outside_model")) for m, r in zip(methods, members, strict=True)
    ]
    answers = [
        Answer(r.label, r.result.status, r.result.objective, r.result.bound, m.proves, out)
        for r, m, out in zip(members, methods, outside, strict=True)
    ]
    agreement = agree(answers, problem.sense)
    inside = [
        r.result.objective for r, o in zip(members, outside, strict=True) if r.result.objective is not None and not o
    ]
    best = agreement.optimum
    if best is None:
        best = min(inside, key=lambda value: problem.sense * value, default=None)
    curves = [None if out else curve_of(row.result) for row, out in zip(members, outside, strict=True)]
    until = horizon(curve for curve in curves if curve)
    instance: Instance | None = None
    proven = joint_proof([row.result for row in members]) or ""
    rows = []
    for row, method, out, curve in zip(members, methods, outside, curves, strict=True):
        value = None if row.result.cut else row.result.objective  # what was cut is in no mean
        found, to = (None, "") if out else agreement.ratio(value, problem.sense)
        own = row.result.info.get("own_ratio") if out else None
        judgements: tuple[Judgement, ...] = ()
        heuristic = not method.proves
        if heuristic and not row.error and any(g.method == row.method for g in problem.guarantees()):
            instance = instance if instance is not None else load(folder, problem, row.instance_hash)
            result = row.result
            with reading(folder, row, "info"):
                judgements = judge(problem, method, row.settings, instance, result.objective, result.info, agreement)
        rows.append(
            {
                **row.flat(),
                "objective": value,
                "instance": row.instance_name,
                "record": row,
                "label": row.label,
                "heuristic": heuristic,
                "outside_model": out,
                "optimum": agreement.optimum,
                "best_bound": agreement.bound,
                "infeasible": agreement.infeasible,
                "ratio": found,
                "ratio_to": to if found is not None else "",
                "own_ratio": own if isinstance(own, int | float) else None,
                "to_best": ratio(value, best, problem.sense),
                "best": best,
                "primal_integral": primal_integral(curve, best, until) if curve and best is not None else None,
                "proven": proven,
                "judgements": judgements,
            }
        )
    return rows, agreement.contradictions


def _method(problem: Problem, row: Record) -> Method:
    """What ran; one that only a suite knows, that is a user's own, or that is gone, is rebuilt from the record."""
    own = [method for method in problem.methods if method.id == row.method]
    if own:
        return own[0]
    if ":" in row.method:
        return Method(row.method, "a user's own heuristic", Kind.HEURISTIC, is_user_defined=True)
    return Method(row.method, "known to a suite only", Kind.EXACT)
