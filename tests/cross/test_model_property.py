"""Untightened models: feasible schedules are their points, with a random row as well (enumeration against engines)."""

from __future__ import annotations

import pulp
import pytest
from oracles.ddl_cluster_rows import schedules
from oracles.model_property import examine
from oracles.schedules import CASES
from support.ddl_cluster_random import placed_instance

import schedgap
from schedgap.solvers.engines import engine as find_engine
from schedgap.solvers.result import SolveOptions

SEEDS = range(1000, 1010)
"""Others than the 300 of the study."""


@pytest.mark.parametrize("name", list(CASES))
def test_every_schedule_is_a_point_and_a_random_row_has_the_right_optimum(name: str) -> None:
    case = CASES[name]
    found = [examine(case, seed, [case.engines[seed % len(case.engines)]]) for seed in SEEDS]
    assert sum(finding.schedules > 1 for finding in found) > len(found) / 3


@pytest.mark.parametrize("seed", range(5))
def test_starts_and_admissions_leave_one_end_to_transfers_that_contend(seed: int) -> None:
    """All rows about who shares which link with whom: with too few of them an end could be earlier or later."""
    instance = placed_instance(seed, jobs=3, servers=3 + seed % 2, gpus=1, iterations=1 + seed % 2)
    for solution in list(schedules(instance, seed, 4))[1::2]:
        for direction in ("minimise", "maximise"):
            model = schedgap.model(instance, "events")
            point = model.point(solution)
            for family in ("place", "forward", "backward", "admit"):
                for variable in model.variables.get(family, {}).values():
                    variable.lowBound = variable.upBound = point[variable]
            ends = pulp.lpSum(k * end for k, end in enumerate(model.variables["end"].values(), start=1))
            getattr(model, direction)(ends)
            found = find_engine("highs").solve(model.declarative, SolveOptions())
            expected = sum(k * point[end] for end, k in ends.items())
            assert found.objective == pytest.approx(expected, rel=1e-6, abs=1e-4), direction
