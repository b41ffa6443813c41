"""Every call of a kernel, made as Python and in machine code, and compared bit by bit."""

from __future__ import annotations

import copy
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from schedgap.formulations.common.compiled import Kernel
from schedgap.formulations.common.machine.interpreted import TooLongError


def bits(value: Any) -> Any:
    """A value as something that is equal only where type and bits are; of names, tuples with names have their own."""
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if isinstance(value, tuple):
        return type(value).__name__, tuple(map(bits, value))
    if isinstance(value, float):
        return "float", struct.pack("d", value)
    return type(value).__name__, value


MOST_STEPS = 200_000
"""Steps of Python that a call is compared for; the longest calls take minutes."""


def call_both_ways(kernel: Any, args: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """What a call gives and leaves in its arguments: as Python, and in machine code; None where it takes too long."""
    ways = []
    for as_python in (True, False):
        given = copy.deepcopy(args)
        try:
            result = kernel.twin.call(given, {}, MOST_STEPS)[0] if as_python else kernel.dispatcher(*given)
        except TooLongError:
            assert bits(given) == bits(args), f"{kernel.name}: a call that did not end changed its arguments"
            return None
        ways.append((bits(result), bits(given)))
    return ways[0], ways[1]


@contextmanager
def comparing(calls: Counter[str], at_most: int) -> Iterator[None]:
    """Within it the first calls of every kernel are made both ways.

    Parameters
    ----------
    calls : counts them, by kernel
    at_most : calls of a kernel that are compared
    """
    before = Kernel.__call__
    tried: Counter[str] = Counter()

    def call(kernel: Any, *args: Any, **options: Any) -> Any:
        if calls[kernel.name] < at_most and tried[kernel.name] < 3 * at_most and not options:
            tried[kernel.name] += 1
            ways = call_both_ways(kernel, args)
            calls[kernel.name] += ways is not None
            if ways is not None:
                assert ways[0] == ways[1], kernel.name
        return before(kernel, *args, **options)

    Kernel.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        Kernel.__call__ = before  # type: ignore[method-assign]
