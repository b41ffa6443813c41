"""Every call of a kernel, made as Python and in machine code, and compared bit by bit."""

from __future__ import annotations

import copy
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from schedgap.benchmarks.instances import workload_of
from schedgap.catalogue.registry import all_problems
from schedgap.catalogue.run import run_method
from schedgap.formulations.common.compiled import Kernel
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.machine.interpreted import TooLongError
from schedgap.solvers.result import SolveOptions


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


CALLS = 4
"""Calls of a kernel that are compared, by problem."""


def kernels_compared(problem_id: str) -> list[str]:
    """The kernels that methods call on two tiny instances; the first calls of each are made both ways."""
    problem = all_problems()[problem_id]
    calls: Counter[str] = Counter()
    preset = workload_of(problem).presets[0]
    with comparing(calls, CALLS):
        for seed in range(2):
            instance = preset.generator(seed, **preset.settings)
            problem.bound(instance)
            for method in problem.methods:
                try:
                    run_method(problem, instance, method, SolveOptions(threads=1, work_limit=1.0))
                except InputError:
                    assert method.kind == "engine" or method.id == "job-pair"  # models with continuous variables
    return sorted({name.rpartition("-")[0] for name in calls})
