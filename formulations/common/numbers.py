"""Exact numbers, and the three comparisons every report rests on: agreement, gap and ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

RELATIVE_TOLERANCE = 1e-9
"""Objective values are equal within this, relative to the larger."""
CHECK_TOLERANCE = Fraction(1, 10**9)
LARGEST_SLACK = Fraction(1, 10**6)
"""Limits of a model's rows give way by the tolerance, but by no more than this: large whole numbers stay apart."""

MINIMISE = 1
MAXIMISE = -1


@lru_cache(maxsize=1 << 14, typed=True)
def exact(number: int | float) -> Fraction:
    """The rational number whose decimal form is `number` as written.

    A float is read through its shortest decimal representation, so that ``exact(0.1)`` is 1/10 and ten
    of them make exactly 1.
    """
    return Fraction(number) if isinstance(number, int) else Fraction(repr(float(number)))


def common_divisor(numbers: Iterable[Fraction]) -> Fraction:
    """The largest number of which all `numbers` are whole multiples; 1 where all are 0."""
    given = [number for number in numbers if number]
    scale = math.lcm(*(number.denominator for number in given))
    return Fraction(math.gcd(*(int(number * scale) for number in given)) or 1, scale)


def agrees(a: float, b: float) -> bool:
    """Whether two objective values are equal: whole numbers exactly, others within 1e-9 relative, 0 to 0 alone."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return math.isclose(a, b, rel_tol=RELATIVE_TOLERANCE)


def gap(objective: float | None, bound: float | None) -> float | None:
    """|objective - bound| / |objective|, whatever their size; None where either is unknown, or only the first is 0."""
    if objective is None or bound is None or (objective == 0 != bound):
        return None
    return abs(objective - bound) / abs(objective) if objective else 0.0


def ratio(value: float | None, reference: float | None, sense: int) -> float | None:
    """How many times worse `value` is than `reference`: always >= 1 when the reference is a valid bound.

    value / reference when minimising (sense +1), reference / value when maximising (sense -1);
    0/0 = 1, and infinite where only the denominator is 0. None where either is unknown, or below 0,
    as a loss or a logarithm is.
    """
    if value is None or reference is None or min(value, reference) < 0:
        return None
    top, bottom = (value, reference) if sense == MINIMISE else (reference, value)
    if bottom == 0:
        return 1.0 if top == 0 else math.inf
    return top / bottom


def better(a: float, b: float, sense: int) -> bool:
    """Whether objective `a` is better than `b` by more than the tolerance."""
    return not agrees(a, b) and sense * a < sense * b


def unit_of(largest: float, ordinary: tuple[float, float]) -> float:
    """A unit for linear programs: a power of two such that `largest` over it is ordinary; 1 where it is, or is 0.

    Parameters
    ----------
    largest : the largest number that matters, >= 0
    ordinary : where it may be. Elsewhere the quotient is 1 to 2 times the lower end, or 1 to 2 where that is below 1
    """
    if not largest or ordinary[0] <= largest <= ordinary[1]:
        return 1.0
    above = max(0, math.ceil(math.log2(ordinary[0])))
    return 2.0 ** max(-1000, min(1000, math.frexp(largest)[1] - 1 - above))
