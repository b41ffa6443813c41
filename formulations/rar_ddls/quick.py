"""A quick feasible schedule, good enough to cut the horizon of a time-indexed model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.rar_ddls.dynamics import RateTable, rate_table, simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance

_LOOKS = 40_000


def quick_schedule(instance: RarDdlsInstance, seed: int = 0) -> tuple[int, Solution] | None:
    """The best of many greedy schedules: (makespan, solution), or None where none keeps the horizon.

    Each pass takes the jobs in some order; in slot 1 and after every completion a job that fits one server goes
    to the fullest such server, any other to the emptiest ones, either as soon as they are free or only when no
    other ring crosses them. Four passes have fixed orders (falling GPUs x duration, falling duration), the rest
    disturb them at random from `seed`.

    Notes
    -----
    A pass is O(J K) for K jobs that run at once, plus O(J S); the number of passes falls with J^2, from 100 for
    ten jobs to the four fixed ones. Meant for the sizes of time-indexed models.
    """
    table = rate_table(instance)
    if (table.best_rate == 0).any():
        return None
    jobs = len(instance.jobs)
    rng = np.random.default_rng(seed)
    work = (table.gpus * table.best_duration).astype(np.float64)
    length = table.best_duration.astype(np.float64)
    passes = [(key, sharing) for key in (work, length) for sharing in (0.0, 1.0)]
    for index in range(min(96, _LOOKS // (4 * jobs * jobs))):
        key = (work, length)[index % 2]
        passes.append((key * rng.uniform(0.3, 1.0, jobs), float(rng.choice([0.0, 0.5, 1.0]))))
    rates: dict[tuple[int, int], list[int]] = {}
    best: tuple[int, Solution] | None = None
    for key, sharing in passes:
        order = np.argsort(-key, kind="stable").tolist()
        shares_links = (rng.random(jobs) < sharing).tolist()
        found = _Pass(instance, table, rates, shares_links).run(order)
        if found is None:
            continue
        makespan = simulate(instance, found["start"], found["placement"]).makespan
        if makespan is not None and makespan <= (instance.horizon if best is None else best[0] - 1):
            best = (makespan, found)
    return best


class _Pass:
    """One greedy pass; it keeps the clock, and what every running job has left."""

    def __init__(
        self,
        instance: RarDdlsInstance,
        table: RateTable,
        rates: dict[tuple[int, int], list[int]],
        shares_links: Sequence[bool],
    ) -> None:
        self.instance = instance
        self.table = table
        self.rates = rates
        self.shares_links = shares_links
        self.idle = [server.gpus for server in instance.servers]
        self.crossed = [0] * len(instance.servers)
        self.running: dict[int, list[tuple[int, int]]] = {}
        self.left: dict[int, int] = {}

    def run(self, waiting: list[int]) -> Solution | None:
        start: dict[str, int] = {}
        placement: dict[str, dict[str, int]] = {}
        now = 1
        while waiting:
            later = []
            for j in waiting:
                chosen = self._choose(j)
                if chosen is None:
                    later.append(j)
                    continue
                job = self.instance.jobs[j]
                start[job.id] = now
                placement[job.id] = {self.instance.servers[s].id: gpus for s, gpus in chosen}
                self.running[j] = chosen
                self.left[j] = job.iterations
                for s, gpus in chosen:
                    self.idle[s] -= gpus
                    self.crossed[s] += gpus < job.gpus
            waiting = later
            if waiting:
                slots = self._advance()
                if slots is None:
                    return None
                now += slots
        return {"start": start, "placement": placement}

    def _advance(self) -> int | None:
        """Run until the next completion; the slots that takes, or None when nothing that runs ever completes."""
        speed = {}
        for j, chosen in self.running.items():
            gpus = self.instance.jobs[j].gpus
            rings = max((self.crossed[s] for s, share in chosen if share < gpus), default=0)
            speed[j] = self._rates(j, len(chosen))[rings]
        slots = min((-(-self.left[j] // rate) for j, rate in speed.items() if rate), default=None)
        if slots is None:
            return None
        for j, rate in speed.items():
            self.left[j] -= rate * slots
            if self.left[j] <= 0:
                for s, gpus in self.running.pop(j):
                    self.idle[s] += gpus
                    self.crossed[s] -= gpus < self.instance.jobs[j].gpus
        return slots

    def _rates(self, j: int, servers_used: int) -> list[int]:
        row = self.rates.get((j, servers_used))
        if row is None:
            row = self.table.rates(j, servers_used, np.arange(self.table.p_max + 1)).tolist()
            self.rates[j, servers_used] = row
        return row

    def _choose(self, j: int) -> list[tuple[int, int]] | None:
        left = self.instance.jobs[j].gpus
        fitting = [s for s, free in enumerate(self.idle) if free >= left]
        if fitting:
            return [(min(fitting, key=lambda s: (self.idle[s], s)), left)]
        sharing = self.shares_links[j]
        open_to = [s for s, free in enumerate(self.idle) if free and (sharing or not self.crossed[s])]
        chosen = []
        for s in sorted(open_to, key=lambda s: (self.crossed[s], -self.idle[s], s)):
            take = min(left, self.idle[s])
            chosen.append((s, take))
            left -= take
            if left == 0:
                rings = 1 + max(self.crossed[s] for s, _ in chosen)
                return chosen if self._rates(j, len(chosen))[rings] else None
        return None
