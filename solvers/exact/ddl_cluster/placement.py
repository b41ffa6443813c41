"""Placement as a decision: every placement of a small cluster, each scheduled by `cp` (method `placement`).

Idea: bound every placement, then schedule the most promising ones until no other can be better. Source: enumeration
with bounds; paper 001 takes the placement of a rule as given. Guarantee: up to 200,000 ways to place, all are bounded,
and the best is an optimum where `cp` closes every placement that could be better; beyond, the best of a sample with
the bound of any size.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.ddl_cluster.bounds import resource_bound
from schedgap.formulations.ddl_cluster.check import check
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, simulate_plain, solution_of
from schedgap.formulations.ddl_cluster.solution import DdlClusterSolution
from schedgap.solvers.exact.ddl_cluster.bound import lower_bound
from schedgap.solvers.exact.ddl_cluster.lns import solve_lns
from schedgap.solvers.exact.ddl_cluster.methods import solve_cp, too_late
from schedgap.solvers.exact.ddl_cluster.task_walks import improve_by_walks
from schedgap.solvers.incumbent import Incumbent, optimal
from schedgap.solvers.result import Deadline, Result, SolveOptions, Status, Termination, package_version

MOST = 200_000
"""Ways to give GPUs to jobs that are gone through; beyond, placements are drawn at random and nothing is proven."""
DRAWN = 200
"""Placements that are drawn where there are too many, unless the time limit comes first."""
_WALKING = 0.75
"""Share of the remaining limits that walks may take before the neighbourhoods."""
_DRAWING = 0.5
"""Share of the time that drawing may take."""
_ROUNDED = 1 - 1e-12
"""Factor below which a sum of floats is less than another for sure."""
PART = 0.2
"""Share of the remaining time for one placement: the most promising ones come first."""

Placement = tuple[tuple[Gpu, ...], ...]


def solve_placement(instance: DdlClusterInstance, options: SolveOptions) -> Result:
    """The best schedule over all placements, contention included.

    Where there are at most 200,000 ways to give GPUs to jobs, every placement (one of those that differ only by equal
    servers or by GPUs of one server) is bounded, the most promising first, and scheduled by ``cp`` unless its bound
    shows that it cannot be better. The result's bound is the least over all placements. Where there are more, 200
    placements are drawn at random (seeded) and scheduled by the policies, in half of the time, unless a start is given;
    what is left of a limit goes to the neighbourhoods of ``lns``. The bound is that of any size.

    Placements that the instance gives stay as they are.

    Parameters
    ----------
    options : limits, seed, threads, start

    Returns
    -------
    Result; ``info["placements"]`` is how many were looked at.

    Notes
    -----
    Exponential in the jobs without a placement. The schedule may begin to use its GPUs at any time.
    """
    best = Incumbent(MINIMISE, options, lambda solution: check(instance, DdlClusterSolution.parse(solution)))
    if best.stage("bound"):
        best.tighten(lower_bound(instance))
    if options.start is not None:
        best.propose(options.start, "start")
    ended: Termination | None = None
    try:
        if not best.stage("placements"):
            ended = None if best.proven else Termination.FINISHED
        elif ways(instance) <= MOST:
            ended = _all_placements(instance, best)
        else:
            limited = options.work_limit is not None or options.deadline.moment is not None
            ended = _drawn_placements(instance, best, 1 if limited and best.objective is not None else DRAWN)
            if limited and ended is Termination.FINISHED and not best.finished():
                ended = _improved(instance, best)
    except KeyboardInterrupt:
        best.interrupted = True
    return best.result(ended, "cpsat", package_version("ortools"))


def ways(instance: DdlClusterInstance) -> int:
    """How many ways there are to give GPUs to the jobs that have none."""
    free = [job.gpus for job, given in zip(instance.jobs, instance.given, strict=True) if given is None]
    return math.prod(math.comb(instance.total_gpus, gpus) for gpus in free)


def placements(instance: DdlClusterInstance) -> Iterator[Placement]:
    """Every placement, one of those that differ only by equal servers or by GPUs of one server."""
    gpus = [(s, g) for s, server in enumerate(instance.servers) for g in range(server.gpus)]
    choices = [
        [given] if given is not None else list(itertools.combinations(gpus, job.gpus))
        for job, given in zip(instance.jobs, instance.given, strict=True)
    ]
    fixed = any(given is not None for given in instance.given)
    seen = set()
    for chosen in itertools.product(*choices):
        form = _canonical(instance, chosen, fixed)
        if form not in seen:
            seen.add(form)
            yield tuple(chosen)


def _canonical(instance: DdlClusterInstance, chosen: tuple[tuple[Gpu, ...], ...], fixed: bool) -> object:
    """The same for placements that differ only by equal servers (where none is given) or by GPUs of one server."""
    holders: dict[Gpu, list[int]] = {}
    for j, gpus in enumerate(chosen):
        for gpu in gpus:
            holders.setdefault(gpu, []).append(j)
    servers = []
    for s, server in enumerate(instance.servers):
        occupants = Counter(tuple(holders.get((s, g), ())) for g in range(server.gpus))
        servers.append((s if fixed else server.gpus, tuple(sorted(occupants.items()))))
    return tuple(sorted(servers))


def placed(instance: DdlClusterInstance, placement: Placement) -> DdlClusterInstance:
    """The instance with this placement given."""
    names = [server.id for server in instance.servers]
    data = instance.to_dict()
    for job, gpus in zip(data["jobs"], placement, strict=True):
        job["placement"] = [[names[s], g] for s, g in gpus]
    return DdlClusterInstance.parse(data)


def _all_placements(instance: DdlClusterInstance, best: Incumbent) -> Termination | None:
    """Every placement by its bound; what is left open bounds the whole."""
    bounded = []
    for placement in placements(instance):
        if best.out_of_time():
            return None
        own = placed(instance, placement)
        bounded.append((resource_bound(own), own))
    bounded.sort(key=lambda pair: pair[0])
    best.info["placements"] = len(bounded)
    open_bounds = [bound for bound, _ in bounded]
    for place, (bound, own) in enumerate(bounded):
        if best.objective is not None and (bound >= best.objective or optimal(best.objective, bound, MINIMISE)):
            break  # and so are all that follow
        if best.out_of_time():
            break
        remaining = best.seconds_left()
        deadline = (
            best.options.deadline
            if remaining is None
            else Deadline.after(max(0.01, remaining if len(bounded) == 1 else PART * remaining))
        )
        asked = best.options
        found = solve_cp(own, SolveOptions(deadline, threads=asked.threads, seed=asked.seed, stages=asked.stages))
        if found.solution is not None:
            best.propose(found.solution, "cp", trusted=True)
        if found.bound is not None:
            open_bounds[place] = max(bound, found.bound)
        elif found.status is Status.INFEASIBLE:
            open_bounds[place] = math.inf
    least = min(open_bounds)
    best.tighten(least if best.objective is None else min(least, float(best.objective)))
    return Termination.FINISHED if not best.out_of_time() else None


def _improved(instance: DdlClusterInstance, best: Incumbent) -> Termination | None:
    """The best schedule so far improved by walks and by neighbourhoods, until the limit."""
    options = best.options
    improve_by_walks(instance, best, _WALKING)
    if best.finished():
        return Termination.FINISHED if not best.out_of_time() else None
    search = solve_lns(instance, replace(options, start=best.solution, work_limit=best.work_left()))
    best.interrupted = search.termination is Termination.INTERRUPTED
    best.work += options.work_limit or 0.0
    if search.solution is not None:
        best.propose(search.solution, "lns", trusted=True)
    return search.termination


def _drawn_placements(instance: DdlClusterInstance, best: Incumbent, many: int) -> Termination | None:
    """Random placements, most on as few servers as hold the job, each run by every policy."""
    rng = np.random.default_rng(best.options.seed)
    gpus = [(s, g) for s, server in enumerate(instance.servers) for g in range(server.gpus)]
    best.info["placements"] = 0
    best.info["reason"] = f"more than {MOST} ways to give GPUs to jobs: placements are drawn"
    half = best.seconds_left(_DRAWING)
    until = best.options.deadline if half is None else best.options.deadline.capped(half)
    for _ in range(many):
        if best.out_of_time() or best.proven:
            return None
        if until.passed:
            break
        if too_late(instance, best):
            return Termination.TOO_LARGE if best.objective is None else None
        load = dict.fromkeys(gpus, 0.0)
        chosen = []
        for job, given in zip(instance.jobs, instance.given, strict=True):
            shift = rng.uniform(0.0, 2.0)
            near = {s: rng.uniform() for s in range(len(instance.servers))}
            cost = {gpu: load[gpu] + shift * near[gpu[0]] * job.iterations * job.forward for gpu in gpus}
            mine = tuple(sorted(sorted(gpus, key=lambda gpu: cost[gpu])[: job.gpus])) if given is None else given
            for gpu in mine:
                load[gpu] += job.iterations * (job.forward + job.backward)
            chosen.append(mine)
        own = placed(instance, tuple(chosen))
        for policy in POLICIES:
            run = simulate_plain(own, chosen, policy)
            # rounded sums of equal schedules differ, and the checker takes as long as the policy
            if best.objective is None or sum(run.finish) < _ROUNDED * (
                float(best.objective) * len(instance.jobs) + sum(job.arrival for job in instance.jobs)
            ):
                best.propose(solution_of(own, chosen, policy, run), policy, trusted=True)
        best.info["placements"] += 1
    return Termination.FINISHED
