"""Method ``lns`` of ddljs: some jobs get their workers in some slots anew, beside the others.

Idea: free some jobs in some slots, let CP-SAT decide their workers within what the others leave, then
place the rings. Source: large neighbourhood search (Shaw, 1998). Every schedule is scored by the checker; nothing is
proven.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.ddljs.check import check
from schedgap.formulations.ddljs.instance import DdljsInstance
from schedgap.formulations.ddljs.reach import reaches
from schedgap.formulations.ddljs.solution import DdljsSolution
from schedgap.formulations.ddljs.utility import utility
from schedgap.formulations.g_vne.ring_network import Ring, RingNetwork, rings_of
from schedgap.solvers.exact.ddljs.bound import upper_bound
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.neighbourhoods import Neighbourhoods, StepOutcome, searched
from schedgap.solvers.result import Result, SolveOptions

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from schedgap.solvers.cp_sat.search import Value

Rings = dict[int, Ring]
"""The rings of one slot, by job."""

VARIABLES = 800
"""Workers of jobs in slots, that a model has about: many jobs in few slots, or few jobs in many."""
LEVELS = 24
"""Numbers of worker-slots that a job may end with: so many evenly spread ones, and so many of evenly spread utility."""
RESOLUTION = 10**7
"""Units of the largest utility among the freed jobs in which a gain is counted."""
UNITS = 10**6
"""Units of a resource's whole capacity."""
GAIN = 1e-12
"""Relative: what is better by less is rounding."""


def solve_lns(instance: DdljsInstance, options: SolveOptions) -> Result:
    """``searched`` from the start of `options`."""
    best = Incumbent(MAXIMISE, options, partial(parsed(check, DdljsSolution), instance))
    best.tighten(upper_bound(instance))
    return searched(best, lambda: WorkerNeighbourhoods(instance, best))


class WorkerNeighbourhoods(Neighbourhoods):
    """Jobs and slots: how many workers each of the jobs has in each of the slots is decided anew.

    The model counts what the other rings leave of each resource in the whole network; rings are then placed one after
    the other into what they leave of servers and links, smaller where they do not fit. Parts are the jobs, and then
    the slots.

    Parameters
    ----------
    best : with a solution
    """

    kinds = ("rivals", "window", "any")

    def __init__(self, instance: DdljsInstance, best: Incumbent) -> None:
        self.instance, self.best = instance, best
        self.reach = reaches(instance)
        self.parts = len(instance.jobs) + instance.horizon
        self.network = RingNetwork(instance)
        self.needs = [self.network.need(job.demand, job.bandwidth) for job in instance.jobs]
        self.arrival = np.array([job.arrival for job in instance.jobs])
        assert best.solution is not None
        self.rings: list[Rings] = [rings_of(instance, entry) for entry in best.solution["slots"]]
        self.total = [0] * len(instance.jobs)
        for rings in self.rings:
            for i, ring in rings.items():
                self.total[i] += len(ring.workers)
        self._worth: dict[int, Floats] = {}

    def worth(self, i: int) -> Floats:
        """The utility of a job after 0, 1, ... worker-slots, up to what it can have."""
        if i not in self._worth:
            self._worth[i] = utility(self.instance.jobs[i], np.arange(self.reach[i].max_work + 1))
        return self._worth[i]

    # -- what is freed ------------------------------------------------------------------------------------------

    def freed(self, kind: str, size: int, rng: np.random.Generator) -> Collection[int]:
        """Jobs that could gain from more worker-slots and jobs that have some, with as many slots as a model holds."""
        count, horizon = len(self.instance.jobs), self.instance.horizon
        jobs = np.array([i for i in range(count) if self.reach[i].max_work])
        if not len(jobs):
            return []
        size = max(2, min(size, len(jobs)))
        missing = np.array([float(self.worth(i)[-1] - self.worth(i)[self.total[i]]) for i in jobs])
        width = min(horizon, max(1, VARIABLES // size))
        first = int(rng.integers(1, horizon - width + 2))
        arrived = self.arrival[jobs] <= first + width - 1
        if kind == "any":
            key = rng.uniform(0.0, 1.0, len(jobs))
        else:
            key = -missing * rng.uniform(0.0, 1.0, len(jobs))
            if kind == "rivals":  # every second one has worker-slots to give
                has = np.array([self.total[i] > 0 for i in jobs])
                give = rng.permutation(np.flatnonzero(has & arrived))[: size // 2]
                key[give] = -np.inf
        key[~arrived] = np.inf
        chosen = [int(jobs[n]) for n in np.argsort(key, kind="stable")[:size] if arrived[n]]
        return [*chosen, *range(count + first - 1, count + first - 1 + width)] if chosen else []

    # -- how it is solved ---------------------------------------------------------------------------------------

    def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
        """Workers of the freed jobs by slot, exactly; then their rings."""
        from schedgap.solvers.cp_sat.search import search_cp

        count = len(self.instance.jobs)
        jobs = sorted(i for i in parts if i < count)
        slots = sorted(p - count for p in parts if p >= count)
        model = _Model(self, jobs, slots)
        answer = search_cp(model.model, self.best, most_work=most_work)
        better, complete = False, model.whole and (answer.infeasible or answer.optimal)
        if answer.value is not None:
            better = self._put_back(jobs, slots, model.workers(answer.value))
            complete = complete and better  # else its rings had no room
        return StepOutcome(better, complete)

    def room(self, jobs: Collection[int], t: int) -> Floats:
        """What the rings of the other jobs leave of each resource in a slot, over all servers."""
        remaining: Floats = self.network.capacity.sum(axis=0)
        for i, ring in self.rings[t].items():
            if i not in jobs:
                remaining = remaining - len(ring.workers) * self.needs[i].demand
        room: Floats = np.maximum(remaining, 0.0)
        return room

    def _put_back(self, jobs: Sequence[int], slots: Sequence[int], workers: Mapping[tuple[int, int], int]) -> bool:
        """Place the rings; kept where the whole is worth more."""
        total = list(self.total)
        changed: dict[int, Rings] = {}
        for t in slots:
            changed[t] = self._slot(jobs, t, {i: workers.get((i, t), 0) for i in jobs})
            for i in jobs:
                total[i] += _size(changed[t], i) - _size(self.rings[t], i)
        before = math.fsum(float(self.worth(i)[self.total[i]]) for i in jobs)
        after = math.fsum(float(self.worth(i)[total[i]]) for i in jobs)
        if after <= before + GAIN * abs(before):
            return False
        for t, rings in changed.items():
            self.rings[t] = rings
        self.total = total
        return True

    def _slot(self, jobs: Collection[int], t: int, wanted: Mapping[int, int]) -> Rings:
        """The rings of a slot with these workers, as far as they fit; a ring that stays as large stays where it is."""
        network, found = self.network, dict(self.rings[t])
        if all(_size(found, i) == wanted[i] for i in jobs):
            return found
        network.reset()
        for i in jobs:
            found.pop(i, None)
        for i, stays in found.items():
            network.occupy(self.needs[i], stays)
        for i in jobs:
            old = self.rings[t].get(i)
            if old is not None and len(old.workers) == wanted[i]:
                network.occupy(self.needs[i], old)
                found[i] = old
        for i in sorted(jobs, key=lambda i: (-wanted[i], i)):
            for size in range(0 if i in found else wanted[i], 0, -1):
                ring = network.place(self.needs[i], size)
                if ring is not None:
                    found[i] = ring
                    break
        return found

    def value(self) -> float:
        """The utility of the present rings."""
        return math.fsum(float(self.worth(i)[done]) for i, done in enumerate(self.total))

    def solution(self) -> Solution:
        """The present rings."""
        names = [job.id for job in self.instance.jobs]
        return {
            "slots": [
                {"rings": {names[i]: self.network.solution_of(rings[i]) for i in sorted(rings)}} for rings in self.rings
            ]
        }


def _size(rings: Mapping[int, Ring], i: int) -> int:
    return len(rings[i].workers) if i in rings else 0


class _Model:
    """Workers by job and slot, within what the others leave of each resource; more utility than now.

    Attributes
    ----------
    whole : every number of worker-slots that a job may end with is one of the model's
    """

    def __init__(self, there: WorkerNeighbourhoods, jobs: Sequence[int], slots: Sequence[int]) -> None:
        from ortools.sat.python import cp_model

        self.model = model = cp_model.CpModel()
        self.whole = True
        self._x: dict[tuple[int, int], cp_model.IntVar] = {}
        highest = max(float(abs(there.worth(i)[[0, -1]]).max()) for i in jobs)
        gains, now = [], 0
        for i in jobs:
            inside = sum(_size(there.rings[t], i) for t in slots)
            fixed = there.total[i] - inside
            own = [t for t in slots if t + 1 >= there.instance.jobs[i].arrival]
            most = min(there.reach[i].max_work, fixed + there.reach[i].ring * len(own))
            for t in own:
                self._x[i, t] = x = model.new_int_var(0, there.reach[i].ring, "")
                model.add_hint(x, _size(there.rings[t], i))
            mine = sum(self._x[i, t] for t in own)
            levels = _levels(there.worth(i), fixed, most, there.total[i])
            self.whole = self.whole and len(levels) == most - fixed + 1
            ends = {k: model.new_bool_var("") for k in levels}
            model.add_exactly_one(ends.values())
            model.add(mine >= sum((k - fixed) * literal for k, literal in ends.items()))
            model.add(mine <= most - fixed)
            for k, literal in ends.items():
                model.add_hint(literal, k == there.total[i])
                gains.append(_units(there.worth(i)[k], highest) * literal)
            now += _units(there.worth(i)[there.total[i]], highest)
        whole = there.network.capacity.sum(axis=0)
        for t in slots:
            here = [i for i in jobs if (i, t) in self._x]
            for r, room in enumerate(there.room(jobs, t).tolist()):
                if whole[r] > 0:
                    unit = UNITS / float(whole[r])
                    used = sum(math.floor(float(there.needs[i].demand[r]) * unit) * self._x[i, t] for i in here)
                    model.add(used <= math.floor(room * unit + 0.5))
        total = sum(gains)
        model.add(total >= now + 1)
        model.maximize(total)

    def workers(self, value: Value) -> dict[tuple[int, int], int]:
        """The workers by job and slot, as a point of the model has them."""
        return {key: value(x) for key, x in self._x.items()}


def _units(worth: float, highest: float) -> int:
    return round(float(worth) / highest * RESOLUTION) if highest > 0 else 0


def _levels(worth: Floats, low: int, high: int, now: int) -> list[int]:
    """Numbers of worker-slots from `low` to `high`, all of them where they are few; the present one among them."""
    if high - low <= 2 * LEVELS:
        return list(range(low, high + 1))
    by_worth = low + np.searchsorted(worth[low : high + 1], np.linspace(worth[low], worth[high], LEVELS))
    evenly = np.rint(np.linspace(low, high, LEVELS)).astype(int)
    found = {low, high, now, *np.minimum(by_worth, high).tolist(), *evenly.tolist()}
    return sorted(k for k in found if low <= k <= high)
