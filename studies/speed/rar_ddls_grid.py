"""Instances of rar-ddls of any size in which rings must cross servers and meet each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgap.benchmarks.instances.profiles.throughputs import BUILT_IN
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

FAMILIES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]] = {
    "pairs": ((2,), (1, 2, 3, 4), (0.3, 0.2, 0.4, 0.1)),
    "mixed": ((2, 4), (1, 2, 3, 4, 6), (0.25, 0.2, 0.25, 0.15, 0.15)),
    "quads": ((4,), (1, 2, 3, 4, 6), (0.25, 0.2, 0.2, 0.1, 0.25)),
}
"""Families by name: GPUs of a server, gang sizes, and how often each size comes."""

_SCALES = {1: 1, 2: 2, 3: 4, 4: 4, 6: 8}


def contended_grid(
    seed: int,
    *,
    jobs: int = 20,
    servers: int = 6,
    family: str = "mixed",
    shortest: int = 3,
    longest: int = 12,
    horizon: int = 100_000,
) -> RarDdlsInstance:
    """Jobs whose gangs are often larger than a server, with measured ratios of spread to local rates.

    Gangs larger than every server must cross; two such rings on one server slow each other down
    (xi_1 = 0.7, alpha = 0.3). How much a job loses by crossing is measured (the built-in table of rates of
    V100s); its computation time per iteration is drawn from [0.01, 0.05] slots and its length from
    `shortest` to `longest` slots, alone on one server.

    Parameters
    ----------
    seed : the random seed
    jobs, servers : the size
    family : "pairs" (servers of 2 GPUs), "mixed" (2 and 4), "quads" (4)
    shortest, longest : slots
    horizon : slots
    """
    rng = np.random.default_rng([7, seed, jobs, servers])
    capacities, gangs, weights = FAMILIES[family]
    types = list(BUILT_IN.job_types("v100"))
    rows: list[dict[str, Any]] = []
    gpus = [int(rng.choice(capacities)) for _ in range(servers)]
    while len(rows) < jobs:
        gang = min(int(rng.choice(gangs, p=weights)), sum(gpus))
        rate = BUILT_IN.rate("v100", types[int(rng.integers(len(types)))], _SCALES.get(gang, 8))
        if not rate.consolidated or not rate.unconsolidated:
            continue
        slowdown = min(2.5, rate.consolidated / rate.unconsolidated) if gang > 1 else 1.0
        if gang > 1 and slowdown < 1.05:
            continue
        compute = float(rng.uniform(0.01, 0.05))
        gradient = compute * (slowdown - 1) * gang / (2 * (gang - 1)) if gang > 1 else 0.1
        rows.append(
            {
                "id": f"j{len(rows)}",
                "gpus": gang,
                "iterations": round(int(rng.integers(shortest, longest + 1)) / compute),
                "gradient_size": round(gradient, 6),
                "batch_size": 32,
                "forward_time": 0.0,
                "backward_time": round(compute, 6),
            }
        )
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "name": f"grid-{family}-{jobs}x{servers}-{seed}",
            "horizon": horizon,
            "network": {
                "inter_bandwidth": 1.0,
                "intra_bandwidth": 50.0,
                "contention_scale": 0.7,
                "contention_penalty": 0.3,
                "server_overhead": 0.0005,
            },
            "reduce_speed": 1000.0,
            "servers": [{"id": f"s{k}", "gpus": n} for k, n in enumerate(gpus)],
            "jobs": rows,
        }
    )
