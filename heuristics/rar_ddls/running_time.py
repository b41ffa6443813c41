"""How the work of Algorithm 1 of paper 000 grows: Theorem 6, measured by counting."""

from __future__ import annotations

import math

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.running import build_workload
from schedgap.heuristics.common.growth import growth_exponent
from schedgap.heuristics.common.guarantee import (
    Measured,
)
from schedgap.heuristics.rar_ddls.estimates import Estimates, estimates
from schedgap.heuristics.rar_ddls.sjf_bco import Search, make_plan

SERVER_GPUS = 8


BASE = {"jobs": 80, "gpus": 64, "n_g": 8, "T": 256}


GROWTH = {"jobs": (40, 80, 160, 320), "gpus": (32, 64, 128, 256), "n_g": (2, 4, 8, 16), "T": (256, 1024, 4096, 16384)}


def sorting_steps(instance: RarDdlsInstance) -> int:
    """Elementary steps of Algorithm 1 as printed, counted as in the proof of Theorem 6: the sorting.

    An attempt of Algorithm 2 sorts N GPUs and counts N log2 N; one of Algorithm 3 sorts S servers and at most N
    GPUs. Attempts are counted in a run with every kappa in 1..n_g and with waiting as printed, none of the
    accelerations; bisection as printed, without the probe of theta = infinity. Every job has to fit the cluster and
    to make progress alone.

    An attempt is made when a job's turn comes and after each exit that it waits for, so at most 2 J in a pass.
    """
    search = new_search(instance, estimates(instance, "best", 1.0), 1.0, literal=True)
    search.bisect(instance.horizon, "improved", range(1, instance.largest_gang + 1))
    gpus, servers = instance.total_gpus, len(instance.servers)
    second, third = search.attempts
    return round(second * _sort(gpus) + third * (_sort(servers) + _sort(gpus)))


def new_search(instance: RarDdlsInstance, guess: Estimates, scale: float, literal: bool = False) -> Search:
    """A search that has run no pass; `scale` is lambda of Algorithm 3."""
    work = build_workload(instance)
    order = np.argsort(work.jobs["gang"][:-1], kind="stable").astype(np.int64)
    return Search(work, make_plan(work, guess.weights, order, scale), guess, literal=literal)


def running_time_growth(seed: int) -> Measured:
    """The growth of ``sorting_steps`` in J, N, n_g and T, one at a time, on random instances.

    Exponents are slopes of a least-squares line through (log x, log steps), where x is J, N log2 N, n_g and
    log2 T: Theorem 6, O(n_g J N log N log T), says that each is at most 1. ``normalised`` is the range of
    steps / (n_g J N log2 N log2 T) over all instances: the constant hidden in the O.
    """
    values: dict[str, float] = {}
    constants = []
    for what, sizes in GROWTH.items():
        steps, scale = [], []
        for size in sizes:
            setting = {**BASE, what: size}
            count = sorting_steps(_random_instance(seed, **setting))
            steps.append(count)
            n_log_n = _sort(setting["gpus"])
            scale.append({"jobs": size, "gpus": _sort(size), "n_g": size, "T": math.log2(size)}[what])
            constants.append(count / (setting["n_g"] * setting["jobs"] * n_log_n * math.log2(setting["T"])))
        values[f"exponent_{what}"] = growth_exponent(scale, steps)
    values["normalised_least"], values["normalised_most"] = min(constants), max(constants)
    summary = (
        f"steps grow with exponent {values['exponent_jobs']:.2f} in J, {values['exponent_gpus']:.2f} in N log N, "
        f"{values['exponent_n_g']:.2f} in n_g, {values['exponent_T']:.2f} in log T; "
        f"steps / (n_g J N log N log T) from {min(constants):.2f} to {max(constants):.2f}"
    )
    return Measured(values, summary)


def _sort(length: int) -> float:
    return length * math.log2(max(2, length))


def _random_instance(seed: int, jobs: int, gpus: int, n_g: int, T: int) -> RarDdlsInstance:
    """`jobs` jobs of 1 to n_g GPUs (one of them n_g) and 5 to 20 slots alone, on servers of 8 GPUs."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n_g + 1, jobs)
    sizes[0] = n_g
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "name": f"growth-{seed}",
            "horizon": T,
            "network": {
                "inter_bandwidth": 1.0,
                "intra_bandwidth": 50.0,
                "contention_scale": 0.5,
                "contention_penalty": 0.2,
                "server_overhead": 0.0005,
            },
            "reduce_speed": 1000.0,
            "servers": [{"id": f"s{s}", "gpus": SERVER_GPUS} for s in range(gpus // SERVER_GPUS)],
            "jobs": [
                {
                    "id": f"j{j}",
                    "gpus": int(size),
                    "iterations": 20 * int(rng.integers(5, 21)),
                    "gradient_size": 0.002,
                    "batch_size": 32,
                    "forward_time": 0.0,
                    "backward_time": 0.045,
                }
                for j, size in enumerate(sizes)
            ],
        }
    )
