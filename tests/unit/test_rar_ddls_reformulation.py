"""The enumerated reformulations of rar-ddls: joint schedules, (10)-(13), theta, and Theorem 1's variant."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from support.checks import rar_ddls as check
from support.rar_brute_force import brute_force, placements, random_tiny
from support.rar_fixed_sets import build_fixed_sets, reduced_instance

from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.models.joint_schedules import joint_schedules
from schedgap.formulations.rar_ddls.models.reformulation import build_reformulation, build_theta, smallest_theta
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.solvers.engines import engine
from schedgap.solvers.engines.arrays import rows_of
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.result import SolveOptions, Status


def feasible(model: DeclarativeModel) -> bool:
    status = engine("highs").solve(model, SolveOptions(threads=1)).status
    assert status in (Status.OPTIMAL, Status.INFEASIBLE)
    return status is Status.OPTIMAL


def small(seed: int, horizon: int = 4) -> RarDdlsInstance:
    """Two or three jobs, few enough that a plain loop over everything is possible."""
    data = random_tiny(np.random.default_rng(seed), contended=seed % 2 == 0).to_dict()
    data["jobs"] = data["jobs"][:2]
    data["horizon"] = horizon
    return RarDdlsInstance.parse(data)


def every_schedule(instance: RarDdlsInstance) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(starts, completions) of every feasible schedule, by a plain loop and the checker."""
    sizes = [server.gpus for server in instance.servers]
    found = []
    for placed in itertools.product(*(placements(job.gpus, sizes) for job in instance.jobs)):
        placement = {
            job.id: {instance.servers[s].id: gpus for s, gpus in enumerate(shares) if gpus}
            for job, shares in zip(instance.jobs, placed, strict=True)
        }
        for starts in itertools.product(range(1, instance.horizon + 1), repeat=len(instance.jobs)):
            start = {job.id: slot for job, slot in zip(instance.jobs, starts, strict=True)}
            report = check(instance, {"start": start, "placement": placement})
            if report.feasible:
                found.append((starts, tuple(report.details["completion"].values())))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_joint_schedules_are_all_there_is(seed: int) -> None:
    instance = small(seed)
    plain = every_schedule(instance)
    whole = joint_schedules(instance, latest=instance.horizon, limit=10**5, shifted=False)
    for schedule in whole:
        start, placement = schedule.solution["start"], schedule.solution["placement"]
        assert check(instance, schedule.solution).feasible
        completion = tuple(simulate(instance, start, placement).completion.values())
        assert schedule.completion == completion
        assert schedule.duration == tuple(c - a + 1 for c, a in zip(completion, start.values(), strict=True))
    kinds = {tuple(job.model_dump(exclude={"id"}).values()) for job in instance.jobs}
    if len(kinds) == len(instance.jobs):
        times = {(tuple(schedule.solution["start"].values()), schedule.completion) for schedule in whole}
        assert times == set(plain)
    # For each schedule there is a shifted one in which no job completes later (identical jobs may swap).
    shifted = [schedule.completion for schedule in joint_schedules(instance, latest=instance.horizon, limit=10**5)]
    assert len(shifted) <= len(whole)
    if len(kinds) < len(instance.jobs):
        plain = [(starts, tuple(sorted(ends))) for starts, ends in plain]
        shifted = [tuple(sorted(ends)) for ends in shifted]
    for _, ends in plain:
        assert any(all(mine <= theirs for mine, theirs in zip(other, ends, strict=True)) for other in shifted)


@pytest.mark.parametrize("seed", range(6))
def test_gpus_are_held_by_one_job_at_a_time(seed: int) -> None:
    instance = small(seed)
    first = [0, *itertools.accumulate(server.gpus for server in instance.servers)]
    for schedule in joint_schedules(instance, latest=instance.horizon, limit=10**5, each_gpu=True, shifted=False):
        taken = set()
        for j, job in enumerate(instance.jobs):
            placed = schedule.solution["placement"][job.id]
            for s, server in enumerate(instance.servers):
                mine = [g for g in schedule.gpus[j] if first[s] <= g < first[s + 1]]
                assert len(mine) == placed.get(server.id, 0)
            for g in schedule.gpus[j]:
                for slot in range(schedule.solution["start"][job.id], schedule.completion[j] + 1):
                    assert (g, slot) not in taken
                    taken.add((g, slot))


@pytest.mark.parametrize("seed", range(4))
def test_theta_star_is_the_smallest_over_all_gpu_sets(seed: int) -> None:
    instance = small(seed, horizon=6)
    best = {job.id: float(d) for job, d in zip(instance.jobs, rate_table(instance).best_duration, strict=True)}
    whole = joint_schedules(instance, latest=instance.horizon, limit=10**5, each_gpu=True, shifted=False)
    for rho_hat, u in ((best, 1.0), (best, 1.3), (None, 1.0)):
        loads = []
        for schedule in whole:
            times: dict[int, Fraction] = {}
            for j, job in enumerate(instance.jobs):
                rho = Fraction(schedule.duration[j]) if rho_hat is None else Fraction(int(rho_hat[job.id]))
                for g in schedule.gpus[j]:
                    times[g] = times.get(g, Fraction(0)) + rho / Fraction(str(u))
            loads.append(max(times.values()))
        theta = smallest_theta(instance, feasible, rho_hat=rho_hat, u=u, limit=10**5)
        assert theta == min(loads, default=None)
        if theta is not None:
            assert feasible(build_theta(instance, theta, rho_hat=rho_hat, u=u, limit=10**5))
            assert not feasible(build_theta(instance, theta - Fraction(1, 10**6), rho_hat=rho_hat, u=u, limit=10**5))
            optimum = brute_force(instance)
            assert optimum is not None and theta <= optimum[0]


def test_a_theta_schedule_can_be_read() -> None:
    instance = small(0, horizon=6)
    theta = smallest_theta(instance, feasible)
    assert theta is not None
    model = build_theta(instance, float(theta))
    answer = engine("cpsat").solve(model, SolveOptions(threads=1))
    assert check(instance, model.extract(answer.value)).feasible


def test_limits_and_bad_estimates() -> None:
    instance = random_tiny(np.random.default_rng(31), contended=True)
    with pytest.raises(InputError, match=r"jobs on 3 servers in \d+ slots have more than 10 joint schedules"):
        build_reformulation(instance, limit=10)
    far = small(0).model_copy(update={"horizon": 101})
    with pytest.raises(InputError, match="101 slots"):
        build_theta(far, 3)
    best = {job.id: 1.0 for job in small(0).jobs}
    for bad, line in (
        ({"j0": 1.0}, "rho_hat: no estimate for job 'j1'"),
        (best | {"x": 1.0}, "rho_hat: unknown job 'x'"),
        (best | {"j0": 0.0}, r"rho_hat\[0\]: must be a positive finite number of slots, got 0.0"),
        (best | {"j0": float("nan")}, r"rho_hat\[0\]: must be a positive finite number of slots, got nan"),
    ):
        with pytest.raises(InputError, match=line):
            build_theta(small(0), 3, rho_hat=bad)
    with pytest.raises(InputError, match="u: must be at least 1"):
        build_theta(small(0), 3, u=0.5)


def test_an_infeasible_instance_has_an_infeasible_reformulation() -> None:
    instance = small(0, horizon=1)
    assert brute_force(instance) is None
    result = solve_declarative(
        lambda: build_reformulation(instance), "highs", SolveOptions(threads=1), lambda given: check(instance, given)
    )
    assert result.status is Status.INFEASIBLE
    assert smallest_theta(instance, feasible) is None


def chromatic_number(graph: nx.Graph[Any]) -> int:
    vertices = list(graph)
    for colours in range(1, len(vertices) + 1):
        for colouring in itertools.product(range(colours), repeat=len(vertices)):
            of = dict(zip(vertices, colouring, strict=True))
            if all(of[a] != of[b] for a, b in graph.edges):
                return colours
    raise AssertionError


GRAPHS = [nx.gnp_random_graph(2 + seed % 5, (0.2, 0.5, 0.8)[seed % 3], seed=seed) for seed in range(18)]
GRAPHS += [nx.cycle_graph(7), nx.complete_graph(5), nx.empty_graph(3), nx.wheel_graph(6), nx.path_graph(1)]


@pytest.mark.parametrize("position", range(len(GRAPHS)))
def test_makespan_of_the_reduced_instance_is_the_chromatic_number(position: int) -> None:
    """Theorem 1's reduction, in the variant where each job's GPU set is fixed."""
    graph = GRAPHS[position]
    instance = reduced_instance(graph)
    assert sorted(len(gpus) for gpus in instance.gpus) == sorted(degree for _, degree in graph.degree())

    def verdict(solution: Solution) -> CheckReport:
        slot = solution["slot"]
        assert sorted(slot) == sorted(instance.jobs)
        assert all(slot[str(a)] != slot[str(b)] for a, b in graph.edges)
        return CheckReport((), Fraction(max(slot.values())))

    engine_name = ("highs", "cpsat", "cbc")[position % 3]
    options = SolveOptions(threads=1, start={"slot": {name: t for t, name in enumerate(instance.jobs, start=1)}})
    result = solve_declarative(lambda: build_fixed_sets(instance), engine_name, options, verdict)
    assert result.status is Status.OPTIMAL and result.objective == chromatic_number(graph)


def test_a_colouring_satisfies_the_model() -> None:
    graph = nx.cycle_graph(5)
    instance = reduced_instance(graph)
    model = build_fixed_sets(instance)
    assert model.assign is not None
    values = model.assign({"slot": {"0": 2, "1": 3, "2": 2, "3": 1, "4": 3}})
    assert model.extract(lambda variable: values[variable])["slot"].keys() == set(instance.jobs)
    for _, row in rows_of(model.problem):
        value = sum(weight * values[v] for v, weight in row.items()) + row.constant
        assert (row.sense < 0 or value >= 0) and (row.sense > 0 or value <= 0)
    assert model.assign({"slot": {name: t for t, name in enumerate(instance.jobs, start=1)}}) == {}


def test_graphs_that_cannot_be_reduced() -> None:
    with pytest.raises(InputError, match="no vertex"):
        reduced_instance(nx.Graph())
    with pytest.raises(InputError, match="vertex 1 has a loop"):
        reduced_instance(nx.Graph([(0, 1), (1, 1)]))
    with pytest.raises(InputError, match="same text"):
        reduced_instance(nx.Graph([(0, "0")]))
