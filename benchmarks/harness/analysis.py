"""From the rows of a run to what is proven about each instance, each method's ratios, and the verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from schedgap.benchmarks.harness.store import Row
from schedgap.benchmarks.ledger.judge import Judgement, judge
from schedgap.benchmarks.ledger.verdicts import LedgerVerdict, ledger_verdict, run_verdict, verdict_kind
from schedgap.catalogue.agreement import Agreement, Answer, agree
from schedgap.catalogue.method import Kind, Method
from schedgap.catalogue.methods import label
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import all_problems
from schedgap.formulations.common.instance import Instance, read_json
from schedgap.heuristics.common.guarantee import Guarantee, Verdict
from schedgap.solvers.result import Status


@dataclass(frozen=True)
class Entry:
    """One row and what follows from it.

    Attributes
    ----------
    row : as stored
    method : what ran; a method that only a suite knows, or that is gone, is rebuilt from the row
    ratio, ratio_to : to the optimum or to the best bound; None and "" outside the model or without a solution
    judgements : the method's guarantees on this run
    """

    row: Row
    method: Method
    ratio: float | None
    ratio_to: str
    judgements: tuple[Judgement, ...]

    @property
    def label(self) -> str:
        """The method with its settings."""
        return label(self.method.id, self.row.settings)

    @property
    def outside(self) -> bool:
        """Whether its schedules are outside the model."""
        return self.method.outside_model or bool((self.row.info or {}).get("outside_model"))


@dataclass(frozen=True)
class Solved:
    """One instance and everything that was run on it."""

    suite: str
    problem: Problem
    batch: str
    hash: str
    name: str
    agreement: Agreement
    entries: tuple[Entry, ...]


@dataclass
class Claim:
    """A guarantee over the instances of a run, for one method and its settings.

    Attributes
    ----------
    guarantee : the claim
    method : the method's label
    held, refuted, not_applicable : on how many instances
    least, most : the smallest and the largest value of its bound on the ratio (None where it is no such bound)
    tightness : the largest left / right over the instances where it applies
    worst : hash of the instance where that is
    reasons : why it did not apply, and how often
    """

    guarantee: Guarantee
    method: str
    held: int = 0
    refuted: int = 0
    not_applicable: int = 0
    least: float | None = None
    most: float | None = None
    tightness: float | None = None
    worst: str = ""
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, judgement: Judgement, instance_hash: str) -> None:
        """Count one run."""
        if judgement.verdict is Verdict.NOT_APPLICABLE:
            self.not_applicable += 1
            self.reasons[judgement.evaluation.reason] += 1
            return
        if judgement.verdict is Verdict.REFUTED:
            self.refuted += 1
        else:
            self.held += 1
        bound, tightness = judgement.ratio_bound, judgement.evaluation.tightness
        if bound is not None:
            self.least = bound if self.least is None else min(self.least, bound)
            self.most = bound if self.most is None else max(self.most, bound)
        if tightness is not None and (self.tightness is None or tightness > self.tightness):
            self.tightness, self.worst = tightness, instance_hash

    @property
    def ledger(self) -> LedgerVerdict:
        """What the ledger says of it, whatever these runs did."""
        return ledger_verdict(self.guarantee.id)

    @property
    def verdict(self) -> str:
        """In words, with the number of instances: what does not refute a claim does not prove it either."""
        return run_verdict(self.held, self.refuted)

    @property
    def kind(self) -> str:
        """Its colour: refuted where these runs or the ledger refute it, held where the ledger says so, else none."""
        return verdict_kind(self.refuted > 0, self.ledger)


@dataclass(frozen=True)
class Ratios:
    """Ratios of one heuristic over instances, all to the same thing.

    Attributes
    ----------
    to : "optimum", "bound", or "own bound" for a heuristic outside the model whose run brings a bound of its own
    values : (ratio, instance hash), one per instance
    """

    to: str
    values: tuple[tuple[float, str], ...]

    @property
    def mean(self) -> float:
        """Arithmetic mean."""
        return math.fsum(value for value, _ in self.values) / len(self.values)

    @property
    def worst(self) -> tuple[float, str]:
        """The largest ratio and its instance."""
        return max(self.values, key=lambda pair: pair[0])


@dataclass(frozen=True)
class Summary:
    """One heuristic over the instances of a run (or of one group).

    Attributes
    ----------
    outside : its schedules are outside the model, so there are no ratios to the optimum
    objectives : those it found
    runs, nothing_found, errors : how many; an instance proven infeasible does not count as nothing found
    ratios : to the optimum, to the bound and to a bound of its own model, never mixed
    claims : its guarantees over all runs
    """

    problem: Problem
    label: str
    method: Method
    outside: bool
    objectives: tuple[float, ...]
    runs: int
    nothing_found: int
    errors: int
    ratios: tuple[Ratios, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class EngineSummary:
    """One exact method over the instances of a group."""

    problem: Problem
    batch: str
    label: str
    runs: int
    proven: int
    infeasible: int
    feasible: int
    nothing: int
    errors: int
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Analysis:
    """A whole run, read back.

    Attributes
    ----------
    solved : the instances, in the order of the plan
    measurements : rows that measure something else
    disagreements, failures : one line each, with the place of the instance
    items, planned : how many rows there are, and should be; `planned` is None where that is not known
    """

    solved: tuple[Solved, ...]
    measurements: tuple[Row, ...]
    disagreements: tuple[str, ...]
    failures: tuple[str, ...]
    problems: tuple[Problem, ...] = field(default=())
    items: int = 0
    planned: int | None = None

    @property
    def unfinished(self) -> str:
        """``UNFINISHED: 230 of 248`` where rows are missing, otherwise empty."""
        if self.planned is None or self.items >= self.planned:
            return ""
        return f"UNFINISHED: {self.items} of {self.planned}"


def headline(claims: Iterable[Claim], kind: str) -> Claim | None:
    """The bound on the ratio that a table shows: a refuted one first, otherwise the tightest.

    Parameters
    ----------
    claims : of one heuristic
    kind : "printed" or "repaired"
    """
    bounds = [c for c in claims if c.guarantee.kind == kind and c.guarantee.ratio_bound is not None]
    return min(bounds, key=lambda c: (not c.refuted, c.most is None, c.most or 0.0), default=None)


def instance_path(folder: Path, digest: str) -> Path:
    """Where a run keeps an instance."""
    return folder / "instances" / f"{digest[:16]}.json"


def load(folder: Path, problem: Problem, digest: str) -> Instance:
    """An instance of a run."""
    path = instance_path(folder, digest)
    return problem.instance_class.parse(read_json(path), str(path))


def analyse(
    rows: Iterable[Row], folder: Path, problems: Sequence[Problem] | None = None, planned: int | None = None
) -> Analysis:
    """Put the rows of a run together.

    Parameters
    ----------
    rows : in the order of the plan
    folder : the run's folder, which holds the instances
    problems : instead of those in the table
    planned : how many rows the run has when it is complete
    """
    known = {p.id: p for p in problems} if problems is not None else dict(all_problems())
    groups: dict[tuple[str, str, str, str], list[Row]] = {}
    measurements: list[Row] = []
    disagreements: list[str] = []
    failures: list[str] = []
    items = 0
    for row in rows:
        items += 1
        if row.error:
            where = f"{row.suite} {row.problem} {row.instance_name or row.batch} {row.method}"
            line = f"{where}: {row.error.splitlines()[0]}"
            (disagreements if row.disagreement else failures).append(line)
        if row.problem not in known:
            failures.append(f"{row.suite} {row.problem}: this version does not know the problem")
        elif not row.instance_hash:
            measurements.append(row)
        else:
            groups.setdefault((row.suite, row.problem, row.batch, row.instance_hash), []).append(row)
    solved = []
    for (suite, problem_id, batch, digest), members in groups.items():
        one = _solved(known[problem_id], suite, batch, digest, members, folder)
        for line in one.agreement.contradictions:
            disagreements.append(
                f"{suite} {problem_id} {one.name}: {line}; the instance is in {instance_path(folder, digest)}"
            )
        solved.append(one)
    used = {s.problem.id for s in solved} | {m.problem for m in measurements}
    there = tuple(p for p in known.values() if p.id in used)
    return Analysis(tuple(solved), tuple(measurements), tuple(disagreements), tuple(failures), there, items, planned)


def _solved(problem: Problem, suite: str, batch: str, digest: str, members: Sequence[Row], folder: Path) -> Solved:
    methods = [_method(problem, row) for row in members]
    answers = []
    for row, method in zip(members, methods, strict=True):
        outside = method.outside_model or bool((row.info or {}).get("outside_model"))
        exact = method.kind is not Kind.HEURISTIC
        answers.append(
            Answer(label(row.method, row.settings), Status(row.status), row.objective, row.bound, exact, outside)
        )
    agreement = agree(answers, problem.sense)
    instance: Instance | None = None
    entries = []
    for row, method, answer in zip(members, methods, answers, strict=True):
        ratio, to = (None, "") if answer.outside_model else agreement.ratio(row.objective, problem.sense)
        judgements: tuple[Judgement, ...] = ()
        if (
            method.kind is Kind.HEURISTIC
            and not row.error
            and any(g.method == row.method for g in problem.guarantees())
        ):
            instance = instance if instance is not None else load(folder, problem, digest)
            judgements = judge(problem, method, row.settings, instance, row.objective, row.info, agreement)
        entries.append(Entry(row, method, ratio, to if ratio is not None else "", judgements))
    return Solved(suite, problem, batch, digest, members[0].instance_name, agreement, tuple(entries))


def _method(problem: Problem, row: Row) -> Method:
    for method in problem.methods:
        if method.id == row.method:
            return method
    return Method(row.method, "known to a suite only", Kind.EXACT)


def summaries(solved: Iterable[Solved]) -> list[Summary]:
    """Every heuristic over `solved`, one summary per problem and label, in the order of first appearance."""
    grouped: dict[tuple[str, str], list[tuple[Solved, Entry]]] = {}
    for one in solved:
        for entry in one.entries:
            if entry.method.kind is Kind.HEURISTIC:
                grouped.setdefault((one.problem.id, entry.label), []).append((one, entry))
    result = []
    for (_, name), pairs in grouped.items():
        values: dict[str, list[tuple[float, str]]] = {}
        claims: dict[str, Claim] = {}
        for one, entry in pairs:
            own = (entry.row.info or {}).get("own_ratio")
            if entry.ratio is not None:
                values.setdefault(entry.ratio_to, []).append((entry.ratio, one.hash))
            elif entry.outside and isinstance(own, int | float):
                values.setdefault("own bound", []).append((float(own), one.hash))
            for judgement in entry.judgements:
                claim = claims.setdefault(judgement.guarantee.id, Claim(judgement.guarantee, name))
                claim.add(judgement, one.hash)
        first = pairs[0][1]
        errors = sum(1 for _, entry in pairs if entry.row.error)
        solvable = [entry for one, entry in pairs if not one.agreement.infeasible]
        missing = sum(1 for entry in solvable if entry.row.objective is None and not entry.row.error)
        ratios = tuple(Ratios(to, tuple(values[to])) for to in ("optimum", "bound", "own bound") if to in values)
        result.append(
            Summary(
                problem=pairs[0][0].problem,
                label=name,
                method=first.method,
                outside=first.outside,
                objectives=tuple(e.row.objective for _, e in pairs if e.row.objective is not None),
                runs=len(pairs),
                nothing_found=missing,
                errors=errors,
                ratios=ratios,
                claims=tuple(claims.values()),
            )
        )
    return result


def engine_summaries(solved: Iterable[Solved]) -> list[EngineSummary]:
    """Every exact method over each group of `solved`."""
    grouped: dict[tuple[str, str, str], list[tuple[Solved, Entry]]] = {}
    for one in solved:
        for entry in one.entries:
            if entry.method.kind is not Kind.HEURISTIC:
                grouped.setdefault((one.problem.id, one.batch, entry.label), []).append((one, entry))
    result = []
    for (_, batch, name), pairs in grouped.items():
        counts: Mapping[str, int] = _counts(entry.row for _, entry in pairs)
        times = tuple(e.row.seconds for _, e in pairs if e.row.seconds is not None and not e.row.error)
        result.append(
            EngineSummary(
                pairs[0][0].problem,
                batch,
                name,
                len(pairs),
                counts.get("optimal", 0),
                counts.get("infeasible", 0),
                counts.get("feasible", 0),
                counts.get("unknown", 0) + counts.get("unbounded", 0),
                counts.get("error", 0),
                times,
            )
        )
    return result


def _counts(rows: Iterable[Row]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    return counts
