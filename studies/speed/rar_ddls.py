"""How fast the heuristics of rar-ddls are: against the literal SJF-BCO, at 10,000 jobs, and as instances grow."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from schedgap.benchmarks.instances.rar_ddls.random import large, paper
from schedgap.formulations.common.instance import Json
from schedgap.formulations.rar_ddls.check import check
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.rar_ddls.baselines import ff, ls, rand
from schedgap.heuristics.rar_ddls.lpt_colocate import lpt_colocate
from schedgap.heuristics.rar_ddls.sjf_bco import sjf_bco
from studies.reference_sjf_bco import placement_of, plain_sjf_bco

Row = dict[str, Json]

METHODS: dict[str, Callable[..., HeuristicRun]] = {
    "sjf-bco": sjf_bco,
    "ff": ff,
    "ls": ls,
    "rand": rand,
    "lpt-colocate": lpt_colocate,
}


def _load() -> float | None:
    """Processes that wanted a core during the last minute, where the system tells."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def warm_up() -> float:
    """Compile everything, or load it from the cache on disk, on a small instance; returns the seconds it took."""
    began = time.perf_counter()
    instance = paper(0, jobs=16, servers=4)
    for method in METHODS.values():
        method(instance)
    sjf_bco(instance, bisection="feasible")
    return time.perf_counter() - began


def literal_speedup(*, seed: int = 0, instances: int = 3, scale: float = 1.0) -> list[Row]:
    """The fast SJF-BCO against the literal one on the paper's workload, in one process, after compilation.

    Parameters
    ----------
    seed : seed of the first instance; the others follow
    instances : how many, times `scale`
    scale : factor of ``bench --scale``

    Returns
    -------
    A row per instance: makespan, theta and kappa; whether start, placement, makespan, theta, kappa and W_max
    are identical; seconds of both and their ratio; load of the machine.

    Notes
    -----
    The fast one is run five times and the median is taken, the literal one once. A new instance object is used
    for each run, so that nothing is kept from one to the next.
    """
    warm_up()
    rows = []
    for k in range(max(1, round(instances * scale))):
        instance = paper(seed + k)
        times = []
        for _ in range(5):
            fresh = instance.model_copy()
            began = time.perf_counter()
            run = sjf_bco(fresh)
            times.append(time.perf_counter() - began)
        fresh = instance.model_copy()
        began = time.perf_counter()
        plain = plain_sjf_bco(fresh)
        literal = time.perf_counter() - began
        fast = float(np.median(times))
        found = plain.returned
        identical = found is None and run.solution is None
        if found is not None:
            theta = None if math.isinf(found.theta) else found.theta
            told = tuple(run.info.get(name) for name in ("makespan", "theta_tilde", "kappa", "W_max"))
            limits = (found.makespan, theta, found.kappa, float(found.largest_load))
            identical = run.solution == placement_of(instance, found) and told == limits
        rows.append(
            {
                "instance": instance.name,
                "makespan": plain.makespan,
                "theta": run.info.get("theta_tilde"),
                "kappa": run.info.get("kappa"),
                "identical": identical,
                "fast_seconds": fast,
                "literal_seconds": literal,
                "times_faster": literal / fast,
                "load": _load(),
            }
        )
    return rows


def large_times(*, seed: int = 0, jobs: int = 10_000, gpus: int = 10_000, scale: float = 1.0) -> list[Row]:
    """Every heuristic on `jobs` jobs and `gpus` GPUs, in one process, after compilation.

    Returns
    -------
    A row per method: makespan, its ratio to the certified bound of lpt-colocate, whether the checker accepts the
    schedule, seconds, load of the machine.
    """
    warm_up()
    instance = large(seed, jobs=max(1, round(jobs * scale)), gpus=max(32, round(gpus * scale)))
    runs = []
    for name, method in METHODS.items():
        fresh = instance.model_copy()
        began = time.perf_counter()
        run = method(fresh)
        runs.append((name, run, time.perf_counter() - began))
    bound = max(run.bound or 0.0 for _, run, _ in runs)
    return [
        {
            "instance": instance.name,
            "method": name,
            "makespan": run.info.get("makespan"),
            "to_bound": run.info["makespan"] / bound if run.solution is not None and bound else None,
            "accepted": None if run.solution is None else check(instance, RarDdlsSolution.parse(run.solution)).feasible,
            "seconds": seconds,
            "load": _load(),
        }
        for name, run, seconds in runs
    ]


_FROM_START = """
from schedgap.benchmarks.instances.rar_ddls.random import large
from schedgap.heuristics.rar_ddls.sjf_bco import sjf_bco
run = sjf_bco(large({seed}, jobs={jobs}, gpus={gpus}))
print(run.info.get("makespan"))
"""


def large_from_start(*, seed: int = 0, jobs: int = 10_000, gpus: int = 10_000, scale: float = 1.0) -> list[Row]:
    """SJF-BCO on `jobs` jobs and `gpus` GPUs in a process of its own: interpreter, imports, instance, algorithm.

    Compilation is not counted: it was done, and kept on disk, before.
    """
    warm_up()
    code = _FROM_START.format(seed=seed, jobs=max(1, round(jobs * scale)), gpus=max(32, round(gpus * scale)))
    began = time.perf_counter()
    # The command is this interpreter and the text above; nothing of it comes from outside.
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - began
    makespan = answer.stdout.strip()
    return [
        {
            "jobs": max(1, round(jobs * scale)),
            "gpus": max(32, round(gpus * scale)),
            "makespan": None if makespan == "None" else int(makespan),
            "seconds": seconds,
            "load": _load(),
        }
    ]


def running_times(*, seed: int = 0, jobs: Sequence[int] = (1000, 2000, 4000, 8000), scale: float = 1.0) -> list[Row]:
    """Seconds of the fast SJF-BCO as jobs and GPUs grow together, and the exponent between neighbouring sizes.

    The printed bound (Theorem 6) is n_g J N log N log T: exponent 2 and a logarithm when J = N.
    """
    warm_up()
    rows: list[Row] = []
    for size in jobs:
        count = max(32, round(size * scale))
        instance: RarDdlsInstance = large(seed, jobs=count, gpus=count)
        began = time.perf_counter()
        run = sjf_bco(instance)
        seconds = time.perf_counter() - began
        before = rows[-1] if rows else None
        exponent = None
        if before is not None and before["jobs"] != count:
            exponent = math.log(seconds / before["seconds"]) / math.log(count / before["jobs"])
        rows.append(
            {
                "jobs": count,
                "gpus": count,
                "makespan": run.info.get("makespan"),
                "passes": run.info.get("passes_run"),
                "seconds": seconds,
                "exponent": exponent,
                "load": _load(),
            }
        )
    return rows
