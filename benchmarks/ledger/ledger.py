"""The ledger: one row per guarantee with its computed verdict, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedgap.benchmarks.harness.worker import plain
from schedgap.benchmarks.ledger.judge import finite
from schedgap.benchmarks.report.text import fixed, table
from schedgap.heuristics.common.guarantee import Guarantee, Verdict


@dataclass(frozen=True)
class LedgerRow:
    """One guarantee and what came out.

    Attributes
    ----------
    guarantee : the claim
    verdict : HELD, REFUTED, MEASURED or NOT_APPLICABLE
    held, refuted, not_applicable : on how many trials
    tightness : the largest left / right over the trials where it applies; above 1 refutes
    worst_ratio : the largest ratio of the heuristic to the proven optimum seen on the way
    bounds : the smallest and the largest value of its bound on the ratio, where it is such a bound
    counterexample : the file of the smallest one
    reason : of the worst trial, of what was measured, or why it never applied
    values : what was measured
    """

    guarantee: Guarantee
    verdict: Verdict
    held: int = 0
    refuted: int = 0
    not_applicable: int = 0
    tightness: float | None = None
    worst_ratio: float | None = None
    bounds: tuple[float, float] | None = None
    counterexample: Path | None = None
    reason: str = ""
    values: Mapping[str, float] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The verdict as the conventions write it."""
        if self.verdict is Verdict.HELD:
            each, things = self.guarantee.per_sample
            if each == 1:
                return f"held ({self.held} {things})"
            return f"held ({self.held * each:,} {things} in {self.held} samples)"
        if self.verdict is Verdict.REFUTED:
            where = f": {self.counterexample}" if self.counterexample is not None else ""
            return f"refuted ({self.refuted} of {self.held + self.refuted}{where})"
        return str(self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-compatible form."""
        g = self.guarantee
        return {
            "id": g.id,
            "problem": g.problem,
            "method": g.method,
            "kind": g.kind,
            "source": g.source,
            "statement": g.statement,
            "assumptions": g.assumptions,
            "verdict": str(self.verdict),
            "held": self.held,
            "per_sample": list(self.guarantee.per_sample),
            "refuted": self.refuted,
            "not_applicable": self.not_applicable,
            "tightness": finite(self.tightness),
            "worst_ratio": finite(self.worst_ratio),
            "bounds": None if self.bounds is None else [finite(b) for b in self.bounds],
            "counterexample": None if self.counterexample is None else str(self.counterexample),
            "reason": self.reason,
            "values": plain(self.values),
        }


@dataclass(frozen=True)
class Ledger:
    """Every guarantee that was asked for."""

    rows: tuple[LedgerRow, ...]
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-compatible form, as ``verify --json`` prints it."""
        return {"seed": self.seed, "guarantees": [row.to_dict() for row in self.rows]}

    def to_text(self) -> str:
        """The ledger as a table, then one line for each reason and file."""
        head = ["guarantee", "kind", "verdict", "left/right", "bound on ratio", "worst ratio seen"]
        cells, notes = [], []
        for row in self.rows:
            bounds = "-" if row.bounds is None else " to ".join(dict.fromkeys(fixed(b, 2) for b in row.bounds))
            short = row.words.split(":")[0] + (")" if row.counterexample is not None else "")
            cells.append(
                [row.guarantee.id, row.guarantee.kind, short, fixed(row.tightness), bounds, fixed(row.worst_ratio)]
            )
            notes.append(f"{row.guarantee.id}: {row.guarantee.statement}")
            if row.counterexample is not None:
                notes.append(f"    counterexample {row.counterexample}: {row.reason}")
            elif row.reason and row.verdict is not Verdict.HELD:
                notes.append(f"    {row.reason}")
        return table(head, cells, "lllrrr") + "\n\n" + "\n".join(notes)
