"""Instances of rar-ddls on which the claims about SJF-BCO are near their limits, small enough to be solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from schedgap.benchmarks.instances.rar_ddls.random import contended, tiny
from schedgap.formulations.common.instance import Json
from schedgap.formulations.rar_ddls.durations import worst_durations
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table

Trial = tuple[RarDdlsInstance, dict[str, Json]]
"""An instance, and the options that ``sjf_bco`` is to run with."""


RATE = 4
"""Iterations per slot of the jobs made here that do not communicate."""


OVERHEAD = 1 / 16
"""xi_2 where they run: the latency of one server, which the paper takes to be positive."""


def single_gpu(seed: int) -> Trial:
    """N GPUs, N (N - 1) jobs of one unit, then one of N units, all on one GPU each: ratio 2 - 1/N.

    The optimum starts the long job at once and takes N units; smallest job first, which sees no difference
    between them, takes 2 N - 1. N is 2 to 5, a unit 1 to 3 slots, and the GPUs lie on one or more servers.
    """
    rng = np.random.default_rng(seed)
    gpus = int(rng.integers(2, 6))
    unit = int(rng.integers(1, 4))
    lengths = [unit] * (gpus * (gpus - 1)) + [unit * gpus]
    jobs = [_quiet(j, 1, length) for j, length in enumerate(lengths)]
    return _instance(f"single-gpu-{seed}", _split(rng, gpus), jobs, horizon=2 * unit * gpus**2), {}


def gangs(seed: int) -> Trial:
    """Jobs of one GPU that fill the cluster, then a long gang: ratios near 2 with n_g >= 2, without contention.

    The gang takes 2 or 3 of 3 to 6 GPUs of one server; the small jobs fill the rest of an optimal schedule. Every
    fourth has a gang of 2 on 12 GPUs for 6 slots: 11/6, where n_g allows 2.
    """
    rng = np.random.default_rng(seed)
    gpus = int(rng.integers(3, 7))
    gang = int(rng.integers(2, 4))
    length = int(rng.integers(2, 5))
    if seed % 4 == 3:
        gpus, gang, length = 12, 2, 6
    jobs = [_quiet(j, 1, 1) for j in range((gpus - gang) * length)]
    jobs.append(_quiet(len(jobs), gang, length))
    return _instance(f"gangs-{seed}", [gpus], jobs, horizon=2 * len(jobs) * length), {}


def estimates(seed: int) -> Trial:
    """Estimates that are far off: u of 2 to 8, with rho_hat the best or the worst durations.

    Loads are sums of rho_hat / u, so with u well above 1 they say little about the makespan.
    """
    rng = np.random.default_rng(seed)
    instance = tiny(seed) if rng.random() < 0.5 else contended(seed)
    # Algorithm 1 tries theta up to the horizon only; a longer one leaves it room.
    instance = _positive(instance, 2 * instance.horizon)
    options: dict[str, Any] = {"u": float(rng.choice([2.0, 3.0, 5.0, 8.0]))}
    worst = worst_durations(instance)
    if rng.random() < 0.5 and np.isfinite(worst).all():
        # The smallest u for which rho_hat / u is below every duration, as the paper assumes.
        options["rho_hat"] = "worst"
        options["u"] = max(1.0, float((worst / rate_table(instance).best_duration).max()))
    return instance, options


def random_options(seed: int) -> Trial:
    """Random tiny instances, most of them contended, with random options of the algorithm."""
    rng = np.random.default_rng(seed)
    instance = _positive(contended(seed) if rng.random() < 0.7 else tiny(seed))
    options: dict[str, Any] = {"lambda": float(rng.choice([1.0, 1.5, 2.0, 4.0]))}
    options["bisection"] = "feasible" if rng.random() < 0.5 else "improved"
    if rng.random() < 0.3:
        options["l"] = float(rng.choice([0.25, 0.5]))
    return instance, options


def _positive(instance: RarDdlsInstance, horizon: int | None = None) -> RarDdlsInstance:
    """The same with xi_1 and xi_2 above 0, as the paper takes them to be, and another horizon where one is given."""
    data = instance.to_dict()
    data["network"]["contention_scale"] = data["network"]["contention_scale"] or 1.0
    data["network"]["server_overhead"] = data["network"]["server_overhead"] or 0.001
    return RarDdlsInstance.parse({**data, "horizon": horizon or instance.horizon})


def worst_ratio(seed: int) -> Trial:
    """Two servers of 3 and 2 GPUs, rings of 3 and 4: least loaded GPUs make every ring cross, and cross slowly.

    Around the worst ratio known, 43 to 7.
    """
    rng = np.random.default_rng(seed)
    sizes = [int(rng.integers(3, 5)), int(rng.integers(2, 4))]
    rings = [3, 1, 3, min(4, sum(sizes) - 1)][: int(rng.integers(3, 5))]
    jobs = [
        {
            "id": f"j{j}",
            "gpus": gpus,
            "iterations": int(rng.integers(1, 13)),
            "gradient_size": float(rng.choice([0.2, 0.3])) if gpus > 1 else 0.0,
            "batch_size": 16,
            "forward_time": float(rng.choice([0.001, 0.002])),
            "backward_time": float(rng.choice([0.05, 0.1, 0.15])),
        }
        for j, gpus in enumerate(rings)
    ]
    network = {"contention_scale": 0.5, "contention_penalty": 1.0, "server_overhead": 0.01}
    return _instance(f"worst-ratio-{seed}", sizes, jobs, horizon=60, reduce_speed=100.0, **network), {}


FAMILIES: Mapping[str, Callable[[int], Trial]] = {
    "single_gpu": single_gpu,
    "gangs": gangs,
    "estimates": estimates,
    "contended": random_options,
    "worst_ratio": worst_ratio,
}
"""Families by the names that the hints of the guarantees use."""


def _split(rng: np.random.Generator, gpus: int) -> list[int]:
    """The GPUs on one or more servers, in random sizes."""
    sizes = []
    while gpus > 0:
        sizes.append(int(rng.integers(1, gpus + 1)))
        gpus -= sizes[-1]
    return sizes


def _quiet(position: int, gpus: int, slots: int) -> dict[str, Any]:
    """A job that exchanges nothing and takes `slots` slots on any one server."""
    return {
        "id": f"j{position}",
        "gpus": gpus,
        "iterations": RATE * slots,
        "gradient_size": 0.0,
        "batch_size": 1,
        "forward_time": 0.0,
        "backward_time": 1 / RATE - OVERHEAD,
    }


def _instance(
    name: str,
    sizes: Sequence[int],
    jobs: Sequence[Mapping[str, Any]],
    horizon: int,
    reduce_speed: float = 1000.0,
    **network: float,
) -> RarDdlsInstance:
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "name": name,
            "horizon": horizon,
            "network": {
                "inter_bandwidth": 1.0,
                "intra_bandwidth": 50.0,
                "contention_scale": 1.0,
                "contention_penalty": 0.0,
                "server_overhead": OVERHEAD,
                **network,
            },
            "reduce_speed": reduce_speed,
            "servers": [{"id": f"s{s}", "gpus": size} for s, size in enumerate(sizes)],
            "jobs": [dict(job) for job in jobs],
        }
    )
