"""Random instances of rar-ddls: families small enough for brute force, measured jobs, and the paper's workload."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from schedgap.benchmarks.instances.options import Servers
from schedgap.benchmarks.instances.profiles.throughputs import BUILT_IN
from schedgap.benchmarks.instances.rar_ddls.horizons import ample_horizon, certified_horizon
from schedgap.benchmarks.instances.rar_ddls.measured import Setup, measured_job
from schedgap.benchmarks.instances.rar_ddls.options import (
    Ample,
    ContentionPenalty,
    Extra,
    Horizon,
    Longest,
    OverheadSlots,
    RaisedHorizon,
    Slack,
    Worker,
)
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST_COUNT
from schedgap.formulations.common.options import passes_on_to
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

INTER_BANDWIDTH = 1.0


INTRA_BANDWIDTH = 50.0


REDUCE_SPEED = 1000.0


PAPER_MIX: Mapping[int, int] = {1: 80, 2: 14, 4: 26, 8: 30, 16: 8, 32: 2}
"""GPUs of a job: number of such jobs among 160 (paper 000, section 7)."""


def tiny(
    seed: int,
    *,
    jobs: Annotated[int | None, Field(ge=1, le=1000, description="number of jobs; 3 or 4 where not given")] = None,
    servers: Annotated[
        int | None, Field(ge=1, le=1000, description="number of servers; 2 or 3 where not given")
    ] = None,
    gpus: Annotated[int, Field(ge=1, le=1000, description="most GPUs of a server")] = 3,
    slots: Longest = 3,
    slack: Slack = 1.25,
    horizon: Horizon = None,
    ample: Ample = False,
) -> RarDdlsInstance:
    """3 or 4 jobs on 2 or 3 servers, small enough that every schedule can be tried."""
    rng = np.random.default_rng(seed)
    n_jobs = int(rng.integers(3, 5)) if jobs is None else jobs
    n_servers = int(rng.integers(2, 4)) if servers is None else servers
    sizes = rng.integers(1, gpus + 1, n_servers).tolist()
    total = sum(sizes)
    gangs = [int(rng.integers(1, min(gpus + 1, total) + 1)) for _ in range(n_jobs)]
    return _small_scale(rng, f"tiny-{seed}", sizes, gangs, slots, slack, horizon, ample)


def contended(
    seed: int,
    *,
    jobs: Annotated[
        int | None, Field(ge=1, le=1000, description="rings that must cross; 2 or 3 where not given")
    ] = None,
    singles: Annotated[int | None, Field(ge=0, le=1000, description="further jobs; 0 to 2 where not given")] = None,
    servers: Annotated[int, Field(ge=2, le=1000, description="number of servers")] = 3,
    gpus: Annotated[int, Field(ge=1, le=1000, description="GPUs of a server; rings have one more")] = 2,
    slots: Longest = 2,
    slack: Slack = 1.25,
    horizon: Horizon = None,
    ample: Ample = False,
) -> RarDdlsInstance:
    """Jobs one GPU larger than every server, so that every ring crosses and rings share servers.

    With the defaults: servers of 2, 2, 2 GPUs and jobs of 3, of which two fit at once only by meeting on
    one server; smaller jobs fill up.
    """
    rng = np.random.default_rng(seed)
    n_rings = int(rng.integers(2, 4)) if jobs is None else jobs
    n_singles = int(rng.integers(0, 3 if n_rings == 2 else 2)) if singles is None else singles
    if servers < 2:
        raise InputError(f"preset contended: servers: must be at least 2, got {servers}")
    gangs = [gpus + 1] * n_rings + [int(rng.integers(1, gpus + 1)) for _ in range(n_singles)]
    sizes = [gpus] * servers
    return _small_scale(rng, f"contended-{seed}", sizes, gangs, slots, slack, horizon, ample, (0.4, 1.2), (0.75, 1.0))


def _small_scale(
    rng: np.random.Generator,
    name: str,
    sizes: Sequence[int],
    gangs: Sequence[int],
    slots: int,
    slack: float,
    horizon: int | None,
    ample: bool,
    exchanges: tuple[float, float] = (0.1, 1.2),
    scales: tuple[float, ...] = (0.5, 0.75, 1.0),
) -> RarDdlsInstance:
    """An instance with few iterations per slot, in which crossing and contention cost whole slots.

    Parameters
    ----------
    exchanges : range of the time that a ring's exchange takes when it crosses alone, over its computation
    scales : values of xi_1; at 0.5 two rings on one server do not yet slow each other down
    """
    overhead = float(rng.choice([0.0, 0.005, 0.02]))
    jobs = []
    for position, size in enumerate(gangs):
        rate = int(rng.integers(2, 8))
        # Between two whole rates: the rate on one server is exactly `rate` before its small overheads.
        compute = 1.0 / (rate + rng.uniform(0.2, 0.8))
        exchange = compute * rng.uniform(*exchanges)
        # Crossing alone on the most servers still makes at least one iteration a slot.
        exchange = min(exchange, 0.9 - compute - overhead * min(size, len(sizes)))
        duration = int(rng.integers(1, slots + 1))
        jobs.append(
            {
                "id": f"j{position}",
                "gpus": int(size),
                "iterations": max(1, rate * duration - int(rng.integers(0, rate))),
                "gradient_size": _exchanged(exchange, size),
                "batch_size": int(rng.choice([16, 32, 64])),
                "forward_time": 0.0,
                "backward_time": round(compute, 4),
            }
        )
    network = {
        "inter_bandwidth": INTER_BANDWIDTH,
        "intra_bandwidth": INTRA_BANDWIDTH,
        "contention_scale": float(rng.choice(scales)),
        "contention_penalty": float(rng.choice([0.0, 0.2, 0.5, 1.0])),
        "server_overhead": overhead,
    }
    return _with_horizon(name, network, sizes, jobs, slack, horizon, ample=ample)


def _exchanged(slots: float, gpus: int, digits: int = 4) -> float:
    """The gradient size whose exchange over one link to itself takes `slots` per iteration: eq. (8) solved for m."""
    if gpus < 2:
        return 0.0
    return round(slots * INTER_BANDWIDTH * gpus / (2 * (gpus - 1)), digits)


def _with_horizon(
    name: str,
    network: Mapping[str, float],
    sizes: Sequence[int],
    jobs: Sequence[Mapping[str, Any]],
    slack: float,
    horizon: int | None,
    at_least: int = 1,
    ample: bool = False,
) -> RarDdlsInstance:
    """The instance; where no horizon is given, an ample one, or `slack` times a certified feasible makespan, or
    `at_least`."""
    data = {
        "problem": "rar-ddls",
        "name": name,
        "horizon": LARGEST_COUNT if horizon is None else horizon,
        "network": dict(network),
        "reduce_speed": REDUCE_SPEED,
        "servers": [{"id": f"s{position}", "gpus": int(size)} for position, size in enumerate(sizes)],
        "jobs": [dict(job) for job in jobs],
    }
    instance = RarDdlsInstance.parse(data, name)
    if horizon is not None:
        return instance
    certified = certified_horizon(instance)
    if certified is None:
        raise InputError(f"{name}: no schedule of any length exists for these settings")
    slots = ample_horizon(instance) if ample else math.ceil(slack * certified)
    return instance.model_copy(update={"horizon": max(at_least, certified, slots or 0)})


@passes_on_to(Setup)
def small(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=10000, description="number of jobs")] = 8,
    servers: Servers = 4,
    gpus: Annotated[int, Field(ge=1, le=1000, description="GPUs of a server")] = 2,
    slots: Longest = 8,
    worker: Worker = "v100",
    slack: Slack = 1.25,
    horizon: Horizon = None,
    ample: Ample = False,
    **cluster: float,
) -> RarDdlsInstance:
    """Jobs of measured rates (``throughputs.BUILT_IN``) of 1, 2 and 4 GPUs on small servers.

    Parameters
    ----------
    seed : seed of all randomness: job types, gangs (1, 2 or 4 GPUs with probability 0.5, 0.25, 0.25, never more
        than the cluster has) and durations
    """
    rng = np.random.default_rng(seed)
    setup = Setup(**cluster)
    BUILT_IN.require_worker(worker)
    rows = []
    for position in range(jobs):
        scale = int(rng.choice([1, 2, 4], p=[0.5, 0.25, 0.25]))
        while scale > servers * gpus:
            scale //= 2
        types = [t for t in BUILT_IN.job_types(worker) if BUILT_IN.rate(worker, t, scale).consolidated]
        job_type = str(rng.choice(types))
        found = measured_job(BUILT_IN, worker, job_type, scale, setup)
        consolidated = BUILT_IN.rate(worker, job_type, scale).consolidated
        assert found is not None and consolidated is not None
        steps = math.ceil(consolidated * setup.slot_length * slots * rng.uniform(1 / slots, 1))
        rows.append({"id": f"j{position}", "iterations": steps, **found[0]})
    return _with_horizon(f"small-{seed}", setup.network(), [gpus] * servers, rows, slack, horizon, ample=ample)


def paper(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=100000, description="number of jobs, in the paper's proportions")] = 160,
    servers: Annotated[int, Field(ge=1, le=100000, description="number of servers")] = 20,
    horizon: RaisedHorizon = 1200,
    xi_1: Annotated[float, Field(gt=0, le=1, description="contention_scale")] = 0.5,
    alpha: ContentionPenalty = 0.2,
    xi_2: OverheadSlots = 0.0005,
    extra: Extra = 0.15,
    nested: Annotated[
        bool, Field(description="the same jobs for every number of servers, and the first servers of a larger cluster")
    ] = False,
    least: Annotated[
        float, Field(ge=0, le=150, description="least contention-free duration, in slots (the paper prints 50)")
    ] = 0.0,
) -> RarDdlsInstance:
    """The workload of section 7 of paper 000, with xi_1 and xi_2 kept apart.

    160 jobs (80 of 1 GPU, 14 of 2, 26 of 4, 30 of 8, 8 of 16, 2 of 32), servers of 4, 8, 16 or 32 GPUs with
    equal probability, iterations F in [1000, 6000], time per iteration tau in [0.01, 0.05] slots. The
    paper does not print gradient sizes: here tau is drawn for a ring that crosses two servers with
    ``TYPICAL_CONTENTION`` rings on one of them, and the exchange takes a share of it drawn from
    [extra/3, extra], as section 7 bounds the time that contention and overhead add by 15%.

    Parameters
    ----------
    servers : how many; drawn again until the largest job fits the cluster
    horizon : slots (1200 in the paper, 1500 for its figure 6); raised where that is needed for an instance
        that is certainly feasible
    nested : draw servers and jobs apart, so that clusters of other sizes differ in their servers only
    """
    rng = np.random.default_rng(seed)
    of_servers = np.random.default_rng([seed, 1]) if nested else rng
    gangs = _mix(jobs)
    sizes = of_servers.choice([4, 8, 16, 32], servers).tolist()
    while sum(sizes) < max(gangs):
        sizes = of_servers.choice([4, 8, 16, 32], servers).tolist()
    return _paper_scale(rng, f"paper-{seed}", gangs, sizes, horizon, xi_1, alpha, xi_2, extra, least)


def large(
    seed: int,
    *,
    jobs: Annotated[int, Field(ge=1, le=100000, description="number of jobs, in the paper's proportions")] = 10_000,
    gpus: Annotated[int, Field(ge=32, le=10**6, description="GPUs of the cluster")] = 10_000,
    horizon: RaisedHorizon = 1200,
    xi_1: Annotated[float, Field(gt=0, le=1, description="contention_scale")] = 0.5,
    alpha: ContentionPenalty = 0.2,
    xi_2: OverheadSlots = 0.0005,
    extra: Extra = 0.15,
) -> RarDdlsInstance:
    """The paper's workload at the scale of a whole site: 10,000 jobs in its proportions on 10,000 GPUs.

    Parameters
    ----------
    gpus : GPUs of the cluster, at least 32; servers of 4, 8, 16 or 32 with equal probability, the last as large as
        needed
    """
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    left = gpus
    while left > 0:
        sizes.append(min(left, int(rng.choice([4, 8, 16, 32]))))
        left -= sizes[-1]
    return _paper_scale(rng, f"large-{seed}", _mix(jobs), sizes, horizon, xi_1, alpha, xi_2, extra)


TYPICAL_CONTENTION = 4
"""Rings on the busiest server for which ``paper`` draws tau."""


def _mix(jobs: int) -> list[int]:
    """GPUs of `jobs` jobs in the proportions of ``PAPER_MIX``, by the largest remainder."""
    shares = {size: jobs * count / sum(PAPER_MIX.values()) for size, count in PAPER_MIX.items()}
    counts = {size: math.floor(share) for size, share in shares.items()}
    by_remainder = sorted(shares, key=lambda size: (counts[size] - shares[size], size))
    for size in by_remainder[: jobs - sum(counts.values())]:
        counts[size] += 1
    return [size for size, count in counts.items() for _ in range(count)]


def _paper_scale(
    rng: np.random.Generator,
    name: str,
    gangs: Sequence[int],
    sizes: Sequence[int],
    horizon: int,
    xi_1: float,
    alpha: float,
    xi_2: float,
    extra: float,
    least: float = 0.0,
) -> RarDdlsInstance:
    """Jobs of the paper's kind in random order; the horizon is raised where no schedule within it is certain."""
    order = rng.permutation(len(gangs))
    k = max(1.0, xi_1 * TYPICAL_CONTENTION)
    factor = k + alpha * (k - 1)
    jobs = []
    for position, index in enumerate(order.tolist()):
        size = int(gangs[index])
        while True:
            share = 0.0 if size == 1 else rng.uniform(extra / 3, extra)
            # At least 0.01 on one server, at most 0.05 with the typical contention.
            tau = rng.uniform((0.01 + xi_2) / (1 - share), 0.05)
            compute = tau * (1 - share) - xi_2 * (1 if size == 1 else 2)
            iterations = int(rng.integers(1000, 6001))
            if iterations * (compute + xi_2) >= least:
                break
        jobs.append(
            {
                "id": f"j{position}",
                "gpus": size,
                "iterations": iterations,
                "gradient_size": _exchanged(tau * share / factor, size, 7),
                "batch_size": 32,
                # Forward and backward pass share the computing 1 : 2.
                "forward_time": round(compute / 3 / 32, 9),
                "backward_time": round(compute * 2 / 3, 7),
            }
        )
    network = {
        "inter_bandwidth": INTER_BANDWIDTH,
        "intra_bandwidth": INTRA_BANDWIDTH,
        "contention_scale": xi_1,
        "contention_penalty": alpha,
        "server_overhead": xi_2,
    }
    return _with_horizon(name, network, sizes, jobs, 1.0, None, at_least=horizon)
