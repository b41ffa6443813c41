"""What a set of admissions means, in floating point: completions, and who transfers at which rate when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schedgap.formulations.comm_contention.instance import CommContentionInstance


@dataclass(frozen=True)
class Gap:
    """A stretch of time between two events.

    Attributes
    ----------
    begin, end : seconds
    active : ids of the transfers past their latency, in the order of their first unit
    rate : units per second of each of them
    """

    begin: float
    end: float
    active: tuple[str, ...]
    rate: float


@dataclass(frozen=True)
class Schedule:
    """Completion of each task in seconds, and the gaps in which something is transferred."""

    completion: dict[str, float]
    gaps: tuple[Gap, ...]


def simulate(instance: CommContentionInstance, start: Mapping[str, float]) -> Schedule:
    """Replay admissions: with k transfers past their latency each moves 1 / (k b + (k - 1) eta) per second.

    Parameters
    ----------
    instance : the instance
    start : seconds, the admission of every task

    Returns
    -------
    Schedule
        Exact up to rounding; the checker has its own replay in rationals.

    Notes
    -----
    O(n k) for at most k active transfers.
    """
    link = instance.link
    size = {task.id: task.size for task in instance.tasks}
    place = instance.task_index
    waiting = sorted(size, key=lambda task: (start[task], place[task]), reverse=True)
    left: dict[str, float] = {}
    completion: dict[str, float] = {}
    gaps: list[Gap] = []
    clock = 0.0
    while waiting or left:
        if not left:
            clock = start[waiting[-1]] + link.latency
        else:
            pace = link.seconds_per_unit_among(len(left))
            first = min(left, key=lambda task: left[task])
            volume, until = left[first], clock + pace * left[first]
            by_start = bool(waiting) and start[waiting[-1]] + link.latency < until
            if by_start:
                until = start[waiting[-1]] + link.latency
                volume = (until - clock) / pace
            if until > clock:
                gaps.append(Gap(clock, until, tuple(left), 1 / pace))
            clock = until
            left = {task: x - volume for task, x in left.items()}
            if not by_start:
                left[first] = 0.0
            for task in [task for task, x in left.items() if x <= 0]:
                completion[task] = clock
                del left[task]
        while waiting and start[waiting[-1]] + link.latency <= clock:
            task = waiting.pop()
            left[task] = size[task]
    return Schedule(completion, tuple(gaps))
