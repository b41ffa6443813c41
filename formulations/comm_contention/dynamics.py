"""What a set of admissions means: completions, and who transfers at which rate when."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.state import LinkState
from schedgap.formulations.common.numbers import exact

BITS = 512
"""Of the replay, behind the last decimal of the instance."""


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
    instance : the instance
    start : seconds, the admission of every task

    Returns
    -------
    Schedule
        Replayed with 512 bits behind the decimals of the instance; gaps shorter than floating point can tell are left
        out. The checker has its own replay.

    Notes
    -----
    O(n (k + log n)) for at most k active transfers.
    """
    state, tasks = LinkState(instance, BITS), instance.tasks
    begin = [moment if isinstance(moment, Fraction) else exact(moment) for moment in (start[t.id] for t in tasks)]
    waiting = sorted(range(len(tasks)), key=lambda j: (begin[j], j), reverse=True)
    completion: dict[str, float] = {}
    gaps: list[Gap] = []
    while waiting or len(state):
        while waiting:
            moment = math.ceil(begin[waiting[-1]] * state.second)
            following = state.following()
            if following is not None and moment + state.latency > following:
                break
            state.admit(waiting.pop(), moment)
        before, active, known = state.clock, sorted(state.loading), len(state.done)
        rate = state.second / (state.pace() * state.unit) if active else 0.0
        state.step()
        begun, until = before / state.second, state.clock / state.second
        if active and until > begun:
            gaps.append(Gap(begun, until, tuple(tasks[j].id for j in active), rate))
        completion.update((tasks[j].id, until) for j in state.done[known:])
    return Schedule(completion, tuple(gaps))
