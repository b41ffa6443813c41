"""The online loop on the other problems: policies that never look ahead give the schedules of their heuristics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import schedgap
from schedgap.benchmarks.instances import workload_of
from schedgap.benchmarks.online import ddljs as on_ddljs
from schedgap.benchmarks.online import hadar as on_hadar
from schedgap.benchmarks.online.ddl_cluster import AdaSrsf
from schedgap.benchmarks.online.replay import Estimates, Replay, World, replay_here, world_of
from schedgap.catalogue.registry import find_problem
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Instance
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.ddl_cluster.policies import ada_srsf
from schedgap.heuristics.ddljs.gadget import gadget
from schedgap.heuristics.hadar.baselines import srpt, tiresias
from schedgap.heuristics.hadar.online import hadar_online, price_ends
from schedgap.heuristics.hadar.rounds import hadar_rounds


def in_order(problem: str, seeds: int) -> Iterator[Any]:
    """Of all families, their jobs in order of arrival, so that ties by position are ties by arrival."""
    form = find_problem(problem).instance_class
    for make in workload_of(find_problem(problem)).trials().values():
        for seed in range(seeds):
            data = make(seed)[0].to_dict()
            yield form.parse({**data, "jobs": sorted(data["jobs"], key=lambda job: job["arrival"])})


def world(instance: Instance, estimates: Estimates = "exact", **given: Any) -> World:
    made = world_of(find_problem(instance.problem_id), instance, estimates=estimates, seed=1, **given)
    assert made is not None
    return made


def run(instance: Instance, policy: Any, estimates: Estimates = "exact") -> Replay:
    return replay_here(world(instance, estimates, preempts=getattr(policy, "preempts", False)), policy)


def admits(umin: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any], Estimates]:
    """With the ends of prices that the paper takes as known."""

    def policy(instance: Any) -> Any:
        try:
            ends = price_ends(instance, tables(instance), umin, "printed")
        except InputError:
            ends = None  # there are none: the heuristic finds nothing
        return on_hadar.HadarOnline(instance.horizon, ends)

    return policy, lambda instance: hadar_online(instance, umin=umin), "exact"  # type: ignore[arg-type]


HADAR = list(in_order("hadar", 5))
HADAR_PAIRS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Estimates]] = {
    "hadar-rounds": (lambda one: on_hadar.HadarRounds(one.horizon), hadar_rounds, "exact"),
    "hadar-online": admits("printed"),
    "hadar-online, direct": admits("direct"),
    "tiresias": (lambda one: on_hadar.Tiresias(), tiresias, "none"),
    "srpt": (lambda one: on_hadar.Srpt(), srpt, "exact"),
}


@pytest.mark.parametrize("name", HADAR_PAIRS)
def test_a_policy_of_hadar_gives_the_schedule_of_the_heuristic(name: str) -> None:
    policy, heuristic, estimates = HADAR_PAIRS[name]
    same = 0
    for instance in HADAR:
        mine, theirs = run(instance, policy(instance), estimates), heuristic(instance)
        solution = theirs.solution or theirs.partial
        if solution is None:  # jobs that must finish did not, or there are no prices
            assert not mine.report.feasible or theirs.info["stopped"] == "no prices"
            continue
        assert mine.solution == solution, instance.name
        assert mine.report.feasible
        same += bool(solution["allocation"])
    assert same > 10


DDLJS = [one for one in in_order("ddljs", 2) if len(one.jobs) * one.horizon <= 20]


@pytest.mark.parametrize("inner", ["colgen", "greedy", "lp-rs-mde"])
def test_gadget_gives_the_schedule_of_the_heuristic(inner: str) -> None:
    """Algorithm 2 draws: its seeds are the slots in both."""
    ran = 0
    for instance in DDLJS:
        mine = run(instance, on_ddljs.Gadget(inner, horizon=instance.horizon))
        theirs = gadget(instance, inner=inner).solution  # type: ignore[arg-type]
        assert theirs is not None and mine.solution["slots"] == theirs["slots"], instance.name
        assert mine.report.feasible
        ran += any(slot["rings"] for slot in theirs["slots"])
    assert ran > 10


DDL_CLUSTER = [
    *(one for one in in_order("ddl-cluster", 3) if len(one.jobs) < 50),
    *(schedgap.generate("ddl-cluster", "small", seed=seed) for seed in range(3, 15)),
]


def test_ada_srsf_gives_the_schedule_of_the_heuristic() -> None:
    held = 0
    for instance in DDL_CLUSTER:
        mine, theirs = run(instance, AdaSrsf()).solution, ada_srsf(instance).solution
        assert theirs is not None and mine["finish"] == theirs["finish"], instance.name
        assert {job: sorted(gpus) for job, gpus in mine["placement"].items()} == {
            job: sorted(gpus) for job, gpus in theirs["placement"].items()
        }
        held += "release" in mine
    assert held > 3  # somebody waits
