"""Schedules that break nothing but the horizon: their ratio is to a bound on schedules of any length."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import gpu_sharing as sharing_oracle
from oracles import rar_ddls as rings_oracle

import schedgap
from schedgap.benchmarks.instances import make_instance
from schedgap.benchmarks.instances.gpu_sharing.random import ample_horizon as ample_for_sharing
from schedgap.benchmarks.instances.rar_ddls.horizons import ample_horizon
from schedgap.catalogue.agreement import Agreement
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import Disagreement
from schedgap.tools.evaluation.card import Card, Trial
from schedgap.tools.evaluation.contained import Bounds, Contained
from schedgap.tools.evaluation.own_length import ratio_at_own_length

RINGS, SHARING, HADAR = (find_problem(name) for name in ("rar-ddls", "gpu-sharing", "hadar"))


def _within(instance: Any, slots: int) -> Any:
    return instance.model_copy(update={"horizon": slots})


@pytest.mark.parametrize("seed", range(12))
def test_no_bound_of_any_length_is_above_the_optimum_without_a_horizon(seed: int) -> None:
    """Rings, by brute force: whatever is true of the schedules within a horizon, tight, impossible or ample."""
    instance = rings_oracle.random_tiny(np.random.default_rng(seed), contended=seed % 2 == 1)
    slots = ample_horizon(instance)
    found = None if slots is None else rings_oracle.brute_force(_within(instance, slots))
    if found is None:
        return
    optimum = found[0]
    used = 0
    for horizon in range(1, optimum + 3):
        one = _within(instance, horizon)
        # within a horizon that is too short every number is a bound on all schedules: there is none
        for proven in (None, float(optimum)) if horizon >= optimum else (None, 1e6):
            bound = RINGS.bound_of_any_length(one, proven)
            assert bound is not None and bound <= optimum, (horizon, proven)
            used += bound == optimum
    assert used >= 3  # of the three horizons that reach it at least: what is proven is used


@pytest.mark.parametrize("seed", range(8))
def test_a_bound_on_the_mean_jct_does_not_read_the_horizon(seed: int) -> None:
    instance = make_instance(SHARING, "tiny", seed, {"jobs": 3, "gpus": 2, "slots": 3, "arrivals": 2})
    optimum = sharing_oracle.brute_force(_within(instance, ample_for_sharing(instance)))
    bounds = {SHARING.bound_of_any_length(_within(instance, slots), 1e6) for slots in (1, 5, 60)}
    (bound,) = bounds  # nor what is proven within it
    assert optimum is None or (bound is not None and bound <= optimum + 1e-9)


def test_where_the_horizon_is_part_of_the_problem_nothing_is_known() -> None:
    instance = make_instance(HADAR, "tiny", 0, {})
    assert HADAR.lengthened(instance) is None and HADAR.bound_of_any_length(instance, 5.0) is None


BODY = """
def longest(instance, *, seed):
    starts, places, now = {}, {}, START
    for job in instance.jobs:
        need, place = job.gpus, {}
        for server in instance.servers:
            take = min(need, server.gpus)
            place.update({server.id: take} if take else {})
            need -= take
        starts[job.id], places[job.id] = now, place
        now += STEP
    return {"start": starts, "placement": places}
"""


def test_only_a_schedule_that_breaks_nothing_else_is_judged_at_its_own_length(tmp_path: Path) -> None:
    instance = make_instance(RINGS, "tiny", 0, {})
    (tmp_path / "long.py").write_text(BODY.replace("START", "1").replace("STEP", "40"))
    (tmp_path / "beside.py").write_text(BODY.replace("START", "0").replace("STEP", "40"))
    bounds = Bounds(seconds=300.0, memory=1 << 30, warm=False)
    with Contained(f"{tmp_path / 'long.py'}:longest", RINGS, bounds) as one:
        judged = one.judged(instance, 0)
    assert judged.failure == "infeasible" and judged.objective is None and judged.solution is not None
    longer = RINGS.lengthened(instance)
    assert longer is not None
    report = schedgap.check(longer, judged.solution)
    assert report.feasible and report.objective == Fraction(judged.own_length or 0) > instance.model_dump()["horizon"]
    with Contained(f"{tmp_path / 'beside.py'}:longest", RINGS, bounds) as other:
        wrong = other.judged(instance, 0)
    assert wrong.failure == "infeasible" and wrong.own_length is None and wrong.looks is not None


def test_a_card_counts_what_is_only_too_long_and_says_so() -> None:
    instance = make_instance(RINGS, "tiny", 0, {})
    known = Agreement(4.0, 4.0, False, ())
    fine = Trial("tiny", 0, instance, 5.0, "", "", 0.5, known, {})
    late = Trial("tiny", 1, instance, None, "infeasible", "late", 0.5, known, {}, (), 16.0, 4.0)
    lost = Trial("tiny", 2, instance, None, "none", "", 0.5, known, {})
    card = Card("mine.py:f", RINGS, 0, [fine, late, lost])
    data = json.loads(json.dumps(card.to_dict(), allow_nan=False))
    assert card.score == pytest.approx((0.8 + 0.25 + 0.0) / 3) and data["feasible"] == 1
    assert (data["too_long"]["instances"], data["too_long"]["count"], data["too_long"]["mean"]) == (1, 1, 4.0)
    assert [one["too_long"] for one in data["trials"]] == [None, {"objective": 16.0, "ratio": 4.0}, None]
    assert "only too long: 1 instance, where nothing but the horizon is broken; ratio there 4.000" in card.to_text()
    unknown = replace(card, trials=[replace(late, own_ratio=None), lost])
    assert unknown.score == 0 and "ratio there unknown; in the score" in unknown.to_text()
    assert "only too long" not in replace(card, trials=[fine, lost]).to_text()


def test_better_than_any_length_allows_is_a_defect_of_ours() -> None:
    instance = make_instance(RINGS, "tiny", 0, {})
    bound = RINGS.bound_of_any_length(instance, None)
    assert bound is not None
    assert ratio_at_own_length(RINGS, instance, "mine", 2 * bound, None) == 2.0
    assert ratio_at_own_length(RINGS, instance, "mine", None, None) is None
    with pytest.raises(Disagreement, match=r"mine has .* better than .*, at any length"):
        ratio_at_own_length(RINGS, instance, "mine", bound - 1, None)
