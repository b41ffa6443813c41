"""From a placement and an order of tasks to a schedule: each task as early as order and wanted start allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

Compute = tuple[int, int, int, int]
"""A compute task: job, iteration, kind (0 forward, 1 backward), worker."""


AllReduce = tuple[int, int]
"""An all-reduce: job, iteration."""


Ticks = int | Fraction
"""A moment or a duration; a whole number where it is one."""


FINEST_DIGITS = 60
"""Decimal places of a second that a tick has at most."""


LARGEST_TICK = 10**15
"""Whole numbers below this, divided by a power of ten, are floating-point numbers with exactly these digits."""


@dataclass(frozen=True)
class Plan:
    """What an exact method decides."""

    # wanted start of the compute tasks on GPUs that several jobs share, in seconds; they also give the order on each
    # GPU. The others start as soon as they can
    start: Mapping[Compute, float]
    # wanted begin of each all-reduce's transfer, in seconds: its admission and then its latency
    begin: Mapping[AllReduce, float]
    # by all-reduce, those whose transfer must have ended before its own begins
    after: Mapping[AllReduce, Sequence[AllReduce]]
    waits: Mapping[int, Sequence[int]]  # jobs that must have finished before each job starts, for their memory


def timetable(instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]], plan: Plan) -> Solution:
    """The solution with explicit start times that follows `plan`.

    A task starts when what it must wait for has ended (the task before it in its job, the one before it on its
    GPU, for an all-reduce those of ``plan.after``), but not before its wanted start. How long all-reduces take
    follows from eq. (5). All is exact, and starts are rounded up to a decimal that floating point can write: an
    admission that is early by one unit in the last place would meet the all-reduce before it, and each one that
    follows would multiply the delay by 1 + eta / b. Raises ValueError: the plan's order has a cycle: nothing can start
    any more.

    Notes
    -----
    O(E (W + A^2 L)) for E events, W workers, A all-reduces at a time, L servers per job, on whole numbers while
    there is no contention and on rationals while there is.
    """
    return _Execution(instance, placement, plan).run()


class _Execution:
    """The state while a plan is carried out; times in ticks of 10^-digits seconds, exact."""

    def __init__(self, instance: DdlClusterInstance, placement: Sequence[Sequence[Gpu]], plan: Plan) -> None:
        self.instance, self.placement, self.plan = instance, placement, plan
        jobs = instance.jobs
        last = max(job.arrival for job in jobs) + instance.longest_run + max([0.0, *plan.start.values()])
        digits = FINEST_DIGITS
        while last * 10**digits >= LARGEST_TICK:
            digits -= 1
        self.scale = Fraction(10) ** digits
        latency, b, eta = instance.link.exact_parameters()
        self.latency = self._ticks(latency)
        self.slowdown = (b + eta) / b
        self.compute = [(self._ticks(exact(job.forward)), self._ticks(exact(job.backward))) for job in jobs]
        self.transfer = [self._ticks(b * exact(job.message)) for job in jobs]
        self.wanted = {task: floor(exact(moment) * self.scale) for task, moment in plan.start.items()}
        self.begin = {key: floor(exact(moment) * self.scale) for key, moment in plan.begin.items()}
        self.servers = [frozenset(server for server, _ in gpus) for gpus in placement]
        self.now: Ticks = 0
        self.iteration = [0] * len(jobs)
        self.ready = [self._ticks(exact(job.arrival)) for job in jobs]
        self.step = [[0] * job.gpus for job in jobs]  # 0, 2: a task to start, 1, 3: in it, 4: at the barrier, 5: done
        self.task_end: list[list[Ticks]] = [[0] * job.gpus for job in jobs]
        self.sending = [False] * len(jobs)
        self.left: dict[int, Ticks] = {}  # what is left of a transfer would take so long alone
        self.ended: set[AllReduce] = set()
        self.finish: list[Ticks] = [0] * len(jobs)
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

    def _ticks(self, seconds: Fraction) -> Ticks:
        """`seconds` in ticks, as a whole number where it is one."""
        ticks = seconds * self.scale
        return ticks.numerator if ticks.denominator == 1 else ticks

    def _seconds(self, ticks: Ticks) -> float:
        return float(ticks / self.scale)

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
        finish = {job.id: self._seconds(end) for job, end in zip(instance.jobs, self.finish, strict=True)}
        return {"placement": placement, "schedule": schedule, "finish": finish}

    def _next(self, j: int, w: int) -> tuple[Compute, int | None]:
        """The next task of a worker and the tick it may start at; None while its GPU or its turn is missing."""
        task = (j, self.iteration[j], self.step[j][w] // 2, w)
        if task[1] == 0 and task[2] == 0 and any(other in self.unfinished for other in self.plan.waits.get(j, ())):
            return task, None
        earliest = max(self.now, self.ready[j] if self.step[j][w] == 0 else self.task_end[j][w])
        gpu = self.placement[j][w]
        if gpu in self.queue:
            if gpu in self.busy or self.queue[gpu][-1] != task:
                return task, None
            earliest = max(earliest, self.wanted[task])
        return task, ceil(earliest)

    def _admission(self, j: int) -> int | None:
        """When the waiting all-reduce of job j may be admitted; None while its transfer must wait for others."""
        key = (j, self.iteration[j])
        if any(other not in self.ended for other in self.plan.after.get(key, ())):
            return None
        first_unit = max(self.now, self.begin.get(key, 0))
        return ceil(max(*self.task_end[j], first_unit - self.latency))

    def _start_all(self) -> bool:
        """Start whatever can start now; whether something did."""
        any_started = False
        for j in sorted(self.unfinished):
            for w in range(self.instance.jobs[j].gpus):
                if self.step[j][w] in (0, 2):
                    (_, i, kind, _), earliest = self._next(j, w)
                    if earliest is not None and earliest <= self.now:
                        self.starts[j][("forward", "backward")[kind]][i][w] = self._seconds(self.now)
                        self.task_end[j][w] = self.now + self.compute[j][kind]
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
                elif (admission := self._admission(j)) is not None and admission + self.latency <= self.now:
                    self.admissions[j][self.iteration[j]] = self._seconds(admission)
                    self.sending[j] = True
                    self.left[j] = self.transfer[j]
                    any_started = True
        return any_started

    def _next_iteration(self, j: int, now: Ticks) -> None:
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
        cost: dict[int, Ticks] = {}
        for j in self.left:
            k = max(sum(server in self.servers[other] for other in self.left) for server in self.servers[j])
            cost[j] = 1 if k == 1 else k + (k - 1) * (self.slowdown - 1)
        ends = {j: self.now + self.left[j] * cost[j] for j in self.left}
        moments = list(ends.values())
        for j in self.unfinished:
            for w, step in enumerate(self.step[j]):
                if step in (1, 3):
                    moments.append(self.task_end[j][w])
                elif step in (0, 2) and (earliest := self._next(j, w)[1]) is not None:
                    moments.append(earliest)
            if all(step == 4 for step in self.step[j]) and not self.sending[j]:
                admission = self._admission(j)
                if admission is not None:
                    moments.append(admission + self.latency)
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
                passed = then - self.now
                self.left[j] -= passed if cost[j] == 1 else passed / Fraction(cost[j])
        for j in self.unfinished:
            for w, step in enumerate(self.step[j]):
                if step in (1, 3) and self.task_end[j][w] <= then:
                    self.step[j][w] += 1
                    self.busy.discard(self.placement[j][w])
        self.now = then


def _rows(rows: int, columns: int) -> list[list[float]]:
    return [[0.0] * columns for _ in range(rows)]
