"""The certified upper bound of g-vne at any size, by the LP over rings.

Idea: the optimum is at most the linear program that mixes rings of each job. Source: the augmented program is that of
Rost and Schmid (IFIP Networking 2018), which paper 004 follows; ours caps rings by what one job may use, which is
tighter. Guarantee: optimum <= capped LP <= augmented LP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.g_vne.instance import GVneInstance, in_ordinary_units
from schedgap.formulations.g_vne.network_tables import tables
from schedgap.solvers.column_generation import GenerationLimits, GenerationStatus
from schedgap.solvers.exact.g_vne.pooled_bound import pooled_bound
from schedgap.solvers.exact.g_vne.subproblem import Embedding, RingSubproblem
from schedgap.solvers.result import NO_DEADLINE, Deadline

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
    value: float  # value of the rings generated; equal to `bound` where `converged`
    converged: bool
    # rings with a positive weight, and their weights: a joint decomposition for all resources
    rings: tuple[tuple[Embedding, float], ...]
    history: tuple[tuple[float, float], ...]  # (value, bound) after every pricing
    subproblem: RingSubproblem  # subproblem of the instance in the units it is solved in
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
    :func:`~schedgap.solvers.exact.g_vne.pooled_bound.pooled_bound`: on the preset ``large-tree`` 0.7% above the LP.
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
