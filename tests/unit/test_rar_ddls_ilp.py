"""The time-indexed model of rar-ddls: warm starts satisfy it, rings on a link, cuts, sizes, infeasible jobs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pulp
import pytest
from support.checks import rar_ddls as check
from support.rar_brute_force import brute_force, random_tiny

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.layout import Layout
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions, Mode, job_options
from schedgap.formulations.rar_ddls.models.crossing import add_links
from schedgap.formulations.rar_ddls.models.rows import ROWS, VARIABLES, Frame, Variables
from schedgap.formulations.rar_ddls.models.time_indexed import build_ilp, ilp_nonzeros
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.formulations.rar_ddls.ring_cut import most_jobs, ring_cut
from schedgap.formulations.rar_ddls.schedule import quick_schedule
from schedgap.solvers.engines.arrays import rows_of
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.result import SolveOptions, Status


def broken_rows(problem: pulp.LpProblem, values: Mapping[pulp.LpVariable, float]) -> list[str]:
    broken = []
    for name, row in rows_of(problem):
        value = sum(weight * values[variable] for variable, weight in row.items()) + row.constant
        if (row.sense >= 0 and value < 0) or (row.sense <= 0 and value > 0):
            broken.append(f"{name}: {row}")
    return broken


def objective(model: DeclarativeModel, values: Mapping[pulp.LpVariable, float]) -> float:
    aim = model.problem.objective
    return float(sum(weight * values[variable] for variable, weight in aim.items()) + aim.constant)


@pytest.mark.parametrize("seed", range(40))
def test_optimal_schedules_satisfy_the_model(seed: int) -> None:
    """Cuts, the order among equals and the cut horizon keep the optimum; reading it back gives a schedule as good."""
    instance = random_tiny(np.random.default_rng(seed), contended=seed % 2 == 1)
    best = brute_force(instance)
    model = build_ilp(instance)
    assert model.assign is not None
    if best is None:
        assert model.start is None
        return
    values = model.assign(best[1])
    assert set(values) == set(model.problem.variables())
    assert broken_rows(model.problem, values) == []
    assert objective(model, values) == best[0]
    assert model.bound is not None and model.bound <= best[0]
    read = check(instance, model.extract(lambda variable: values[variable]))
    assert read.feasible and read.objective == best[0]
    if model.start is not None:
        values = model.assign(model.start)
        assert broken_rows(model.problem, values) == []
        assert objective(model, values) == check(instance, model.start).objective


def test_all_coefficients_are_whole_and_only_held_is_continuous() -> None:
    model = build_ilp(random_tiny(np.random.default_rng(1), contended=True))
    continuous = {v.name for v in model.problem.variables() if v.cat != pulp.LpInteger}
    assert continuous == model.restated_integral and all(name.startswith("held[") for name in continuous)
    for _, row in rows_of(model.problem):
        assert all(float(weight).is_integer() for weight in (*row.values(), row.constant))


@pytest.mark.parametrize("contended", [False, True])
def test_nonzeros_are_estimated(contended: bool) -> None:
    for seed in range(12):
        instance = random_tiny(np.random.default_rng(seed), contended)
        there = sum(len(row) for _, row in rows_of(build_ilp(instance).problem))
        assert there / 2.5 - 50 <= ilp_nonzeros(instance) <= 2.5 * there + 50


def test_a_large_model_is_estimated_without_building_it() -> None:
    data = random_tiny(np.random.default_rng(1), contended=True).to_dict()
    data["jobs"] = [data["jobs"][0] | {"id": f"j{j}", "iterations": 10**6} for j in range(3000)]
    data["horizon"] = 10**9
    assert ilp_nonzeros(RarDdlsInstance.parse(data)) > 10**9


def impossible(change: str) -> RarDdlsInstance:
    data = random_tiny(np.random.default_rng(3), contended=True).to_dict()
    job = data["jobs"][0]
    if change == "too large":
        job["gpus"] = 100
    elif change == "no rate":
        job["backward_time"] = 1.5
    else:
        data["horizon"] = 1
        job["iterations"] = 1000
    return RarDdlsInstance.parse(data)


@pytest.mark.parametrize("change", ["too large", "no rate", "horizon"])
@pytest.mark.parametrize("engine", ["cbc", "highs", "cpsat"])
def test_impossible_jobs_make_the_model_infeasible(change: str, engine: str) -> None:
    instance = impossible(change)
    result = solve_declarative(
        lambda: build_ilp(instance),
        engine,
        SolveOptions(threads=1),
        lambda given: check(instance, given),
        ilp_nonzeros(instance),
    )
    assert result.status is Status.INFEASIBLE and result.solution is None


@pytest.mark.parametrize("levels", [(1, 5), (2, 4, 5), (2, 5), (1, 2, 3, 4, 5), (3, 5), (4, 5)])
def test_no_link_has_more_rings_than_one_of_them_allows(levels: tuple[int, ...]) -> None:
    """All ways of five rings on one server: the rows (with the best switches) allow exactly the right ones."""
    layout = Layout(pulp.LpProblem("links", pulp.LpMinimize), VARIABLES, ROWS)
    frame = Frame(layout, Variables(), [f"j{j}" for j in range(5)], ["s0"], [5], 1)
    for j in range(5):
        for level in levels:
            frame.variables.ring[j, 0, 1, level] = frame.variable("ring", j, 0, 1, level)
    ring = JobOptions(2, 1, (), 0, (1,), tuple(Mode(2, 0, level, 1) for level in levels), 2, 2, 1)
    add_links(frame, [ring] * 5)
    switches = list(frame.variables.few.values())
    for chosen in itertools.combinations_with_replacement([0, *levels], 5):
        rings = [level for level in chosen if level]
        right = all(len(rings) <= level for level in rings)
        values = dict.fromkeys(frame.variables.ring.values(), 0.0)
        values |= {frame.variables.ring[j, 0, 1, level]: 1.0 for j, level in enumerate(chosen) if level}
        allowed = any(
            not broken_rows(layout.problem, values | dict(zip(switches, setting, strict=True)))
            for setting in itertools.product([0.0, 1.0], repeat=len(switches))
        )
        assert allowed == right, chosen


def test_how_many_jobs_and_rings_run_at_once() -> None:
    assert most_jobs([3, 2, 4], 5) == 2
    assert most_jobs([], 5) == 0
    # On 2, 2, 2 a ring of 3 that shares no server leaves none for another; on 2, 2, 2, 2 it does.
    assert ring_cut([3, 3, 3], [2, 2, 2], 1) == 2
    assert ring_cut([3, 3, 3], [2, 2, 2, 2], 1) == 1
    # On 4, 4, 4 one quiet ring of 5 takes two servers and leaves no two others to a second one.
    assert ring_cut([5, 5], [4, 4, 4], 1) == 2
    assert ring_cut([2, 2, 3, 3, 4], [4, 4, 4], 2) == Fraction(4, 3)


@pytest.mark.parametrize("seed", range(30))
def test_ring_cut_against_all_placements(seed: int) -> None:
    """q quiet rings and r others on every choice of placements: q * factor + r <= most."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=int(rng.integers(2, 4))).tolist()
    gangs = rng.integers(2, 4, size=int(rng.integers(1, 5))).tolist()
    level = int(rng.integers(1, 3))
    most, factor = most_jobs(gangs, sum(sizes)), ring_cut(gangs, sizes, level)
    for count in range(1, len(gangs) + 1):
        for chosen in itertools.combinations(gangs, count):
            for placed in itertools.product(*(crossings(gang, sizes) for gang in chosen)):
                if any(sum(share) > size for share, size in zip(zip(*placed, strict=True), sizes, strict=True)):
                    continue
                rings = [sum(share > 0 for share in shares) for shares in zip(*placed, strict=True)]
                met = [max(n for n, share in zip(rings, mine, strict=True) if share) for mine in placed]
                quiet = sum(p <= level for p in met)
                assert quiet * factor + (count - quiet) <= most


def crossings(gang: int, sizes: list[int]) -> list[tuple[int, ...]]:
    every = itertools.product(*(range(min(size, gang - 1) + 1) for size in sizes))
    return [shares for shares in every if sum(shares) == gang]


@pytest.mark.parametrize("seed", range(20))
def test_job_options_have_the_rates_of_the_table(seed: int) -> None:
    instance = random_tiny(np.random.default_rng(seed), contended=True)
    table = rate_table(instance)
    for j, options in enumerate(job_options(instance)):
        for n in range(options.fewest, options.max_servers + 1):
            for p in range(1, table.p_max + 1):
                rate = min(int(table.phi[j, n, p]), options.iterations)
                serving = [mode.rate for mode in options.modes if mode.servers >= n and mode.level >= p]
                if p <= max(options.levels, default=0):
                    assert max(serving, default=0) == rate


@pytest.mark.parametrize("seed", range(30))
def test_quick_schedules_are_feasible(seed: int) -> None:
    instance = random_tiny(np.random.default_rng(seed), contended=seed % 2 == 0)
    quick, best = quick_schedule(instance), brute_force(instance)
    if quick is not None:
        assert best is not None and quick[0] >= best[0]
        report = check(instance, quick[1])
        assert report.feasible and report.objective == quick[0]
        assert quick_schedule(instance) == quick
