"""The audit of a simulated run: conservation of bytes, link time, GPU time and iterations.

It reads nothing but the instance and the recorded times of the tasks, and shares no code with any simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.check import Violation
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.audit_links import Message, audit_links
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

AUDITED_TASKS = 50_000_000
"""Runs of up to so many compute tasks are audited; the record of a larger one would take more than 800 MB."""

IntArray = NDArray[np.int64]


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
    placement: Sequence[Sequence[Gpu]],
    policy: str,
    log: Recorded,
    digits: int,
) -> list[Violation]:
    """Whether a recorded run conserves what it must.

    Parameters
    ----------
    placement : by job, its GPUs as (server position, index)
    policy : "srsf-1", "srsf-2", "srsf-3", "srsf-4" or "ada-srsf"
    log : the times of every task, in ticks of 10^-digits seconds

    Returns
    -------
    Violations of

    - "iterations": a task never ran, or ran out of order: every worker runs forward then backward once in each
      iteration, no earlier than the iteration before (and the placement, and the arrival) allows
    - "duration": a compute task takes less than its time, or more by a tick or above
    - "gpu": two tasks on one GPU at a time
    - "memory": jobs on one GPU, from placement to finish, hold more than it has
    - "idle": a GPU without a task while a task of a job on it is ready
    - those of :func:`~schedgap.formulations.ddl_cluster.audit_links.audit_links`: bytes and links

    Notes
    -----
    O(T log T) vectorised for T tasks.
    """
    tick = 10.0**-digits
    scale = 10**digits
    findings = _Findings()
    by_gpu: dict[Gpu, list[tuple[IntArray, IntArray, IntArray]]] = {}
    messages: list[Message | None] = []
    finish: list[int] = []
    for j, (job, gpus) in enumerate(zip(instance.jobs, placement, strict=True)):
        shape = (job.iterations, job.gpus, 2)
        start = log.start[log.task_base[j] : log.task_base[j + 1]].reshape(shape)
        end = log.end[log.task_base[j] : log.task_base[j + 1]].reshape(shape)
        where = f"job {job.id}"
        missing = (start < 0) | (end < 0)
        if missing.any():
            findings.add("iterations", f"{where}: a compute task did not run", missing.ravel(), start.ravel(), tick)
            return findings.violations
        for kind, seconds in enumerate((exact(job.forward), exact(job.backward))):
            excess = (end - start)[:, :, kind].ravel() - int(seconds * scale)
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
            messages.append(Message(barrier, admitted, done))
            iteration_end = done
        else:
            messages.append(None)
        ready = np.concatenate(([log.placed[j]], iteration_end[:-1]))
        if log.placed[j] < exact(job.arrival) * scale:
            findings.violations.append(Violation("iterations", f"{where}: placed before its arrival"))
        early_forward = start[:, :, 0] - ready[:, None]
        early_backward = start[:, :, 1] - end[:, :, 0]
        for what, slack in (("forward", early_forward), ("backward", early_backward)):
            findings.add("iterations", f"{where}: {what} task too early", slack.ravel() < 0, slack.ravel(), tick)
        finish.append(int(iteration_end[-1]))
        for worker, gpu in enumerate(gpus):
            readiness = np.stack((ready, end[:, worker, 0]), axis=1).ravel()
            entry = (start[:, worker].ravel(), end[:, worker].ravel(), readiness)
            by_gpu.setdefault(gpu, []).append(entry)
    for (server, index), entries in sorted(by_gpu.items()):
        _audit_gpu(findings, f"server {instance.servers[server].id}, GPU {index}", entries, tick)
    _audit_memory(findings, instance, placement, log, finish)
    findings.violations += audit_links(instance, placement, policy, messages, digits)
    return findings.violations


def _audit_gpu(
    findings: _Findings, where: str, entries: list[tuple[IntArray, IntArray, IntArray]], tick: float
) -> None:
    """One task at a time, and no idling beside a ready one."""
    start, end, ready = (np.concatenate([entry[k] for entry in entries]) for k in range(3))
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
