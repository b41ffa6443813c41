"""The measurements of suite `scale` for the exact methods, and the instances they run on."""

from __future__ import annotations

import numpy as np
import pytest
from support.checks import rar_ddls as check
from support.rar_brute_force import brute_force, random_tiny
from support.work import PATIENCE

from schedgap.formulations.rar_ddls.bounds import is_infeasible, lower_bound
from schedgap.solvers import budget
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.cp import _Stages, solve_cp
from schedgap.solvers.result import Deadline, SolveOptions, Status, Termination
from studies.speed.rar_ddls_grid import FAMILIES, contended_grid
from studies.speed.rar_ddls_reach import contended_slots, cp_reach, method_reach


@pytest.mark.parametrize("family", FAMILIES)
def test_grid_instances_are_repeatable_and_rings_must_cross(family: str) -> None:
    instance = contended_grid(3, jobs=12, servers=4, family=family)
    assert instance == contended_grid(3, jobs=12, servers=4, family=family)
    assert instance.content_hash() != contended_grid(4, jobs=12, servers=4, family=family).content_hash()
    largest = max(server.gpus for server in instance.servers)
    assert is_infeasible(instance) is None
    assert family == "mixed" or any(job.gpus > largest for job in instance.jobs)


def test_reach_reports_what_each_method_proved() -> None:
    rows = method_reach(sizes=((4, 2),), instances=2, limit=1e6)
    assert {row["method"] for row in rows} == {"cp", "cpsat", "highs", "cbc"}
    assert all(row["proven"] == row["instances"] == 2 for row in rows)
    (row,) = cp_reach(jobs=6, servers=3, instances=1, limit=1e6)
    assert row["status"] == "optimal"
    assert row["objective"] == row["bound"]


def test_contended_slots_counts_meeting_rings() -> None:
    instance = contended_grid(0, jobs=8, servers=3, family="pairs")
    result = solve_cp(instance, SolveOptions())
    assert result.status is Status.OPTIMAL
    slots = contended_slots(instance, result)
    assert slots is not None
    assert slots >= 0


def test_a_limit_leaves_a_checked_schedule_and_a_bound() -> None:
    instance = contended_grid(1, jobs=40, servers=8, family="quads")
    result = solve_cp(instance, SolveOptions(work_limit=0.1, threads=1))
    assert result.termination is Termination.WORK_LIMIT
    assert result.solution is not None
    assert result.objective is not None
    assert result.bound is not None
    report = check(instance, result.solution)
    assert report.feasible
    assert report.objective == result.objective
    assert lower_bound(instance) <= result.bound <= result.objective  # type: ignore[operator]


def test_the_interval_model_is_left_out_where_it_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "seconds_per_nonzero", lambda: 1e6)
    instance = contended_grid(0, jobs=20, servers=6, family="pairs")
    result = solve_cp(instance, SolveOptions(deadline=Deadline.after(PATIENCE), threads=1))
    assert result.termination is Termination.TOO_LARGE and result.info["reason"].startswith("interval model: ")
    assert result.solution is not None and result.bound is not None and check(instance, result.solution).feasible


def test_a_limit_that_earlier_stages_used_up_does_not_make_the_model_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "seconds_per_nonzero", lambda: 1e3)
    instance = contended_grid(0, jobs=20, servers=6, family="pairs")
    incumbent = BestSchedule(instance, SolveOptions(deadline=Deadline.after(PATIENCE), threads=1))
    incumbent.began -= 1e8  # what is left is the end of a limit that would have been long enough
    assert incumbent.begin() and _Stages(incumbent).run() is Termination.TIME_LIMIT
    assert "reason" not in incumbent.info


def test_the_bound_never_exceeds_the_optimum() -> None:
    rng = np.random.default_rng(11)
    compared = 0
    for k in range(30):
        instance = random_tiny(rng, contended=k % 2 == 0)
        found = brute_force(instance)
        bound = lower_bound(instance)
        if found is None:
            continue
        compared += 1
        assert is_infeasible(instance) is None
        assert bound is not None
        assert bound <= found[0]
    assert compared >= 10
