"""The ledger of paper 004 on one slot: printed claims refuted with their files, repaired ones held, frequencies."""

import json

import pytest

from schedgap.benchmarks.instances.g_vne.adversarial import FAMILIES, NAMED
from schedgap.benchmarks.ledger.verify import verify
from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.heuristics.common.guarantee import Case, Verdict
from schedgap.heuristics.g_vne.frequencies import Frequency, count_roundings, promised
from schedgap.heuristics.g_vne.lp_rs_mde import make_plan
from schedgap.heuristics.g_vne.measured import program_growth, rounding_frequencies
from schedgap.heuristics.g_vne.trials import three_conflicts, two_racks

REFUTED = {"004-lemma-7": 2, "004-theorem-8": 1, "004-theorem-10-one-slot": 2}
"""And how many nodes the smallest counterexample has."""
HELD = ["004-lemma-7-lp", "004-theorem-8-repaired", "004-capped-bound"]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("counterexamples")
    found = verify([*REFUTED, *HELD], instances=15, out=folder)
    return {row.guarantee.id: row for row in found.rows}


@pytest.mark.parametrize("name", REFUTED)
def test_printed_claims_are_refuted_with_a_file(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.REFUTED and row.refuted > 0 and row.counterexample is not None
    instance = GVneInstance.parse(json.loads(row.counterexample.read_text()))
    assert len(instance.servers) == REFUTED[name] and row.tightness == float("inf")


@pytest.mark.parametrize("name", HELD)
def test_repaired_claims_hold(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.HELD and row.held >= 10, row.reason
    assert row.tightness is not None and row.tightness <= 1 + 1e-9


def test_lemma_7_by_hand() -> None:
    """Two one-GPU servers, a link of half the bandwidth: the program takes the ring of two, which fits nowhere."""
    plan = make_plan(NAMED[0], lp="augmented")
    assert plan.sizes.tolist() == [2] and plan.second.value == pytest.approx(1.5)
    corrected = make_plan(NAMED[0])
    assert corrected.sizes.tolist() == [1] and corrected.second.value == pytest.approx(1.0)


def test_a_claim_can_fail() -> None:
    """A repaired claim is refuted where its numbers are not what the method tells."""
    row = next(g for g in G_VNE.guarantees() if g.id == "004-lemma-7-lp")
    info = {"lp": 3.0, "lp_fixed": 1.0, "lp_complete": True, "sizes_in_lp": 2}
    case = Case(NAMED[0], 1.0, info, 1.0, 1.0, {"ring_sizes": "selected"})
    assert row.evaluate(case).verdict is Verdict.REFUTED
    assert row.evaluate(Case(NAMED[0], 1.0, {**info, "sizes_in_lp": 3}, 1.0, 1.0, case.options)).verdict is Verdict.HELD


def test_confidence_limits() -> None:
    low, high = Frequency(0, 100).limits(0.95)
    assert low == 0.0 and high == pytest.approx(1 - 0.025 ** (1 / 100))
    low, high = Frequency(100, 100).limits(0.95)
    assert high == 1.0 and low == pytest.approx(0.025 ** (1 / 100))
    low, high = Frequency(50, 100).limits(0.95)
    assert low == pytest.approx(0.3983, abs=1e-4) and high == pytest.approx(0.6017, abs=1e-4)


def test_frequencies_have_limits_and_both_factors() -> None:
    values = rounding_frequencies(1).values
    assert values["third_low"] <= values["third"] <= values["third_high"]
    assert values["both"] >= values["promised"] and 0.19 < values["promised"] < 0.2
    assert values["own_node_low"] <= values["claimed_node"] and values["own_link_low"] <= values["claimed_link"]
    assert 1 < values["beta_instance"] < values["beta_printed"]
    assert 1 < values["gamma_instance"] < values["gamma_printed"]
    assert values["conflict_third_low"] < 7 / 8 < values["conflict_third_high"]
    assert values["worst_share"] > 1


def test_three_jobs_in_conflict_may_all_be_refused() -> None:
    plan = make_plan(three_conflicts())
    counts = count_roundings(plan, 1.0, 4000, 3)
    assert counts.third.value == pytest.approx(7 / 8, abs=0.03)
    assert promised(three_conflicts()) < counts.both.value


def test_the_factors_of_the_rings_bound_their_loads_and_are_smaller_than_the_printed_ones() -> None:
    for seed in range(3):
        plan = make_plan(two_racks(12, 8, seed))
        counts = count_roundings(plan, plan.second.value, 500, seed)
        assert counts.within.value > 0.99
        assert (plan.factors.instance <= plan.factors.printed + 1e-9).all()
        assert (plan.factors.instance >= 1).all()


def test_the_augmented_program_grows_faster_than_printed() -> None:
    values = program_growth(0).values
    assert values["exponent_printed"] == pytest.approx(1.0, abs=0.1)
    assert values["exponent_variables"] > 1.8
    assert values["exponent_columns"] < 1.0


def test_every_hint_names_a_family() -> None:
    for guarantee in G_VNE.guarantees():
        assert set(guarantee.hint.get("families", ())) <= set(FAMILIES)
