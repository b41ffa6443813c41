"""Guarantees as objects: what a paper proves, checked on an instance, a run and a reference value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
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
    """What a guarantee is evaluated on."""

    instance: Instance  # the instance
    objective: float | None  # the heuristic's objective, recomputed by the checker; None where it found nothing
    info: Mapping[str, Any]  # what the heuristic reported of its run (see :class:`HeuristicRun`)
    optimum: float | None  # the proven optimum, or None
    bound: float | None  # a proven bound on the optimum (equals the optimum when that is known), or None
    options: Mapping[str, Any] = field(default_factory=dict)  # the options the heuristic ran with


@dataclass(frozen=True)
class Evaluation:
    """A claim on one case: ``left <= right``."""

    verdict: Verdict  # HELD, REFUTED or NOT_APPLICABLE
    # left, right: the two sides of the claim, as numbers; `right` is the bound
    left: float | None = None
    right: float | None = None
    reason: str = ""  # why it does not apply, or what the numbers are
    outside: str = ""  # the text of the assumption that does not hold here; empty where all do
    # how large the numbers are whose difference a side is, see :func:`at_most`
    size: float = field(default=0.0, compare=False)

    @property
    def tightness(self) -> float | None:
        """left / right: 1 is tight, above 1 refutes the claim.

        None where a side is unknown, and where a claim that holds has no positive right side: 0 <= 0 says nothing of
        how near it is to failing.
        """
        if self.left is None or self.right is None:
            return None
        if self.right > 0:
            return self.left / self.right
        return float("inf") if self.left > self.right else None

    @property
    def smallest_factor(self) -> float:
        """The smallest c >= 0 for which ``left <= c right`` is not refuted here, tolerance included."""
        if self.left is None or self.right is None or self.right <= 0:
            return 0.0
        return max(0.0, (self.left - TOLERANCE * max(abs(self.left), self.size)) / self.right)


TOLERANCE = 1e-9


def at_most(left: float, right: float, reason: str = "", size: float = 0.0) -> Evaluation:
    """The evaluation of ``left <= right`` with a tolerance of 1e-9 of the larger side, however small that is.

    Parameters
    ----------
    size : how large the numbers are whose difference a side is, since their rounding is in it
    """
    held = left <= right or left - right <= TOLERANCE * max(abs(left), abs(right), size) < math.inf
    return Evaluation(Verdict.HELD if held else Verdict.REFUTED, left, right, reason, size=size)


def not_applicable(reason: str) -> Evaluation:
    """The evaluation of a claim that says nothing of this case, or of which too little is known here."""
    return Evaluation(Verdict.NOT_APPLICABLE, reason=reason)


OWN = "own"
"""Kind of a claim that a user brings."""
READING = "reading"
"""Kind of a claim that reads a printed one in a way its paper does not state: an assumption more, or one less."""


@dataclass(frozen=True)
class Assumption:
    """One thing that a claim needs."""

    text: str  # in words
    # ``fails(case)`` says why the case is outside, or returns None where it is inside; None where every instance of the
    # problem is inside, or the words only say what the claim is about
    fails: Callable[[Case], str | None] | None = None
    shown: bool = False  # both sides can be computed outside of it too; `compare` shows them there, without a verdict


@dataclass(frozen=True)
class Measured:
    """What a claim about growth or frequency comes out as: MEASURED, never held or refuted."""

    values: Mapping[str, float]  # what was measured, by name (exponents, counts, frequencies)
    summary: str  # one line with the numbers


@dataclass(frozen=True)
class Guarantee:
    """One claim about one heuristic (or about the problem itself).

    Attributes
    ----------
    id : such as "000-theorem-5" or "000-theorem-5-repaired"
    problem : the problem's id
    source : where it is printed, such as "paper 000, Theorem 5"; "ours" for a repaired claim
    statement : the claim as a formula
    assumptions : what it needs; words alone count as one assumption without a test
    evaluate : the claim on one case inside the assumptions; :meth:`on` tests those first
    method : the heuristic it is about, or None where it is about the problem
    kind : "printed", "reading" (of a printed one, see :data:`READING`) or "repaired"; "own" for a user's
    ratio_bound : the proven bound on objective / optimum for this case, where the claim is such a bound
    lemma : a step on the way to a theorem, which no table shows as the paper's bound on the ratio
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
    assumptions: str | tuple[Assumption, ...]
    evaluate: Callable[[Case], Evaluation]
    method: str | None = None
    kind: str = "printed"
    ratio_bound: Callable[[Case], float | None] | None = None
    lemma: bool = False
    hint: Mapping[str, Any] = field(default_factory=dict)
    per_sample: tuple[int, str] = (1, "instances")
    sample: Callable[[int], Evaluation] | None = None
    measure: Callable[[int], Measured] | None = None

    @property
    def on_the_ratio(self) -> bool:
        """Whether it bounds the ratio of its heuristic."""
        return self.ratio_bound is not None and not self.lemma

    @property
    def needs(self) -> tuple[Assumption, ...]:
        """Its assumptions, one by one."""
        return (Assumption(self.assumptions),) if isinstance(self.assumptions, str) else self.assumptions

    @property
    def needs_text(self) -> str:
        """Its assumptions as one line."""
        return "; ".join(needed.text for needed in self.needs)

    def on(self, case: Case, sides: bool = False) -> Evaluation:
        """The claim on one case; not applicable outside of an assumption.

        Parameters
        ----------
        case : the instance and the run
        sides : outside, compute both sides of a claim on the ratio all the same where its assumptions allow it
        """
        outside: Evaluation | None = None
        for needed in self.needs:
            why = None if needed.fails is None else needed.fails(case)
            if why is None:
                continue
            outside = outside or Evaluation(Verdict.NOT_APPLICABLE, reason=why, outside=needed.text)
            sides = sides and needed.shown
            if not sides:  # what comes after may not be known of such a run
                break
        if outside is None:
            return self.evaluate(case)
        if not sides or self.ratio_bound is None:
            return outside
        found = self.evaluate(case)
        return replace(outside, left=found.left, right=found.right, size=found.size)


def claims(paper: str, problem: str, method: str | None = None) -> Callable[..., Guarantee]:
    """How the claims of one paper about one problem are declared, in one table.

    ``claim(id, source, statement, assumptions, evaluate, families=(...), **more)``: `more` are fields of a
    :class:`Guarantee`, the method where it is not `method`. A claim whose source is "ours" is a repaired one, any other
    a printed one where `more` has no other ``kind``.
    """

    def claim(
        id: str,
        source: str,
        statement: str,
        assumptions: str | tuple[Assumption, ...],
        evaluate: Callable[[Case], Evaluation],
        *,
        families: tuple[str, ...] | None = None,
        **more: Any,
    ) -> Guarantee:
        known = {"method": method, "kind": "repaired" if source == "ours" else "printed", **more}
        hint = {} if families is None else {"families": families}
        return Guarantee(f"{paper}-{id}", problem, source, statement, assumptions, evaluate, hint=hint, **known)

    return claim
