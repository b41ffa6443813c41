"""The dynamic program of gpu-sharing's cp, against a brute force, with any prices, and against CP-SAT on its own."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from oracles.gpu_sharing import brute_force
from support.checks import gpu_sharing as check

from schedgap.benchmarks.instances.gpu_sharing.random import contended, small, tiny
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import choices
from schedgap.solvers.exact.gpu_sharing import cp, dynamic_program, lp
from schedgap.solvers.exact.gpu_sharing.dynamic_program import DynamicProgram
from schedgap.solvers.exact.gpu_sharing.lp import all_columns, column_bound
from schedgap.solvers.exact.gpu_sharing.search import OverlapSchedule
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import NO_DEADLINE, SolveOptions, Status


def instances() -> list[GpuSharingInstance]:
    mixed = [tiny(seed, jobs=4, gpus=3, slots=2, arrivals=3, cap=2, spread=0.2) for seed in range(5, 9)]
    tight = [contended(seed, jobs=4, gpus=2, slots=3, horizon=14) for seed in range(5, 9)]
    return [tiny(seed) for seed in range(8)] + mixed + tight


def job(name: str, arrival: int, gpus: int, slots: float, memory: float = 1.0) -> dict[str, Any]:
    """A job that takes so many slots alone."""
    return {
        "id": name,
        "arrival": arrival,
        "gpus": gpus,
        "iterations": 1,
        "batch_size": 1,
        "compute": {"fixed": slots, "per_sample": 0.0},
        "communication": {"latency": 0.0, "per_unit": 0.0, "message": 0.0},
        "overlap": 1.0,
        "memory": {"fixed": memory, "per_sample": 0.0},
    }


def instance_of(jobs: list[dict[str, Any]], gpus: int, slowdown: float = 1.0, **more: Any) -> GpuSharingInstance:
    """All pairs slow each other down by the same."""
    names = [one["id"] for one in jobs]
    data = {
        "problem": "gpu-sharing",
        "horizon": 20,
        "slot_length": 1.0,
        "servers": [{"id": "s", "gpus": gpus}],
        "gpu_memory": 10.0,
        "max_jobs_per_gpu": 2,
        "jobs": jobs,
        "interference": {a: {b: slowdown for b in names if b != a} for a in names},
    }
    return GpuSharingInstance.parse(data | more)


def program_of(instance: GpuSharingInstance, **more: Any) -> tuple[DynamicProgram, lp.ColumnBound]:
    """The program over all runs, and the LP's prices."""
    found_choices = choices(instance)
    columns = all_columns(instance, found_choices)
    prices = column_bound(instance, found_choices, columns, NO_DEADLINE, by_mode=True)
    assert prices is not None
    best = Incumbent(MINIMISE, SolveOptions())
    return DynamicProgram(instance, found_choices, columns, best, **more), prices


def without(prices: lp.ColumnBound) -> lp.ColumnBound:
    """All prices 0."""
    return replace(prices, **{name: 0 * getattr(prices, name) for name in ("idle", "alone", "unshared", "unspent")})


def total(instance: GpuSharingInstance, found: OverlapSchedule) -> int:
    """The sum of JCT."""
    return found.total - sum(one.arrival - 1 for one in instance.jobs)


@pytest.mark.parametrize("instance", instances(), ids=lambda i: i.name)
def test_all_schedules_of_a_sum_are_found(instance: GpuSharingInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing below the optimum, the optimum at it and above, by the LP's prices and by others, which may be any."""
    monkeypatch.setattr(dynamic_program, "STATES", 20_000)
    monkeypatch.setattr(dynamic_program, "_MANY", 3)
    monkeypatch.setattr(dynamic_program, "_PRICED", np.inf)
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
    # Any prices of at least 0 are as valid, also those by which a shared GPU costs less than 0.
    idle = rng.uniform(0, 1, len(prices.idle))
    others = replace(
        prices,
        idle=idle,
        alone=idle + rng.uniform(-0.4, 0.5, prices.alone.shape) * idle,
        unshared=rng.uniform(0, 0.3, prices.unshared.shape),
        unspent=rng.uniform(0, 2, len(prices.unspent)),
    )
    none = without(prices)
    for given in (prices, others, none):
        for most in (optimum - 1, optimum, optimum + 2):
            best = Incumbent(MINIMISE, SolveOptions())
            complete, found = DynamicProgram(instance, found_choices, columns, best).search(given, most)
            assert complete
            if most < optimum:
                assert found is None
            else:
                assert found is not None and total(instance, found) == optimum
                report = check(instance, found.solution(instance, found_choices))
                assert report.feasible and round(report.objective * jobs) == optimum


@pytest.mark.parametrize("seed", [3, 8, 32])
def test_both_jobs_must_afford_what_they_share(seed: int) -> None:
    """The LP decides alone; where only one of two runs had to afford it, it stayed at least a slot below."""
    gpus, slots, horizon = (3, 4, 16) if seed == 8 else (2, 3, 14)
    instance = contended(seed, jobs=4, gpus=gpus, slots=slots, horizon=horizon)
    mean, (_, prices) = brute_force(instance), program_of(instance)
    assert mean is not None and np.ceil(prices.value - 1e-6) == round(4 * mean)


def test_gpus_without_a_job_end_a_branch_early() -> None:
    """The same states as without that look, by a third fewer levels (17,337 before)."""
    instance = small(0, jobs=8, gpus=4, gang=3, slots=4, horizon=24, arrivals=3)
    program, prices = program_of(instance)
    assert program.search(prices, 49) == (True, None)
    assert program.states == 216 and program.best.work < 12_000 * dynamic_program._COST


def test_lps_of_states_take_no_more_than_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic_program, "_MANY", 3)
    program, prices = program_of(small(0, jobs=8, gpus=4, gang=3, slots=4, horizon=24, arrivals=3))
    monkeypatch.setattr(dynamic_program, "column_bound", lambda *_, **__: pytest.fail("an LP after few levels"))
    assert program.search(prices, 49) == (True, None)
    monkeypatch.undo()
    monkeypatch.setattr(dynamic_program, "_MANY", 3)
    monkeypatch.setattr(dynamic_program, "_PRICED", np.inf)
    before = program.states
    assert program.search(prices, 49) == (True, None)
    assert program.states < 2 * before


def test_the_search_ends_without_a_proof_where_states_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic_program, "STATES", 3)
    program, prices = program_of(tiny(3, jobs=4, gpus=2, cap=2, horizon=20))
    assert program.search(prices, 1000) == (False, None)


@pytest.mark.parametrize("seed", range(4))
def test_cp_agrees_with_itself_without_the_dynamic_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = small(seed, jobs=6, gpus=3, gang=2, slots=4, horizon=24, arrivals=3)
    one = cp.solve_cp(instance, SolveOptions(threads=1))
    monkeypatch.setattr(cp, "fits", lambda *_: False)
    other = cp.solve_cp(instance, SolveOptions(threads=1, work_limit=1.0))
    assert one.status is Status.OPTIMAL and "states" not in other.info
    assert other.bound <= one.objective <= other.objective


@pytest.mark.parametrize("gpus", [200, 300])
def test_jobs_may_share_hundreds_of_gpus(gpus: int) -> None:
    """a and b share half of their GPUs; c needs what that leaves. Beyond what a state can count there is no program."""
    jobs = [job("a", 1, gpus, 4.0, 4.0), job("b", 1, gpus, 4.0, 4.0), job("c", 2, gpus // 4, 2.0, 9.0)]
    instance = instance_of(jobs, 3 * gpus // 2)
    possible = dynamic_program.fits(instance, all_columns(instance, choices(instance)))
    assert possible == (gpus == 200)
    if possible:
        program, prices = program_of(instance)
        assert program.search(prices, 9) == (True, None)
        complete, found = program.search(prices, 10)
        assert complete and found is not None and total(instance, found) == 10
    result = cp.solve_cp(instance, SolveOptions(threads=1))
    assert result.status is Status.OPTIMAL and round(result.objective * 3) == 10


def test_a_job_with_next_to_nothing_left_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """To end it a slot early is no relaxation: the runs that are left hold true schedules only."""
    monkeypatch.setattr(cp._Stages, "_search", lambda _: None)
    jobs = [job("a", 1, 1, 2.00000000205), job("b", 3, 1, 2.0), job("c", 3, 1, 2.0), job("d", 1, 1, 3.00000000305)]
    instance = instance_of(jobs, 1, max_jobs_per_gpu=1)
    start = {"a": 1, "b": 4, "c": 6, "d": 9}
    gpus = {one: [["s", 0]] for one in start}
    worse = {"start": start, "gpus": gpus, "accumulation": dict.fromkeys(start, 1)}
    assert check(instance, worse).objective * 4 == 23
    result = cp.solve_cp(instance, SolveOptions(threads=1, start=worse))
    assert result.status is Status.OPTIMAL and round(result.objective * 4) == 22


def test_a_bound_on_better_schedules_is_none_on_all() -> None:
    instance = contended(25, jobs=4, gpus=1, slots=3, horizon=16)
    result = cp.solve_cp(instance, SolveOptions(threads=1))
    assert result.status is Status.OPTIMAL
    assert result.info["lp bound"] <= result.objective


def test_tiny_losses_and_budgets_are_no_coefficients_of_the_lp() -> None:
    """Who ends exactly in time has 1e-9 of its work to spare, which is no loss that there is."""
    jobs = [job(name, 1, 1 + (name == "b"), 2.0) for name in "abc"]
    for slowdown, least in ((1.5, 1 / 3), (1 + 1e-7, np.inf), (1.0, np.inf)):
        instance = instance_of(jobs, 2, slowdown)
        columns = all_columns(instance, choices(instance))
        assert np.all((columns.slack == 0) | (columns.slack >= min(least, 1) - 1e-8))
        loss = lp.losses(choices(instance))
        assert np.all((loss == 0) | (loss >= least - 1e-8))
        assert round(cp.solve_cp(instance, SolveOptions(threads=1)).objective * 3) == brute_force(instance) * 3


def test_where_the_lp_has_no_answer_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lp, "solve_once", lambda *_: None)
    result = cp.solve_cp(tiny(3), SolveOptions(threads=1))
    assert result.status is Status.OPTIMAL and "lp bound" not in result.info


def test_a_job_that_was_held_back_starts_on_gpus_that_there_are() -> None:
    """c waits in slot 1, though GPUs are free; b takes them in slot 2. If c shares one GPU with a, it has no other."""
    jobs = [job("a", 1, 2, 5.0), job("b", 2, 3, 2.0, 9.5), job("c", 1, 2, 3.0), job("d", 2, 1, 3.0)]
    program, prices = program_of(instance := instance_of(jobs, 5))
    assert program.search(without(prices), 14) == (True, None)
    complete, found = program.search(without(prices), 15)
    assert complete and found is not None and total(instance, found) == 15


def test_the_starts_of_one_state_are_left_where_the_work_ends() -> None:
    """14 jobs could start in slot 1, in more ways than can be tried."""
    jobs = [job(f"j{j}", 1, 1 + j % 3, 2.0 + j % 3) for j in range(14)]
    program, prices = program_of(instance_of(jobs, 8, 1.3, horizon=16), most_work=0.05)
    assert program.search(prices, 1000) == (False, None)
    assert 0.05 < program.best.work < 0.1


@pytest.mark.parametrize("instance", instances()[::2], ids=lambda i: i.name)
def test_cp_from_a_poor_incumbent(instance: GpuSharingInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a weak local search many sums are tried, on the runs that the LPs leave for each."""
    monkeypatch.setattr(cp, "_LARGEST_ROUNDS", 0)
    monkeypatch.setattr(dynamic_program, "STATES", 20_000)
    monkeypatch.setattr(dynamic_program, "_MANY", 3)
    monkeypatch.setattr(dynamic_program, "_PRICED", np.inf)
    mean = brute_force(instance)
    result = cp.solve_cp(instance, SolveOptions(threads=1))
    if mean is None:
        assert result.status is Status.INFEASIBLE
    else:
        assert result.status is Status.OPTIMAL and result.objective == pytest.approx(mean)
        assert result.info.get("lp bound", 0) <= mean + 1e-9
