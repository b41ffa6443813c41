"""Random instances of ddl-cluster: small ones, and the workload of paper 001 at its own and a larger scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.benchmarks.instances import log_uniform
from schedgap.benchmarks.instances.options import Servers
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance

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
