"""Where instances of ddljs come from: presets, families, importers, suites, figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.substrate_files import network_importers
from schedgap.benchmarks.importers.throughputs import timed
from schedgap.benchmarks.importers.traces import Trace, trace_importers
from schedgap.benchmarks.instances import Jobs, Racks, Servers, Slots, Workers
from schedgap.benchmarks.instances.substrates import (
    PAPER_GPUS,
    PAPER_RACK_LINKS,
    PAPER_SERVER_LINKS,
    Substrate,
    no_empty_racks,
    rack_tree,
    random_graph,
)
from schedgap.catalogue.workload import Batch, Preset, Workload
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.options import named
from schedgap.formulations.common.substrate import MOST_WORKERS
from schedgap.formulations.ddljs.instance import LONGEST_HORIZON, DdljsInstance
from schedgap.heuristics.g_vne.measured import three_conflicts

# Random instances of ddljs: some that can be tried out completely, and the workload of paper 004, section VI.

KINDS = ("linear", "sqrt", "log1p", "sigmoid")
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


# Instances of ddljs on which the claims of paper 004 are near their limits, small enough to be solved.

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


# Job traces as instances of ddljs: arrivals and budgets of GPU time from the trace, the network assumed.


def to_ddljs(
    trace: Trace,
    *,
    slot_length: Annotated[float, Field(gt=0, le=10**6, description="seconds per slot")] = 3600.0,
    link: Annotated[float, Field(gt=0, le=1e9, description="Gbit/s between a server and the one switch")] = 100.0,
    bandwidth: Annotated[float, Field(ge=0, le=1e9, description="Gbit/s of a ring of several servers")] = 1.0,
    horizon: Annotated[
        int | None, Field(ge=1, le=10**6, description="slots; where not given, until the last job could have ended")
    ] = None,
) -> DdljsInstance:
    """The jobs of a trace, each with as many workers at once as it had GPUs, and its GPU time as its budget.

    A job is worth one for each GPU-hour that it gets, up to its budget. Raises InputError: no job fits, or one arrives
    beyond the longest horizon.
    """
    jobs = trace.fitting(min(MOST_WORKERS, sum(server.gpus for server in trace.servers)))
    lengths = [max(1, math.ceil(seconds / slot_length)) for seconds in timed(trace, jobs)]
    arrivals = [1 + int(job.arrival / slot_length) for job in jobs]
    last = max(arrival + length for arrival, length in zip(arrivals, lengths, strict=True)) if jobs else 1
    if horizon is None and last > LONGEST_HORIZON:
        raise InputError(f"{trace.path}: {last} slots, at most {LONGEST_HORIZON}; raise slot_length")
    end = last if horizon is None else horizon
    made = Substrate([{"id": server.id, "resources": {"gpu": server.gpus}} for server in trace.servers], [])
    if len(trace.servers) > 1:
        made.servers.append({"id": "switch", "resources": {}})
        for server in trace.servers:
            made.join(server.id, "switch", link)
    rows = []
    for job, arrival, length in zip(jobs, arrivals, lengths, strict=True):
        if arrival > end:
            trace.drop(job, f"arrives after slot {end}")
            continue
        rows.append(
            {
                "id": job.id,
                "arrival": arrival,
                "max_workers": job.gpus,
                "demand": {"gpu": 1},
                "budget": {"gpu": job.gpus * length},
                "bandwidth": bandwidth,
                "efficiency": slot_length / 3600,
                "utility": {"kind": "linear", "scale": 1.0},
            }
        )
    if not rows:
        raise InputError(f"{trace.path}: no job arrives within {end} slots")
    trace.notes.add(
        f"the network is assumed: {link:g} Gbit/s to one switch, {bandwidth:g} for a ring",
        "a job is worth one for each GPU-hour: the file does not say what jobs are worth",
    )
    parts = {"name": trace.name, "servers": made.servers, "links": made.links, "horizon": end, "jobs": rows}
    return DdljsInstance.parse({"problem": "ddljs", **parts}, trace.path)


# The part of ddljs in the suite quick.

_ENGINES = ("cpsat", "highs", "cbc")
_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""
ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 8, exact=_ENGINES, work_limit=_WORK),
    Batch("quick", "small", 3, exact=("cpsat",), settings={"horizon": 4}, work_limit=_WORK),
)


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "1 to 3 servers, 2 or 3 jobs, 2 to 4 slots: brute force is possible", tiny),
        Preset("small", "4 servers in two racks, 4 jobs, 5 slots, links that hold few rings", small),
        Preset(
            "paper",
            "section VI: 50 servers in 2 to 5 racks, 200 slots, sigmoid utilities; `jobs` varies in Figure 4",
            paper,
        ),
        Preset(
            "figure-5",
            "section VI with few GPUs and many jobs: `gpu_factor` varies",
            paper,
            {"jobs": 300, "gpu_factor": 0.5, "steepness": 0.01},
        ),
        Preset(
            "figure-6",
            "section VI with narrow links: `bandwidth_factor` varies",
            paper,
            {"jobs": 300, "bandwidth_factor": 0.05, "steepness": 0.01},
        ),
        Preset(
            "figure-7",
            "a cluster whose slots are solved exactly: `gadget` with one inner method and another",
            paper,
            {"servers": 10, "racks": 2, "jobs": 40, "horizon": 50, "bandwidth_factor": 0.1, "utilities": "sqrt"},
        ),
    ),
    importers=(*network_importers(on_substrate), *trace_importers(to_ddljs)),
    families=partial(named, "schedgap.benchmarks.instances.ddljs.workload:FAMILIES"),
    suites=ROWS,
    figure=partial(named, "schedgap.benchmarks.figures.ddljs:worker_slots"),
)
