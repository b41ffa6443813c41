"""List scheduling that holds GPUs: the plain form's schedule, accepted by the checker, and better than the policies."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from oracles.ddl_cluster_list import plain_listed, plain_queue
from support.checks import ddl_cluster as check
from support.ddl_cluster_clusters import random_cluster

from schedgap.benchmarks.instances.ddl_cluster.random import small
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.heuristics.ddl_cluster.holding import Queue, easy_hold, fifo_hold, list_hold
from schedgap.heuristics.ddl_cluster.policies import srsf_1
from schedgap.solvers.exact.ddl_cluster.gangs import Gangs
from schedgap.solvers.result import Deadline


def crowded(seed: int) -> DdlClusterInstance:
    """A random cluster whose jobs come several times, some on given GPUs."""
    data, rng = random_cluster(seed).to_dict(), random.Random(seed)
    first = list(data["jobs"])
    for k in range(rng.randint(0, 3)):
        data["jobs"] += [job | {"id": f"{job['id']}-{k}", "arrival": rng.choice([0.0, 1.0, 5.0])} for job in first]
    return DdlClusterInstance.parse(data)


@pytest.mark.parametrize("seed", range(60))
def test_the_schedule_is_that_of_the_plain_form(seed: int) -> None:
    instance = crowded(seed)
    gangs = Gangs(instance)
    rng = random.Random(seed)
    later = [arrival + rng.choice([0, rng.randint(0, 10**11)]) for arrival in gangs.arrival]
    for groups in ([(j,) for j in range(len(instance.jobs))], gangs.matched()):
        for ready in (gangs.arrival, later):
            blocks, gpus = plain_listed(gangs, groups, ready)
            laid = gangs.listed(groups, ready)
            assert list(laid.blocks) == blocks
            assert dict(enumerate(laid.gpus)) == gpus


@pytest.mark.parametrize("passing", [False, True], ids=["fifo-hold", "easy-hold"])
@pytest.mark.parametrize("seed", range(60))
def test_a_queue_is_that_of_the_plain_form(seed: int, passing: bool) -> None:
    gangs = Gangs(crowded(seed))
    queue = Queue(gangs, passing)
    while queue.first < len(gangs.alone):
        queue.advance()
    blocks, gpus = plain_queue(gangs, passing)
    assert queue.blocks == blocks
    assert dict(enumerate(queue.gpus)) == gpus


def test_who_passes_does_not_make_the_first_wait() -> None:
    passed = 0
    for seed in range(0, 60, 4):
        instance = crowded(seed)
        queued, eased = fifo_hold(instance).solution, easy_hold(instance).solution
        assert queued is not None and eased is not None
        for solution in (queued, eased):
            assert check(instance, solution).feasible
        begun = [solution.get("release", {}) for solution in (queued, eased)]
        order = sorted(instance.jobs, key=lambda job: job.arrival)
        begins = [[held.get(job.id, job.arrival) for job in order] for held in begun]
        assert begins[0] == sorted(begins[0])
        passed += begins[1] != sorted(begins[1])
        first = next((k for k, (own, other) in enumerate(zip(*begins, strict=True)) if own != other), None)
        assert first is None or begins[1][first] < begins[0][first]
    assert passed > 3


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_jobs_hold_their_gpus(seed: int) -> None:
    instance = crowded(seed)
    for pairs in (False, True):
        run = list_hold(instance, pairs=pairs)
        assert run.solution is not None
        report = check(instance, run.solution)
        assert report.feasible, report.violations
        begin = {job.id: run.solution.get("release", {}).get(job.id, job.arrival) for job in instance.jobs}
        end, gpus = run.solution["finish"], run.solution["placement"]
        meet = sum(
            max(begin[one], begin[other]) < min(end[one], end[other]) * (1 - 1e-12)
            and any(gpu in gpus[other] for gpu in gpus[one])
            for one, other in combinations(end, 2)
        )
        assert meet == run.info["pairs"] and (pairs or meet == 0)


def test_it_is_better_than_a_policy_where_links_are_scarce() -> None:
    for seed in range(5):
        instance = small(seed, jobs=30, seconds=1.0)
        held, shared = (check(instance, method(instance).solution).objective for method in (list_hold, srsf_1))
        assert held < shared


def test_a_long_job_waits_for_a_rush_of_short_ones() -> None:
    data = small(0).to_dict()
    data["servers"] = [{"id": "s0", "gpus": 1}]
    base = data["jobs"][0] | {"gpus": 1, "memory": 1.0, "forward": 0.5, "backward": 0.5}
    short = [base | {"id": f"s{k}", "arrival": 1.0, "iterations": 2} for k in range(40)]
    data["jobs"] = [base | {"id": "long", "arrival": 0.0, "iterations": 1000}, *short]
    instance = DdlClusterInstance.parse(data)
    gangs = Gangs(instance)
    at_once = gangs.listed((j,) for j in range(41))
    report = check(instance, list_hold(instance).solution)
    assert report.feasible and at_once.finish[0] == 1000 * 10**gangs.clock.digits
    assert report.details["finish"]["long"] > max(report.details["finish"][job["id"]] for job in short)
    assert report.objective < 100 < (at_once.total - sum(gangs.arrival)) / 41 / 10**gangs.clock.digits


def test_a_limit_below_the_check_is_refused() -> None:
    for method in (list_hold, fifo_hold, easy_hold):
        run = method(small(0), deadline=Deadline.after(1e-9))
        assert run.solution is None and "the time limit is too short" in run.info["reason"]
