"""Greedy over slots, each slot by a method of g-vne (paper 004, Algorithm 1).

``gadget-printed`` is GADGET as published, with Algorithm 2 in every slot, which may overload servers and links;
``gadget`` is repaired."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.common.numbers import CHECK_TOLERANCE, agrees, exact
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.utility import gain, highest
from schedgap.formulations.g_vne.instance import GVneInstance, Job
from schedgap.formulations.g_vne.ring_network import Ring, rings_of
from schedgap.formulations.g_vne.substrate import common_step
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.common.variant import variant
from schedgap.heuristics.ddljs.greedy_state import GreedyState, place_largest
from schedgap.heuristics.ddljs.inner import (
    ALGORITHM_2,
    INNER,
    OVERLOADS,
    PRINTED,
    Answer,
    Asked,
    SlotProblem,
    slot_problem,
)
from schedgap.heuristics.g_vne.lp_rs_mde import TRIES
from schedgap.solvers.result import NO_DEADLINE, Deadline


def by_marginals(progress: GreedyState, problem: SlotProblem) -> tuple[dict[int, Ring], float] | None:
    """Workers one after the other to the job that gains most per unit of the only resource, rings placed afterwards.

    Sizes are taken along the concave envelopes of pi, steepest step first, until the resource is used up; the part of
    the step that no longer fits counts in the bound and not in the rings. Where every ring finds its place and nothing
    was left over, the rings are proven to be the best of the slot. The resource is counted in whole units, the largest
    that all demands are multiples of: what no worker can use on a server is no room. Returns the rings, by job (those
    that were placed), and an upper bound on the gains of any rings; None where jobs demand several resources.

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
    remaining = sum(int(capacity * (1 + CHECK_TOLERANCE) // unit) for capacity in capacities)
    steps = sorted(_steps(instance, resource), key=lambda step: -step[0])
    sizes = [0] * len(instance.jobs)
    closed: set[int] = set()
    bound = 0.0
    for slope, n, workers in steps:
        if n in closed:
            continue
        if workers * units[n] <= remaining:
            remaining -= workers * units[n]
            sizes[n] += workers
            bound += slope * workers * instance.jobs[n].demand[resource]
        elif remaining:
            bound += slope * float(remaining * unit)  # what follows is no steeper
            remaining = 0
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


NOTHING = Answer({"rings": {}})
"""Where no inner method was asked."""


def gadget(
    instance: DdljsInstance,
    *,
    seed: int = 0,
    inner: Annotated[
        Literal[
            "colgen", "greedy", "lp-rs-mde", "lp-rs-mde-mdk", "lp-rs-mde-printed", "printed", "cbc", "highs", "cpsat"
        ],
        Field(description="the g-vne method for a slot; printed: Algorithm 2 as published, outside the model"),
    ] = "colgen",
    gap: Annotated[float, Field(ge=0, le=1, description="relative gap at which an exact inner method may stop")] = 0.0,
    tries: Annotated[int, Field(ge=1, le=10**6, description="most roundings of Algorithm 2 in a slot, u_b")] = TRIES,
    fill: Annotated[bool, Field(description="free servers go to jobs that gain nothing yet")] = True,
    deadline: Deadline = NO_DEADLINE,
) -> HeuristicRun:
    """In every slot, embed rings that add the most utility to what jobs have already.

    Problem (10) of a slot is g-vne with pi_k = mu_i(z_i + k) - mu_i(z_i) for k up to N_i and what is left of the
    budget (11). Unless the inner method is Algorithm 2, a knapsack over the servers without links is tried first, then
    a greedy placement: where they meet the knapsack's bound, nothing can be better and the inner method is not asked.

    Guarantee (concave mu, slots solved within alpha of their optimum, T slots):
    OPT - f(0) <= ((1 + alpha) T - alpha) / (alpha T) (ALG - f(0)); see docs/proofs-ddljs.md.

    Parameters
    ----------
    instance : the instance; only jobs that have arrived are looked at
    seed : seed of the inner method
    inner : the method for a slot; ``colgen`` and the engines prove alpha = 1, ``lp-rs-mde`` (Algorithm 2, capacities
        kept) a smaller one; ``greedy`` is these placements alone; ``lp-rs-mde-printed`` is Algorithm 2 with Rost and
        Schmid's program and ring sizes that may fit nowhere, capacities kept; ``printed`` is the same with overloads,
        as published, so that the schedule is outside the model
    gap : relative gap at which an exact inner method may stop in a slot; alpha is then at least 1 - gap
    tries : most roundings in a slot where Algorithm 2 is the inner method, u_b
    fill : whether servers that are still free then go to jobs that are not placed yet, because their gain is 0 or
        below 1e-9 of the slot's largest; a sigmoid far below its midpoint would wait for ever. Those with the best
        average gain over the slots to come are first (ties by input order), as large a ring as fits. Without it, gains
        below that share still count: they are decided after the others
    deadline : slots that are left when it passes are solved by ``greedy``

    Returns
    -------
    HeuristicRun
        ``info``: ``gains`` of the slots, ``slot_bounds`` (proven upper bounds on what each could add, None where
        unknown), ``alpha``, the smallest gain / bound (None where a bound is unknown), ``exact``: alpha is 1,
        ``gamma``: the largest Gamma of Lemma 7 of any slot, ``embedded_ratio``, ``worker_slots``. With
        ``inner="printed"`` also ``outside_model`` and ``loads``, of every slot; ``bound`` is then what the jobs are
        worth without capacities.

    Notes
    -----
    T times the inner method. Source: paper 004, Algorithm 1; greedy placement and filling are ours.
    """
    progress = GreedyState(instance)
    gains: list[float] = []
    bounds: list[float | None] = []
    loads: list[Mapping[str, float | None]] = []
    gamma = 1
    for slot in range(1, instance.horizon + 1):
        active = list(progress.active())
        asked = Asked(seed * instance.horizon + slot, gap, deadline, tries=tries)
        rings, bound, answer = slot_rings(progress, active, "greedy" if deadline.passed else inner, asked, fill)
        gamma = max(gamma, answer.gamma or 1)
        loads.append(answer.loads)
        gained = math.fsum(
            float(gain(instance.jobs[i], progress.done[i], len(ring.workers))) for i, ring in rings.items()
        )
        gains.append(gained)
        bounds.append(None if bound is None else max(bound, gained))
        progress.close(rings, len(active))
    alpha = _alpha(gains, bounds)
    info = {"gains": gains, "slot_bounds": bounds, "alpha": alpha, "gamma": gamma}
    if inner != OVERLOADS:
        return progress.run(**info, exact=alpha == 1.0)
    run = progress.run(**info, exact=False, loads=loads, outside_model=True)
    return replace(run, bound=_unlimited(instance))


gadget_printed = variant(
    gadget,
    "gadget-printed",
    "GADGET as published: Algorithm 2 in every slot, which may overload servers and links, so that the schedule is "
    "outside the model. See :func:`gadget`.",
    fixed={"inner": OVERLOADS, "fill": False, "gap": 0.0},
)


def _unlimited(instance: DdljsInstance) -> float:
    """What the jobs are worth where servers and links have no capacities: a bound on schedules that may overload."""
    total = 0.0
    for job in instance.jobs:
        most = job.max_workers * (instance.horizon - job.arrival + 1)
        total += highest(job, most if job.slot_limit is None else min(most, job.slot_limit))
    return total


def slot_rings(
    progress: GreedyState, active: list[int], inner: str, asked: Asked, fill: bool
) -> tuple[dict[int, Ring], float | None, Answer]:
    """What :func:`gadget` does in a slot.

    Returns rings by job, a bound on what any add, and the inner method's answer. Where nothing is filled, jobs whose
    gains are too small beside the others for one program are decided after them, on what those rings leave, each time
    in a unit of their own: every gain above 0 counts, and a large one goes first.
    """
    problem = slot_problem(progress, active, as_printed=inner in PRINTED)
    rings, bound, answer = _best_rings(progress, problem, inner, asked)
    if fill:
        return _filled(progress, active, rings), bound, answer
    while problem.later:
        problem = slot_problem(progress, problem.later, as_printed=inner in PRINTED, placed=rings)
        assert problem.instance is not None
        if not any(hosts_one(problem.instance, job) for job in problem.instance.jobs):
            continue
        small = INNER[inner](problem.instance, asked)
        rings |= rings_of(progress.instance, small.solution)
        answer = replace(answer, gamma=max(answer.gamma or 1, small.gamma or 1), loads=_loads(progress, rings, answer))
    return rings, bound, answer


def hosts_one(instance: GVneInstance, job: Job) -> bool:
    """Whether some server holds a worker of the job."""
    return any(
        all(server.resources.get(name, 0.0) * (1 + CHECK_TOLERANCE) >= amount for name, amount in job.demand.items())
        for server in instance.servers
    )


def _loads(progress: GreedyState, rings: Mapping[int, Ring], answer: Answer) -> Mapping[str, float | None]:
    """The answer's loads with the shares of servers and links that all of these rings use."""
    if not answer.loads:
        return answer.loads
    used, load = progress.loads(rings)
    bandwidth = np.array(progress.network.bandwidth, dtype=float)
    shares = {"server": (used, progress.network.capacity), "link": (load, bandwidth)}
    return {
        **answer.loads,
        **{
            name: float(np.divide(amount, room, out=np.zeros_like(amount), where=amount > 0).max(initial=0.0))
            for name, (amount, room) in shares.items()
        },
    }


def _best_rings(
    progress: GreedyState, problem: SlotProblem, inner: str, asked: Asked
) -> tuple[dict[int, Ring], float | None, Answer]:
    """Rings for the jobs that gain, by job, an upper bound on what any rings of this slot add, and the answer."""
    if problem.instance is None:
        return {}, problem.left_out, NOTHING
    ceiling = problem.ceiling - problem.left_out
    if inner in ALGORITHM_2:
        found = INNER[inner](problem.instance, asked)
        known = ceiling if found.bound is None else min(found.bound, ceiling)
        return rings_of(progress.instance, found.solution), known + problem.left_out, found
    packed = by_marginals(progress, problem)
    rings: dict[int, Ring] = {}
    if packed is not None:
        rings, ceiling = packed[0], min(ceiling, packed[1])
    if not agrees(_value(problem, rings), ceiling):
        found = INNER["greedy"](problem.instance, asked)
        placed = rings_of(progress.instance, found.solution)
        if _value(problem, placed) > _value(problem, rings):
            rings = placed
    if agrees(_value(problem, rings), ceiling):
        return rings, ceiling + problem.left_out, NOTHING
    if inner == "greedy":
        return rings, ceiling + problem.left_out if packed is not None else None, NOTHING
    start = {"rings": {progress.instance.jobs[i].id: progress.network.solution_of(rings[i]) for i in rings}}
    found = INNER[inner](problem.instance, replace(asked, start=start))
    bound = None if found.bound is None else min(found.bound, ceiling) + problem.left_out
    return rings_of(progress.instance, found.solution), bound, found


def _value(problem: SlotProblem, rings: Mapping[int, Ring]) -> float:
    """The gains of these rings."""
    assert problem.instance is not None
    where = {i: n for n, i in enumerate(problem.jobs)}
    return sum(problem.instance.jobs[where[i]].utility[len(ring.workers) - 1] for i, ring in rings.items())


def _filled(progress: GreedyState, active: list[int], rings: Mapping[int, Ring]) -> dict[int, Ring]:
    """These rings, and more for jobs that have none, by their best average gain from now to the horizon."""
    network = progress.network
    for i, ring in rings.items():
        network.occupy(progress.needs[i], ring)
    filled = dict(rings)
    slots = progress.instance.horizon - len(progress.slots)
    promise = {}
    for i in active:
        if i not in filled:
            most = min(progress.reach[i].max_work - progress.done[i], slots * progress.reach[i].ring)
            promise[i] = progress.steepest(i, most)
    for i in sorted(promise, key=lambda i: (-promise[i][0], i)):
        slope, wanted = promise[i]
        if slope > 0:
            more = place_largest(progress, i, min(wanted, progress.largest(i)))
            if more is not None:
                filled[i] = more
    return filled


def _alpha(gains: list[float], bounds: list[float | None]) -> float | None:
    """The smallest gain over bound, 1 where they agree; None where a bound is unknown."""
    alpha = 1.0
    for gained, bound in zip(gains, bounds, strict=True):
        if bound is None:
            return None
        if not agrees(gained, bound):
            alpha = min(alpha, gained / bound)
    return alpha
