"""The independent checker of comm-contention: rationals or proven enclosures, every rate computed here.

It shares no code with the dynamics, the models or the heuristics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from schedgap.formulations.comm_contention.check_replay import replay
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import LARGEST, Solution
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact

_ZERO = Fraction(0)
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")
LONGEST = 1000
"""Characters of a start that is written as text."""


def check(instance: CommContentionInstance, solution: Solution) -> CheckReport:
    """Check `solution` and recompute its mean flow time.

    Every transfer is replayed: with k transfers past their latency, each moves 1 / (k b + (k - 1) eta) units
    per second. The replay is audited by the volume identity, with s_j the admission and V_ij the volume that
    each of i and j moves while both are active::

        sum_j (C_j - s_j - a) = b sum_j M_j + 2 (b + eta) sum_{i<j} V_ij

    Parameters
    ----------
    instance : the instance
    solution : ``{"start": {task: time}}``, seconds, the moment at which it is admitted. ``"exact": {task: text}``
        may give some of them with more digits: a decimal that rounds to the one in ``start``, and is used instead

    Returns
    -------
    CheckReport
        Violations of "release" (admitted before its release by more than 1e-9 relative). The objective is the
        mean of completion - release in seconds: exact up to 100 tasks; for more, every completion is within
        1e-15 of the time since its admission, relative, which is proven and verified on the way
        (:func:`~schedgap.formulations.comm_contention.check_replay.replay_enclosed`). ``details`` has
        ``completion`` (seconds by task), ``shared_volume`` (sum of V_ij) and ``most_active``.

    Raises
    ------
    InputError
        The object is malformed: a missing or unknown key or task, or a value that is not a finite number.
    Disagreement
        The replay breaks the volume identity, which is a fault of the checker itself.

    Notes
    -----
    O(n log n) operations on rationals (up to 100 tasks) or on long integers.
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
    outcome = replay(instance, start)
    flow = [end - exact(task.release) for task, end in zip(instance.tasks, outcome.completion, strict=True)]
    details: dict[str, Any] = {
        "completion": {t.id: float(end) for t, end in zip(instance.tasks, outcome.completion, strict=True)},
        "shared_volume": float(outcome.shared),
        "most_active": outcome.most,
    }
    return CheckReport(tuple(violations), sum(flow, _ZERO) / len(flow), details)


def _read(instance: CommContentionInstance, solution: Any) -> list[Fraction]:
    if not isinstance(solution, Mapping):
        raise InputError(f"solution: must be a JSON object, got {type(solution).__name__}")
    for key in solution:
        if key not in ("start", "exact"):
            raise InputError(f"solution.{key}: unknown key")
    part = solution.get("start")
    if not isinstance(part, Mapping):
        raise InputError("solution.start: must be an object with a time for each task")
    finer = solution.get("exact", {})
    if not isinstance(finer, Mapping):
        raise InputError("solution.exact: must be an object with decimals as text")
    for key, named in (("start", part), ("exact", finer)):
        for task_id in named:
            if task_id not in instance.task_index:
                raise InputError(f'solution.{key}: there is no task "{task_id}"')
    result: list[Fraction] = []
    for task in instance.tasks:
        if task.id not in part:
            raise InputError(f'solution.start: task "{task.id}" is missing')
        value = part[task.id]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"solution.start.{task.id}: must be a number of seconds, got {value!r}")
        if not math.isfinite(value) or abs(value) > LARGEST:
            raise InputError(f"solution.start.{task.id}: out of range, got {value!r}")
        result.append(_finer(solution, task.id, value))
    return result


def _finer(solution: Mapping[str, Any], task_id: str, value: float) -> Fraction:
    """The start of a task as it is written under "exact", and the given value where it is not."""
    text = solution.get("exact", {}).get(task_id)
    if text is None:
        return exact(value)
    if not isinstance(text, str) or len(text) > LONGEST or not _DECIMAL.fullmatch(text):
        shown = repr(text) if len(repr(text)) <= 60 else f"{repr(text)[:57]}..."
        raise InputError(f'solution.exact.{task_id}: must be a decimal such as "0.25" as text, got {shown}')
    number = Fraction(text)
    if float(number) != value:
        raise InputError(f"solution.exact.{task_id}: does not round to the start, {value!r}, got {float(number)!r}")
    return number
