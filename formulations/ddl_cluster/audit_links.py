"""The audit of the all-reduces of a run: bytes, link time and contention, recomputed from their begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.check import Violation
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

Steps = tuple[Ints, Ints]
"""Moments in order, and a count that holds from each to the next; it is 0 before the first."""


_LIMIT = {"srsf-1": 1, "srsf-2": 2, "srsf-3": 3, "srsf-4": 4, "ada-srsf": 2}


_RELATIVE = 1e-9


OVER = -(2**62)


def taken_out(jumps: Ints, times: Ints) -> Ints:
    """Times with what jumps pass over taken out before them."""
    if not len(jumps):
        return times
    gone = np.concatenate(([0], np.cumsum(jumps[:, 3])))
    result: Ints = times - gone[np.searchsorted(jumps[:, 1], times)]
    return result


def joined_jumps(jumps: Sequence[Ints]) -> Ints:
    """The jumps of jobs that share a place, each once, in order."""
    merged = np.concatenate([part[:, 1:4] for part in jumps])
    once = np.unique(merged, axis=0) if len(merged) else merged
    return np.insert(once, 0, 0, axis=1)


@dataclass(frozen=True)
class Message:
    """The all-reduces of one job by iteration, in ticks: the barrier, the admission, the end; and its jumps."""

    barrier: Ints
    admitted: Ints
    done: Ints
    jumps: Ints = field(default_factory=lambda: np.zeros((0, 5), dtype=np.int64))

    def without(self, jumps: Ints) -> Message:
        """With the time that jumps pass over taken out."""
        return Message(*(taken_out(jumps, times) for times in (self.barrier, self.admitted, self.done)))


def audit_links(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    policy: str,
    messages: Sequence[Message | None],  # all-reduces of each job; None for a job on one server
    digits: int,
) -> list[Violation]:
    """Whether all-reduces move their bytes, and no more than the links can.

    Returns
    -------
    Violations of

    - "message": an all-reduce takes less than a + size b, or the bytes that eq. (5) lets it move between its
      admission plus a and its end, under the all-reduces that transfer beside it, are not its message
    - "link": over a busy period of a server's link the messages moved through it would take it longer,
      sum size b > its length
    - "limit": more all-reduces active on a server than the policy admits
    - "waiting": an all-reduce waits although every server of its job has room (srsf-n), or although no
      all-reduce is active on any of them (ada-srsf)

    Notes
    -----
    O(sum over jobs of A log A) vectorised, with A the all-reduces on the servers of the job.
    """
    a, b, eta = instance.link.exact_parameters()
    scale = 10**digits
    tick = 10.0**-digits
    latency = -int(-a * scale // 1)
    cost = float(b)
    jobs = instance.jobs
    servers = [sorted({server for server, _ in gpus}) for gpus in placement]
    on_server: dict[int, list[int]] = {}
    for j, message in enumerate(messages):
        if message is not None:
            for server in servers[j]:
                on_server.setdefault(server, []).append(j)
    steps: dict[int, tuple[Steps, Steps]] = {}
    violations: list[Violation] = []
    for server, here in on_server.items():
        kept = [message for j in here if (message := messages[j]) is not None]
        where = f"server {instance.servers[server].id}"
        jumps = joined_jumps([message.jumps for message in kept])
        steps[server] = _active_and_moving(kept, latency)
        if len(jumps):
            violations += joins(where, jumps, [(m.jumps, m.admitted, m.done) for m in kept], tick)
            kept = [message.without(jumps) for message in kept]
        active, _ = _active_and_moving(kept, latency)
        most = int(active[1].max())
        if most > _LIMIT[policy]:
            text = f"{where}: {most} all-reduces active under {policy}"
            violations.append(Violation("limit", text, most - _LIMIT[policy]))
        sizes = np.concatenate([np.full(len(m.done), jobs[j].message) for j, m in zip(here, kept, strict=True)])
        begins = np.concatenate([message.admitted for message in kept]) + latency
        done = np.sort(np.concatenate([message.done for message in kept]))
        violations += _busy_periods(where, (np.sort(begins), done), begins, sizes, cost, tick)
    for j, message in enumerate(messages):
        if message is None:
            continue
        where = f"job {jobs[j].id}"
        counts = [steps[s] for s in servers[j]]
        if len(message.jumps):  # the others as this job, which repeats what they do, sees them
            span = message.barrier[0], message.done[-1]
            beside = [[m for k in on_server[s] if (m := messages[k]) and _meet(m, span)] for s in servers[j]]
            counts = [_active_and_moving([m.without(message.jumps) for m in kept], latency) for kept in beside]
            halves = _moved_before(message, [moving for _, moving in counts], latency, (cost, float(eta)), tick)
            if (np.abs(halves[0] - halves[1]) > _RELATIVE * jobs[j].message + 2 * tick / cost).any():
                violations.append(Violation("cycle", f"{where}: an all-reduce is repeated that has moved otherwise", 1))
            message = message.without(message.jumps)
        shortest = (a + b * exact(jobs[j].message)) * scale
        short = (message.done - message.admitted) < float(shortest) * (1 - _RELATIVE)
        if short.any():
            text = f"{where}: {int(short.sum())} all-reduces take less than a + size b = {float(shortest) * tick:.9g} s"
            violations.append(Violation("message", text, float(short.sum())))
        moved = _moved(message, [moving for _, moving in counts], latency, (cost, float(eta)), tick)
        size = jobs[j].message
        wrong = np.abs(moved - size) > _RELATIVE * size + 2 * tick / cost
        if wrong.any():
            worst = moved[int(np.argmax(np.abs(moved - size)))]
            text = f"{where}: {int(wrong.sum())} all-reduces move other than {size:g} MB, such as {worst:.12g}"
            violations.append(Violation("message", text, float(abs(worst - size))))
        need = 1 if policy == "ada-srsf" else _LIMIT[policy]
        idle = _free_while_waiting(message, [active for active, _ in counts], need)
        if idle:
            text = f"{where}: {idle} all-reduces wait although every server of the job has room under {policy}"
            violations.append(Violation("waiting", text, idle))
    return violations


def _active_and_moving(messages: Sequence[Message], latency: int) -> tuple[Steps, Steps]:
    """How many all-reduces are active, and how many of them transfer."""
    admitted = np.sort(np.concatenate([message.admitted for message in messages]))
    done = np.sort(np.concatenate([message.done for message in messages]))
    return _steps((admitted, done)), _steps((admitted + latency, done))


def _meet(message: Message, span: tuple[int, int]) -> bool:
    """Whether some all-reduces of a job may be while another has its own."""
    return bool(message.admitted[0] <= span[1] and message.done[-1] >= span[0])


def joins(where: str, jumps: Ints, parts: Sequence[tuple[Ints, Ints, Ints]], tick: float) -> list[Violation]:
    """Who takes no part in a jump of a place: whether anything of it begins or ends there from the cycle on.

    Parameters
    ----------
    parts : for each who is there, its jumps, and when what it does begins and ends
    """
    clash = np.diff(jumps[:, 1]) == 0
    found = [Violation("cycle", f"{where}: jobs repeat different cycles at a time", 1)] if clash.any() else []
    for own, begin, end in parts:
        others = jumps[~np.isin(jumps[:, 1], own[:, 1])]
        for times in (begin, end):
            low = np.searchsorted(times, others[:, 1] - others[:, 2], "right")
            inside = np.searchsorted(times, others[:, 1] + others[:, 3], "right") - low
            if inside.any():
                worst = float(others[inside > 0][0, 3]) * tick
                found.append(Violation("cycle", f"{where}: a cycle is repeated beside a job that does not", worst))
    return found


def _count(intervals: tuple[Ints, Ints], moments: Ints) -> Ints:
    """How many of the half-open intervals, begins and ends sorted, hold each moment."""
    begins, ends = intervals
    counted: Ints = np.searchsorted(begins, moments, "right") - np.searchsorted(ends, moments, "right")
    return counted


def _busy_periods(
    where: str,
    intervals: tuple[Ints, Ints],
    begins: Ints,
    sizes: NDArray[np.float64],
    cost: float,
    tick: float,
) -> list[Violation]:
    """In each maximal period with a transfer, the messages take at least size b each of the link's time."""
    firsts, ends = intervals
    # a period begins with the i-th transfer when the i before it have ended by then
    opens = np.flatnonzero(ends[:-1] <= firsts[1:]) + 1
    first = np.concatenate(([0], opens))
    last = np.concatenate((opens - 1, [len(ends) - 1]))
    length = (ends[last] - firsts[first]) * tick
    order = np.argsort(begins, kind="stable")
    needed = np.add.reduceat(sizes[order], first) * cost
    over = needed - length
    broken = over > _RELATIVE * needed + tick
    if not broken.any():
        return []
    text = f"{where}: in {int(broken.sum())} busy periods the messages need up to {over.max():.3g} s more than there is"
    return [Violation("link", text, float(over.max()))]


def _moved(
    message: Message, moving: Sequence[Steps], latency: int, costs: tuple[float, float], tick: float
) -> NDArray[np.float64]:
    """MB that each all-reduce moves between its latency and its end, by eq. (5)."""
    begin = message.admitted + latency
    moments, k = _most(moving, np.concatenate([begin, message.done]))
    b, eta = costs
    rate = np.where(k > 0, 1.0 / np.where(k > 0, k * b + (k - 1) * eta, 1.0), 0.0)
    piece = np.append(np.diff(moments) * tick * rate[:-1], 0.0)
    return _sums(piece, moments, begin, message.done)


def _moved_before(
    message: Message, moving: Sequence[Steps], latency: int, costs: tuple[float, float], tick: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """MB that the all-reduces under way at the end of each cycle, and at its begin, have moved by then.

    Where one has not begun to move, how long it is under way counts for it.
    """
    jumps = message.jumps[message.jumps[:, 4] > 0]
    own = message.without(message.jumps)
    found = []
    for ends in (jumps[:, 1], jumps[:, 1] - jumps[:, 2]):
        ends = taken_out(message.jumps, ends)
        row = np.searchsorted(own.done, ends, "right")
        amount = (ends - own.admitted[row]).astype(np.float64)
        on = amount > latency
        if on.any():
            amount[on] = _moved(Message(ends[on], own.admitted[row][on], ends[on]), moving, latency, costs, tick)
        found.append(np.where(amount > 0, amount, 0.0))
    return found[0], found[1]


def _free_while_waiting(message: Message, active: Sequence[Steps], need: int) -> int:
    """How many all-reduces wait for some time with fewer than `need` active on every server."""
    waits = message.admitted > message.barrier
    if not waits.any():
        return 0
    moments, k = _most(active, np.concatenate([message.barrier, message.admitted]))
    piece = np.append(np.diff(moments) * (k[:-1] < need), 0)
    free = _sums(piece.astype(np.float64), moments, message.barrier[waits], message.admitted[waits])
    return int((free > 0).sum())


def _steps(intervals: tuple[Ints, Ints]) -> Steps:
    """How many of the intervals hold each moment, from each moment on at which that may change."""
    moments = _distinct(intervals)
    return moments, _count(intervals, moments)


def _distinct(parts: Sequence[Ints]) -> Ints:
    """The distinct moments in order. A stable sort merges the sorted parts, several times faster than np.unique."""
    moments = np.sort(np.concatenate(parts), kind="stable")
    distinct: Ints = moments[np.append(True, moments[1:] != moments[:-1])]
    return distinct


def _most(counts: Sequence[Steps], wanted: Ints) -> Steps:
    """The largest of several counts, from the first of the wanted moments to the last; those are steps as well.

    Only what lies between is looked at: a job is active for a part of the run.
    """
    low, high = int(wanted.min()), int(wanted.max())
    parts = []
    for moments, count in counts:
        first, last = np.searchsorted(moments, low), np.searchsorted(moments, high, "right")
        before = count[first - 1] if first else np.int64(0)
        parts.append((moments[first:last], np.append(before, count[first:last])))
    merged = _distinct([wanted, *(moments for moments, _ in parts)])
    most = np.zeros(len(merged), dtype=np.int64)
    for moments, count in parts:
        ends = np.searchsorted(merged, moments)
        lengths = np.diff(np.concatenate(([0], ends, [len(merged)])))
        np.maximum(most, np.repeat(count, lengths), out=most)
    return merged, most


def _sums(piece: NDArray[np.float64], moments: Ints, begin: Ints, end: Ints) -> NDArray[np.float64]:
    """The sum of the pieces from each begin to its end; the intervals are disjoint, in order and not empty."""
    bounds = np.stack((np.searchsorted(moments, begin), np.searchsorted(moments, end)), axis=1).ravel()
    total: NDArray[np.float64] = np.add.reduceat(piece, bounds)[::2]
    return total
