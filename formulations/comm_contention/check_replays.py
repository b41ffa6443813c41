"""The two replays of comm-contention's checker: in rationals, and between two roundings for many tasks.

Only the checker uses them; they share no code with the dynamics, the models or the heuristics.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.numbers import exact

EXACTLY = 100
"""Up to this many tasks are replayed in rationals, whose length grows with every start of a busy period."""


BITS = 128
"""Bits behind the last decimal of the instance, in the first attempt of the rounded replay."""


WIDTH = 10**15
"""A completion is known well enough when its enclosure is at most this part of the time since its admission."""


ZERO = Fraction(0)


@dataclass(frozen=True)
class Replay:
    """What a schedule means."""

    completion: list[Fraction]  # seconds, of each task
    shared: Fraction  # units, the sum of V_ij over pairs
    max_active: int  # the largest number of transfers that are active together


def replay(instance: CommContentionInstance, start: Sequence[Fraction]) -> Replay:
    """Run the transfers as they were admitted: exactly up to ``EXACTLY`` tasks, else within 1e-15 relative.

    Raises Disagreement: the replay breaks the volume identity, which is a fault of the checker itself.

    Parameters
    ----------
    start : seconds, the admission of each task
    """
    few = len(instance.tasks) <= EXACTLY
    return replay_exactly(instance, start) if few else replay_enclosed(instance, start)


def replay_exactly(instance: CommContentionInstance, start: Sequence[Fraction]) -> Replay:
    """Replay in rationals.

    All active transfers move the same volume, so `moved` (what each one active throughout has moved since the
    beginning) and the value it has when a transfer ends are all there is to keep.

    Notes
    -----
    O(n log n) operations on numbers that grow by the digits of one rate per start of a busy period.
    """
    latency, alone, penalty = _link(instance)
    sizes = [exact(task.size) for task in instance.tasks]
    waiting = sorted(range(len(sizes)), key=lambda j: (start[j], j), reverse=True)
    completion = [ZERO] * len(sizes)
    ends: list[tuple[Fraction, int]] = []
    clock = moved = shared = ZERO
    most = 0
    while waiting or ends:
        active = len(ends)
        if not active:
            moved = ZERO  # keeps the numbers short; nothing refers to the old value
            clock = start[waiting[-1]] + latency
        else:
            pace = active * alone + (active - 1) * penalty
            volume = ends[0][0] - moved
            if waiting:
                volume = min(volume, (start[waiting[-1]] + latency - clock) / pace)
            clock += pace * volume
            moved += volume
            shared += volume * (active * (active - 1) // 2)
        while ends and ends[0][0] == moved:
            completion[heapq.heappop(ends)[1]] = clock
        while waiting and start[waiting[-1]] + latency <= clock:
            j = waiting.pop()
            heapq.heappush(ends, (moved + sizes[j], j))
        most = max(most, len(ends))
    spent = sum((end - begun - latency for end, begun in zip(completion, start, strict=True)), ZERO)
    if spent != alone * sum(sizes, ZERO) + 2 * (alone + penalty) * shared:
        raise Disagreement("comm-contention: the checker's replay breaks the volume identity")
    return Replay(completion, shared, most)


def replay_enclosed(instance: CommContentionInstance, start: Sequence[Fraction]) -> Replay:
    """Replay twice in integers, once with too little and once with too much moved; the truth lies between.

    Guarantee, with C_j the exact completion and c_j the one returned::

        |C_j - c_j| <= 1e-15 (C_j - s_j)    for every task j

    Proof. Units are such that sizes, starts and all 1 / rate are integers, so that moving a whole number of volume
    units takes a whole number of time units and a completion needs no rounding. Only the volume moved up to
    a start is rounded: down in the upper run, which then idles for the rest of the time, and up in the lower
    run, never beyond the next completion. Say that a state is behind another when each transfer has at least as
    much left in it. A state that is behind stays behind as long as both follow the rates: where a transfer has
    equally much left in both, the one behind has no fewer active and is no faster (monotony,
    docs/proofs-comm-contention.md). Rounding down keeps the upper run behind the exact one, rounding up keeps the
    exact one behind the lower run. So lower C_j <= C_j <= upper C_j for any precision, whatever the order
    of events in the three. The middle is returned once all enclosures are narrow enough; until then the
    precision is quadrupled. That ends, since a completion is a continuous function of what was moved.

    In each run the volume identity holds exactly when the time lost to (or won by) rounding is added::

        sum_j (C_j - s_j - a) = b sum_j M_j + 2 (b + eta) sum_{i<j} V_ij + sum_rounding (active * time lost)

    `shared` follows from the identity and the completions returned. `most` is that of the lower run: transfers
    that touch for less than the rounding do not count as together. Raises Disagreement: a run breaks the identity, or
    the upper run ends something before the lower one.

    Notes
    -----
    O(n log n) operations on integers of 128 bits beyond the instance's decimals. An error can grow by the factor
    1 + eta / b per task of a chain in which each start interrupts the one before, so such chains may need
    more: O(n log(1 + eta / b)) bits at worst. Source: ours.
    """
    _, alone, penalty = _link(instance)
    bits = BITS
    while True:
        rounded = Rounded(instance, start, bits)
        low, high = rounded.run(up=False), rounded.run(up=True)
        for run in (low, high):
            if not rounded.balanced(run):
                raise Disagreement("comm-contention: the checker's replay breaks the volume identity")
        if any(a > b for a, b in zip(low.completion, high.completion, strict=True)):
            raise Disagreement("comm-contention: the checker's upper replay is before the lower one")
        if rounded.narrow(low, high):
            break
        bits *= 4
    middle = [Fraction(a + b, 2 * rounded.second) for a, b in zip(low.completion, high.completion, strict=True)]
    total = Fraction(sum(low.completion) + sum(high.completion), 2 * rounded.second)
    spent = total - Fraction(sum(rounded.begin), rounded.second)
    volume = Fraction(sum(rounded.sizes), rounded.unit)
    return Replay(middle, (spent - alone * volume) / (2 * (alone + penalty)), low.max_active)


@dataclass(frozen=True)
class Run:
    """One rounded replay, in the integers of :class:`Rounded`."""

    completion: list[int]  # time units, of each task
    shared: int  # volume units, the sum of V_ij
    lost: int  # time units, summed over the active transfers, for which the run idled; negative when it hurried
    max_active: int  # the largest number active together


class Rounded:
    """An instance and its admissions in integers.

    Attributes
    ----------
    unit : volume units in one unit of the instance
    second : time units in a second
    sizes, begin : size and start of each task; `begin` is the moment of the first unit
    alone, penalty : time units per volume unit
    """

    def __init__(self, instance: CommContentionInstance, start: Sequence[Fraction], bits: int) -> None:
        latency, alone, penalty = _link(instance)
        sizes = [exact(task.size) for task in instance.tasks]
        decimals = math.lcm(latency.denominator, *{x.denominator for x in sizes}, *{x.denominator for x in start})
        per = math.lcm(alone.denominator, penalty.denominator)
        self.unit = decimals << bits
        self.second = self.unit * per
        self.sizes = [_times(x, self.unit) for x in sizes]
        first = _times(latency, self.second)
        self.begin = [_times(x, self.second) + first for x in start]
        self.alone, self.penalty = _times(alone, per), _times(penalty, per)

    def run(self, *, up: bool) -> Run:
        """Replay with the volume before each start rounded down (`up`: completions too late) or up."""
        begin, sizes, alone, penalty = self.begin, self.sizes, self.alone, self.penalty
        waiting = sorted(range(len(sizes)), key=lambda j: (begin[j], j), reverse=True)
        completion = [0] * len(sizes)
        ends: list[tuple[int, int]] = []
        clock = moved = shared = lost = most = 0
        while waiting or ends:
            active = len(ends)
            coming = begin[waiting[-1]] if waiting else None
            if not active:
                assert coming is not None
                clock, moved = coming, 0
            else:
                pace = active * alone + (active - 1) * penalty
                volume = ends[0][0] - moved
                until = clock + pace * volume
                if coming is not None and coming < until:
                    time = coming - clock
                    volume = time // pace if up else -(-time // pace)
                    lost += active * (time - pace * volume)
                    until = coming
                clock = until
                moved += volume
                shared += volume * (active * (active - 1) // 2)
            while ends and ends[0][0] == moved:
                completion[heapq.heappop(ends)[1]] = clock
            while waiting and begin[waiting[-1]] <= clock:
                j = waiting.pop()
                heapq.heappush(ends, (moved + sizes[j], j))
            most = max(most, len(ends))
        return Run(completion, shared, lost, most)

    def balanced(self, run: Run) -> bool:
        """Whether the run fulfils the volume identity."""
        spent = sum(run.completion) - sum(self.begin)
        return spent == self.alone * sum(self.sizes) + 2 * (self.alone + self.penalty) * run.shared + run.lost

    def narrow(self, low: Run, high: Run) -> bool:
        """Whether every completion is known to 1e-15 of the time since its first unit."""
        ends = zip(low.completion, high.completion, self.begin, strict=True)
        return all(WIDTH * (late - early) <= early - begun for early, late, begun in ends)


def _link(instance: CommContentionInstance) -> tuple[Fraction, Fraction, Fraction]:
    link = instance.link
    return exact(link.latency), exact(link.seconds_per_unit), exact(link.contention_penalty)


def _times(number: Fraction, factor: int) -> int:
    """The product, where `factor` is a multiple of the denominator."""
    return number.numerator * (factor // number.denominator)
