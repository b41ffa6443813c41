"""The first phase of gpu-sharing's `lns`: annealed priorities, from the start and from nothing.

Idea: many short annealing runs, by turns from the start and from shortest first, before neighbourhoods refine the
best. Source: simulated annealing. It proves nothing.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices, choices
from schedgap.solvers.exact.gpu_sharing.search import OverlapSchedule, Search
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.neighbourhoods import propose_initial

MOST_JOBS = 600
"""Beyond, a single schedule takes too long."""


COST = 2e-8
"""Work of one schedule, about its seconds, over the square of the jobs."""


SHARE = 0.5
"""Share of the remaining time or work."""


UNLIMITED = 2.0
"""Work without any limit."""


LEG = 0.1
"""Work after which the clock is looked at."""


FIRST = 0.5
"""Work of the first annealing; each pair of further ones takes twice as much."""


WARM = 0.01
"""Heat of an annealing from the start, of the mean completion time."""


def from_orders(
    instance: GpuSharingInstance,
    best: Incumbent,  # receives what is better; says what is left, and counts the work
    # start, steps, overlap: first slots, accumulation steps and shared GPUs by pair of the schedule
    start: NDArray[np.int64],
    steps: list[int],
    overlap: Mapping[tuple[int, int], int],
) -> None:
    """Anneal by turns from a schedule and from shortest first, each pair twice as long, in a share of what is left."""
    n = len(instance.jobs)
    if n > MOST_JOBS:
        return
    options = choices(instance)
    given = _as_found(options, start, steps, overlap)
    mean = float(best.objective or 0) / n
    work = best.work_left(SHARE)
    seconds = best.seconds_left(SHARE)
    work = UNLIMITED if work is None and seconds is None else work
    one = COST * n * n
    began, used = time.monotonic(), 0.0
    leg = max(1, int(LEG / one))
    tried, least = 0, math.inf
    for turn in itertools.count():
        rounds = max(4, int(FIRST * 2 ** (turn // 2) / one))
        if work is not None:
            rounds = min(rounds, max(4, int((work - used) / one)))
        search = Search(
            instance,
            options,
            seed=best.options.seed + turn,
            heat=WARM * mean if turn % 2 == 0 else None,
            start=given if turn % 2 == 0 else None,
        )
        for first in range(0, rounds, leg):
            if best.finished() or (seconds is not None and time.monotonic() - began > seconds):
                break
            search.run(rounds, first, leg)
            tried, used = tried + leg, used + one * leg
            best.work += one * leg
        found = search.found
        if found is not None and found.total < least:
            propose_initial(best, found.solution(instance, options), "orders", n)
            given, least = found, found.total
        over = seconds is not None and time.monotonic() - began > seconds
        if over or best.finished() or (work is not None and used >= work - 4 * one):
            break
    best.info["orders tried"] = tried


def _as_found(
    options: Choices, start: NDArray[np.int64], steps: list[int], overlap: Mapping[tuple[int, int], int]
) -> OverlapSchedule:
    """A schedule in the form of the search; its ends and its total are not asked for."""
    n = len(steps)
    mode = [
        next((m for m, choice in enumerate(options.jobs[j].modes) if choice.steps == s), 0) for j, s in enumerate(steps)
    ]
    shared = np.zeros((n, n), dtype=np.int64)
    for (j, k), count in overlap.items():
        shared[j, k] = shared[k, j] = count
    return OverlapSchedule(start.copy(), start.copy(), np.array(mode, dtype=np.int64), shared, 0)
