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

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.check import Violation
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.audit_links import OVER, Message, audit_links, joined_jumps, joins, taken_out
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

WHOLE_TASKS = 5_000_000
"""Runs of up to so many compute tasks are gone through and audited as a whole, others by cycles."""


AUDITED_TASKS = 10_000_000
"""Largest number of compute tasks of an audited run: the audit takes half a second for each million."""


class Recorded(Protocol):
    """The times of a run in ticks, laid out as :class:`~.simulate_plain.Log` says."""

    @property
    def start(self) -> Ints: ...
    @property
    def end(self) -> Ints: ...
    @property
    def admitted(self) -> Ints: ...
    @property
    def done(self) -> Ints: ...
    @property
    def placed(self) -> Ints: ...
    @property
    def task_base(self) -> Ints: ...
    @property
    def message_base(self) -> Ints: ...
    @property
    def jumps(self) -> Ints: ...


@dataclass
class _Findings:
    """Violations, one per kind and place, with how often each occurs."""

    violations: list[Violation] = field(default_factory=list)

    def add(self, constraint: str, where: str, broken: NDArray[np.bool_], amounts: Ints, tick: float) -> None:
        """The first of the `broken` ones, and how many there are; `amounts` in ticks."""
        found = np.flatnonzero(broken)
        if len(found):
            worst = float(np.max(np.abs(amounts[found]))) * tick
            text = f"{where}: {len(found)} times, first at entry {int(found[0])}, worst by {worst:.3g} s"
            self.violations.append(Violation(constraint, text, worst))


def audit(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],  # GPUs of each job as (server position, index)
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
    - those of :func:`~schedgap.formulations.ddl_cluster.audit_links.audit_links`: bytes and links

    Notes
    -----
    O(T log T) vectorised for T tasks that were gone through; for jobs with jumps on links, sum over jobs of A log A
    with A the all-reduces beside it.
    """
    tick = 10.0**-digits
    scale = 10**digits
    findings = _Findings()
    by_gpu: dict[Gpu, list[tuple[Ints, Ints, Ints, Ints]]] = {}
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
        joint = joined_jumps([entry[3] for entry in entries])
        findings.violations += joins(where, joint, [(own, begin, ends) for begin, ends, _, own in entries], tick)
        times = [np.concatenate([entry[k] for entry in entries]) for k in range(3)]
        _audit_gpu(findings, where, [taken_out(joint, part) for part in times], tick)
    _audit_memory(findings, instance, placement, log, finish)
    findings.violations += audit_links(instance, placement, policy, messages, digits)
    return findings.violations


def _audit_cycles(
    findings: _Findings,
    where: str,
    jumps: Ints,
    times: Ints,  # rows of iterations gone through: begin and end of the tasks, admission of the all-reduce
    iteration_end: Ints,
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


def _going_on(times: Ints) -> Ints:
    """What goes on at moment 0: its begin; 1 for what comes later, OVER for what is over.

    `times` : rows of begins, ends and maybe an admission
    """
    half = times.shape[1] // 2
    begin, end = times[:, :half], times[:, half : 2 * half]
    tasks = np.where(end <= 0, OVER, np.minimum(begin, 1))
    # when an all-reduce was admitted may differ: what it has moved is compared by audit_links
    return np.hstack([tasks, times[:, 2 * half :] > 0])


def _audit_gpu(findings: _Findings, where: str, times: Sequence[Ints], tick: float) -> None:
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
