"""One claim on one case: its verdict at the edge, how tight it is, and what is shown outside of its assumptions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schedgap.heuristics.common.guarantee import Assumption, Case, Evaluation, Guarantee, Verdict, at_most


@pytest.mark.parametrize(
    ("left", "right", "held"),
    [
        (1.0, 1.0, True),
        (0.0, 0.0, True),
        (1.0 + 0.9e-9, 1.0, True),
        (1.0 + 1.2e-9, 1.0, False),
        (1e6 + 0.9e-3, 1e6, True),
        (1e6 + 1.2e-3, 1e6, False),
        (-1e6, -1e6 - 0.9e-3, True),
        (-1e6, -1e6 - 1.2e-3, False),
        (1e-30, 0.0, False),
        (1e-12, 0.5e-12, False),
        (1e-12, 1e-12 - 0.9e-21, True),
        (1e-12, 1e-12 - 1.2e-21, False),
        (float("inf"), 1.0, False),
        (1.0, float("inf"), True),
        (float("inf"), float("inf"), True),
        (float("nan"), 1.0, False),
        (2.0, 3.0, True),
        (3.0, 2.0, False),
    ],
)
def test_a_claim_holds_up_to_rounding(left: float, right: float, held: bool) -> None:
    found = at_most(left, right, "why")
    assert found.verdict is (Verdict.HELD if held else Verdict.REFUTED)
    assert repr((found.left, found.right, found.reason)) == repr((left, right, "why"))


def test_the_rounding_of_what_was_subtracted_is_no_refutation() -> None:
    base = 1e6
    left = 0.1 - ((base + 0.1) - base)  # 2e-11, the rounding of the sum
    assert left > 0 and at_most(left, 0.0).verdict is Verdict.REFUTED
    found = at_most(left, 0.0, size=base)
    assert found.verdict is Verdict.HELD and found.size == base
    assert at_most(0.9e-3, 0.0, size=base).verdict is Verdict.HELD
    assert at_most(1.2e-3, 0.0, size=base).verdict is Verdict.REFUTED
    assert at_most(2e-3, 1.0, size=base).smallest_factor == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("left", "right", "tightness"),
    [
        (1.0, 2.0, 0.5),
        (3.0, 2.0, 1.5),
        (1.0, 0.0, float("inf")),
        (0.0, 0.0, None),
        (-1.0, 0.0, None),
        (-1.0, -2.0, float("inf")),
        (-2.0, -1.0, None),
        (None, 1.0, None),
        (1.0, None, None),
    ],
)
def test_how_tight_a_claim_is(left: float | None, right: float | None, tightness: float | None) -> None:
    assert Evaluation(Verdict.HELD, left, right).tightness == tightness


@pytest.mark.parametrize(
    ("left", "right", "factor"),
    [
        (1.0, 2.0, 0.5 - 0.5e-9),
        (1e6, 2e6, 0.5 - 0.5e-9),
        (1e-12, 1e-12, 1 - 1e-9),
        (0.0, 2.0, 0.0),
        (-1e6, 2.0, 0.0),
        (1.0, 0.0, 0.0),
        (1.0, -1.0, 0.0),
        (None, 1.0, 0.0),
        (1.0, None, 0.0),
    ],
)
def test_the_smallest_constant_that_is_not_refuted(left: float | None, right: float | None, factor: float) -> None:
    found = Evaluation(Verdict.HELD, left, right).smallest_factor
    assert found == pytest.approx(factor, rel=1e-12)


def test_what_is_shown_outside_of_the_assumptions() -> None:
    shown = Assumption("shown", lambda _: "outside of it", shown=True)
    hidden = Assumption("hidden", lambda _: "far outside", shown=False)
    inside = Assumption("inside", lambda _: None)
    case = Case(None, None, {}, None, None)
    base = Guarantee("id", "toy", "ours", "3 <= 2", (), evaluate=lambda _: at_most(3.0, 2.0), ratio_bound=lambda _: 2.0)
    assert base.on(case).verdict is Verdict.REFUTED
    assert replace(base, assumptions=(inside,)).on(case).verdict is Verdict.REFUTED
    outside = Evaluation(Verdict.NOT_APPLICABLE, reason="outside of it", outside="shown")
    assert replace(base, assumptions=(inside, shown)).on(case) == outside
    assert replace(base, assumptions=(inside, shown)).on(case, sides=True) == replace(outside, left=3.0, right=2.0)
    assert replace(base, assumptions=(shown, hidden)).on(case, sides=True) == outside
    assert replace(base, assumptions=(shown,), ratio_bound=None).on(case, sides=True) == outside
    assert replace(base, assumptions=(shown, inside)).needs_text == "shown; inside"
