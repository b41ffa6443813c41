"""Method ``colgen`` of g-vne: column generation over rings, integer master, branch and price.

Idea: a column is a whole ring of a job; the cheapest one is a closed walk, found on trees by a min-plus pass and
elsewhere by a layered search. Cuts round what a server may hold, dives and ruin and recreate find rings, branch and
price closes the gap. Source: ours, after column generation for network embedding (Rost and Schmid's programs are the
relaxations that it is compared with) and Wentges' smoothing of duals. Guarantee: the bound holds at every iteration,
whatever the duals; a ring embedding is optimal where it equals the bound to 1e-9. An instance with too many nodes is
refused as too large. `METHODS.md` beside this file tells each step and why pricing stays exact.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.g_vne.check import check
from schedgap.formulations.g_vne.instance import GVneInstance, GVneSolution, in_ordinary_units
from schedgap.formulations.g_vne.models import build_ilp, ilp_nonzeros
from schedgap.formulations.g_vne.network_tables import tables
from schedgap.solvers.engines.declarative import solve_declarative
from schedgap.solvers.exact.g_vne.search import RingSearch
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem
from schedgap.solvers.result import Result, SolveOptions, Status, Termination

FINEST = 1e-6
"""A common unit of the utilities is used where it is at least this share of their largest."""
FINE = (2.0**13, 2.0**23)
"""Where the largest utility that a job can have alone should be: tolerances of 1e-9 are 1e-13 of it then."""
MOST_STATES = 20_000_000
"""(Job, node, size) triples beyond which exact pricing is not tried."""
MOST_STEPS = 5_000_000_000
"""The same for the steps of the layered searches of one pricing on a network with cycles: about 2 s."""


MOST_NONZEROS = 200_000
"""Nonzeros of the integer program of flows beyond which it is not asked."""


def utility_unit(instance: GVneInstance) -> float:
    """The largest number of which every utility is a whole multiple; 0 where it is too fine to be of use."""
    numbers = [exact(value) for job in instance.jobs for value in job.utility if value != 0]
    if not numbers:
        return 0.0
    below = math.lcm(*(number.denominator for number in numbers))
    unit = Fraction(math.gcd(*(int(number * below) for number in numbers)), below)
    total = sum(max(map(abs, job.utility)) for job in instance.jobs)
    return float(unit) if unit >= FINEST * total else 0.0


def too_large(instance: GVneInstance) -> str | None:
    """Why exact pricing is not tried; None where it is."""
    data = tables(instance)
    steps = 0 if data.forest is not None else int((data.longest * data.eligible.sum(axis=1) ** 3).sum())
    if data.jobs * data.nodes * data.utility.shape[1] <= MOST_STATES and steps <= MOST_STEPS:
        return None
    return f"{data.jobs} jobs, {data.nodes} nodes and rings of {data.utility.shape[1] - 1}: too many"


def solve_colgen(
    instance: GVneInstance,
    options: SolveOptions,
    *,
    root_tolerance: Annotated[
        float,
        Field(ge=0, le=0.1, description="relative difference of bound and value at which the root's columns suffice"),
    ] = 1e-9,
) -> Result:
    """Solve g-vne by column generation over rings that keep their own caps.

    The LP over these rings bounds the optimum: optimum <= capped LP <= augmented LP of Rost and Schmid. On a network
    without cycles the best ring at the duals is a knapsack over the tree for all sizes at once, O(V K^2) a job;
    elsewhere it is a layered search over shortest paths, O(K H^3) a job. Rounding and clique cuts on servers tighten
    the LP. Choices come from rounding, ruin and recreate, diving, and the integer master; branching on jobs, workers
    on a server, the order of hosts and links of a ring edge closes the gap. Raises Disagreement: the checker does not
    confirm the solution.

    Parameters
    ----------
    options : limits; `work_limit` is in thousands of nodes
    root_tolerance : relative difference of the root's bound and value at which its columns suffice

    Returns
    -------
    Result
        Never infeasible: to embed nothing is a solution of value 0. ``info``: ``lp_bound``, ``lp_value``,
        ``lp_gap``, ``lp_seconds`` of the root; ``cut_bound``, ``cuts``; ``nodes``, ``columns``, ``pricings``,
        ``rows``, ``relaxed`` (jobs priced optimistically).
    """
    began = time.monotonic()
    reason = too_large(instance)
    if reason is not None:
        seconds = time.monotonic() - began
        return Result(Status.UNKNOWN, termination=Termination.TOO_LARGE, solve_seconds=seconds, info={"reason": reason})
    search = _searched(instance, options, root_tolerance)
    facts = {
        "cuts": len(search.subproblem.cuts),
        "columns": len(search.pool),
        "rows": len(search.subproblem.rows),
        "relaxed": 0 if search.subproblem.graph is None else search.subproblem.graph.relaxed,
    }
    search.best.info.update(facts)
    return search.result()


def _searched(instance: GVneInstance, options: SolveOptions, root_tolerance: float) -> RingSearch:
    """A search that is over, in units in which tolerances are relative to what a job can be worth alone.

    Where a ring that does not fit even alone (it would use a link twice) is worth so much that the others vanish
    beside it, the bound shows that, and the search is repeated without it.
    """
    bound: float | None = None
    given = instance
    while True:
        rings = RingSubproblem(given)
        alone = rings.price_all(np.zeros(len(rings.rows)), 1.0).best
        scaled, unit = in_ordinary_units(given, max(0.0, float(alone.max())), FINE)
        step = utility_unit(given) / unit
        search = RingSearch(
            scaled,
            options,
            partial(parsed(check, GVneSolution), instance),
            unit=unit,
            step=step,
            root_tolerance=root_tolerance,
            program=partial(_by_arcs, instance),
        )
        search.best.tighten(None if bound is None else bound / unit)
        search.run()
        bound = search.best.in_own(search.best.bound)
        over = search.best.proven or search.best.interrupted or search.stopped()
        if bound is None or over or bound >= unit:
            return search
        given = _without(given, bound)


def _by_arcs(instance: GVneInstance, options: SolveOptions) -> Result | None:
    """The instance by its integer program of flows and HiGHS; None where that is large."""
    nonzeros = ilp_nonzeros(instance)
    if nonzeros > MOST_NONZEROS:
        return None
    judge = partial(parsed(check, GVneSolution), instance)
    return solve_declarative(lambda: build_ilp(instance, tighten=True), "highs", options, judge, nonzeros)


def _without(instance: GVneInstance, bound: float) -> GVneInstance:
    """The instance in which rings that are worth more than a bound on all solutions are worth nothing."""
    jobs = tuple(
        job.model_copy(update={"utility": tuple(0.0 if value > bound else value for value in job.utility)})
        for job in instance.jobs
    )
    return GVneInstance.model_construct(**{**dict(instance), "jobs": jobs})
