"""How far the exact methods of comm-contention get, and how far AdaDUAL falls behind."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from schedgap.benchmarks.instances.comm_contention.random import small
from schedgap.catalogue.comm_contention import PROBLEM
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.instance import Json
from schedgap.heuristics.comm_contention.guarantees import TRAP_SIZES, trap_ratio
from schedgap.solvers.result import Deadline, SolveOptions, Status

Row = dict[str, Json]


def _load() -> float | None:
    """Processes that wanted a core during the last minute, where the system tells."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def proofs(
    *,
    seed: int = 0,
    instances: int = 10,
    tasks: int = 8,
    load: float = 0.5,
    scale: float = 1.0,
    time_limit: float | None = None,
) -> list[Row]:
    """Method `bb` on the preset `small`, one row per instance.

    Parameters
    ----------
    seed : seed of the first instance
    instances : how many, times `scale`
    tasks, load : options of the preset
    time_limit : seconds for each; 60 where not given
    """
    run_method(PROBLEM, small(0, tasks=4), "bb", SolveOptions())  # compiles
    rows: list[Row] = []
    for k in range(max(1, round(instances * scale))):
        began = time.perf_counter()
        limit = Deadline.after(60.0 if time_limit is None else time_limit)
        answer = run_method(
            PROBLEM, small(seed + k, tasks=tasks, load=load), "bb", SolveOptions(deadline=limit, threads=2)
        )
        rows.append(
            {
                "seed": seed + k,
                "tasks": tasks,
                "status": str(answer.status),
                "objective": answer.objective,
                "bound": answer.bound,
                "nodes": answer.info.get("nodes"),
                "seconds": time.perf_counter() - began,
                "load": _load(),
            }
        )
    return rows


def growth(*, seed: int = 0, instances: int = 3, scale: float = 1.0, time_limit: float | None = None) -> list[Row]:
    """Methods `bb` and `highs` on the preset `small` with 4 to 10 tasks: how many are proven, in which mean time.

    Parameters
    ----------
    seed : seed of the first instance of each size
    instances : number of instances of each size, times `scale`
    time_limit : seconds for each solve; 60 where not given. `highs` is left out beyond 6 tasks
    """
    run_method(PROBLEM, small(0, tasks=4), "bb", SolveOptions())  # compiles
    count = max(1, round(instances * scale))
    rows: list[Row] = []
    for method, sizes in (("bb", (4, 5, 6, 7, 8, 9, 10)), ("highs", (4, 5, 6))):
        for tasks in sizes:
            proven, seconds = 0, 0.0
            for k in range(count):
                began = time.perf_counter()
                limit = Deadline.after(60.0 if time_limit is None else time_limit)
                options = SolveOptions(deadline=limit, threads=2)
                answer = run_method(PROBLEM, small(seed + k, tasks=tasks), method, options)
                seconds += time.perf_counter() - began
                proven += answer.status is Status.OPTIMAL
            rows.append(
                {
                    "method": method,
                    "tasks": tasks,
                    "proven": proven,
                    "instances": count,
                    "seconds": seconds / count,
                    "load": _load(),
                }
            )
    return rows


def trap_ratios(*, seed: int = 0, sizes: Sequence[int] = TRAP_SIZES) -> list[Row]:
    """A lower bound on AdaDUAL's ratio on its trap, one row per number of tasks.

    Parameters
    ----------
    sizes : numbers of tasks, each at least 3
    """
    del seed
    return [{"tasks": n, "ratio": trap_ratio(n)} for n in sizes]
