"""Networks and jobs on which frequencies and growth are measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedgap.formulations.g_vne.instance import GVneInstance


def two_racks(servers: int, jobs: int, seed: int, ring: int = 4) -> GVneInstance:
    """Servers of 1 or 2 GPUs below two switches and a core; links hold one or two rings.

    Parameters
    ----------
    servers, jobs, ring : how many, and the largest ring
    seed : of all randomness
    """
    rng = np.random.default_rng(seed)
    links: list[dict[str, Any]] = []

    def join(low: str, high: str, bandwidth: float) -> None:
        links.extend({"from": a, "to": b, "bandwidth": bandwidth} for a, b in ((low, high), (high, low)))

    for i in range(servers):
        join(f"s{i}", f"rack{i % 2}", float(rng.integers(2, 5)))
    for r in range(2):
        join(f"rack{r}", "core", float(rng.integers(2, 5)))
    hosts = [{"id": f"s{i}", "resources": {"gpu": int(rng.integers(1, 3))}} for i in range(servers)]
    parts = []
    for j in range(jobs):
        scale, power = float(rng.uniform(1, 10)), float(rng.uniform(0.7, 1.3))
        worth = [round(scale * k**power, 3) for k in range(1, int(rng.integers(2, ring + 1)) + 1)]
        parts.append({"id": f"j{j}", "demand": {"gpu": 1}, "bandwidth": float(rng.integers(1, 4)), "utility": worth})
    switches: list[dict[str, Any]] = [{"id": name, "resources": {}} for name in ("rack0", "rack1", "core")]
    return GVneInstance.parse(
        {
            "problem": "g-vne",
            "name": f"two-racks-{servers}-{jobs}-{seed}",
            "servers": [*hosts, *switches],
            "links": links,
            "jobs": parts,
        }
    )


def three_conflicts() -> GVneInstance:
    """One server with three resources, three jobs that need two of them each: any two jobs exclude each other."""
    pairs = (("a", "b"), ("b", "c"), ("a", "c"))
    return GVneInstance.parse(
        {
            "problem": "g-vne",
            "name": "three-conflicts",
            "servers": [{"id": "s0", "resources": {"a": 1, "b": 1, "c": 1}}],
            "links": [],
            "jobs": [
                {"id": f"j{j}", "demand": dict.fromkeys(pair, 1), "bandwidth": 1.0, "utility": [1.0]}
                for j, pair in enumerate(pairs)
            ],
        }
    )


def with_sizes(instance: GVneInstance, sizes: dict[str, int]) -> GVneInstance:
    """The instance with one ring size per job: all others are worth less than leaving the job out.

    Parameters
    ----------
    instance : the instance
    sizes : by job; 0 or missing leaves it out
    """
    data = instance.to_dict()
    for job in data["jobs"]:
        kept = sizes.get(job["id"], 0)
        job["utility"] = [worth if k == kept else -1.0 for k, worth in enumerate(job["utility"], start=1)]
    return GVneInstance.parse(data, instance.name)
