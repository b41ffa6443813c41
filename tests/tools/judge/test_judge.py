"""Which claims a method has, and what a judgement tells."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from support.toy import toy

from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.judging.judge import evaluate, finite, guarantees_of, judge
from schedgap.catalogue.agreement import Agreement
from schedgap.catalogue.problem import Problem
from schedgap.catalogue.registry import find_method
from schedgap.heuristics.common.guarantee import Assumption, Case, Evaluation, Guarantee, Measured, Verdict, at_most


def with_rows(*rows: Guarantee) -> Problem:
    problem = toy()
    problem.rows = rows
    return problem


def test_a_method_has_the_claims_about_its_runs_the_printed_ones_first() -> None:
    base = toy().guarantees()[0]
    repaired, printed = replace(base, id="ours", kind="repaired"), replace(base, id="theirs")
    others = (
        replace(base, id="other", method="shuffled"),
        replace(base, id="measured", measure=lambda _: Measured({}, "")),
        replace(base, id="sampled", sample=lambda _: at_most(0, 1)),
    )
    problem = with_rows(repaired, *others, printed)
    assert [g.id for g in guarantees_of(problem, "list")] == ["theirs", "ours"]
    assert [g.id for g in guarantees_of(problem, "shuffled")] == ["other"]


def test_a_run_is_judged_with_all_its_options_and_what_is_proven() -> None:
    problem = toy()
    instance = workload_of(problem).trials()["random"](0)[0]
    seen: list[Case] = []

    def claim(case: Case):  # type: ignore[no-untyped-def]
        seen.append(case)
        return at_most(3.0, 2.0, "three and two")

    row = replace(problem.guarantees()[0], evaluate=claim, ratio_bound=lambda case: math.inf)
    problem = with_rows(row)
    known = Agreement(optimum=10.0, bound=9.0, infeasible=False, contradictions=())
    (told,) = judge(problem, find_method(problem, "list"), {"machines": 1}, instance, 12.0, {"m": 1}, known)
    assert seen[0] == Case(instance, 12.0, {"m": 1}, 10.0, 9.0, {"machines": 1})
    assert (told.verdict, told.ratio_bound) == (Verdict.REFUTED, math.inf)
    data = json.loads(json.dumps(told.to_dict(), allow_nan=False))
    assert data["verdict"] == "refuted" and data["ratio_bound"] == "inf" and data["reason"] == "three and two"
    assert (data["left"], data["right"], data["outside"], data["kind"]) == (3.0, 2.0, "", "printed")
    assert judge(problem, find_method(problem, "shuffled"), {}, instance, 12.0, {}, known) == ()


def test_outside_of_an_assumption_there_is_no_bound_on_the_ratio() -> None:
    base = toy().guarantees()[0]
    instance = workload_of(toy()).trials()["random"](0)[0]
    row = replace(base, assumptions=(Assumption("never", lambda _: "not here"),))
    told = evaluate(row, Case(instance, 1.0, {}, 1.0, 1.0))
    assert told.verdict is Verdict.NOT_APPLICABLE and told.ratio_bound is None
    assert told.to_dict()["outside"] == "never" and told.to_dict()["reason"] == "not here"
    assert evaluate(replace(base, ratio_bound=None), Case(instance, 1.0, {}, 1.0, 1.0)).ratio_bound is None
    assert evaluate(base, Case(instance, 1.0, {}, 1.0, 1.0)).ratio_bound == 1.0


def test_infinity_is_a_word_in_json() -> None:
    assert [finite(v) for v in (None, 1.5, math.inf, -math.inf)] == [None, 1.5, "inf", "-inf"]


def test_a_bound_on_the_ratio_stands_only_beside_a_claim_that_says_something_here() -> None:
    case = Case(workload_of(toy()).trials()["random"](0)[0], 1.0, {}, 1.0, 1.0, {})
    base = replace(toy().guarantees()[0], assumptions=(), ratio_bound=lambda _: 2.0)
    for found, bound in (
        (Evaluation(Verdict.HELD), 2.0),
        (Evaluation(Verdict.NOT_APPLICABLE, 1.0, 2.0), 2.0),
        (Evaluation(Verdict.NOT_APPLICABLE), None),
    ):
        assert evaluate(replace(base, evaluate=lambda _, found=found: found), case).ratio_bound == bound


def test_numbers_that_json_cannot_hold() -> None:
    assert [finite(x) for x in (None, 0.5, math.inf, -math.inf)] == [None, 0.5, "inf", "-inf"]
