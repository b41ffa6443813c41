"""Good schedules for hadar by inserting jobs one at a time, and by removing and inserting again.

Idea: whether gangs of a slot fit is Hall's condition over sets of device types, so no devices are named before the
end. Source: Hall (1935); ruin and recreate (Schrimpf et al., 2000). Choices fit; nothing is proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from schedgap.formulations.common.arrays import Bools, Ints
from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.hadar.tables import ProgressTables
from schedgap.solvers.exact.hadar.schedules import Prices, Rules, Schedule, Scheduler
from schedgap.solvers.ruin_and_recreate import Choice, RuinAndRecreate

MOST_TYPES = 12
"""Fits are decided over all subsets of device types, 2^R of them."""


WARMTH = 0.02
"""Share of the utility by which a choice may be worse at first."""


class Packing:
    """Which levels still fit in which slot.

    Devices of a slot are a transportation problem from jobs (W devices each, of the types their level allows) to
    types. It has a solution exactly when for every set S of types the jobs whose allowed types all lie in S want
    no more than S has (Hall's condition). A load is (T + 1, sets), what they want by slot and set.
    """

    def __init__(self, data: ProgressTables) -> None:
        if len(data.types) > MOST_TYPES:
            raise ValueError(f"at most {MOST_TYPES} device types")
        self.data = data
        sets = np.arange(1 << len(data.types))
        self.sets = sets
        self.room = sum((((sets >> r) & 1) * int(c) for r, c in enumerate(data.capacity)), np.zeros_like(sets))
        self.masks = [
            np.array([sum(1 << r for r in np.flatnonzero(row)) for row in job.allowed], dtype=np.int64)
            for job in data.jobs
        ]

    def empty(self) -> Ints:
        """The load of no job."""
        return np.zeros((self.data.horizon + 1, len(self.sets)), dtype=np.int64)

    def permits(self, load: Ints, j: int, permit: Bools) -> Bools:
        """`permit` (T + 1, L + 1) without the levels that do not fit beside a load."""
        return _permits(permit, load, self.room, self.masks[j], self.data.jobs[j].workers)

    def change(self, load: Ints, j: int, schedule: Schedule, sign: int) -> None:
        """Add (+1) or remove (-1) a job's schedule."""
        for t in np.flatnonzero(schedule.levels):
            mask = self.masks[j][schedule.levels[t] - 1]
            load[t, (self.sets & mask) == mask] += sign * self.data.jobs[j].workers


@njit_cached
def _permits(permit: Bools, load: Ints, room: Ints, masks: Ints, workers: int) -> Bools:  # pragma: no cover - compiled
    found = permit.copy()
    for t in range(1, permit.shape[0]):
        for level in range(len(masks)):
            if not found[t, level + 1]:
                continue
            mask = masks[level]
            for s in range(len(room)):
                if (s & mask) == mask and load[t, s] + workers > room[s]:
                    found[t, level + 1] = False
                    break
    return found


class ScheduleChoices(RuinAndRecreate[Schedule, Prices]):
    """Schedules of the jobs that run together on the devices.

    Parameters
    ----------
    scheduler : schedules of the jobs
    must : every job has to finish (P1)
    seed : seed of all randomness
    """

    def __init__(self, scheduler: Scheduler, must: bool, seed: int) -> None:
        super().__init__(len(scheduler.data.jobs), must, seed)
        self.scheduler = scheduler
        self.packing = Packing(scheduler.data)
        jobs = scheduler.data.jobs
        self.flat = [
            np.linspace(1.0, 0.0, scheduler.horizon + 1) + job.utility if must else job.utility for job in jobs
        ]

    def empty(self) -> Ints:
        """The load of no job."""
        return self.packing.empty()

    def change(self, load: Ints, group: int, item: Schedule, sign: int) -> None:
        """Add (+1) or remove (-1) a job's schedule."""
        self.packing.change(load, group, item, sign)

    def fits(self, load: Ints, group: int, item: Schedule) -> bool:
        """Whether the schedule's levels fit in all its slots."""
        permit = self.packing.permits(load, group, self.scheduler.free_rules[group].permit)
        return bool(permit[np.arange(len(item.levels)), item.levels].all())

    def best(self, load: Ints, group: int, prices: Prices) -> Schedule | None:
        """The best schedule that fits, by utility less its cost."""
        free = self.scheduler.free_rules[group]
        rules = Rules(self.packing.permits(load, group, free.permit), free.finish, False)
        payoff, found = self.scheduler.best(group, prices, rules, 1.0, self.flat[group])
        finish = int(np.argmax(payoff))
        if not np.isfinite(payoff[finish]):
            return None
        if not self.must and self.scheduler.data.jobs[group].utility[finish] <= 0:
            return None
        return Schedule(found.levels(finish), finish)

    def worth(self, group: int, item: Schedule) -> float:
        """What the schedule is worth."""
        return self.scheduler.worth(group, item.levels, item.finish)

    def order(self) -> list[int]:
        """The largest utility for a device-slot first."""
        jobs = self.scheduler.data.jobs
        return [int(j) for j in np.argsort([-job.max_utility / max(1, job.workers * job.min_slots) for job in jobs])]

    def complete(self, wanted: Iterable[tuple[int, Schedule]], prices: Prices) -> Choice[Schedule]:
        """Take the wanted schedules, then insert the other jobs at half the prices."""
        return super().complete(wanted, prices.scaled(0.5))

    def ruin(self, items: Sequence[Schedule | None]) -> tuple[list[int], Callable[[list[int]], list[int]]]:
        """Up to six jobs at random; all that are out come back in random order."""
        inside = [j for j, item in enumerate(items) if item is not None]
        size = min(len(inside), int(self.rng.integers(1, 7)))
        removed = [int(j) for j in self.rng.permutation(inside)[:size]] if inside else []
        return removed, lambda absent: [int(j) for j in self.rng.permutation(absent)]

    def perturbed(self, prices: Prices) -> Prices:
        """Prices of devices times a common factor and noise."""
        factor = float(self.rng.choice([0.0, 0.3, 0.6, 1.0]))
        return Prices(factor * self.rng.uniform(0.4, 1.6, prices.devices.shape) * prices.devices)

    def accepts(self, loss: float, progress: float, start: Choice[Schedule], best: Choice[Schedule]) -> bool:
        """A loss below a random threshold that falls from 2% of the utility to 0."""
        del start
        return loss <= WARMTH * (1 - progress) ** 2 * abs(best.worth) * float(self.rng.random())
