"""Instances of hadar on which the claims of paper 002 are near their limits, small enough to be solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgap.benchmarks.instances.hadar.random import contended, lowhigh, nodes, tiny
from schedgap.formulations.hadar.instance import HadarInstance

Trial = tuple[HadarInstance, dict[str, Any]]
"""An instance, and the options that the heuristic is to run with."""

PRINTED: Mapping[str, Any] = {"eta": "printed", "price": "printed", "umin": "printed"}


def constant(name: str, gpus: int, horizon: int, jobs: Sequence[tuple[int, int, int, float]]) -> HadarInstance:
    """One machine of one type; a job is (arrival, workers, slots, utility)."""
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": name,
            "horizon": horizon,
            "slot_length": 1.0,
            "machines": [{"id": "h0", "gpus": {"V100": gpus}}],
            "jobs": [
                {
                    "id": f"j{j}",
                    "arrival": arrival,
                    "workers": workers,
                    "epochs": workers * slots,
                    "iterations_per_epoch": 1,
                    "throughput": {"V100": 1},
                    "utility": {"kind": "constant", "weight": worth},
                }
                for j, (arrival, workers, slots, worth) in enumerate(jobs)
            ],
        }
    )


NAMED: tuple[HadarInstance, ...] = (
    constant("low-high-7", 1, 1, [(1, 1, 1, 1.0), (1, 1, 1, 7.0)]),
    constant("online-low-high-12", 1, 2, [(1, 1, 2, 1.0), (2, 1, 1, 12.0)]),
    constant("single-4", 1, 4, [(1, 1, 4, 1.0)]),
    constant("D0-T3", 1, 3, [(1, 1, 1, 1.0)]),
    constant("partial-4000", 3, 1, [(1, 2, 1, 1.0), (1, 2, 1, 4000.0)]),
)
"""The smallest counterexamples: a late job worth 7 or 12 times as much; the single job that the printed eta prices
out; D_0 above half of the optimum; a gang that what is left cannot hold."""


def _steady(seed: int) -> HadarInstance:
    """A tiny instance whose utilities are positive at the horizon, as the printed U_min needs."""
    data = tiny(seed).to_dict()
    for job in data["jobs"]:
        if job["utility"]["kind"] == "linear":
            job["utility"] = {"kind": "constant", "weight": job["utility"]["weight"]}
    return HadarInstance.parse(data, data["name"])


def _forked(name: str, work: Sequence[int], speed: Sequence[Sequence[int]], horizon: int) -> HadarInstance:
    count = len(speed[0])
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": name,
            "horizon": horizon,
            "slot_length": 1.0,
            "machines": [{"id": f"n{h}", "gpus": {f"T{h}": 1}} for h in range(count)],
            "jobs": [
                {
                    "id": f"j{j}",
                    "arrival": 1,
                    "workers": 1,
                    "epochs": steps,
                    "iterations_per_epoch": 1,
                    "throughput": {f"T{h}": rate for h, rate in enumerate(row)},
                    "utility": {"kind": "effective-throughput", "weight": 1.0},
                }
                for j, (steps, row) in enumerate(zip(work, speed, strict=True))
            ],
        }
    )


FORKED: tuple[HadarInstance, ...] = (
    _forked("equal-nodes", [1], [[1, 1]], 2),
    _forked("chain-39-14", [39, 14], [[12, 16, 4], [4, 18, 5]], 6),
)
"""Two equal nodes tie; two jobs on three nodes are busy less with two copies than with one."""


def _small_contended(seed: int) -> HadarInstance:
    rng = np.random.default_rng(seed)
    return contended(seed, jobs=int(rng.integers(2, 5)), horizon=int(rng.integers(3, 6)))


FAMILIES: Mapping[str, Callable[[int], Trial]] = {
    "tiny": lambda seed: (tiny(seed), {}),
    "contended": lambda seed: (_small_contended(seed), {}),
    "lowhigh": lambda seed: (lowhigh(seed), {}),
    "horizon_tiny": lambda seed: (_steady(seed), {"umin": "printed", "eta": "horizon"}),
    "named": lambda seed: (NAMED[seed % len(NAMED)], {}),
    "printed_tiny": lambda seed: (_steady(seed), dict(PRINTED)),
    "printed_lowhigh": lambda seed: (lowhigh(seed), dict(PRINTED)),
    "printed_named": lambda seed: (NAMED[seed % len(NAMED)], dict(PRINTED)),
    "nodes": lambda seed: (nodes(seed), {}),
    "one_job": lambda seed: (nodes(seed, jobs=1), {}),
    "forked_named": lambda seed: (FORKED[seed % len(FORKED)], {}),
}
"""Where the guarantees of paper 002 are tried."""
