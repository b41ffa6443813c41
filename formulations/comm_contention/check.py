"""The independent checker of comm-contention: exact rationals, every rate computed here.

It shares no code with the dynamics, the models or the heuristics.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import Disagreement, InputError
from schedgap.formulations.common.instance import LARGEST, Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact

_ZERO = Fraction(0)


def check(instance: CommContentionInstance, solution: Solution) -> CheckReport:
    """Check `solution` and recompute its mean flow time.

    Every transfer is replayed: with k transfers past their latency, each moves 1 / (k b + (k - 1) eta) units
    per second. The replay is audited by the volume identity, with s_j the admission and V_ij the volume that
    each of i and j moves while both are active::

        sum_j (C_j - s_j - a) = b sum_j M_j + 2 (b + eta) sum_{i<j} V_ij

    Parameters
    ----------
    instance : the instance
    solution : ``{"start": {task: time}}``, seconds, the moment at which it is admitted

    Returns
    -------
    CheckReport
        Violations of "release" (admitted before its release by more than 1e-9 relative). The objective is the
        mean of completion - release in seconds. ``details`` has ``completion`` (seconds by task),
        ``shared_volume`` (sum of V_ij) and ``most_active``.

    Raises
    ------
    InputError
        The object is malformed: a missing or unknown key or task, or a value that is not a finite number.
    Disagreement
        The replay breaks the volume identity, which is a fault of the checker itself.

    Notes
    -----
    O(n log n) exact operations, with numbers that grow by the digits of one rate per event of a busy period.
    Source: paper 001, eq. (5); the identity is ours (docs/proofs-comm-contention.md).
    """
    start = _read(instance, solution)
    violations: list[Violation] = []
    for task, begun in zip(instance.tasks, start, strict=True):
        released = exact(task.release)
        early = released - begun
        if early > CHECK_TOLERANCE * max(Fraction(1), abs(released)):
            text = f"task {task.id}: admitted at {float(begun):.10g}, released at {task.release:.10g}"
            violations.append(Violation("release", text, float(early)))
    replay = _replay(instance, start)
    flow = [end - exact(task.release) for task, end in zip(instance.tasks, replay.completion, strict=True)]
    details: dict[str, Any] = {
        "completion": {t.id: float(end) for t, end in zip(instance.tasks, replay.completion, strict=True)},
        "shared_volume": float(replay.shared),
        "most_active": replay.most,
    }
    return CheckReport(tuple(violations), sum(flow, _ZERO) / len(flow), details)


@dataclass(frozen=True)
class _Replay:
    """Completion of each task, the sum of V_ij, and the largest number of active transfers."""

    completion: list[Fraction]
    shared: Fraction
    most: int


def _read(instance: CommContentionInstance, solution: Any) -> list[Fraction]:
    if not isinstance(solution, Mapping):
        raise InputError(f"solution: must be a JSON object, got {type(solution).__name__}")
    for key in solution:
        if key != "start":
            raise InputError(f"solution.{key}: unknown key")
    part = solution.get("start")
    if not isinstance(part, Mapping):
        raise InputError("solution.start: must be an object with a time for each task")
    for task_id in part:
        if task_id not in instance.task_index:
            raise InputError(f'solution.start: there is no task "{task_id}"')
    result: list[Fraction] = []
    for task in instance.tasks:
        if task.id not in part:
            raise InputError(f'solution.start: task "{task.id}" is missing')
        value = part[task.id]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"solution.start.{task.id}: must be a number of seconds, got {value!r}")
        if not math.isfinite(value) or abs(value) > LARGEST:
            raise InputError(f"solution.start.{task.id}: out of range, got {value!r}")
        result.append(exact(value))
    return result


def _replay(instance: CommContentionInstance, start: Sequence[Fraction]) -> _Replay:
    """Run the transfers as they were admitted.

    All active transfers move the same volume, so `moved` (what each one active throughout has moved since the
    beginning) and the value it has when a transfer ends are all there is to keep.
    """
    latency, alone, penalty = (
        exact(number)
        for number in (instance.link.latency, instance.link.seconds_per_unit, instance.link.contention_penalty)
    )
    sizes = [exact(task.size) for task in instance.tasks]
    waiting = sorted(range(len(sizes)), key=lambda j: (start[j], j), reverse=True)
    completion = [_ZERO] * len(sizes)
    ends: list[tuple[Fraction, int]] = []
    clock = moved = shared = _ZERO
    most = 0
    while waiting or ends:
        active = len(ends)
        if not active:
            moved = _ZERO  # keeps the numbers short; nothing refers to the old value
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
    spent = sum((end - begun - latency for end, begun in zip(completion, start, strict=True)), _ZERO)
    if spent != alone * sum(sizes, _ZERO) + 2 * (alone + penalty) * shared:
        raise Disagreement("comm-contention: the checker's replay breaks the volume identity")
    return _Replay(completion, shared, most)
