"""Both sides of paper 004's claims about one slot on runs whose numbers are given, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schedgap.benchmarks.instances.g_vne import families
from schedgap.benchmarks.instances.g_vne.families import NAMED
from schedgap.heuristics.common.guarantee import Case, Evaluation, Verdict, not_applicable
from schedgap.heuristics.g_vne import guarantees, lp_rs_mde, measured, relaxation, ring_size_bound, rounding_counts

ROWS = {guarantee.id.removeprefix("004-"): guarantee for guarantee in guarantees.GUARANTEES}
HELD, REFUTED = Verdict.HELD, Verdict.REFUTED
INFO = {"lp": 3.0, "lp_fixed": 1.5, "lp_complete": True, "sizes_in_lp": 2, "gamma": 2, "kappa": {}, "tries": 4}
OPTIONS = {"lp": "capped", "ring_sizes": "selected"}


def of(claim: str, objective: float | None = 1.0, optimum: float | None = 7.0, **info: Any) -> Evaluation:
    return ROWS[claim].evaluate(Case(NAMED[0], objective, {**INFO, **info}, optimum, optimum, OPTIONS))


def test_a_program_that_was_not_solved_says_nothing() -> None:
    for claim in ("lemma-7", "lemma-7-embeddable", "lemma-7-lp", "theorem-8", "theorem-8-tries", "theorem-10-one-slot"):
        assert of(claim, lp_complete=False) == not_applicable(guarantees.CUT_OFF)
    for claim in ("lemma-7", "lemma-7-embeddable", "theorem-8", "theorem-8-tries", "theorem-10-one-slot"):
        assert of(claim, optimum=None) == not_applicable("the optimum is not proven")
    assert of("theorem-10-one-slot", objective=None) == not_applicable("the optimum is not proven")


def test_a_third_of_the_optimum() -> None:
    found = of("theorem-8", objective=2.0, optimum=6.0)
    assert (found.verdict, found.left, found.right) == (HELD, 2.0, 2.0) and found.reason.startswith("4 roundings")
    assert of("theorem-8", objective=2.0, optimum=6.00001).verdict is REFUTED
    nothing = of("theorem-8", objective=0.0, optimum=3.0)
    assert (nothing.verdict, nothing.left, nothing.right) == (REFUTED, 1.0, 0.0)
    assert ROWS["theorem-8"].ratio_bound(None) == ROWS["theorem-8-tries"].ratio_bound(None) == 3.0  # type: ignore
    once = {key: value for key, value in INFO.items() if key != "tries"}
    told = ROWS["theorem-8"].evaluate(Case(NAMED[0], 2.0, once, 6.0, 6.0, OPTIONS))
    assert told.reason.startswith("1 roundings")


def test_theorem_10_of_one_slot() -> None:
    found = of("theorem-10-one-slot", objective=1.0, optimum=7.0)
    assert (found.verdict, found.left, found.right) == (HELD, 7.0, 7.0)
    assert of("theorem-10-one-slot", objective=1.0, optimum=7.00001).verdict is REFUTED


def test_programs_with_and_without_fixed_sizes() -> None:
    found = of("lemma-7-lp")
    assert found.verdict is HELD and (found.left, found.right) == pytest.approx((3.0, 3.0), rel=2e-7)
    assert of("lemma-7-lp", lp=3.0 * (1 + 1.5e-7)).verdict is HELD
    assert of("lemma-7-lp", lp=3.0 * (1 + 1e-6)).verdict is REFUTED and of("lemma-7-lp", lp=2.0).verdict is HELD
    assert of("lemma-7-lp", lp=1.5, sizes_in_lp=0).verdict is HELD  # at least one size
    assert of("lemma-7-lp", lp=1.6, sizes_in_lp=0).verdict is REFUTED
    tiny = of("lemma-7-lp", lp=3e-9, lp_fixed=1e-9)
    assert tiny.verdict is REFUTED


def test_lemma_7_solves_again_with_the_selected_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    answers = iter([3.5, 3.49, None])
    monkeypatch.setattr(measured, "with_sizes", lambda instance, sizes: (asked.append(sizes), "fixed")[1])
    monkeypatch.setattr(measured, "optimum_of", lambda instance: (asked.append(instance), next(answers))[1])
    found = of("lemma-7-embeddable", kappa={"j": 2})
    assert (found.verdict, found.left, found.right) == (HELD, 7.0, 7.0) and asked == [{"j": 2}, "fixed"]
    assert of("lemma-7-embeddable").verdict is REFUTED
    assert "fixed ring sizes" in of("lemma-7-embeddable").reason
    size = guarantees._size(NAMED[0])
    assert size == sum(job.max_workers for job in NAMED[0].jobs) * len(NAMED[0].servers)
    monkeypatch.setattr(guarantees, "SOLVABLE", size - 1)
    assert of("lemma-7-embeddable") == not_applicable("too large to be solved again with fixed ring sizes")


def test_lemma_7_as_its_proof_counts() -> None:
    """NAMED[0]: one job, rings worth 1 and 1.5."""
    job = NAMED[0].jobs[0].id
    assert (of("lemma-7", optimum=3.0, kappa={job: 2}).right, of("lemma-7", optimum=3.0, kappa={job: 2}).verdict) == (
        3.0,
        HELD,
    )
    assert of("lemma-7", optimum=3.1, kappa={job: 2}).verdict is REFUTED
    assert of("lemma-7", optimum=1.0, kappa={job: 0}).verdict is REFUTED


def test_q_by_hand_and_what_it_forbids() -> None:
    """Four GPUs: the relaxation gives all of them to the wide job, 4/3 workers; the optimum is one of each kind."""
    instance = families.ring_sizes(0)
    assert ring_size_bound.relaxed_workers(instance) == pytest.approx({"j0": 4 / 3, "j1": 0.0})
    best = measured.optimum_of(instance)
    assert best == pytest.approx(4.3)
    found = ROWS["ring-size-bound"].evaluate(Case(instance, None, {}, best, best))
    assert found.verdict is REFUTED and found.right == pytest.approx(3.3)
    wide = ROWS["ring-size-bound"].evaluate(Case(NAMED[2], None, {}, 1.0, 1.0))
    assert wide.verdict is HELD


def relaxed(bound: float | None, complete: bool = True) -> Any:
    return SimpleNamespace(bound=bound, complete=complete)


@pytest.mark.parametrize(
    ("capped", "augmented", "optimum", "verdict", "sides"),
    [
        (relaxed(4.0), relaxed(5.0), 4.0, HELD, (4.0, 4.0)),
        (relaxed(4.0), relaxed(5.0), 4.0 * (1 + 1.5e-9), HELD, (4.0, 4.0)),
        (relaxed(4.0), relaxed(5.0), 4.00001, REFUTED, (4.00001, 4.0)),
        (relaxed(4.0), relaxed(5.0), None, HELD, (4.0, 5.0)),
        (relaxed(5.0), relaxed(5.0), None, HELD, (5.0, 5.0)),
        (relaxed(5.00001), relaxed(5.0), 4.0, REFUTED, (5.00001, 5.0)),
        (relaxed(5e-12), relaxed(4e-12), 4e-12, REFUTED, (5e-12, 4e-12)),
    ],
)
def test_the_optimum_and_two_programs(
    capped: Any, augmented: Any, optimum: Any, verdict: Verdict, sides: tuple[float, float], monkeypatch: Any
) -> None:
    monkeypatch.setattr(relaxation, "relax", lambda instance, capped: both[capped])
    both = {True: capped, False: augmented}
    found = of("capped-bound", optimum=optimum)
    assert found.verdict is verdict and (found.left, found.right) == pytest.approx(sides, rel=1e-6)
    for cut in (relaxed(4.0, complete=False), relaxed(None)):
        for place in (True, False):
            both = {True: capped, False: augmented, place: cut}
            assert of("capped-bound", optimum=optimum) == not_applicable(guarantees.CUT_OFF)


def test_the_repaired_theorem_8(monkeypatch: pytest.MonkeyPatch) -> None:
    mixture = SimpleNamespace(columns=["ring"], value=3.0, utility=np.array([1.0, 2.5]))
    monkeypatch.setattr(lp_rs_mde, "make_plan", lambda instance, **settings: SimpleNamespace(mixture=mixture))
    asked: list[Any] = []

    def counts(plan: Any, value: float, roundings: int, seed: int) -> Any:
        asked.append((value, roundings, seed))
        limits = {1 - 1e-6: (0.3, 0.6)}
        return SimpleNamespace(both=SimpleNamespace(value=0.5, limits=limits.__getitem__))

    monkeypatch.setattr(rounding_counts, "count_roundings", counts)
    told: dict[str, float | None] = {"third": None, "promised": 0.6}
    monkeypatch.setattr(rounding_counts, "chance_of_third", lambda mixture, value: told["third"])
    monkeypatch.setattr(rounding_counts, "promised", lambda instance: told["promised"])
    found = of("theorem-8-repaired")
    assert (found.verdict, found.left, found.right) == (HELD, 0.6, 0.6)
    assert asked == [(3.0, 1000, 0)] and "a third with" not in found.reason
    told["promised"] = 0.7
    assert of("theorem-8-repaired").verdict is REFUTED
    told.update(third=0.4, promised=0.5)  # the exact chance of a third alone is smaller than the upper limit
    found = of("theorem-8-repaired")
    assert (found.verdict, found.left, found.right) == (REFUTED, 0.5, 0.4)
    assert "a third with probability 0.4000" in found.reason
    told.update(third=0.9, promised=-0.5)  # a promise below 0 promises nothing
    found = of("theorem-8-repaired")
    assert (found.left, found.right) == (0.0, 0.6)
    for changed in ({"columns": []}, {"utility": np.array([3.00001])}):
        before = dict(vars(mixture))
        vars(mixture).update(changed)
        assert "worth more than all" in of("theorem-8-repaired").reason
        vars(mixture).update(before)
    mixture.utility = np.array([3.0])
    assert of("theorem-8-repaired").verdict is HELD
    monkeypatch.setattr(guarantees, "ROUNDABLE", 0)
    assert "too large" in of("theorem-8-repaired").reason
    augmented = Case(NAMED[0], 1.0, INFO, 7.0, 7.0, {**OPTIONS, "lp": "augmented"})
    assert "not embeddable alone" in ROWS["theorem-8-repaired"].evaluate(augmented).reason


@pytest.mark.parametrize(
    ("utility", "fine"),
    [
        ((1.0,), True),
        ((1.0, 1.0), True),
        ((1.0, 2.0, 3.0), True),
        ((1.0, 1.5, 1.7), True),
        ((1.0, 0.9), False),
        ((-1.0,), False),
        ((1.0, 2.1), False),
        ((1.0, 2.0 + 1e-10), True),
        ((1e-12, 2.1e-12), False),
        ((0.1, 0.2, 0.3), True),
        ((0.0, 0.0), True),
    ],
)
def test_utilities_that_increase_by_less_and_less(utility: tuple[float, ...], fine: bool) -> None:
    assert guarantees._concave(utility) == fine


def test_a_ring_size_may_be_q_rounded_up() -> None:
    def why(size: int, q: float) -> str | None:
        return guarantees._beyond_q(Case(NAMED[0], 1.0, {"kappa": {"j": size}, "q": {"j": q}}, 1.0, 1.0))

    assert why(2, 1.2) is None and why(2, 2.0) is None and why(3, 2.5) is None
    assert why(2, 1.0 + 1e-6) is None
    assert why(2, 1.0) and why(2, 1.0 + 1e-10) and why(3, 2.0)


def test_claims_that_are_measured_elsewhere() -> None:
    for claim in ("lemma-7-losses", "theorem-8-frequencies", "theorem-9"):
        assert "of its own" in of(claim).reason


def test_every_utility_has_to_be_concave() -> None:
    jobs = [SimpleNamespace(utility=utility) for utility in ((1.0, 1.5), (1.0, 3.0))]
    for some, outside in ((jobs[:1], False), (jobs, True), (jobs[1:], True), (jobs[::-1], True)):
        instance = NAMED[0].model_copy(update={"jobs": tuple(some)})
        assert (guarantees._other_utilities(Case(instance, 1.0, INFO, 7.0, 7.0)) is not None) == outside
