"""Random instances of ddljs: some that can be tried out completely, and the workload of paper 004, section VI."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from schedgap.benchmarks.instances.g_vne.substrates import (
    PAPER_GPUS,
    PAPER_RACK_LINKS,
    PAPER_SERVER_LINKS,
    Racks,
    Substrate,
    Workers,
    no_empty_racks,
    rack_tree,
    random_graph,
)
from schedgap.benchmarks.instances.options import Jobs, Servers
from schedgap.formulations.ddljs.instance import DdljsInstance

KINDS = ("linear", "sqrt", "log1p", "sigmoid")
Slots: TypeAlias = Annotated[int, Field(ge=1, le=100000, description="slots")]
NEVER_RAN = 1e-9
"""The work that a job which never ran counts as having, with ``log``."""


def tiny(
    seed: int,
    *,
    servers: Annotated[int | None, Field(ge=1, le=1000, description="servers; 1 to 3; random where not given")] = None,
    jobs: Annotated[
        int | None, Field(ge=1, le=1000, description="number of jobs; 2 or 3; random where not given")
    ] = None,
    horizon: Annotated[int | None, Field(ge=1, le=1000, description="slots; 2 to 4; random where not given")] = None,
    utilities: Annotated[Literal["any", "concave", "sigmoid"], Field(description="kinds of utility")] = "any",
    arrivals: Annotated[bool, Field(description="jobs arrive over time, or all in slot 1")] = True,
) -> DdljsInstance:
    """1 to 3 servers, 2 or 3 jobs, 2 to 4 slots: small enough to try everything.

    Decimal demands, one-way links, budgets that bind, servers that only relay, jobs that fit nowhere: some of each.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4)) if servers is None else servers
    slots = int(rng.integers(2, 5)) if horizon is None else horizon
    two = bool(rng.random() < 0.3)
    unit = float(rng.choice([1.0, 0.1], p=[0.75, 0.25]))

    def resources(draw: np.random.Generator) -> dict[str, float]:
        own: dict[str, float] = {"gpu": round(unit * int(draw.integers(1, 4)), 2)}
        if two:
            own["memory"] = int(draw.integers(4, 16))
        return own

    made = random_graph(
        rng, servers=n, switches=int(rng.random() < 0.2), degree=1.8, resources=resources, links=(0.5, 3), one_way=0.3
    )
    for link in made.links:
        link["bandwidth"] = max(0.5, round(link["bandwidth"] * 2) / 2)
    parts = []
    for i in range(int(rng.integers(2, 4)) if jobs is None else jobs):
        demand: dict[str, float] = {"gpu": round(unit * int(rng.choice([1, 2], p=[0.75, 0.25])), 2)}
        if two:
            demand["memory"] = int(rng.integers(1, 7))
        budget: dict[str, float] = {}
        if rng.random() < 0.6:
            budget["gpu"] = round(demand["gpu"] * int(rng.integers(1, 6)) + (unit / 2 if rng.random() < 0.3 else 0), 2)
        if two and rng.random() < 0.3:
            budget["memory"] = int(rng.integers(2, 30))
        efficiency = float(rng.choice([0.5, 1.0, 2.0]))
        parts.append(
            {
                "id": f"j{i}",
                "arrival": int(rng.integers(1, slots + 1)) if arrivals and rng.random() < 0.6 else 1,
                "max_workers": int(rng.integers(1, 4)),
                "demand": demand,
                "budget": budget,
                "bandwidth": round(0.5 * int(rng.integers(1, 4)), 1),
                "efficiency": efficiency,
                "utility": _utility(rng, utilities, efficiency),
            }
        )
    return _instance(f"tiny-{seed}", made, slots, parts)


def small(
    seed: int,
    *,
    servers: Annotated[int, Field(ge=1, le=1000, description="servers")] = 4,
    jobs: Annotated[int, Field(ge=1, le=1000, description="number of jobs")] = 4,
    horizon: Annotated[int, Field(ge=1, le=10000, description="slots")] = 5,
    workers: Workers = 3,
    utilities: Annotated[Literal["any", "concave", "sigmoid"], Field(description="kinds of utility")] = "any",
) -> DdljsInstance:
    """4 servers in two racks, 4 jobs, 5 slots, links that hold few rings: what engines prove in seconds."""
    rng = np.random.default_rng(seed)
    made = rack_tree(
        rng,
        servers=servers,
        racks=min(2, servers),
        resources=lambda draw: {"gpu": int(draw.choice((1, 2)))},
        server_links=(1, 4),
        rack_links=(1, 3),
    )
    parts = []
    for i in range(jobs):
        efficiency = round(float(rng.uniform(0.5, 2.0)), 2)
        parts.append(
            {
                "id": f"j{i}",
                "arrival": int(rng.integers(1, max(2, horizon // 2 + 1))),
                "max_workers": int(rng.integers(1, workers + 1)),
                "demand": {"gpu": 1},
                "budget": {"gpu": int(rng.integers(2, max(3, 2 * horizon)))} if rng.random() < 0.7 else {},
                "bandwidth": round(float(rng.uniform(0.2, 2.0)), 1),
                "efficiency": efficiency,
                "utility": _utility(rng, utilities, efficiency),
            }
        )
    return _instance(f"small-{seed}", made, horizon, parts)


def paper(
    seed: int,
    *,
    servers: Servers = 50,
    racks: Racks = None,
    jobs: Jobs = 200,
    horizon: Slots = 200,
    arrivals: Annotated[Literal["diurnal", "uniform", "start"], Field(description="how jobs arrive")] = "diurnal",
    budget: Annotated[
        Literal["printed", "iterations"], Field(description="F counts worker-slots, or iterations")
    ] = "printed",
    utilities: Annotated[Literal["sigmoid", "sqrt", "log", "energy"], Field(description="kind of utility")] = "sigmoid",
    steepness: Annotated[float, Field(gt=0, le=1000, description="lambda_2 is uniform from 0 to this")] = 1.0,
    gpu_factor: Annotated[float, Field(gt=0, le=1000, description="factor on GPUs of every server")] = 1.0,
    bandwidth_factor: Annotated[float, Field(gt=0, le=1000, description="factor on bandwidths of all links")] = 1.0,
) -> DdljsInstance:
    """The workload of section VI: 50 servers in 2 to 5 racks below a core, 200 slots.

    GPUs from {1, 2, 4, 8}, one GPU per worker, server links 10 to 100 and rack links 200 to 3200 Gbit/s; N in
    [1, 5], F in [1000, 6000], zeta in [50, 500] (whole numbers), b in [0.1, 5] Gbit/s; utility
    lambda_1 / (1 + exp(-lambda_2 (x - lambda_3))), lambda_1 in [1, 100], lambda_2 in (0, 1), lambda_3 in
    [300, 3000]. Raises InputError: more racks than servers.

    Parameters
    ----------
    arrivals : the paper follows the Google trace, which is not here: ``diurnal``, a Poisson process whose rate swings
        by 60% over two days of 100 slots each; ``uniform``; ``start``, all in slot 1
    budget : F limits worker-slots, as ``printed`` (it then never binds: a job has at most 5 * 200), or
        ``iterations``, zeta times worker-slots
    utilities : ``sigmoid``; ``sqrt`` of the same scale: lambda_1 is reached at lambda_3 iterations; the paper's other
        two examples: ``log``, proportional fairness with zeta = 1, and ``energy``, -x^2 with zeta as a worker's power
    steepness : lambda_2 is uniform on (0, steepness); with 1, as printed, a sigmoid is nearly a step
    gpu_factor, bandwidth_factor : GPUs of every server (rounded, at least 1) and bandwidth of every link are so
        many times the paper's (Figures 5 and 6)
    """
    no_empty_racks(servers, racks)
    rng = np.random.default_rng(seed)
    made = rack_tree(
        rng,
        servers=servers,
        racks=int(rng.integers(2, 6)) if racks is None else racks,
        resources=lambda draw: {"gpu": max(1, round(gpu_factor * int(draw.choice(PAPER_GPUS))))},
        server_links=(PAPER_SERVER_LINKS[0] * bandwidth_factor, PAPER_SERVER_LINKS[1] * bandwidth_factor),
        rack_links=(PAPER_RACK_LINKS[0] * bandwidth_factor, PAPER_RACK_LINKS[1] * bandwidth_factor),
    )
    parts = []
    for i, arrival in enumerate(_arrivals(rng, jobs, horizon, arrivals)):
        parts.append(_paper_job(rng, i, arrival, budget, utilities, steepness))
    return _instance(f"paper-{seed}", made, horizon, parts)


def on_substrate(made: Substrate, name: str, seed: int, *, jobs: Jobs = 50, horizon: Slots = 100) -> DdljsInstance:
    """Jobs of section VI, drawn for a given network."""
    rng = np.random.default_rng(seed)
    moments = _arrivals(rng, jobs, horizon, "diurnal")
    parts = [_paper_job(rng, i, arrival, "printed", "sigmoid", 1.0) for i, arrival in enumerate(moments)]
    return _instance(name, made, horizon, parts)


def _paper_job(
    rng: np.random.Generator, i: int, arrival: int, budget: str, utilities: str, steepness: float
) -> dict[str, Any]:
    largest, zeta = int(rng.integers(1, 6)), int(rng.integers(50, 501))
    most = int(rng.integers(1000, 6001))
    scale, midpoint = round(float(rng.uniform(1, 100)), 3), round(float(rng.uniform(300, 3000)), 1)
    shape: dict[str, Any] = {
        "kind": "sigmoid",
        "scale": scale,
        "steepness": round(float(rng.uniform(0, 1)) * steepness, 8),
        "midpoint": midpoint,
    }
    if utilities == "sqrt":
        shape = {"kind": "sqrt", "scale": round(scale / midpoint**0.5, 6)}
    elif utilities == "log":
        shape = {"kind": "log", "scale": 1.0, "least": NEVER_RAN}
    elif utilities == "energy":
        shape = {"kind": "energy", "scale": 1.0}
    return {
        "id": f"j{i}",
        "arrival": arrival,
        "max_workers": largest,
        "demand": {"gpu": 1},
        "budget": {"gpu": most // zeta if budget == "iterations" else most},
        "bandwidth": round(float(rng.uniform(0.1, 5.0)), 2),
        "efficiency": 1.0 if utilities == "log" else float(zeta),
        "utility": shape,
    }


def _arrivals(rng: np.random.Generator, jobs: int, horizon: int, how: str) -> list[int]:
    """First slots, in order."""
    if how == "start":
        return [1] * jobs
    rate = np.ones(horizon)
    if how == "diurnal":
        rate += 0.6 * np.sin(2 * np.pi * np.arange(horizon) / 100)
    return sorted((1 + rng.choice(horizon, jobs, p=rate / rate.sum())).tolist())


def _utility(rng: np.random.Generator, which: str, efficiency: float) -> dict[str, Any]:
    """A utility of one of the kinds, its numbers to two decimals."""
    choices = {"any": KINDS, "concave": KINDS[:3], "sigmoid": KINDS[3:]}[which]
    shape: dict[str, Any] = {"kind": str(rng.choice(choices)), "scale": round(float(rng.uniform(0.5, 5.0)), 2)}
    if shape["kind"] == "sigmoid":
        shape["steepness"] = round(float(rng.uniform(0.3, 3.0)), 2)
        shape["midpoint"] = round(efficiency * float(rng.uniform(0.5, 5.0)), 2)
    return shape


def _instance(name: str, made: Substrate, horizon: int, jobs: list[dict[str, Any]]) -> DdljsInstance:
    return DdljsInstance.parse(
        {
            "problem": "ddljs",
            "name": name,
            "servers": made.servers,
            "links": made.links,
            "horizon": horizon,
            "jobs": jobs,
        },
        name,
    )
