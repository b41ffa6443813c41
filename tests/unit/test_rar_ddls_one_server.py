"""Bins and schedules on one server: the stages of rar-ddls's `cp` that find what meets the bound."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import job_options
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.cp import solve_cp
from schedgap.solvers.exact.rar_ddls.packing import _Strip, pack
from schedgap.solvers.exact.rar_ddls.patterns import knapsack
from schedgap.solvers.exact.rar_ddls.slot_packing import SlotPacking
from schedgap.solvers.result import SolveOptions, Status
from studies.library.sources import one_server, packing


def on_servers(gpus: int, jobs: list[tuple[int, int]], servers: int = 1) -> RarDdlsInstance:
    """Jobs of (GPUs, slots) without messages on equal servers; they never gain by crossing."""
    data = one_server("jobs", gpus, jobs)
    data["servers"] = [{"id": f"s{s}", "gpus": gpus} for s in range(servers)]
    return RarDdlsInstance.parse(data)


def packed(instance: RarDdlsInstance) -> BestSchedule:
    """What is known after the stage alone, with the bounds before it."""
    incumbent = BestSchedule(instance, SolveOptions(seed=1, work_limit=20.0))
    assert incumbent.begin()
    options = job_options(instance)
    SlotPacking(incumbent, options).raise_bound(incumbent, 0.5)
    pack(incumbent, options)
    return incumbent


@pytest.mark.parametrize("seed", range(20))
def test_knapsack_is_the_best_of_all_sets(seed: int) -> None:
    draw = random.Random(seed)
    items = [(draw.randint(1, 9), draw.randint(0, 20)) for _ in range(8)]
    sets = [[k for k in range(8) if chosen >> k & 1] for chosen in range(2**8)]
    best = max(sum(items[k][1] for k in s) for s in sets if sum(items[k][0] for k in s) <= 15)
    chosen, value = knapsack(items, 15, np.zeros(16, dtype=np.int64))
    assert value == best == sum(items[k][1] for k in chosen)
    assert sum(items[k][0] for k in chosen) <= 15


@pytest.mark.parametrize(("shape", "items", "bins"), [("triplets", 60, 20), ("uniform", 60, 24)])
def test_bins_that_meet_the_bound(shape: str, items: int, bins: int) -> None:
    instance = RarDdlsInstance.parse({**packing(shape, items, 1)})
    found = packed(instance)
    assert found.proven and found.makespan == found.lower == bins


def test_bins_on_several_servers() -> None:
    sizes = [7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2]  # 54 in bins of 9: six bins, two slots of three servers
    found = packed(on_servers(9, [(size, 1) for size in sizes], servers=3))
    assert found.proven and found.makespan == 2


def test_a_perfect_packing_is_found() -> None:
    draw = random.Random(3)
    pieces = [(40, 60)]
    while len(pieces) < 20:  # cut the largest piece in two
        width, height = pieces.pop(max(range(len(pieces)), key=lambda k: pieces[k][0] * pieces[k][1]))
        if width > height:
            cut = draw.randint(1, width - 1)
            pieces += [(cut, height), (width - cut, height)]
        else:
            cut = draw.randint(1, height - 1)
            pieces += [(width, cut), (width, height - cut)]
    found = packed(on_servers(40, pieces))
    assert found.proven and found.makespan == 60


def least(jobs: list[tuple[int, int]], gpus: int) -> int:
    """The shortest schedule on one server: jobs started one after another in every order, as early as they fit."""
    best = sum(slots for _, slots in jobs)
    for order in itertools.permutations(jobs):
        used = [0] * (2 * sum(slots for _, slots in jobs))
        end = 0
        for need, slots in order:
            t = next(t for t in itertools.count() if all(used[t + k] + need <= gpus for k in range(slots)))
            for k in range(slots):
                used[t + k] += need
            end = max(end, t + slots)
        best = min(best, end)
    return best


@pytest.mark.parametrize("seed", range(15))
def test_on_one_server_the_stage_alone_is_exact(seed: int) -> None:
    draw = random.Random(seed)
    jobs = [(draw.randint(1, 6), draw.randint(1, 5)) for _ in range(6)]
    found = packed(on_servers(8, jobs))
    assert found.proven and found.makespan == least(jobs, 8)


def test_cp_proves_what_no_area_shows() -> None:
    """Of three jobs no two fit together: the linear program over slots sees it."""
    result = solve_cp(on_servers(30, [(20, 2), (16, 3), (17, 4), (11, 5)]), SolveOptions(seed=0, work_limit=5.0))
    assert (result.status, result.objective) == (Status.OPTIMAL, 9.0)


def test_jobs_that_end_before_those_that_run_make_room_again() -> None:
    """Found by a reader: GPUs that are idle now need not be until the first of the running jobs ends."""
    work = [(2, 2), (3, 2), (3, 2), (1, 6), (5, 4), (4, 3), (6, 2), (4, 5)]
    search = _Strip(work, 8, 11, 10**5)
    start = search.run(BestSchedule(on_servers(8, work), SolveOptions()))
    assert start is not None
    for t in range(11):
        assert sum(need for (need, slots), s in zip(work, start, strict=True) if s <= t < s + slots) <= 8
    assert max(s + slots for (_, slots), s in zip(work, start, strict=True)) <= 11


@pytest.mark.parametrize("seed", range(30))
def test_a_short_hole_beside_a_running_job(seed: int) -> None:
    """A schedule of eight jobs with one GPU idle for one slot while others run on: one as short is found."""
    draw = random.Random(seed)
    gpus = draw.randint(12, 40)
    beside = draw.randint(1, gpus // 3)
    left = gpus - beside
    one, other = draw.randint(2, left - 2), draw.randint(2, left - 2)
    first = draw.randint(2, 9)
    second = first + draw.randint(2, 9)
    third = second + 1 + draw.randint(2, 9)
    length = third + draw.randint(2, 9)
    work = [(left - one + beside, first), (one, second), (left - one, second - first), (beside, third - first)]
    work += [(left - 1, 1), (other, length - second - 1), (left - other, third - second - 1)]
    work.append((left - other + beside, length - third))
    draw.shuffle(work)
    work = [pair for kind in dict.fromkeys(work) for pair in work if pair == kind]
    search = _Strip(work, gpus, length, 10**6)
    assert search.run(BestSchedule(on_servers(gpus, work), SolveOptions())) is not None
