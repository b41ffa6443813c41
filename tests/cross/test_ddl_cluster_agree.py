"""The exact methods of ddl-cluster against enumeration of event orders, and against one another."""

from __future__ import annotations

import itertools
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from oracles.ddl_cluster import optimum, orders
from oracles.hard_numbers import hard_ddl_cluster
from support.checks import ddl_cluster as check
from support.ddl_cluster_random import placed_instance
from support.work import PATIENCE

import schedgap
from schedgap.benchmarks.instances.ddl_cluster.random import tiny
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.numbers import agrees
from schedgap.formulations.ddl_cluster.bounds import lower_bound
from schedgap.formulations.ddl_cluster.clock import LARGEST_SETS, MEMORY_CAPACITY, misfits
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.models import events, job_shop
from schedgap.formulations.ddl_cluster.models.job_shop import build_model, model_nonzeros
from schedgap.solvers.cp_sat.search import CpAnswer, search_cp
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.exact.ddl_cluster import cp_model, methods, placement, time_grid
from schedgap.solvers.exact.ddl_cluster.methods import solve_cp, solve_job_shop
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import Deadline, SolveOptions, Status, Termination

OPTIONS = SolveOptions(threads=1)


def _drawn(count: int, most: int) -> list[tuple[int, DdlClusterInstance]]:
    """The first instances whose all-reduces can meet and whose orders are few enough to go through."""
    found: list[tuple[int, DdlClusterInstance]] = []
    seed = 0
    while len(found) < count:
        instance = placed_instance(
            seed, jobs=2 + seed % 2, servers=2 + seed % 3 // 2, iterations=1 if seed % 4 == 1 else 2
        )
        spanning = sum(len({server for server, _ in given or ()}) > 1 for given in instance.given)
        if spanning >= 2 and orders(instance) <= most:
            found.append((seed, instance))
        seed += 1
    return found


DRAWN = _drawn(40, 90)


@pytest.mark.parametrize("instance", [pytest.param(i, id=str(seed)) for seed, i in DRAWN])
def test_cp_finds_the_optimum_of_all_event_orders(instance: DdlClusterInstance) -> None:
    result = solve_cp(instance, OPTIONS)
    assert result.status is Status.OPTIMAL
    assert result.objective is not None
    assert agrees(result.objective, optimum(instance))
    assert lower_bound(instance) <= result.objective * (1 + 1e-9)
    assert result.solution is not None
    assert check(instance, result.solution).feasible


@pytest.mark.parametrize("instance", [pytest.param(i, id=str(seed)) for seed, i in DRAWN[:12]])
def test_job_shop_is_the_optimum_without_contention(instance: DdlClusterInstance) -> None:
    result = solve_job_shop(instance, OPTIONS)
    restricted = optimum(instance, exclusive=True)
    least = optimum(instance)
    assert result.objective is not None
    # the schedule is carried out with latencies that overlap, which only helps
    assert result.objective <= restricted * (1 + 1e-6)
    assert result.objective >= least * (1 - 1e-6)
    bound = result.info.get("restricted bound")
    if bound is not None:
        assert bound <= restricted * (1 + 1e-8)
        if result.status is not Status.OPTIMAL:  # else the search may stop before its bound is that good
            assert bound == pytest.approx(restricted, rel=1e-8)
    assert result.bound is not None
    assert result.bound <= least * (1 + 1e-6)


def test_engines_solve_the_job_shop_and_claim_nothing_about_the_problem() -> None:
    closed = 0
    for _, instance in DRAWN[:6]:
        restricted = optimum(instance, exclusive=True)
        for engine in ("cbc", "highs"):
            result = solve_declarative(
                lambda instance=instance: build_model(instance),  # type: ignore[misc]
                engine,
                OPTIONS,
                lambda solution, instance=instance: check(instance, solution),  # type: ignore[misc]
                model_nonzeros(instance),
            )
            assert result.objective is not None
            assert result.objective <= restricted * (1 + 1e-6)
            assert result.bound is not None
            assert result.bound <= optimum(instance) * (1 + 1e-6)
            if "restricted bound" in result.info:
                assert agrees(result.info["restricted bound"], restricted)
            closed += result.status is Status.OPTIMAL
    assert closed < 12, "some of these job shops leave a gap to the certified bound"


def test_cpsat_solves_the_job_shop_in_ticks() -> None:
    for _, instance in DRAWN[:4]:
        found = [
            solve_declarative(partial(build_model, instance), engine, OPTIONS, partial(check, instance)).objective
            for engine in ("cpsat", "highs")
        ]
        assert found[0] is not None and found[1] is not None and agrees(*found)


def test_contention_can_beat_every_schedule_without_it() -> None:
    gains = [
        optimum(instance, exclusive=True) / value
        for _, instance in DRAWN
        if orders(instance) <= 30 and (value := optimum(instance)) > 0
    ]
    assert max(gains) > 1 + 1e-6
    assert min(gains) >= 1 - 1e-9


def test_free_placement_is_refused_in_one_line() -> None:
    data = DRAWN[0][1].to_dict()
    del data["jobs"][1]["placement"]
    instance = DdlClusterInstance.parse(data)
    for method in (solve_cp, solve_job_shop):
        with pytest.raises(ModelRefused, match=r"job j1 has no placement.*ada-srsf"):
            method(instance, OPTIONS)


def test_placements_are_not_simulated_where_a_run_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 10^8 tasks one run of a policy takes many minutes of compiled code, which no limit can stop."""
    monkeypatch.setattr(methods, "_SECONDS_PER_TASK", 1e6)
    monkeypatch.setattr(placement, "MOST", 0)
    result = placement.solve_placement(tiny(0), SolveOptions(deadline=Deadline.after(PATIENCE), threads=1))
    assert result.termination is Termination.TOO_LARGE and result.solution is None and result.bound is not None
    assert "cannot be simulated" in result.info["reason"]


def test_tight_memory_keeps_jobs_apart() -> None:
    differ = 0
    for seed in range(8):
        tight = placed_instance(seed, jobs=3, iterations=1, tight=True)
        loose = placed_instance(seed, jobs=3, iterations=1)
        apart, together = solve_cp(tight, OPTIONS), solve_cp(loose, OPTIONS)
        assert apart.status is together.status is Status.OPTIMAL
        assert apart.objective is not None
        assert together.objective is not None
        assert apart.objective >= together.objective * (1 - 1e-6)
        differ += apart.objective > together.objective * (1 + 1e-6)
        shop = solve_job_shop(tight, OPTIONS)
        assert shop.objective is not None
        assert shop.objective >= apart.objective * (1 - 1e-6)
        declared = solve_declarative(lambda t=tight: build_model(t), "highs", OPTIONS, lambda s, t=tight: check(t, s))  # type: ignore[misc]
        assert declared.objective is not None
        assert declared.objective >= apart.objective * (1 - 1e-6)
    assert differ > 0


DATA = Path(__file__).parents[1] / "data"
CREEPING = {
    "inprocessing without end, not counted": hard_ddl_cluster(32, family="decimals"),
    "bounds step by step": tiny(50),
    "work without count": DdlClusterInstance.parse(json.loads((DATA / "ddl-cluster-ring-of-three.json").read_text())),
}


@pytest.mark.parametrize(("threads", "seed"), [(1, 0), (1, 32), (2, 0)])
@pytest.mark.parametrize("name", CREEPING)
def test_the_fine_grid_takes_little_work(name: str, threads: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    work: list[float] = []

    def counted(model: Any, incumbent: Incumbent, **keywords: Any) -> CpAnswer:
        answer = search_cp(model, incumbent, **keywords)
        work.append(answer.work)
        return answer

    monkeypatch.setattr("schedgap.solvers.cp_sat.search.search_cp", counted)
    result = solve_cp(
        CREEPING[name], SolveOptions(threads=threads, work_limit=200.0, seed=seed, deadline=Deadline.after(PATIENCE))
    )
    assert result.termination in (Termination.PROVEN, Termination.FINISHED)
    assert sum(work) < 60
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound >= result.objective * (1 - 2e-9)


def test_an_instance_too_large_to_simulate_in_the_time_is_unknown_with_its_bound() -> None:
    data = DRAWN[0][1].to_dict()
    for job in data["jobs"]:
        job["iterations"] = 10**6
    instance = DdlClusterInstance.parse(data)
    for method in (solve_cp, solve_job_shop):
        result = method(instance, SolveOptions(threads=1, deadline=Deadline.after(1)))
        assert (result.status, result.termination) == (Status.UNKNOWN, Termination.TOO_LARGE)
        assert result.bound == lower_bound(instance)
        assert "cannot be simulated" in result.info["reason"]


def test_more_neighbours_than_the_model_counts_leave_the_job_shop() -> None:
    data = DRAWN[0][1].to_dict()
    data["servers"] = [{"id": "s0", "gpus": 8}, {"id": "s1", "gpus": 8}]
    parts = {"gpus": 2, "iterations": 1, "memory": 1.0, "forward": 1.0}
    data["jobs"] = [
        parts
        | {"id": f"j{k}", "placement": [["s0", k], ["s1", k]], "arrival": 0.0}
        | {"backward": 1.0 + k, "message": 1.0 if k else 30.0}
        for k in range(8)
    ]
    instance = DdlClusterInstance.parse(data)
    result = solve_cp(instance, SolveOptions(threads=1, work_limit=2.0))
    assert (result.status, result.termination) == (Status.FEASIBLE, Termination.TOO_LARGE)
    assert "shares servers with 7 jobs, at most 5" in result.info["reason"]
    assert result.objective is not None
    assert result.bound is not None
    assert result.bound < result.objective


@pytest.mark.parametrize("most", [500, 0])
def test_memory_in_the_grid(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By pairs that are apart, and at once where the sets are too many; 7.5 without the memory's rows."""
    monkeypatch.setattr(cp_model, "MOST_MISFITS", most)
    instance = DdlClusterInstance.parse(json.loads((DATA / "ddl-cluster-memory.json").read_text()))
    grid = time_grid.Grid.of(instance, [job.placement for job in instance.jobs if job.placement], 100.0)
    assert ("cumulative" in str(cp_model.GridModel(grid).model.proto)) == (most == 0)
    result = solve_cp(instance, OPTIONS)
    assert result.status is Status.OPTIMAL and agrees(result.objective, 9.0)


def test_the_smallest_sets_that_do_not_fit() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        parts = [rng.randint(0, MEMORY_CAPACITY) >> rng.randint(0, 3) for _ in range(6)]
        over = [
            chosen
            for size in range(2, 7)
            for chosen in itertools.combinations(range(6), size)
            if sum(parts[j] for j in chosen) - min(parts[j] for j in chosen)
            <= MEMORY_CAPACITY
            < sum(parts[j] for j in chosen)
        ]
        found = misfits(range(6), parts)
        assert sorted(tuple(sorted(chosen)) for chosen in found) == sorted(over), seed
        assert misfits(range(6), parts, len(found)) == found
        with pytest.raises(ModelRefused):
            misfits(range(6), parts, len(found) - 1)


@pytest.mark.parametrize("part", [0, 1, MEMORY_CAPACITY // 200])
def test_where_everything_fits_no_set_is_tried(part: int) -> None:
    assert misfits(range(200), [part] * 200) == []
    assert misfits(range(200), [part] * 200, 0) == []
    beside_a_large_one = misfits(range(201), [part] * 200 + [MEMORY_CAPACITY], 200)
    assert len(beside_a_large_one) == (200 if part else 0)


def test_more_sets_than_a_linear_model_is_worth_are_refused() -> None:
    """Of 26 jobs, any 14 of which do not fit: 9.7 million sets."""
    data = DRAWN[0][1].to_dict()
    data["servers"] = [{"id": "s0", "gpus": 1}]
    parts = {"gpus": 1, "iterations": 1, "memory": data["gpu_memory"] / 13, "placement": [["s0", 0]]}
    parts |= {"arrival": 0.0, "forward": 1.0, "backward": 1.0, "message": 1.0}
    data["jobs"] = [parts | {"id": f"j{k}"} for k in range(26)]
    instance = DdlClusterInstance.parse(data)
    for build in (events.build_events, job_shop.build_model):
        with pytest.raises(ModelRefused, match=f"more than {LARGEST_SETS} sets of jobs that do not fit a GPU"):
            build(instance)
    for method in ("cbc", "highs"):  # the schedule of srsf-1 is kept, and meets the bound here
        found = schedgap.solve(instance, method, confirm=False)
        assert (found.status, found.termination) == (Status.OPTIMAL, Termination.TOO_LARGE), method
        assert (
            found.solution is not None
            and found.info["reason"] == f"more than {LARGEST_SETS} sets of jobs that do not fit a GPU"
        )
    grid = time_grid.Grid.of(instance, [job.placement for job in instance.jobs if job.placement], 100.0)
    assert "cumulative" in str(cp_model.GridModel(grid).model.proto)
