"""How the recursion of Algorithm 2 of paper 002 grows: Theorem 1, measured by counting."""

from __future__ import annotations

import numpy as np

from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.common.guarantee import Measured

JOBS = tuple(range(2, 13))


def waiting_jobs(count: int, seed: int) -> HadarInstance:
    """`count` jobs of 1 to 3 workers that all fit at once on machines of three types, none like another."""
    rng = np.random.default_rng(seed)
    kinds = ("V100", "P100", "K80")
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": f"waiting-{count}-{seed}",
            "horizon": 40,
            "slot_length": 1.0,
            "machines": [{"id": f"h{h}", "gpus": dict.fromkeys(kinds, 2)} for h in range(count)],
            "jobs": [
                {
                    "id": f"j{j}",
                    "arrival": 1,
                    "workers": int(rng.integers(1, 4)),
                    "epochs": int(rng.integers(10, 60)),
                    "iterations_per_epoch": 1,
                    "throughput": {kind: int(rng.integers(2, 12)) for kind in kinds},
                    "utility": {"kind": "effective-throughput", "weight": 1.0},
                }
                for j in range(count)
            ],
        }
    )


def recursion_growth(seed: int) -> Measured:
    """Distinct memo keys (job, free devices) of one round with 2 to 12 waiting jobs that all fit.

    Theorem 1 counts n H R keys. ``doubling`` is the slope of log2(keys) over n by least squares: 0 would be
    polynomial (up to logarithms), 1 is a doubling with every job.

    Parameters
    ----------
    seed : of the instances
    """
    # loads numba, which naming the guarantees has no need of
    from schedgap.heuristics.hadar.rounds import Market, Recursion

    keys = []
    for count in JOBS:
        instance = waiting_jobs(count, seed + count)
        data = tables(instance)
        market = Market.of(instance, True, 0.0)
        left = np.array([job.target for job in data.jobs], dtype=np.int64)
        recursion = Recursion(market, np.arange(count), left, 1)
        recursion.best(0, data.machine_capacity.copy())
        keys.append(len(recursion.memo))
    slope = float(np.polyfit(JOBS, np.log2(keys), 1)[0])
    values = {"doubling": slope, "keys_first": float(keys[0]), "keys_last": float(keys[-1])}
    listed = ", ".join(f"{n}: {k}" for n, k in zip(JOBS, keys, strict=True))
    return Measured(values, f"memo keys grow like 2^({slope:.2f} n); by jobs: {listed}")
