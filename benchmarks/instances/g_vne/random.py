"""Random instances of g-vne: some that can be tried out completely, one slot of the paper's workload, larger ones."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from schedgap.benchmarks.instances.g_vne.substrates import (
    PAPER_GPUS,
    PAPER_RACK_LINKS,
    PAPER_SERVER_LINKS,
    Racks,
    Range,
    Resources,
    Substrate,
    Workers,
    fat_tree,
    gpus_only,
    no_empty_racks,
    rack_tree,
    random_graph,
)
from schedgap.benchmarks.instances.options import Jobs, Servers
from schedgap.formulations.common.instance import Json
from schedgap.formulations.g_vne.instance import GVneInstance

SHAPES = ("tree", "general")
Shape: TypeAlias = Annotated[
    Literal["tree", "general"] | None, Field(description="shape of the network; either where not given")
]
Memory: TypeAlias = Annotated[bool, Field(description="a second resource")]
Tightness: TypeAlias = Annotated[float, Field(ge=0.001, le=10**6, description="how much narrower all links are")]


def tiny(
    seed: int,
    *,
    shape: Shape = None,
    servers: Annotated[int | None, Field(ge=1, le=1000, description="servers; random where not given")] = None,
    jobs: Annotated[int | None, Field(ge=1, le=100000, description="jobs; random where not given")] = None,
    workers: Workers = 3,
    memory: Annotated[
        bool | None, Field(description="a second resource; in every third instance where not given")
    ] = None,
) -> GVneInstance:
    """2 to 4 servers and 2 to 4 jobs on links that hold few rings, small enough to try every embedding.

    Decimal demands and bandwidths, one-way links, jobs that fit nowhere, utilities that fall or are negative:
    some of each.

    Parameters
    ----------
    memory : whether there is a second resource; in every third instance or so where not given
    """
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(SHAPES)) if shape is None else shape
    n = int(rng.integers(2, 5)) if servers is None else servers
    two = bool(rng.random() < 0.35) if memory is None else memory
    unit = float(rng.choice([1.0, 0.1], p=[0.8, 0.2]))

    def resources(draw: np.random.Generator) -> dict[str, float]:
        own: dict[str, float] = {"gpu": round(unit * int(draw.integers(1, 4)), 2)}
        if two and draw.random() < 0.9:
            own["memory"] = int(draw.integers(4, 21))
        return own

    if kind == "tree":
        made = rack_tree(
            rng, servers=n, racks=int(rng.integers(1, 3)), resources=resources, server_links=(1, 4), rack_links=(1, 3)
        )
    else:
        switches = int(rng.random() < 0.3)
        made = random_graph(
            rng, servers=n, switches=switches, degree=2.5, resources=resources, links=(0.5, 3), one_way=0.3
        )
    _round_links(made, 0.5)
    parts = []
    for j in range(int(rng.integers(2, 5)) if jobs is None else jobs):
        demand: dict[str, float] = {"gpu": round(unit * int(rng.choice([1, 2], p=[0.75, 0.25])), 2)}
        if two:
            demand["memory"] = int(rng.integers(1, 8))
        utility = _worth(rng, int(rng.integers(1, workers + 1)), 10.0)
        if rng.random() < 0.15:
            utility[int(rng.integers(0, len(utility)))] -= 8.0
        parts.append(_job(j, demand, round(0.5 * int(rng.integers(1, 6)), 1), utility))
    return _instance(f"tiny-{kind}-{seed}", made, parts)


def small(
    seed: int,
    *,
    shape: Shape = None,
    servers: Servers = 6,
    jobs: Jobs = 5,
    workers: Workers = 4,
    memory: Memory = False,
    tightness: Tightness = 1.0,
) -> GVneInstance:
    """6 servers and 5 jobs: what every exact method proves in about a second."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(SHAPES)) if shape is None else shape
    own = _two_resources((1, 2, 4)) if memory else gpus_only((1, 2, 4))
    if kind == "tree":
        made = rack_tree(
            rng,
            servers=servers,
            racks=min(3, servers),
            resources=own,
            server_links=_scaled((0.4, 2), tightness),
            rack_links=_scaled((0.6, 2.5), tightness),
        )
    else:
        made = random_graph(
            rng,
            servers=servers,
            switches=servers // 4,
            resources=own,
            links=_scaled((0.2, 1.5), tightness),
            one_way=0.2,
        )
    return _instance(f"small-{kind}-{seed}", made, random_jobs(rng, jobs, workers, memory))


def racks(
    seed: int,
    *,
    servers: Annotated[int, Field(ge=1, le=100000, description="servers")] = 50,
    racks: Racks = None,
    jobs: Jobs = 100,
    tightness: Tightness = 1.0,
    gangs: Annotated[
        Literal["elastic", "fixed"], Field(description="rings of up to N workers, or of N workers, worth lambda_1")
    ] = "elastic",
    gpus: Annotated[int, Field(ge=1, le=8, description="most GPUs of a server")] = 8,
) -> GVneInstance:
    """One slot of the paper's workload: 50 servers in 2 to 5 racks, sigmoid utilities of jobs in mid-course.

    GPUs from {1, 2, 4, 8}, one GPU per worker, N in [1, 5], zeta in [50, 500], b in [0.1, 5] Gbit/s, server links
    10 to 100, rack links 200 to 3200; utility lambda_1 / (1 + exp(-lambda_2 (x - lambda_3))) with lambda_1 in
    [1, 100], lambda_2 in (0, 1), lambda_3 in [300, 3000] (paper 004, section VI). A job has done a random part of
    lambda_3 iterations already; pi_k is what k workers add in this slot. Raises InputError: more racks than servers.

    Parameters
    ----------
    tightness : links are this much narrower than the paper's, on which they hardly ever bind
    gangs : ``fixed``: only the whole ring of N workers is worth anything
    """
    no_empty_racks(servers, racks)
    rng = np.random.default_rng(seed)
    made = rack_tree(
        rng,
        servers=servers,
        racks=int(rng.integers(2, 6)) if racks is None else racks,
        resources=gpus_only([min(gpus, size) for size in PAPER_GPUS]),
        server_links=_scaled(PAPER_SERVER_LINKS, tightness),
        rack_links=_scaled(PAPER_RACK_LINKS, tightness),
    )
    return _instance(f"racks-{seed}", made, [_paper_job(rng, j, gangs == "fixed") for j in range(jobs)])


def fat(
    seed: int,
    *,
    ports: Annotated[Literal[2, 4, 6, 8, 10, 12, 14, 16], Field(description="ports of a switch")] = 4,
    jobs: Jobs = 12,
    workers: Workers = 5,
    memory: Memory = False,
    tightness: Tightness = 1.0,
) -> GVneInstance:
    """A fat tree: many equally short paths between any two servers of different pods."""
    rng = np.random.default_rng(seed)
    own = _two_resources((1, 2, 4)) if memory else gpus_only((1, 2, 4))
    links = _scaled((0.6, 2.4), tightness)
    made = fat_tree(rng, ports=ports, resources=own, server_links=links, switch_links=links)
    return _instance(f"fat-{seed}", made, random_jobs(rng, jobs, workers, memory))


def random(
    seed: int,
    *,
    servers: Annotated[int, Field(ge=1, le=2000, description="servers")] = 50,
    switches: Annotated[int, Field(ge=0, le=2000, description="nodes without resources")] = 0,
    jobs: Jobs = 20,
    degree: Annotated[float, Field(ge=1, le=1000, description="links at a node, on average")] = 4.0,
    workers: Workers = 5,
    memory: Memory = False,
    tightness: Tightness = 1.0,
) -> GVneInstance:
    """A connected random graph of servers that relay."""
    rng = np.random.default_rng(seed)
    made = random_graph(
        rng,
        servers=servers,
        switches=switches,
        degree=degree,
        resources=_two_resources((1, 2, 4)) if memory else gpus_only((1, 2, 4)),
        links=_scaled((0.3, 2.4), tightness),
    )
    return _instance(f"random-{seed}", made, random_jobs(rng, jobs, workers, memory))


def large_tree(
    seed: int,
    *,
    servers: Annotated[int, Field(ge=1, le=100000, description="servers")] = 400,
    racks: Annotated[int, Field(ge=1, le=10000, description="racks")] = 20,
    jobs: Jobs = 200,
    workers: Workers = 5,
    memory: Memory = True,
    tightness: Tightness = 1.0,
) -> GVneInstance:
    """400 servers in 20 racks and 200 jobs whose rings fill server links and uplinks.

    Raises InputError: more racks than servers.
    """
    no_empty_racks(servers, racks)
    rng = np.random.default_rng(seed)
    made = rack_tree(
        rng,
        servers=servers,
        racks=racks,
        resources=_two_resources((1, 2)) if memory else gpus_only((1, 2)),
        server_links=_scaled((0.6, 2.4), tightness),
        rack_links=_scaled((2.5, 8), tightness),
    )
    return _instance(f"large-tree-{seed}", made, random_jobs(rng, jobs, workers, memory))


def _scaled(low_high: Range, tightness: float) -> Range:
    return low_high[0] / tightness, low_high[1] / tightness


def _round_links(made: Substrate, step: float) -> None:
    """Bandwidths as multiples of `step`, so that rings fill links exactly."""
    for link in made.links:
        link["bandwidth"] = max(step, round(round(link["bandwidth"] / step) * step, 6))


def _two_resources(gpus: tuple[int, ...]) -> Resources:
    """GPUs and some memory (GB) for each, so that either may run out first."""

    def own(rng: np.random.Generator) -> dict[str, float]:
        count = int(rng.choice(gpus))
        return {"gpu": count, "memory": 8 * count + int(rng.integers(0, 9))}

    return own


def on_substrate(made: Substrate, name: str, seed: int, *, jobs: Jobs = 20, workers: Workers = 5) -> GVneInstance:
    """Jobs drawn for a given network."""
    return _instance(name, made, random_jobs(np.random.default_rng([seed, 1]), jobs, workers, memory=False))


def random_jobs(rng: np.random.Generator, count: int, workers: int, memory: bool) -> list[dict[str, Json]]:
    """Jobs of one or two GPUs per worker, rings of up to `workers`."""
    parts = []
    for j in range(count):
        gpus = int(rng.choice([1, 2], p=[0.8, 0.2]))
        demand: dict[str, float] = {"gpu": gpus}
        if memory:
            demand["memory"] = int(rng.integers(2, 13)) * gpus
        largest = int(rng.integers((workers + 1) // 2, workers + 1))
        parts.append(_job(j, demand, round(float(rng.uniform(0.2, 3.0)), 1), _worth(rng, largest, 10.0 * gpus)))
    return parts


def _worth(rng: np.random.Generator, largest: int, scale: float) -> list[float]:
    """scale times k^p with noise, p from concave (0.6) to convex (1.5): some jobs gain most from a large ring."""
    base = float(rng.uniform(0.3, 1.0)) * scale
    power = float(rng.uniform(0.6, 1.5))
    return [round(base * k**power * float(rng.uniform(0.9, 1.1)), 2) for k in range(1, largest + 1)]


def _paper_job(rng: np.random.Generator, j: int, fixed: bool = False) -> dict[str, Any]:
    """A job of section VI in mid-course: what k more workers add to its sigmoid utility, to six decimals."""
    largest, zeta = int(rng.integers(1, 6)), int(rng.integers(50, 501))
    bandwidth = round(float(rng.uniform(0.1, 5.0)), 2)
    scale, steepness = float(rng.uniform(1, 100)), float(rng.uniform(0, 1))
    midpoint = float(rng.uniform(300, 3000))
    done = zeta * int(rng.uniform(0, 1) * midpoint / zeta)
    before = _sigmoid(steepness * (done - midpoint))
    gains = [scale * (_sigmoid(steepness * (done + zeta * k - midpoint)) - before) for k in range(1, largest + 1)]
    if fixed:
        gains = [0.0] * (largest - 1) + [scale]
    return _job(j, {"gpu": 1}, bandwidth, [round(gain, 6) for gain in gains])


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def _job(j: int, demand: dict[str, float], bandwidth: float, utility: list[float]) -> dict[str, Any]:
    return {"id": f"j{j}", "demand": demand, "bandwidth": bandwidth, "utility": [round(u, 6) for u in utility]}


def _instance(name: str, made: Substrate, jobs: list[dict[str, Any]]) -> GVneInstance:
    return GVneInstance.parse(
        {"problem": "g-vne", "name": name, "servers": made.servers, "links": made.links, "jobs": jobs}, name
    )
