"""The ledger's verdicts that ship are those of docs/guarantees.md and of its counterexamples; tables show them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from schedgap.benchmarks.judging.ledger_verdicts import all_verdicts, ledger_verdict, write_counterexamples
from schedgap.benchmarks.ledger.verify import verify
from schedgap.catalogue.registry import all_problems, parse_instance
from studies.ledger_verdicts import collect

DOCS = Path(__file__).parents[2] / "docs"
WRITE = "schedgap verify --out FOLDER, then python -m studies.ledger_verdicts FOLDER, writes it anew"


def _page() -> dict[str, str]:
    """The cell of verdicts of every row of the page, without its marks."""
    rows = {}
    for line in (DOCS / "guarantees.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        for name in re.findall(r"`(\d{3}-[a-z0-9-]+)`", cells[1] if len(cells) > 3 else ""):
            rows[name] = cells[3].replace("**", "")
    return rows


def test_every_guarantee_has_its_verdict() -> None:
    ids = {g.id for problem in all_problems().values() for g in problem.guarantees()}
    assert set(all_verdicts()) == ids, WRITE


def test_verdicts_are_those_of_the_page() -> None:
    for name, words in _page().items():
        shipped = ledger_verdict(name)
        assert words.startswith(shipped.verdict), (name, WRITE)
        if shipped.verdict == "refuted" or re.match(r"held \(\d+\)", words):
            assert words.startswith(shipped.words), (name, WRITE)


def test_counterexamples_are_those_of_the_docs_and_instances(tmp_path: Path) -> None:
    refuted = [name for name, shipped in all_verdicts().items() if shipped.counterexample is not None]
    assert {name for name, shipped in all_verdicts().items() if shipped.verdict == "refuted"} == set(refuted)
    write_counterexamples(tmp_path, all_verdicts())
    for name in refuted:
        data = json.loads((tmp_path / "counterexamples" / f"{name}.json").read_text())
        assert data == json.loads((DOCS / "counterexamples" / f"{name}.json").read_text()), (name, WRITE)
        parse_instance(data, name)


def test_verdicts_are_collected_from_a_ledger(tmp_path: Path) -> None:
    ids = ["000-lemma-2", "000-lemma-2-repaired"]
    verify(ids, instances=3, out=tmp_path, workers=1)
    found = collect(tmp_path)["verdicts"]
    assert list(found) == ids
    assert found[ids[0]]["words"].startswith("refuted (") and found[ids[1]] == {"verdict": "held", "words": "held (3)"}
    assert found[ids[0]]["counterexample"]["name"] == "counterexample-000-lemma-2"
