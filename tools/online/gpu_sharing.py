"""gpu-sharing as it comes to be known: jobs that run through, alone on their GPUs or in pairs, or may be preempted."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import FrozenDict, GpuServer, Json, Solution
from schedgap.formulations.gpu_sharing.check_elastic import check_elastic
from schedgap.formulations.gpu_sharing.dynamics import SharingTables, entries_of, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance, Job
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.formulations.gpu_sharing.schedule import Cluster
from schedgap.formulations.gpu_sharing.solution import ElasticSolution
from schedgap.heuristics.gpu_sharing.kernel import BEST_BENEFIT, Jobs
from schedgap.heuristics.gpu_sharing.preemptive import Elastic
from schedgap.heuristics.gpu_sharing.sharing import SharingPolicy
from schedgap.solvers.exact.gpu_sharing.bound import preemptive_bound
from schedgap.tools.online import state as online
from schedgap.tools.online.policies import Sjf, needs_length
from schedgap.tools.online.replay import Estimates, Refused, World, gpus_of
from schedgap.tools.online.state import Action, State

RESTART = 30.0
"""Seconds that a preempted job needs to go on, as for the heuristic tiresias."""


def world(
    instance: GpuSharingInstance, estimates: Estimates, seed: int, preempts: bool, restart: float | None
) -> World | None:
    """The world of an instance; see :func:`schedgap.tools.online.replay.world_of`."""
    if impossible(instance) is not None:
        return None
    if not preempts:
        return _Running(instance, estimates, seed)
    lost = math.ceil((RESTART if restart is None else restart) / instance.slot_length - 1e-9)
    return _Preemptive(instance, estimates, seed, lost)


class _Sharing(World):
    """What both kinds have in common: the cluster, and what is told of jobs."""

    by_number = True
    instance: GpuSharingInstance
    runs: Cluster | Elastic

    def __init__(self, instance: GpuSharingInstance, estimates: Estimates, seed: int) -> None:
        self.tables: SharingTables = tables(instance)
        super().__init__(instance, self.tables.arrival.tolist(), self.tables.gpus.tolist(), estimates, seed)
        for position, job in enumerate(instance.jobs if estimates == "user" else ()):
            if job.limit is not None:  # what its user asked for; it ran on to its end all the same
                alone = float(self.tables.solo_work[position]) * instance.slot_length
                self.factors[position] = max(1.0, job.limit / alone)
        self.shares = not self.preempts and instance.max_jobs_per_gpu > 1

    def cluster(self) -> Mapping[str, Json]:
        servers = [server.gpus for server in self.instance.servers]
        rules = {"max_jobs_per_gpu": self.instance.max_jobs_per_gpu, "gpu_memory": self.instance.gpu_memory}
        return {
            "servers": servers,
            "slot_length": self.instance.slot_length,
            **({"cluster": rules} if self.shares else {}),
        }

    def told(self, job: int) -> Sequence[Json]:
        length: list[Json] = [None, None]
        factor, work = self.factors[job], None
        if self.estimates != "none":
            slots = math.ceil(int(self.tables.solo_slots[job]) * factor)
            length = [float(self.tables.solo_work[job] * factor), slots]
            work = math.ceil(self.instance.jobs[job].iterations * factor)
        if not self.shares:
            return length
        row, column = self.tables.slowdown[job], self.tables.slowdown[:, job]
        here = [other for other in (*self.waiting, *self.running) if max(row[other], column[other]) > 1]
        beside = [[self.number[other], float(row[other]), float(column[other])] for other in sorted(here)]
        profile = self.instance.jobs[job].model_dump(exclude={"id", "arrival", "gpus", "iterations", "limit"})
        return [*length, {"work": work, "profile": profile, "slowdown": beside}]

    def alone(self) -> Sequence[float]:
        return [float(slots) for slots in self.tables.solo_slots]

    def next_end(self, until: int | None) -> int | None:
        return self.runs.next_end()

    def fits(self, job: int, free: int) -> None:
        """Refuse what there is no room for."""
        if self.sizes[job] > free:
            raise Refused(f"it needs {self.sizes[job]} GPUs, {free} are free")


class _Running(_Sharing):
    """Jobs run through: the cluster of the offline heuristics, and solutions of the problem."""

    runs: Cluster

    def __init__(self, instance: GpuSharingInstance, estimates: Estimates, seed: int) -> None:
        super().__init__(instance, estimates, seed)
        self.runs = Cluster(self.tables)
        self.chosen: list[int] = []

    def finish(self) -> tuple[Sequence[int], Sequence[int]]:
        self.runs.slot = self.slot
        return self.runs.finish(), ()

    def news(self) -> Sequence[Json]:
        placed = [(job, self.runs.running.get(job)) for job in self.chosen]
        self.chosen = []
        return [[self.number[job], {"place": gpus}] for job, gpus in placed if gpus]

    def start(self, job: int, place: Json) -> None:
        runs = self.runs
        if place is None:
            self.fits(job, runs.free)
            runs.begin(job, 0, runs.free_gpus(self.sizes[job]))
            self.chosen.append(job)
            return
        gpus = gpus_of(place, self.sizes[job], len(runs.holders))
        partners: set[int] = set()
        for gpu in gpus:
            if runs.occupancy[gpu] >= self.instance.max_jobs_per_gpu:
                raise Refused(f"GPU {gpu} is not free")
            partners.update(runs.holders[gpu])
        runs.begin(job, self.entry(job, partners), gpus)

    def entry(self, job: int, partners: set[int]) -> int:
        """The fewest accumulation steps with which it fits beside others; more steps never take less time."""
        for entry, steps in enumerate(self.tables.steps[job]):
            if all(self.tables.pair_fits(job, steps, other, int(self.runs.steps[other])) for other in partners):
                return entry
        raise Refused("there is no memory for it beside who is there")

    def solution(self) -> Solution:
        return self.runs.solution()

    def expects(self) -> Mapping[str, Json]:
        return {"completion": {job.id: int(end) for job, end in zip(self.instance.jobs, self.runs.end, strict=True)}}


class _Preemptive(_Sharing):
    """Jobs may be preempted: the elastic state of the heuristic tiresias, and schedules outside the model."""

    runs: Elastic
    preempts = True
    outside_model = True

    def __init__(self, instance: GpuSharingInstance, estimates: Estimates, seed: int, restart: int) -> None:
        super().__init__(instance, estimates, seed)
        self.restart = restart
        self.runs = Elastic(instance, 0.0, restart)
        self.free = instance.total_gpus

    def finish(self) -> tuple[Sequence[int], Sequence[int]]:
        self.runs.slot = self.slot
        self.runs.finish()
        self.free += sum(self.sizes[job] for job in self.runs.ended)
        return self.runs.ended, ()

    def start(self, job: int, place: Json) -> None:
        if place is not None:
            raise Refused("where jobs may be preempted, GPUs go by their number only")
        self.fits(job, self.free)
        self.runs.present[job] = None
        self.runs.resize(job, self.sizes[job])
        self.free -= self.sizes[job]

    def stop(self, job: int) -> None:
        self.runs.resize(job, 0)
        self.free += self.sizes[job]

    def solution(self) -> Solution:
        segments = {job.id: rows for job, rows in zip(self.instance.jobs, self.runs.segments, strict=True)}
        return {"segments": segments, "noise": 0.0, "restart": self.restart}

    def expects(self) -> Mapping[str, Json]:
        ends = [rows[-1][1] for rows in self.runs.segments]
        return {"completion": {job.id: end for job, end in zip(self.instance.jobs, ends, strict=True)}}

    def check(self, solution: Solution) -> CheckReport:
        return check_elastic(self.instance, ElasticSolution.parse(solution))

    def bound(self) -> float | None:
        return preemptive_bound(self.instance)


class SjfBsbf(Sjf):
    """Shortest job first with best sharing benefit first (paper 003), on a cluster of its own that it keeps up to date.

    Where GPUs are not shared it is shortest job first.
    A job has a seat in the tables while it is here, which another takes after it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seat: dict[int, int] = {}  # by number
        self.empty: list[int] = []
        self.cluster: Cluster | None = None

    def decide(self, state: State) -> Iterable[Action]:
        """O(jobs that are here) for each that arrives, and O(waiting x occupants), compiled."""
        if not state.cluster:
            return super().decide(state)
        cluster = self.cluster = self.cluster or self._open(state)
        cluster.slot = state.slot
        # its own cluster's ends are those of the estimates, so who has ended is not asked there
        left = [self.seat.pop(number) for number in state.ended]
        cluster.take_off(left)
        self.empty += left
        self._learn(cluster, [state.jobs[number] for number in state.arrived])
        order = {self.seat[number]: number for _, number in self.queue}
        seats = self.policy.decide(cluster, list(order)) if order else ()
        started = {order[seat]: cluster.placed[seat] for seat in seats}
        self.queue = [entry for entry in self.queue if entry[1] not in started]
        return [("start", number, gpus) for number, gpus in started.items()]

    def _open(self, state: State) -> Cluster:
        """No seats yet."""
        self.jobs: list[Job] = []  # of the seats, as the three beside it
        self.steps: list[tuple[int, ...]] = []
        self.work: list[tuple[float, ...]] = []
        self.load: list[tuple[float, ...]] = []
        sizes = [{"id": str(place), "gpus": gpus} for place, gpus in enumerate(state.servers)]
        self.known = GpuSharingInstance.model_construct(
            problem="gpu-sharing",
            name="",
            horizon=10**9,
            slot_length=state.slot_length,
            servers=tuple(GpuServer.model_validate(size) for size in sizes),
            jobs=self.jobs,
            interference=FrozenDict({}),
            **state.cluster,
        )
        none = np.zeros(0, dtype=np.int64)
        data = SharingTables(self.known, none, none, self.steps, self.work, self.load, np.ones((0, 0)))
        self.policy = SharingPolicy(data, BEST_BENEFIT)
        return Cluster(data)

    def _learn(self, cluster: Cluster, arrived: Sequence[online.Job]) -> None:
        """Give seats to jobs that have come."""
        rows = {}
        for job in arrived:
            needs_length(job)
            own = {"id": str(job.id), "arrival": job.arrival, "gpus": job.gpus, "iterations": job.facts["work"]}
            row = Job.model_validate({**job.facts["profile"], **own})
            rows[job.id] = row, *entries_of(row, self.known.gpu_memory, self.known.slot_length)
        slows = len(self.policy.jobs.slowdown) > 1 or any(job.facts["slowdown"] for job in arrived)
        self._make_room(cluster, list(rows.values()), slows)
        for number, (row, steps, work, load) in rows.items():
            seat = self.seat[number] = self.empty.pop()
            self.jobs[seat] = row
            self.steps[seat] = steps
            self.work[seat] = work
            self.load[seat] = load
            jobs = self.policy.jobs
            count = len(steps)
            jobs.gpus[seat] = row.gpus
            jobs.entries[seat] = count
            jobs.work[seat, :count] = work
            jobs.load[seat, :count] = load
            if slows:
                for pairs in (jobs.slowdown, jobs.slowed):
                    pairs[seat] = 1.0
                    pairs[:, seat] = 1.0
            bisect.insort(self.queue, (work[0], number))
        for job in arrived:
            one, jobs = self.seat[job.id], self.policy.jobs
            for number, mine, its in job.facts["slowdown"]:
                other = self.seat[number]
                jobs.slowdown[one, other] = jobs.slowed[other, one] = mine
                jobs.slowdown[other, one] = jobs.slowed[one, other] = its

    def _make_room(self, cluster: Cluster, rows: Sequence[_Row], slows: bool) -> None:
        """Seats for so many more jobs, twice as many where they are too few."""
        jobs, here = self.policy.jobs, len(self.jobs)
        more = max(here, len(rows)) if len(self.empty) < len(rows) else 0
        seats = here + more
        entries = max(jobs.work.shape[1], *(len(steps) for _, steps, *_ in rows), 1)
        wide = (seats, entries)
        pairs = (seats, seats) if slows else (1, 1)
        if (jobs.work.shape, jobs.slowdown.shape) == (wide, pairs):
            return
        self.empty += range(here, seats)
        for kept, filler in zip((self.jobs, self.steps, self.work, self.load), rows[0], strict=True):
            kept += [filler] * more  # type: ignore[operator]
        slowdown, slowed = (_grown(array, pairs, 1.0) for array in (jobs.slowdown, jobs.slowed))
        self.policy.jobs = Jobs(
            _grown(jobs.gpus, (seats,), 0),
            _grown(jobs.entries, (seats,), 0),
            _grown(jobs.work, wide, np.inf),
            _grown(jobs.load, wide, np.inf),
            np.arange(seats) if slows else np.zeros(seats, dtype=np.int64),
            slowdown,
            slowed,
        )
        told = slowdown if slows else np.broadcast_to(1.0, (seats, seats))
        gpus = self.policy.jobs.gpus
        cluster.extend(SharingTables(self.known, gpus, gpus, self.steps, self.work, self.load, told))


_Row: TypeAlias = tuple[Job, tuple[int, ...], tuple[float, ...], tuple[float, ...]]
_Array = TypeVar("_Array", Ints, Floats)


def _grown(array: _Array, shape: tuple[int, ...], value: float) -> _Array:
    """It, and room behind it."""
    grown = np.full(shape, value, dtype=array.dtype)
    grown[tuple(slice(length) for length in array.shape)] = array
    return grown
