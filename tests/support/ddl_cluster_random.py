"""Random tiny instances of ddl-cluster with given placements, decimals and latencies included."""

from __future__ import annotations

import random
from typing import Any

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance


def placed_instance(
    seed: int, *, jobs: int = 3, servers: int = 2, gpus: int = 2, iterations: int = 2, tight: bool = False
) -> DdlClusterInstance:
    """Jobs of 1 to 3 GPUs; with `tight`, memory that does not hold all of them."""
    rng = random.Random(seed)
    everywhere = [(f"s{s}", g) for s in range(servers) for g in range(gpus)]
    parts: list[dict[str, Any]] = []
    for position in range(jobs):
        width = rng.choice([1, 2, 2, min(3, len(everywhere))])
        parts.append(
            {
                "id": f"j{position}",
                "arrival": round(rng.random() * 4, 1) if rng.random() < 0.6 else 0.0,
                "gpus": width,
                "iterations": rng.randint(1, iterations),
                "forward": round(rng.uniform(0.5, 3), 1),
                "backward": round(rng.uniform(0.5, 3), 1),
                "message": round(rng.uniform(0.5, 6), 1),
                "memory": rng.choice([1.0, 2.0]),
                "placement": [list(gpu) for gpu in rng.sample(everywhere, width)],
            }
        )
    link = {
        "latency": rng.choice([0.0, 0.3]),
        "seconds_per_unit": rng.choice([1.0, 0.8]),
        "contention_penalty": rng.choice([0.0, 0.3, 0.5]),
    }
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "gpu_memory": 3.0 if tight else 100.0,
            "servers": [{"id": f"s{s}", "gpus": gpus} for s in range(servers)],
            "link": link,
            "jobs": parts,
        }
    )
