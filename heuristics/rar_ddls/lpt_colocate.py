"""Longest first, backfilling, best-fit colocation: a list scheduler of ours for rar-ddls."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.formulations.rar_ddls.running import FAR, Workload, build_workload, solution_of
from schedgap.formulations.rar_ddls.schedule import (
    CONSIDERATE,
    CROSS_ANY,
    LARGEST_FIRST,
    QUIET,
    Rings,
    list_schedule,
    scratch_for,
    uniform_choices,
)
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.rar_ddls.estimates import impossible
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
    bound on the optimum, with the best durations d_j. Raises InputError: the rates of the instance would take more than
    10^8 numbers.

    Parameters
    ----------
    deadline : looked at between passes; the first pass always runs, the best so far is returned

    Returns
    -------
    HeuristicRun; the solution is None where no schedule ends within the horizon (``info["reason"]``).
    ``info``: makespan, exponent, slack, passes_run, N, n_g; ``stopped`` = "time limit" where passes were left out.

    Notes
    -----
    O(J (K + S log S)) for each of up to 24 passes, with K different numbers of GPUs, and the rings that contend.
    A pass never stalls: on an empty cluster every job may start at its best rate.
    """
    info: dict[str, Any] = {"N": instance.total_gpus, "n_g": instance.largest_gang}
    reason = impossible(instance)
    if reason is not None:
        return HeuristicRun(None, {**info, "reason": reason})
    table = rate_table(instance)
    area = -(-int((table.gpus * table.best_duration).sum()) // instance.total_gpus)
    bound = max(int(table.best_duration.max()), area)
    work = build_workload(instance)
    scratch = scratch_for(work)
    choices = uniform_choices(work, np.arange(table.gpus.size), CROSS_ANY, LARGEST_FIRST)
    _, kind = np.unique(table.gpus, return_inverse=True)
    best: Workload | None = None
    makespan = FAR
    ran = 0
    for slack, exponent in itertools.product(CROSSING_SLACKS, WIDTH_EXPONENTS):
        if makespan == bound:
            break
        if ran and deadline.passed:
            info["stopped"] = "time limit"
            break
        order = np.argsort(-(table.best_duration * table.gpus.astype(np.float64) ** exponent), kind="stable")
        ran += 1
        these = choices._replace(order=order, kind=kind)
        now = list_schedule(work, these, scratch, makespan - 1, Rings(CONSIDERATE, slack, QUIET))
        if now >= 0:
            best, work, makespan = work, work.another(), now
            info.update({"makespan": makespan, "exponent": exponent, "slack": slack})
    info["passes_run"] = ran
    if best is None or makespan > instance.horizon:
        late = f"the best schedule found ends in slot {makespan}, the horizon is {instance.horizon}"
        return HeuristicRun(None, {**info, "reason": late}, bound=float(bound))
    return HeuristicRun(solution_of(instance, best), info, bound=float(bound))
