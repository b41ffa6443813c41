"""The ledger of paper 004 on one slot: printed claims refuted with their files, repaired ones held, frequencies."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schedgap.benchmarks.instances.g_vne.families import FAMILIES, NAMED
from schedgap.benchmarks.ledger.verify import verify
from schedgap.catalogue.g_vne import PROBLEM as G_VNE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.heuristics.common.guarantee import Case, Verdict, at_most
from schedgap.heuristics.g_vne.lp_rs_mde import lp_rs_mde, make_plan
from schedgap.heuristics.g_vne.measured import program_growth, rounding_frequencies, three_conflicts, two_racks
from schedgap.heuristics.g_vne.rounding_counts import A_THIRD, Frequency, chance_of_third, count_roundings, promised

REFUTED = {
    "004-lemma-7-embeddable": 2,
    "004-ring-size-bound": 1,
    "004-theorem-8": 3,
    "004-theorem-10-one-slot-kept": 4,
}
"""And how many nodes the smallest counterexample has: three servers at least, and a switch, but for Lemma 7 and q."""
HELD = ["004-lemma-7-lp", "004-theorem-8-repaired", "004-capped-bound"]
AS_PRINTED = ["004-lemma-7", "004-theorem-8-first", "004-theorem-10-one-slot"]
"""Nothing refutes these as they are printed: loads may exceed capacities, rings need not be embedded together."""

DATA = Path(__file__).parents[1] / "data"
ROWS = {guarantee.id: guarantee for guarantee in G_VNE.guarantees()}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    folder = tmp_path_factory.mktemp("counterexamples")
    found = verify([*REFUTED, *HELD, *AS_PRINTED], instances=15, out=folder)
    return {row.guarantee.id: row for row in found.rows}


@pytest.mark.parametrize("name", REFUTED)
def test_claims_are_refuted_with_a_file(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.REFUTED and row.refuted > 0 and row.counterexample is not None
    instance = GVneInstance.parse(json.loads(row.counterexample.read_text()))
    assert len(instance.servers) == REFUTED[name]
    assert row.tightness is not None and row.tightness > 1.05
    assert row.bounds == ((3.0, 3.0) if name == "004-theorem-8" else row.bounds)


@pytest.mark.parametrize("name", AS_PRINTED)
def test_the_readings_alone_are_refuted(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.HELD and row.held >= 8 and row.guarantee.kind == "printed", row.reason
    assert row.guarantee.method == "lp-rs-mde-printed"
    readings = [other for other in ROWS.values() if other.kind == "reading" and name[4:13] in other.id]
    assert readings


@pytest.mark.parametrize("name", HELD)
def test_repaired_claims_hold(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.HELD and row.held >= 10, row.reason
    assert row.tightness is not None and 0.9 <= row.tightness <= 1 + 1e-9


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
    assert row.on(case).verdict is Verdict.REFUTED
    assert row.on(Case(NAMED[0], 1.0, {**info, "sizes_in_lp": 3}, 1.0, 1.0, case.options)).verdict is Verdict.HELD


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
    assert values["both"] >= values["promised"] and 0.44 < values["promised"] < 0.4482
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


def test_the_chance_of_a_third_by_hand() -> None:
    """One ring always, 0.333 or so; 24 rings worth 1 with equal weights: a third of W unless none of them is drawn."""
    instance = GVneInstance.parse(json.loads((DATA / "claims-g-vne-thirds.json").read_text()))
    mixture = make_plan(instance).mixture
    weight = 0.668 / 23.95
    assert mixture.value == pytest.approx(0.332893 + 24 * weight, abs=1e-6)
    assert chance_of_third(mixture, mixture.value) == pytest.approx(1 - (1 - weight) ** 24, abs=1e-6)
    # against the roundings themselves, and where the sum is one term of many
    for plan in (make_plan(three_conflicts()), make_plan(two_racks(8, 6, 3))):
        exact = chance_of_third(plan.mixture, plan.mixture.value)
        low, high = count_roundings(plan, plan.mixture.value, 4000, 5).third.limits(1 - 1e-6)
        assert exact is not None and low <= exact <= high
    assert chance_of_third(make_plan(three_conflicts()).mixture, 1.5) == pytest.approx(7 / 8)


def test_the_promise_is_nearly_reached() -> None:
    """On an instance that is kept: nine tenths of the chance there is, where e^(-2/9) promised four tenths of it."""
    instance = GVneInstance.parse(json.loads((DATA / "claims-g-vne-thirds.json").read_text()))
    case = Case(instance, 1.0, {}, 1.0, 1.0, {"lp": "capped", "ring_sizes": "selected"})
    told = ROWS["004-theorem-8-repaired"].on(case)
    assert told.verdict is Verdict.HELD and told.tightness is not None and told.tightness >= 0.905
    assert promised(instance) == pytest.approx(1 - 1.5 / math.e - 24 / 40**3)
    assert told.right is not None and at_most(promised(instance) + 0.0005, 0.9 * told.right).verdict is Verdict.REFUTED


def test_no_sum_of_independent_parts_has_a_third_less_often() -> None:
    """P(X < mu/3) <= 3/(2e) for X a sum of variables in [0, 1], mu >= 1: two-point variables, drawn near the worst."""
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(3000):
        always = float(rng.choice([0.0, 0.3, 0.33, 0.333])) * float(rng.uniform(0.95, 1.0))
        sizes = rng.choice([1.0, 1.0, 0.5, 0.34, 0.3], int(rng.integers(2, 12)))
        chances = rng.dirichlet(np.ones(len(sizes))) * float(rng.uniform(0.66, 1.5))
        mean = always + float(sizes @ np.minimum(chances, 1.0))
        if mean < 1:
            continue
        sums, parts = np.array([always]), np.ones(1)
        for size, chance in zip(sizes, np.minimum(chances, 1.0), strict=True):
            sums, parts = np.append(sums, sums + size), np.append(parts * (1 - chance), parts * chance)
        worst = max(worst, float(parts[sums < mean / 3].sum()))
    assert 0.4 < worst <= 1 - A_THIRD


def test_theorem_8_with_tries_by_hand() -> None:
    """The rings of two are worth 3.06 and 7.14 with weights 3/4: LP_fixed is 7.65, and 3.06 is enough to stop."""
    instance, options = FAMILIES["tries_named"](0)
    told, bound = [], 10.0
    for seed in range(12):
        run = lp_rs_mde(instance, seed=seed, **options)
        full = {"tries": 100, "ring_sizes": "selected", "target": "fixed", **options}
        told.append(ROWS["004-theorem-8-tries"].on(Case(instance, run.info["objective"], run.info, bound, bound, full)))
        assert run.info["lp_fixed"] == pytest.approx(7.65) and run.info["lp"] == pytest.approx(10.1)
    refuted = [one for one in told if one.verdict is Verdict.REFUTED]
    assert refuted and all(one.right == pytest.approx(3.06) for one in refuted)
    assert len(refuted) < len(told)


def test_the_assumptions_of_paper_004_are_tested() -> None:
    instance, options = FAMILIES["tries_named"](0)
    run = lp_rs_mde(instance, seed=0, **options)
    full = {"tries": 100, "ring_sizes": "selected", "target": "fixed", **options}
    case = Case(instance, run.info["objective"], run.info, 10.0, 10.0, full)
    data = instance.to_dict()
    convex = GVneInstance.parse({**data, "jobs": [{**data["jobs"][0], "utility": [1.0, 3.0]}]})
    falling = GVneInstance.parse({**data, "jobs": [{**data["jobs"][0], "utility": [1.0, 0.5]}]})
    two = GVneInstance.parse({**data, "servers": data["servers"][:2]})
    relays = GVneInstance.parse({**data, "servers": [*data["servers"][:2], {"id": "relay", "resources": {}}]})
    tries, ten = ROWS["004-theorem-8-tries"], ROWS["004-theorem-10-one-slot-kept"]
    assert not tries.on(case).outside
    for other, text in ((convex, "concave"), (falling, "concave"), (two, "three"), (relays, "three")):
        assert text in tries.on(replace(case, instance=other)).outside
    for change in ({"tries": 1}, {"ring_sizes": "free"}, {"target": "first"}):
        assert tries.on(replace(case, options={**full, **change})).outside
    assert not ROWS["004-theorem-8"].on(replace(case, options={**full, "tries": 1})).outside
    assert ROWS["004-theorem-8"].on(case).outside
    large = {**run.info, "kappa": {"small": 3, "large": 2}}
    assert "ceil(q_i)" in tries.on(replace(case, info=large)).outside
    assert "capacities are kept" in ten.on(case).outside
    info = {**{key: value for key, value in run.info.items() if key != "outside_model"}, "gamma": 2}
    kept = replace(case, options={**full, "variant": "no-violation"}, objective=10 / 7, info=info)
    assert ten.on(kept).verdict is Verdict.HELD and ten.ratio_bound is not None and ten.ratio_bound(kept) == 7.0
    assert ten.on(replace(kept, objective=1.4)).verdict is Verdict.REFUTED


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
