"""What a set of admissions means: completions, and who transfers at which rate when."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact

# A link with its transfers in whole numbers: what policies, written schedules and figures are replayed on.

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
    bits : as given, else 0
    unit, second : volume units in one unit of the instance and time units in a second, before any division
    scale : by how much the units have been divided since
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
"""Of the first replay, behind the last decimal of the instance."""
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


# Admissions as they are written down: no start before a completion that it follows.

FURTHER = (40, 160, 640)
"""Decimals behind those of the instance that are tried where floating-point numbers are too coarse."""
WRITTEN_WITHIN = 10**11
"""A written schedule is near enough when its flow times differ from the wanted ones by 1e-11 of their sum."""


@dataclass(frozen=True)
class Admission:
    """One start, relative to what comes before it."""

    task: int  # position in the instance
    moment: Fraction  # seconds, the start is not before it
    after: int  # nor is it before any of the first so many completions


def starts_of(solution: Solution) -> dict[str, Fraction]:
    """The admission of each task in seconds: ``exact`` where the solution has it, else ``start``."""
    finer: Mapping[str, str] = solution.get("exact", {})
    return {task: Fraction(finer[task]) if task in finer else exact(x) for task, x in solution["start"].items()}


def written(
    instance: CommContentionInstance,
    admissions: Sequence[Admission],  # of all tasks, in order of time
    completions: Sequence[int],  # the tasks in the order in which they complete
    ended: Sequence[int] | None = None,  # their moments in the units of :attr:`LinkState.ended`, where they are known
    *,
    overlap: bool = False,  # the first unit follows the completions, and the latency may pass before them
) -> Solution | None:
    """The solution in which every start is rounded up, after the completions that it follows.

    A start that is early by one unit in the last place shares volume with the transfer before it, and each later start
    of this kind multiplies the loss by about 1 + eta / b. So the schedule is replayed as it is written: a start is the
    first number not before the completion that the written starts before it lead to. Rounding then adds up
    and is not multiplied. Where starts at given moments multiply it all the same, decimals are added.

    Returns
    -------
    ``{"start": {task: seconds}}``, with ``"exact": {task: decimal}`` for the starts that need more digits than a
    floating-point number has. With `ended`, the sum of flow times differs by less than 1e-11 from the one meant,
    relative; None where 640 decimals are not enough for that.

    Notes
    -----
    O(n log n) operations on integers of 128 bits beyond the instance's decimals, and more where replays behind and
    ahead of the exact one are not near each other, or with more digits.
    """
    for decimals in (None, *FURTHER):
        bits = BITS if decimals is None else BITS + 4 * decimals
        while True:
            state, other = LinkState(instance, bits), LinkState(instance, bits, ahead=True)
            solution = _replayed(state, instance, admissions, completions, decimals, overlap)
            finer = starts_of(solution)
            deque(other.replay([finer[task.id] for task in instance.tasks]), maxlen=0)
            if near(state, other, 10 * WRITTEN_WITHIN):
                break
            bits *= 4
        if ended is None or _meant(state, completions, ended):
            return solution
    return None


def _replayed(
    state: LinkState,
    instance: CommContentionInstance,
    admissions: Sequence[Admission],
    completions: Sequence[int],
    decimals: int | None,
    overlap: bool,
) -> Solution:
    """The starts with so many further decimals; what they lead to is left in `state`."""
    digits = None if decimals is None else decimals + len(str(state.second >> state.bits))
    tasks = instance.tasks
    start: dict[str, float] = {}
    finer: dict[str, str] = {}
    end: dict[int, int] = {}
    ahead = state.latency if overlap else 0
    over, latest = 0, 0
    for admission in admissions:
        while over < admission.after:
            if completions[over] in end:
                latest = max(latest, end[completions[over]])
                over += 1
            else:
                known = len(state.done)
                state.step()
                end.update(dict.fromkeys(state.done[known:], state.clock))
        moment = max(admission.moment, Fraction(latest - ahead, state.second))
        value = not_before(moment)
        begun, text = exact(value), None
        if digits is not None and begun != moment:
            text = _decimal(-(-moment.numerator * 10**digits // moment.denominator), digits)
            begun, value = Fraction(text), float(text)
        name = tasks[admission.task].id
        start[name] = value
        if text is not None:
            finer[name] = text
        state.admit(admission.task, math.ceil(begun * state.second))
    while len(state):
        state.step()
    solution: dict[str, Any] = {"start": {task.id: start[task.id] for task in tasks}}
    if finer:
        solution["exact"] = finer
    return solution


def _meant(state: LinkState, completions: Sequence[int], ended: Sequence[int]) -> bool:
    """Whether the replay ends its tasks when they should."""
    wanted = dict(zip(completions, ended, strict=True))
    off = sum(abs(moment - wanted[task]) for task, moment in zip(state.done, state.ended, strict=True))
    return WRITTEN_WITHIN * off <= sum(ended) - (sum(state.release) << FINE >> state.bits)


def not_before(moment: Fraction) -> float:
    """The first floating-point number whose decimal form is not less."""
    value = float(moment)
    while exact(value) < moment:
        value = math.nextafter(value, math.inf)
    return value


def _decimal(number: int, digits: int) -> str:
    """number / 10^digits as text."""
    text = str(number).rjust(digits + 1, "0")
    return f"{text[:-digits]}.{text[-digits:]}"


# The best schedule with a given order of events: a small linear program.

Floats = NDArray[np.float64]
Event = tuple[int, bool]
"""Task position, and whether it is the start (else the completion)."""
_NEAR = 1e-10
"""Of the span of the starts: a start that is this near its release is at its release."""
_TWINS = 1e-5
"""Of their size: tasks that differ by less, in size or in what passes between their releases, are twins."""
_FINEST = 1e-12
"""Of the span of the releases: the shortest unit of time."""


def best_among_twins(instance: CommContentionInstance, order: Sequence[Event]) -> Solution | None:
    """The best schedule with this order of events, or with twins exchanged in it, whatever an engine took them for.

    Tasks are twins where sizes and releases differ by less than an engine's tolerances tell apart: to an engine, the
    orders that differ in twins alone have the same value, so it may return any of them. Exchanges are made while one
    gains, by values that are right to 1e-13. Returns the solution, or None where no schedule has this order.

    Parameters
    ----------
    order : all 2 n events, each start before its completion

    Notes
    -----
    One linear program for the order, and one for each exchange that is tried.
    """
    best = best_of_order(instance, order)
    pairs = [(i, j) for j in range(len(instance.tasks)) for i in range(j) if _twins(instance, i, j)]
    if best is None or not pairs:
        return best
    value, gained = _flow(instance, best), True
    while gained:
        gained = False
        for i, j in pairs:
            other = {i: j, j: i}
            changed = [(other.get(k, k), starts) for k, starts in order]
            found = best_of_order(instance, changed)
            if found is not None and (flow := _flow(instance, found)) < value:
                best, value, order, gained = found, flow, changed, True
    return best


def _twins(instance: CommContentionInstance, i: int, j: int) -> bool:
    one, other = instance.tasks[i], instance.tasks[j]
    apart = max(abs(one.release - other.release) / instance.link.seconds_per_unit, abs(one.size - other.size))
    return apart <= _TWINS * max(one.size, other.size)


def _flow(instance: CommContentionInstance, solution: Solution) -> float:
    return math.fsum(simulate(instance, starts_of(solution)).completion.values())


def best_of_order(instance: CommContentionInstance, order: Sequence[Event]) -> Solution | None:
    """The schedule of least mean flow time whose starts and completions come in this order.

    One variable per event, the length of the gap before it: seconds while the link is idle, otherwise the volume
    that each active task moves. Latency shifts releases.

    Parameters
    ----------
    order : all 2 n events, each start before its completion

    Returns
    -------
    The solution, or None where no schedule has this order. Its starts follow the completions before them in the
    order, in exact arithmetic; where rounding may change the order of two completions, the value may be better.

    Notes
    -----
    A linear program with 2 n variables (scipy's HiGHS, dual simplex).
    """
    from scipy.optimize import linprog  # slow to load, and only this function needs it

    link, tasks = instance.link, instance.tasks
    n = len(tasks)
    # Volumes are shares of the largest, time is in what that takes alone: the program's tolerances are absolute.
    first, last = (pick(task.release for task in tasks) for pick in (min, max))
    largest = max(task.size for task in tasks)
    second = max(largest * link.seconds_per_unit, _FINEST * (last - first))
    pace = np.ones(2 * n)
    volume = np.zeros((n, 2 * n))
    active: list[int] = []
    done = 0
    cost = np.zeros(2 * n)
    begun = np.zeros(n, dtype=np.int64)
    for position, (j, starts) in enumerate(order):
        if active:
            pace[position] = link.seconds_per_unit_among(len(active)) * largest / second
            volume[active, position] = 1.0
        cost[position] = pace[position] * (n - done)
        if starts:
            active.append(j)
            begun[j] = position
        else:
            active.remove(j)
            done += 1
    until = np.array([[pace[p] if p <= begun[j] else 0.0 for p in range(2 * n)] for j in range(n)])
    release = np.array([(task.release - first) / second for task in tasks])
    found = linprog(
        cost,
        A_ub=-until,
        b_ub=-release,
        A_eq=volume,
        b_eq=np.array([task.size / largest for task in tasks]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.status != 0 or found.x is None:
        return None
    admissions = _admissions(instance, order, found.x, (until @ found.x) * second + first)
    return written(instance, admissions, [j for j, starts in order if not starts], overlap=True)


def _admissions(
    instance: CommContentionInstance, order: Sequence[Event], gaps: Floats, moments: Floats
) -> list[Admission]:
    """The starts of an order: with the event before it, at its release, or at the moment of the linear program."""
    near = _NEAR * (float(max(moments)) - min(task.release for task in instance.tasks))
    result: list[Admission] = []
    done, latest = 0, Fraction(0)
    for position, (j, starts) in enumerate(order):
        if not starts:
            done += 1
            continue
        release, moment = instance.tasks[j].release, float(moments[j])
        latest = max(latest, exact(release))
        if gaps[position] > 0 and moment > release + near:
            latest = max(latest, exact(moment))
        result.append(Admission(j, latest, done))
    return result


# A quick schedule without contention, for where nothing better is known.


def one_at_a_time(instance: CommContentionInstance) -> Solution:
    """Whenever the link is free, the smallest task that is there starts; always feasible.

    Starts are rounded up, in exact arithmetic, so that no transfer meets the one before it.

    Notes
    -----
    O(n log n).
    """
    tasks = instance.tasks
    latency, alone, _ = instance.link.exact_parameters()
    arriving = sorted(range(len(tasks)), key=lambda j: (tasks[j].release, j), reverse=True)
    waiting: list[tuple[float, int]] = []
    start: dict[str, float] = {}
    clock = Fraction(0)
    while arriving or waiting:
        if not waiting:
            clock = max(clock, exact(tasks[arriving[-1]].release))
        while arriving and exact(tasks[arriving[-1]].release) <= clock:
            j = arriving.pop()
            heapq.heappush(waiting, (tasks[j].size, j))
        size, j = heapq.heappop(waiting)
        start[tasks[j].id] = not_before(clock)
        clock = exact(start[tasks[j].id]) + latency + alone * exact(size)
    return {"start": start}
