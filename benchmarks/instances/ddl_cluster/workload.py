"""Where instances of ddl-cluster come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.benchmarks.importers.throughputs import timed
from schedgap.benchmarks.importers.traces import Trace, trace_importers
from schedgap.benchmarks.instances import Servers, log_uniform
from schedgap.benchmarks.instances.profiles.throughputs import match_profile
from schedgap.catalogue.workload import Batch, Preset, Workload
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.options import named
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance

# Random instances of ddl-cluster: small ones, and the workload of paper 001 at its own and a larger scale.

MODELS: dict[str, tuple[float, float, float, float]] = {
    "vgg16": (526.4, 4527.0, 0.0358, 0.0537),
    "resnet50": (99.2, 3213.0, 0.0250, 0.0374),
    "inception3": (103.0, 3291.0, 0.0349, 0.0524),
    "lstm": (251.8, 2751.0, 0.0315, 0.0473),
}
"""Table III of paper 001: message (MB), memory (MB), forward and backward task (s) on a V100."""
LINK = {"latency": 6.69e-4, "seconds_per_unit": 8.53e-4, "contention_penalty": 2.6e-4}
"""10 Gbps Ethernet: a and b as printed in section III-A2, per MB; eta is ours (see docs/comm-contention.md)."""
GPU_MEMORY = 16384.0
"""MB of a Tesla V100-16GB."""
GANGS: dict[int, int] = {1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}
"""How many of the paper's 160 jobs use how many GPUs (section V-A)."""


def tiny(
    seed: int,
    *,
    jobs: Annotated[int | None, Field(ge=1, le=1000, description="number of jobs; 2 or 3 where not given")] = None,
    servers: Annotated[int, Field(ge=1, le=1000, description="servers of 2 GPUs")] = 2,
    iterations: Annotated[int, Field(ge=1, le=10**6, description="most iterations of a job")] = 2,
) -> DdlClusterInstance:
    """2 or 3 placed jobs of 1 or 2 GPUs on servers of 2, a few iterations in whole seconds: `cp` proves them."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(2, 4)) if jobs is None else jobs
    parts = []
    for position in range(number):
        gang = int(rng.integers(1, 3))
        slots = rng.permutation(2 * servers)[:gang].tolist()
        if gang == 2 and servers > 1 and rng.random() < 0.7:
            first, second = rng.permutation(servers)[:2].tolist()
            slots = [2 * first + int(rng.integers(2)), 2 * second + int(rng.integers(2))]
        parts.append(
            {
                "id": f"j{position}",
                "arrival": float(rng.integers(0, 4)),
                "gpus": gang,
                "iterations": int(rng.integers(1, iterations + 1)),
                "forward": float(rng.integers(1, 3)),
                "backward": float(rng.integers(1, 4)),
                "message": float(rng.integers(1, 6)),
                "memory": 1.0,
                "placement": [[f"s{slot // 2}", slot % 2] for slot in sorted(slots)],
            }
        )
    link = {"latency": 0.0, "seconds_per_unit": 1.0, "contention_penalty": float(rng.choice([0.25, 0.5]))}
    return _instance(f"tiny-{seed}", [2] * servers, float(number), link, parts)


def small(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=5000, description="number of jobs")] = 12,
    servers: Servers = 4,
    gpus: Annotated[int, Field(ge=1, le=1000, description="GPUs per server")] = 2,
    iterations: Annotated[int, Field(ge=1, le=10**9, description="most iterations of a job")] = 60,
    seconds: Annotated[float, Field(ge=0, le=10**9, description="seconds of arrivals")] = 4.0,
    memory: Annotated[float, Field(ge=4527, le=10**12, description="MB of a GPU")] = 10_000.0,
) -> DdlClusterInstance:
    """12 jobs of 1 to 4 GPUs on 4 x 2 GPUs, of the models of Table III with up to 60 iterations."""
    rng = np.random.default_rng(seed)
    gangs = [min(int(rng.choice((1, 1, 2, 4))), servers * gpus) for _ in range(jobs)]
    moments = np.sort(np.round(rng.uniform(0.0, seconds, jobs), 2)).tolist()
    parts = _trained(rng, gangs, moments, (max(1, iterations // 5), iterations))
    return _instance(f"small-{seed}", [gpus] * servers, memory, LINK, parts)


def paper(
    seed: int,
    *,
    jobs: Annotated[
        int, Field(ge=1, le=100000, description="number of jobs, in the paper's proportions of gang sizes")
    ] = 160,
    servers: Servers = 16,
    gpus: Annotated[int, Field(ge=1, le=1000, description="GPUs per server")] = 4,
    seconds: Annotated[float, Field(ge=1, le=10**9, description="seconds of arrivals")] = 1200.0,
    fewest: Annotated[int, Field(ge=1, le=10**9, description="fewest iterations of a job")] = 1000,
    most: Annotated[int, Field(ge=1, le=10**9, description="most iterations of a job")] = 6000,
    eta: Annotated[float, Field(ge=0, le=1, description="eta of eq. (5), s per MB; the paper prints none")] = LINK[
        "contention_penalty"
    ],
    law: Annotated[
        Literal["uniform", "log-uniform"], Field(description="how iterations are spread from fewest to most")
    ] = "uniform",
    vgg: Annotated[
        float, Field(ge=0, le=1, description="share of VGG-16, whose message is the largest; the others share the rest")
    ] = 0.25,
) -> DdlClusterInstance:
    """The workload of section V-A of paper 001: 160 jobs on 16 servers of 4 V100, arrivals over 1,200 s.

    Gang sizes are the printed ones, or in proportion to them where `jobs` is not 160. The paper prints neither
    the models' shares nor the distribution of iterations within 1,000 to 6,000: both are uniform here, as in the
    generator that its authors published.
    """
    rng = np.random.default_rng(seed)
    if most < fewest:
        raise InputError(f"generator: most: must be at least fewest ({fewest}), got {most}")
    gangs = rng.permutation(gang_sizes(jobs)).tolist()
    widest = max(gangs)
    if widest > servers * gpus:
        raise InputError(f"generator: a job of {widest} GPUs does not fit {servers} servers of {gpus}")
    moments = np.sort(rng.integers(1, int(seconds) + 1, jobs)).astype(float).tolist()
    parts = _trained(rng, gangs, moments, (fewest, most), law, vgg)
    link = {**LINK, "contention_penalty": eta}
    return _instance(f"paper-{jobs}-{seed}", [gpus] * servers, GPU_MEMORY, link, parts)


def gang_sizes(jobs: int) -> list[int]:
    """GPUs of each of `jobs` jobs in the paper's proportions, by largest remainder; in ascending order."""
    total = sum(GANGS.values())
    exact = {gang: jobs * count / total for gang, count in GANGS.items()}
    counts = {gang: int(share) for gang, share in exact.items()}
    by_remainder = sorted(GANGS, key=lambda gang: (counts[gang] - exact[gang], gang))
    for gang in by_remainder[: jobs - sum(counts.values())]:
        counts[gang] += 1
    return [gang for gang, count in counts.items() for _ in range(count)]


def _trained(
    rng: np.random.Generator,
    gangs: Sequence[int],
    moments: Sequence[float],
    iterations: tuple[int, int],
    law: str = "uniform",
    vgg: float = 0.25,
) -> list[dict[str, Any]]:
    """Jobs that each train one of the models of Table III; by default models and iterations are drawn uniformly."""
    names = list(MODELS)
    low, high = iterations
    parts = []
    for position, (gang, moment) in enumerate(zip(gangs, moments, strict=True)):
        if vgg == 1 / len(names):
            name = names[int(rng.integers(len(names)))]
        else:
            name = names[0] if rng.random() < vgg else names[int(rng.integers(1, len(names)))]
        made = int(rng.integers(low, high + 1)) if law == "uniform" else min(high, int(log_uniform(rng, low, high + 1)))
        message, memory, forward, backward = MODELS[name]
        parts.append(
            {
                "id": f"{name}-{position}",
                "arrival": moment,
                "gpus": int(gang),
                "iterations": made,
                "forward": forward,
                "backward": backward,
                "message": message,
                "memory": memory,
            }
        )
    return parts


def _instance(
    name: str, servers: Sequence[int], memory: float, link: dict[str, float], jobs: list[dict[str, Any]]
) -> DdlClusterInstance:
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "name": name,
            "gpu_memory": memory,
            "servers": [{"id": f"s{i}", "gpus": size} for i, size in enumerate(servers)],
            "link": link,
            "jobs": jobs,
        },
        name,
    )


# Job traces as instances of ddl-cluster: arrivals and gangs from the trace, tasks of paper 001's measured models.


def to_ddl_cluster(
    trace: Trace,
    *,
    profile: Annotated[
        str, Field(description="model of paper 001's Table III for jobs whose own is not in it")
    ] = "resnet50",
    gpu_memory: Annotated[float, Field(gt=0, le=10**12, description="MB of a GPU")] = GPU_MEMORY,
    steps_scale: Annotated[float, Field(gt=0, le=1, description="factor on the iterations, rounded")] = 1.0,
) -> DdlClusterInstance:
    """The jobs of a trace, each training a model of paper 001's Table III for as many iterations as it ran.

    An iteration takes the model's forward and backward task, and for a job larger than a server an all-reduce that
    is alone on the link. Raises InputError: no job fits.
    """
    largest = max(server.gpus for server in trace.servers)
    rows: list[dict[str, Any]] = []
    jobs = trace.fitting(sum(server.gpus for server in trace.servers))
    for job, duration in zip(jobs, timed(trace, jobs), strict=True):
        model, said = match_profile(job.model, None, list(MODELS), profile)
        if said is not None:
            trace.notes.add(said)
        message, memory, forward, backward = MODELS[model]
        exchange = LINK["latency"] + message * LINK["seconds_per_unit"] if job.gpus > largest else 0.0
        rows.append(
            {
                "id": job.id,
                "arrival": job.arrival,
                "gpus": job.gpus,
                "iterations": max(1, round(steps_scale * duration / (forward + backward + exchange))),
                "forward": forward,
                "backward": backward,
                "message": message,
                "memory": memory,
            }
        )
    trace.notes.add("the link is paper 001's 10 Gbps Ethernet, GPUs are V100: the file has neither")
    return DdlClusterInstance.parse(
        {
            "problem": "ddl-cluster",
            "name": trace.name,
            "gpu_memory": gpu_memory,
            "servers": [{"id": server.id, "gpus": server.gpus} for server in trace.servers],
            "link": LINK,
            "jobs": rows,
        },
        trace.path,
    )


# The part of ddl-cluster in the suite quick.

_PLACED = {
    name: tuple({"placement": placement} for placement in ("lwf", "ls", "ff", "rand"))
    for name in ("srsf-1", "ada-srsf")
}
_JOB_SHOP = ("job-shop", "cbc", "highs")
"""The restriction to one all-reduce at a time, three ways."""
ROWS: tuple[Batch, ...] = (
    Batch("quick", "small", 2, method_settings=_PLACED),
    Batch("quick", "tiny", 4, exact=("cp", *_JOB_SHOP), heuristics=("srsf-1", "srsf-2", "ada-srsf"), work_limit=10.0),
)


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "2 or 3 placed jobs of 1 or 2 GPUs, one or two iterations in whole seconds", tiny),
        Preset("small", "12 jobs of 1 to 4 GPUs on 4 x 2 GPUs, the models of Table III, up to 60 iterations", small),
        Preset("paper", "160 jobs on 16 x 4 V100, arrivals over 1,200 s (paper 001, section V-A)", paper),
        Preset("large", "1,000 jobs in the same proportions on 128 x 4 V100", paper, {"jobs": 1000, "servers": 128}),
    ),
    importers=trace_importers(to_ddl_cluster),
    suites=ROWS,
    figure=partial(named, "schedgap.benchmarks.figures.ddl_cluster:gantt"),
)
