"""Longest first, backfilling, best-fit colocation: a list scheduler of ours for rar-ddls."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.rar_ddls.lpt_pass import COMPLETE, list_pass
from schedgap.heuristics.rar_ddls.simulation import Running, new_running
from schedgap.heuristics.rar_ddls.workload import NEVER, build_workload, impossible, solution_of
from schedgap.solvers.result import NO_DEADLINE, Deadline

WIDTH_EXPONENTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Orders tried: falling d_j G_j^e. 0 is longest first; the others bring wide jobs forward, which need room."""

CROSSING_SLACKS = (1.25, 1.0, 2.0, 1e9)
"""How much longer than its best duration a job may take by crossing servers rather than waiting."""


def lpt_colocate(instance: RarDdlsInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
    """Schedule by list scheduling that keeps rings inside one server where it can.

    Whenever jobs have left, the waiting jobs are looked at in a fixed order, and each that may start does
    (backfilling). A job goes to the server with the fewest idle GPUs that holds it. If there is none, it may
    cross the servers with the most idle GPUs, or else those with the fewest rings, provided that with the rings
    that are there it takes at most a factor `slack` of its best duration, and neither it nor a ring that it meets
    stalls. All orders d_j G_j^e and all slacks of the constants above are tried, and the best schedule is
    returned. No ratio is proven; ``bound`` = max(max_j d_j, ceil(sum_j G_j d_j / N)) is a certified lower
    bound on the optimum, with the best durations d_j.

    Parameters
    ----------
    instance : the instance
    seed : not used; the algorithm is deterministic
    deadline : looked at between passes; the first pass always runs, the best so far is returned

    Returns
    -------
    HeuristicRun; the solution is None where no schedule ends within the horizon (``info["reason"]``).
    ``info``: makespan, exponent, slack, passes_run, N, n_g; ``stopped`` = "time limit" where passes were left out.

    Raises
    ------
    InputError
        The rates of the instance would take more than 10^8 numbers.

    Notes
    -----
    O(J (K + S log S)) for each of up to 24 passes, with K different numbers of GPUs, and the rings that contend.
    A pass never stalls: on an empty cluster every job may start at its best rate.
    """
    info: dict[str, Any] = {"N": instance.total_gpus, "n_g": instance.largest_gang}
    reason = impossible(instance)
    if reason is not None:
        return HeuristicRun(None, {**info, "reason": reason})
    work = build_workload(instance)
    sizes, kind = np.unique(work.gangs, return_inverse=True)
    area = -(-int((work.gangs * work.best).sum()) // instance.total_gpus)
    bound = max(int(work.best.max()), area)
    best: Running | None = None
    makespan = NEVER
    ran = 0
    for slack, exponent in itertools.product(CROSSING_SLACKS, WIDTH_EXPONENTS):
        if makespan == bound:
            break
        if ran and deadline.passed:
            info["stopped"] = "time limit"
            break
        order = np.argsort(-(work.best * work.gangs.astype(np.float64) ** exponent), kind="stable").astype(np.int64)
        run = new_running(work)
        ran += 1
        if list_pass(work, run, order, kind.astype(np.int64), sizes.size, slack, makespan) == COMPLETE:
            best, makespan = run, int(run.completion.max())
            info.update({"makespan": makespan, "exponent": exponent, "slack": slack})
    info["passes_run"] = ran
    if best is None or makespan > instance.horizon:
        late = f"the best schedule found ends in slot {makespan}, the horizon is {instance.horizon}"
        return HeuristicRun(None, {**info, "reason": late}, bound=float(bound))
    solution = solution_of(instance, best.start, best.servers, best.amounts, best.used, work.row)
    return HeuristicRun(solution, info, bound=float(bound))
