"""Whether a model can be built in the time and memory there are, from its number of nonzeros alone."""

from __future__ import annotations

import functools
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

from schedgap.solvers.result import Deadline

BYTES_PER_NONZERO = 400
"""Peak memory of a PuLP model with its arrays at 5 nonzeros a row: 342 measured (tracemalloc), rounded up."""
SHARE_FOR_BUILDING = 0.8
"""A model whose building would take more than this share of the time left is not attempted."""
SHARE_OF_FREE = 0.75
"""Of the memory that is free, what may be used where nobody says how much."""
_sharers = 1
BUILDER_FACTOR = 5.0
"""How much slower a real builder is, per nonzero, than the plain loop that is measured (rar-ddls: 3 to 8)."""
MEASUREMENTS = 8
_SAMPLE_ROWS, _SAMPLE_WIDTH = 600, 5
SAMPLE_NONZEROS = _SAMPLE_ROWS * _SAMPLE_WIDTH


@functools.cache
def seconds_per_nonzero() -> float:
    """Seconds that a builder takes per nonzero, measured once per process."""
    return measured(time.thread_time)


def measured(clock: Callable[[], float]) -> float:
    """The best of eight small PuLP models, per nonzero, times ``BUILDER_FACTOR``.

    Without garbage collection, and by a clock of processor time, so that neither what this process holds nor other
    work on the machine makes every model look too large.

    Parameters
    ----------
    clock : seconds since some moment
    """
    times = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(MEASUREMENTS):
            began = clock()
            build_sample()
            times.append(clock() - began)
    finally:
        if collecting:
            gc.enable()
    return BUILDER_FACTOR * min(times) / SAMPLE_NONZEROS


def build_sample() -> None:
    """Build the small model that is measured."""
    import pulp

    problem = pulp.LpProblem("sample")
    create = getattr(problem, "add_variable", pulp.LpVariable)
    variables = [create(f"x{i}", 0, 1, cat=pulp.LpInteger) for i in range(_SAMPLE_ROWS)]
    for row in range(_SAMPLE_ROWS):
        terms = [(variables[(row + 7 * k) % _SAMPLE_ROWS], 1.0) for k in range(_SAMPLE_WIDTH)]
        problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintLE, None, 3))


def share_memory(processes: int) -> None:
    """Where nobody says how much memory may be used, divide it among so many processes, of which this is one."""
    global _sharers
    _sharers = processes


def memory_budget(limit: int | None = None) -> int | None:
    """Bytes that may be used: `limit`, or this process's share of what is free; None where the system does not tell."""
    free = available_bytes() if limit is None else None
    return limit if free is None else int(SHARE_OF_FREE * free / _sharers)


def available_bytes() -> int | None:
    """Memory that a new process could have: what Linux calls available, elsewhere half of what there is."""
    free = _free_on_the_machine()
    try:  # a container may have less than its machine
        group = Path("/sys/fs/cgroup")
        most, used = ((group / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current"))
        return int(most) - int(used) if free is None else max(0, min(free, int(most) - int(used)))
    except (OSError, ValueError):  # no such limit
        return free


def _free_on_the_machine() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass  # not Linux: asked below in another way
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return None


def too_large(
    nonzeros: int, deadline: Deadline, handover_cost: float = 0.0, memory_limit: int | None = None
) -> str | None:
    """Why a model of this size is not attempted, or None where it is.

    Parameters
    ----------
    nonzeros : an estimate of the model's nonzero coefficients
    deadline : building and handing over must end well before it
    handover_cost : seconds an engine takes to take a model over, per second of building it
    memory_limit : bytes there are for it; three quarters of what is free where not given
    """
    left = deadline.left()
    if left is not None:
        needed = nonzeros * seconds_per_nonzero() * (1 + handover_cost)
        if needed > SHARE_FOR_BUILDING * left:
            return f"{nonzeros:,} nonzeros take about {needed:.1f} s to build and hand over, {left:.1f} s are left"
    memory = memory_budget(memory_limit)
    needed_bytes = nonzeros * BYTES_PER_NONZERO
    if memory is not None and needed_bytes > memory:
        return f"{nonzeros:,} nonzeros take about {needed_bytes / 1e9:.1f} GB, {memory / 1e9:.1f} GB may be used"
    return None
