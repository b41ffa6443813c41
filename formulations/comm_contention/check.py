"""The independent checker of comm-contention: rationals or proven enclosures, every rate computed here.

It shares no code with the dynamics, the models or the heuristics.
"""

from __future__ import annotations

from typing import Any

from schedgap.formulations.comm_contention.check_replays import ZERO, replay
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.comm_contention.solution import CommContentionSolution
from schedgap.formulations.common.check import CheckReport, Violation
from schedgap.formulations.common.numbers import CHECK_TOLERANCE, exact
from schedgap.formulations.common.solution import one_for_each


def check(instance: CommContentionInstance, solution: CommContentionSolution) -> CheckReport:
    """Check `solution` and recompute its mean flow time.

    Every transfer is replayed: with k transfers past their latency, each moves 1 / (k b + (k - 1) eta) units
    per second. The replay is audited by the volume identity, with s_j the admission and V_ij the volume that
    each of i and j moves while both are active::

        sum_j (C_j - s_j - a) = b sum_j M_j + 2 (b + eta) sum_{i<j} V_ij

    Parameters
    ----------
    solution : the moment at which each task is admitted

    Returns
    -------
    CheckReport
        Violations of "release" (admitted before its release by more than 1e-9 relative). The objective is the
        mean of completion - release in seconds: exact up to 100 tasks; for more, every completion is within
        1e-15 of the time since its admission, relative, which is proven and verified on the way
        (:func:`~schedgap.formulations.comm_contention.check_replays.replay_enclosed`). ``details`` has
        ``completion`` (seconds by task), ``shared_volume`` (sum of V_ij) and ``most_active``.

    Raises
    ------
    InputError
        A task is missing, or the instance does not have it.
    Disagreement
        The replay breaks the volume identity, which is a fault of the checker itself.

    Notes
    -----
    O(n log n) operations on rationals (up to 100 tasks) or on long integers.
    Source: paper 001, eq. (5); the identity is ours (docs/proofs-comm-contention.md).
    """
    one_for_each(solution.start, instance.task_index, "start", "task")
    start = [solution.moment(task.id) for task in instance.tasks]
    violations: list[Violation] = []
    for task, begun in zip(instance.tasks, start, strict=True):
        released = exact(task.release)
        early = released - begun
        if early > CHECK_TOLERANCE * abs(released):
            text = f"task {task.id}: admitted at {float(begun):.10g}, released at {task.release:.10g}"
            violations.append(Violation("release", text, float(early)))
    outcome = replay(instance, start)
    flow = [end - exact(task.release) for task, end in zip(instance.tasks, outcome.completion, strict=True)]
    details: dict[str, Any] = {
        "completion": {t.id: float(end) for t, end in zip(instance.tasks, outcome.completion, strict=True)},
        "shared_volume": float(outcome.shared),
        "most_active": outcome.max_active,
    }
    return CheckReport(tuple(violations), sum(flow, ZERO) / len(flow), details)
