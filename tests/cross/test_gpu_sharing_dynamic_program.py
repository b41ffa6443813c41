"""The dynamic program of gpu-sharing's cp, against a brute force, with any prices, and against CP-SAT on its own."""

from dataclasses import replace

import numpy as np
import pytest
from support.checks import gpu_sharing as check

from schedgap.benchmarks.instances.gpu_sharing.random import contended, small, tiny
from schedgap.benchmarks.studies.brute_force.gpu_sharing import brute_force
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import choices
from schedgap.solvers.exact.gpu_sharing import cp, dynamic_program
from schedgap.solvers.exact.gpu_sharing.dynamic_program import DynamicProgram
from schedgap.solvers.exact.gpu_sharing.lp import all_columns, column_bound
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import NO_DEADLINE, SolveOptions, Status


def instances() -> list[GpuSharingInstance]:
    mixed = [tiny(seed, jobs=4, gpus=3, slots=2, arrivals=3, cap=2, spread=0.2) for seed in range(5, 9)]
    tight = [contended(seed, jobs=4, gpus=2, slots=3, horizon=14) for seed in range(5, 9)]
    return [tiny(seed) for seed in range(8)] + mixed + tight


@pytest.mark.parametrize("instance", instances(), ids=lambda i: i.name)
def test_all_schedules_of_a_sum_are_found(instance: GpuSharingInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing below the optimum, the optimum at it and above, by the LP's prices and by others, which may be any."""
    monkeypatch.setattr(dynamic_program, "STATES", 20_000)
    monkeypatch.setattr(dynamic_program, "_MANY", 3)
    mean = brute_force(instance)
    if mean is None:
        return
    jobs = len(instance.jobs)
    optimum = round(mean * jobs)
    found_choices = choices(instance)
    columns = all_columns(instance, found_choices)
    prices = column_bound(instance, found_choices, columns, NO_DEADLINE, by_mode=True)
    assert prices is not None and prices.value <= optimum
    rng = np.random.default_rng(0)
    # Where alone >= idle no shared GPU costs less than 0, which is all that prices need.
    idle = rng.uniform(0, 1, len(prices.idle))
    others = replace(
        prices,
        idle=idle,
        alone=idle + rng.uniform(-0.4, 0.5, prices.alone.shape) * idle,
        beside=rng.uniform(0, 0.3, prices.beside.shape),
        unspent=rng.uniform(0, 2, len(prices.unspent)),
    )
    zero = {name: 0 * getattr(prices, name) for name in ("idle", "alone", "beside", "unspent")}
    none = replace(prices, **zero)
    for given in (prices, others, none):
        for most in (optimum - 1, optimum, optimum + 2):
            best = Incumbent(MINIMISE, SolveOptions())
            complete, found = DynamicProgram(instance, found_choices, columns, best).search(given, most)
            assert complete
            if most < optimum:
                assert found is None
            else:
                assert found is not None and found.total == optimum
                report = check(instance, found.solution(instance, found_choices))
                assert report.feasible and round(report.objective * jobs) == optimum


def test_the_search_ends_without_a_proof_where_states_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic_program, "STATES", 3)
    instance = tiny(3, jobs=4, gpus=2, cap=2, horizon=20)
    found_choices = choices(instance)
    columns = all_columns(instance, found_choices)
    prices = column_bound(instance, found_choices, columns, NO_DEADLINE, by_mode=True)
    assert prices is not None
    best = Incumbent(MINIMISE, SolveOptions())
    assert DynamicProgram(instance, found_choices, columns, best).search(prices, 1000) == (False, None)


@pytest.mark.parametrize("seed", range(4))
def test_cp_agrees_with_itself_without_the_dynamic_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = small(seed, jobs=6, gpus=3, gang=2, slots=4, horizon=24, arrivals=3)
    one = cp.solve_cp(instance, SolveOptions(threads=1))
    monkeypatch.setattr(cp, "MOST_JOBS", 0)
    other = cp.solve_cp(instance, SolveOptions(threads=1, work_limit=1.0))
    assert one.status is Status.OPTIMAL and "states" not in other.info
    assert other.bound <= one.objective <= other.objective
