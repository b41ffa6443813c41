"""Algorithm 2 of paper 004: ring sizes from a linear program, rings from a second one, randomized rounding.

``lp-rs-mde-printed`` is the algorithm as published, which may overload servers and links; ``lp-rs-mde`` is repaired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.g_vne.instance import GVneInstance, in_ordinary_units
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.common.variant import variant as under_another_name
from schedgap.heuristics.g_vne.factors import Factors, factors
from schedgap.heuristics.g_vne.mixture import Mixture, fits_alone
from schedgap.heuristics.g_vne.relaxation import Relaxation, relax
from schedgap.solvers.column_generation import Column
from schedgap.solvers.exact.g_vne.subproblem import TOLERANCE
from schedgap.solvers.integer_program import SearchLimits, integer_master
from schedgap.solvers.result import NO_DEADLINE, Deadline

TRIES = 100


ALPHA = 1.0 / 3.0


NODES = 10_000


_SAME = 1e-9


_WORTH = ("objective", "lp", "lp_fixed", "lp_rings")
"""Keys of ``info`` in units of utility."""


@dataclass(frozen=True)
class Plan:
    """Steps 3 to 6: what is rounded."""

    first: Relaxation  # the program over all ring sizes (Step 3)
    second: Relaxation  # the program with the sizes fixed (Step 4); the first one again where they are not
    sizes: Ints  # (J,) kappa, 0 for jobs that the first program leaves out
    mixture: Mixture  # the weighted rings (Step 6)
    factors: Factors  # beta and gamma (Step 2)


def make_plan(
    instance: GVneInstance, *, lp: str = "capped", ring_sizes: str = "selected", deadline: Deadline = NO_DEADLINE
) -> Plan:
    """Solve both linear programs of Algorithm 2; see :func:`lp_rs_mde` for the options."""
    capped = lp == "capped"
    first = relax(instance, capped=capped, deadline=deadline)
    if ring_sizes == "selected":
        sizes = first.sizes
        second = relax(instance, capped=capped, sizes=sizes, start=first, deadline=deadline)
    else:
        second = first
        sizes = np.where(first.chi > 0, np.arange(first.chi.shape[1])[None, :], 0).max(axis=1).astype(np.int64)
    mixture = Mixture.of(second, drop=capped)
    return Plan(first, second, sizes, mixture, factors(second.subproblem, mixture, sizes))


def lp_rs_mde(
    instance: GVneInstance,
    *,
    seed: int = 0,
    variant: Annotated[
        Literal["no-violation", "vanilla", "mdk"],
        Field(
            description="vanilla: may overload, outside the model; no-violation; mdk: integer program over the rings"
        ),
    ] = "no-violation",
    tries: Annotated[int, Field(ge=1, le=10**6, description="most roundings, u_b")] = TRIES,
    lp: Annotated[
        Literal["capped", "augmented"],
        Field(description="rings that are embeddable alone, or Rost and Schmid's program as printed"),
    ] = "capped",
    ring_sizes: Annotated[
        Literal["selected", "free"], Field(description="one size per job by the first program, or all")
    ] = "selected",
    alpha: Annotated[float, Field(ge=0, le=1, description="part of a program's value that vanilla wants")] = ALPHA,
    target: Annotated[
        Literal["fixed", "first"],
        Field(description="the program whose part vanilla wants: with the sizes fixed, or over all of them"),
    ] = "fixed",
    beta: Annotated[
        Literal["printed", "instance"],
        Field(description="overload that vanilla allows: Theorem 8's, or by the rings' loads"),
    ] = "printed",
    nodes: Annotated[int, Field(ge=1, le=10**9, description="most nodes of mdk's search")] = NODES,
    deadline: Deadline = NO_DEADLINE,
) -> HeuristicRun:
    """LP-based ring selection and multi-dimensional resource embedding.

    A first linear program over all ring sizes chooses kappa_i = argmax pi_(i,k) chi_(i,k) for each job with positive
    weight; a second one, with these sizes only, gives each job rings with weights that sum to at most 1; each
    rounding lets every job take one of its rings with its weight as the probability, or none. Both programs are
    solved by columns, so their weighted rings need no decomposition, and one set of rings serves all resources.

    Parameters
    ----------
    variant : ``vanilla``: roundings until one has utility >= `alpha` times the value of `target` and loads
        within `beta` and gamma times the capacities, or the last one; it may overload servers and links, so it is
        outside the model. ``no-violation``: in each rounding jobs come in random order and a ring that does not fit
        what is left is refused; the best of all. ``mdk``: the best choice among all generated rings, an integer
        program
    tries : most roundings, u_b
    lp : ``capped``: over rings that keep the job's own caps floor(min_r C_r / l_r) and use no link narrower than
        its bandwidth; ``augmented``: Rost and Schmid's, as printed, whose rings may not be embeddable even alone
    ring_sizes : ``selected``, as printed; ``free``: one program over all sizes is rounded (ours)
    alpha : part of a program's value that ``vanilla`` wants
    target : which program: the second (``fixed``), or the first, whose value is at least the optimum; the paper says
        "(alpha, beta, gamma)-approximation", not of what
    beta : factors that ``vanilla`` allows: Theorem 8's (``printed``) or those of the rings at hand (``instance``)
    nodes : most nodes of ``mdk``'s search
    deadline : the best so far is returned when it passes

    Returns
    -------
    HeuristicRun
        ``bound``: the first program's bound, which is at least the optimum; of ``vanilla``, what the jobs are worth
        without capacities. ``info``: values of both programs,
        ``gamma`` (the largest ceil(q_i), Lemma 7) and ``largest_ring``, kappa by job, factors, ``tries`` made,
        ``server_share`` and ``link_share`` (largest load over capacity where it can exceed 1), ``outside_model``.

    Notes
    -----
    Corrections to the printed algorithm with ``lp = capped``: the ring sizes of job i go up to N_i, not up to q_i,
    which is no bound on them; rings that are not embeddable alone get no weight (Theorem 8 needs that). Paper 004,
    Algorithm 2; Rost and Schmid, IFIP Networking 2018; for the variants, Rost, Doehne and Schmid, CCR 49(1), 2019.
    """
    instance, unit = in_ordinary_units(instance)
    plan = make_plan(instance, lp=lp, ring_sizes=ring_sizes, deadline=deadline)
    rng = np.random.default_rng(seed)
    mixture = plan.mixture
    wanted = alpha * (plan.first if target == "first" else plan.second).value
    made = 0
    met: bool | None = None
    if variant == "vanilla":
        allowed = plan.factors.printed if beta == "printed" else plan.factors.instance
        chosen, made, met = _until(mixture, rng, tries, wanted, allowed, deadline)
        rings: list[Column] = [mixture.columns[place] for place in chosen]
    else:
        chosen, made = _without_violations(mixture, rng, tries, deadline)
        rings = [mixture.columns[place] for place in chosen]
        if variant == "mdk":
            rings = _knapsack(plan.second, rings, nodes, seed, deadline)
    info = _info(instance, plan, rings)
    info |= {"variant": variant, "tries": made, "stopped": "time limit" if deadline.passed else ""}
    if variant == "vanilla":
        info |= {"outside_model": True, "met": met}
    info |= {name: info[name] * unit for name in _WORTH}
    bound = _unlimited(instance) if variant == "vanilla" else plan.first.bound
    return HeuristicRun(_solution(plan, rings), info, None if bound is None else bound * unit)


lp_rs_mde_printed = under_another_name(
    lp_rs_mde,
    "lp-rs-mde-printed",
    "Algorithm 2 as published: Rost and Schmid's program, roundings until one is good enough, or the last one. It may "
    "overload servers and links, so it is outside the model. See :func:`lp_rs_mde`.",
    fixed={"variant": "vanilla", "lp": "augmented", "ring_sizes": "selected", "nodes": NODES},
)


def _unlimited(instance: GVneInstance) -> float:
    """What the jobs are worth where servers and links have no capacities: a bound on roundings that may overload."""
    return float(sum(max(0.0, *job.utility) for job in instance.jobs))


def _until(
    mixture: Mixture, rng: np.random.Generator, tries: int, wanted: float, allowed: Floats, deadline: Deadline
) -> tuple[Ints, int, bool]:
    """Steps 7 to 9: roundings until one is good enough; the last one, how many, and whether it is."""
    chosen = np.zeros(0, dtype=np.int64)
    for made in range(1, tries + 1):
        chosen = mixture.draw(rng)
        worth = float(mixture.utility[chosen].sum())
        if worth >= wanted - _SAME and bool((mixture.share(chosen) <= allowed + _SAME).all()):
            return chosen, made, True
        if deadline.passed:
            return chosen, made, False
    return chosen, tries, False


def _without_violations(mixture: Mixture, rng: np.random.Generator, tries: int, deadline: Deadline) -> tuple[Ints, int]:
    """The best of some roundings in which a ring that does not fit is refused, and how many were made."""
    best = np.zeros(0, dtype=np.int64)
    top = 0.0
    ceiling = float(sum(mixture.utility[a:b].max() for a, b in mixture.groups))
    for made in range(1, tries + 1):
        drawn = mixture.draw(rng)
        kept = mixture.accepted(drawn[rng.permutation(len(drawn))])
        worth = float(mixture.utility[kept].sum())
        if worth > top + _SAME:
            best, top = np.sort(kept), worth
        if deadline.passed or top >= ceiling - _SAME:
            return best, made
    return best, tries


def _knapsack(relaxation: Relaxation, rings: list[Column], nodes: int, seed: int, deadline: Deadline) -> list[Column]:
    """The best choice over all generated rings; those whose reduced cost rules them out are left out."""
    capacity = np.array([row.upper for row in relaxation.subproblem.rows], dtype=float)
    known = sum(column.objective for column in rings)
    spare = relaxation.value - known + 1e-6 * max(1.0, abs(known)) if relaxation.complete else np.inf
    held = {id(column.payload) for column in rings}
    pool = [
        column
        for column, reduced in zip(relaxation.columns, relaxation.reduced, strict=True)
        if id(column.payload) in held or (reduced >= -spare and column.objective > 0 and fits_alone(column, capacity))
    ]
    start = [place for place, column in enumerate(pool) if id(column.payload) in held]
    jobs = relaxation.subproblem.data.jobs
    limits = SearchLimits(nodes, deadline, seed=seed)
    found = [pool[place] for place in integer_master(pool, capacity, jobs, limits, start=start) or ()]
    return found if sum(column.objective for column in found) > known else rings


def _solution(plan: Plan, rings: list[Column]) -> Solution:
    ordered = sorted(rings, key=lambda column: column.group)
    return plan.second.subproblem.solution([column.payload for column in ordered])


def _info(instance: GVneInstance, plan: Plan, rings: list[Column]) -> dict[str, Any]:
    load = np.zeros(len(plan.mixture.capacity))
    for column in rings:
        load[column.rows] += column.values
    used = np.divide(load, plan.mixture.capacity, out=np.zeros_like(load), where=load > 0) * (1 + TOLERANCE)
    link = plan.factors.of_link
    return {
        "objective": float(sum(column.objective for column in rings)),
        "lp": plan.first.value,
        "lp_fixed": plan.second.value,
        "lp_rings": plan.mixture.value,
        "lp_complete": plan.first.complete and plan.second.complete,
        "sizes_in_lp": int((plan.first.chi > _SAME).sum(axis=1).max(initial=0)),
        "gamma": int(np.ceil(plan.first.workers - _SAME).max(initial=0)),
        "largest_ring": int(plan.first.subproblem.data.largest_ring.max(initial=0)),
        "kappa": {job.id: int(k) for job, k in zip(instance.jobs, plan.sizes, strict=True)},
        "q": {job.id: float(q) for job, q in zip(instance.jobs, plan.first.workers, strict=True)},
        "dropped": plan.mixture.dropped,
        "server_share": float(used[~link].max(initial=0.0)),
        "link_share": float(used[link].max(initial=0.0)),
        **plan.factors.summary,
    }
