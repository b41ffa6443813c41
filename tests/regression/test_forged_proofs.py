"""Forged certificates and files of VIPR that were accepted, and an honest bound that was false.

``tests/data/proofs/expected.json`` says of every file what was printed and what is right.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import Command

from schedgap.catalogue.registry import load_instance
from schedgap.formulations.gang_placement.check import check as check_gangs
from schedgap.formulations.gang_placement.instance import GangPlacementInstance, GangPlacementSolution
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.linear import GRID, Rejected
from schedgap.solvers.exact.gang_placement import merged
from schedgap.solvers.exact.gang_placement.bound import upper_bound

FOLDER = Path(__file__).parents[1] / "data" / "proofs"
CERTIFICATES = {
    "forge1": "proves 2 only",
    "forge2": "values must be of sizes from 1 to 1000",
    "many": "proves 1 only",
    "dos-hadar": "blocks must follow each other",
}
VIPR = {
    "vipr-gang-false": ("vipr-gang", "vipr-gang-slow", "vipr-gang-best", "option gang must be a whole number from 1"),
    "vipr-cutoff-false": ("vipr-cutoff", "vipr-cutoff-slow", "vipr-cutoff-best", "the claim goes beyond the schedules"),
    "vipr-carriage-return-false": ("vipr-gang", "vipr-gang-slow", "vipr-gang-best", "line 1: has the byte 0x0d"),
    "two-halves-false": ("two-halves", "one-of-two", "forge1-best", "line 1: has the byte 0x0d"),
}


def at(name: str) -> str:
    return str(FOLDER / name)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command in this process."""
    return Command(capsys, monkeypatch)


def test_every_file_with_an_expectation_is_asked_about() -> None:
    expected = json.loads((FOLDER / "expected.json").read_text())
    asked = [f"{name}.json" for name in CERTIFICATES] + [f"{name}.vipr" for name in VIPR]
    asked += ["parts-of-many-sizes.json", "two-halves.json", "q0.json"]  # below
    asked += ["slow-fractions.cert", "duplicate-key.cert"]  # tests/unit/test_hostile_certificates.py
    assert expected.keys() <= set(asked)


@pytest.mark.parametrize("name", CERTIFICATES)
def test_the_checker_alone_refuses_a_forged_certificate(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    forged = next(FOLDER.glob(f"{name}*.cert.json"))
    assert checker.main([at(f"{name}.json"), str(forged)]) == 1
    out = capsys.readouterr().out
    assert out.startswith("rejected: ") and CERTIFICATES[name] in out and out.count("\n") == 1


@pytest.mark.parametrize("name", ["forge1", "forge2"])
def test_what_the_forged_certificates_deny_is_feasible(name: str) -> None:
    """And is worth more than they claim."""
    _, instance = load_instance(FOLDER / f"{name}.json")
    assert isinstance(instance, GangPlacementInstance)
    best = GangPlacementSolution.parse(json.loads((FOLDER / f"{name}-best.json").read_text()))
    claim = json.loads((FOLDER / f"{name}-false.cert.json").read_text())["claim"]
    report = check_gangs(instance, best)
    assert not report.violations and report.objective is not None and report.objective > int(claim)


@pytest.mark.parametrize("name", VIPR)
def test_a_forged_file_of_vipr_is_refused(name: str, command: Command) -> None:
    instance, poor, best, why = VIPR[name]
    ran = command("check", at(f"{instance}.json"), at(f"{poor}.json"), "--vipr", at(f"{name}.vipr"))
    assert ran.status == 1 and "vipr: rejected: " in ran.out and why in ran.out, ran.out
    assert command("check", at(f"{instance}.json"), at(f"{best}.json")).status == 0


NOTES: list[dict[str, Any]] = [
    {"form": "area", "options": {"gang": 1}},
    {"form": "periods", "options": {"gang": 1}},
    {"form": "periods", "options": {"horizon": 3}},
    {"form": "periods", "options": {"horizon": 3, "gang": 0}},
    {"form": "periods", "options": {"horizon": 3, "gang": "x"}},
    {"form": "periods", "options": {"horizon": 3, "margin": "a", "slots": False}},
    {"form": "periods", "options": {"horizon": 3, "margin": -1, "slots": False}},
    {"form": "periods", "options": {"horizon": 3, "job": -1}},
    {"form": "periods", "options": {"horizon": True, "job": 0}},
    {"form": "periods", "options": []},
    {"form": ["periods"], "options": {}},
    {"form": "rows", "options": {"horizon": 3}, "claim": "1e999999999"},
    {},
]


@pytest.mark.parametrize("note", NOTES, ids=str)
def test_a_bad_note_is_refused_with_one_line(note: dict[str, Any], command: Command, tmp_path: Path) -> None:
    """They were internal errors."""
    path = tmp_path / "x.vipr"
    path.write_text("% schedgap " + json.dumps({"claim": "4", **note}) + "\nVER 1.0\n")
    ran = command("check", at("vipr-gang.json"), at("vipr-gang-slow.json"), "--vipr", str(path))
    assert ran.status == 1 and "vipr: rejected: " in ran.out and not ran.err, (ran.out, ran.err)


def test_a_quota_of_nothing_is_no_missing_quota() -> None:
    """Nor is a price of 0 none; what has neither key keeps its digest."""
    none, absent = (checker.load(at(f"q{k}.json")) for k in (0, 1))
    assert checker.digest(none) != checker.digest(absent)
    gang = {"problem": "gang-placement", "running": [{"id": "a", "price": 0, "move_price": 0}]}
    other = {"problem": "gang-placement", "running": [{"id": "a", "price": 0}]}
    bare = {"problem": "gang-placement", "running": [{"id": "a"}]}
    queue = {"problem": "gang-placement", "queues": [{"id": "q", "quota": {"gpu": 1}, "borrow": {"gpu": 0}}]}
    lender = {"problem": "gang-placement", "queues": [{"id": "q", "quota": {"gpu": 1}}]}
    assert len({checker.digest(one) for one in (gang, other, bare, queue, lender)}) == 5
    null = {"problem": "gang-placement", "running": [{"id": "a", "price": None}]}
    assert checker.digest(null) == checker.digest(bare)
    forged = {"certificate": 1, "problem": "gang-placement", "instance": checker.digest(absent), "form": "rows"}
    with pytest.raises(Rejected, match="of another instance"):
        checker.check(none, {**forged, "claim": "1", "tree": {"bound": {}}})


@pytest.fixture(scope="module")
def many_sizes() -> GangPlacementInstance:
    instance = load_instance(FOLDER / "parts-of-many-sizes.json")[1]
    assert isinstance(instance, GangPlacementInstance)
    return instance


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_bound_is_right_however_few_patterns_its_values_come_from(
    rounds: int, many_sizes: GangPlacementInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The values are those of duals that have not converged; the bound was 1,000,426 after 200 rounds."""
    monkeypatch.setattr(merged, "MOST_PATTERNS", rounds)
    best = GangPlacementSolution.parse(json.loads((FOLDER / "parts-of-many-sizes-best.json").read_text()))
    report = check_gangs(many_sizes, best)
    fresh = many_sizes.model_copy()
    assert not report.violations and report.objective is not None
    assert merged._most(merged._values(fresh)) <= 1000 * GRID
    assert upper_bound(fresh) >= report.objective >= 1_000_589
