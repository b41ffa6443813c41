"""The audit of a simulated run: conservation of bytes, link time, GPU time and iterations.

It reads nothing but the instance and the recorded times of the tasks, and shares no code with any simulator.

A record may pass over cycles: stretches of time in which jobs do again what they did in the one before (its `jumps`).
A cycle is then audited once, for all its repetitions:

- The time of the repetitions is taken out, on each GPU, each server and for each job, so that what follows the last
  repetition is seen to follow the cycle.
- What goes on at the end of a cycle went on at its beginning, a task for as long, an all-reduce with as much moved.
  So a repetition may follow it.
- Whoever shares a GPU or a link repeats the same cycle at the same time, or does nothing there meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.check import Violation
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

# The audit of the all-reduces of a run: bytes, link time and contention, recomputed from their begin and end.

IntArray = NDArray[np.int64]
Steps = tuple[IntArray, IntArray]
"""Moments in order, and a count that holds from each to the next; it is 0 before the first."""
_LIMIT = {"srsf-1": 1, "srsf-2": 2, "srsf-3": 3, "srsf-4": 4, "ada-srsf": 2}
_RELATIVE = 1e-9
_OVER = -(2**62)


def taken_out(jumps: IntArray, times: IntArray) -> IntArray:
    """Times with what jumps pass over taken out before them."""
    if not len(jumps):
        return times
    gone = np.concatenate(([0], np.cumsum(jumps[:, 3])))
    result: IntArray = times - gone[np.searchsorted(jumps[:, 1], times)]
    return result


def _joint(jumps: Sequence[IntArray]) -> IntArray:
    """The jumps of jobs that share a place, each once, in order."""
    merged = np.concatenate([part[:, 1:4] for part in jumps])
    once = np.unique(merged, axis=0) if len(merged) else merged
    return np.insert(once, 0, 0, axis=1)


@dataclass(frozen=True)
class Message:
    """The all-reduces of one job by iteration, in ticks: the barrier, the admission, the end; and its jumps."""

    barrier: IntArray
    admitted: IntArray
    done: IntArray
    jumps: IntArray = field(default_factory=lambda: np.zeros((0, 5), dtype=np.int64))

    def without(self, jumps: IntArray) -> Message:
        """With the time that jumps pass over taken out."""
        return Message(*(taken_out(jumps, times) for times in (self.barrier, self.admitted, self.done)))


def audit_links(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    policy: str,
    messages: Sequence[Message | None],  # by job, its all-reduces; None for a job on one server
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
        jumps = _joint([message.jumps for message in kept])
        steps[server] = _active_and_moving(kept, latency)
        if len(jumps):
            violations += _joins(where, jumps, [(m.jumps, m.admitted, m.done) for m in kept], tick)
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


def _joins(
    where: str, jumps: IntArray, parts: Sequence[tuple[IntArray, IntArray, IntArray]], tick: float
) -> list[Violation]:
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


WHOLE_TASKS = 5_000_000
"""Runs of up to so many compute tasks are gone through and audited as a whole, others by cycles."""
AUDITED_TASKS = 10_000_000
"""Of these, those are audited that go through up to so many compute tasks: it takes half a second for each million."""


class Recorded(Protocol):
    """The times of a run in ticks, laid out as :class:`~.simulate_plain.Log` says."""

    @property
    def start(self) -> IntArray: ...
    @property
    def end(self) -> IntArray: ...
    @property
    def admitted(self) -> IntArray: ...
    @property
    def done(self) -> IntArray: ...
    @property
    def placed(self) -> IntArray: ...
    @property
    def task_base(self) -> IntArray: ...
    @property
    def message_base(self) -> IntArray: ...
    @property
    def jumps(self) -> IntArray: ...


@dataclass
class _Findings:
    """Violations, one per kind and place, with how often each occurs."""

    violations: list[Violation] = field(default_factory=list)

    def add(self, constraint: str, where: str, broken: NDArray[np.bool_], amounts: IntArray, tick: float) -> None:
        """The first of the `broken` ones, and how many there are; `amounts` in ticks."""
        found = np.flatnonzero(broken)
        if len(found):
            worst = float(np.max(np.abs(amounts[found]))) * tick
            text = f"{where}: {len(found)} times, first at entry {int(found[0])}, worst by {worst:.3g} s"
            self.violations.append(Violation(constraint, text, worst))


def audit(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],  # by job, its GPUs as (server position, index)
    policy: str,  # "srsf-1", "srsf-2", "srsf-3", "srsf-4" or "ada-srsf"
    log: Recorded,  # the times of every task, in ticks of 10^-digits seconds
    digits: int,
) -> list[Violation]:
    """Whether a recorded run conserves what it must.

    Returns
    -------
    Violations of

    - "iterations": a task never ran, or ran out of order: every worker runs forward then backward once in each
      iteration, no earlier than the iteration before (and the placement, and the arrival) allows
    - "cycle": what is said to come again is not what was, or not for all who share it
    - "duration": a compute task takes less than its time, or more by a tick or above
    - "gpu": two tasks on one GPU at a time
    - "memory": jobs on one GPU, from placement to finish, hold more than it has
    - "idle": a GPU without a task while a task of a job on it is ready
    - those of :func:`~schedgap.formulations.ddl_cluster.audit.audit_links`: bytes and links

    Notes
    -----
    O(T log T) vectorised for T tasks that were gone through; for jobs with jumps on links, sum over jobs of A log A
    with A the all-reduces beside it.
    """
    tick = 10.0**-digits
    scale = 10**digits
    findings = _Findings()
    by_gpu: dict[Gpu, list[tuple[IntArray, IntArray, IntArray, IntArray]]] = {}
    messages: list[Message | None] = []
    finish: list[int] = []
    for j, (job, gpus) in enumerate(zip(instance.jobs, placement, strict=True)):
        shape = (-1, job.gpus, 2)
        start = log.start[log.task_base[j] : log.task_base[j + 1]].reshape(shape)
        end = log.end[log.task_base[j] : log.task_base[j + 1]].reshape(shape)
        jumps = log.jumps[slice(*np.searchsorted(log.jumps[:, 0], [j, j + 1]))]
        where = f"job {job.id}"
        missing = (start < 0) | (end < 0)
        if missing.any():
            findings.add("iterations", f"{where}: a compute task did not run", missing.ravel(), start.ravel(), tick)
            return findings.violations
        begun, ended = taken_out(jumps, start), taken_out(jumps, end)
        for kind, seconds in enumerate((exact(job.forward), exact(job.backward))):
            excess = (ended - begun)[:, :, kind].ravel() - int(seconds * scale)
            whole = (seconds * scale).denominator == 1
            broken = (excess < (0 if whole else 1)) | (excess > 1)
            findings.add("duration", f"{where}: {('forward', 'backward')[kind]} task", broken, excess, tick)
        barrier = end[:, :, 1].max(axis=1)
        spans = len({server for server, _ in gpus}) > 1
        iteration_end = barrier
        if spans:
            admitted = log.admitted[log.message_base[j] : log.message_base[j + 1]]
            done = log.done[log.message_base[j] : log.message_base[j + 1]]
            lost = (admitted < 0) | (done < 0)
            if lost.any():
                findings.add("iterations", f"{where}: an all-reduce did not run", lost, admitted, tick)
                return findings.violations
            early = admitted < barrier
            findings.add("iterations", f"{where}: all-reduce before the barrier", early, admitted - barrier, tick)
            messages.append(Message(barrier, admitted, done, jumps))
            iteration_end = done
        else:
            messages.append(None)
        ready = np.concatenate(([log.placed[j]], iteration_end[:-1]))
        free = taken_out(jumps, ready)
        if log.placed[j] < exact(job.arrival) * scale:
            findings.violations.append(Violation("iterations", f"{where}: placed before its arrival"))
        early_forward = begun[:, :, 0] - free[:, None]
        early_backward = begun[:, :, 1] - ended[:, :, 0]
        for what, slack in (("forward", early_forward), ("backward", early_backward)):
            findings.add("iterations", f"{where}: {what} task too early", slack.ravel() < 0, slack.ravel(), tick)
        tasks = [start.reshape(len(start), -1), end.reshape(len(start), -1)]
        tasks += [log.admitted[log.message_base[j] : log.message_base[j + 1], None]] if spans else []
        _audit_cycles(findings, where, jumps, np.hstack(tasks), iteration_end, (int(log.placed[j]), job.iterations))
        finish.append(int(iteration_end[-1]))
        for worker, gpu in enumerate(gpus):
            readiness = np.stack((ready, end[:, worker, 0]), axis=1).ravel()
            entry = (start[:, worker].ravel(), end[:, worker].ravel(), readiness, jumps)
            by_gpu.setdefault(gpu, []).append(entry)
    for (server, index), entries in sorted(by_gpu.items()):
        where = f"server {instance.servers[server].id}, GPU {index}"
        joint = _joint([entry[3] for entry in entries])
        findings.violations += _joins(where, joint, [(own, begin, ends) for begin, ends, _, own in entries], tick)
        times = [np.concatenate([entry[k] for entry in entries]) for k in range(3)]
        _audit_gpu(findings, where, [taken_out(joint, part) for part in times], tick)
    _audit_memory(findings, instance, placement, log, finish)
    findings.violations += audit_links(instance, placement, policy, messages, digits)
    return findings.violations


def _audit_cycles(
    findings: _Findings,
    where: str,
    jumps: IntArray,
    times: IntArray,  # by iteration that was gone through: when its tasks began and ended, its all-reduce was admitted
    iteration_end: IntArray,
    asked: tuple[int, int],  # the placement, and how many iterations there are
) -> None:
    """Whether the cycles of a job come again as they were: all iterations are there, and their ends are alike."""
    placed, iterations = asked
    _, at, period, ticks, count = jumps.T
    first, last = (np.searchsorted(iteration_end, moment, "right") for moment in (at - period, at))
    said = len(iteration_end) + int((ticks // np.maximum(period, 1) * count).sum())
    wrong = (last - first != count) | (at - period < placed) | (period <= 0) | (ticks % np.maximum(period, 1) != 0)
    wrong |= np.append(at[:-1] + ticks[:-1] > at[1:] - period[1:], [False])[: len(at)] | (ticks <= 0)
    if said != iterations or wrong.any() or (last == len(iteration_end)).any():
        text = f"{where}: {said} of {iterations} iterations, {int(wrong.sum())} cycles are not what is repeated"
        findings.violations.append(Violation("cycle", text, abs(said - iterations)))
        return
    # of the present iteration, what goes on when the cycle ends, how long it has, and what is over
    moves = np.where(count > 0, ticks, 0)[:, None]
    after, before = (
        _going_on(part) for part in (times[last] - moves - at[:, None], times[first] - (at - period)[:, None])
    )
    alike = (after == before) | (count == 0)[:, None]  # else it is the same iteration
    moved = (times[last] > (at - period)[:, None]) & (times[last] <= (at + ticks)[:, None])
    still = ~moved.any(axis=1) | (count > 0)
    alike = alike.all(axis=1) & still
    if not alike.all():
        text = f"{where}: a cycle does not begin as it ends, {int((~alike).sum())} times"
        findings.violations.append(Violation("cycle", text, float((~alike).sum())))


def _going_on(times: IntArray) -> IntArray:
    """What goes on at moment 0: its begin; 1 for what comes later, _OVER for what is over.

    `times` : rows of begins, ends and maybe an admission
    """
    half = times.shape[1] // 2
    begin, end = times[:, :half], times[:, half : 2 * half]
    tasks = np.where(end <= 0, _OVER, np.minimum(begin, 1))
    # when an all-reduce was admitted may differ: what it has moved is compared by audit_links
    return np.hstack([tasks, times[:, 2 * half :] > 0])


def _audit_gpu(findings: _Findings, where: str, times: Sequence[IntArray], tick: float) -> None:
    """One task at a time, and no idling beside a ready one; `times`: when tasks begin, end, and are ready."""
    start, end, ready = times
    order = np.argsort(start, kind="stable")  # merges the workers' sorted runs
    start, end, ready = start[order], end[order], ready[order]
    overlap = end[:-1] - start[1:]
    findings.add("gpu", f"{where}: two tasks at a time", overlap > 0, overlap, tick)
    first_ready = np.minimum.accumulate(ready[::-1])[::-1]  # over the tasks that have not started
    before = np.concatenate(([np.int64(0)], end[:-1]))
    idle = start - np.maximum(before, first_ready)
    findings.add("idle", f"{where}: idle beside a ready task", idle > 0, idle, tick)


def _audit_memory(
    findings: _Findings,
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    log: Recorded,
    finish: Sequence[int],
) -> None:
    """The jobs on a GPU fit its memory, from placement to finish."""
    memory = exact(instance.gpu_memory)
    limit = memory + memory / 10**9
    held = [exact(job.memory) for job in instance.jobs]
    on_gpu: dict[Gpu, list[int]] = {}
    for j, gpus in enumerate(placement):
        for gpu in gpus:
            on_gpu.setdefault(gpu, []).append(j)
    for (server, index), here in sorted(on_gpu.items()):
        if sum(held[j] for j in here) <= limit:
            continue
        for j in here:  # the sum can only be exceeded first at a placement
            now = log.placed[j]
            used = sum(held[k] for k in here if log.placed[k] <= now < finish[k])
            if used > limit:
                where = f"server {instance.servers[server].id}, GPU {index}, placement of job {instance.jobs[j].id}"
                text = f"{where}: {float(used):g} MB used, {float(memory):g} there"
                findings.violations.append(Violation("memory", text, float(used - memory)))
