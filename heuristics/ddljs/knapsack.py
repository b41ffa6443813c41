"""One slot without its links: a fractional knapsack, its bound, and its ring sizes placed where they fit."""

from __future__ import annotations

from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.substrate import common_step
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.ring_network import Ring
from schedgap.heuristics.ddljs.inner import SlotProblem
from schedgap.heuristics.ddljs.progress import Progress


def by_marginals(progress: Progress, problem: SlotProblem) -> tuple[dict[int, Ring], float] | None:
    """Workers one after the other to the job that gains most per unit of the only resource, rings placed afterwards.

    Sizes are taken along the concave envelopes of pi, steepest step first, until the resource is used up; the part of
    the step that no longer fits counts in the bound and not in the rings. Where every ring finds its place and nothing
    was left over, the rings are proven to be the best of the slot. The resource is counted in whole units, the largest
    that all demands are multiples of: what no worker can use on a server is no room.

    Returns
    -------
    The rings, by job (those that were placed), and an upper bound on the gains of any rings; None where jobs demand
    several resources.

    Notes
    -----
    O(S log S) for S steps, then a placement for every job. Leaves the network as it was.
    """
    instance = problem.instance
    assert instance is not None
    used = {name for job in instance.jobs for name, amount in job.demand.items() if amount}
    if len(used) != 1:
        return None
    resource = used.pop()
    unit = common_step(job.demand[resource] for job in instance.jobs)
    units = [int(exact(job.demand[resource]) / unit) for job in instance.jobs]
    capacities = [exact(server.resources.get(resource, 0.0)) for server in instance.servers]
    left = sum(int(capacity * (1 + CHECK_TOLERANCE) // unit) for capacity in capacities)
    steps = sorted(_steps(instance, resource), key=lambda step: -step[0])
    sizes = [0] * len(instance.jobs)
    closed: set[int] = set()
    bound = 0.0
    for slope, n, workers in steps:
        if n in closed:
            continue
        if workers * units[n] <= left:
            left -= workers * units[n]
            sizes[n] += workers
            bound += slope * workers * instance.jobs[n].demand[resource]
        elif left:
            bound += slope * float(left * unit)  # what follows is no steeper
            left = 0
            closed.add(n)
        else:
            break
    rings: dict[int, Ring] = {}
    for n in sorted(range(len(sizes)), key=lambda n: (-sizes[n], n)):
        if sizes[n]:
            i = problem.jobs[n]
            ring = progress.network.place(progress.needs[i], sizes[n])
            if ring is not None:
                rings[i] = ring
    progress.network.reset()
    return rings, bound


def _steps(instance: GVneInstance, resource: str) -> list[tuple[float, int, int]]:
    """(gain per unit of the resource, job, workers) of every rising step of every concave envelope, in order."""
    found = []
    for n, job in enumerate(instance.jobs):
        worth = (0.0, *job.utility)
        k = 0
        while k < len(worth) - 1:
            slope, following = max(((worth[m] - worth[k]) / (m - k), -m) for m in range(k + 1, len(worth)))
            if slope <= 0:
                break
            found.append((slope / job.demand[resource], n, -following - k))
            k = -following
    return found
