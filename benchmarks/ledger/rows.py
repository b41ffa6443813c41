"""The ledger: one row per guarantee with its computed verdict, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from schedgap.benchmarks.judging.judge import finite
from schedgap.benchmarks.judging.ledger_verdicts import ledger_verdict
from schedgap.benchmarks.records import plain
from schedgap.benchmarks.text import fixed, nearest, table
from schedgap.formulations.common.instance import Json
from schedgap.heuristics.common.guarantee import Evaluation, Guarantee, Verdict

if TYPE_CHECKING:
    import pandas as pd

REASONS = 4
"""Reasons for not applying that are shown for a row; the JSON has all."""
COUNTED = ("held", "refuted", "not_applicable", "reasons", "tightest", "certified", "lost", "first_lost")
"""Fields that are copied from the counts of trials and written unchanged."""


@dataclass(frozen=True)
class LedgerRow:
    """One guarantee and what came out."""

    guarantee: Guarantee  # the claim
    verdict: Verdict  # HELD, REFUTED, MEASURED or NOT_APPLICABLE
    # held, refuted, not_applicable: on how many trials
    held: int = 0
    refuted: int = 0
    not_applicable: int = 0
    tightness: float | None = None  # the largest left / right over the trials where it applies; above 1 refutes
    worst_ratio: float | None = None  # the largest ratio of the heuristic to the proven optimum seen on the way
    # the smallest and the largest value of its bound on the ratio, where it is such a bound
    bounds: tuple[float, float] | None = None
    counterexample: Path | None = None  # the file of the smallest one
    reason: str = ""  # words on the worst trial, on what was measured, or why it never applied
    values: Mapping[str, float] = field(default_factory=dict)  # what was measured
    reasons: Mapping[str, int] = field(default_factory=dict)  # why it did not apply, and how often
    # assumptions that did not hold, and how often; part of `not_applicable`
    outside: Mapping[str, int] = field(default_factory=dict)
    # where it held, the smallest factor on the right side that these trials do not refute: the constant times anything
    # smaller is refuted by one of them, so 1 is as tight as can be
    power: float | None = None
    tightest: str = ""  # the trial that `tightness` is from
    # of the trials where it held, how many have a certified optimum; None where that was not asked for
    certified: int | None = None
    lost: int = 0  # trials that do not count, since a user's own heuristic raised or the checker refused its solution
    first_lost: str = ""  # the first of them

    @property
    def shown(self) -> str:
        """The verdict, except that trials which do not refute what the ledger refutes do not make it hold."""
        held = self.verdict is Verdict.HELD
        return "not refuted here" if held and self.elsewhere else str(self.verdict)

    @property
    def nearest(self) -> str:
        """left/right on the trial where it is nearest to failing."""
        return nearest(self.tightness, self.refuted > 0)

    @property
    def elsewhere(self) -> str:
        """What the ledger that ships says, where it refutes a claim that these trials do not; else empty."""
        ledger = ledger_verdict(self.guarantee.id)
        return "" if self.refuted or ledger.verdict != "refuted" else f"the ledger that ships: {ledger.words}"

    @property
    def words(self) -> str:
        """The verdict as the conventions write it."""
        if self.verdict is Verdict.HELD:
            each, things = self.guarantee.per_sample
            if each == 1:
                sure = "" if self.certified is None else f", {self.certified} optima certified"
                return f"{self.shown} ({self.held} {things}{sure})"
            return f"{self.shown} ({self.held * each:,} {things} in {self.held} samples)"
        if self.verdict is Verdict.REFUTED:
            where = f": {self.counterexample}" if self.counterexample is not None else ""
            return f"refuted ({self.refuted} of {self.held + self.refuted}{where})"
        return str(self.verdict)

    @property
    def needs(self) -> list[str]:
        """Its assumptions, a line each, with how many trials were outside of those that are tested."""
        lines = []
        for needed in self.guarantee.needs:
            count = self.outside.get(needed.text, 0)
            tested = f" (tested: {count} trials outside)" if count else " (tested)"
            lines.append(needed.text + (tested if needed.fails is not None else ""))
        return lines

    @property
    def most_reasons(self) -> list[tuple[str, int]]:
        """Why it did not apply, the most frequent first, and the rest as one."""
        ranked = sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
        rest = sum(count for _, count in ranked[REASONS:])
        return ranked[:REASONS] + ([("other reasons", rest)] if rest else [])

    @property
    def lost_words(self) -> str:
        """How many trials do not count, and why the first of them does not."""
        return f"lost ({self.lost}): no feasible solution, the first in {self.first_lost}"

    @property
    def power_words(self) -> str:
        """What the trials say of the constant."""
        if self.power is None:
            return ""
        return f"power: {self.power:.4g} times the right side is not refuted, anything less is ({self.tightest})"

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form."""
        g = self.guarantee
        return {
            **{name: getattr(g, name) for name in ("id", "problem", "method", "kind", "source", "statement")},
            "assumptions": g.needs_text,
            "verdict": str(self.verdict),
            "ledger": ledger_verdict(g.id).words,
            **{name: getattr(self, name) for name in COUNTED},
            "per_sample": list(g.per_sample),
            "power": self.power,
            "tightness": finite(self.tightness),
            "worst_ratio": finite(self.worst_ratio),
            "bounds": None if self.bounds is None else [finite(b) for b in self.bounds],
            "counterexample": None if self.counterexample is None else str(self.counterexample),
            "reason": self.reason,
            "values": plain(self.values),
            "needs": [
                {"text": n.text, "tested": n.fails is not None, "outside": self.outside.get(n.text, 0)} for n in g.needs
            ],
        }


@dataclass
class Tally:
    """What the trials of one guarantee come to."""

    held: int = 0
    refuted: int = 0
    not_applicable: int = 0
    tightness: float | None = None
    worst_ratio: float | None = None
    bounds: list[float] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    power: float = 0.0
    reason: str = ""
    tightest: str = ""
    certified: int | None = None
    lost: int = 0
    first_lost: str = ""

    def lose(self, why: str, where: str) -> None:
        """Count a trial, called `where`, on which there is no solution to judge."""
        self.first_lost = self.first_lost or f"{where}: {why}"
        self.lost += 1

    def add(self, evaluation: Evaluation, where: str, certified: bool = False) -> None:
        """Count one evaluation, made on the trial called `where`, whose optimum may be certified."""
        if evaluation.verdict is Verdict.NOT_APPLICABLE:
            self.not_applicable += 1
            self.reasons[evaluation.reason] = self.reasons.get(evaluation.reason, 0) + 1
            if evaluation.outside:
                self.outside[evaluation.outside] = self.outside.get(evaluation.outside, 0) + 1
            return
        if evaluation.verdict is Verdict.REFUTED:
            self.refuted += 1
        else:
            self.held += 1
            if self.certified is not None:
                self.certified += certified
        self.power = max(self.power, evaluation.smallest_factor)
        tightness = evaluation.tightness
        if tightness is not None and (self.tightness is None or tightness > self.tightness):
            self.tightness, self.reason, self.tightest = tightness, evaluation.reason, where

    def row(self, guarantee: Guarantee, file: Path | None = None, reason: str | None = None) -> LedgerRow:
        """The ledger's row."""
        if self.refuted:
            verdict = Verdict.REFUTED
        else:
            verdict = Verdict.HELD if self.held else Verdict.NOT_APPLICABLE
        refuted_elsewhere = ledger_verdict(guarantee.id).verdict == "refuted"
        why = max(self.reasons, key=lambda r: self.reasons[r]) if self.reasons and not self.held + self.refuted else ""
        return LedgerRow(
            guarantee,
            verdict,
            tightness=self.tightness,
            worst_ratio=self.worst_ratio,
            bounds=(min(self.bounds), max(self.bounds)) if self.bounds else None,
            counterexample=file,
            reason=reason if reason is not None else why or self.reason,
            outside=self.outside,
            power=self.power if verdict is Verdict.HELD and self.power > 0 and not refuted_elsewhere else None,
            **{name: getattr(self, name) for name in COUNTED},
        )


@dataclass(frozen=True)
class Ledger:
    """Every guarantee that was asked for."""

    rows: tuple[LedgerRow, ...]
    seed: int

    def __repr__(self) -> str:
        """One line; :meth:`to_text` is the table."""
        told = Counter(row.shown for row in self.rows)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in told.items())
        return f"<ledger of {len(self.rows)} claim{'s' * (len(self.rows) != 1)}: {counts}>"

    def to_frame(self) -> pd.DataFrame:
        """One row for each claim, what :meth:`to_dict` has of it."""
        import pandas as pd

        return pd.DataFrame([row.to_dict() for row in self.rows])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        import pandas as pd

        cells = [[row.guarantee.id, row.guarantee.statement, row.words, row.nearest] for row in self.rows]
        return pd.DataFrame(cells, columns=["claim", "statement", "verdict", "left/right"]).to_html(index=False)

    def to_dict(self) -> dict[str, Json]:
        """JSON-compatible form, as ``verify --json`` prints it."""
        return {"seed": self.seed, "guarantees": [row.to_dict() for row in self.rows]}

    def to_text(self, power: bool = False) -> str:
        """The ledger as a table, then for each row what it says, what it needs and what was seen.

        Parameters
        ----------
        power : whether to tell the smallest factor on the right side that the trials do not refute
        """
        head = ["guarantee", "kind", "verdict", "left/right", "bound on ratio", "worst ratio seen"]
        cells, notes = [], []
        for row in self.rows:
            bounds = "-" if row.bounds is None else " to ".join(dict.fromkeys(fixed(b, 2) for b in row.bounds))
            short = row.words.split(":")[0] + (")" if row.counterexample is not None else "")
            figures = [row.nearest, bounds, fixed(row.worst_ratio), *([fixed(row.power)] if power else [])]
            cells.append([row.guarantee.id, row.guarantee.kind, short, *figures])
            notes.append(f"{row.guarantee.id}: {row.guarantee.statement}")
            notes += [f"    needs: {line}" for line in row.needs]
            if row.counterexample is not None:
                notes.append(f"    counterexample {row.counterexample}: {row.reason}")
            elif row.reason and row.verdict is not Verdict.HELD:
                notes.append(f"    {row.reason}")
            if row.elsewhere:
                notes.append(f"    {row.elsewhere}")
            if row.not_applicable:
                notes += [f"    not applicable ({count}): {why}" for why, count in row.most_reasons]
            if row.lost:
                notes.append(f"    {row.lost_words}")
            if power and row.power is not None:
                notes.append(f"    {row.power_words}")
        return table([*head, "power"] if power else head, cells, "lllrrrr"[: 6 + power]) + "\n\n" + "\n".join(notes)
