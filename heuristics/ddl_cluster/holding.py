"""List scheduling that holds GPUs: whenever some become free, or a job arrives, the shortest jobs that fit begin.

A job, or two of one width that gain by it, has its GPUs for itself until it ends, and a job wider than any server its
servers. So nothing contends with it but its partner, and its length is known.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.ddl_cluster.policies import check_seconds, late
from schedgap.solvers.exact.ddl_cluster.gangs import Gangs
from schedgap.solvers.result import NO_DEADLINE, Deadline

Pairs = Annotated[bool, Field(description="whether two jobs may share their GPUs; else each has its own")]


def list_hold(
    instance: DdlClusterInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE, pairs: Pairs = True
) -> HeuristicRun:
    """Begin the shortest jobs that fit, whenever GPUs become free or a job arrives.

    At prices of GPU time a long job costs least when it starts after a rush of short ones. Jobs are held back for none,
    half, nine tenths or all of the time until then, and with `pairs` those wider than any server are matched greedily
    before, too; the best of these schedules is taken.

    Parameters
    ----------
    instance : the instance; jobs that carry a placement keep it, and share with none
    seed : not used, nothing is drawn
    deadline : a schedule whose check cannot end by then is none
    pairs : whether jobs are matched

    Returns
    -------
    HeuristicRun; ``info["pairs"]`` is how many jobs share. The solution is None where the time is too short.

    Notes
    -----
    60 to 400 evaluations of prices, and O(J (log J + R S)) for J jobs that need R different things of S servers,
    without pairs. It knows all jobs from the beginning. No ratio is claimed. Ours.
    """
    least, remaining = check_seconds(instance), deadline.remaining()
    if remaining is not None and remaining <= least:
        return late(f"its check takes {least:.3g} s or more")
    gangs = Gangs(instance)
    laid = gangs.best_listed(pairs)
    shared = sum(len(block.jobs) > 1 for block in laid.blocks)
    return HeuristicRun(gangs.solution(laid), {"pairs": shared})
