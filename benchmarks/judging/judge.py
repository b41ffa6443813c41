"""Guarantees on runs: which claims a method has, and what they and the ledger say of an answer.

A comparison of two sides is decided in ``heuristics/common/guarantee.py`` (`at_most`), the verdict of a claim over all
its trials in ``rows.py`` (`Tally`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from schedgap.benchmarks.judging.ledger_verdicts import ledger_verdict
from schedgap.benchmarks.judging.users_claims import claims_of
from schedgap.catalogue.agreement import Agreement
from schedgap.catalogue.method import Method, full_settings, last_line_of, one_line
from schedgap.catalogue.problem import Problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance, Json
from schedgap.heuristics.common.guarantee import OWN, READING, Case, Evaluation, Guarantee, Verdict, not_applicable

KINDS = ("printed", READING, "repaired")
"""In the order of tables; a user's own last."""


@dataclass(frozen=True)
class Judgement:
    """A guarantee on one run."""

    guarantee: Guarantee  # the claim
    evaluation: Evaluation  # its verdict here with both sides
    ratio_bound: float | None  # the proven bound on the ratio for this case, where the claim is one

    @property
    def verdict(self) -> Verdict:
        """HELD, REFUTED or NOT_APPLICABLE on this run."""
        return self.evaluation.verdict

    @property
    def ledger(self) -> str:
        """What the ledger that ships says of the claim."""
        return ledger_verdict(self.guarantee.id).words

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        return {
            "id": self.guarantee.id,
            "kind": self.guarantee.kind,
            "statement": self.guarantee.statement,
            "verdict": str(self.verdict),
            "left": finite(self.evaluation.left),
            "right": finite(self.evaluation.right),
            "ratio_bound": finite(self.ratio_bound),
            "reason": self.evaluation.reason,
            "outside": self.evaluation.outside,
        }


def guarantees_of(problem: Problem, method: str) -> tuple[Guarantee, ...]:
    """The claims about runs of one method, printed ones first, then readings; not those measured in their own way."""
    every = claims_of(problem)
    rows = [g for g in every if g.method == method and g.measure is None and g.sample is None]
    return tuple(sorted(rows, key=lambda g: KINDS.index(g.kind) if g.kind in KINDS else len(KINDS)))


def unjudged(problem: Problem, method: Method, reason: str) -> tuple[Judgement, ...]:
    """Every guarantee of a method that did not run, not applicable for this reason."""
    return tuple(Judgement(g, not_applicable(reason), None) for g in guarantees_of(problem, method.id))


def judge(
    problem: Problem,
    method: Method,
    settings: Mapping[str, object],  # the options the run was given; the others count with their defaults
    instance: Instance,
    # objective, info: the checker's objective (None: nothing found) and what the heuristic told of its run
    objective: float | None,
    info: Mapping[str, object],
    agreement: Agreement,  # what is proven about the instance
    sides: bool = False,  # both sides of a claim on the ratio outside of its assumptions too, where it can be
) -> tuple[Judgement, ...]:
    """Every guarantee of `method` on one of its runs."""
    rows = guarantees_of(problem, method.id)
    if not rows:
        return ()
    options = full_settings(method, settings)
    case = Case(instance, objective, info, agreement.optimum, agreement.bound, options)
    return tuple(evaluate(guarantee, case, sides) for guarantee in rows)


def evaluate(guarantee: Guarantee, case: Case, sides: bool = False) -> Judgement:
    """One guarantee on one case; `sides` as in :func:`judge`.

    Raises InputError: a user's own claim raised.
    """
    try:
        evaluation = guarantee.on(case, sides)
        applies = evaluation.verdict is not Verdict.NOT_APPLICABLE or evaluation.right is not None
        bound = guarantee.ratio_bound(case) if guarantee.ratio_bound is not None and applies else None
    except Exception as error:
        if guarantee.kind != OWN:
            raise
        raise InputError(f"claim {guarantee.id}: raised {one_line(error)}{last_line_of(error)}") from error
    return Judgement(guarantee, evaluation, bound)


def finite(value: float | None) -> float | str | None:
    """A number as JSON can hold it: infinity becomes the text "inf"."""
    if value is None or math.isfinite(value):
        return value
    return "inf" if value > 0 else "-inf"
