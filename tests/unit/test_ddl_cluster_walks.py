"""Walks through orders and placements of ddl-cluster, laid out task by task: every schedule is the checker's."""

from __future__ import annotations

import numpy as np
import pytest

import schedgap
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.ddl_cluster.check import check
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution
from schedgap.solvers.exact.ddl_cluster.placement import solve_placement
from schedgap.solvers.exact.ddl_cluster.task_walks import (
    MOST_TASKS,
    TOO_MUCH,
    TaskWalks,
    improve_by_walks,
    laid_out,
)
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.result import SolveOptions


def drawn(seed: int) -> DdlClusterInstance:
    """Three to eight jobs of up to five GPUs on servers of 1 to 3, of which memory holds two or three."""
    rng = np.random.default_rng(seed)
    sizes = [int(x) for x in rng.integers(1, 4, 3)]
    jobs = [
        {
            "id": f"j{k}",
            "arrival": round(float(rng.uniform(0, 4)), 2),
            "gpus": int(rng.integers(1, 1 + min(5, sum(sizes)))),
            "iterations": int(rng.integers(1, 7)),
            "forward": round(float(rng.uniform(0.05, 1)), 2),
            "backward": round(float(rng.uniform(0.05, 2)), 2),
            "message": round(float(rng.uniform(0.1, 3)), 2),
            "memory": float(rng.integers(3, 6)),
        }
        for k in range(int(rng.integers(3, 9)))
    ]
    link = {"latency": 0.1, "seconds_per_unit": float(rng.choice([0.2, 1.0])), "contention_penalty": 0.3}
    servers = [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)]
    return DdlClusterInstance.parse(
        {"problem": "ddl-cluster", "gpu_memory": 10.0, "servers": servers, "link": link, "jobs": jobs}
    )


def test_every_plan_is_a_schedule_with_these_finishes() -> None:
    """200 random clusters and plans: the checker, which replays in rationals, finds the sum of finishes."""
    waits = 0
    for seed in range(200):
        instance, rng = drawn(seed), np.random.default_rng(seed)
        walks = TaskWalks(instance)
        walks.begin(rng)
        n = len(instance.jobs)
        for plan in walks.plans[:1]:
            plan.rank[:] = rng.permutation(n)
            plan.patient[:] = rng.random((2, n)) < 0.5
            plan.release[:] = np.where(rng.random(n) < 0.3, 2 * walks.cluster.arrival, 0)
            total = laid_out(walks.cluster, plan, walks.now, TOO_MUCH, np.empty((0, 5), dtype=np.int64))
        assert total < TOO_MUCH
        verdict = check(instance, DdlClusterSolution.parse(walks.solution()))
        assert verdict.feasible, verdict.violations
        arrivals = sum(walks.clock.arrival)
        assert float(verdict.objective) == pytest.approx((total - arrivals) / 10**walks.clock.digits / n, rel=1e-9)
        assert laid_out(walks.cluster, plan, walks.now, total - 1, np.empty((0, 5), dtype=np.int64)) == TOO_MUCH
        waits += any(walks.now.spans)
    assert waits > 100


def test_a_walk_keeps_the_best_plan_and_is_repeatable() -> None:
    sums = []
    for _ in range(2):
        walks = TaskWalks(drawn(3))
        walks.begin(np.random.default_rng(1))
        first = laid_out(walks.cluster, walks.plans[0], walks.now, TOO_MUCH, np.empty((0, 5), dtype=np.int64))
        least = walks.walk(2_000, np.array([5]))
        again = laid_out(walks.cluster, walks.plans[0], walks.now, TOO_MUCH, np.empty((0, 5), dtype=np.int64))
        assert least == again < first
        sums.append(least)
    assert sums[0] == sums[1]


def test_walks_find_what_gangs_that_hold_their_gpus_cannot() -> None:
    """Short jobs compute while the messages of a long one move: gangs that hold GPUs wait for each other."""
    data = schedgap.generate("ddl-cluster", "small", seed=0).to_dict()
    long = {"gpus": 4, "iterations": 20, "forward": 0.05, "backward": 0.05, "message": 1000.0, "memory": 4000.0}
    short = {"gpus": 1, "iterations": 20, "forward": 0.02, "backward": 0.02, "message": 1.0, "memory": 4000.0}
    data["servers"] = [{"id": "s0", "gpus": 2}, {"id": "s1", "gpus": 2}]
    data["jobs"] = [{**long, "id": "long", "arrival": 0.0}]
    data["jobs"] += [{**short, "id": f"short{k}", "arrival": 1.0 + k} for k in range(11)]
    instance = DdlClusterInstance.parse(data)
    walked = solve_placement(instance, SolveOptions(work_limit=0.5))
    held = schedgap.solve(instance, "lns", work_limit=0.5)
    assert walked.objective is not None and held.objective is not None
    assert walked.objective < 0.98 * held.objective
    assert walked.info["found by"] == "walks"


def test_given_placements_and_large_instances_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TaskWalks, "begin", lambda *_: pytest.fail("walked"))
    large = schedgap.generate("ddl-cluster", "paper", seed=0)
    assert sum(2 * job.iterations * job.gpus for job in large.jobs) > MOST_TASKS
    for instance in (large, schedgap.generate("ddl-cluster", "tiny", seed=1)):
        best = Incumbent(MINIMISE, SolveOptions(work_limit=1.0), lambda _: pytest.fail("proposed"))
        improve_by_walks(instance, best, 1.0)
        assert best.work == 0
