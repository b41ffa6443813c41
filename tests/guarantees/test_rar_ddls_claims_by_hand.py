"""Both sides of paper 000's claims on runs whose numbers are given, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from schedgap.benchmarks.instances.rar_ddls.random import tiny
from schedgap.heuristics.common.guarantee import Case, Evaluation, Verdict, not_applicable
from schedgap.heuristics.rar_ddls import guarantees

ROWS = {guarantee.id.removeprefix("000-"): guarantee for guarantee in guarantees.GUARANTEES}
HELD, REFUTED, OPEN = Verdict.HELD, Verdict.REFUTED, Verdict.NOT_APPLICABLE
PASS = {"theta": 6.0, "W_max": 5.0, "makespan": 12, "phi": 1.5, "l_realised": 0.5, "area": 40.0, "longest": 8.0}
INFO = {
    "bisected": PASS,
    "probe": {**PASS, "phi": 2.0, "l_realised": 0.25},
    "probe_compared": True,
    "returned": "bisected",
    "n_g": 3,
    "N": 4,
    "u": 2.0,
    "l": 0.5,
    "T": 100,
    "rho_hat": [2.0],
}
INSTANCE = tiny(3)


def case_of(objective: float | None = 12.0, optimum: Any = None, bound: Any = None, **info: Any) -> Case:
    return Case(INSTANCE, objective, {**INFO, **info}, optimum, bound, {})


def of(claim: str, objective: float | None = 12.0, optimum: Any = None, bound: Any = None, **info: Any) -> Evaluation:
    return ROWS[claim].evaluate(case_of(objective, optimum, bound, **info))


@pytest.fixture
def constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """phi = 3, u = 2, l = 0.5."""
    monkeypatch.setattr(guarantees, "_paper_constants", lambda _: (3.0, 2.0, 0.5))


@pytest.mark.parametrize(
    ("claim", "objective", "factor"),
    [
        ("theorem-5", 12.0, 3 * 3.0 * 2.0 / 0.5),
        ("theorem-5-gang", 48.0, 3 * 2.0 * 2.0 / 0.5),
        ("theorem-5-repaired", 7.0, 1.75 * 2.0),
    ],
)
def test_claims_on_the_ratio(claim: str, objective: float, factor: float, constants: None) -> None:
    """To the optimum where it is known; a lower bound shows that it holds, never that it fails."""
    optimum = objective / factor
    found = of(claim, objective, optimum)
    assert found.verdict is HELD and (found.left, found.right) == pytest.approx((objective, objective))
    assert of(claim, objective, optimum - 1e-6).verdict is REFUTED
    shown = of(claim, objective, None, optimum)
    assert shown.verdict is HELD and shown.right == pytest.approx(objective) and "lower bound" in shown.reason
    assert of(claim, objective, None, optimum - 1e-6) == not_applicable("the optimum is not known")
    assert of(claim, objective) == not_applicable("the optimum is not known")
    told = ROWS[claim].ratio_bound
    assert told is not None and told(case_of(objective, optimum)) == pytest.approx(factor)
    if claim != "theorem-5":
        assert of(claim, None, optimum) == not_applicable(guarantees.NOTHING)
        assert told(case_of(objective, optimum, probe_compared=False)) is None


def test_theorem_5_is_about_the_pass_as_printed(constants: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of("theorem-5", 99.0, 1.0).left == 12  # whatever was returned
    monkeypatch.setattr(guarantees, "_paper_constants", lambda _: "why not")
    told = ROWS["theorem-5"].ratio_bound
    assert told is not None and told(case_of()) is None


def test_loads_and_limits() -> None:
    printed, repaired = of("lemma-2"), of("lemma-2-repaired")
    assert (printed.verdict, printed.left, printed.right) == (REFUTED, 6.0, 5.0)
    assert (repaired.verdict, repaired.left, repaired.right) == (HELD, 5.0, 6.0)
    equal = {"bisected": {**PASS, "theta": 5.0}}
    assert of("lemma-2", **equal).verdict is HELD
    third = of("lemma-3")
    assert (third.verdict, third.left, third.right) == (HELD, 12, 15.0)
    assert of("lemma-3", n_g=2).verdict is REFUTED


def test_lemma_3_repaired() -> None:
    """Gangs: (2 - 1/4) 2 / 0.25 W_max by the probe's durations; single GPUs: 2 / 0.5 W_max."""
    gangs = of("lemma-3-repaired")
    assert (gangs.left, gangs.right) == (12, 1.75 * 2 / 0.25 * 5)
    assert of("lemma-3-repaired", l=0.125).right == 1.75 * 2 / 0.125 * 5
    single = of("lemma-3-repaired", n_g=1, probe_compared=False)
    assert (single.verdict, single.right) == (HELD, 2 / 0.5 * 5)
    assert of("lemma-3-repaired", n_g=2, probe_compared=False) == not_applicable(guarantees.NO_PROBE)
    assert of("lemma-3-repaired", returned=None) == not_applicable(guarantees.NOTHING)
    other = of("lemma-3-repaired", n_g=1, returned="probe")
    assert other.right == 2 / 0.25 * 5
    assert of("lemma-3-repaired", n_g=1, returned="probe", probe={**PASS, "makespan": 21}).verdict is REFUTED


def test_theorem_5_by_area() -> None:
    found = of("theorem-5-area", 17.5)
    assert (found.verdict, found.left, found.right) == (HELD, 17.5, 1.75 * 10.0)
    assert of("theorem-5-area", 17.6).verdict is REFUTED
    assert of("theorem-5-area", 17.5, probe={**PASS, "area": 8.0}).right == 1.75 * 8.0
    assert of("theorem-5-area", None) == not_applicable(guarantees.NOTHING)


def test_lemma_4(constants: None, monkeypatch: pytest.MonkeyPatch) -> None:
    gangs = [job.gpus for job in INSTANCE.jobs]
    asked: list[Any] = []
    guess = SimpleNamespace(weights=np.array([7]), load=lambda weight: weight / 10)
    monkeypatch.setattr(guarantees, "estimates", lambda *told: (asked.append(told[1:]), guess)[1])
    monkeypatch.setattr(guarantees, "smallest_limit", lambda *told: (asked.append(told), 5)[1])
    monkeypatch.setattr(guarantees, "worst_durations", lambda _: np.array([60.0, 40.0]))
    found = of("lemma-4")
    assert (found.verdict, found.left, found.right) == (HELD, 6.0, 3.0 * 2.0 / 0.5 * 0.5)
    assert asked == [([2.0], 2.0), (gangs, [7], INSTANCE.total_gpus)]
    assert of("lemma-4", bisected={**PASS, "theta": 6.1}).verdict is REFUTED
    assert "too short" in of("lemma-4", T=99).reason
    monkeypatch.setattr(guarantees, "smallest_limit", lambda *_: None)
    assert "did not end" in of("lemma-4").reason
    monkeypatch.setattr(guarantees, "LARGEST_ASSIGNMENT", sum(gangs))
    assert "did not end" in of("lemma-4").reason
    monkeypatch.setattr(guarantees, "LARGEST_ASSIGNMENT", sum(gangs) - 1)
    assert f"here {sum(gangs)}" in of("lemma-4").reason


def test_the_papers_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """phi: the largest worst / best; l: the option, or what l rho <= rho_hat needs."""
    best = SimpleNamespace(best_duration=np.array([2, 4]))
    monkeypatch.setattr(guarantees, "rate_table", lambda _: best)
    monkeypatch.setattr(guarantees, "worst_durations", lambda _: np.array([6.0, 8.0]))
    of_run = guarantees._paper_constants
    assert of_run(case_of(rho_hat=[4.0, 8.0])) == (3.0, 2.0, 0.5)
    assert of_run(case_of(rho_hat=[3.0, 8.0], l=0.9)) == (3.0, 2.0, 0.5)
    assert of_run(case_of(rho_hat=[4.0, 6.0], l=0.9)) == (3.0, 2.0, 4 / 6)
    assert "rho_hat <= u rho" in of_run(case_of(rho_hat=[4.0 * (1 + 1e-11), 8.0]))
    assert of_run(case_of(rho_hat=[4.0 * (1 + 1e-13), 8.0])) == (3.0, 2.0, 0.5)
    monkeypatch.setattr(guarantees, "worst_durations", lambda _: np.array([6.0, np.inf]))
    assert "infinite" in of_run(case_of(rho_hat=[4.0, 8.0]))
    assert "before anything" in of_run(Case(INSTANCE, 1.0, {}, None, None))


def test_what_the_claims_are_about() -> None:
    assert guarantees._printed(case_of()) == PASS and guarantees._printed(case_of(stopped="time limit")) is None
    assert guarantees._no_schedule(case_of(bisected=None)) == guarantees.NO_PRINTED
    assert guarantees._no_schedule(case_of()) is None
    assert guarantees._probe(case_of()) == INFO["probe"] and guarantees._probe(case_of(probe_compared=False)) is None
    assert guarantees._no_probe(case_of(probe=None)) == guarantees.NO_PROBE and guarantees._no_probe(case_of()) is None
    assert guarantees._single_gpus(case_of(n_g=1)) and guarantees._single_gpus(case_of(n_g=2)) is None
    for scale, overhead, inside in ((1.0, 1.0, True), (1.1, 0.5, False), (0.5, 1.1, False), (0.0, 0.0, True)):
        network = SimpleNamespace(contention_scale=scale, server_overhead=overhead)
        why = guarantees._other_network(Case(SimpleNamespace(network=network), None, {}, None, None))  # type: ignore
        assert (why is None) == inside
    for options, inside in (
        ({}, True),
        ({"bisection": "feasible"}, False),
        ({"kappa": 2}, False),
        ({"kappa": None}, True),
    ):
        assert (guarantees._other_bisection(Case(INSTANCE, None, {}, None, None, options)) is None) == inside
    for claim in ("theorem-1", "theorem-6"):
        assert of(claim).verdict is OPEN
