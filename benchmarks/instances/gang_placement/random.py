"""Random instances of gang-placement: some that can be tried out completely, clusters, and traps for rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from schedgap.catalogue.workload import Trial
from schedgap.formulations.common.instance import Json
from schedgap.formulations.gang_placement.instance import GangPlacementInstance

Seed = int


SIZES = (1, 1, 2, 4, 8, 16)
"""GPUs of a gang, as logs of clusters have them: small ones often, large ones now and then."""


def tiny(
    seed: Seed,
    *,
    nodes: Annotated[int | None, Field(ge=1, le=100, description="number of nodes; 1 to 3 where not given")] = None,
    gangs: Annotated[int | None, Field(ge=0, le=100, description="number of gangs; 1 to 3 where not given")] = None,
) -> GangPlacementInstance:
    """1 to 3 nodes of 1 or 2 devices and 1 to 3 gangs with levels, parts, selectors and queues; all can be tried."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4)) if nodes is None else nodes
    waiting = int(rng.integers(1, 4)) if gangs is None else gangs
    there = [
        {
            "id": f"n{n}",
            "domain": [f"r{int(rng.integers(2))}"],
            "gpus": [int(rng.choice([1000, 1000, 600, 400])) for _ in range(int(rng.integers(1, 3)))],
            "gpu_model": str(rng.choice(["A100", "T4"])),
            "free": {"cpu": int(rng.integers(1, 5))},
        }
        for n in range(count)
    ]
    wanted = []
    for g in range(waiting):
        pods: dict[str, Any] = {
            "count": int(rng.integers(1, 4)),
            "gpu": int(rng.choice([400, 500, 600, 1000, 1000, 2000])),
            "request": {"cpu": 1},
        }
        if rng.random() < 0.2:
            pods["selector"] = {"models": ["A100"]}
        gang: dict[str, Any] = {"id": f"g{g}", "weight": float(rng.choice([1, 2, 2.5])), "pods": [pods]}
        gang["priority"] = int(rng.integers(2))
        if rng.random() < 0.4:
            gang["required"] = str(rng.choice(["rack", "node"]))
        if rng.random() < 0.3:
            gang["preferred"] = "rack"
        if rng.random() < 0.3:
            gang["least"] = 1
        if rng.random() < 0.5:
            gang["queue"] = "q"
        wanted.append(gang)
    data = {"levels": ["rack"], "nodes": there, "gangs": wanted, "queues": [{"id": "q", "quota": {"gpu": 2000}}]}
    return _instance(f"tiny-{seed}", data)


def cluster(
    seed: Seed,
    *,
    nodes: Annotated[int, Field(ge=1, le=20000, description="number of nodes")] = 16,
    gangs: Annotated[int, Field(ge=0, le=20000, description="number of gangs that wait")] = 8,
    gpus: Annotated[int, Field(ge=1, le=64, description="devices of a node")] = 8,
    busy: Annotated[float, Field(ge=0, le=1, description="share of devices that are taken")] = 0.5,
    load: Annotated[float, Field(ge=0, le=100, description="GPUs asked for over those that are free")] = 1.5,
    parts: Annotated[float, Field(ge=0, le=1, description="share of gangs whose pods take parts of a device")] = 0.0,
) -> GangPlacementInstance:
    """Nodes in racks of 4 and blocks of 16, half of the devices taken, gangs that together ask for more than is free.

    Parameters
    ----------
    busy : each device is taken with this probability, in runs as gangs leave them
    load : sizes of gangs are scaled to it
    """
    rng = np.random.default_rng(seed)
    there = []
    for n in range(nodes):
        share = float(np.clip(rng.normal(busy, 0.25), 0, 1))
        taken = round(share * gpus)
        free = [0] * taken + [1000] * (gpus - taken)
        if parts and taken and rng.random() < 0.5:
            free[taken - 1] = int(rng.choice([200, 400, 500, 600]))
        domain = [f"b{n // 16}", f"r{n // 4}"]
        there.append({"id": f"n{n}", "domain": domain, "gpus": free, "free": {"cpu": 12 * (gpus - taken)}})
    left = sum(sum(part == 1000 for part in node["gpus"]) for node in there)
    wanted = []
    asked = 0.0
    for g in range(gangs):
        size = int(rng.choice(SIZES))
        if gangs - g and asked < load * left:
            size = max(size, int((load * left - asked) / (gangs - g)))
        asked += size
        wanted.append(_gang(rng, g, size, gpus, rng.random() < parts))
    return _instance(f"cluster-{nodes}-{gangs}-{seed}", {"levels": ["block", "rack"], "nodes": there, "gangs": wanted})


def _gang(rng: np.random.Generator, g: int, size: int, gpus: int, in_parts: bool) -> dict[str, Any]:
    each = int(rng.choice([e for e in (1, 2, 4, 8) if e <= gpus and e <= size]))
    pods: dict[str, Any] = {"count": max(1, size // each), "gpu": 1000 * each, "request": {"cpu": 8 * each}}
    if in_parts:
        pods = {"count": size, "gpu": int(rng.choice([100, 200, 250, 500])), "request": {"cpu": 2}}
    gang: dict[str, Any] = {"id": f"g{g}", "weight": float(size), "arrival": float(g), "pods": [pods]}
    level = rng.random()
    if level < 0.3:
        gang["required"] = "rack" if size <= 2 * gpus else "block"
    elif level < 0.7:
        gang["preferred"] = "rack" if size <= 2 * gpus else "block"
    return gang


def small_first(
    seed: Seed, *, pairs: Annotated[int, Field(ge=1, le=1000, description="nodes of each of two sizes")] = 2
) -> GangPlacementInstance:
    """Nodes of 4 and of 8 devices, and gangs of 4 and of 8 on one node each, the small ones first.

    A rule that puts small gangs on large nodes places 8 of 24 where pairs is 2.
    """
    del seed
    sizes = [4] * pairs + [8] * pairs
    there = [{"id": f"n{n}", "gpus": [1000] * size} for n, size in enumerate(sizes)]
    wanted = _on_one_node(sizes)
    return _instance(f"small-first-{pairs}", {"nodes": there, "gangs": wanted})


def halves(
    seed: Seed,
    *,
    nodes: Annotated[int, Field(ge=1, le=1000, description="number of nodes")] = 2,
    gangs: Annotated[int, Field(ge=1, le=1000, description="number of gangs")] = 4,
) -> GangPlacementInstance:
    """Gangs that each fit on one node, of sizes that only some pairs fill: a knapsack for rules."""
    rng = np.random.default_rng(seed)
    there = [{"id": f"n{n}", "gpus": [1000] * int(rng.integers(2, 9))} for n in range(nodes)]
    wanted = _on_one_node(int(rng.integers(1, 9)) for _ in range(gangs))
    return _instance(f"halves-{nodes}-{gangs}-{seed}", {"nodes": there, "gangs": wanted})


def _on_one_node(sizes: Iterable[int]) -> list[dict[str, Json]]:
    """A gang of one pod for each size, in order of arrival; its devices are worth one each."""
    return [
        {
            "id": f"g{g}",
            "weight": float(size),
            "arrival": float(g),
            "required": "node",
            "pods": [{"count": 1, "gpu": 1000 * size}],
        }
        for g, size in enumerate(sizes)
    ]


def _instance(name: str, data: Mapping[str, Json]) -> GangPlacementInstance:
    return GangPlacementInstance.parse({"problem": "gang-placement", "name": name, **data}, name)


FAMILIES: Mapping[str, Callable[[int], Trial]] = {
    "tiny": lambda seed: (tiny(seed), {}),
    "halves": lambda seed: (halves(seed), {}),
    "cluster": lambda seed: (cluster(seed, nodes=4, gangs=4), {}),
}
"""Families of instances on which rules are tried."""
