"""How far each exact method of rar-ddls gets, and how much faster `cp` is than the plain time-indexed model."""

from __future__ import annotations

import os
import time

from schedgap.formulations.common.instance import Json
from schedgap.formulations.rar_ddls.check import check
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.models.time_indexed import build_ilp, ilp_nonzeros
from schedgap.formulations.rar_ddls.solution import RarDdlsSolution
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.exact.rar_ddls.cp import solve_cp
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status
from studies.speed.rar_ddls_grid import contended_grid

Row = dict[str, Json]

_FAMILIES = ("pairs", "mixed", "quads")
_THREADS = 2


def _solve(method: str, instance: RarDdlsInstance, limit: float) -> tuple[Result, float]:
    """One method within `limit` seconds on two threads, and the seconds it took."""
    options = SolveOptions(deadline=Deadline.after(limit), threads=_THREADS)
    began = time.perf_counter()
    if method == "cp":
        result = solve_cp(instance, options)
    else:
        result = solve_declarative(
            lambda: build_ilp(instance),
            method,
            options,
            lambda s: check(instance, RarDdlsSolution.parse(s)),
            ilp_nonzeros(instance),
        )
    return result, time.perf_counter() - began


def contended_slots(instance: RarDdlsInstance, result: Result) -> int | None:
    """Job-slots of the best schedule in which a ring meets another on some server; None without a schedule."""
    if result.solution is None:
        return None
    lives = simulate(instance, result.solution["start"], result.solution["placement"]).segments
    return sum(
        piece.last - piece.first + 1
        for pieces in lives.values()
        for piece in pieces
        if piece.contention >= 2 and piece.last is not None
    )


def cp_reach(
    *, seed: int = 0, jobs: int = 20, servers: int = 6, instances: int = 10, limit: float = 60.0, scale: float = 1.0
) -> list[Row]:
    """`cp` on contended instances of one size, a family after the other, on two threads.

    Returns
    -------
    A row per instance: status, objective, bound, job-slots with contention in the best schedule, seconds, load.
    """
    rows = []
    for k in range(max(1, round(instances * scale))):
        instance = contended_grid(seed + k, jobs=jobs, servers=servers, family=_FAMILIES[k % len(_FAMILIES)])
        result, seconds = _solve("cp", instance, limit)
        rows.append(
            {
                "instance": instance.name,
                "status": str(result.status),
                "objective": result.objective,
                "bound": result.bound,
                "contended_job_slots": contended_slots(instance, result),
                "seconds": round(seconds, 2),
                "load": round(os.getloadavg()[0], 1),
            }
        )
    return rows


def method_reach(
    *,
    seed: int = 0,
    sizes: tuple[tuple[int, int], ...] = ((6, 3), (8, 4), (10, 4), (12, 5), (16, 5)),
    instances: int = 3,
    limit: float = 10.0,
    scale: float = 1.0,
) -> list[Row]:
    """Every exact method on growing contended instances; a method that proves none of a size stops there.

    Returns
    -------
    A row per size and method: how many it proved, total seconds over all instances (the limit counts where it
    did not finish), and how many times longer than `cp` that is. The plain time-indexed model is `cpsat`,
    `highs` and `cbc`: the same declarative model on three engines.
    """
    rows: list[Row] = []
    alive = {"cp": True, "cpsat": True, "highs": True, "cbc": True}
    for jobs, servers in sizes:
        made = [
            contended_grid(seed + k, jobs=jobs, servers=servers, family=_FAMILIES[k % len(_FAMILIES)])
            for k in range(max(1, round(instances * scale)))
        ]
        of_cp = None
        for method in alive:
            if not alive[method]:
                continue
            proven, total = 0, 0.0
            for instance in made:
                result, seconds = _solve(method, instance, limit)
                proven += result.status is Status.OPTIMAL
                total += seconds
            alive[method] = proven > 0
            of_cp = total if method == "cp" else of_cp
            rows.append(
                {
                    "jobs": jobs,
                    "servers": servers,
                    "method": method,
                    "proven": proven,
                    "instances": len(made),
                    "seconds": round(total, 2),
                    "times_cp": None if of_cp is None else round(total / max(of_cp, 1e-3), 1),
                }
            )
    return rows
