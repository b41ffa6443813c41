"""Untightened models: feasible schedules are their points, with a random row as well (enumeration against engines)."""

from __future__ import annotations

import pytest

from schedgap.benchmarks.studies.brute_force.schedules import CASES
from schedgap.benchmarks.studies.model_property import examine

SEEDS = range(1000, 1010)
"""Others than the 300 of the study."""


@pytest.mark.parametrize("name", list(CASES))
def test_every_schedule_is_a_point_and_a_random_row_has_the_right_optimum(name: str) -> None:
    case = CASES[name]
    found = [examine(case, seed, [case.engines[seed % len(case.engines)]]) for seed in SEEDS]
    assert sum(finding.schedules > 1 for finding in found) > len(found) / 3
