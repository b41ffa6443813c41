"""Guarantees as objects: what a paper proves, checked on an instance, a run and a reference value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from schedgap.formulations.common.instance import Instance


class Verdict(StrEnum):
    """What came out of checking a claim. HELD and REFUTED for bounds, MEASURED for growth and frequencies."""

    HELD = "held"
    REFUTED = "refuted"
    MEASURED = "measured"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Case:
    """What a guarantee is evaluated on.

    Attributes
    ----------
    instance : the instance
    objective : the heuristic's objective, recomputed by the checker; None where it found nothing
    info : what the heuristic told of its run (see :class:`HeuristicRun`)
    optimum : the proven optimum, or None
    bound : a proven bound on the optimum (equals the optimum when that is known), or None
    options : the options the heuristic ran with
    """

    instance: Instance
    objective: float | None
    info: Mapping[str, Any]
    optimum: float | None
    bound: float | None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Evaluation:
    """A claim on one case: ``left <= right``.

    Attributes
    ----------
    verdict : HELD, REFUTED or NOT_APPLICABLE
    left, right : the two sides of the claim, as numbers; `right` is the bound
    reason : why it does not apply, or what the numbers are
    """

    verdict: Verdict
    left: float | None = None
    right: float | None = None
    reason: str = ""

    @property
    def tightness(self) -> float | None:
        """left / right: 1 is tight, above 1 refutes the claim; None where unknown."""
        if self.left is None or self.right is None:
            return None
        return 1.0 if self.left == self.right else (self.left / self.right if self.right else float("inf"))


def at_most(left: float, right: float, reason: str = "") -> Evaluation:
    """The evaluation of ``left <= right`` with a relative tolerance of 1e-9."""
    held = left <= right + 1e-9 * max(1.0, abs(left), abs(right))
    return Evaluation(Verdict.HELD if held else Verdict.REFUTED, left, right, reason)


def not_applicable(reason: str) -> Evaluation:
    """The evaluation of a claim whose assumptions do not hold on this case."""
    return Evaluation(Verdict.NOT_APPLICABLE, reason=reason)


@dataclass(frozen=True)
class Measured:
    """What a claim about growth or frequency comes out as: MEASURED, never held or refuted.

    Attributes
    ----------
    values : what was measured, by name (exponents, counts, frequencies)
    summary : one line with the numbers
    """

    values: Mapping[str, float]
    summary: str


@dataclass(frozen=True)
class Guarantee:
    """One claim about one heuristic (or about the problem itself).

    Attributes
    ----------
    id : such as "000-theorem-5" or "000-theorem-5-repaired"
    problem : the problem's id
    source : where it is printed, such as "paper 000, Theorem 5"; "ours" for a repaired claim
    statement : the claim as a formula
    assumptions : what it needs, in words; `evaluate` checks them
    evaluate : the claim on one case
    method : the heuristic it is about, or None where it is about the problem
    kind : "printed" or "repaired"
    ratio_bound : the proven bound on objective / optimum for this case, where the claim is such a bound
    hint : names of generator presets and options under which the claim is worth trying, for `verify`
    per_sample : how many things one sample looks at and what they are, such as (200, "pairs")
    sample : for a claim about things that are not instances of the problem (graphs, say): ``sample(seed)`` makes
        one at random and evaluates the claim on it; `evaluate` is not applicable then
    measure : for a claim about growth or frequency: ``measure(seed)`` runs on instances of its own and returns
        what was measured; `evaluate` is not applicable then
    """

    id: str
    problem: str
    source: str
    statement: str
    assumptions: str
    evaluate: Callable[[Case], Evaluation]
    method: str | None = None
    kind: str = "printed"
    ratio_bound: Callable[[Case], float | None] | None = None
    hint: Mapping[str, Any] = field(default_factory=dict)
    per_sample: tuple[int, str] = (1, "instances")
    sample: Callable[[int], Evaluation] | None = None
    measure: Callable[[int], Measured] | None = None
