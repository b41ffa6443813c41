"""Instances of g-vne on which the claims of paper 004 are near their limits, small enough to be solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgap.benchmarks.instances.g_vne.random import small, tiny
from schedgap.formulations.common.instance import Json
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.heuristics.g_vne.measured import thirds, three_conflicts

Trial = tuple[GVneInstance, dict[str, Json]]
"""An instance, and the options that the heuristic is to run with."""


PRINTED: Mapping[str, Any] = {"lp": "augmented"}


TRIES: Mapping[str, Any] = {**PRINTED, "variant": "vanilla"}


FIRST: Mapping[str, Any] = {**TRIES, "target": "first"}


ONE_ROUNDING: Mapping[str, Any] = {**TRIES, "tries": 1}


def star(
    name: str,
    gpus: Sequence[float],
    bandwidth: float,
    jobs: Sequence[tuple[float, float, Sequence[float]]],
) -> GVneInstance:
    """Servers around one switch (two servers: joined directly); a job is (GPUs per worker, bandwidth, utilities)."""
    servers: list[dict[str, Any]] = [{"id": f"s{i}", "resources": {"gpu": n}} for i, n in enumerate(gpus)]
    pairs = [("s0", "s1")] if len(gpus) == 2 else []
    if len(gpus) > 2:
        servers.append({"id": "switch", "resources": {}})
        pairs = [(f"s{i}", "switch") for i in range(len(gpus))]
    return GVneInstance.parse(
        {
            "problem": "g-vne",
            "name": name,
            "servers": servers,
            "links": [
                {"from": a, "to": b, "bandwidth": bandwidth}
                for one, other in pairs
                for a, b in ((one, other), (other, one))
            ],
            "jobs": [
                {"id": f"j{j}", "demand": {"gpu": need}, "bandwidth": width, "utility": list(worth)}
                for j, (need, width, worth) in enumerate(jobs)
            ],
        },
        name,
    )


NAMED: tuple[GVneInstance, ...] = (
    star("thin-two", [1, 1], 0.5, [(1, 1, [1.0, 1.5])]),
    star("thin-three", [1, 1, 1], 0.5, [(1, 1, [1.0, 1.9, 2.7])]),
    star("wide-three", [1, 1, 1], 1, [(1, 1, [1.0, 1.9, 2.7])]),
)
"""A ring that no link is wide enough for, chosen because the linear program does not feel links; the same on three
servers; and one whose links are wide enough."""


def thin(seed: int) -> GVneInstance:
    """Servers of one GPU whose links hold one ring or none, jobs whose utility grows with the ring."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    jobs = []
    for _ in range(int(rng.integers(1, 4))):
        power = float(rng.uniform(0.3, 1.2))
        worth = [round(float(k**power), 3) for k in range(1, int(rng.integers(1, count + 1)) + 1)]
        jobs.append((1.0, float(rng.choice([0.5, 1.0, 2.0])), worth))
    return star(f"thin-{seed}", [1.0] * count, float(rng.choice([0.5, 1.0, 1.5])), jobs)


def apart() -> GVneInstance:
    """Two jobs with a server each that holds a worker and a half: the selected rings of two are worth less than OPT.

    The program takes half a ring of two and half a ring of one; rings of two are worth a little more and are selected,
    with weight 3/4. Their program is worth 0.765 OPT, so that the smaller job alone, 0.306 OPT, is enough to stop.
    A third server holds none of the workers.
    """
    sizes = ({"a": 1.5}, {"b": 1.5}, {"a": 0.5, "b": 0.5})
    return GVneInstance.parse(
        {
            "problem": "g-vne",
            "name": "apart",
            "servers": [{"id": f"s{i}", "resources": size} for i, size in enumerate(sizes)],
            "links": [],
            "jobs": [
                {"id": "small", "demand": {"a": 1}, "bandwidth": 1.0, "utility": [3.0, 3.06]},
                {"id": "large", "demand": {"b": 1}, "bandwidth": 1.0, "utility": [7.0, 7.14]},
            ],
        }
    )


def ring_sizes(seed: int) -> GVneInstance:
    """One server; the relaxation fills it with the first job's workers and leaves the second no ring at all."""
    size = 3 + seed % 3
    jobs = [(float(size), 1.0, [1.1 * size, 2.2 * size]), (1.0, 1.0, [float(k) for k in range(1, 3)])]
    return star(f"ring-sizes-{size}", [float(size + 1)], 1.0, jobs)


def _concave(seed: int) -> GVneInstance:
    return _steadily(tiny(seed), seed)


def _steadily(instance: GVneInstance, seed: int) -> GVneInstance:
    """The same with utilities that are concave and increasing, as the paper assumes of mu."""
    rng = np.random.default_rng([seed, 1])
    data = instance.to_dict()
    for job in data["jobs"]:
        scale, power = float(rng.uniform(1, 10)), float(rng.uniform(0.3, 1.0))
        job["utility"] = [round(scale * k**power, 3) for k in range(1, len(job["utility"]) + 1)]
    return GVneInstance.parse(data, data["name"])


def _few(seed: int) -> GVneInstance:
    return small(seed, servers=4, jobs=4, workers=3, memory=seed % 2 == 1)


FAMILIES: Mapping[str, Callable[[int], Trial]] = {
    "tiny": lambda seed: (tiny(seed), {}),
    "small": lambda seed: (_few(seed), {}),
    "named": lambda seed: (NAMED[seed % len(NAMED)], {}),
    "thin": lambda seed: (thin(seed), {}),
    "printed_named": lambda seed: (NAMED[seed % len(NAMED)], dict(PRINTED)),
    "printed_thin": lambda seed: (thin(seed), dict(PRINTED)),
    "printed_concave": lambda seed: (_concave(seed), dict(PRINTED)),
    "thirds": lambda seed: (thirds(seed), {}),
    "one_rounding_named": lambda seed: (three_conflicts(), dict(ONE_ROUNDING)),
    "one_rounding": lambda seed: (_steadily(_few(seed), seed), dict(ONE_ROUNDING)),
    "one_rounding_tiny": lambda seed: (_concave(seed), dict(ONE_ROUNDING)),
    "tries_named": lambda seed: (three_conflicts() if seed % 4 == 3 else apart(), dict(TRIES)),
    "tries": lambda seed: (_steadily(_few(seed), seed), dict(TRIES)),
    "tries_tiny": lambda seed: (_concave(seed), dict(TRIES)),
    "tries_thin": lambda seed: (_steadily(thin(seed), seed), dict(TRIES)),
    "first_named": lambda seed: (three_conflicts() if seed % 4 == 3 else apart(), dict(FIRST)),
    "first": lambda seed: (_steadily(_few(seed), seed), dict(FIRST)),
    "first_tiny": lambda seed: (_concave(seed), dict(FIRST)),
    "first_thin": lambda seed: (_steadily(thin(seed), seed), dict(FIRST)),
    "ring_sizes": lambda seed: (ring_sizes(seed), {}),
}
"""Where the guarantees of paper 004 on one slot are tried."""
