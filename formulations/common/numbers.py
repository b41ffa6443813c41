"""Exact numbers, and the three comparisons every report rests on: agreement, gap and ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # most who compare numbers need no arrays
    import numpy as np
    from numpy.typing import NDArray

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


def share_of_best(value: float | None) -> float:
    """A part of a score: 1 is the best, 0 is no ratio."""
    return 0.0 if value is None else 1.0 / value


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


MOST_MULTISETS = 20_000
"""Sums beyond which it is not tried to tell all of them apart."""
_ROUNDED_UP = 4
"""Numbers up to which every choice of those that are rounded up is tried."""


def rounded_both_ways(numbers: Sequence[Fraction], scale: int) -> Iterator[tuple[int, ...]]:
    """`numbers` in units of 1/scale, each rounded down or up, as far as their order stays: all down first."""
    down = [math.floor(scale * number) for number in numbers]
    rising = numbers[0] <= numbers[-1]
    for up in product((0, 1), repeat=len(down) if len(down) <= _ROUNDED_UP else 0):
        found = tuple(a + b for a, b in zip(down, up or [0] * len(down), strict=True))
        if all(a <= b if rising else a >= b for a, b in pairwise(found)):
            yield found


@dataclass(frozen=True)
class Multisets:
    """Every multiset of at most so many of some numbers, by its sum, ascending."""

    counts: NDArray[np.object_]  # (N, L), how often each number is there
    size: NDArray[np.int64]  # (N,), how many there are
    sums: NDArray[np.object_]  # (N,), in units of 1 / `unit`, exactly
    unit: int  # the numbers' common denominator

    @classmethod
    def of(cls, numbers: Sequence[Fraction], most: int) -> Multisets | None:
        """The numbers of at most `most`; None where there are more than 20,000."""
        import numpy as np

        if math.comb(most + len(numbers), len(numbers)) > MOST_MULTISETS:
            return None
        unit = math.lcm(*(number.denominator for number in numbers))
        counts = _counts(most, len(numbers)).astype(object)
        sums = counts @ np.array([int(number * unit) for number in numbers], dtype=object)
        order = np.argsort(sums, kind="stable")
        return cls(counts[order], counts[order].sum(axis=1).astype(np.int64), sums[order], unit)

    def heaviest(self, limits: Iterable[tuple[int, Fraction]], weights: Sequence[int]) -> list[int] | None:
        """What those weigh at most whose sums are within a limit, by whole weights of the numbers.

        Returns one weight for each limit; None where one beyond a limit weighs no more, so that weights do not tell
        them apart.

        Parameters
        ----------
        limits : (how many numbers there may be, the limit of their sum >= 0)
        weights : weight of each number, >= 0
        """
        import numpy as np

        weighed = self.counts @ np.array(weights, dtype=object)
        if weighed.max() < 2**62:
            weighed = weighed.astype(np.int64)
        parts: dict[int, tuple[NDArray[np.object_], NDArray[np.int64], NDArray[np.int64]]] = {}
        found = []
        for most, limit in limits:
            if most not in parts:
                here = self.size <= most
                own = weighed[here]
                parts[most] = self.sums[here], np.maximum.accumulate(own), np.minimum.accumulate(own[::-1])[::-1]
            sums, heaviest, lightest = parts[most]
            within = int(np.searchsorted(sums, math.floor(limit * self.unit), "right"))
            if within < len(sums) and lightest[within] <= heaviest[within - 1]:
                return None
            found.append(int(heaviest[within - 1]))
        return found


@lru_cache(maxsize=16)
def _counts(most: int, kinds: int) -> NDArray[np.int64]:
    """All ways to count at most so many things of so many kinds, (N, kinds)."""
    import numpy as np

    picked = np.array(list(combinations(range(most + kinds), kinds)), dtype=np.int64).reshape(-1, kinds)
    return np.diff(picked, axis=1, prepend=-1) - 1
