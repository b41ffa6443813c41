"""Admissions as they are written down: no start before a completion that it follows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from schedgap.formulations.comm_contention.dynamics import BITS, FINE, LinkState, near
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact

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
    admissions: Sequence[Admission],  # admissions of all tasks, in order of time
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
