"""Method ``colgen`` of g-vne: column generation over rings, integer master, branch and price."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import Field

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.numbers import MAXIMISE, agrees, exact
from schedgap.formulations.g_vne.check import check
from schedgap.formulations.g_vne.instance import GVneInstance, in_ordinary_units
from schedgap.formulations.g_vne.tables import tables
from schedgap.solvers.exact.g_vne.search import ROUNDING, TOLERANCE, Search
from schedgap.solvers.exact.g_vne.space import Space
from schedgap.solvers.incumbent import optimal
from schedgap.solvers.result import Result, SolveOptions, Status, Termination
from schedgap.solvers.units import told_in

FINE = (2.0**13, 2.0**23)
"""Where the largest utility that a job can have alone should be: tolerances of 1e-9 are 1e-13 of it then."""
FINEST = 1e-6
"""A common unit of the utilities is used where it is at least this share of their largest."""
WORTH = ("lp_bound", "lp_value", "cut_bound")
"""Facts in units of utility."""
MOST_STATES = 20_000_000
"""(Job, node, size) triples beyond which exact pricing is not tried."""
MOST_STEPS = 5_000_000_000
"""The same for the steps of the layered searches of one pricing on a network with cycles: about 2 s."""


def utility_unit(instance: GVneInstance) -> float:
    """The largest number of which every utility is a whole multiple; 0 where it is too fine to be of use."""
    numbers = [exact(value) for job in instance.jobs for value in job.utility if value != 0]
    if not numbers:
        return 0.0
    below = math.lcm(*(number.denominator for number in numbers))
    unit = Fraction(math.gcd(*(int(number * below) for number in numbers)), below)
    total = sum(max(map(abs, job.utility)) for job in instance.jobs)
    return float(unit) if unit >= FINEST * total else 0.0


def solve_colgen(
    instance: GVneInstance,
    options: SolveOptions,
    *,
    root_tolerance: Annotated[
        float,
        Field(ge=0, le=0.1, description="relative difference of bound and value at which the root's columns suffice"),
    ] = TOLERANCE,
) -> Result:
    """Solve g-vne by column generation over rings that keep their own caps.

    The LP over these rings bounds the optimum: optimum <= capped LP <= augmented LP of Rost and Schmid. On a network
    without cycles the best ring at the duals is a knapsack over the tree for all sizes at once, O(V K^2) a job;
    elsewhere it is a layered search over shortest paths, O(K H^3) a job. Rounding and clique cuts on servers tighten
    the LP. Choices come from rounding, ruin and recreate, diving, and the integer master; branching on jobs, workers
    on a server, the order of hosts and links of a ring edge closes the gap.

    Parameters
    ----------
    instance : the instance
    options : limits; `work_limit` is in thousands of nodes
    root_tolerance : relative difference of the root's bound and value at which its columns suffice

    Returns
    -------
    Result
        Never infeasible: to embed nothing is a solution of value 0. ``info``: ``lp_bound``, ``lp_value``,
        ``lp_gap``, ``lp_seconds`` of the root; ``cut_bound``, ``cuts``; ``nodes``, ``columns``, ``pricings``,
        ``rows``, ``relaxed`` (jobs priced optimistically).

    Raises
    ------
    Disagreement
        The checker does not confirm the solution.
    """
    began = time.monotonic()
    data = tables(instance)
    steps = 0 if data.forest is not None else int((data.longest * data.eligible.sum(axis=1) ** 3).sum())
    if data.jobs * data.nodes * data.utility.shape[1] > MOST_STATES or steps > MOST_STEPS:
        info = {"reason": f"{data.jobs} jobs, {data.nodes} nodes and rings of {data.utility.shape[1] - 1}: too many"}
        return Result(
            Status.UNKNOWN, termination=Termination.TOO_LARGE, solve_seconds=time.monotonic() - began, info=info
        )
    if options.start is not None:
        report = check(instance, options.start)
        if report.feasible and report.objective is not None and options.report is not None:
            options.report(options.start, float(report.objective), None)
    search, unit, bound, termination = _searched(instance, options, root_tolerance)
    solution = search.solution()
    report = check(instance, solution)
    if not report.feasible or report.objective is None or not agrees(float(report.objective) / unit, search.value):
        raise Disagreement(
            f"g-vne colgen: {search.value * unit:g} becomes {report.objective} in the checker: "
            f"{report.violations[0].message if report.violations else 'no violation'}",
            solution=solution,
        )
    objective = float(report.objective)
    solution, objective = _better_start(instance, options, solution, objective)
    if bound is not None:
        # the search's own value is a sum of floats, the objective is exact
        bound = objective if bound == search.value * unit else max(objective, bound)
        if optimal(objective, bound, MAXIMISE):
            termination = Termination.PROVEN
        elif termination is Termination.PROVEN:
            termination = Termination.FINISHED
    return Result(
        Status.OPTIMAL if optimal(objective, bound, MAXIMISE) else Status.FEASIBLE,
        objective,
        bound,
        solution,
        termination,
        solve_seconds=time.monotonic() - began,
        engine="highs",
        info={
            **{name: value * unit if name in WORTH else value for name, value in search.facts.items()},
            "nodes": search.nodes,
            "columns": len(search.pool),
            "pricings": search.pricings,
            "rows": len(search.space.rows),
            "relaxed": 0 if search.space.graph is None else search.space.graph.relaxed,
        },
    )


def _searched(
    instance: GVneInstance, options: SolveOptions, root_tolerance: float
) -> tuple[Search, float, float | None, Termination]:
    """The search, the unit of its utilities, and the bound in the instance's own.

    Tolerances are relative to what a job can be worth alone. Where a ring that does not fit even alone (it would use
    a link twice) is worth so much that the others vanish beside it, the bound shows that, and the search is
    repeated without it.
    """
    bound: float | None = None
    while True:
        space = Space(instance)
        alone = space.price_all(np.zeros(len(space.rows)), 1.0, space.free_rules).best
        scaled, unit = in_ordinary_units(instance, max(0.0, float(alone.max())), FINE)
        search = Search(scaled, told_in(unit, options), utility_unit(instance) / unit, root_tolerance)
        found, termination = search.run()
        if found is None:
            return search, unit, bound, termination
        if found > search.value:
            found *= 1 + ROUNDING
        found *= unit
        bound = found if bound is None else min(bound, found)
        if optimal(search.value * unit, bound, MAXIMISE) or search.stopped or bound >= unit:
            return search, unit, bound, termination
        instance = _without(instance, bound)


def _without(instance: GVneInstance, bound: float) -> GVneInstance:
    """The instance in which rings that are worth more than a bound on all solutions are worth nothing."""
    jobs = tuple(
        job.model_copy(update={"utility": tuple(0.0 if value > bound else value for value in job.utility)})
        for job in instance.jobs
    )
    return GVneInstance.model_construct(**{**dict(instance), "jobs": jobs})


def _better_start(
    instance: GVneInstance, options: SolveOptions, solution: dict[str, object], objective: float
) -> tuple[dict[str, object], float]:
    """The start solution where it is better than what was found."""
    if options.start is not None:
        report = check(instance, options.start)
        if report.feasible and report.objective is not None and float(report.objective) > objective:
            return options.start, float(report.objective)
    return solution, objective
