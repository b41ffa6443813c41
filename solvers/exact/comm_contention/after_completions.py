"""Starts that follow completions, put there in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact


def after_completions(instance: CommContentionInstance, times: Sequence[float], tolerance: float) -> Solution:
    """Admissions in which no start comes less than `tolerance` before a completion.

    The schedule is replayed in rationals; a start that would be at most `tolerance` before the next completion is
    moved to the first floating-point number that is not before it. All others stay.

    Parameters
    ----------
    times : seconds, the admission of each task, in the order of the instance
    tolerance : seconds

    Notes
    -----
    O(n^2) exact operations.
    """
    latency, alone, penalty = instance.link.exact_parameters()
    allowed = Fraction(tolerance)
    begin = [exact(moment) for moment in times]
    chosen = list(times)
    waiting = set(range(len(times)))
    remaining: dict[int, Fraction] = {}
    clock = min(begin) + latency
    while waiting:
        j = min(waiting, key=lambda task: (begin[task], task))
        moment = max(clock, begin[j] + latency)
        if remaining:
            pace = len(remaining) * alone + (len(remaining) - 1) * penalty
            first = min(remaining.values())
            end = clock + pace * first
            if end <= moment + allowed:
                for task in waiting:  # those that are due before this completion wait for it
                    if begin[task] + latency < end:
                        chosen[task] = _rounded_up(end - latency)
                        begin[task] = exact(chosen[task])
                remaining = {task: x - first for task, x in remaining.items() if x > first}
                clock = end
                continue
            volume = (moment - clock) / pace
            remaining = {task: x - volume for task, x in remaining.items()}
        clock = moment
        waiting.remove(j)
        remaining[j] = exact(instance.tasks[j].size)
    return {"start": {task.id: moment for task, moment in zip(instance.tasks, chosen, strict=True)}}


def _rounded_up(number: Fraction) -> float:
    """The first floating-point number whose decimal form is not less."""
    value = float(number)
    while exact(value) < number:
        value = math.nextafter(value, math.inf)
    return value
