"""Schedules of the job shop are carried out in exact times: long rows of all-reduces do not meet by rounding."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest
from support.checks import ddl_cluster as check

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import all_problems
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.given_placement import Sharing, given_placement
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import simulate_plain
from schedgap.formulations.ddl_cluster.timetable import AllReduce, Plan, timetable
from schedgap.solvers.exact.ddl_cluster.cp_model import rounded_run
from schedgap.solvers.exact.ddl_cluster.methods import solve_cp, solve_job_shop
from schedgap.solvers.result import SolveOptions, Status, Termination

FOUND = Path(__file__).parents[1] / "data" / "ddl-job-shop-chain.json"
DIGITS = 6
"""Decimals of the starts that the model decides."""


def in_turn(iterations: int, penalty: float) -> DdlClusterInstance:
    """Two jobs on the same two servers whose all-reduces take turns without a pause."""
    jobs = [
        {"id": f"j{k}", "arrival": 0.0, "gpus": 2, "iterations": iterations, "forward": 0.001, "backward": 0.0013}
        | {"message": 99.2 + 3.8 * k, "memory": 1.0, "placement": [["s0", k], ["s1", k]]}
        for k in range(2)
    ]
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "gpu_memory": 10.0,
            "servers": [{"id": "s0", "gpus": 2}, {"id": "s1", "gpus": 2}],
            "link": {"latency": 0.000669, "seconds_per_unit": 0.000853, "contention_penalty": penalty},
            "jobs": jobs,
        }
    )


def plan_of_first_come(instance: DdlClusterInstance) -> Plan:
    """What srsf-1 does, with starts rounded down to six decimals and the order of the all-reduces on each server."""
    placement = given_placement(instance, "test")
    point = rounded_run(instance, simulate_plain(instance, placement, "srsf-1", record=True), DIGITS)
    step = 10.0**-DIGITS
    servers = [{server for server, _ in gpus} for gpus in placement]
    sharing = Sharing.of(placement)
    after: dict[AllReduce, list[AllReduce]] = {}
    spanning = [key for key in point.begin if len(servers[key[0]]) > 1]
    for one, other in combinations(spanning, 2):
        if one[0] != other[0] and servers[one[0]] & servers[other[0]]:
            first, second = sorted((one, other), key=lambda key: point.begin[key])
            after.setdefault(second, []).append(first)
    start = {
        (j, i, kind, w): point.start[j, i, kind, w] * step
        for j, groups in enumerate(sharing.workers)
        for group in groups.values()
        for w in group
        for i in range(instance.jobs[j].iterations)
        for kind in (0, 1)
    }
    return Plan(start, {key: point.begin[key] * step for key in spanning}, after, {})


@pytest.mark.parametrize("penalty", [0.00026, 0.026])
def test_all_reduces_in_turn_do_not_meet(penalty: float) -> None:
    instance = in_turn(120, penalty)
    solution = timetable(instance, given_placement(instance, "test"), plan_of_first_come(instance))
    report = check(instance, json.loads(json.dumps(solution)))
    assert report.feasible, report.violations[0].message
    a, b, _ = instance.link.exact_parameters()
    # one waits for the other's first all-reduce; from then on the link never rests for longer than a latency
    sizes = sum((exact(job.message) for job in instance.jobs), Fraction(0))
    assert max(report.details["finish"].values()) <= float(120 * (b * sizes + 2 * a) + Fraction(1, 100))


def test_the_job_shop_that_disagreed() -> None:
    instance = DdlClusterInstance.parse(json.loads(FOUND.read_text()))
    placement = given_placement(instance, "test")
    report = check(instance, timetable(instance, placement, plan_of_first_come(instance)))
    assert report.feasible, report.violations[0].message
    told = simulate_plain(instance, placement, "srsf-1").finish
    wanted = sum(told) - sum(job.arrival for job in instance.jobs)
    assert float(report.objective) * len(told) == pytest.approx(wanted, abs=1e-3)


def test_job_shop_keeps_what_it_finds_on_a_row_of_all_reduces() -> None:
    instance = in_turn(10, 0.026)
    result = solve_job_shop(instance, SolveOptions(threads=1, work_limit=0.4))
    assert result.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert check(instance, result.solution).feasible


def test_a_bound_that_creeps_over_the_grid_is_stopped_by_the_work_limit() -> None:
    """CP-SAT raises the bound of this one by a grid step at a time and counts nearly no work for it."""
    instance, _ = workload_of(all_problems()["ddl-cluster"]).trials()["tiny"](50)
    result = solve_cp(instance, SolveOptions(threads=1, seed=50, work_limit=0.5))
    assert result.objective == 14 and result.bound is not None and 13 <= result.bound <= 14
    assert result.status is Status.OPTIMAL or result.termination is Termination.WORK_LIMIT
