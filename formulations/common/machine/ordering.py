"""Orders for compiled code: the same as Python and as machine code, also among equals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_inline, njit_part

Values = NDArray[np.float64] | NDArray[np.int64]
_SHORT = 16
"""Positions up to which they are inserted one by one."""
_DEPTH = 64
"""Ranges that wait to be sorted, at most: the longer of two waits, so there are no more than bits in a position."""


@njit_inline
def _exchange_if_falling(values: Values, order: NDArray[np.int64], i: int, k: int) -> None:
    if values[order[k]] < values[order[i]]:
        order[i], order[k] = order[k], order[i]


@njit_inline
def _divide(values: Values, order: NDArray[np.int64], low: int, high: int) -> int:
    """Where the median of the first, the middle and the last of a range belongs; what is less comes before it."""
    middle = (low + high) >> 1
    _exchange_if_falling(values, order, low, middle)
    _exchange_if_falling(values, order, middle, high)
    _exchange_if_falling(values, order, low, middle)
    pivot = values[order[middle]]
    order[middle], order[high] = order[high], order[middle]
    i, k = low, high - 1
    while True:
        while i < high and values[order[i]] < pivot:
            i += 1
        while k >= low and values[order[k]] > pivot:
            k -= 1
        if i >= k:
            break
        order[i], order[k] = order[k], order[i]
        i += 1
        k -= 1
    order[i], order[high] = order[high], order[i]
    return i


@njit_part
def rising_order(values: Values) -> NDArray[np.int64]:
    """Positions by rising value: a quicksort (Hoare 1962) by the median of three, with insertion for short ranges.

    Equals come in the order of `argsort` in code that numba compiles, which the published figures were made with;
    numpy's own has another one, and takes numba a second to compile.
    """
    order = np.arange(len(values))
    waiting = np.empty((_DEPTH, 2), np.int64)
    waiting[0, 0], waiting[0, 1] = 0, len(values) - 1
    count = 1
    while count > 0:
        count -= 1
        low, high = waiting[count, 0], waiting[count, 1]
        while high - low + 1 >= _SHORT:
            i = _divide(values, order, low, high)
            if high - i > i - low:
                waiting[count, 0], waiting[count, 1], high = i + 1, high, i - 1
            else:
                waiting[count, 0], waiting[count, 1], low = low, i - 1, i + 1
            count += 1
        for i in range(low + 1, high + 1):
            position = order[i]
            k = i
            while k > low and values[position] < values[order[k - 1]]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = position
    return order
