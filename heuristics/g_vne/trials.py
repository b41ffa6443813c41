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
    """One server with three resources, three jobs that need two of them each: any two jobs exclude each other.

    Two more servers are too small for any of the jobs; Theorem 8 assumes that there are three.
    """
    names = ("a", "b", "c")
    pairs = (("a", "b"), ("b", "c"), ("a", "c"))
    return GVneInstance.parse(
        {
            "problem": "g-vne",
            "name": "three-conflicts",
            "servers": [
                {"id": f"s{i}", "resources": dict.fromkeys(names, size)} for i, size in enumerate((1, 0.5, 0.5))
            ],
            "links": [],
            "jobs": [
                {"id": f"j{j}", "demand": dict.fromkeys(pair, 1), "bandwidth": 1.0, "utility": [1.0]}
                for j, pair in enumerate(pairs)
            ],
        }
    )


def thirds(seed: int) -> GVneInstance:
    """Roundings have a third of W about as seldom as Theorem 8's repair allows: 1 - e^(-2/3) against 1 - 3/(2e).

    One job is always embedded and worth a little less than W/3. It leaves two thirds of every resource to n jobs worth
    W each, of which the program takes 2/(3 n) each: job i needs all of every resource but a little less of the i-th,
    which makes equal weights the only optimum. None of the n is drawn with probability about e^(-2/3). Empty servers
    make V large.

    Parameters
    ----------
    seed : n is 20 to 28
    """
    count, slack, share = 20 + 2 * (seed % 5), 0.05, 0.332
    names = [f"r{r}" for r in range(count)]
    # the duals: every resource costs 1 / (n - slack), so the first job is worth a little more than it costs
    first = round(share * count / (count - slack) + 2e-4, 6)
    jobs = [{"id": "always", "demand": dict.fromkeys(names, share), "bandwidth": 1.0, "utility": [first]}]
    for j in range(count):
        demand = {name: 1.0 - (slack if r == j else 0.0) for r, name in enumerate(names)}
        jobs.append({"id": f"j{j}", "demand": demand, "bandwidth": 1.0, "utility": [1.0]})
    servers: list[dict[str, Any]] = [{"id": "s0", "resources": dict.fromkeys(names, 1.0)}]
    servers += [{"id": f"s{i}", "resources": {}} for i in range(1, 40)]
    return GVneInstance.parse(
        {"problem": "g-vne", "name": f"thirds-{count}", "servers": servers, "links": [], "jobs": jobs}
    )


def with_sizes(instance: GVneInstance, sizes: dict[str, int]) -> GVneInstance:
    """The instance with one ring size per job: all others are worth less than leaving the job out.

    Parameters
    ----------
    sizes : by job; 0 or missing leaves it out
    """
    data = instance.to_dict()
    for job in data["jobs"]:
        kept = sizes.get(job["id"], 0)
        job["utility"] = [worth if k == kept else -1.0 for k, worth in enumerate(job["utility"], start=1)]
    return GVneInstance.parse(data, instance.name)
