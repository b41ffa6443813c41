"""Whether a model can be built in the time and memory there are, from its number of nonzeros alone."""

from __future__ import annotations

import functools
import os
import time

import pulp

from schedgap.solvers.result import Deadline

BYTES_PER_NONZERO = 400
"""Peak memory of a PuLP model with its arrays at 5 nonzeros a row: 342 measured (tracemalloc), rounded up."""
SHARE_FOR_BUILDING = 0.8
"""A model whose building would take more than this share of the time left is not attempted."""
BUILDER_FACTOR = 2.0
"""How much slower a real builder is, per nonzero, than the plain loop that is measured."""
_SAMPLE_ROWS, _SAMPLE_WIDTH = 600, 5


@functools.cache
def seconds_per_nonzero() -> float:
    """Measured once per process: the best of three small PuLP models, per nonzero."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        problem = pulp.LpProblem("sample")
        create = getattr(problem, "add_variable", pulp.LpVariable)
        variables = [create(f"x{i}", 0, 1, cat=pulp.LpInteger) for i in range(_SAMPLE_ROWS)]
        for row in range(_SAMPLE_ROWS):
            terms = [(variables[(row + 7 * k) % _SAMPLE_ROWS], 1.0) for k in range(_SAMPLE_WIDTH)]
            problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintLE, None, 3))
        times.append(time.perf_counter() - began)
    return BUILDER_FACTOR * min(times) / (_SAMPLE_ROWS * _SAMPLE_WIDTH)


def available_bytes() -> int | None:
    """Physical memory that is free, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def too_large(nonzeros: int, deadline: Deadline) -> str | None:
    """Why a model of this size is not attempted, or None where it is.

    Parameters
    ----------
    nonzeros : an estimate of the model's nonzero coefficients
    deadline : building must end well before it
    """
    left = deadline.left()
    if left is not None:
        needed = nonzeros * seconds_per_nonzero()
        if needed > SHARE_FOR_BUILDING * left:
            return f"{nonzeros:,} nonzeros take about {needed:.1f} s to build, {left:.1f} s are left"
    memory = available_bytes()
    if memory is not None and nonzeros * BYTES_PER_NONZERO > memory:
        return (
            f"{nonzeros:,} nonzeros take about {nonzeros * BYTES_PER_NONZERO / 1e9:.1f} GB, {memory / 1e9:.1f} are free"
        )
    return None
