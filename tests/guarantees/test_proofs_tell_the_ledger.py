"""What docs/proofs-*.md and the prose of docs/guarantees.md say of a row of the ledger is that row's verdict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schedgap.benchmarks.judging.ledger_verdicts import all_verdicts

DOCS = Path(__file__).parents[2] / "docs"
PROOFS = sorted(DOCS.glob("proofs-*.md"))
ROW = re.compile(r"`(\d{3}-[a-z0-9-]+)`")
SAID = re.compile(
    r"\b(holds?|fails?|refuted)\b"  # the verdict
    r"([^`.|;\n]|\n(?!\n))*?"  # the same clause goes on
    r"\((?P<rows>`\d{3}-[a-z0-9-]+`(, `\d{3}-[a-z0-9-]+`)*)\)"
)
CLAIM = r"(Lemma|Theorem|Definition|Corollary) \d+"
BARE = re.compile(CLAIM + r"[^`.|;\n]*?\b(holds?|fails?|is (true|false))\b(?P<rest>[^.;\n]*)")
"""A sentence that gives a printed claim a verdict, with what comes after the verdict."""


def contradictions(text: str) -> list[str]:
    """What a page says of rows that the ledger does not, and verdicts on printed claims that name no row."""
    verdicts = {name: shipped.verdict for name, shipped in all_verdicts().items()}
    wrong = [f"unknown row {name}" for name in ROW.findall(text) if name not in verdicts and "-" in name[4:]]
    for found in SAID.finditer(text):
        said = "held" if found[1].startswith("hold") else "refuted"
        wrong += [f"{name}: {found[0]}" for name in ROW.findall(found["rows"]) if verdicts.get(name) != said]
    _, _, tail = text.partition("## What fails\n")
    table = [line for line in tail.partition("\n## ")[0].splitlines() if line.startswith("|")]
    for line in table[2:]:
        names = ROW.findall(line)
        wrong += [] if names else [f"no row: {line}"]
        wrong += [f"{name}: {line}" for name in names if verdicts.get(name) != "refuted"]
    wrong += [f"no row: {found[0]}" for found in BARE.finditer(text) if not ROW.search(found["rest"])]
    return wrong


@pytest.mark.parametrize("path", PROOFS, ids=lambda path: path.stem)
def test_pages_of_proofs_say_what_the_ledger_says(path: Path) -> None:
    assert contradictions(path.read_text(encoding="utf-8")) == []


def test_the_prose_of_the_ledgers_page_says_what_the_ledger_says() -> None:
    text = (DOCS / "guarantees.md").read_text(encoding="utf-8")
    assert [words for words in contradictions(text) if not words.startswith("no row")] == []


@pytest.mark.parametrize(
    "page",
    [
        "## What fails\n\n| claim | by |\n|---|---|\n| Theorem 10 | `004-theorem-10`: 0 of 1 |\n\n## Next\n",
        "Theorem 10, 1/(3 Gamma + 1) for one slot, fails with it.",
        "So Lemma 1 fails (`002-lemma-1`).",
        "Lemma 2, over all schedules, holds (`002-lemma-2`).",
        "Lemma 2 holds in every case.",
        "## What fails\n\n| claim | by |\n|---|---|\n| Lemma 1 | it needs a feasible dual |\n\n## Next\n",
    ],
)
def test_a_page_that_contradicts_the_ledger_is_noticed(page: str) -> None:
    assert contradictions(page)


def test_both_verdicts_are_read_somewhere() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in PROOFS)
    said = [found[1][:4] for found in SAID.finditer(text)]
    assert said.count("hold") >= 5 and said.count("fail") >= 4
