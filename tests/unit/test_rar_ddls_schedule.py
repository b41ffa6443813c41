"""The compiled schedule generation scheme against the plain one, the simulation, and its own limit."""

from __future__ import annotations

import numpy as np
import pytest
from support.rar_plain_schedule import PlainSchedule
from support.rar_random import random_small

from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.formulations.rar_ddls.running import FAR, build_workload, placements, solution_of
from schedgap.formulations.rar_ddls.schedule import ANY_RING, QUIET, Choices, Rings, list_schedule, scratch_for
from studies.speed.rar_ddls_grid import contended_grid

FAMILIES = ("pairs", "mixed", "quads")


def random_choices(rng: np.random.Generator, instance: RarDdlsInstance) -> Choices:
    jobs, servers = len(instance.jobs), len(instance.servers)
    return Choices(
        order=rng.permutation(jobs),
        cross=rng.integers(0, 3, jobs),
        rule=rng.integers(0, 7, jobs),
        holds=(rng.random(jobs) < 0.2).astype(np.int64),
        likes=rng.integers(0, servers + 1, jobs),
        kind=np.arange(jobs) if rng.random() < 0.5 else rng.integers(0, jobs, jobs),
    )


@pytest.mark.parametrize("seed", range(60))
def test_the_compiled_scheme_builds_the_plain_schedule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    if seed % 2:
        instance = contended_grid(seed, jobs=12, servers=4, family=FAMILIES[seed % 3])
    else:
        instance = random_small(rng)
    if (rate_table(instance).best_rate == 0).any():
        return
    work = build_workload(instance)
    scratch = scratch_for(work)
    for care in range(3):
        choices = random_choices(rng, instance)
        slack, second = float(rng.choice([1.0, 1.25, 2.0])), int(rng.choice([-1, QUIET]))
        rings = Rings(care, slack, second)
        makespan = list_schedule(work, choices, scratch, FAR - 1, rings)
        plan = PlainSchedule(instance, choices, care, slack, second).run()
        if plan is None:
            assert makespan == -1
            continue
        assert solution_of(instance, work) == {"start": plan[0], "placement": plan[1]}
        assert simulate(instance, *plan).makespan == makespan
        assert [sum(placed.values()) for placed in placements(work)] == [job.gpus for job in instance.jobs]
        ends = simulate(instance, *plan).completion
        assert work.jobs["end"][:-1].tolist() == [ends[job.id] for job in instance.jobs]
        assert list_schedule(work, choices, scratch, makespan, rings) == makespan
        assert list_schedule(work, choices, scratch, makespan - 1, rings) == -1


def test_another_schedule_leaves_the_first_as_it_is() -> None:
    instance = contended_grid(3, jobs=8, servers=3)
    work = build_workload(instance)
    scratch = scratch_for(work)
    rng = np.random.default_rng(0)
    kept = None
    while kept is None:
        kept = work if list_schedule(work, random_choices(rng, instance), scratch, FAR - 1, ANY_RING) > 0 else None
    before, other = solution_of(instance, kept), kept.another()
    while solution_of(instance, other) == before:
        list_schedule(other, random_choices(rng, instance), scratch, FAR - 1, ANY_RING)
    assert solution_of(instance, kept) == before
