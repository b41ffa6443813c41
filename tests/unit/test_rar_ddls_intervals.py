"""The interval model of rar-ddls by itself, without the stages that mostly find the optimum before it."""

from __future__ import annotations

import numpy as np
import pytest
from support.rar_brute_force import brute_force, random_tiny

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions, job_options
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.solvers.exact.rar_ddls import cp
from schedgap.solvers.exact.rar_ddls.intervals import IntervalModel
from schedgap.solvers.exact.rar_ddls.search import LocalSearch
from schedgap.solvers.result import SolveOptions, Status
from studies.speed.rar_ddls_grid import contended_grid


def with_equals(number: int) -> RarDdlsInstance:
    """A random tiny instance whose jobs repeat, so that an order among equals has something to do."""
    made = random_tiny(np.random.default_rng(91_000 + number), contended=number % 3 != 0)
    kinds = 1 + number % len(made.jobs)
    jobs = tuple(made.jobs[j % kinds].model_copy(update={"id": f"j{j}"}) for j in range(len(made.jobs)))
    return made.model_copy(update={"jobs": jobs})


@pytest.mark.parametrize("narrow", [0, 10**6], ids=["minimised", "from below"])
def test_the_interval_model_alone_is_exact(narrow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cp, "_NARROW", narrow)
    monkeypatch.setattr(LocalSearch, "run", lambda *_: None)
    rounds = 0
    for number in range(20):
        instance = with_equals(number)
        best = brute_force(instance)
        result = cp.solve_cp(instance, SolveOptions(threads=1))
        rounds += result.info.get("rounds", 0)
        if best is None:
            assert result.status is Status.INFEASIBLE
        else:
            assert (result.status, result.objective, result.bound) == (Status.OPTIMAL, best[0], best[0])
    assert rounds >= 15


def test_a_makespan_one_slot_too_short_is_refuted_with_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optimum is 33, area and slots say 31; minimising without orders and energy took ten times the work."""
    monkeypatch.setattr(LocalSearch, "run", lambda *_: None)
    instance = contended_grid(8, family="quads", horizon=32)
    result = cp.solve_cp(instance, SolveOptions(threads=1, work_limit=1.0))
    assert result.status is Status.INFEASIBLE


def test_jobs_that_never_cross_are_equal_where_their_slots_are() -> None:
    """Iterations that fill as many slots make no difference; those of a ring do, for its slots in company."""
    made = contended_grid(0, jobs=8, servers=3, family="mixed")
    lone = next(job for job in made.jobs if job.gpus == 1)
    jobs = (lone, lone.model_copy(update={"id": "other", "iterations": lone.iterations - 1}))
    instance = made.model_copy(update={"jobs": jobs})
    options = job_options(instance)
    assert options[0].local_duration == options[1].local_duration and rate_table(instance).iterations[0] > 1
    assert ordered(instance, options) == 1
    ring = next(job for job in made.jobs if job.gpus > 1)
    jobs = (ring, ring.model_copy(update={"id": "other", "iterations": ring.iterations - 1}))
    instance = made.model_copy(update={"jobs": jobs})
    assert ordered(instance, job_options(instance)) == 0


def ordered(instance: RarDdlsInstance, options: list[JobOptions]) -> int:
    """How many rows say no more than that one job starts no later than another."""
    intervals = IntervalModel(instance, options, 1, 50, contention=True)
    pair = {intervals.start[0].index, intervals.start[1].index}
    rows = [row.linear for row in intervals.model.proto.constraints if row.has_linear()]
    return sum(set(row.vars) == pair for row in rows)
