"""Instances of ddljs on which the claims of paper 004 are near their limits, small enough to be solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgap.benchmarks.instances.ddljs.random import tiny
from schedgap.formulations.common.instance import Json
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.heuristics.g_vne.measured import three_conflicts

Trial = tuple[DdljsInstance, dict[str, Json]]
"""An instance, and the options that the heuristic is to run with."""


EDGE = 1e-6
"""How much more the greedy choice is worth than what it should take."""


def one_server(name: str, gpus: int, horizon: int, jobs: Sequence[tuple[str, int, int, int, float]]) -> DdljsInstance:
    """One server; a job is (id, arrival, GPUs of its only worker, slots it may run, linear worth of a slot)."""
    return DdljsInstance.parse(
        {
            "problem": "ddljs",
            "name": name,
            "servers": [{"id": "s0", "resources": {"gpu": gpus}}],
            "links": [],
            "horizon": horizon,
            "jobs": [
                {
                    "id": job,
                    "arrival": arrival,
                    "max_workers": 1,
                    "demand": {"gpu": size},
                    "budget": {"gpu": size * slots},
                    "bandwidth": 1.0,
                    "efficiency": 1.0,
                    "utility": {"kind": "linear", "scale": worth},
                }
                for job, arrival, size, slots, worth in jobs
            ],
        },
        name,
    )


def tight(horizon: int) -> DdljsInstance:
    """Greedy reaches T / (2T - 1): it spends T - 1 slots on jobs A that would fit beside the B of the next slot.

    GPUs 5T, A_t takes t and arrives in slot t < T, B_t takes 5T + 1 - t and arrives in slot t. In slot t nothing
    fits beside A_t; A_t is worth a little more than a B. In the end one of T jobs B has run. Optimal: B_1 first, then
    A_(t-1) with B_t.
    """
    gpus = 5 * horizon
    jobs = [(f"A{t}", t, t, 1, 1.0 + EDGE) for t in range(1, horizon)]
    jobs += [(f"B{t}", t, gpus + 1 - t, 1, 1.0) for t in range(1, horizon + 1)]
    return one_server(f"tight-{horizon}", gpus, horizon, jobs)


def tight_batch() -> DdljsInstance:
    """All jobs at once, two slots, ratio 3/4: greedy takes the two small jobs, and the two large ones part."""
    return one_server(
        "tight-batch",
        10,
        2,
        [("a", 1, 4, 1, 1 + EDGE), ("c", 1, 4, 1, 1 + EDGE), ("b", 1, 6, 1, 1.0), ("d", 1, 6, 1, 1.0)],
    )


def knapsack(seed: int, *, arrivals: bool = True) -> DdljsInstance:
    """One server, jobs of one worker of different sizes and 1 or 2 slots, all worth about the same."""
    rng = np.random.default_rng(seed)
    horizon, gpus = int(rng.integers(2, 5)), int(rng.integers(6, 13))
    jobs = []
    for i in range(int(rng.integers(3, 7))):
        arrival = int(rng.integers(1, horizon + 1)) if arrivals else 1
        worth = round(float(rng.uniform(0.9, 1.1)), 3)
        jobs.append((f"j{i}", arrival, int(rng.integers(1, gpus + 1)), int(rng.integers(1, 3)), worth))
    return one_server(f"knapsack-{seed}", gpus, horizon, jobs)


def late(seed: int) -> DdljsInstance:
    """One GPU, T slots, a sigmoid job worth 100 at its end and one worth 4 after its first slot; printed ranges."""
    horizon = 2 + seed % 6
    return DdljsInstance.parse(
        {
            "problem": "ddljs",
            "name": f"late-{horizon}",
            "servers": [{"id": "s0", "resources": {"gpu": 1}}],
            "links": [],
            "horizon": horizon,
            "jobs": [
                _sigmoid("steep", 200.0, 100.0, 0.04, 200.0 * (horizon - 0.5)),
                _sigmoid("flat", 500.0, 4.0, 0.04, 300.0),
            ],
        }
    )


def _sigmoid(name: str, zeta: float, scale: float, steepness: float, midpoint: float) -> dict[str, Any]:
    shape = {"kind": "sigmoid", "scale": scale, "steepness": steepness, "midpoint": midpoint}
    return {**_single(name, shape), "efficiency": zeta}


def sections_vi(seed: int) -> DdljsInstance:
    """A tiny network whose jobs have the sigmoids of section VI, in the printed ranges."""
    rng = np.random.default_rng([seed, 2])
    data = tiny(seed, utilities="sigmoid").to_dict()
    for job in data["jobs"]:
        job["efficiency"] = float(rng.integers(50, 501))
        scale, steepness = float(rng.integers(1, 101)), round(float(rng.uniform(0.001, 0.1)), 4)
        midpoint = float(rng.integers(300, 1501))
        job["utility"] = {"kind": "sigmoid", "scale": scale, "steepness": steepness, "midpoint": midpoint}
    return DdljsInstance.parse(data, data["name"])


def around(servers: int, workers: int) -> DdljsInstance:
    """Servers of one GPU in a circle, linked both ways, and a job of so many workers; of four, Figure 2's network."""
    names = [f"s{i}" for i in range(servers)]
    pairs = [(a, b) for a, b in zip(names, [*names[1:], names[0]], strict=True)]
    return DdljsInstance.parse(
        {
            "problem": "ddljs",
            "name": f"around-{servers}-{workers}",
            "servers": [{"id": name, "resources": {"gpu": 1}} for name in names],
            "links": [{"from": a, "to": b, "bandwidth": 1.0} for x, y in pairs for a, b in ((x, y), (y, x))],
            "horizon": 1,
            "jobs": [{**_single("j0", {"kind": "sqrt", "scale": 1.0}), "max_workers": workers}],
        }
    )


def conflicts(seed: int) -> DdljsInstance:
    """Three jobs of which any two exclude each other: a rounding of the program leaves all out with chance 1/8."""
    data = three_conflicts().to_dict()
    jobs = [
        {**_single(job["id"], {"kind": "linear", "scale": 1.0}), "demand": job["demand"], "bandwidth": job["bandwidth"]}
        for job in data["jobs"]
    ]
    return DdljsInstance.parse({**data, "problem": "ddljs", "name": f"conflicts-{seed}", "horizon": 1, "jobs": jobs})


def _single(name: str, utility: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": name,
        "arrival": 1,
        "max_workers": 1,
        "demand": {"gpu": 1},
        "budget": {},
        "bandwidth": 1.0,
        "efficiency": 1.0,
        "utility": dict(utility),
    }


def star(seed: int, named: bool = False) -> DdljsInstance:
    """Servers of one GPU around a switch, on links that hold few rings or none: what the LP does not feel."""
    rng = np.random.default_rng(seed)
    count = 3 if named else int(rng.integers(3, 5))
    width = 0.5 if named else float(rng.choice([0.5, 1.0]))
    servers: list[dict[str, Any]] = [{"id": f"s{i}", "resources": {"gpu": 1}} for i in range(count)]
    ends = [(f"s{i}", "switch") for i in range(count)]
    jobs = []
    for i in range(1 if named else int(rng.integers(1, 3))):
        job = _single(f"j{i}", {"kind": "sqrt", "scale": 1.0})
        jobs.append({**job, "max_workers": 3, "arrival": 1 if named else int(rng.integers(1, 3))})
    return DdljsInstance.parse(
        {
            "problem": "ddljs",
            "name": f"star-{'named' if named else seed}",
            "servers": [*servers, {"id": "switch", "resources": {}}],
            "links": [
                {"from": a, "to": b, "bandwidth": width} for one, other in ends for a, b in ((one, other), (other, one))
            ],
            "horizon": 1 if named else 2,
            "jobs": jobs,
        }
    )


def crowded(seed: int) -> DdljsInstance:
    """Jobs of which any two overfill a server, each drawn with probability 1/n: overloads as likely as can be.

    Job i needs all of every resource but a little less of the i-th, which makes equal weights the program's only
    optimum. Two more servers are too small; one or two slots, and a job is done when it has run once.
    """
    count, horizon = 5 + seed % 2, 1 + seed // 2 % 2
    names = [f"r{r}" for r in range(count)]
    jobs = []
    for i in range(count):
        demand = {name: 0.95 if r == i else 1.0 for r, name in enumerate(names)}
        job = _single(f"j{i}", {"kind": "linear", "scale": 1.0})
        jobs.append({**job, "demand": demand, "budget": demand})
    sizes = (1.0, 0.5, 0.5)
    servers = [{"id": f"s{i}", "resources": dict.fromkeys(names, size)} for i, size in enumerate(sizes)]
    return DdljsInstance.parse(
        {
            "problem": "ddljs",
            "name": f"crowded-{count}-{horizon}",
            "servers": servers,
            "links": [],
            "horizon": horizon,
            "jobs": jobs,
        }
    )


NAMED_CONCAVE: tuple[DdljsInstance, ...] = (
    one_server("two-thirds", 6, 2, [("A1", 1, 2, 1, 1.01), ("B1", 1, 5, 1, 0.999), ("B2", 2, 4, 1, 0.998)]),
    tight(3),
    tight(4),
)
"""Greedy has 2.009 of 3.007 on the first, and 3/5 and 4/7 of the optimum on the others."""


FAMILIES: Mapping[str, Callable[[int], Trial]] = {
    "concave": lambda seed: (tiny(seed, utilities="concave"), {}),
    "batch": lambda seed: (
        (tiny(seed, utilities="concave", arrivals=False) if seed % 2 else knapsack(seed, arrivals=False)),
        {},
    ),
    "knapsack": lambda seed: (knapsack(seed), {}),
    "tight": lambda seed: (tight(2 + seed % 5), {}),
    "tight_batch": lambda seed: (tight_batch(), {}),
    "named_concave": lambda seed: (NAMED_CONCAVE[seed % len(NAMED_CONCAVE)], {}),
    "crowded": lambda seed: (crowded(seed), {}),
    "square": lambda seed: (around(4, 4 - seed % 2), {}),
    "triangle": lambda seed: (around(3 + seed % 3, 2), {}),
    "conflicts": lambda seed: (conflicts(seed), {}),
    "conflicts_once": lambda seed: (conflicts(seed), {"tries": 1}),
    "sections_vi": lambda seed: (sections_vi(seed), {"fill": False}),
    "sigmoid": lambda seed: (tiny(seed, utilities="sigmoid"), {}),
    "late": lambda seed: (late(seed), {"fill": False}),
    "rounding": lambda seed: (tiny(seed, utilities="concave"), {"inner": "lp-rs-mde"}),
    "rounding_tight": lambda seed: (knapsack(seed), {"inner": "lp-rs-mde"}),
    "printed_named": lambda seed: (star(seed, named=True), {"inner": "lp-rs-mde-printed", "fill": False}),
    "printed_thin": lambda seed: (star(seed), {"inner": "lp-rs-mde-printed", "fill": False}),
}
"""Where the guarantees of paper 004 over the horizon are tried."""
