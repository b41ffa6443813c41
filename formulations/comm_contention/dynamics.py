"""What a set of admissions means: completions, and who transfers at which rate when."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.state import FINE, LinkState, near
from schedgap.formulations.common.numbers import exact

BITS = 128
"""Of the first replay, behind the last decimal of the instance."""
PRECISION = 10**13
"""Replays behind and ahead of the exact one may differ by 1e-13 of the sum of flow times."""


@dataclass(frozen=True)
class Gap:
    """A stretch of time between two events.

    Attributes
    ----------
    begin, end : seconds
    active : ids of the transfers past their latency, in the order of the instance
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


def simulate(instance: CommContentionInstance, start: Mapping[str, float | Fraction]) -> Schedule:
    """Replay admissions: with k transfers past their latency each moves 1 / (k b + (k - 1) eta) per second.

    Parameters
    ----------
    start : seconds, the admission of every task

    Returns
    -------
    Schedule
        All completions together are right to 1e-13 of the sum of flow times, which two replays enclose. Gaps shorter
        than floating point can tell are left out. The checker has its own replay.

    Notes
    -----
    O(n (k + log n)) for at most k active transfers.
    """
    tasks = instance.tasks
    begin = [moment if isinstance(moment, Fraction) else exact(moment) for moment in (start[t.id] for t in tasks)]
    bits = BITS
    while True:
        state, other = LinkState(instance, bits), LinkState(instance, bits, ahead=True)
        gaps: list[Gap] = []
        for before, active, pace in state.replay(begin):
            begun, until = before / state.second, state.clock / state.second
            if active and until > begun:
                names = tuple(tasks[j].id for j in sorted(active))
                gaps.append(Gap(begun, until, names, state.second / (pace * state.unit)))
        deque(other.replay(begin), maxlen=0)
        if near(state, other, PRECISION):
            ends = {
                j: moment / (state.second << FINE >> bits) for j, moment in zip(state.done, state.ended, strict=True)
            }
            return Schedule({task.id: ends[j] for j, task in enumerate(tasks)}, tuple(gaps))
        bits *= 4
