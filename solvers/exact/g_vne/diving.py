"""Diving: rings of large weight are fixed a few at a time, and the LP over what is left is solved again.

Idea: fix the rings with the largest weights, price new ones for what is left, repeat. Source: diving heuristics of
column generation. The choice fits within all limits; nothing is proven.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.column_generation import (
    Column,
    Generated,
    GenerationLimits,
    Master,
    Priced,
    RowBounds,
)
from schedgap.solvers.exact.g_vne.node_rules import Rules
from schedgap.solvers.exact.g_vne.ring_choices import RingChoices
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem
from schedgap.solvers.result import Deadline

SHARE = 0.05
"""Share of the remaining jobs that are fixed in a step, beside those whose ring has all the weight."""


PRICINGS = 5
"""In a step."""


ALL_OF_IT = 0.999


def dive(
    subproblem: RingSubproblem, rings: RingChoices, root: Generated, deadline: Deadline
) -> tuple[list[Column | None], Floats]:
    """A choice of rings from the LP's weights, with new rings for what the fixed ones leave.

    Returns at most one ring for each job, together within all limits; and what they use.

    Parameters
    ----------
    root : the solved LP
    deadline : when to stop; what is fixed by then is returned

    Notes
    -----
    About 1 / SHARE log J steps of `PRICINGS` pricings and LPs that shrink.
    """
    choice: list[Column | None] = [None] * subproblem.data.jobs
    load = np.zeros(len(rings.limit))
    free = set(range(subproblem.data.jobs))
    weights: Floats = root.weights
    columns: Sequence[Column] = root.columns
    while free and not deadline.passed:
        if not _fix(rings, choice, load, free, columns, weights):
            break
        gone = np.array([j not in free for j in range(subproblem.data.jobs)])
        rules = Rules(_caps(subproblem, rings.limit - load), gone)

        def pricing(duals: Floats, weight: float, rules: Rules = rules) -> Priced:
            priced = subproblem.price_all(duals, weight, rules)
            return Priced(priced.best, [c for c in priced.columns if rings.fits(load, c.group, c)])

        rows = [RowBounds(upper=max(0.0, remaining)) for remaining in rings.limit - load]
        master = Master(MAXIMISE, rows, [False] * subproblem.data.jobs)
        master.add([c for c in columns if c.group in free and rings.fits(load, c.group, c)])
        limits = GenerationLimits(deadline=deadline, tolerance=1e-4, iterations=PRICINGS, smoothing=0.0)
        solved = master.generate(pricing, limits)
        weights, columns = solved.weights, solved.columns
    return choice, load


def _fix(
    rings: RingChoices,
    choice: list[Column | None],
    load: Floats,
    free: set[int],
    columns: Sequence[Column],
    weights: Floats,
) -> int:
    """Fix the rings of largest weight that fit; how many there were. Changes choice, load and free."""
    most = max(1, int(SHARE * len(free)))
    fixed = split = 0
    for place in np.argsort(-weights, kind="stable"):
        if weights[place] <= 1e-6:
            break
        column = columns[place]
        if weights[place] < ALL_OF_IT and split >= most:
            break
        if column.group in free and rings.fits(load, column.group, column):
            free.discard(column.group)
            choice[column.group] = column
            load[column.rows] += column.values
            fixed += 1
            split += int(weights[place] < ALL_OF_IT)
    return fixed


def _caps(subproblem: RingSubproblem, left: Floats) -> Ints:
    """(J, V) workers of each job that fit on each node beside the fixed rings."""
    room = np.append(np.maximum(0.0, left), np.inf)
    cap = subproblem.cap.copy()
    for r in range(subproblem.data.demand.shape[1]):
        needy = np.flatnonzero(subproblem.data.demand[:, r] > 0)
        fits = room[subproblem.node_row[:, r]][None, :] / subproblem.data.demand[needy, r][:, None] + 1e-9
        cap[needy] = np.minimum(cap[needy], np.minimum(fits, subproblem.data.longest.max())).astype(np.int64)
    return cap
