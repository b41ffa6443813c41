"""Random small rar-ddls instances for comparing the fast heuristics with the plain ones: not solved, so not tiny."""

from __future__ import annotations

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance


def random_small(rng: np.random.Generator) -> RarDdlsInstance:
    """1 to 14 jobs on 1 to 6 servers of 1 to 6 GPUs; heavy traffic makes rings slow each other, some to a stall."""
    sizes = rng.integers(1, 7, size=int(rng.integers(1, 7))).tolist()
    total = sum(sizes)
    widest = int(rng.integers(1, min(total, 9) + 1))
    jobs = []
    for j in range(int(rng.integers(1, 15))):
        compute = float(rng.choice([0.02, 0.05, 0.1, 0.2, 0.3, 0.45]))
        jobs.append(
            {
                "id": f"j{j}",
                "gpus": int(rng.integers(1, widest + 1)),
                "iterations": int(rng.integers(1, 60)),
                "gradient_size": float(rng.choice([0.0, 0.02, 0.1, 0.3, 0.6])),
                "batch_size": int(rng.choice([8, 16])),
                "forward_time": 0.0,
                "backward_time": compute,
            }
        )
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "name": "small",
            "horizon": int(rng.choice([15, 40, 120, 500])),
            "network": {
                "inter_bandwidth": float(rng.choice([1.0, 2.0, 4.0])),
                "intra_bandwidth": 50.0,
                "contention_scale": float(rng.choice([0.5, 0.75, 1.0])),
                "contention_penalty": float(rng.choice([0.0, 0.3, 1.0])),
                "server_overhead": float(rng.choice([0.0, 0.01, 0.05])),
            },
            "reduce_speed": 100.0,
            "servers": [{"id": f"s{s}", "gpus": int(size)} for s, size in enumerate(sizes)],
            "jobs": jobs,
        }
    )
