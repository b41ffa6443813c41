"""The one irrational function of gpu-sharing, (c^delta + m^delta)^(1/delta), as a rational from below."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction

_CONTEXT = Context(prec=80, Emax=999999, Emin=-999999)


def power_norm(first: Fraction, second: Fraction, order: Fraction) -> Fraction:
    """(first^order + second^order)^(1/order) for non-negative numbers and order >= 1.

    Exact where no root is needed (order 1, or a zero); else from below, within 1e-60 relative. A sum that
    equals the true value is therefore never judged to be short of it.
    """
    larger, smaller = max(first, second), min(first, second)
    if smaller == 0:
        return larger
    if order == 1:
        return larger + smaller
    with localcontext(_CONTEXT):
        ratio = Decimal((smaller / larger).numerator) / Decimal((smaller / larger).denominator)
        power = Decimal(order.numerator) / Decimal(order.denominator)
        factor = (1 + ratio**power) ** (1 / power)
    return larger * Fraction(factor) * (1 - Fraction(1, 10**60))
