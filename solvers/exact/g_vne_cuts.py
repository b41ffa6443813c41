"""Rounding cuts of g-vne: rings share a server only in whole shares.

For a capacity C of a server, whole k and a unit d > C / (k + 1): rings that put n_j workers of demand l_j on the server
with ``sum l_j n_j <= C`` have ``sum floor(l_j n_j / d) <= k``, since the left side is at most C / d < k + 1. A cut thus
charges a ring for what it has on the server as a whole (two rings of three quarters of it do not fit, however their
LP weights add up), which a knapsack over counts prices as exactly as before (Chvatal-Gomory cuts of the rows over
columns).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BEYOND = 1 + 1e-8
"""How far above C / (k + 1) the unit is: more than what C carries as tolerance."""
VIOLATED = 0.01
"""Least relative violation of a cut worth adding."""
MOST_UNITS = 8
"""Largest k."""


@dataclass(frozen=True)
class Cut:
    """``sum over rings of share[j, n on the server] y <= most``.

    Attributes
    ----------
    server : the server
    share : (J, K + 1) floor(l_j n / d)
    most : k
    """

    server: int
    share: Floats
    most: int


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
