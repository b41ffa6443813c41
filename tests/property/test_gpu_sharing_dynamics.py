"""Checker, event-driven simulation and slot-by-slot replay agree; overlap counts can always be placed."""

import itertools
import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.gpu_sharing import divisors, fits, load, replay
from support.checks import gpu_sharing as check

from schedgap.benchmarks.instances.gpu_sharing.random import small, tiny
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.gpu_sharing.dynamics import exact_work, iteration_time, tables
from schedgap.formulations.gpu_sharing.gpu_lists import placed
from schedgap.formulations.gpu_sharing.modes import Mode, choices, loss_integers
from schedgap.formulations.gpu_sharing.schedule import simulate
from schedgap.heuristics.gpu_sharing.sharing import sjf_ffs

NEAR_QUARTERS = (4 / 3, 1.3333333333333335, 1.3333333333, 2.0, 1.5, 1.9999999999999998, 1.25)
"""Slowdowns whose losses are quarters, halves, thirds and fifths, or beside them in the last digits."""


def random_solution(instance, rng) -> dict:
    """Any starts, GPUs and accumulation, capacity or not."""
    gpus = [[server.id, i] for server in instance.servers for i in range(server.gpus)]
    return {
        "start": {job.id: int(rng.integers(job.arrival, job.arrival + 6)) for job in instance.jobs},
        "gpus": {
            job.id: [gpus[g] for g in sorted(rng.choice(len(gpus), job.gpus, replace=False).tolist())]
            for job in instance.jobs
        },
        "accumulation": {job.id: int(rng.choice(divisors(job.batch_size))) for job in instance.jobs},
    }


@given(st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_gpu_sharing_three_replays_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    instance = small(seed, jobs=8, gpus=5, gang=3) if seed % 2 else tiny(seed)
    plan = random_solution(instance, rng)
    report = check(instance, plan)
    schedule = simulate(instance, plan)
    assert dict(schedule.completion) == report.details["completion"] == replay(instance, plan)
    flow = sum(schedule.completion[job.id] - job.arrival + 1 for job in instance.jobs)
    assert flow / len(instance.jobs) == pytest.approx(float(report.objective))
    for job in instance.jobs:
        stretches = schedule.stretches[job.id]
        assert stretches[0].first == plan["start"][job.id]
        assert stretches[-1].last == schedule.completion[job.id]
        assert all(a.last + 1 == b.first for a, b in itertools.pairwise(stretches))


def test_gpu_sharing_a_gpu_named_twice_counts_once() -> None:
    instance = tiny(0)
    plan = random_solution(instance, np.random.default_rng(0))
    twice = {**plan, "gpus": {job: [*gpus, gpus[0]] for job, gpus in plan["gpus"].items()}}
    assert simulate(instance, twice) == simulate(instance, plan)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_gpu_sharing_overlap_counts_can_be_placed_again(seed: int) -> None:
    """The counts of a real schedule are enough to rebuild GPU lists with the same completions."""
    instance = small(seed, jobs=12, gpus=6, horizon=200)
    plan = sjf_ffs(instance).solution
    assert plan is not None
    completion = simulate(instance, plan).completion
    names = [job.id for job in instance.jobs]
    sets = [{tuple(g) for g in plan["gpus"][name]} for name in names]
    start, end = [plan["start"][n] for n in names], [completion[n] for n in names]
    counts = {
        (j, k): len(sets[j] & sets[k])
        for j in range(len(names))
        for k in range(j + 1, len(names))
        if max(start[j], start[k]) <= min(end[j], end[k])
    }
    again = placed(instance, start, end, counts, [plan["accumulation"][n] for n in names])
    report = check(instance, again)
    assert report.feasible, report.violations
    assert report.details["completion"] == completion


def test_gpu_sharing_impossible_counts_are_refused() -> None:
    instance = tiny(0, jobs=3, gpus=2)
    with pytest.raises(ValueError, match="leave no"):
        placed(instance, [1, 1, 1], [5, 5, 5], {}, [1, 1, 1])


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_gpu_sharing_tables_fit_the_plain_rules(seed: int) -> None:
    instance = tiny(seed)
    data = tables(instance)
    for j, job in enumerate(instance.jobs):
        assert list(data.steps[j]) == [s for s in divisors(job.batch_size) if fits(instance, [load(job, s)])]
        for s, work in zip(data.steps[j], data.work[j], strict=True):
            assert float(exact_work(job, s, instance.slot_length)) == pytest.approx(work, rel=1e-12)
            assert iteration_time(job, s) > 0
        assert list(data.work[j]) == sorted(data.work[j])


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_gpu_sharing_rounded_losses_admit_exactly_the_real_runs(seed: int) -> None:
    """With the chosen unit, integers say for every multiset of slowed slots what rationals say."""
    instance = tiny(seed)
    found = choices(instance)
    for j, own in enumerate(found.jobs):
        if not own.exact:
            continue
        for mode in own.modes:
            for d in found.slots(j, mode):
                for size in range(d + 1):
                    for chosen in combinations_with_replacement(own.levels, size):
                        real = sum((1 - 1 / exact(x) for x in chosen), Fraction(0)) <= d - mode.work
                        assert (sum(own.loss(x) for x in chosen) <= own.budget(mode, d)) == real


def test_gpu_sharing_losses_without_partners_and_out_of_reach() -> None:
    instance = small(0)
    found = choices(instance)
    assert loss_integers(found.jobs[0].modes, (), 48).exact
    assert not loss_integers(found.jobs[0].modes, tuple(1 + k / 50 for k in range(1, 15)), 48).exact


@given(
    st.lists(st.sampled_from(NEAR_QUARTERS), min_size=1, max_size=2, unique=True),
    st.lists(st.integers(-3, 3), min_size=3, max_size=3),
    st.sampled_from((0, 1, 10**3, 10**8, 10**17)),
)
@settings(max_examples=100, deadline=None)
def test_gpu_sharing_losses_of_17_digits_are_told_apart_by_small_numbers(
    slowdowns: list[float], nudges: list[int], tiny_part: int
) -> None:
    """Budgets are sums of losses, or beside them by as much as these differ from round numbers, or by less."""
    levels = sorted(slowdowns)
    losses = [1 - 1 / exact(x) for x in levels]
    budget = abs(sum((k * loss for k, loss in zip(nudges, losses, strict=False)), Fraction(0)))
    budget += Fraction(1, tiny_part) if tiny_part else 0
    work = 5 - min(budget, Fraction(4))
    own = loss_integers([Mode(1, work, math.ceil(work), 5)], levels, 5)
    assert own.exact
    for size in range(6):
        for chosen in combinations_with_replacement(range(len(levels)), size):
            real = sum((losses[i] for i in chosen), Fraction(0)) <= 5 - work
            assert (sum(own.weights[i] for i in chosen) <= own.limits.get((work, 5), own.scale * (5 - work))) == real
    assert own.scale <= 10**9
