"""The audit of the all-reduces of a run: bytes, link time and contention, recomputed from their begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.check import Violation
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

IntArray = NDArray[np.int64]
Steps = tuple[IntArray, IntArray]
"""Moments in order, and a count that holds from each to the next; it is 0 before the first."""
_LIMIT = {"srsf-1": 1, "srsf-2": 2, "srsf-3": 3, "srsf-4": 4, "ada-srsf": 2}
_RELATIVE = 1e-9


@dataclass(frozen=True)
class Message:
    """The all-reduces of one job by iteration, in ticks: the barrier, the admission, the end."""

    barrier: IntArray
    admitted: IntArray
    done: IntArray


def audit_links(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    policy: str,
    messages: Sequence[Message | None],
    digits: int,
) -> list[Violation]:
    """Whether all-reduces move their bytes, and no more than the links can.

    Parameters
    ----------
    messages : by job, its all-reduces; None for a job on one server

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
    active: dict[int, Steps] = {}
    moving: dict[int, Steps] = {}
    violations: list[Violation] = []
    for server, here in on_server.items():
        kept = [message for j in here if (message := messages[j]) is not None]
        admitted = np.sort(np.concatenate([message.admitted for message in kept]))
        done = np.sort(np.concatenate([message.done for message in kept]))
        active[server], moving[server] = _steps((admitted, done)), _steps((admitted + latency, done))
        most = int(active[server][1].max())
        where = f"server {instance.servers[server].id}"
        if most > _LIMIT[policy]:
            text = f"{where}: {most} all-reduces active under {policy}"
            violations.append(Violation("limit", text, most - _LIMIT[policy]))
        sizes = np.concatenate([np.full(len(m.done), jobs[j].message) for j, m in zip(here, kept, strict=True)])
        begins = np.concatenate([message.admitted for message in kept]) + latency
        violations += _busy_periods(where, (admitted + latency, done), begins, sizes, cost, tick)
    for j, message in enumerate(messages):
        if message is None:
            continue
        where = f"job {jobs[j].id}"
        shortest = (a + b * exact(jobs[j].message)) * scale
        short = (message.done - message.admitted) < float(shortest) * (1 - _RELATIVE)
        if short.any():
            text = f"{where}: {int(short.sum())} all-reduces take less than a + size b = {float(shortest) * tick:.9g} s"
            violations.append(Violation("message", text, float(short.sum())))
        moved = _moved(message, [moving[s] for s in servers[j]], latency, (cost, float(eta)), tick)
        size = jobs[j].message
        wrong = np.abs(moved - size) > _RELATIVE * size + 2 * tick / cost
        if wrong.any():
            worst = moved[int(np.argmax(np.abs(moved - size)))]
            text = f"{where}: {int(wrong.sum())} all-reduces move other than {size:g} MB, such as {worst:.12g}"
            violations.append(Violation("message", text, float(abs(worst - size))))
        need = 1 if policy == "ada-srsf" else _LIMIT[policy]
        idle = _free_while_waiting(message, [active[s] for s in servers[j]], need)
        if idle:
            text = f"{where}: {idle} all-reduces wait although every server of the job has room under {policy}"
            violations.append(Violation("waiting", text, idle))
    return violations


def _count(intervals: tuple[IntArray, IntArray], moments: IntArray) -> IntArray:
    """How many of the half-open intervals, begins and ends sorted, hold each moment."""
    begins, ends = intervals
    counted: IntArray = np.searchsorted(begins, moments, "right") - np.searchsorted(ends, moments, "right")
    return counted


def _busy_periods(
    where: str,
    intervals: tuple[IntArray, IntArray],
    begins: IntArray,
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


def _free_while_waiting(message: Message, active: Sequence[Steps], need: int) -> int:
    """How many all-reduces wait for some time with fewer than `need` active on every server."""
    waits = message.admitted > message.barrier
    if not waits.any():
        return 0
    moments, k = _most(active, np.concatenate([message.barrier, message.admitted]))
    piece = np.append(np.diff(moments) * (k[:-1] < need), 0)
    free = _sums(piece.astype(np.float64), moments, message.barrier[waits], message.admitted[waits])
    return int((free > 0).sum())


def _steps(intervals: tuple[IntArray, IntArray]) -> Steps:
    """How many of the intervals hold each moment, from each moment on at which that may change."""
    moments = _distinct(intervals)
    return moments, _count(intervals, moments)


def _distinct(parts: Sequence[IntArray]) -> IntArray:
    """The distinct moments in order. A stable sort merges the sorted parts, several times faster than np.unique."""
    moments = np.sort(np.concatenate(parts), kind="stable")
    distinct: IntArray = moments[np.append(True, moments[1:] != moments[:-1])]
    return distinct


def _most(counts: Sequence[Steps], wanted: IntArray) -> Steps:
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


def _sums(piece: NDArray[np.float64], moments: IntArray, begin: IntArray, end: IntArray) -> NDArray[np.float64]:
    """The sum of the pieces from each begin to its end; the intervals are disjoint, in order and not empty."""
    bounds = np.stack((np.searchsorted(moments, begin), np.searchsorted(moments, end)), axis=1).ravel()
    total: NDArray[np.float64] = np.add.reduceat(piece, bounds)[::2]
    return total
