"""The certified upper bound of g-vne at any size, and the LPs over rings."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance, in_ordinary_units
from schedgap.formulations.g_vne.ring_network import tables
from schedgap.solvers.column_generation import Column, GenerationLimits, GenerationStatus, Master, Priced, RowBounds
from schedgap.solvers.exact.g_vne.subproblem import Embedding, RingSubproblem
from schedgap.solvers.result import NO_DEADLINE, Deadline, Result, SolveOptions, Status, Termination

# A bound on the LP over rings of networks without cycles in two pricings, for networks too large for that LP.

Floats = NDArray[np.float64]

PRICINGS = 30
"""Of the linear program of R rows; prices that are not optimal are valid too."""


def pooled_bound(subproblem: RingSubproblem) -> tuple[float, Floats]:
    """The smaller of L(0) and L(pi), where L(pi) = sum_i pi_i u_i + sum_j max(0, best ring of j at pi) >= the LP.

    L(0) lets every job have its best ring alone; pi has one price for each resource on all servers and none on
    links: the prices at which ring sizes are packed into the total of all servers. Both are valid whatever pi is;
    where links or single servers are scarce the bound is above the LP's. Returns a bound, at least the LP over
    the rings of `subproblem`, and (rows,) the prices that prove it.

    Parameters
    ----------
    subproblem : of a network without cycles, or without its links

    Notes
    -----
    O(J V K^2) for pricing twice, and a linear program of R rows.
    """
    limit = np.array([row.upper for row in subproblem.rows], dtype=float)
    candidates = (np.zeros(len(limit)), _pooled_duals(subproblem))
    values = [float(d @ limit) + float(np.maximum(subproblem.best_values(d), 0.0).sum()) for d in candidates]
    return min(values), candidates[int(np.argmin(values))]


def _pooled_duals(subproblem: RingSubproblem) -> Floats:
    """(rows,) the same price of a resource on every server."""
    data = subproblem.data
    numbers = np.arange(subproblem.worth.shape[1])
    total = data.capacity.sum(axis=0)
    every = np.arange(len(total))

    def pricing(duals: Floats, weight: float) -> Priced:
        value = weight * subproblem.worth - (data.demand @ duals)[:, None] * numbers
        size = 1 + np.argmax(value[:, 1:], axis=1)
        best = np.take_along_axis(value, size[:, None], axis=1)[:, 0]
        rings = [
            Column(j, float(subproblem.worth[j, size[j]]), every, size[j] * data.demand[j])
            for j in np.flatnonzero(best > 0).tolist()
        ]
        return Priced(best, rings)

    master = Master(MAXIMISE, [RowBounds(upper=float(amount)) for amount in total], [False] * data.jobs)
    found = master.generate(pricing, GenerationLimits(iterations=PRICINGS, tolerance=1e-4))
    prices = np.maximum(0.0, found.duals)
    duals = np.zeros(len(subproblem.rows))
    nodes, resources = np.nonzero(subproblem.node_row >= 0)
    duals[subproblem.node_row[nodes, resources]] = prices[resources]
    return duals


Ints = NDArray[np.int64]

MOST_PRICINGS = 400
"""Pricings of a bound at most: each proves one at its own prices."""
MOST_STATES = 150_000
"""(Job, node, size) triples beyond which no LP over rings is solved for a bound: there it takes more than a second."""
WORK = 15_000_000
"""(Job, node, size) triples of all pricings of a bound."""
STEPS = 2_000_000_000
"""Steps of all layered searches of a bound on a network with cycles: about 0.8 s."""
RINGS = 20_000
"""Rings of all pricings of a bound there: each is walked step by step, which takes about 0.2 ms."""
FEWEST = 12
"""With fewer pricings than these in the steps there are, links are left out of the bound."""


@dataclass(frozen=True)
class RingLp:
    """The LP over rings, solved by columns."""

    bound: float  # a valid bound on it, and so on the optimum
    value: float  # of the rings generated; equal to `bound` where `converged`
    converged: bool
    # rings with a positive weight, and their weights: a joint decomposition for all resources
    rings: tuple[tuple[Embedding, float], ...]
    history: tuple[tuple[float, float], ...]  # (value, bound) after every pricing
    subproblem: RingSubproblem  # of the instance in the units it is solved in
    prices: Floats  # (rows of the subproblem,) that prove the bound, in the instance's own unit


def ring_lp(
    instance: GVneInstance,
    *,
    # rings keep the job's own caps and leave out links narrower than one edge (capped LP); otherwise any server where
    # one worker fits may hold all of them (augmented LP)
    capped: bool = True,
    sizes: Ints | None = None,  # (J,) the only ring size of each job, 0 for none; None allows all
    linked: bool = True,  # otherwise links are free, for a bound on networks that are too large to price
    # tolerance, pricings, deadline: when to stop
    tolerance: float = 1e-9,
    pricings: int = 10_000,
    deadline: Deadline = NO_DEADLINE,
) -> RingLp:
    """The LP that mixes rings of each job: the capped LP, or the augmented LP of Rost and Schmid.

    Returns optimum <= capped LP <= augmented LP; the augmented LP equals the plain relaxation of (12)-(19) restricted
    to servers where one worker fits.

    Notes
    -----
    Source: paper 004, section V; Rost and Schmid (IFIP Networking 2018) for the augmented LP.
    """
    instance, unit = in_ordinary_units(instance)
    subproblem = RingSubproblem(instance, capped=capped, sizes=sizes, linked=linked)
    limits = GenerationLimits(deadline=deadline, iterations=pricings, tolerance=tolerance)
    found = subproblem.master().generate(subproblem.price_all, limits)
    top = float(np.maximum(subproblem.worth, 0.0).max(axis=1).sum())  # every job at its best
    free = found.bound is None or top < found.bound
    bound = top if found.bound is None else min(top, found.bound)
    weights = found.weights
    return RingLp(
        _rounded_up(bound) * unit,
        (found.value or 0.0) * unit,
        found.status == GenerationStatus.CONVERGED,
        tuple((found.columns[i].payload, float(weights[i])) for i in np.flatnonzero(weights > 1e-9)),
        tuple((value * unit, b * unit) for value, b in found.history if value is not None),
        subproblem,
        np.zeros(len(subproblem.rows)) if free else np.maximum(found.duals, 0.0) * unit,
    )


@once_per_instance
def upper_bound(instance: GVneInstance) -> float | None:
    """A certified upper bound on the optimum: the capped LP, or its last valid bound.

    On networks with cycles whose layered searches would take more than a second, the capped LP without links. On
    networks where that LP takes more than a second as well, two values of its dual function, see
    :func:`~schedgap.solvers.exact.g_vne.bound.pooled_bound`: on the preset ``large-tree`` 0.7% above the LP.
    Computed once per instance object; work is counted, not timed, so the value is repeatable. Returns ``bound >=
    optimum``.
    """
    return priced_bound(instance)[0]


def priced_bound(instance: GVneInstance) -> tuple[float, RingSubproblem, Floats]:
    """The bound, and the prices of the rows of a subproblem that prove it, in the instance's own unit."""
    data = tables(instance)
    states = data.jobs * data.nodes * data.utility.shape[1]
    pricings = WORK // states
    linked = True
    if data.forest is None:
        hosts = int(data.eligible.any(axis=0).sum())
        steps = data.jobs * (data.utility.shape[1] - 1) * hosts**3
        linked = steps * FEWEST <= STEPS and data.jobs * FEWEST <= RINGS
        if linked:
            pricings = min(STEPS // max(1, steps), RINGS // data.jobs)
    if states > MOST_STATES and not (linked and data.forest is None):
        scaled, unit = in_ordinary_units(instance)
        subproblem = RingSubproblem(scaled, linked=linked)
        bound, prices = pooled_bound(subproblem)
        return _rounded_up(bound) * unit, subproblem, prices * unit
    found = ring_lp(instance, linked=linked, tolerance=1e-7, pricings=int(min(MOST_PRICINGS, pricings)))
    return found.bound, found.subproblem, found.prices


def _rounded_up(bound: float) -> float:
    """The bound with room for what sums of floats are off by."""
    return bound * (1 + 1e-9) + 1e-9 if bound else bound


# The linear programs of g-vne as methods that give a bound and no rings: `mcf`, `augmented`, `columns-lp`.


def solve_mcf(instance: GVneInstance, options: SolveOptions) -> Result:
    """The multi-commodity flow LP, the relaxation of (12)-(19): a bound."""
    from schedgap.formulations.g_vne.models import build_flows

    return _bound(lambda: build_flows(instance, augmented=False), options)


def solve_augmented(instance: GVneInstance, options: SolveOptions) -> Result:
    """The augmented LP of Rost and Schmid: a bound, equal to that of `mcf`."""
    from schedgap.formulations.g_vne.models import build_flows

    return _bound(lambda: build_flows(instance, augmented=True), options)


def solve_columns_lp(instance: GVneInstance, options: SolveOptions) -> Result:
    """The LP over all rings that respect a job's own caps, enumerated: a bound, the capped one; tiny instances."""
    from schedgap.formulations.g_vne.models import build_columns

    return _bound(lambda: build_columns(instance, relaxed=True), options)


def _bound(build: Callable[[], DeclarativeModel], options: SolveOptions) -> Result:
    """The optimum of a linear program as a bound, from its duals in exact arithmetic where those are known."""
    from schedgap.solvers.engines import engine
    from schedgap.solvers.engines.arrays import model_arrays
    from schedgap.solvers.engines.whole import exact_bound, whole_model

    began = time.monotonic()
    try:
        model = build()
    except ModelRefused as error:
        seconds, info = time.monotonic() - began, {"reason": str(error)}
        return Result(Status.UNKNOWN, termination=Termination.TOO_LARGE, solve_seconds=seconds, info=info)
    built = time.monotonic()
    bound = exact_bound(whole_model(model_arrays(model)), options.deadline)
    solver = engine("highs")
    return Result(
        Status.UNKNOWN,
        bound=bound,
        termination=Termination.FINISHED if bound is not None else Termination.TIME_LIMIT,
        build_seconds=built - began,
        solve_seconds=time.monotonic() - built,
        engine=solver.name,
        engine_version=solver.version(),
        info={"relaxation": True},
    )
