"""The ledger of paper 004 over the horizon: what holds is reached, what fails leaves a file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from oracles.ddljs import brute_force

from schedgap.benchmarks.instances.ddljs.families import (
    FAMILIES,
    NAMED_CONCAVE,
    crowded,
    knapsack,
    late,
    tight,
    tight_batch,
)
from schedgap.benchmarks.ledger.verify import verify
from schedgap.catalogue.ddljs import PROBLEM as DDLJS
from schedgap.catalogue.ddljs import Ddljs
from schedgap.catalogue.run import run_method
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.heuristics.common.guarantee import Case, Evaluation, Guarantee, Verdict, at_most
from schedgap.heuristics.ddljs import overload
from schedgap.heuristics.ddljs.guarantees import GUARANTEES, greedy_factor
from schedgap.heuristics.ddljs.overload import likeliest_overloads
from schedgap.solvers.result import SolveOptions

REFUTED = [
    "004-lemma-5-sigmoid",
    "004-theorem-6-sigmoid",
    "004-theorem-10-kept",
    "004-theorem-10-one-rounding",
    "004-one-cycle",
    "004-idle-servers",
]
HELD = [
    "004-lemma-5",
    "004-theorem-6",
    "004-theorem-6-repaired",
    "004-theorem-6-alpha",
    "004-theorem-6-max-gain",
    "004-theorem-6-last-gain",
    "004-theorem-6-batch",
]
TIGHT = 0.89
"""How near every claim that holds comes to failing, at least; 9/10 on five slots, more on six."""
ROWS = {guarantee.id: guarantee for guarantee in GUARANTEES}


def case_of(instance: DdljsInstance) -> Case:
    optimum, _ = brute_force(instance)
    run = run_method(DDLJS, instance, "gadget", SolveOptions())
    return Case(instance, run.objective, run.info, optimum, optimum, {"inner": "colgen"})


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    found = verify([*REFUTED, *HELD], instances=24, out=tmp_path_factory.mktemp("counterexamples"))
    return {row.guarantee.id: row for row in found.rows}


@pytest.mark.parametrize("name", REFUTED)
def test_claims_are_refuted_with_a_file(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.REFUTED and row.refuted > 0 and row.counterexample is not None
    DdljsInstance.parse(json.loads(row.counterexample.read_text()))


@pytest.mark.parametrize("name", HELD)
def test_claims_that_hold(ledger, name: str) -> None:  # type: ignore[no-untyped-def]
    row = ledger[name]
    assert row.verdict is Verdict.HELD and row.held >= 8, row.reason
    assert row.tightness is not None and TIGHT <= row.tightness <= 1 + 1e-9


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_the_repaired_bound_is_reached(slots: int) -> None:
    """2/3, 3/5, 4/7: T / (2T - 1) cannot be improved."""
    case = case_of(tight(slots))
    assert case.objective is not None and case.optimum is not None
    assert case.objective / case.optimum == pytest.approx(slots / (2 * slots - 1), rel=1e-5)
    for name in ("004-theorem-6-repaired", "004-theorem-6-max-gain", "004-theorem-6-alpha"):
        found = ROWS[name].on(case)
        assert found.verdict is Verdict.HELD and found.tightness == pytest.approx(1.0, abs=1e-5), name


def test_the_bound_without_arrivals_is_reached() -> None:
    case = case_of(tight_batch())
    assert case.objective is not None and case.optimum is not None
    assert case.objective / case.optimum == pytest.approx(0.75, rel=1e-5)
    found = ROWS["004-theorem-6-batch"].on(case)
    assert found.verdict is Verdict.HELD and found.tightness == pytest.approx(1.0, abs=1e-5)
    assert ROWS["004-theorem-6-batch"].on(case_of(tight(2))).verdict is Verdict.NOT_APPLICABLE


def test_one_percent_less_would_be_refuted() -> None:
    """ddljs-03: greedy has 2.009 of 3.007, against 2/3."""
    data = json.loads((Path(__file__).parents[1] / "data" / "ddljs-03-greedy-two-thirds.json").read_text())
    instance = DdljsInstance.parse(data)
    assert instance.content_hash() == NAMED_CONCAVE[0].content_hash()
    case = case_of(instance)
    assert case.objective == pytest.approx(2.009) and case.optimum == pytest.approx(3.007)
    assert ROWS["004-theorem-6-repaired"].on(case).verdict is Verdict.HELD
    assert case.objective is not None and case.optimum is not None
    assert at_most(case.optimum, greedy_factor(2) * case.objective).verdict is Verdict.HELD
    assert at_most(case.optimum, greedy_factor(2) / 1.01 * case.objective).verdict is Verdict.REFUTED
    assert ROWS["004-theorem-6-repaired"].on(replace(case, objective=2.009 / 1.01)).verdict is Verdict.REFUTED


def test_verify_sees_a_bound_that_is_one_percent_too_tight(tmp_path: Path) -> None:
    """The whole way: the registered claim, and the same 1% tighter, tried by verify on the families that reach it."""
    claim = ROWS["004-theorem-6-repaired"]

    def tighter(case: Case) -> Evaluation:
        told = claim.on(case)
        if told.left is None or told.right is None:
            return told
        return at_most(1.01 * told.left, told.right, told.reason)

    verdicts = []

    class One(Ddljs):
        """The problem with one claim."""

        def __init__(self, row: Guarantee) -> None:
            self.row = row

        def guarantees(self) -> tuple[Guarantee, ...]:
            return (self.row,)

    for row in (claim, replace(claim, evaluate=tighter)):
        (found,) = verify([claim.id], instances=12, out=tmp_path, problems=[One(row)]).rows
        verdicts.append(found.verdict)
    assert verdicts == [Verdict.HELD, Verdict.REFUTED]


def test_a_sigmoid_drives_the_ratio_towards_nothing() -> None:
    data = json.loads((Path(__file__).parents[1] / "data" / "ddljs-05-sigmoid-myopic.json").read_text())
    ratios = []
    for instance in (DdljsInstance.parse(data), late(1), late(3)):
        case = case_of(instance)
        printed = instance.jobs[0].efficiency >= 50  # the first is not in the printed ranges
        assert (ROWS["004-theorem-6-sigmoid"].on(case).verdict is Verdict.REFUTED) is printed
        assert ROWS["004-theorem-6-sigmoid"].evaluate(case).verdict is Verdict.REFUTED
        assert ROWS["004-theorem-6"].on(case).verdict is Verdict.NOT_APPLICABLE
        assert case.objective is not None and case.optimum is not None
        ratios.append(case.objective / case.optimum)
    assert ratios[0] == pytest.approx(0.043, abs=5e-4)
    assert min(ratios) < 0.05


@pytest.mark.parametrize("seed", range(60))
def test_gains_prove_the_optimum_bound(seed: int) -> None:
    """OPT <= 2 ALG - g_s for every slot s, the lemma behind the repaired bound."""
    case = case_of(knapsack(seed))
    assert case.objective is not None and case.optimum is not None and case.info["exact"]
    assert sum(case.info["gains"]) == pytest.approx(case.objective, rel=1e-9, abs=1e-12)
    for gained in case.info["gains"]:
        assert case.optimum <= 2 * case.objective - gained + 1e-9


def test_theorem_10s_probabilities_by_hand() -> None:
    """n jobs with weight 1/(n - 0.05) each load every resource alike; beta is 1 + sqrt(2 n ln 3): 4.3 for n = 5.

    Only five of five reach it. A job that has run is done, so the second slot has nobody left after that, and fewer
    than five otherwise unless nobody ran.
    """
    weight = 1 / 4.95
    none, all_five = (1 - weight) ** 5, weight**5
    one = likeliest_overloads(crowded(0))
    two = likeliest_overloads(crowded(2))
    assert not isinstance(one, str) and not isinstance(two, str)
    assert one["server"].chance == pytest.approx(all_five, rel=1e-6) and one["link"].chance == 0.0
    assert two["server"].chance == pytest.approx(all_five * (1 + none), rel=1e-6)
    claim = ROWS["004-theorem-10-probability"]
    told = claim.on(Case(crowded(2), None, {}, None, None))
    assert told.verdict is Verdict.HELD
    assert told.left == pytest.approx(two["server"].chance) and told.right == pytest.approx(1 - (1 - 3**-4) ** 2)


def test_an_overload_in_two_slots_counts_once() -> None:
    """Without budgets both slots are alike: 1 - (1 - p)^2."""
    data = crowded(2).to_dict()
    for job in data["jobs"]:
        job["budget"] = {}
    found = likeliest_overloads(DdljsInstance.parse(data))
    assert not isinstance(found, str)
    assert found["server"].chance == pytest.approx(1 - (1 - (1 / 4.95) ** 5) ** 2, rel=1e-6)


def test_theorem_10s_probabilities_can_be_refuted(monkeypatch: pytest.MonkeyPatch) -> None:

    claim = ROWS["004-theorem-10-probability"]
    fakes = ((0.0122, Verdict.HELD), (0.0124, Verdict.REFUTED))  # 3^-4 = 0.01235
    for chance, verdict in fakes:
        found = {kind: overload.Overload(chance if kind == "server" else 0.0, None) for kind in ("server", "link")}
        monkeypatch.setattr(overload, "likeliest_overloads", lambda _, found=found: found)
        assert claim.on(Case(crowded(0), None, {}, None, None)).verdict is verdict
    monkeypatch.setattr(overload, "likeliest_overloads", lambda _: "too many")
    assert claim.on(Case(crowded(0), None, {}, None, None)).reason == "too many"


def test_the_assumptions_of_paper_004_are_tested() -> None:
    case = case_of(tight(2))
    sigmoid = case_of(late(0))
    assert ROWS["004-theorem-6"].on(sigmoid).outside and ROWS["004-theorem-6-sigmoid"].on(case).outside
    assert ROWS["004-lemma-5"].on(sigmoid).outside and ROWS["004-lemma-5-sigmoid"].on(case).outside
    inexact = replace(case, info={**case.info, "exact": False})
    for name in ("repaired", "max-gain", "last-gain"):
        assert not ROWS[f"004-theorem-6-{name}"].on(case).outside
        assert "exactly" in ROWS[f"004-theorem-6-{name}"].on(inexact).outside
    for alpha in (None, 0.0):
        unknown = replace(case, info={**case.info, "alpha": alpha})
        assert ROWS["004-theorem-6"].on(unknown).outside and ROWS["004-theorem-6-alpha"].on(unknown).outside
    assert "together" in ROWS["004-theorem-6-batch"].on(case).outside
    ten = ROWS["004-theorem-10-kept"]
    assert "three" in ten.on(case).outside
    wide = replace(case, instance=crowded(0))
    assert "Algorithm 2" in ten.on(wide).outside
    inside = replace(wide, options={"inner": "lp-rs-mde"}, optimum=7.0, objective=1.0, info={**case.info, "gamma": 2})
    assert ten.on(inside).verdict is Verdict.HELD and ten.on(replace(inside, optimum=7.1)).verdict is Verdict.REFUTED


def test_bounds_decide_only_what_they_can() -> None:
    """Without the optimum an upper bound may show that a claim holds, never that it fails."""
    case = replace(case_of(tight(2)), optimum=None)
    assert case.objective is not None
    claim = ROWS["004-theorem-6"]
    assert claim.on(replace(case, bound=2 * case.objective)).verdict is Verdict.HELD
    for bound in (2.1 * case.objective, None):
        assert claim.on(replace(case, bound=bound)).verdict is Verdict.NOT_APPLICABLE


def test_every_hint_names_a_family() -> None:
    for guarantee in DDLJS.guarantees():
        assert set(guarantee.hint.get("families", ())) <= set(FAMILIES)
