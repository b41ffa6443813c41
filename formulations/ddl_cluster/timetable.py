"""From an order of tasks to a schedule: every task as early as the order and its wanted start allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

Compute = tuple[int, int, int, int]
"""A compute task: job, iteration, kind (0 forward, 1 backward), worker."""
AllReduce = tuple[int, int]
"""An all-reduce: job, iteration."""


@dataclass(frozen=True)
class Plan:
    """What an exact method decides.

    Attributes
    ----------
    start : wanted start of the compute tasks on GPUs that several jobs share, in seconds; they also give the
        order on each GPU. The others start as soon as they can
    begin : wanted begin of each all-reduce's transfer, in seconds: its admission and then its latency
    after : by all-reduce, those whose transfer must have ended before its own begins
    waits : by job, those that must have finished before it starts, for their memory
    """

    start: Mapping[Compute, float]
    begin: Mapping[AllReduce, float]
    after: Mapping[AllReduce, Sequence[AllReduce]]
    waits: Mapping[int, Sequence[int]]


def timetable(instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]], plan: Plan) -> Solution:
    """The solution with explicit start times that follows `plan`.

    A task starts when what it must wait for has ended (the task before it in its job, the one before it on its
    GPU, for an all-reduce those of ``plan.after``), but not before its wanted start. How long all-reduces take
    follows from eq. (5).

    Raises
    ------
    ValueError
        The plan's order has a cycle: nothing can start any more.

    Notes
    -----
    O(E (W + A^2 L)) for E events, W workers, A all-reduces at a time, L servers per job.
    """
    return _Execution(instance, placement, plan).run()


class _Execution:
    """The state while a plan is carried out."""

    def __init__(self, instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]], plan: Plan) -> None:
        self.instance, self.placement, self.plan = instance, placement, plan
        jobs = instance.jobs
        self.servers = [frozenset(server for server, _ in gpus) for gpus in placement]
        self.now = 0.0
        self.iteration = [0] * len(jobs)
        self.ready = [job.arrival for job in jobs]
        self.step = [[0] * job.gpus for job in jobs]  # 0 and 2: a task to start, 1 and 3: in it, 4: at the barrier
        self.task_end = [[0.0] * job.gpus for job in jobs]
        self.sending = [False] * len(jobs)
        self.begins: dict[int, float] = {}
        self.left: dict[int, float] = {}
        self.ended: set[AllReduce] = set()
        self.finish = [0.0] * len(jobs)
        self.unfinished = set(range(len(jobs)))
        self.starts = [
            {"forward": _rows(job.iterations, job.gpus), "backward": _rows(job.iterations, job.gpus)} for job in jobs
        ]
        self.admissions = [[0.0] * job.iterations for job in jobs]
        self.queue: dict[Gpu, list[Compute]] = {}
        for task in sorted(plan.start, key=lambda task: (plan.start[task], task)):
            j, _, _, w = task
            self.queue.setdefault(placement[j][w], []).append(task)
        for row in self.queue.values():
            row.reverse()
        self.busy: set[Gpu] = set()

    def run(self) -> Solution:
        while self.unfinished:
            while self._start_all():
                pass
            if self.unfinished:
                self._advance()
        instance = self.instance
        schedule: dict[str, dict[str, list[list[float]] | list[float]]] = {}
        for j, job in enumerate(instance.jobs):
            schedule[job.id] = dict(self.starts[j])
            if len(self.servers[j]) > 1:
                schedule[job.id]["allreduce"] = self.admissions[j]
        placement = {
            job.id: [[instance.servers[server].id, index] for server, index in gpus]
            for job, gpus in zip(instance.jobs, self.placement, strict=True)
        }
        finish = {job.id: end for job, end in zip(instance.jobs, self.finish, strict=True)}
        return {"placement": placement, "schedule": schedule, "finish": finish}

    def _wanted(self, j: int, w: int) -> tuple[Compute, float | None]:
        """The next task of a worker and when it may start now; None while its GPU or its turn is missing."""
        task = (j, self.iteration[j], self.step[j][w] // 2, w)
        if task[1] == 0 and task[2] == 0 and any(other in self.unfinished for other in self.plan.waits.get(j, ())):
            return task, None
        earliest = self.ready[j] if self.step[j][w] == 0 else self.task_end[j][w]
        gpu = self.placement[j][w]
        if gpu in self.queue:
            if gpu in self.busy or self.queue[gpu][-1] != task:
                return task, None
            earliest = max(earliest, self.plan.start[task])
        return task, earliest

    def _begin(self, j: int) -> float | None:
        """When the transfer of the waiting all-reduce of job j may begin; None while it must wait for others."""
        key = (j, self.iteration[j])
        if any(other not in self.ended for other in self.plan.after.get(key, ())):
            return None
        return max(max(self.task_end[j]) + self.instance.link.latency, self.plan.begin.get(key, 0.0), self.now)

    def _start_all(self) -> bool:
        """Start whatever can start now; whether something did."""
        any_started = False
        for j in sorted(self.unfinished):
            job = self.instance.jobs[j]
            for w in range(job.gpus):
                if self.step[j][w] in (0, 2):
                    (_, i, kind, _), earliest = self._wanted(j, w)
                    if earliest is not None and earliest <= self.now:
                        self.starts[j][("forward", "backward")[kind]][i][w] = self.now
                        self.task_end[j][w] = self.now + (job.backward if kind else job.forward)
                        self.step[j][w] += 1
                        gpu = self.placement[j][w]
                        if gpu in self.queue:
                            self.queue[gpu].pop()
                            self.busy.add(gpu)
                        any_started = True
            if all(step == 4 for step in self.step[j]) and not self.sending[j]:
                if len(self.servers[j]) == 1:
                    self._next_iteration(j, self.now)
                    any_started = True
                elif (begin := self._begin(j)) is not None and begin <= self.now:
                    self.admissions[j][self.iteration[j]] = max(
                        begin - self.instance.link.latency, max(self.task_end[j])
                    )
                    self.sending[j] = True
                    self.left[j] = job.message
                    any_started = True
        return any_started

    def _next_iteration(self, j: int, now: float) -> None:
        self.iteration[j] += 1
        self.ready[j] = now
        if self.iteration[j] == self.instance.jobs[j].iterations:
            self.unfinished.discard(j)
            self.finish[j] = now
            self.step[j] = [5] * self.instance.jobs[j].gpus
        else:
            self.step[j] = [0] * self.instance.jobs[j].gpus

    def _advance(self) -> None:
        """Move to the next moment at which something ends or may start."""
        cost = {}
        for j in self.left:
            k = max(sum(server in self.servers[other] for other in self.left) for server in self.servers[j])
            cost[j] = self.instance.link.seconds_per_unit_among(k)
        ends = {j: self.now + self.left[j] * cost[j] for j in self.left}
        moments = list(ends.values())
        for j in self.unfinished:
            for w, step in enumerate(self.step[j]):
                if step in (1, 3):
                    moments.append(self.task_end[j][w])
                elif step in (0, 2) and (earliest := self._wanted(j, w)[1]) is not None:
                    moments.append(earliest)
            if all(step == 4 for step in self.step[j]) and not self.sending[j]:
                begin = self._begin(j)
                if begin is not None:
                    moments.append(begin)
        if not moments:
            raise ValueError("the plan's order has a cycle")
        then = max(self.now, min(moments))
        for j in list(self.left):
            if ends[j] <= then:
                del self.left[j]
                self.sending[j] = False
                self.ended.add((j, self.iteration[j]))
                self._next_iteration(j, then)
            else:
                self.left[j] -= (then - self.now) / cost[j]
        for j in self.unfinished:
            for w, step in enumerate(self.step[j]):
                if step in (1, 3) and self.task_end[j][w] <= then:
                    self.step[j][w] += 1
                    self.busy.discard(self.placement[j][w])
        self.now = then


def _rows(rows: int, columns: int) -> list[list[float]]:
    return [[0.0] * columns for _ in range(rows)]
