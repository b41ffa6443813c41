"""The choices of the exact models, found once for jobs of one kind, are those of a plain look at every pair."""

from __future__ import annotations

import pytest

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.gpu_sharing.dynamics import SharingTables, tables
from schedgap.formulations.gpu_sharing.modes import _wanted, choices


def every_pair(data: SharingTables) -> list[set[int]]:
    n = len(data.steps)
    wanted = [{own[0]} for own in data.steps]
    for one in range(n):
        for other in range(n):
            if data.may_share[one, other]:
                fits = (data.smallest_fit(one, other, steps) for steps in data.steps[other])
                wanted[one] |= {fit for fit in fits if fit is not None}
    return wanted


@pytest.mark.parametrize("preset", ["tiny", "small", "contended", "table-iii"])
def test_the_kept_steps_are_those_of_every_pair(preset: str) -> None:
    several = False
    for seed in range(1 if preset == "table-iii" else 4):
        instance = make_instance(find_problem("gpu-sharing"), preset, seed, {})
        data = tables(instance)
        wanted = every_pair(data)
        assert _wanted(data) == wanted
        found = choices(instance)
        n = len(instance.jobs)
        assert found.pairs == tuple((j, k) for j in range(n) for k in range(j + 1, n) if data.may_share[j, k])
        for j, job in enumerate(found.jobs):
            slowed = {float(data.slowdown[j, k]) for k in range(n) if data.may_share[j, k]}
            assert job.levels == tuple(sorted(x for x in slowed if x > 1))
        several = several or any(len(steps) > 1 for steps in wanted)
    assert several or preset == "tiny"
