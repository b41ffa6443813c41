"""Lemma 2 of paper 000 for the tightest feasible limit: W_max, rounded up, is that limit."""

from __future__ import annotations

import pytest

from schedgap.benchmarks.instances.rar_ddls.random import contended, tiny
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.heuristics.common.guarantee import Case, Evaluation, Verdict
from schedgap.heuristics.rar_ddls.guarantees import GUARANTEES
from schedgap.heuristics.rar_ddls.sjf_bco import Search, sjf_bco

ROW = next(guarantee for guarantee in GUARANTEES if guarantee.id == "000-lemma-2-tightest")


def _judged(instance: RarDdlsInstance, u: float = 1.0) -> Evaluation:
    run = sjf_bco(instance, u=u)
    return ROW.evaluate(Case(instance, None, run.info, None, None, {}))


@pytest.mark.parametrize("u", [1.0, 1.5])
def test_lemma_2_holds_for_the_tightest_limit(u: float) -> None:
    found = [_judged(draw(seed), u) for draw in (tiny, contended) for seed in range(40)]
    assert {one.verdict for one in found} <= {Verdict.HELD, Verdict.NOT_APPLICABLE}
    assert sum(one.verdict is Verdict.HELD for one in found) >= 60
    assert all(one.left == one.right for one in found if one.verdict is Verdict.HELD)


def test_a_limit_one_higher_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where limits below the tightest but one are refused, the limit found is one too high for its loads."""
    passes = Search.one_pass
    instance = next(tiny(seed) for seed in range(40) if _judged(tiny(seed)).verdict is Verdict.HELD)
    tightest = _judged(instance).left
    assert tightest is not None

    def refuse(search: Search, theta: float, kappa: int, beat: int) -> object:
        return passes(search, theta, kappa, beat) if theta > tightest else None

    monkeypatch.setattr(Search, "one_pass", refuse)
    found = _judged(instance)
    assert found.verdict is Verdict.REFUTED and found.left == tightest + 1
