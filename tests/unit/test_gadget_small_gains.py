"""GADGET as published counts every gain above 0, however small it is beside the others of its slot."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from schedgap.catalogue.registry import load_instance
from schedgap.formulations.common.numbers import CHECK_TOLERANCE
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.heuristics.ddljs.gadget import gadget, gadget_printed
from schedgap.heuristics.ddljs.greedy_state import GreedyState
from schedgap.heuristics.ddljs.inner import slot_problem

FILE = Path(__file__).parents[1] / "data" / "gadget-small-gains.json"


@pytest.fixture
def instance() -> DdljsInstance:
    loaded = load_instance(FILE)[1]
    assert isinstance(loaded, DdljsInstance)
    return loaded


def _placed(slot: dict[str, dict[str, object]]) -> set[str]:
    return set(slot["rings"])


@pytest.mark.parametrize("seed", range(3))
def test_a_job_that_gains_next_to_nothing_gets_what_is_free(instance: DdljsInstance, seed: int) -> None:
    run = gadget_printed(instance, seed=seed)
    assert run.solution is not None
    assert [_placed(slot) for slot in run.solution["slots"]] == [{"early", "late"}] * 8
    # of 200, less the 100 / (1 + e^3) that `early` is worth before it runs
    assert sum(run.info["gains"]) == pytest.approx(200.0 - 100 / (1 + math.exp(3.0)), abs=0.01)
    assert all(loads["server"] <= 1 + 2 * CHECK_TOLERANCE for loads in run.info["loads"])


@pytest.mark.parametrize("inner", ["cpsat", "colgen", "greedy", "lp-rs-mde", "lp-rs-mde-printed"])
def test_every_inner_method_counts_it_where_nothing_is_filled(instance: DdljsInstance, inner: str) -> None:
    run = gadget(instance, inner=inner, fill=False)
    assert run.solution is not None
    assert [_placed(slot) for slot in run.solution["slots"]] == [{"early", "late"}] * 8


def test_the_large_gain_goes_first_where_there_is_one_gpu(instance: DdljsInstance) -> None:
    data = instance.to_dict()
    data["servers"] = data["servers"][:1]
    narrow = DdljsInstance.parse(data)
    run = gadget(narrow, inner="cpsat", fill=False)
    assert run.solution is not None
    assert _placed(run.solution["slots"][0]) == {"early"}


def test_later_jobs_are_those_below_the_share_and_above_nothing(instance: DdljsInstance) -> None:
    progress = GreedyState(instance)
    first = slot_problem(progress, progress.active())
    assert (first.jobs, first.later) == ([0], [1])
    second = slot_problem(progress, first.later)
    assert (second.jobs, second.later) == ([1], [])
