"""A unit of utility in which the absolute tolerances of linear programming are small."""

from __future__ import annotations

import math


def unit_of(largest: float, ordinary: tuple[float, float]) -> float:
    """A power of two such that `largest` over it is ordinary; 1 where it is already, or is 0.

    Parameters
    ----------
    largest : the largest number that matters, >= 0
    ordinary : where it may be. Elsewhere the quotient is 1 to 2 times the lower end, or 1 to 2 where that is below 1
    """
    if not largest or ordinary[0] <= largest <= ordinary[1]:
        return 1.0
    above = max(0, math.ceil(math.log2(ordinary[0])))
    return 2.0 ** max(-1000, min(1000, math.frexp(largest)[1] - 1 - above))
