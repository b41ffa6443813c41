"""What a table of runs comes to: comparisons of heuristics, exact methods, claims, metrics; each computed once.

Means are over what all methods solved; in shares failures count. The shares are points of a performance profile (E. D.
Dolan, J. J. More, *Benchmarking optimization software with performance profiles*, Mathematical Programming 91, 2002):
of all instances, the part on which a method is within a factor of the best. A method that finds nothing, or earns
nothing of something, is within no factor.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from schedgap.benchmarks.judging.judge import Judgement
from schedgap.benchmarks.judging.ledger_verdicts import LedgerVerdict, ledger_verdict, run_verdict, verdict_kind
from schedgap.benchmarks.records import FILES, metrics_of
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.numbers import RELATIVE_TOLERANCE
from schedgap.heuristics.common.guarantee import Guarantee, Verdict
from schedgap.solvers.result import Proof

WITHIN = (1.0, 1.1, 1.5, 2.0)
"""Factors whose shares a table shows."""
_ORDER = ("optimum", "bound", "", "own bound")


@dataclass(frozen=True)
class Block:
    """Heuristics that ran on the same instances, with ratios to the same thing."""

    to: str  # "optimum", "bound", "own bound" for a method outside the model whose run brings one, or "" for none
    batches: tuple[str, ...]  # the groups of its instances
    ratios: pd.DataFrame  # to that, a row an instance and a column a heuristic; NaN where it found nothing
    to_best: pd.DataFrame  # to the best schedule that any method found; infinite where the heuristic found none
    labels: tuple[str, ...]  # the heuristics with their settings, by column
    # on how many instances a limit ended a heuristic, by label; these count as if it had found nothing
    cut: Counter[str]
    files: bool = False  # whether its instances are files that a user names

    @property
    def common(self) -> pd.DataFrame:
        """The ratios on the instances where every heuristic that solved any has a finite one."""
        able = self.ratios.loc[:, self.ratios.notna().any()]
        finite = able.map(math.isfinite).all(axis=1)
        return able.loc[finite] if able.columns.size else able.iloc[:0]

    @property
    def table(self) -> pd.DataFrame:
        """A row a heuristic: solved, none, infinite, mean over :attr:`common`, worst, and the shares (by factor)."""
        columns = {
            "label": pd.Series(self.labels),
            "solved": self.ratios.notna().sum(),
            "none": self.ratios.isna().sum(),
            "infinite": np.isinf(self.ratios).sum(),
            "mean": self.common.agg(_mean) if len(self.common) else math.nan,
            "worst": self.ratios.max(),
        }
        shares = {f: (self.to_best <= f * (1 + RELATIVE_TOLERANCE)).mean() for f in WITHIN}
        return pd.DataFrame(columns | shares)


def blocks(runs: pd.DataFrame) -> list[Block]:
    """Everything that can be compared, in the order of first appearance; instances proven infeasible are left out."""
    own = runs.outside_model & runs.own_ratio.notna()
    mine = runs[runs.heuristic & ~runs.infeasible & (own | ~runs.outside_model)]
    if mine.empty:
        return []
    known = np.where(mine.optimum.notna(), "optimum", np.where(mine.best_bound.notna(), "bound", ""))
    mine = mine.assign(
        to=np.where(mine.outside_model, "own bound", known),
        value=mine.own_ratio.where(mine.outside_model, mine.ratio),
        best=mine.own_ratio.where(mine.outside_model, mine.to_best).fillna(math.inf),
    )
    one = mine.groupby(["one", "to"], sort=False)
    mine["column"] = one.cumcount()
    mine["together"] = one["label"].transform("\n".join)
    found = []
    for (_, to), part in mine.groupby(["together", "to"], sort=False):
        ratios, to_best = (part.pivot(index="one", columns="column", values=name) for name in ("value", "best"))
        labels = tuple(part.label[part.one == part.one.iloc[0]])
        cut = Counter(part.label[[record.result.cut for record in part.record]])
        files = bool((part.suite == FILES).all())
        found.append(Block(str(to), tuple(part.batch.unique()), ratios, to_best, labels, cut, files))
    return sorted(found, key=lambda block: _ORDER.index(block.to))


def survivors(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs on instances on which every heuristic that solved any has a schedule."""
    mine = runs[runs.heuristic]
    able = mine[mine.objective.notna()].label.unique()
    failed = mine[mine.label.isin(able) & mine.objective.isna()].one.unique()
    return runs[~runs.one.isin(failed)]


def exact_methods(runs: pd.DataFrame) -> pd.DataFrame:
    """Per group and exact method: runs, how many of each outcome, mean and largest seconds of those without error, and
    the mean primal integral of those on instances with a schedule."""
    mine = runs[~runs.heuristic]
    files = mine.suite == FILES
    if files.any():  # files that a user names belong together
        mine = mine.assign(batch=mine.batch.where(~files, f"{mine.batch[files].nunique()} files"))
    status = mine.status
    counts = mine.assign(
        optimal=status == "optimal",
        proven_infeasible=status == "infeasible",
        feasible=status == "feasible",
        nothing=status.isin(["unknown", "unbounded", "error"]),
        **{level: status.isin(["optimal", "infeasible"]) & (mine.proven == level) for level in Proof},
        timed=mine.seconds.where(mine.error == ""),
    )
    return (
        counts.groupby(["batch", "label"], sort=False)
        .agg(
            runs=("one", "size"),
            optimal=("optimal", "sum"),
            infeasible=("proven_infeasible", "sum"),
            feasible=("feasible", "sum"),
            nothing=("nothing", "sum"),
            **{level: (level, "sum") for level in Proof},
            mean=("timed", "mean"),
            worst=("timed", "max"),
            integral=("primal_integral", "mean"),
        )
        .reset_index()
    )


def mean_metrics(runs: pd.DataFrame, problem: Problem) -> pd.DataFrame:
    """Per group and heuristic: runs, the mean of the objective and of each metric, NaN where a run does not know it."""
    mine = runs[runs.heuristic & runs.objective.notna()]
    told = pd.DataFrame(
        [{problem.objective_name: r.result.objective, **metrics_of(problem, r.result.info)} for r in mine.record],
        index=mine.index,
        columns=[problem.objective_name, *problem.metrics.values()],
        dtype=float,
    )
    grouped, unknown = (one.groupby([mine.batch, mine.label], sort=False) for one in (told, told.isna()))
    return grouped.mean().mask(unknown.any()).assign(runs=grouped.size()).reset_index()


@dataclass
class Claim:
    """A guarantee over the instances of a run, for one method and its settings."""

    guarantee: Guarantee  # the claim
    label: str  # the method with its settings
    # held, refuted: on how many instances
    held: int = 0
    refuted: int = 0
    # least, most: the smallest and the largest value of its bound on the ratio (None where it is no such bound)
    least: float | None = None
    most: float | None = None
    tightness: float | None = None  # the largest left / right over the instances where it applies
    worst: str = ""  # hash of the instance where that is
    reasons: Counter[str] = field(default_factory=Counter)  # why it did not apply, and how often

    def add(self, judgement: Judgement, instance_hash: str) -> None:
        """Count one run."""
        if judgement.verdict is Verdict.NOT_APPLICABLE:
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
    def applied(self) -> str:
        """On how many of the instances it applied; empty where on all."""
        tried = self.held + self.refuted
        return f"{tried} of {tried + self.reasons.total()}" if self.reasons else ""

    @property
    def verdict(self) -> str:
        """In words, with the number of instances: what does not refute a claim does not prove it either."""
        return run_verdict(self.held, self.refuted)

    @property
    def kind(self) -> str:
        """Its colour: refuted where these runs or the ledger refute it, held where the ledger says so, else none."""
        return verdict_kind(self.refuted > 0, self.ledger)


def claims(runs: pd.DataFrame) -> list[Claim]:
    """Every guarantee of every heuristic over `runs`, by heuristic in the order of first appearance."""
    found: dict[tuple[str, str], dict[str, Claim]] = {}
    mine = runs[runs.heuristic]
    for problem, name, digest, judgements in zip(
        mine.problem, mine.label, mine.instance_hash, mine.judgements, strict=True
    ):
        own = found.setdefault((problem, name), {})
        for judgement in judgements:
            own.setdefault(judgement.guarantee.id, Claim(judgement.guarantee, name)).add(judgement, digest)
    return [claim for own in found.values() for claim in own.values()]


def headline(found: Iterable[Claim], name: str, kind: str) -> Claim | None:
    """The bound on the ratio that tables and figures show of a heuristic, never a lemma on the way to one.

    One that applies here before one that does not, then a refuted one, then the tightest.

    Parameters
    ----------
    found : claims
    name : the heuristic's label
    kind : "printed" or "repaired"
    """
    bounds = [c for c in found if c.label == name and c.guarantee.kind == kind and c.guarantee.on_the_ratio]
    return min(bounds, key=lambda c: (not c.held + c.refuted, not c.refuted, c.most or math.inf), default=None)


def _mean(values: pd.Series[float]) -> float:
    return math.fsum(values) / len(values)
