"""Rows 001 of the ledger: what holds on samples, and that the samples can refute."""

import pytest

from schedgap.heuristics.comm_contention import guarantees
from schedgap.heuristics.comm_contention.guarantees import GUARANTEES, total_completion
from schedgap.heuristics.common.guarantee import Verdict

BY_ID = {guarantee.id: guarantee for guarantee in GUARANTEES}


@pytest.mark.parametrize("name", [g.id for g in GUARANTEES if g.sample is not None])
def test_comm_contention_claims_hold_on_samples(name: str) -> None:
    sample = BY_ID[name].sample
    assert sample is not None
    for seed in range(6):
        assert sample(seed).verdict is Verdict.HELD


def test_comm_contention_adadual_has_no_constant_ratio() -> None:
    measure = BY_ID["001-adadual-unbounded"].measure
    assert measure is not None
    found = measure(0)
    assert found.values["slope"] > 0.3 and found.values["ratio_100"] > 34.7


def test_comm_contention_a_wrong_threshold_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarantees, "starts_now", lambda size, left, b, eta: size < left[0])
    assert guarantees.best_start(0).verdict is Verdict.REFUTED


def test_comm_contention_pair_by_the_formulas_of_the_paper() -> None:
    b, eta, small, large = 1.0, 0.3, 3.0, 10.0
    t = 2.0
    # case 2, t <= b (M_2 - M_1): T_1 = t + (2 b + eta) M_1, T_2 = T_1 + b (M_2 - M_1 - t / b)
    first = t + (2 * b + eta) * small
    assert total_completion(b, eta, [small, large], [t, 0.0]) == pytest.approx(2 * first + b * (large - small) - t)
