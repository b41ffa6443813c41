"""Admission policies on one link: srsf-n, adadual and adadual-k."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.heuristics.common.run import HeuristicRun

Admit = Callable[[float, Sequence[float]], bool]
"""Whether a task of a size starts beside tasks with these volumes left, smallest first."""


def srsf_1(instance: CommContentionInstance, *, seed: int = 0) -> HeuristicRun:
    """Shortest remaining service first, one transfer at a time: no contention.

    Parameters
    ----------
    instance : the instance
    seed : not used, the policy is deterministic

    Notes
    -----
    O(n log n + n k). Source: paper 001, section V (SRSF(1)). It claims no ratio.
    """
    return _run(instance, lambda size, left: len(left) < 1)


def srsf_2(instance: CommContentionInstance, *, seed: int = 0) -> HeuristicRun:
    """Shortest remaining service first, at most two transfers at a time.

    Parameters
    ----------
    instance : the instance
    seed : not used, the policy is deterministic

    Notes
    -----
    O(n log n + n k). Source: paper 001, section V (SRSF(2)). It claims no ratio.
    """
    return _run(instance, lambda size, left: len(left) < 2)


def srsf_3(instance: CommContentionInstance, *, seed: int = 0) -> HeuristicRun:
    """Shortest remaining service first, at most three transfers at a time.

    Parameters
    ----------
    instance : the instance
    seed : not used, the policy is deterministic

    Notes
    -----
    O(n log n + n k). Source: paper 001, section V (SRSF(3)). It claims no ratio.
    """
    return _run(instance, lambda size, left: len(left) < 3)


def adadual(instance: CommContentionInstance, *, seed: int = 0) -> HeuristicRun:
    """AdaDUAL: start beside one other transfer iff M_new / M_left < b / (2 (b + eta)); never beside two.

    For two transfers this is the best decision (Theorems 1 and 2). For more there is no constant ratio: see the
    guarantee ``001-adadual-unbounded``.

    Parameters
    ----------
    instance : the instance
    seed : not used, the policy is deterministic

    Notes
    -----
    O(n log n + n k). Source: paper 001, Algorithm 2.
    """
    b, eta = instance.link.seconds_per_unit, instance.link.contention_penalty

    def admit(size: float, left: Sequence[float]) -> bool:
        return not left or (len(left) == 1 and 2 * (b + eta) * size < b * left[0])

    return _run(instance, admit)


def adadual_k(instance: CommContentionInstance, *, seed: int = 0) -> HeuristicRun:
    """AdaDUAL for any number of running transfers (ours).

    A task of size m starts beside transfers with x_1 <= ... <= x_k left iff for every l, with T_l the time until
    the l-th of them ends when the task stays away::

        2 (b + eta) (sum_i min(m, x_i) - sum_{i > l} min(m, x_i - x_l)) < T_l

    This is the best start of one newcomer when nobody else arrives (docs/proofs-comm-contention.md); for k = 1 it
    is AdaDUAL.

    Parameters
    ----------
    instance : the instance
    seed : not used, the policy is deterministic

    Notes
    -----
    O(k^2) per decision. Source: ours, after paper 001, Algorithm 2.
    """
    b, eta = instance.link.seconds_per_unit, instance.link.contention_penalty
    return _run(instance, lambda size, left: starts_now(size, left, b, eta))


def starts_now(size: float, left: Sequence[float], b: float, eta: float) -> bool:
    """The rule of adadual-k: whether starting now beats every completion.

    Parameters
    ----------
    size : m, the newcomer's units
    left : x_1 <= ... <= x_k, units left of the transfers that run
    b, eta : the link
    """
    k = len(left)
    now = sum(min(size, x) for x in left)
    end, moved = 0.0, 0.0
    for position, x in enumerate(left):
        active = k - position
        end += (x - moved) * (active * b + (active - 1) * eta)
        moved = x
        then = sum(min(size, y - x) for y in left[position + 1 :])
        if not 2 * (b + eta) * (now - then) < end:
            return False
    return True


def _run(instance: CommContentionInstance, admit: Admit) -> HeuristicRun:
    """Ask the waiting tasks, smallest first, at every release and completion, until one is refused.

    A task in its latency counts as active for admission, with its whole size left, and does not load the link.
    """
    link, tasks = instance.link, instance.tasks
    arriving = sorted(range(len(tasks)), key=lambda j: (tasks[j].release, j), reverse=True)
    queue: list[tuple[float, int]] = []
    start: dict[str, float] = {}
    left: dict[int, float] = {}
    ready: list[tuple[float, int]] = []  # admitted, in their latency
    clock = 0.0
    while arriving or queue or left or ready:
        moments = [tasks[arriving[-1]].release] if arriving else []
        if ready:
            moments.append(ready[0][0])
        pace = link.seconds_per_unit_among(len(left)) if left else 0.0
        ending = min(left, key=lambda j: left[j]) if left else -1
        if left:
            moments.append(clock + pace * left[ending])
        following = min(moments)
        asked = False
        if left:
            by_end = following == moments[-1]
            volume = left[ending] if by_end else (following - clock) / pace
            left = {j: max(0.0, x - volume) for j, x in left.items()}
            over = [j for j, x in left.items() if x <= 1e-12 * tasks[j].size]
            for j in over:
                del left[j]
            asked = bool(over)
        clock = following
        while ready and ready[0][0] <= clock:
            j = heapq.heappop(ready)[1]
            left[j] = tasks[j].size
        while arriving and tasks[arriving[-1]].release <= clock:
            j = arriving.pop()
            heapq.heappush(queue, (tasks[j].size, j))
            asked = True
        while asked and queue:
            size, j = queue[0]
            volumes = sorted([*left.values(), *(tasks[i].size for _, i in ready)])
            if not admit(size, volumes):
                break
            heapq.heappop(queue)
            start[tasks[j].id] = clock
            if link.latency > 0:
                heapq.heappush(ready, (clock + link.latency, j))
            else:
                left[j] = size
    return HeuristicRun({"start": start})
