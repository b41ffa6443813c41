"""gpu-sharing as it comes to be known: jobs on GPUs of their own, which run through or may be preempted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from schedgap.benchmarks.online.replay import Arrivals, Estimates, Refused, World
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.gpu_sharing.check import check, check_elastic
from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.instance import ElasticSolution, GpuSharingInstance, GpuSharingSolution
from schedgap.formulations.gpu_sharing.modes import impossible
from schedgap.formulations.gpu_sharing.schedule import Cluster
from schedgap.heuristics.gpu_sharing.preemptive import Elastic
from schedgap.solvers.exact.gpu_sharing.bound import lower_bound, preemptive_bound

RESTART = 30.0
"""Seconds that a preempted job needs to go on, as for the heuristic tiresias."""
OVERESTIMATE = 4.0
"""A user asks for 1 to 1 + this times the length, uniformly (the f-model of Mu'alem and Feitelson, TPDS 2001)."""


def world(
    instance: GpuSharingInstance, preempts: bool, estimates: Estimates, seed: int, restart: float | None
) -> World | None:
    """The world of an instance; see :func:`schedgap.benchmarks.online.replay.world_of`."""
    if impossible(instance) is not None:
        return None
    if not preempts:
        return _Running(instance, estimates, seed)
    lost = math.ceil((RESTART if restart is None else restart) / instance.slot_length - 1e-9)
    return _Preemptive(instance, estimates, seed, lost)


class _Exclusive(World):
    """What both kinds have in common: who has arrived, and what is told of lengths."""

    preempts: ClassVar[bool]
    cluster: Cluster | Elastic
    restart = 0

    def __init__(self, instance: GpuSharingInstance, estimates: Estimates, seed: int) -> None:
        self.instance, self.seed = instance, seed
        data = tables(instance)
        self.gpus = data.gpus.tolist()
        self.arrivals = Arrivals(data.arrival.tolist())
        self.position = self.arrivals.position
        self.number = {job: number for number, job in enumerate(self.position)}
        self.left = len(self.position)
        self.waiting: set[int] = set()
        self.running: set[int] = set()
        self.told: Sequence[tuple[float | None, int | None]] = [(None, None)] * self.left
        if estimates != "none":
            draws = np.random.default_rng(seed).random(self.left) if estimates == "user" else np.zeros(self.left)
            factors = 1.0 + OVERESTIMATE * draws
            work, slots = data.solo_work * factors, np.ceil(data.solo_slots * factors).astype(np.int64)
            self.told = list(zip(work.tolist(), slots.tolist(), strict=True))

    def opening(self) -> Mapping[str, Json]:
        servers = [server.gpus for server in self.instance.servers]
        length = self.instance.slot_length
        rules = {"preempts": self.preempts, "restart": self.restart}
        return {"servers": servers, "slot_length": length, **rules, "seed": self.seed}

    def event(self, slot: int, ended: Sequence[int]) -> Mapping[str, Json]:
        """What the policy is told of a slot, given the positions of the jobs that ended before it."""
        arrived = self.arrivals.until(slot)
        self.running.difference_update(ended)
        self.left -= len(ended)
        new = [self.position[number] for number in arrived]
        self.waiting.update(new)
        rows = [[number, self.gpus[job], *self.told[job]] for number, job in zip(arrived, new, strict=True)]
        return {"slot": slot, "ended": sorted(self.number[job] for job in ended), "arrived": rows}

    def next_slot(self) -> int | None:
        end, comes = self.cluster.next_end(), self.arrivals.next_slot()
        return min((moment for moment in (comes, end and end + 1) if moment is not None), default=None)

    def unfinished(self) -> int:
        return self.left

    def bound(self) -> float | None:
        return preemptive_bound(self.instance) if self.preempts else lower_bound(self.instance)

    def act(self, verb: str, job: int, gpus: Sequence[int] | None) -> None:
        position = self.position[job] if 0 <= job < self.arrivals.known else -1
        if verb == "preempt":
            if not self.preempts:
                raise Refused("jobs run through; a policy that preempts says preempts = True")
            if position not in self.running:
                raise Refused("it does not run")
            self.stop(position)
            self.running.discard(position)
            self.waiting.add(position)
            return
        if position not in self.waiting:
            raise Refused("it does not wait")
        self.start(position, gpus)
        self.waiting.discard(position)
        self.running.add(position)

    def stop(self, job: int) -> None:
        """Take its GPUs away."""
        raise NotImplementedError

    def start(self, job: int, gpus: Sequence[int] | None) -> None:
        """Give it GPUs, those named or any."""
        raise NotImplementedError

    def fits(self, job: int, free: int) -> None:
        """Refuse what there is no room for."""
        if self.gpus[job] > free:
            raise Refused(f"it needs {self.gpus[job]} GPUs, {free} are free")


class _Running(_Exclusive):
    """Jobs run through: the cluster of the offline heuristics, and solutions of the problem."""

    cluster: Cluster
    preempts = False

    def __init__(self, instance: GpuSharingInstance, estimates: Estimates, seed: int) -> None:
        super().__init__(instance, estimates, seed)
        self.cluster = Cluster(tables(instance))

    def advance(self, slot: int) -> Mapping[str, Json]:
        self.cluster.slot = slot
        return self.event(slot, self.cluster.finish())

    def start(self, job: int, gpus: Sequence[int] | None) -> None:
        cluster = self.cluster
        if gpus is None:
            self.fits(job, cluster.free)
            cluster.begin(job, 0, cluster.free_gpus(self.gpus[job]))
            return
        if len(gpus) != self.gpus[job] or len(set(gpus)) != len(gpus):
            raise Refused(f"it needs {self.gpus[job]} different GPUs, {len(set(gpus))} are named")
        for gpu in gpus:
            if not 0 <= gpu < len(cluster.holders):
                raise Refused(f"there is no GPU {gpu}, they go from 0 to {len(cluster.holders) - 1}")
            if cluster.occupancy[gpu]:
                raise Refused(f"GPU {gpu} is not free")
        cluster.begin(job, 0, list(gpus))

    def solution(self) -> Solution:
        return self.cluster.solution()

    def completion(self) -> Mapping[str, int]:
        return {job.id: int(end) for job, end in zip(self.instance.jobs, self.cluster.end, strict=True)}

    def check(self, solution: Solution) -> CheckReport:
        return check(self.instance, GpuSharingSolution.parse(solution))


class _Preemptive(_Exclusive):
    """Jobs may be preempted: the elastic state of the heuristic tiresias, and schedules outside the model."""

    cluster: Elastic
    preempts = True
    outside_model = True

    def __init__(self, instance: GpuSharingInstance, estimates: Estimates, seed: int, restart: int) -> None:
        super().__init__(instance, estimates, seed)
        self.restart = restart
        self.cluster = Elastic(instance, 0.0, restart)
        self.free = instance.total_gpus

    def advance(self, slot: int) -> Mapping[str, Json]:
        self.cluster.slot = slot
        self.cluster.finish()
        self.free += sum(self.gpus[job] for job in self.cluster.ended)
        event = self.event(slot, self.cluster.ended)
        self.cluster.present.update(dict.fromkeys(self.position[row[0]] for row in event["arrived"]))
        return event

    def start(self, job: int, gpus: Sequence[int] | None) -> None:
        if gpus is not None:
            raise Refused("where jobs may be preempted, GPUs go by their number only")
        self.fits(job, self.free)
        self.cluster.resize(job, self.gpus[job])
        self.free -= self.gpus[job]

    def stop(self, job: int) -> None:
        self.cluster.resize(job, 0)
        self.free += self.gpus[job]

    def solution(self) -> Solution:
        segments = {job.id: rows for job, rows in zip(self.instance.jobs, self.cluster.segments, strict=True)}
        return {"segments": segments, "noise": 0.0, "restart": self.restart}

    def completion(self) -> Mapping[str, int]:
        return {job.id: rows[-1][1] for job, rows in zip(self.instance.jobs, self.cluster.segments, strict=True)}

    def check(self, solution: Solution) -> CheckReport:
        return check_elastic(self.instance, ElasticSolution.parse(solution))
