"""The ledger of paper 002: printed claims refuted with their files, repaired ones held."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from schedgap.benchmarks.harness.compare import compare
from schedgap.benchmarks.instances.hadar.adversarial import FAMILIES, FORKED, NAMED
from schedgap.benchmarks.ledger.verify import verify
from schedgap.catalogue.hadar import PROBLEM as HADAR
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.heuristics.common.guarantee import Case, Verdict
from schedgap.heuristics.hadar import guarantees
from schedgap.heuristics.hadar.growth import recursion_growth
from schedgap.solvers.result import SolveOptions

REFUTED = ["002-theorem-2", "002-theorem-3"]
HELD = ["002-theorem-2-repaired", "002-theorem-2-run", "002-certificate", "002-theorem-3-single-job"]
FILES = {
    "low-high-7": "thm2-low-high-1gpu",
    "online-low-high-12": "thm2-online-low-high",
    "single-4": "D0-single-job-rejected",
    "D0-T3": "D0-exceeds-half-opt",
    "partial-4000": "partial-capacity-dual-infeasible",
}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("counterexamples")
    found = verify([*REFUTED, *HELD], instances=24, out=folder)
    return {row.guarantee.id: row for row in found.rows}


@pytest.mark.parametrize("name", REFUTED)
def test_printed_claims_are_refuted_with_a_file(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.REFUTED and row.refuted > 0 and row.counterexample is not None
    HadarInstance.parse(json.loads(row.counterexample.read_text()))


@pytest.mark.parametrize("name", HELD)
def test_repaired_claims_hold(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.HELD and row.held >= 15, row.reason
    assert row.tightness is not None and row.tightness <= 1 + 1e-9


def test_the_recursion_doubles_with_every_job() -> None:
    measured = recursion_growth(0)
    assert measured.values["doubling"] > 0.7
    assert measured.values["keys_last"] > 100 * measured.values["keys_first"]


def test_the_named_instances_are_the_known_counterexamples() -> None:
    data = Path(__file__).parents[1] / "data" / "counterexamples"
    for instance in NAMED:
        known = HadarInstance.parse(json.loads((data / f"{FILES[instance.name]}.json").read_text()))
        assert instance.content_hash() == known.content_hash()
    chain = json.loads((data / "thm3-chain-violated.json").read_text())
    assert [job.work for job in FORKED[1].jobs] == chain["work"]


def of_four_nodes(cru: list[float], monkeypatch: pytest.MonkeyPatch) -> dict[str, Verdict]:
    """The verdicts on Theorem 3 for given CRU^1..CRU^5."""
    monkeypatch.setattr(guarantees, "_chain_data", lambda _: (cru, 4))
    case = Case(FORKED[0], None, {}, None, None)
    one = HadarInstance.parse({**FORKED[0].to_dict(), "jobs": FORKED[0].to_dict()["jobs"][:1]})
    return {
        "printed": guarantees._theorem_3(case).verdict,
        "single": guarantees._theorem_3_single(replace(case, instance=one)).verdict,
    }


def test_theorem_3_is_judged_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """CRU^1 < CRU^x < CRU^n = CRU^(n+1): nothing is said of x and x + 1 in between."""
    held = Verdict.HELD
    assert of_four_nodes([0.2, 0.5, 0.4, 0.8, 0.8], monkeypatch) == {"printed": held, "single": held}
    assert of_four_nodes([0.2, 0.5, 0.5, 0.8, 0.8 + 1e-12], monkeypatch) == {"printed": held, "single": held}
    for wrong in ([0.4, 0.5, 0.4, 0.8, 0.8], [0.2, 0.8, 0.4, 0.8, 0.8]):
        assert of_four_nodes(wrong, monkeypatch)["printed"] is Verdict.REFUTED
    for wrong in ([0.2, 0.5, 0.6, 0.8, 0.81], [0.2, 0.5, 0.6, 0.8, 0.79]):
        assert set(of_four_nodes(wrong, monkeypatch).values()) == {Verdict.REFUTED}


def test_theorem_2_is_about_the_eta_without_the_horizon() -> None:
    info = {"exact": True, "alpha": 1.0}
    for eta, verdict in (("printed", Verdict.REFUTED), ("horizon", Verdict.NOT_APPLICABLE)):
        options = {"price": "printed", "umin": "printed", "eta": eta}
        assert guarantees._theorem_2(Case(NAMED[0], 1.0, info, 3.0, 3.0, options)).verdict is verdict


def test_every_hint_names_a_family() -> None:
    for guarantee in HADAR.guarantees():
        assert set(guarantee.hint.get("families", ())) <= set(FAMILIES)


def test_claims_are_judged_where_no_job_can_ever_finish() -> None:
    data = json.loads((Path(__file__).parents[1] / "data" / "counterexamples" / "thm2-low-high-1gpu.json").read_text())
    for job in data["jobs"]:
        job["epochs"] = 10**6
    found = compare(HADAR, HadarInstance.parse(data), ["colgen", "hadar-online"], SolveOptions())
    online = next(row for row in found.rows if row.method.id == "hadar-online")
    verdicts = {judgement.guarantee.id: judgement.evaluation.verdict for judgement in online.judgements}
    assert verdicts["002-theorem-2-run"] is Verdict.HELD and Verdict.REFUTED not in verdicts.values()
