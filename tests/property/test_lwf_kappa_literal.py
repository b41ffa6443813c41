"""LWF-kappa against Algorithm 1 of paper 001 written anew: every placement of a run is the literal one."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.lwf_kappa import Gpu, adadual, lwf_kappa

from schedgap.benchmarks.instances.ddl_cluster.random import small, tiny
from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.heuristics.common.growth import Steps
from schedgap.heuristics.ddl_cluster.guarantees import (
    decision_growth,
    place_literally,
    placement_growth,
    start_literally,
)
from schedgap.heuristics.ddl_cluster.simulation import FastRun, simulate

KAPPAS = (1, 2, 4)
INSTANCES = 60


def _drawn(seed: int) -> DdlClusterInstance:
    """Jobs of 1 to 4 GPUs that queue for memory on few GPUs, or small gangs."""
    if seed % 3 == 0:
        return tiny(seed, jobs=3, servers=3)
    return small(seed, jobs=16, servers=3, iterations=8, seconds=0.5 if seed % 3 == 1 else 4.0)


def _left(instance: DdlClusterInstance, run: FastRun, j: int, now: int) -> int:
    """Remaining service of a placed job in ticks: tasks and all-reduces that have not ended, each in full."""
    clock, job, log = clock_of(instance), instance.jobs[j], run.log
    ended = log.end[log.task_base[j] : log.task_base[j + 1]].reshape(job.iterations, job.gpus, 2) <= now
    forward = int((~ended[:, :, 0]).sum()) * clock.forward[j]
    backward = int((~ended[:, :, 1]).sum()) * clock.backward[j]
    if len({server for server, _ in run.placement[j]}) == 1:
        return forward + backward
    done = log.done[log.message_base[j] : log.message_base[j + 1]] <= now
    return forward + backward + job.gpus * clock.solo[j] * (job.iterations - int(done.sum()))


@pytest.mark.parametrize("kappa", KAPPAS)
def test_every_placement_is_the_literal_one(kappa: int) -> None:
    compared = waited = spread = 0
    for seed in range(INSTANCES):
        instance = _drawn(seed)
        clock = clock_of(instance)
        run = simulate(instance, "ada-srsf", "lwf", kappa=kappa, record=True)
        sizes = [server.gpus for server in instance.servers]
        alone = [
            job.gpus * job.iterations * (clock.forward[j] + clock.backward[j]) for j, job in enumerate(instance.jobs)
        ]
        placed = np.asarray(run.log.placed)
        order = sorted(range(len(instance.jobs)), key=lambda j: (placed[j], alone[j], j))
        for position, j in enumerate(order):
            now = int(placed[j])
            rest: dict[Gpu, int] = {(s, g): MEMORY_CAPACITY for s, size in enumerate(sizes) for g in range(size)}
            load: dict[Gpu, int] = dict.fromkeys(rest, 0)
            for i in order[:position]:
                if run.finish[i] > now:
                    for gpu in run.placement[i]:
                        rest[gpu] -= clock.memory[i]
                        load[gpu] += _left(instance, run, i, now)
            if instance.given[j] is not None:  # the file says where
                continue
            literal = lwf_kappa(instance.jobs[j].gpus, clock.memory[j], kappa, sizes, rest, load)
            assert literal is not None and sorted(literal) == sorted(run.placement[j]), (instance.name, j)
            compared += 1
            waited += now > clock.arrival[j]
            spread += len({server for server, _ in run.placement[j]}) > 1
    assert compared > 500 and waited > 50 and spread > 50, (compared, waited, spread)


@pytest.mark.parametrize(("first", "literal"), [(0, True), (1, False)])
def test_algorithm_2_literally_compares_with_the_first_busy_server(first: int, literal: bool) -> None:
    """A message of 4 meets one of 100 on a server and one of 5 on another; 2 (b + eta) 4 = 10 b.

    Line 5 of Algorithm 2 is strict, so that only the first server's is collected; ours takes the smallest of both.
    """

    def job(name: str, forward: float, message: float, servers: tuple[int, int]) -> dict[str, object]:
        times = {"arrival": 0.0, "gpus": 2, "iterations": 1, "forward": forward, "backward": 1.0}
        return {"id": name, **times, "message": message, "memory": 1.0, "placement": [[f"s{s}", 0] for s in servers]}

    data = {
        "problem": "ddl-cluster",
        "name": "first-busy-server",
        "gpu_memory": 2.0,
        "servers": [{"id": f"s{n}", "gpus": 2} for n in range(4)],
        "link": {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": 0.25},
    }
    newcomer = {**job("new", 2.0, 4.0, (first, 1 - first)), "placement": [[f"s{first}", 1], [f"s{1 - first}", 1]]}
    jobs = [job("long", 1.0, 100.0, (0, 2)), job("short", 1.0, 5.0, (1, 3)), newcomer]
    instance = DdlClusterInstance.parse({**data, "jobs": jobs})
    on_servers = [[100.0 - 1.0], [5.0 - 1.0]] if first == 0 else [[5.0 - 1.0], [100.0 - 1.0]]
    assert adadual(4.0, on_servers, 2.5) is literal
    admitted = {}
    for as_printed in (False, True):
        run = simulate(instance, "ada-srsf", "lwf", first_server=as_printed)
        admitted[as_printed] = int(run.log.admitted[run.log.message_base[2]]) / clock_of(instance).backward[0]
    assert admitted[False] > 3.0, "the shorter of both is too short to meet"
    assert (admitted[True] == 3.0) is literal


@pytest.mark.parametrize("kappa", [1, 4])
def test_counted_steps_are_those_of_the_literal_algorithms(kappa: int) -> None:
    rng = np.random.default_rng(kappa)
    for servers, gpus, wanted in ((1, 1, 1), (5, 4, 3), (20, 3, 12), (40, 8, 4)):
        loads = rng.integers(0, 4, (servers, gpus)).tolist()
        every = {(s, g): loads[s][g] for s in range(servers) for g in range(gpus)}
        steps = Steps()
        placed = place_literally(wanted, kappa, loads, steps)
        assert placed == lwf_kappa(wanted, 0, kappa, [gpus] * servers, dict.fromkeys(every, 1), every)
        assert servers * gpus <= steps.count <= 3 * servers * gpus * max(1, np.log2(servers * gpus))
    for case in range(40):
        tasks = [rng.uniform(0, 1, rng.integers(0, case % 2 + 2)).tolist() for _ in range(case % 5)]
        new, steps = float(rng.uniform(0, 1)), Steps()
        assert start_literally(tasks, new, 2.6, steps) is adadual(new, tasks, 2.6)
        assert len(tasks) <= steps.count <= len(tasks) + 1 + 2


def test_time_grows_with_the_servers_as_printed_and_with_their_gpus_too() -> None:
    values = placement_growth(0).values
    assert 0.95 < values["exponent_small"] < 1.05 and 0.85 < values["exponent_large"] < 1.05
    assert values["exponent_gpus"] > 1.0, "printed: left out as few"
    assert 0.9 < decision_growth(0).values["exponent_servers"] < 1.05
