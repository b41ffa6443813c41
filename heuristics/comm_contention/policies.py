"""Admission policies on one link: srsf-n, adadual and adadual-k.

Idea: at every release and completion the waiting tasks are asked, smallest first, until one is refused. SRSF(n) lets
n transfers share the link. AdaDUAL (Theorem 2) adds a second one where its size is below a share of what the first
has left. Source: paper 001, Theorem 2 and section V-A. Where ours differs: policies run on whole numbers, so that
simultaneous events are simultaneous; `adadual-k` is ours and asks the same question of k transfers, exactly. No ratio
is claimed, and AdaDUAL's is unbounded (`001-adadual-unbounded`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from schedgap.formulations.comm_contention.admissions import Admission, written
from schedgap.formulations.comm_contention.dynamics import LinkState
from schedgap.formulations.comm_contention.instance import CommContentionInstance
from schedgap.formulations.common.numbers import exact
from schedgap.heuristics.common.run import HeuristicRun

Admit = Callable[[LinkState, int, int], bool]
"""Whether a task starts beside those that are active, at a moment."""


def _at_most(limit: int) -> Callable[..., HeuristicRun]:
    def srsf(instance: CommContentionInstance, *, seed: int = 0) -> HeuristicRun:
        return _run(instance, lambda state, task, moment: len(state) < limit)

    srsf.__doc__ = f"""Shortest remaining service first, at most {limit} transfers at a time.

    Parameters
    ----------
    instance : the instance
    seed : not used, the policy is deterministic

    Notes
    -----
    O(n (log n + k)) operations, exact: see :class:`LinkState`. It claims no ratio. Source: paper 001, section V
    (SRSF({limit})).
    """
    return srsf


srsf_1, srsf_2, srsf_3 = (_at_most(limit) for limit in (1, 2, 3))


def adadual(instance: CommContentionInstance, *, seed: int = 0) -> HeuristicRun:
    """AdaDUAL: start beside one other transfer iff M_new / M_left < b / (2 (b + eta)); never beside two.

    For two transfers this is the best decision (Theorems 1 and 2). For more there is no constant ratio: see the
    guarantee ``001-adadual-unbounded``.

    Notes
    -----
    O(n (log n + k)) operations, exact: see :class:`LinkState`. Source: paper 001, Algorithm 2.
    """

    def admits(state: LinkState, task: int, moment: int) -> bool:
        if len(state) != 1:
            return not len(state)
        factor, remaining = state.left(moment)
        return 2 * (state.alone + state.penalty) * state.size[task] * factor < state.alone * remaining[0]

    return _run(instance, admits)


def adadual_k(instance: CommContentionInstance, *, seed: int = 0) -> HeuristicRun:
    """AdaDUAL for any number of running transfers (ours).

    A task of size m starts beside transfers with x_1 <= ... <= x_k left iff for every l, with T_l the time until
    the l-th of them ends when the task stays away::

        2 (b + eta) (sum_i min(m, x_i) - sum_{i > l} min(m, x_i - x_l)) < T_l

    This is the best start of one newcomer when nobody else arrives (docs/proofs-comm-contention.md); for k = 1 it
    is AdaDUAL.

    Notes
    -----
    O(k^2) operations per decision, exact: see :class:`LinkState`. Source: ours, after paper 001, Algorithm 2.
    """

    def admits(state: LinkState, task: int, moment: int) -> bool:
        factor, remaining = state.left(moment)
        return starts_now(state.size[task] * factor, remaining, state.alone, state.penalty)

    return _run(instance, admits)


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
    end: float = 0  # whole numbers stay whole
    moved: float = 0
    for position, x in enumerate(left):
        active = k - position
        end += (x - moved) * (active * b + (active - 1) * eta)
        moved = x
        then = sum(min(size, y - x) for y in left[position + 1 :])
        if not 2 * (b + eta) * (now - then) < end:
            return False
    return True


def _run(instance: CommContentionInstance, admits: Admit) -> HeuristicRun:
    """Ask the waiting tasks, smallest first, at every release and completion, until one is refused.

    A task in its latency counts as active for admission, with its whole size left, and does not load the link. All
    numbers are exact, so simultaneous events are simultaneous and no decision rests on rounding.
    """
    state = LinkState(instance)
    release, size, tasks = state.release, state.size, instance.tasks
    arriving = sorted(range(len(tasks)), key=lambda j: (release[j], j), reverse=True)
    queue: list[tuple[int, int]] = []
    admissions: list[Admission] = []
    latest = 0
    while arriving or queue or len(state):
        if not len(state):
            state.restart()
        moment, asked = state.following(), False
        if moment is None or (arriving and release[arriving[-1]] * state.scale < moment):
            moment = release[arriving[-1]] * state.scale
        else:
            asked = state.step()
            moment = state.clock
        while arriving and release[arriving[-1]] * state.scale <= moment:
            latest = arriving.pop()
            heapq.heappush(queue, (size[latest], latest))
            asked = True
        while asked and queue and admits(state, queue[0][1], moment):
            j = heapq.heappop(queue)[1]
            admissions.append(Admission(j, exact(tasks[latest].release), len(state.done)))
            state.admit(j, moment)
    solution = written(instance, admissions, state.done, state.ended)
    if solution is None:
        return HeuristicRun(None, {"reason": "its starts need more digits than a solution is written with"})
    return HeuristicRun(solution)
