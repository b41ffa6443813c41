"""A link with its transfers in whole numbers: what policies, written schedules and figures are replayed on."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.numbers import exact

FINE = 64
"""Completions are given in the instance's own time units divided by 2^64."""


class LinkState:
    """Transfers on the link, moment by moment.

    All active transfers move the same volume, so `moved` (what each one active throughout has moved) and the value
    it has when a transfer ends are all there is to keep. Sizes, releases and latency are whole volume and time
    units; a whole number of volume units takes a whole number of time units at any rate, so completions need no
    rounding. Only the volume moved up to a moment between completions may be no whole number. Without `bits` the
    units are then divided until it is one: the state is exact, whatever happens. With `bits` the units are that many
    bits finer from the beginning, and the volume is rounded down, so that every transfer is behind the exact one and
    no completion comes too early (monotony, docs/proofs-comm-contention.md), or with `ahead` up, so that none comes
    too late.

    Parameters
    ----------
    bits : behind the last decimal of the instance; exact where not given
    ahead : round volumes up

    Attributes
    ----------
    bits : binary digits behind the point, else 0
    unit, second : volume units in one unit of the instance and time units in a second, before any division
    scale : factor by which the units have been divided since
    clock : time units, now
    done : the tasks that have completed, in order
    ended : their moments, rounded down, in 2^-FINE of a time unit that has no further bits

    Notes
    -----
    A division lengthens all numbers by the digits of one rate; they are short again when the link is empty.
    """

    def __init__(self, instance: CommContentionInstance, bits: int | None = None, *, ahead: bool = False) -> None:
        latency, alone, penalty = instance.link.exact_parameters()
        sizes = [exact(task.size) for task in instance.tasks]
        releases = [exact(task.release) for task in instance.tasks]
        decimals = math.lcm(latency.denominator, *{x.denominator for x in sizes}, *{x.denominator for x in releases})
        per = math.lcm(alone.denominator, penalty.denominator)
        self.exactly, self.ahead, self.bits = bits is None, ahead, bits or 0
        self.unit = unit = decimals << self.bits
        self.second = unit * per
        self.size = [_times(x, unit) for x in sizes]
        self.release = [_times(x, self.second) for x in releases]
        self.latency = _times(latency, self.second)
        self.alone, self.penalty = _times(alone, per), _times(penalty, per)
        self.scale = 1
        self.clock = self._moved = 0
        self._ends: list[tuple[int, int]] = []
        self._coming: deque[tuple[int, int]] = deque()
        self.done: list[int] = []
        self.ended: list[int] = []

    def __len__(self) -> int:
        """How many are active, those in their latency included."""
        return len(self._ends) + len(self._coming)

    @property
    def loading(self) -> list[int]:
        """The tasks past their latency."""
        return [task for _, task in self._ends]

    def admit(self, task: int, moment: int) -> None:
        """Admit a task at `moment`, not before any earlier admission; its latency passes first."""
        self._coming.append((moment + self.latency * self.scale, task))

    def restart(self) -> None:
        """Forget the division of units; the link must be empty."""
        self.scale, self._moved, self.clock = 1, 0, 0

    def pace(self) -> int:
        """Time units that a volume unit takes now."""
        return len(self._ends) * self.alone + (len(self._ends) - 1) * self.penalty

    def following(self) -> int | None:
        """The moment of the next first unit or completion; None where nobody is active."""
        end = self.clock + self.pace() * (self._ends[0][0] - self._moved) if self._ends else None
        if not self._coming:
            return end
        first = self._coming[0][0]
        return first if end is None else min(first, end)

    def step(self) -> bool:
        """Go to the next first unit or completion; whether a transfer has ended."""
        before = len(self.done)
        if self._ends:
            end = self.clock + self.pace() * (self._ends[0][0] - self._moved)
            if not self._coming or end <= self._coming[0][0]:
                self.clock, self._moved = end, self._ends[0][0]
                moment = (end << FINE) // (self.scale << self.bits)
                while self._ends and self._ends[0][0] == self._moved:
                    self.done.append(heapq.heappop(self._ends)[1])
                    self.ended.append(moment)
            else:
                self._reach_first_unit()
        else:
            self.clock, self._moved = self._coming[0][0], 0
        while self._coming and self._coming[0][0] <= self.clock:
            task = self._coming.popleft()[1]
            heapq.heappush(self._ends, (self._moved + self.size[task] * self.scale, task))
        return len(self.done) > before

    def left(self, moment: int) -> tuple[int, list[int]]:
        """The volumes left of the active ones at `moment`, up to the next event, smallest first, times a factor.

        The factor comes first. It also counts the division of units: a task that waits has size * factor left.
        """
        pace = self.pace() if self._ends else 1
        late = moment - self.clock
        volumes = [(end - self._moved) * pace - late for end, _ in self._ends]
        volumes += [self.size[task] * self.scale * pace for _, task in self._coming]
        return pace * self.scale, sorted(volumes)

    def _reach_first_unit(self) -> None:
        """Move on to the next first unit, within a transfer."""
        pace = self.pace()
        time = self._coming[0][0] - self.clock
        if self.exactly and time % pace:
            factor = pace // math.gcd(time, pace)
            self.scale *= factor
            self.clock, self._moved, time = self.clock * factor, self._moved * factor, time * factor
            self._ends = [(end * factor, task) for end, task in self._ends]  # keeps the order of the heap
            self._coming = deque((moment * factor, task) for moment, task in self._coming)
        self.clock = self._coming[0][0]
        self._moved += -(-time // pace) if self.ahead else time // pace

    def replay(self, start: Sequence[Fraction]) -> Iterator[tuple[int, list[int], int]]:
        """Admit every task at its start in seconds; after each step, what was before it.

        That is the moment, the tasks past their latency, and the time units that a volume unit took.
        """
        rounded = math.floor if self.ahead else math.ceil
        begin = [rounded(moment * self.second) for moment in start]
        waiting = sorted(range(len(begin)), key=lambda j: (begin[j], j), reverse=True)
        while waiting or len(self):
            while waiting:
                following = self.following()
                if following is not None and begin[waiting[-1]] + self.latency > following:
                    break
                task = waiting.pop()
                self.admit(task, begin[task])
            before = self.clock, self.loading, self.pace()
            self.step()
            yield before


def near(one: LinkState, other: LinkState, part: int) -> bool:
    """Whether two replays have the same completions but for 1 / part of the sum of flow times."""
    ends = dict(zip(other.done, other.ended, strict=True))
    off = sum(abs(moment - ends[task]) for task, moment in zip(one.done, one.ended, strict=True))
    return part * off <= sum(one.ended) - (sum(one.release) << FINE >> one.bits)


def _times(number: Fraction, factor: int) -> int:
    """The product, where `factor` is a multiple of the denominator."""
    return number.numerator * (factor // number.denominator)


BITS = 128
"""Bits of the first replay behind the last decimal of the instance."""


PRECISION = 10**13
"""Replays behind and ahead of the exact one may differ by 1e-13 of the sum of flow times."""


@dataclass(frozen=True)
class Gap:
    """A stretch of time between two events."""

    # begin, end: seconds
    begin: float
    end: float
    active: tuple[str, ...]  # ids of the transfers past their latency, in the order of the instance
    rate: float  # units per second of each of them


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
