"""Random small clusters for the simulators, and the placement rules once more, in plain Python."""

from __future__ import annotations

import random
from collections.abc import Sequence

from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import Log
from schedgap.heuristics.ddl_cluster.conservation import Conservation
from schedgap.heuristics.ddl_cluster.simulation import FastRun


def broken_conservation(instance: DdlClusterInstance, run: FastRun, limit: int) -> list[str]:
    """What is broken in a run whose record is whole; at most `limit` all-reduces on a server."""
    conserved = Conservation(instance, limit)
    conserved.add(run.log, run.placement)
    conserved.finish(run.log, run.placement, run.finish)
    return conserved.broken


def random_cluster(seed: int) -> DdlClusterInstance:
    """2 to 8 jobs on 2 to 4 servers of 1 to 3 GPUs; every third has durations and times that tie, some are placed."""
    rng = random.Random(seed)
    sizes = [rng.randint(1, 3) for _ in range(rng.randint(2, 4))]
    gpus = [(f"s{s}", g) for s, size in enumerate(sizes) for g in range(size)]
    ties = seed % 3 == 0

    def seconds(low: float, high: float) -> float:
        return float(rng.randint(1, 3)) if ties else round(rng.uniform(low, high), 3)

    parts = []
    for position in range(rng.randint(2, 8)):
        width = rng.randint(1, min(4, len(gpus)))
        part = {
            "id": f"j{position}",
            "arrival": float(rng.randint(0, 4)) if ties else round(rng.uniform(0, 4), 2),
            "gpus": width,
            "iterations": rng.choice([1, 2, 3, 5, 9]),
            "forward": seconds(0.1, 1.0),
            "backward": seconds(0.1, 1.5),
            "message": seconds(0.1, 3.0),
            "memory": rng.choice([1.0, 2.0, 3.0]),
        }
        if rng.random() < 0.15:
            part["placement"] = [list(gpu) for gpu in rng.sample(gpus, width)]
        parts.append(part)
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "name": f"cluster-{seed}",
            "gpu_memory": rng.choice([3.0, 5.0, 9.0]),
            "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
            "link": {
                "latency": rng.choice([0.0, 0.05, 1.0]),
                "seconds_per_unit": rng.choice([1.0, 0.25]),
                "contention_penalty": rng.choice([0.0, 0.1, 0.5]),
            },
            "jobs": parts,
        }
    )


def sharing_links(iterations: int, apart: float = 0.1) -> DdlClusterInstance:
    """Three jobs across the same two servers, each on GPUs of its own: they meet on the links alone."""
    parts = {"gpus": 2, "iterations": iterations, "memory": 1.0}
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "gpu_memory": 1.0,
            "servers": [{"id": "s0", "gpus": 3}, {"id": "s1", "gpus": 3}],
            "link": {"latency": 0.01, "seconds_per_unit": 1.0, "contention_penalty": 0.5},
            "jobs": [
                parts
                | {"id": f"j{k}", "arrival": 0.2 * k, "forward": 0.5 + 3 * apart * k, "backward": 0.7}
                | {"message": 0.4 + apart * k, "placement": [["s0", k], ["s1", k]]}
                for k in range(3)
            ],
        }
    )


def services_at(instance: DdlClusterInstance, spans: Sequence[bool], log: Log, now: int) -> list[int]:
    """Remaining service of every job at `now`, from the recorded ends of its tasks; all-reduces count once placed."""
    clock = clock_of(instance)
    result = []
    for j, job in enumerate(instance.jobs):
        ends = log.end[log.task_base[j] : log.task_base[j + 1]]
        left = sum(clock.forward[j] for end in ends[0::2] if end > now)
        left += sum(clock.backward[j] for end in ends[1::2] if end > now)
        if spans[j] and 0 <= log.placed[j] <= now:
            done = log.done[log.message_base[j] : log.message_base[j + 1]]
            left += job.gpus * clock.solo[j] * sum(1 for end in done if end > now)
        result.append(left)
    return result


def expected_gpus(
    instance: DdlClusterInstance,
    job: int,
    rule: str,
    kappa: int,
    free: Sequence[int],
    weight: Sequence[int],
    draws: Sequence[float],
) -> list[int] | None:
    """The GPUs, counted through, that a rule gives a job in this order; None where there is no memory for it."""
    clock = clock_of(instance)
    need = instance.jobs[job].gpus
    room = [g for g in range(instance.total_gpus) if free[g] >= clock.memory[job]]
    if len(room) < need:
        return None
    if rule == "ff":
        return room[:need]
    if rule == "rand":
        picked = []
        for k in range(need):
            place = k + int(draws[k] * (len(room) - k))
            room[k], room[place] = room[place], room[k]
            picked.append(room[k])
        return picked
    if rule == "ls" or need <= kappa:
        return sorted(room, key=lambda g: (weight[g], g))[:need]
    servers = []
    for first, server in zip(instance.first_gpu, instance.servers, strict=True):
        own = range(first, first + server.gpus)
        servers.append((sum(weight[g] for g in own), first, [g for g in own if g in room]))
    return [g for _, _, own in sorted(servers) for g in sorted(own, key=lambda g: (weight[g], g))][:need]


def full_memory(instance: DdlClusterInstance) -> list[int]:
    """The free memory of every GPU before anything is placed."""
    return [MEMORY_CAPACITY] * instance.total_gpus
