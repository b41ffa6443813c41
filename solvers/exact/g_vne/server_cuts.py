"""Cuts of g-vne: rings share a server only as wholes.

For a capacity C of a server, whole k and a unit d > C / (k + 1): rings that put n_j workers of demand l_j on
the server with ``sum l_j n_j <= C`` have ``sum floor(l_j n_j / d) <= k``, since the left side is at most C / d
< k + 1. A cut thus charges a ring for what it has on the server as a whole (two rings of three quarters of it
do not fit, however their LP weights add up), which a knapsack over counts prices as exactly as before (Chvatal-
Gomory cuts of the rows over columns). Counts of different jobs that do not fit the server two by two, whichever
resource is short, exclude each other: at most one ring of such a clique is chosen. That is again a charge by
count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats

BEYOND = 1 + 1e-8
"""How far above C / (k + 1) the unit is: more than what C carries as tolerance."""


VIOLATED = 0.01
"""Least relative violation of a cut worth adding."""


MOST_UNITS = 8
"""Largest k."""


@dataclass(frozen=True)
class Cut:
    """``sum over rings of share[j, n on the server] y <= limit``: a rounding or a clique cut."""

    server: int  # the server
    share: Floats  # (J, K + 1) floor(l_j n / d), or 1 for the members of the clique
    limit: int  # k, or 1


def most_violated(server: int, capacity: float, demand: Floats, sizes: int, used: Floats) -> Cut | None:
    """The cut of one server and resource that a point breaks most.

    Parameters
    ----------
    capacity : C, with the checker's tolerance
    demand : (J,) l_j
    sizes : K
    used : (J, K + 1) weight of the rings that put n workers of job j on the server
    """
    if capacity <= 0:
        return None
    loads = demand[:, None] * np.arange(sizes + 1)[None, :]
    best: Cut | None = None
    broken = VIOLATED
    for k in range(1, MOST_UNITS + 1):
        share = np.floor(loads / (capacity / (k + 1) * BEYOND))
        excess = (float((share * used).sum()) - k) / k
        if excess > broken:
            best, broken = Cut(server, share, k), excess
    return best


def clique(server: int, capacity: Floats, demand: Floats, used: Floats) -> Cut | None:
    """A clique of counts on a server that a point breaks, found greedily and extended to counts it does not use.

    Parameters
    ----------
    capacity : (R,) with the checker's tolerance
    demand : (J, R)
    used : (J, K + 1) weight of the rings that put n workers of job j on the server
    """
    jobs, sizes = used.shape
    loads = demand[:, None, :] * np.arange(sizes)[None, :, None]
    limit = capacity * BEYOND
    seen = [(int(j), int(n)) for j, n in zip(*np.nonzero(used[:, 1:] > 1e-9), strict=True)]
    seen = sorted(((j, n + 1) for j, n in seen), key=lambda item: -used[item])
    best: list[tuple[int, int]] = []
    broken = 1 + VIOLATED
    for seed in seen:
        open_to = np.ones((jobs, sizes), dtype=bool)
        open_to[:, 0] = False
        members: list[tuple[int, int]] = []
        for item in [seed, *seen]:
            if open_to[item]:
                members.append(item)
                _narrow(open_to, item, loads, limit)
        total = float(sum(used[item] for item in members))
        if total > broken:
            best, broken = members, total
    if not best:
        return None
    share = np.zeros((jobs, sizes))
    open_to = np.ones((jobs, sizes), dtype=bool)
    open_to[:, 0] = False
    for item in best:
        share[item] = 1.0
        _narrow(open_to, item, loads, limit)
    for n in range(sizes - 1, 0, -1):  # large counts exclude the most
        for j in range(jobs):
            if open_to[j, n]:
                share[j, n] = 1.0
                _narrow(open_to, (j, n), loads, limit)
    return Cut(server, share, 1)


def _narrow(open_to: NDArray[np.bool_], item: tuple[int, int], loads: Floats, limit: Floats) -> None:
    """Keep only counts that do not fit beside `item`; other counts of its own job exclude each other anyway."""
    apart = (loads + loads[item] > limit).any(axis=2)
    apart[item[0]] = True
    open_to &= apart
    open_to[item] = False
