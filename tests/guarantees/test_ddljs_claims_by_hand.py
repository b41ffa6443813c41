"""Both sides of paper 004's claims over the horizon on runs whose numbers are given, worked out by hand."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.heuristics.common.guarantee import Case, Evaluation, Verdict, not_applicable
from schedgap.heuristics.ddljs import guarantees, overload

ROWS = {guarantee.id.removeprefix("004-"): guarantee for guarantee in guarantees.GUARANTEES}
HELD, REFUTED, OPEN = Verdict.HELD, Verdict.REFUTED, Verdict.NOT_APPLICABLE
HALF = {"kind": "sigmoid", "scale": 2.0, "steepness": 1.0, "midpoint": 0.0}
"""Worth 1 before anything runs."""


def instance_of(*utilities: dict[str, Any], horizon: int = 5, arrival: int = 2, servers: int = 1) -> DdljsInstance:
    job = {
        "arrival": arrival,
        "max_workers": 1,
        "bandwidth": 0.0,
        "efficiency": 1.0,
        "demand": {"gpu": 1},
        "budget": {},
    }
    return DdljsInstance.parse(
        {
            "problem": "ddljs",
            "horizon": horizon,
            "servers": [{"id": f"s{k}", "resources": {"gpu": 2}} for k in range(servers)],
            "links": [],
            "jobs": [{**job, "id": f"j{k}", "utility": utility} for k, utility in enumerate(utilities)],
        }
    )


FOUR_SLOTS = instance_of(HALF, HALF)
"""f(0) = 2, and four slots from the first arrival on."""


def of(claim: str, info: dict[str, Any], objective: float | None, optimum: Any, bound: Any = None) -> Evaluation:
    return ROWS[claim].evaluate(Case(FOUR_SLOTS, objective, info, optimum, bound))


@pytest.mark.parametrize(
    ("claim", "info", "left", "base", "factor"),
    [
        ("theorem-6", {"alpha": 0.5}, 15.0, 0.0, 3.0),
        ("theorem-6-sigmoid", {"alpha": 1.0}, 10.0, 0.0, 2.0),
        ("theorem-6-repaired", {}, 5.25, 2.0, 1.75),
        ("theorem-6-alpha", {"alpha": 0.5}, 8.25, 2.0, 2.75),
        ("theorem-6-batch", {}, 3 * 256 / 175, 2.0, 256 / 175),
        ("theorem-6-max-gain", {"gains": [1.0, 2.0, 0.5]}, 4.0, 2.0, None),
        ("theorem-6-last-gain", {"gains": [1.0, 2.0, 0.5]}, 5.5, 2.0, None),
        ("theorem-10", {"gamma": 2}, 35.0, 0.0, 7.0),
    ],
)
def test_claims_on_the_ratio(claim: str, info: dict[str, Any], left: float, base: float, factor: float | None) -> None:
    """ALG is 5, so 3 were gained."""
    found = of(claim, info, 5.0, left + base)
    assert found.verdict is HELD and (found.left, found.right) == pytest.approx((left, left), rel=1e-12)
    assert of(claim, info, 5.0, left + base + 1e-6).verdict is REFUTED
    shown = of(claim, info, 5.0, None, left + base)
    assert shown.verdict is HELD and shown.left == pytest.approx(left) and "upper bound" in shown.reason
    assert of(claim, info, 5.0, None, left + base + 1e-6) == not_applicable(guarantees.UNKNOWN)
    assert of(claim, info, 5.0, None) == not_applicable(guarantees.UNKNOWN)
    assert of(claim, info, None, 9.0) == not_applicable(guarantees.NOTHING)
    told = ROWS[claim].ratio_bound
    if factor is None:
        assert told is None
    else:
        assert told is not None and told(Case(FOUR_SLOTS, 5.0, info, 9.0, None)) == pytest.approx(factor)


def test_there_is_no_factor_without_what_it_is_made_of() -> None:
    empty = Case(FOUR_SLOTS, 5.0, {}, 9.0, None)
    for claim in ("theorem-6", "theorem-6-alpha", "theorem-10"):
        told = ROWS[claim].ratio_bound
        assert told is not None and told(empty) is None


@pytest.mark.parametrize(("slots", "alpha", "factor"), [(1, 1.0, 1.0), (2, 1.0, 1.5), (1, 0.5, 2.0), (2, 0.5, 2.5)])
def test_the_factor_of_greedy(slots: int, alpha: float, factor: float) -> None:
    assert guarantees.greedy_factor(slots, alpha) == factor


def lemma_5(*utilities: dict[str, Any], **changes: Any) -> Evaluation:
    return ROWS["lemma-5"].evaluate(Case(instance_of(*utilities, **changes), None, {}, None, None))


def test_lemma_5_looks_at_the_largest_rise() -> None:
    linear = lemma_5({"kind": "linear", "scale": 3.0})
    assert (linear.verdict, linear.left, linear.right) == (HELD, 3.0, 3.0)
    late = {"kind": "sigmoid", "scale": 1.0, "steepness": 1.0, "midpoint": 2.5}
    worth = [1 / (1 + math.exp(2.5 - x)) for x in range(5)]
    steps = [b - a for a, b in itertools.pairwise(worth)]
    found = lemma_5(late)
    # the gains are 0.106, 0.195, 0.245, 0.195: the second rises most over the one before
    assert found.verdict is REFUTED and (found.left, found.right) == pytest.approx((steps[1], steps[0]))
    assert "worker-slot 2 adds" in found.reason and "job j0" in found.reason
    # a rise counts in the unit of its own job
    mild = {**late, "scale": 1e9, "steepness": 0.01}
    mixed = lemma_5({"kind": "sqrt", "scale": 1e9}, {**late, "scale": 1e-12}, mild)
    assert mixed.verdict is REFUTED and "job j1" in mixed.reason
    assert lemma_5({"kind": "sqrt", "scale": 1.0}, {"kind": "log1p", "scale": 1.0}).verdict is HELD
    assert lemma_5(late, horizon=2) == not_applicable("no job can have two worker-slots")
    assert lemma_5(late, horizon=3).verdict is REFUTED


@pytest.mark.parametrize(
    ("server", "link", "left", "right"),
    [
        (0.5, 0.5, 0.5, 1 - (1 - 1 / 16) ** 5),  # two servers, no links
        (0.1, 0.9, 0.1, 1 - (1 - 1 / 16) ** 5),
    ],
)
def test_the_probability_of_an_overload(
    server: float, link: float, left: float, right: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"server": overload.Overload(server, None), "link": overload.Overload(link, None)}
    monkeypatch.setattr(overload, "likeliest_overloads", lambda _: found)
    told = ROWS["theorem-10-probability"].evaluate(Case(instance_of(HALF, servers=2), None, {}, None, None))
    assert (told.left, told.right) == (left, pytest.approx(right)) and (told.verdict is HELD) == (left <= right)


def test_of_servers_and_links_the_worse_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    data = instance_of(HALF, servers=3).to_dict()
    data["links"] = [{"from": f"s{a}", "to": f"s{b}", "bandwidth": 1} for a in range(3) for b in range(3) if a != b]
    instance = DdljsInstance.parse(data)

    def told(server: float, link: float) -> Evaluation:
        found = {"server": overload.Overload(server, None), "link": overload.Overload(link, None)}
        monkeypatch.setattr(overload, "likeliest_overloads", lambda _: found)
        return ROWS["theorem-10-probability"].evaluate(Case(instance, None, {}, None, None))

    servers, links = 1 - (1 - 3**-4) ** 5, 1 - (1 - 6**-4) ** 5
    assert told(0.5 * servers, 0.6 * links).right == pytest.approx(links)
    assert told(0.7 * servers, 0.6 * links).right == pytest.approx(servers)
    refuted = told(0.99 * servers, 1.01 * links)
    assert refuted.verdict is REFUTED and "a link" in refuted.reason
    assert told(2 * servers, 1.5 * links).right == pytest.approx(servers)
    assert told(0.0, 0.0).verdict is HELD


def test_one_server_may_always_be_overloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"server": overload.Overload(1.0, None), "link": overload.Overload(0.0, None)}
    monkeypatch.setattr(overload, "likeliest_overloads", lambda _: found)
    told = ROWS["theorem-10-probability"].evaluate(Case(instance_of(HALF), None, {}, None, None))
    assert (told.verdict, told.left, told.right) == (HELD, 1.0, 1.0)


def test_what_the_claims_are_about() -> None:
    case = Case(instance_of({**HALF, "midpoint": 2.5}), 5.0, {}, 9.0, None)
    concave = Case(
        instance_of({"kind": "sqrt", "scale": 1.0}, servers=3), 5.0, {"exact": True, "alpha": 1.0}, 9.0, None
    )
    assert guarantees._not_concave(case) and not guarantees._not_concave(concave)
    assert guarantees._all_concave(concave) and not guarantees._all_concave(case)
    assert guarantees._inexact(case) and not guarantees._inexact(concave)
    assert guarantees._no_alpha(case) and not guarantees._no_alpha(concave)
    few = guarantees.THREE.fails
    assert few is not None and few(case) and not few(concave)
    assert guarantees._other_inner(case)
    for inner, inside in (("lp-rs-mde", True), ("lp-rs-mde+", True), ("colgen", False)):
        told = guarantees._other_inner(Case(FOUR_SLOTS, 5.0, {}, 9.0, None, {"inner": inner}))
        assert (told is None) == inside
    assert guarantees._arrivals(case) is None


def test_what_is_shown_outside_and_whose_claims_they_are() -> None:
    """Concave utilities and three servers fail here; both sides are told all the same, without a verdict."""
    late = instance_of({**HALF, "midpoint": 2.5})
    info = {"alpha": 0.5, "gamma": 2, "exact": True, "gains": [1.0]}
    for claim, left, right in (("theorem-6", 9.0, 15.0), ("theorem-10-kept", 9.0, 35.0)):
        told = ROWS[claim].on(Case(late, 5.0, info, 9.0, None, {"inner": "lp-rs-mde"}), sides=True)
        assert (told.verdict, told.left, told.right) == (OPEN, left, right)
    few = ROWS["theorem-10-kept"].on(Case(FOUR_SLOTS, 5.0, info, 9.0, None, {"inner": "lp-rs-mde"}), sides=True)
    assert few.outside == "at least three servers" and few.right == 35.0
    about_the_problem = {"lemma-5", "lemma-5-sigmoid", "theorem-10-probability", "one-cycle", "idle-servers"}
    assert {claim for claim, row in ROWS.items() if row.method is None} == about_the_problem
    assert {claim for claim, row in ROWS.items() if row.method == "gadget-printed"} == {
        "theorem-10",
        "theorem-10-one-rounding",
    }
    assert {row.method for row in ROWS.values()} == {None, "gadget", "gadget-printed"}
