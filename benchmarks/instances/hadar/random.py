"""Random instances of hadar: small enough for brute force, proven in seconds, the paper's trace, and its example."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.benchmarks.instances.options import Jobs
from schedgap.benchmarks.instances.profiles.throughputs import BUILT_IN
from schedgap.formulations.hadar.instance import HadarInstance

MODELS: Mapping[str, Sequence[str]] = {
    "S": ("ResNet-18 (batch size 64)",),
    "M": ("CycleGAN",),
    "L": ("LM (batch size 20)", "Transformer (batch size 64)"),
    "XL": ("ResNet-50 (batch size 64)",),
}
"""Training jobs by size class (paper 002, Table II); rates are measured ones at one GPU."""


SIZES: Mapping[str, tuple[float, float]] = {"S": (0.0, 1.0), "M": (1.0, 10.0), "L": (10.0, 50.0), "XL": (60.0, 100.0)}
"""GPU-hours of a size class (paper 002, section IV-A), counted on the job's fastest type."""


GANGS: Mapping[int, float] = {1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}
"""Shares of jobs by number of workers in traces of the Microsoft cluster, as the Gavel repository draws them."""


def tiny(
    seed: int,
    *,
    jobs: Annotated[int | None, Field(ge=1, le=1000, description="number of jobs; 2 to 4 where not given")] = None,
    gpus: Annotated[int | None, Field(ge=1, le=1000, description="devices; 2 to 4 where not given")] = None,
    horizon: Annotated[int | None, Field(ge=2, le=10000, description="slots; 3 or 4 where not given")] = None,
) -> HadarInstance:
    """2 to 4 jobs on 2 to 4 devices of two types over 3 or 4 slots: every schedule can be tried."""
    rng = np.random.default_rng(seed)
    n_jobs = int(rng.integers(2, 5)) if jobs is None else jobs
    n_gpus = int(rng.integers(2, 5)) if gpus is None else gpus
    slots = int(rng.integers(3, 5)) if horizon is None else horizon
    first = int(rng.integers(1, n_gpus)) if n_gpus > 1 else 1
    machines = [{"id": "h0", "gpus": {"V100": first}}]
    if n_gpus > first:
        machines.append({"id": "h1", "gpus": {"K80": n_gpus - first}})
    kinds = ("V100", "K80")[: len(machines)]
    made: list[dict[str, Any]] = []
    for position in range(n_jobs):
        workers = int(rng.integers(1, min(3, n_gpus) + 1))
        rates = _rates(rng, kinds, 1, 4)
        length = int(rng.integers(1, slots))
        made.append(
            {
                "id": f"j{position}",
                "arrival": int(rng.integers(1, max(1, slots - length) + 1)),
                "workers": workers,
                "epochs": _work(rng, workers, rates, length),
                "iterations_per_epoch": 1,
                "throughput": rates,
                "utility": _utility(rng, slots),
            }
        )
    return _instance(f"tiny-{seed}", slots, 1.0, machines, made)


def small(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=10000, description="number of jobs")] = 8,
    horizon: Annotated[int, Field(ge=2, le=10000, description="slots")] = 12,
    gpus: Annotated[int, Field(ge=1, le=10000, description="devices of the cluster")] = 6,
    load: Annotated[float, Field(gt=0, le=100, description="device-slots wanted over those there are")] = 1.3,
) -> HadarInstance:
    """Jobs of 1 to 3 workers on three device types that want more than there is.

    Parameters
    ----------
    gpus : devices of the cluster, spread evenly over V100, P100 and K80 and over machines of 2
    load : device-slots the jobs need on their fastest types, over all there are (roughly)
    """
    rng = np.random.default_rng(seed)
    kinds = ("V100", "P100", "K80")
    counts = [gpus // 3 + (1 if position < gpus % 3 else 0) for position in range(3)]
    machines: list[dict[str, Any]] = []
    for kind, count in zip(kinds, counts, strict=True):
        for start in range(0, count, 2):
            machines.append({"id": f"h{len(machines)}", "gpus": {kind: min(2, count - start)}})
    mean = max(1.0, load * gpus * horizon / (2.0 * jobs))  # slots per job at 2 workers on average
    made: list[dict[str, Any]] = []
    for position in range(jobs):
        workers = int(rng.integers(1, min(3, gpus) + 1))
        rates = _rates(rng, [kind for kind, count in zip(kinds, counts, strict=True) if count], 2, 9)
        length = int(np.clip(rng.integers(1, math.ceil(2 * mean)), 1, max(1, horizon // 2)))
        made.append(
            {
                "id": f"j{position}",
                "arrival": int(rng.integers(1, max(1, horizon // 2) + 1)),
                "workers": workers,
                "epochs": _work(rng, workers, rates, length),
                "iterations_per_epoch": 1,
                "throughput": rates,
                "utility": _utility(rng, horizon),
            }
        )
    made.sort(key=lambda job: int(job["arrival"]))
    return _instance(f"small-{seed}", horizon, 1.0, machines, made)


def contended(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=1000, description="number of jobs")] = 6,
    horizon: Annotated[int, Field(ge=2, le=10000, description="slots")] = 8,
    mixed: Annotated[bool, Field(description="gangs of 2 to 4 on 2 + 2 devices, not of 1 and 2")] = True,
) -> HadarInstance:
    """Gangs that fit only by mixing device types, on machines of two types each, all present at the start."""
    rng = np.random.default_rng(seed)
    kinds = ("V100", "P100")
    machines = [{"id": f"h{h}", "gpus": dict.fromkeys(kinds, 1)} for h in range(2)]
    made: list[dict[str, Any]] = []
    for position in range(jobs):
        workers = int(rng.integers(2, 5)) if mixed else int(rng.integers(1, 3))
        rates = _rates(rng, kinds, 1, 5)
        if workers > 2:
            rates = {kind: max(1, rates.get(kind, 1)) for kind in kinds}
        length = int(rng.integers(1, max(2, horizon // 2)))
        made.append(
            {
                "id": f"j{position}",
                "arrival": 1,
                "workers": workers,
                "epochs": _work(rng, workers, rates, length),
                "iterations_per_epoch": 1,
                "throughput": rates,
                "utility": _utility(rng, horizon),
            }
        )
    return _instance(f"contended-{seed}", horizon, 1.0, machines, made)


def trace(
    seed: int,
    *,
    jobs: Jobs = 480,
    nodes: Annotated[int, Field(ge=1, le=10000, description="nodes")] = 15,
    per_node: Annotated[int, Field(ge=1, le=1000, description="devices of a node")] = 4,
    horizon: Annotated[int, Field(ge=2, le=100000, description="rounds")] = 400,
    round_minutes: Annotated[float, Field(gt=0, le=10000, description="length of a round")] = 6.0,
    hours_scale: Annotated[float, Field(gt=0, le=100, description="factor on all GPU-hours")] = 1.0,
    utility: Annotated[
        Literal["effective-throughput", "constant"], Field(description="kind of utility")
    ] = "effective-throughput",
    arrivals: Annotated[
        Literal["start", "spread"], Field(description="all at the start, or over the first half")
    ] = "start",
    gangs: Annotated[
        Literal["drawn", "single"], Field(description="1, 2, 4 or 8 workers, or 1 for every job")
    ] = "drawn",
) -> HadarInstance:
    """The paper's workload: four size classes drawn evenly, a third of the nodes with 4 V100, 4 P100, 4 K80 each.

    Parameters
    ----------
    gangs : ``single`` gives every job one worker; all else of a draw stays as it is
    """
    rng = np.random.default_rng(seed)
    kinds = ("V100", "P100", "K80")
    machines = [{"id": f"node{h}", "gpus": {kinds[h % 3]: per_node}} for h in range(nodes)]
    present = kinds[: min(nodes, 3)]
    made: list[dict[str, Any]] = []
    for position in range(jobs):
        size = str(rng.choice(list(SIZES)))
        model = str(rng.choice(MODELS[size]))
        low, high = SIZES[size]
        hours = float(rng.uniform(low, high)) * hours_scale
        workers = int(rng.choice(list(GANGS), p=list(GANGS.values())))
        workers = 1 if gangs == "single" else min(workers, per_node * nodes)
        rates = {kind: BUILT_IN.rate(kind.lower(), model, 1).consolidated or 0.0 for kind in present}
        made.append(
            {
                "id": f"j{position}",
                "arrival": 1 if arrivals == "start" else int(rng.integers(1, horizon // 2 + 1)),
                "workers": workers,
                "epochs": max(1, round(hours * 3600 * max(rates.values()))),
                "iterations_per_epoch": 1,
                "throughput": rates,
                "utility": {"kind": utility, "weight": 1.0},
            }
        )
    return _instance(f"trace-{seed}", horizon, round_minutes * 60.0, machines, made)


def rounds(
    seed: int, *, jobs: Annotated[int, Field(ge=1, le=100000, description="waiting jobs")] = 32
) -> HadarInstance:
    """One scheduling round with many waiting jobs on a cluster that grows with them (paper 002, Fig. 5).

    Parameters
    ----------
    jobs : waiting jobs; there is one node of 4 devices for every 32 of them, at least 3
    """
    made = trace(seed, jobs=jobs, nodes=max(3, jobs // 32), horizon=400)
    return made.model_copy(update={"name": f"rounds-{jobs}-{seed}"})


def motivation(seed: int = 0, *, horizon: int = 6) -> HadarInstance:
    """Section II-A's example: three jobs, 2 V100, 3 P100, 1 K80; the same for every seed.

    Its X is a rate per job, so epochs are scaled by the workers under (1a).
    """
    rates = ((40, 20, 30), (5, 15, 5), (10, 2, 20))
    sizes = ((3, 80), (2, 30), (2, 50))
    kinds = ("V100", "P100", "K80")
    machines = [{"id": f"h{h}", "gpus": {kind: n}} for h, (kind, n) in enumerate(zip(kinds, (2, 3, 1), strict=True))]
    made = [
        {
            "id": f"j{position}",
            "arrival": 1,
            "workers": workers,
            "epochs": workers * epochs,
            "iterations_per_epoch": 1,
            "throughput": dict(zip(kinds, row, strict=True)),
            "utility": {"kind": "effective-throughput", "weight": 1.0},
        }
        for position, ((workers, epochs), row) in enumerate(zip(sizes, rates, strict=True))
    ]
    return _instance("section-II-A", horizon, 1.0, machines, made)


def lowhigh(
    seed: int,
    *,
    gpus: Annotated[int | None, Field(ge=1, le=1000, description="devices; 1 to 4 where not given")] = None,
    horizon: Annotated[int | None, Field(ge=1, le=10000, description="slots; 1 to 4 where not given")] = None,
) -> HadarInstance:
    """Adversarial arrivals: one device pool, jobs worth little first and much later (Theorem 2's weak spot)."""
    rng = np.random.default_rng(seed)
    n_gpus = int(rng.integers(1, 5)) if gpus is None else gpus
    slots = int(rng.integers(1, 5)) if horizon is None else horizon
    made: list[dict[str, Any]] = []
    worth = 1.0
    for position in range(int(rng.integers(1, 7))):
        length = int(rng.integers(1, slots + 1))
        workers = int(rng.integers(1, n_gpus + 1))
        made.append(
            {
                "id": f"j{position}",
                "arrival": 1,
                "workers": workers,
                "epochs": workers * length,
                "iterations_per_epoch": 1,
                "throughput": {"V100": 1},
                "utility": {"kind": "constant", "weight": worth},
            }
        )
        worth = round(worth * float(rng.choice([1.0, 2.0, 7.0, 12.0, 100.0])), 3)
    machines = [{"id": "h0", "gpus": {"V100": n_gpus}}]
    return _instance(f"lowhigh-{seed}", slots, 1.0, machines, made)


def nodes(
    seed: int,
    *,
    jobs: Annotated[int | None, Field(ge=1, le=1000, description="number of jobs; 1 to 3 where not given")] = None,
    count: Annotated[int | None, Field(ge=1, le=1000, description="nodes; 2 to 5 where not given")] = None,
    rate: Annotated[int, Field(ge=1, le=10000, description="largest speed of a job on a node")] = 8,
) -> HadarInstance:
    """Nodes of one device, each of its own type, and jobs of one worker: what HadarE forks (Theorem 3)."""
    rng = np.random.default_rng(seed)
    n_jobs = int(rng.integers(1, 4)) if jobs is None else jobs
    n_nodes = int(rng.integers(2, 6)) if count is None else count
    machines = [{"id": f"n{i}", "gpus": {f"T{i}": 1}} for i in range(n_nodes)]
    made = [
        {
            "id": f"j{position}",
            "arrival": 1,
            "workers": 1,
            "epochs": int(rng.integers(1, 2 * rate)),
            "iterations_per_epoch": 1,
            "throughput": {f"T{i}": int(rng.integers(1, rate + 1)) for i in range(n_nodes)},
            "utility": {"kind": "effective-throughput", "weight": 1.0},
        }
        for position in range(n_jobs)
    ]
    return _instance(f"nodes-{seed}", 6 + 2 * n_jobs, 1.0, machines, made)


def _rates(rng: np.random.Generator, kinds: Sequence[str], low: int, high: int) -> dict[str, int]:
    """Whole rates by type; now and then a type cannot be used."""
    rates = {kind: int(rng.integers(low, high + 1)) for kind in kinds}
    if len(kinds) > 1 and rng.random() < 0.15:
        rates.pop(str(rng.choice(list(kinds))))
    return rates


def _work(rng: np.random.Generator, workers: int, rates: Mapping[str, int], length: int) -> int:
    """Iterations that take `length` slots on the fastest type, the last one partly."""
    fastest = workers * max(rates.values())
    return max(1, fastest * length - int(rng.integers(0, fastest)))


def _utility(rng: np.random.Generator, horizon: int) -> dict[str, Any]:
    kind = str(rng.choice(["effective-throughput", "linear", "constant"]))
    if kind == "effective-throughput":
        return {"kind": kind, "weight": float(rng.integers(1, 5))}
    if kind == "linear":
        return {
            "kind": kind,
            "weight": float(rng.integers(5, 41)),
            "deadline": float(rng.integers(max(2, horizon // 2), 2 * horizon + 1)),
        }
    return {"kind": kind, "weight": float(rng.integers(3, 21))}


def _instance(
    name: str,
    horizon: int,
    slot_length: float,
    machines: Sequence[Mapping[str, Any]],
    jobs: Sequence[Mapping[str, Any]],
) -> HadarInstance:
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": name,
            "horizon": horizon,
            "slot_length": slot_length,
            "machines": list(machines),
            "jobs": list(jobs),
        },
        name,
    )
