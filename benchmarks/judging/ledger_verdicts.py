"""The ledger's verdicts as they ship: what the last whole ``verify`` found, so that no table contradicts it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import read_json

LEDGER_FILE = Path(__file__).with_name("ledger_verdicts.json")


COUNTEREXAMPLES = "counterexamples"
"""Where a report keeps the counterexamples that it links to."""


@dataclass(frozen=True)
class LedgerVerdict:
    """One row of the ledger."""

    verdict: str  # "held", "refuted", "measured" or "not applicable"
    words: str  # the same with its counts
    # the instance that refutes it, as its file holds it; None where there is none
    counterexample: Mapping[str, Any] | None = None


NO_VERDICT = LedgerVerdict("", "not in the ledger")


@cache
def all_verdicts() -> Mapping[str, LedgerVerdict]:
    """Every row of the ledger that ships."""
    rows = read_json(LEDGER_FILE.name, LEDGER_FILE.read_text(encoding="utf-8"))["verdicts"]
    return {name: LedgerVerdict(**row) for name, row in rows.items()}


def ledger_verdict(guarantee: str) -> LedgerVerdict:
    """What the ledger says of a guarantee; :data:`NO_VERDICT` for one it does not have."""
    return all_verdicts().get(guarantee, NO_VERDICT)


def run_verdict(held: int, refuted: int) -> str:
    """What runs say of a claim, with their number."""
    if not held + refuted:
        return "not applicable"
    return f"refuted ({refuted} of {held + refuted})" if refuted else f"not refuted here ({held})"


def verdict_kind(refuted: bool, ledger: LedgerVerdict) -> str:
    """Refuted where this run or the ledger refutes it, held where the ledger says so, else empty: a colour's name."""
    if refuted or ledger.verdict == "refuted":
        return "refuted"
    return "held" if ledger.verdict == "held" else ""


def write_counterexamples(folder: Path, guarantees: Iterable[str]) -> None:
    """The counterexamples of those guarantees as instance files in ``folder/counterexamples``."""
    for name in dict.fromkeys(guarantees):
        data = ledger_verdict(name).counterexample
        if data is not None:
            (folder / COUNTEREXAMPLES).mkdir(exist_ok=True)
            write_text(folder / COUNTEREXAMPLES / f"{name}.json", json.dumps(data, indent=1) + "\n")
