"""Random rar-ddls instances with decimals on the edge of a whole rate, and random schedules, feasible or not."""

from __future__ import annotations

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

# 1/tau of these is a whole number, just below one, or within 1e-9 of one.
EDGES = [0.1, 0.2, 0.05, 0.25, 0.125, 0.5, 0.3333333333, 0.33333333333333, 0.3333333336, 0.142857142857, 2.0, 1e-5]


def random_edgy(rng: np.random.Generator) -> RarDdlsInstance:
    """Up to 12 jobs on up to 8 servers; iteration times that are sums of few-digit decimals."""

    def pick(nice: list[float], high: float) -> float:
        return float(rng.choice(nice)) if rng.random() < 0.7 else float(rng.random() * high)

    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "name": "edgy",
            "horizon": 10**6,
            "network": {
                "inter_bandwidth": pick([1.0, 0.1, 0.3, 2.0], 2.0) + 1e-9,
                "intra_bandwidth": 50.0,
                "contention_scale": min(1.0, pick([1.0, 0.5, 0.1, 1 / 3, 0.2, 0.25], 1.0) + 1e-6),
                "contention_penalty": pick([0.0, 0.2, 0.5, 1.0, 1e12], 2.0),
                "server_overhead": pick([0.0, 0.01, 0.05, 1e-9], 0.01),
            },
            "reduce_speed": pick([10.0, 100.0, 1e15], 100.0) + 1e-3,
            "servers": [{"id": f"s{s}", "gpus": int(rng.integers(1, 13))} for s in range(int(rng.integers(1, 9)))],
            "jobs": [
                {
                    "id": f"j{j}",
                    "gpus": int(rng.integers(1, 13)),
                    "iterations": int(rng.integers(1, 101)),
                    "gradient_size": pick([0.0, 0.1, 0.05, 0.3, 1.0], 0.1),
                    "batch_size": int(rng.integers(1, 65)),
                    "forward_time": pick([0.0, 0.001, 0.01, 1e-6], 0.01),
                    "backward_time": pick(EDGES, 0.5) + 1e-12 * (rng.random() < 0.1),
                }
                for j in range(int(rng.integers(1, 13)))
            ],
        }
    )


def random_schedule(
    rng: np.random.Generator, instance: RarDdlsInstance, earliest: int = 1, latest: int = 30
) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Start slots and placements at random; servers may be overfilled."""
    start: dict[str, int] = {}
    placement: dict[str, dict[str, int]] = {}
    for job in instance.jobs:
        start[job.id] = int(rng.integers(earliest, latest + 1))
        placed: dict[str, int] = {}
        for _ in range(job.gpus):
            server = instance.servers[int(rng.integers(len(instance.servers)))].id
            placed[server] = placed.get(server, 0) + 1
        placement[job.id] = placed
    return start, placement
