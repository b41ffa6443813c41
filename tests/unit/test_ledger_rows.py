"""A row of the ledger from evaluations given by hand, its text, and what counts as the smallest counterexample."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.toy import ToyInstance, toy

from schedgap.benchmarks.ledger import verify
from schedgap.benchmarks.ledger.counterexamples import instance_size, repeat_command
from schedgap.benchmarks.ledger.rows import Ledger, LedgerRow, Tally
from schedgap.formulations.common.errors import InputError
from schedgap.heuristics.common.guarantee import Assumption, Evaluation, Guarantee, Verdict, at_most, not_applicable

CLAIM = Guarantee(
    "x-1",
    "toy",
    "a paper, Theorem 1",
    "left <= right",
    (Assumption("tested", lambda _: None), Assumption("in words")),
    lambda _: not_applicable("never"),
    method="list",
)


def test_evaluations_are_counted() -> None:
    tally = Tally(certified=0)
    tally.add(at_most(1.0, 2.0, "half"), "first", certified=True)
    tally.add(at_most(0.0, 0.0, "nothing"), "second")
    tally.add(at_most(3.0, 4.0, "three quarters"), "third", certified=True)
    tally.add(at_most(1.0, 4.0, "a quarter"), "fourth")
    for reason, outside in (("late", "a batch"), ("late", "a batch"), ("odd", "")):
        tally.add(Evaluation(Verdict.NOT_APPLICABLE, reason=reason, outside=outside), "fifth", certified=True)
    row = tally.row(CLAIM)
    assert (row.verdict, row.held, row.refuted, row.not_applicable) == (Verdict.HELD, 4, 0, 3)
    assert (row.tightness, row.tightest, row.reason) == (0.75, "third", "three quarters")
    assert row.power == pytest.approx(0.75) and row.certified == 2
    assert (row.reasons, row.outside) == ({"late": 2, "odd": 1}, {"a batch": 2})
    assert row.bounds is None and row.counterexample is None
    tally.bounds += [2.0, 1.5, 3.0]
    tally.add(at_most(5.0, 4.0, "more"), "sixth")
    row = tally.row(CLAIM, Path("file"), "why")
    assert (row.verdict, row.held, row.refuted, row.tightness) == (Verdict.REFUTED, 4, 1, 1.25)
    assert (row.bounds, row.power, row.reason, row.counterexample) == ((1.5, 3.0), None, "why", Path("file"))


def test_a_claim_that_never_applies_tells_the_most_frequent_reason() -> None:
    tally = Tally()
    for reason in ("rare", "often", "often"):
        tally.add(not_applicable(reason), "")
    row = tally.row(CLAIM)
    assert (row.verdict, row.reason, row.power, row.certified) == (Verdict.NOT_APPLICABLE, "often", None, None)
    assert Tally().row(CLAIM).verdict is Verdict.NOT_APPLICABLE
    zeros = Tally()
    zeros.add(at_most(0.0, 0.0), "")
    assert zeros.row(CLAIM).verdict is Verdict.HELD and zeros.row(CLAIM).power is None


ROWS = (
    LedgerRow(
        CLAIM,
        Verdict.REFUTED,
        held=3,
        refuted=1,
        tightness=1.25,
        counterexample=Path("c/x-1.json"),
        reason="5 > 4",
        bounds=(1.5, 2.0),
        worst_ratio=1.2,
    ),
    LedgerRow(CLAIM, Verdict.HELD, held=4, reason="told", power=0.5, tightest="family a, seed 3", bounds=(1.5, 1.5)),
    LedgerRow(
        CLAIM,
        Verdict.NOT_APPLICABLE,
        not_applicable=21,
        reason="r6",
        reasons={f"r{k}": k for k in range(1, 7)},
        outside={"tested": 2},
    ),
    LedgerRow(CLAIM, Verdict.MEASURED),
)
TEXT = """\
guarantee  kind     verdict             left/right  bound on ratio  worst ratio seen  power
---------  -------  ------------------  ----------  --------------  ----------------  -----
x-1        printed  refuted (1 of 4)         1.250    1.50 to 2.00             1.200      -
x-1        printed  held (4 instances)           -            1.50                 -  0.500
x-1        printed  not applicable               -               -                 -      -
x-1        printed  measured                     -               -                 -      -

x-1: left <= right
    needs: tested (tested)
    needs: in words
    counterexample c/x-1.json: 5 > 4
x-1: left <= right
    needs: tested (tested)
    needs: in words
    power: 0.5 times the right side is not refuted, anything less is (family a, seed 3)
x-1: left <= right
    needs: tested (tested: 2 trials outside)
    needs: in words
    r6
    not applicable (6): r6
    not applicable (5): r5
    not applicable (4): r4
    not applicable (3): r3
    not applicable (3): other reasons
x-1: left <= right
    needs: tested (tested)
    needs: in words"""


def test_the_ledger_as_text() -> None:
    ledger = Ledger(ROWS, 7)
    lines = TEXT.splitlines()
    assert ledger.to_text(power=True).splitlines() == lines
    short = [line for line in lines if "power: " not in line]
    for k, cut in enumerate((7, 7, 7, 7, 7, 7)):
        short[k] = short[k][:-cut]
    assert ledger.to_text().splitlines() == short
    strict = Ledger((replace(ROWS[0], tightness=1.0),), 7)
    assert "1, not < 1" in strict.to_text() and "1, not < 1" not in ledger.to_text()
    told = ledger.to_dict()
    rows: Any = told["guarantees"]
    assert told["seed"] == 7 and [row["verdict"] for row in rows] == ["refuted", "held", "not applicable", "measured"]
    assert rows[0]["bounds"] == [1.5, 2.0] and rows[0]["counterexample"] == "c/x-1.json"
    assert rows[2]["needs"] == [
        {"text": "tested", "tested": True, "outside": 2},
        {"text": "in words", "tested": False, "outside": 0},
    ]


def test_verdicts_in_words() -> None:
    held = replace(ROWS[1], held=1234)
    assert replace(held, certified=3).words == "held (1234 instances, 3 optima certified)"
    many = replace(held, guarantee=replace(CLAIM, per_sample=(200, "pairs")))
    assert many.words == "held (246,800 pairs in 1234 samples)"
    assert ROWS[0].words == "refuted (1 of 4: c/x-1.json)"
    assert replace(ROWS[0], counterexample=None).words == "refuted (1 of 4)"
    assert [row.words for row in ROWS[2:]] == ["not applicable", "measured"]


def test_the_size_of_an_instance_is_the_entries_of_its_lists() -> None:
    data = {"problem": "toy", "machines": 2, "jobs": [3, 4, 5]}
    size = instance_size(ToyInstance.parse(data))
    assert size[0] == 3 and instance_size(ToyInstance.parse({**data, "name": "long " * 9})) == size
    assert instance_size(ToyInstance.parse({**data, "jobs": [30, 4, 5]})) == (3, size[1] + 1)


def test_a_refutation_is_shown_again_by_its_method() -> None:
    instance = ToyInstance.parse({"problem": "toy", "machines": 2, "jobs": [3]})
    found = repeat_command("f.json", instance, CLAIM, {"a": 1, "b": "x"}, 7)
    assert found == "schedgap compare f.json --methods ...,list --seed 7 --set a=1 --set b=x"
    assert repeat_command("f.json", instance, replace(CLAIM, method=None), {}, 7) is None


def test_what_hunts_found_for_a_claim_is_tried_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "HUNTS", tmp_path)
    data = {"problem": "toy", "machines": 2, "jobs": [3]}
    told = {"target": "x-1", "problem": "toy"}
    files: dict[str, Any] = {
        "a": {**data, "reference_hunt": {**told, "options": {"k": 1}, "seed": 5}},
        "b": {**data, "reference_hunt": {**told, "target": "x-2"}},
        "c": {**data, "reference_hunt": {**told, "problem": "other"}},
        "d": {**data, "reference_hunt": "x-1"},
        "e": data,
        "f": [data],
        "g": {**data, "reference_hunt": told},
    }
    for name, content in files.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "worst.json").write_text(json.dumps(content))
    larger = {**files["a"], "jobs": [3, 4]}
    for name, content in {"a": larger, "g": files["g"]}.items():  # as found; nothing of g could be shrunk
        (tmp_path / name / "found.json").write_text(json.dumps(content))
    found = verify._hunted(toy(), CLAIM)
    assert [(options, Path(name).parts[-2:], seed) for _, options, name, seed in found] == [
        ({"k": 1}, ("a", "found.json"), 5),
        ({"k": 1}, ("a", "worst.json"), 5),
        ({}, ("g", "found.json"), 0),
    ]
    assert [instance.to_dict()["jobs"] for instance, *_ in found] == [[3, 4], [3], [3]]


def test_a_hint_names_families_that_there_are() -> None:
    problem = toy()
    every = verify.families_of(problem, CLAIM)
    assert every and verify.families_of(problem, replace(CLAIM, hint={"families": every[:1]})) == every[:1]
    with pytest.raises(InputError, match="x-1: toy has no family 'none' of trials"):
        verify.families_of(problem, replace(CLAIM, hint={"families": ["none"]}))


def test_a_row_travels_without_its_guarantee(tmp_path: Path) -> None:
    outcome = verify._run_task(verify._Task(("003-theorem-1",), 2, 0, tmp_path, False))
    assert set(outcome.rows) == {"003-theorem-1"} and not outcome.disagreement
    row = LedgerRow(CLAIM, **outcome.rows["003-theorem-1"])
    assert (row.guarantee, row.verdict, row.held) == (CLAIM, Verdict.HELD, 2)
