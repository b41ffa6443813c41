"""Both sides of paper 002's claims on runs whose numbers are given, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schedgap.benchmarks.instances.hadar.families import FORKED
from schedgap.heuristics.common.guarantee import Case, Evaluation, Verdict, not_applicable
from schedgap.heuristics.hadar import conditions, guarantees, hadare_guarantees
from schedgap.solvers.exact.hadar import colgen
from schedgap.solvers.result import Status

ROWS = {guarantee.id.removeprefix("002-"): guarantee for guarantee in guarantees.GUARANTEES}
HELD, REFUTED, OPEN = Verdict.HELD, Verdict.REFUTED, Verdict.NOT_APPLICABLE


def of(
    claim: str, info: dict[str, Any], objective: float | None = 2.0, optimum: Any = 12.0, bound: Any = None
) -> Evaluation:
    return ROWS[claim].evaluate(Case(FORKED[0], objective, info, optimum, bound))


@pytest.mark.parametrize(
    ("claim", "info", "factor"),
    [
        ("theorem-2", {"alpha": 3.0}, 6.0),
        ("lemma-1-fitting", {"max_step": 1.5}, 3.0),
        ("lemma-1-fitting", {"max_step": 0.5}, 2.0),
        ("theorem-2-repaired", {"alpha_step": 3.0}, 3.25),
        ("theorem-2-run", {"max_step": 3.0}, 3.25),
        ("theorem-2-run", {"max_step": 0.25}, 1.25),
    ],
)
def test_claims_on_the_ratio(claim: str, info: dict[str, Any], factor: float) -> None:
    optimum = 2.0 * factor
    found = of(claim, info, optimum=optimum)
    assert (found.verdict, found.left, found.right) == (HELD, optimum, optimum)
    assert ROWS[claim].ratio_bound(Case(FORKED[0], 2.0, info, optimum, None)) == factor
    assert of(claim, info, optimum=optimum + 1e-6).verdict is REFUTED
    # an upper bound on the optimum shows that it holds, never that it fails
    shown = of(claim, info, optimum=None, bound=optimum)
    assert (shown.verdict, shown.left) == (HELD, optimum)
    assert of(claim, info, optimum=None, bound=optimum + 1e-6) == not_applicable(conditions.UNKNOWN)
    assert of(claim, info, optimum=None).reason == conditions.UNKNOWN
    assert of(claim, info, objective=None).reason == conditions.NOTHING


def test_what_is_too_large_for_a_float_is_not_judged() -> None:
    for claim in ("lemma-1-fitting", "lemma-2-fitting", "theorem-2-repaired", "theorem-2-run"):
        assert of(claim, {}).reason == conditions.TOO_LARGE
    assert of("certificate", {"certificate": None}).reason == conditions.TOO_LARGE
    assert of("lemma-2-fitting", {"max_step": 1.0}).reason == conditions.TOO_LARGE
    assert of("lemma-2-fitting", {"allocation_cost": 1.0}).reason == conditions.TOO_LARGE


def test_the_step_that_was_seen_is_told() -> None:
    assert "largest dD/dP seen 1.5" in of("theorem-2-repaired", {"alpha_step": 9.0, "max_step": 1.5}).reason
    assert "seen" not in of("theorem-2-repaired", {"alpha_step": 9.0}).reason


def test_lemma_2_compares_the_largest_of_the_run() -> None:
    assert of("lemma-2-fitting", {"max_step": 2.0, "allocation_cost": 2.0}).verdict is HELD
    found = of("lemma-2-fitting", {"max_step": 3.0, "allocation_cost": 2.0})
    assert (found.verdict, found.left, found.right) == (REFUTED, 3.0, 2.0)
    assert of("lemma-2-fitting", {"max_step": 0.25, "allocation_cost": 0.5}).right == 1.0


@pytest.mark.parametrize(("claim", "other"), [("allocation-cost", "alpha"), ("allocation-cost-repaired", "alpha_step")])
def test_the_cost_of_an_allocation(claim: str, other: str) -> None:
    assert of(claim, {"allocation_cost": 2.0, other: 2.0}).verdict is HELD
    found = of(claim, {"allocation_cost": 2.5, other: 2.0})
    assert (found.verdict, found.left, found.right) == (REFUTED, 2.5, 2.0)
    for info in ({"allocation_cost": 2.0}, {other: 2.0}):
        assert of(claim, info).reason == conditions.TOO_LARGE
    assert of(claim, {"admitted": 0}).reason == "nothing was admitted"
    assert of(claim, {"admitted": 1}).reason == conditions.TOO_LARGE


@pytest.mark.parametrize(("claim", "right"), [("initial-dual", 6.0), ("initial-dual-repaired", 3.0)])
def test_the_initial_dual(claim: str, right: float) -> None:
    assert of(claim, {"initial_dual": right}).verdict is HELD
    found = of(claim, {"initial_dual": right + 1})
    assert (found.verdict, found.left, found.right) == (REFUTED, right + 1, right)
    assert "not known" in of(claim, {"initial_dual": 1.0}, optimum=None).reason
    assert "no prices" in of(claim, {}).reason


def test_the_certificate_bounds_the_optimum() -> None:
    assert of("certificate", {"certificate": 12.0}).verdict is HELD
    found = of("certificate", {"certificate": 11.0})
    assert (found.verdict, found.left, found.right) == (REFUTED, 12.0, 11.0)
    assert "no certificate" in of("certificate", {}).reason
    assert "not known" in of("certificate", {"certificate": 12.0}, optimum=None).reason


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_price_curve_meets_lemma_3_with_equality(seed: int) -> None:
    """k = low exp(log_rho gamma / c): c k' = log_rho k, whatever the pool."""
    assert ROWS["lemma-3"].sample is not None
    found = ROWS["lemma-3"].sample(seed)
    assert found.verdict is HELD and found.left == pytest.approx(found.right, rel=3e-8)
    assert found.left < found.right and "c dk/dgamma" in found.reason


@pytest.mark.parametrize(
    ("status", "objective", "told"),
    [
        (Status.INFEASIBLE, None, "P1 has no solution: not every job can finish"),
        (Status.FEASIBLE, 11.0, "the optimum of P1 is not known"),
        (Status.OPTIMAL, None, "the optimum of P1 is not known"),
    ],
)
def test_p1_that_is_not_solved(
    status: Status, objective: float | None, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(colgen, "solve_colgen", lambda *_: SimpleNamespace(status=status, objective=objective))
    for claim in ("equivalence", "equivalence-repaired"):
        assert of(claim, {}) == not_applicable(told)


def test_the_optima_of_p1_and_p2(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def solve(instance: Any, options: Any) -> Any:
        asked.append((instance.all_jobs_must_finish, options.threads, options.work_limit))
        return SimpleNamespace(status=Status.OPTIMAL, objective=11.0)

    monkeypatch.setattr(colgen, "solve_colgen", solve)
    printed, repaired = of("equivalence", {}), of("equivalence-repaired", {})
    assert (printed.verdict, printed.left, printed.right) == (REFUTED, 12.0, 11.0)
    assert (repaired.verdict, repaired.left, repaired.right) == (HELD, 11.0, 12.0)
    assert asked == [(True, 1, guarantees.P1_WORK)] * 2
    assert "P2" in of("equivalence", {}, optimum=None).reason


def chain(monkeypatch: pytest.MonkeyPatch, cru: Any, nodes: int = 0) -> tuple[Evaluation, Evaluation]:
    """Theorem 3 as printed and with <=, for CRU^1..CRU^(n+1); a text is why there are none."""
    monkeypatch.setattr(hadare_guarantees, "_too_long", lambda *_: cru if isinstance(cru, str) else None)
    speed = np.ones((1, max(nodes, 1)))
    monkeypatch.setattr(hadare_guarantees, "_work_and_speed", lambda _: (np.ones(1), speed))
    monkeypatch.setattr(hadare_guarantees, "utilisation_by_copies", lambda work, speed, copies: list(cru[:copies]))
    return of("theorem-3", {}), of("theorem-3-weak", {})


def test_theorem_3_says_which_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    printed, weak = chain(monkeypatch, [0.25, 0.5, 0.5], 2)  # two nodes: one copy below two
    assert (printed.verdict, printed.left, printed.right) == (HELD, 0.25, 0.5)
    assert (weak.verdict, weak.left, weak.right) == (HELD, 0.25, 0.5)
    assert printed.reason == "CRU^1 = 0.25 has to be less than CRU^2 = 0.5"
    printed, weak = chain(monkeypatch, [0.5, 0.5, 0.5], 2)
    assert (printed.verdict, weak.verdict) == (REFUTED, HELD)
    printed, weak = chain(monkeypatch, [0.25, 0.75, 0.5, 0.5], 3)
    assert printed.reason == "CRU^2 = 0.75 has to be less than CRU^3 = 0.5"
    assert (weak.verdict, weak.left, weak.right) == (REFUTED, 0.75, 0.5)
    printed, weak = chain(monkeypatch, [0.25, 0.375, 0.5, 0.625], 3)
    assert printed == weak == Evaluation(REFUTED, 0.625, 0.5, "CRU^3 = 0.5 has to equal CRU^4 = 0.625")
    assert chain(monkeypatch, "too long") == (not_applicable("too long"),) * 2


def test_what_is_not_simulated_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    for slots, told in ((2000.0, False), (2000.5, True)):
        why = hadare_guarantees._too_long(np.array([slots, slots]), np.array([[2.0, 4.0], [2.0, 4.0]]))
        assert (why is not None) == told
    monkeypatch.setattr(hadare_guarantees, "LONGEST_CHAIN", 0)
    for claim in ("theorem-3", "theorem-3-weak", "corollary", "corollary-busy"):
        assert "0 slots of work" in of(claim, {}).reason
    monkeypatch.undo()
    monkeypatch.setattr(hadare_guarantees, "fork", lambda *_: SimpleNamespace(busy=[1.0], rounds={}))
    for claim in ("corollary", "corollary-busy"):
        assert of(claim, {}) == not_applicable("everything is done in one round")
