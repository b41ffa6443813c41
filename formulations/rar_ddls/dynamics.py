"""What a placement means in time: the event-driven simulation (paper 000, equations (6) to (9)).

Models and heuristics use it; the checker has its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table


@dataclass(frozen=True)
class Segment:
    """Slots in which nothing changes for a job."""

    # first, last: slots, both included; last is None for a job that stalls for ever
    first: int
    last: int | None
    contention: int  # p_j of eq. (6) there; 0 for a ring inside one server
    rate: int  # iterations per slot


@dataclass(frozen=True)
class Schedule:
    """What follows from start slots and placements."""

    completion: dict[str, int | None]  # the slot in which each job completes, None where it never does
    segments: dict[str, tuple[Segment, ...]]  # each job's life in pieces of constant contention and rate

    @property
    def makespan(self) -> int | None:
        """max_j T_j in slots, or None where a job never completes."""
        latest = 0
        for slot in self.completion.values():
            if slot is None:
                return None
            latest = max(latest, slot)
        return latest


def simulate(
    instance: RarDdlsInstance, start: Mapping[str, int], placement: Mapping[str, Mapping[str, int]]
) -> Schedule:
    """Run jobs to completion under the dynamics, whatever the horizon and the capacities.

    Parameters
    ----------
    start : first slot of each job that is to run (all, or some of them)
    placement : GPUs (>= 1) by server of each of these jobs

    Returns
    -------
    Schedule of these jobs, in their input order.

    Notes
    -----
    Event-driven: a job is looked at when it starts, completes, or when a job that crosses one of its servers
    does. O(E log E) for E such looks; independent of the number of slots. Source: paper 000, eq. (6) to (9).
    """
    return _Simulation(instance, start, placement).run()


class _Simulation:
    def __init__(
        self, instance: RarDdlsInstance, start: Mapping[str, int], placement: Mapping[str, Mapping[str, int]]
    ) -> None:
        self.table = rate_table(instance)
        self.ids = [job.id for job in instance.jobs]
        self.run_jobs = [j for j, name in enumerate(self.ids) if name in start]
        self.start = {j: start[self.ids[j]] for j in self.run_jobs}
        self.used: dict[int, int] = {}
        self.crossed: dict[int, list[str]] = {}
        for j in self.run_jobs:
            size = instance.jobs[j].gpus
            placed = placement[self.ids[j]]
            self.used[j] = len(placed)
            self.crossed[j] = [server for server, gpus in placed.items() if 0 < gpus < size]
        contention = np.arange(self.table.p_max + 1)
        servers_used = np.array([self.used[j] for j in self.run_jobs], dtype=np.int64)
        rows = self.table.rates(
            np.array(self.run_jobs, dtype=np.int64)[:, None], servers_used[:, None], contention
        ).tolist()
        self.rates: dict[int, list[int]] = dict(zip(self.run_jobs, rows, strict=True))
        self.remaining: dict[int, int] = {j: instance.jobs[j].iterations for j in self.run_jobs}
        self.crossing: dict[str, set[int]] = {}
        self.current: dict[int, tuple[int, int, int]] = {}
        self.segments: dict[int, list[Segment]] = {j: [] for j in self.run_jobs}
        self.completion: dict[int, int | None] = dict.fromkeys(self.run_jobs)

    def run(self) -> Schedule:
        # Events are (slot, kind, job, version): 0 a job has completed in the slot before, 1 a job starts.
        events = [(slot, 1, j, 0) for j, slot in self.start.items()]
        heapq.heapify(events)
        version = dict.fromkeys(self.run_jobs, 0)
        while events:
            now = events[0][0]
            changed: set[str] = set()
            look: set[int] = set()
            while events and events[0][0] == now:
                _, kind, j, stamp = heapq.heappop(events)
                if kind == 0:
                    if stamp == version[j]:
                        changed.update(self._complete(j, now))
                        look.discard(j)
                else:
                    for server in self.crossed[j]:
                        self.crossing.setdefault(server, set()).add(j)
                    changed.update(self.crossed[j])
                    look.add(j)
            for server in changed:
                look |= self.crossing[server]
            for j in look:
                if self._look(j, now):
                    version[j] += 1
                    rate = self.current[j][2]
                    if rate:
                        heapq.heappush(events, (now - (-self.remaining[j] // rate), 0, j, version[j]))
        for j, (first, contention, rate) in self.current.items():
            self.segments[j].append(Segment(first, None, contention, rate))
        return Schedule(
            completion={self.ids[j]: self.completion[j] for j in self.run_jobs},
            segments={self.ids[j]: tuple(self.segments[j]) for j in self.run_jobs},
        )

    def _complete(self, j: int, now: int) -> list[str]:
        first, contention, rate = self.current.pop(j)
        self.segments[j].append(Segment(first, now - 1, contention, rate))
        self.completion[j] = now - 1
        for server in self.crossed[j]:
            self.crossing[server].discard(j)
        return self.crossed[j]

    def _look(self, j: int, now: int) -> bool:
        """Bring job j up to date; whether the contention it meets has changed."""
        contention = max((len(self.crossing[server]) for server in self.crossed[j]), default=0)
        known = self.current.get(j)
        if known is not None:
            first, before, rate = known
            if before == contention:
                return False
            self.remaining[j] -= rate * (now - first)
            self.segments[j].append(Segment(first, now - 1, before, rate))
        row = self.rates[j]
        if contention < len(row):
            rate = row[contention]
        else:  # an overfilled server
            rate = int(self.table.rates(j, self.used[j], contention))
        self.current[j] = (now, contention, rate)
        return True
