"""A schedule of ddljs that grows slot by slot: who may run, what every job has, the rings of each slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.reach import reaches
from schedgap.formulations.ddljs.utility import LONGEST, gain, steepest, steepest_up_to
from schedgap.formulations.g_vne.ring_network import Need, Ring, RingNetwork
from schedgap.formulations.g_vne.substrate import Link, Server
from schedgap.heuristics.common.run import HeuristicRun


class GreedyState:
    """The state of a run.

    Attributes
    ----------
    network : what is left of the network in the current slot
    needs : demands of every job
    done : worker-slots of every job so far, z_i of the paper
    """

    def __init__(self, instance: DdljsInstance) -> None:
        self.instance = instance
        self.reach = reaches(instance)
        self.network = RingNetwork(instance)
        self.needs: list[Need] = [self.network.need(job.demand, job.bandwidth) for job in instance.jobs]
        self.done = [0] * len(instance.jobs)
        self.slots: list[dict[str, Any]] = []
        self._order = sorted(range(len(instance.jobs)), key=lambda i: instance.jobs[i].arrival)
        self._arrived = 0
        self._waiting: list[int] = []
        self._shares: list[float] = []
        self._used = 0
        self._gains: dict[int, tuple[int, int, Floats]] = {}
        self._slopes: dict[int, tuple[int, Floats, Ints]] = {}

    def active(self) -> list[int]:
        """I[t]: jobs that have arrived, with budget left and a ring that the network could host; in input order."""
        slot = len(self.slots) + 1
        while self._arrived < len(self._order) and self.instance.jobs[self._order[self._arrived]].arrival <= slot:
            self._waiting.append(self._order[self._arrived])
            self._arrived += 1
        self._waiting = sorted(i for i in self._waiting if self.largest(i))
        return self._waiting

    def largest(self, i: int) -> int:
        """The largest ring the job may still run: by N_i, the network alone, and what is left of its budget."""
        return min(self.reach[i].ring, self.allowed(i))

    def allowed(self, i: int) -> int:
        """The largest ring by N_i and what is left of the budget."""
        job = self.instance.jobs[i]
        return (
            job.max_workers if job.slot_limit is None else max(0, min(job.max_workers, job.slot_limit - self.done[i]))
        )

    def gains(self, i: int, most: int) -> Floats:
        """What rings of 1 to `most` workers add to the job's utility now."""
        found = self._gains.get(i)
        if found is None or found[:2] != (self.done[i], most):
            found = self.done[i], most, gain(self.instance.jobs[i], self.done[i], np.arange(1, most + 1))
            self._gains[i] = found
        return found[2]

    def steepest(self, i: int, most: int) -> tuple[float, int]:
        """The job's best average gain over 1 to `most` worker-slots from here on, and after how many."""
        job = self.instance.jobs[i]
        if job.concave or not 0 < most <= LONGEST:
            return steepest(job, self.done[i], most)
        found = self._slopes.get(i)
        if found is None or found[0] != self.done[i] or len(found[1]) < most:
            found = self.done[i], *steepest_up_to(job, self.done[i], most)
            self._slopes[i] = found
        return float(found[1][most - 1]), int(found[2][most - 1])

    def close(self, rings: Mapping[int, Ring], active: int) -> None:
        """End the slot with these rings, by job; `active` jobs were there to choose from."""
        self.slots.append(
            {"rings": {self.instance.jobs[i].id: self.network.solution_of(rings[i]) for i in sorted(rings)}}
        )
        for i, ring in rings.items():
            self.done[i] += len(ring.workers)
            self._used += len(ring.workers)
        if active:
            self._shares.append(len(rings) / active)
        self.network.reset()

    def loads(self, rings: Mapping[int, Ring]) -> tuple[Floats, Floats]:
        """What rings, by job, use of every server (by resource) and of every link."""
        for i, ring in rings.items():
            self.network.occupy(self.needs[i], ring)
        used, load = self.network.used.copy(), np.array(self.network.load, dtype=float)
        self.network.reset()
        return used, load

    def remaining_servers(self, rings: Mapping[int, Ring]) -> tuple[Server, ...]:
        """The servers with the resources that the rings leave; 0 where they overload one."""
        free = np.maximum(self.network.capacity - self.loads(rings)[0], 0.0)
        return tuple(
            server.model_copy(update={"resources": dict(zip(self.network.resources, row.tolist(), strict=True))})
            for server, row in zip(self.instance.servers, free, strict=True)
        )

    def remaining_links(self, rings: Mapping[int, Ring]) -> tuple[Link, ...]:
        """The links with the bandwidth that the rings leave; 0 where they overload one."""
        load = self.loads(rings)[1]
        return tuple(
            link.model_copy(update={"bandwidth": max(0.0, link.bandwidth - float(taken))})
            for link, taken in zip(self.instance.links, load, strict=True)
        )

    def solution(self) -> Solution:
        """The schedule so far."""
        return {"slots": self.slots}

    def run(self, **info: object) -> HeuristicRun:
        """The finished run.

        ``info``: ``embedded_ratio``, embedded over active jobs, averaged over slots with active jobs (Figures 5 and
        6 of the paper), ``worker_slots`` in all, and what the caller adds.
        """
        ratio = float(np.mean(self._shares)) if self._shares else None
        return HeuristicRun(self.solution(), {"embedded_ratio": ratio, "worker_slots": self._used, **info})


def place_largest(progress: GreedyState, i: int, most: int) -> Ring | None:
    """Place (and occupy) the largest ring of a job that fits what is left, at most `most` workers; None if none."""
    need = progress.needs[i]
    for size in range(min(most, int(progress.network.room(need).sum())), 0, -1):
        ring = progress.network.place(need, size)
        if ring is not None:
            return ring
    return None
