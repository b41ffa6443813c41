"""The rules of the laboratory's verdicts: data that must flip each of them, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from schedgap.benchmarks.intervals import interval, plus_minus, prediction
from schedgap.tools.laboratory.data import Data
from schedgap.tools.laboratory.declare import MAIN, Choice, Claim, Item, Series
from schedgap.tools.laboratory.rules import (
    Agrees,
    All,
    Fact,
    LeadGrows,
    Less,
    MeanRatio,
    More,
    Rule,
    Some,
    State,
    Trend,
    Turns,
    Value,
    Within,
)
from schedgap.tools.laboratory.verdicts import Verdict, judge, verdict_of

HOLDS, FAILS, UNDECIDED = State.HOLDS, State.FAILS, State.UNDECIDED


def data(choice: str = MAIN, **series: Sequence[float | None]) -> Data:
    """Draws of metric "m" by series; ``a_2`` is series "a" at x = 2."""
    found: dict[tuple[str, Any, str], list[dict[str, Any]]] = {}
    for name, values in series.items():
        label, _, at = name.partition("_")
        found[choice, int(at) if at else None, label] = [{"m": value} for value in values]
    return Data(found, range(max(len(values) for values in series.values())), choice)


def at(series: str, *points: int) -> tuple[Value, ...]:
    return tuple(Value("m", series, point) for point in points)


A, B = Value("m", "a"), Value("m", "b")
LOW, HIGH, WIDE = [1.0, 1.1, 0.9], [2.0, 2.1, 1.9], [0.0, 3.0, 1.0]


@pytest.mark.parametrize(
    ("rule", "holds", "fails", "undecided"),
    [
        (Less(A, B), {"a": LOW, "b": HIGH}, {"a": HIGH, "b": LOW}, {"a": WIDE, "b": LOW}),
        (More(A, B), {"a": HIGH, "b": LOW}, {"a": LOW, "b": HIGH}, {"a": WIDE, "b": LOW}),
        (Less(A, B), {"a": LOW, "b": HIGH}, {"a": LOW, "b": LOW}, {"a": [None] * 3, "b": LOW}),
        (
            Trend(at("a", 1, 2, 3)),
            {"a_1": [9.0, 9.1], "a_2": [5.0, 5.1], "a_3": [1.0, 1.1]},
            {"a_1": [9.0, 9.1], "a_2": [1.0, 1.1], "a_3": [5.0, 5.1]},
            {"a_1": [9.0, 9.1], "a_2": [5.0, 5.1], "a_3": [5.0, 5.0]},
        ),
        (
            Trend(at("a", 1, 2), falling=False),
            {"a_1": [1.0, 1.1], "a_2": [5.0, 5.1]},
            {"a_1": [5.0, 5.1], "a_2": [1.0, 1.1]},
            {"a_1": [1.0, 1.1], "a_2": [1.0, 2.0]},
        ),
        (
            Trend(at("a", 1, 2, 3), falling=False, end=1.0),
            {"a_1": [0.5, 0.51], "a_2": [1.0, 1.0], "a_3": [1.0, 1.0]},
            {"a_1": [1.0, 1.0], "a_2": [1.0, 1.0], "a_3": [1.0, 1.0]},
            {"a_1": [0.5, 0.51], "a_2": [0.9, 1.0], "a_3": [1.0, 1.0]},
        ),
        (
            Turns(at("a", 1, 2, 3, 4)),
            {"a_1": [9.0, 9.1], "a_2": [5.0, 5.1], "a_3": [7.0, 7.1], "a_4": [3.0, 3.1]},
            {"a_1": [9.0, 9.1], "a_2": [7.0, 7.1], "a_3": [5.0, 5.1], "a_4": [3.0, 3.1]},
            {"a_1": [9.0, 9.1], "a_2": [5.0, 5.1], "a_3": [5.0, 6.0], "a_4": [3.0, 3.1]},
        ),
        (
            LeadGrows((at("a", 1)[0], at("b", 1)[0]), (at("a", 2)[0], at("b", 2)[0])),
            {"a_1": LOW, "b_1": HIGH, "a_2": LOW, "b_2": [5.0, 5.1, 4.9]},
            {"a_1": LOW, "b_1": [5.0, 5.1, 4.9], "a_2": LOW, "b_2": HIGH},
            {"a_1": LOW, "b_1": HIGH, "a_2": WIDE, "b_2": HIGH},
        ),
        (
            LeadGrows((at("a", 1)[0], at("b", 1)[0]), (at("a", 2)[0], at("b", 2)[0]), gain=True),
            {"a_1": HIGH, "b_1": LOW, "a_2": [5.0, 5.1, 4.9], "b_2": LOW},
            {"a_1": [5.0, 5.1, 4.9], "b_1": LOW, "a_2": HIGH, "b_2": LOW},
            {"a_1": HIGH, "b_1": LOW, "a_2": WIDE, "b_2": LOW},
        ),
        (Within(A, 0.5, 1.5), {"a": LOW}, {"a": HIGH}, {"a": WIDE}),
        (Within(A, high=1.5), {"a": LOW}, {"a": HIGH}, {"a": WIDE}),
        (Within(A, low=1.5), {"a": HIGH}, {"a": LOW}, {"a": WIDE}),
        (Within(A, 0.3, 0.7, over=B), {"a": LOW, "b": HIGH}, {"a": HIGH, "b": LOW}, {"a": WIDE, "b": HIGH}),
        (Within(A, -0.5, 0.5, minus=B), {"a": LOW, "b": LOW}, {"a": HIGH, "b": LOW}, {"a": WIDE, "b": LOW}),
        (Agrees(A, B, 0.5), {"a": LOW, "b": HIGH}, {"a": HIGH, "b": LOW}, {"a": LOW[:1], "b": HIGH[:1]}),
        (
            Agrees(A, B, 0.1, to=0.3),
            {"a": LOW, "b": [4.1, 4.0, 3.9]},
            {"a": LOW, "b": HIGH},
            {"a": LOW[:1], "b": LOW[:1]},
        ),
        (Agrees(A, None, 1.0, averaged=3), {"a": LOW}, {"a": HIGH}, {"a": LOW[:1]}),
        (Agrees(A, None, 1.0), {"a": LOW}, {"a": HIGH}, {"a": LOW[:1]}),
        (
            All((Less(A, B), Within(A, high=1.5)), "both"),
            {"a": LOW, "b": HIGH},
            {"a": HIGH, "b": [9.0, 9.1, 8.9]},
            {"a": LOW, "b": WIDE},
        ),
        (
            Some((Less(A, B), Within(A, high=1.5)), "either"),
            {"a": HIGH, "b": [9.0, 9.1, 8.9]},
            {"a": HIGH, "b": LOW},
            {"a": HIGH, "b": [0.0, 6.0, 2.0]},
        ),
        (
            Agrees(MeanRatio("m", "a", "b", (1, 2)), None, 0.75),
            {"a_1": LOW, "b_1": HIGH, "a_2": HIGH, "b_2": HIGH},
            {"a_1": LOW, "b_1": HIGH, "a_2": LOW, "b_2": HIGH},
            {"a_1": LOW[:1], "b_1": HIGH[:1], "a_2": LOW[:1], "b_2": HIGH[:1]},
        ),
        (
            Fact("is a small?", lambda found: (found.draws("a")[0]["m"] < 1.5 if found.draws("a") else None, "")),
            {"a": LOW},
            {"a": HIGH},
            {"a": []},
        ),
    ],
)
def test_data_flips_every_rule(
    rule: Rule, holds: dict[str, Any], fails: dict[str, Any], undecided: dict[str, Any]
) -> None:
    assert rule.judge(data(**holds)).state is HOLDS
    assert rule.judge(data(**fails)).state is FAILS
    assert rule.judge(data(**undecided)).state is UNDECIDED


def test_counts_and_alternatives_are_told() -> None:
    found = data(a=LOW, b=HIGH)
    assert All((Less(A, B), More(A, B)), "both").judge(found).evidence == "1 hold, 1 fail"
    assert Some((Less(A, B, "first"),), "one").judge(found).evidence.startswith("first: -1.0")


def test_differences_are_paired() -> None:
    """Draws differ far more than methods do; draw by draw the order is clear."""
    base = [1.0, 10.0, 100.0, 1000.0]
    found = data(a=base, b=[value + 1 + 0.1 * k for k, value in enumerate(base)])
    assert Less(A, B).judge(found).state is HOLDS


def test_a_printed_ratio_is_held_against_ours() -> None:
    found = data(a=LOW, b=HIGH)
    assert "0.5: agrees" in Less(A, B, printed=0.5).judge(found).evidence
    assert "0.9: does not agree" in Less(A, B, printed=0.9).judge(found).evidence


def test_a_printed_number_is_a_draw_and_agrees_however_many_draws_there_are() -> None:
    """Draws of the paper's own distribution: 95 in 100 of its numbers agree, and none far outside does."""
    rng = np.random.default_rng(5)
    ours = rng.normal(0.7, 0.1, 400)
    assert interval(ours).half < 0.02, "no printed number could lie in the interval of the mean"  # type: ignore[union-attr]
    found = data(a=ours.tolist(), b=[1.0] * 400)
    agree = [Agrees(A, B, printed).judge(found).state is HOLDS for printed in rng.normal(0.7, 0.1, 400)]
    assert 0.92 <= np.mean(agree) <= 0.98
    assert "agrees" in Less(A, B, printed=0.85).judge(found).evidence
    assert Agrees(A, B, 1.2).judge(found).state is FAILS and Agrees(A, B, 0.2).judge(found).state is FAILS
    assert "does not agree" in Less(A, B, printed=1.2).judge(found).evidence
    assert Agrees(A, B, 0.95, to=1.0).judge(found).state is FAILS
    means = rng.normal(0.7, 0.1, (400, 3)).mean(axis=1)
    apart = [Agrees(A, B, printed, averaged=3).judge(found).state is HOLDS for printed in means]
    assert 0.92 <= np.mean(apart) <= 0.98, "a mean of three draws has a narrower interval of its own"
    assert Agrees(A, B, 0.85, averaged=3).judge(found).state is FAILS


def test_a_prediction_is_worked_out_by_hand() -> None:
    """t(0.975, 2) = 4.3027, s = 0.1: one more draw within 4.3027 * 0.1 * sqrt(1 + 1/3) of 1."""
    one, three = (prediction(np.array(LOW), averaged) for averaged in (1, 3))
    assert one is not None and one.half == pytest.approx(0.49683, rel=1e-4)
    assert three is not None and three.half == pytest.approx(0.35131, rel=1e-4)
    assert prediction(np.array([np.nan])) is None


def test_where_every_method_is_at_the_bound_no_lead_is_asked_for() -> None:
    ratios = (Value("m", "r"), Value("m", "s"))
    tied = {"a": LOW, "b": LOW}
    at_bound = data(**tied, r=[1.0, 1.0, 1.0], s=[1.0, 1.0 + 1e-9, 1.0])
    assert More(A, B, ratios=ratios).judge(at_bound).state is State.NOTHING
    for left in ([1.0, 1.01, 1.0], [1.0, None, 1.0]):
        assert More(A, B, ratios=ratios).judge(data(**tied, r=[1.0] * 3, s=left)).state is FAILS
    assert All((More(A, B, ratios=ratios), Within(A, high=1.5)), "both").judge(at_bound).state is HOLDS
    assert All((More(A, B, ratios=ratios),), "all").judge(at_bound).state is State.NOTHING


def test_unfinished_runs_enter_no_mean() -> None:
    found = interval(data(a=[1.0, None, 3.0]).values("m", "a"))
    assert found is not None
    assert (found.mean, found.count) == (2.0, 2)
    assert found.half == pytest.approx(12.7062, rel=1e-4)  # t(0.975, 1) sqrt(2) / sqrt(2)
    assert interval(data(a=[None, None]).values("m", "a")) is None
    assert plus_minus(interval(data(a=[5.0]).values("m", "a"))) == "5.000"


@pytest.mark.parametrize(
    ("states", "verdict"),
    [
        ([HOLDS, HOLDS], Verdict.REPRODUCES),
        ([HOLDS, FAILS], Verdict.PARTLY),
        ([HOLDS, UNDECIDED], Verdict.PARTLY),
        ([FAILS, FAILS], Verdict.NOT),
        ([FAILS, UNDECIDED], Verdict.NOT),
        ([UNDECIDED, UNDECIDED], Verdict.UNDECIDED),
        ([], Verdict.UNDECIDED),
        ([HOLDS, State.NOTHING], Verdict.REPRODUCES),
        ([FAILS, State.NOTHING], Verdict.NOT),
        ([State.NOTHING], Verdict.UNDECIDED),
    ],
)
def test_the_verdict_follows_from_the_parts(states: list[State], verdict: Verdict) -> None:
    assert verdict_of(states) is verdict


def test_a_verdict_says_what_it_depends_on() -> None:
    item = Item(
        "one",
        "One",
        series=(Series("a", "m"), Series("b", "m")),
        choices=(Choice("other"), Choice("third"), Choice("unasked")),
        claims=(Claim("a below b", "I", (Less(A, B),), choices=("other", "third")),),
    )
    found = {**data(a=LOW, b=HIGH).found, **data("other", a=HIGH, b=LOW).found, **data("third", a=LOW, b=HIGH).found}
    (judged,) = judge(item, Data(found, range(3)))
    assert judged.verdict is Verdict.REPRODUCES
    assert judged.depends_on == ("other",)
    assert judged.text == "reproduces (depends on: other)"
    assert not judged.undecided
