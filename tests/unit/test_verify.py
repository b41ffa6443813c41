"""The ledger: verdicts are computed, counterexamples are files, the same seed gives the same ledger."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.toy import ToyInstance, toy

import schedgap
from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.judging.ledger_verdicts import LedgerVerdict
from schedgap.benchmarks.ledger.counterexamples import instance_size
from schedgap.benchmarks.ledger.page import write_ledger
from schedgap.benchmarks.ledger.rows import Ledger
from schedgap.benchmarks.ledger.verify import Trials, verify
from schedgap.benchmarks.report.compare import compare
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.files import check_folder
from schedgap.heuristics.common.guarantee import Assumption, Case, Evaluation, Guarantee, Measured, Verdict, at_most
from schedgap.solvers.result import SolveOptions


def _verify(out: Path, *ids: str, **more: object) -> Ledger:
    return verify(ids, instances=20, out=out, problems=[toy()], **more)  # type: ignore[arg-type]


def test_verdicts_are_computed(tmp_path: Path) -> None:
    lines = io.StringIO()
    ledger = _verify(tmp_path / "c", progress=lines)
    rows = {row.guarantee.id: row for row in ledger.rows}
    assert {name: str(row.verdict) for name, row in rows.items()} == {
        "toy-false": "refuted",
        "toy-graham": "held",
        "toy-never": "not applicable",
    }
    graham = rows["toy-graham"]
    assert (graham.held, graham.refuted, graham.words) == (20, 0, "held (20 instances)")
    assert graham.tightness is not None and 0.6 < graham.tightness <= 1
    assert graham.worst_ratio is not None and 1 < graham.worst_ratio <= 1.5
    assert graham.bounds == (1.5, 1.5)
    assert rows["toy-never"].reason == "never applies"
    assert rows["toy-never"].not_applicable == 20
    text = ledger.to_text()
    assert "held (20 instances)" in text and f"counterexample {tmp_path / 'c' / 'toy-false.json'}" in text
    assert "60/60" in lines.getvalue()


def test_the_ledger_does_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    ids = ["003-theorem-1", "000-lemma-2", "000-lemma-2-repaired", "002-theorem-3"]
    found = [verify(ids, instances=4, out=tmp_path / str(n), workers=n).to_dict() for n in (1, 2)]
    for ledger in found:
        for row in ledger["guarantees"]:
            row["counterexample"] = row["counterexample"] and Path(row["counterexample"]).name
    assert found[0] == found[1]
    assert [row["id"] for row in found[0]["guarantees"]] == ids
    names = [sorted(path.name for path in (tmp_path / str(n)).iterdir()) for n in (1, 2)]
    assert names[0] == names[1] and "000-lemma-2.json" in names[0]


def test_a_ledger_without_counterexamples_makes_its_folder_too(tmp_path: Path) -> None:
    schedgap.verify(["001-theorem-1"], instances=1, out=tmp_path / "new", workers=1)
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"ledger.html", "ledger.json"}


def test_the_ledger_is_a_page_too(tmp_path: Path) -> None:
    ledger = schedgap.verify(["000-lemma-2", "000-lemma-2-repaired"], instances=6, out=tmp_path, workers=1)
    shown = (tmp_path / "ledger.html").read_text()
    for row in ledger.rows:
        assert row.guarantee.id in shown
    assert 'href="000-lemma-2.json"' in shown and shown.count("<svg") + shown.count("<img") == 2
    assert json.loads((tmp_path / "ledger.json").read_text()) == ledger.to_dict()


def test_progress_is_told_between_the_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedgap.benchmarks.sweep.progress.LINE_EVERY", 0.0)
    lines: list[str] = []
    monkeypatch.setattr("schedgap.benchmarks.sweep.progress.TICK", 1000.0)
    _verify(tmp_path, "toy-graham", progress=lines.append)
    assert len(lines) == 20
    assert lines[4].startswith("verify 5/20 after") and lines[4].endswith(": toy-graham, 5 of 20 trials")
    assert lines[-1].endswith(": toy-graham held (20 instances)")


def test_a_folder_for_counterexamples_is_tried_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("schedgap.benchmarks.ledger.verify._row", never)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        with pytest.raises(InputError, match=f"^{folder}: "):
            _verify(folder)
    check_folder(tmp_path / "a" / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_the_counterexample_is_the_smallest_and_shows_the_failure(tmp_path: Path) -> None:
    row = _verify(tmp_path, "toy-false").rows[0]
    assert row.counterexample == tmp_path / "toy-false.json"
    assert row.words == f"refuted ({row.refuted} of 20: {row.counterexample})"
    data = json.loads(row.counterexample.read_text())
    instance = ToyInstance.parse(data)
    shown = data["reference_counterexample"]
    comparison = compare(toy(), instance, ["brute", "list"], SolveOptions())
    assert comparison.agreement.optimum == shown["optimum"] == data["reference"]["optimum"]
    assert comparison.rows[1].objective == shown["objective"] == shown["left"] > shown["right"]
    assert comparison.rows[1].results[0].solution == data["reference_solution"]
    others = [workload_of(toy()).trials()["random"](seed)[0] for seed in range(20)]
    refuted = [i for i in others if compare(toy(), i, ["brute", "list"], SolveOptions()).rows[1].ratio != 1]
    assert len(refuted) == row.refuted
    assert instance_size(instance) == min(map(instance_size, refuted))


def test_a_seed_gives_one_ledger(tmp_path: Path) -> None:
    assert _verify(tmp_path).to_dict() == _verify(tmp_path).to_dict()
    assert _verify(tmp_path, seed=1).to_dict() != _verify(tmp_path).to_dict()
    json.dumps(_verify(tmp_path).to_dict(), allow_nan=False)


def test_samples_and_measurements_have_their_own_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sample(seed: int) -> Evaluation:
        return at_most(seed % 5, 3, f"{seed} modulo 5")

    def nowhere(case: object) -> Evaluation:
        raise AssertionError("not to be called")

    common = {"problem": "toy", "source": "s", "statement": "x", "assumptions": "y", "evaluate": nowhere}
    rows = (
        Guarantee("sampled", **common, sample=sample),  # type: ignore[arg-type]
        Guarantee("measured", **common, measure=lambda seed: Measured({"slope": 1.5}, "grows as n^1.5")),  # type: ignore[arg-type]
    )
    monkeypatch.setattr("support.toy.GUARANTEES", rows)
    ledger = _verify(tmp_path)
    assert [row.words for row in ledger.rows] == ["refuted (4 of 20)", "measured"]
    assert ledger.rows[0].reason == "sample 4: 4 modulo 5"
    assert ledger.rows[1].values == {"slope": 1.5}
    assert ledger.rows[1].verdict is Verdict.MEASURED


def test_assumptions_are_tested_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that fails everywhere, inside of two assumptions: what is outside refutes nothing."""
    problem = toy()

    def odd(case: Case) -> str | None:
        return "odd sum" if sum(case.instance.jobs) % 2 else None  # type: ignore[attr-defined]

    def long(case: Case) -> str | None:
        return "a long job" if max(case.instance.jobs) > 8 else None  # type: ignore[attr-defined]

    def fails(case: Case) -> Evaluation:
        jobs = case.instance.jobs  # type: ignore[attr-defined]
        assert sum(jobs) % 2 == 0 and max(jobs) <= 8
        return at_most(float(sum(jobs)), 1.0)

    needs = (Assumption("even sums", odd), Assumption("machines"), Assumption("short jobs", long))
    row = replace(problem.guarantees()[0], id="even", assumptions=needs, evaluate=fails)
    monkeypatch.setattr("support.toy.GUARANTEES", (row,))
    (found,) = verify(instances=20, out=tmp_path, problems=[toy()]).rows
    every = [workload_of(toy()).trials()["random"](seed)[0].jobs for seed in range(20)]  # type: ignore[attr-defined]
    odd_ones = sum(sum(jobs) % 2 for jobs in every)
    long_ones = sum(1 for jobs in every if sum(jobs) % 2 == 0 and max(jobs) > 8)
    assert 0 < odd_ones < 20 and long_ones > 0
    assert (found.refuted, found.held, found.not_applicable) == (20 - odd_ones - long_ones, 0, odd_ones + long_ones)
    assert dict(found.outside) == {"even sums": odd_ones, "short jobs": long_ones}
    assert dict(found.reasons) == {"odd sum": odd_ones, "a long job": long_ones}
    told = found.to_dict()
    assert told["assumptions"] == "even sums; machines; short jobs" and told["power"] is None
    assert [(n["text"], n["tested"], n["outside"]) for n in told["needs"]] == [
        ("even sums", True, odd_ones),
        ("machines", False, 0),
        ("short jobs", True, long_ones),
    ]
    assert found.counterexample is not None
    shown = json.loads(found.counterexample.read_text())
    assert sum(shown["jobs"]) % 2 == 0 and shown["reference_counterexample"]["tested"] == ["even sums", "short jobs"]
    text = Ledger((found,), 0).to_text()
    assert f"needs: even sums (tested: {odd_ones} trials outside)" in text and "needs: machines\n" in text
    assert f"not applicable ({odd_ones}): odd sum" in text


def test_power_is_the_smallest_factor_that_is_not_refuted(tmp_path: Path) -> None:
    """Graham's bound times c: refuted by the same trials for every c below the power, and for none above."""
    problem = toy()
    claim = next(g for g in problem.guarantees() if g.id == "toy-graham")
    ledger = _verify(tmp_path, "toy-graham")
    power = ledger.rows[0].power
    assert power is not None and power == pytest.approx(ledger.rows[0].tightness) and power < 1

    def times(factor: float) -> Verdict:
        def evaluate(case: Case) -> Evaluation:
            told = claim.evaluate(case)
            if told.left is None or told.right is None:
                return told
            return at_most(told.left, factor * told.right)

        changed = toy()
        changed.rows = (replace(claim, evaluate=evaluate),)
        return verify(instances=20, out=tmp_path, problems=[changed]).rows[0].verdict

    assert times(power * (1 + 1e-12)) is Verdict.HELD
    assert times(power * (1 - 1e-7)) is Verdict.REFUTED
    text = ledger.to_text(power=True)
    assert f"power: {power:.4g} times the right side is not refuted" in text
    assert ledger.rows[0].tightest in text and "power" not in ledger.to_text()
    assert ledger.rows[0].tightest.startswith("family random, seed ")
    assert _verify(tmp_path, "toy-false").rows[0].power is None


def test_trials_that_do_not_refute_what_the_ledger_refutes_do_not_make_it_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = LedgerVerdict("refuted", "refuted (67 of 154)")
    monkeypatch.setattr("schedgap.benchmarks.ledger.rows.ledger_verdict", lambda name: shipped)
    ledger = _verify(tmp_path, "toy-graham")
    assert ledger.rows[0].verdict is Verdict.HELD and ledger.rows[0].power is None
    assert ledger.rows[0].to_dict()["ledger"] == "refuted (67 of 154)"
    (row,) = ledger.rows
    among_others = replace(row, guarantee=replace(row.guarantee, problem="rar-ddls"))  # the page has those that ship
    text, page = ledger.to_text(), write_ledger(Ledger((among_others,), 0), tmp_path).read_text()
    assert "not refuted here (20 instances)" in text and "refuted (67 of 154)" in text and "held (" not in text
    assert "not refuted here (20 instances)" in page
    assert "refuted (67 of 154)" in page
    assert 'class="held"' not in page


def test_an_identity_has_no_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(toy().guarantees()[0], id="same", evaluate=lambda case: at_most(0.0, 1.0))
    monkeypatch.setattr("support.toy.GUARANTEES", (row,))
    (found,) = verify(instances=3, out=tmp_path, problems=[toy()]).rows
    assert found.verdict is Verdict.HELD and found.power is None and found.power_words == ""


def test_nothing_is_tight_where_both_sides_are_zero() -> None:
    assert at_most(0.0, 0.0).tightness is None and at_most(0.0, 0.0).smallest_factor == 0.0
    assert at_most(-1.0, 0.0).tightness is None and at_most(-2.0, -1.0).verdict is Verdict.HELD
    assert at_most(1.0, 0.0).tightness == float("inf") and at_most(0.5, 1.0).tightness == 0.5
    assert Evaluation(Verdict.HELD, None, 1.0).tightness is None
    for left, right in ((1.0, 1.0), (3.0, 4.0), (1e6, 2e6), (1e-12, 1e-12)):
        factor = at_most(left, right).smallest_factor
        assert at_most(left, factor * right * (1 + 1e-12)).verdict is Verdict.HELD
        assert at_most(left, factor * right * (1 - 1e-8)).verdict is Verdict.REFUTED


def test_words_alone_are_an_assumption_without_a_test() -> None:
    claim = toy().guarantees()[0]
    assert claim.needs == (Assumption("none"),) and claim.needs_text == "none"


def test_a_method_that_is_wrong_stops_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    problem = toy("broken")
    broken = replace(problem.guarantees()[0], id="about-broken", method="broken")
    monkeypatch.setattr("support.toy.GUARANTEES", (broken,))
    with pytest.raises(Disagreement, match=r"rejected by the checker.*the instance is in disagreements"):
        verify(instances=3, out=tmp_path, problems=[toy("broken")])
    assert len(list((tmp_path / "disagreements").iterdir())) == 1


def test_bad_arguments_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown guarantee 'nope', one of: toy-false"):
        _verify(tmp_path, "nope")
    with pytest.raises(InputError, match="instances"):
        verify(instances=0, problems=[toy()])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        _verify(tmp_path / "file", "toy-false")


def test_the_exact_method_is_that_of_the_instance() -> None:
    """Of ddl-cluster another method finds the optimum where placements are not given."""
    instance = schedgap.generate("ddl-cluster", "small", seed=0, jobs=1, iterations=1)
    trial = Trials(find_problem("ddl-cluster"), None).run(instance, {}, "", 0)
    assert trial.case.optimum is not None
