"""Method ``lns`` of hadar: in a window of slots some jobs run anew, beside the others and before their own rest.

Idea: in a window of slots some jobs are decided anew, while what they did before stays. Source: large neighbourhood
search (Shaw, 1998). Every schedule is scored by the checker; nothing is proven.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import levels_from, solution_from_levels, trimmed
from schedgap.formulations.hadar.solution import HadarSolution
from schedgap.formulations.hadar.tables import small_units, tables
from schedgap.solvers.exact.hadar.bound import upper_bound
from schedgap.solvers.exact.hadar.list_search import LARGEST, ListSearch
from schedgap.solvers.exact.hadar.schedule_choices import MOST_TYPES, Packing
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.neighbourhoods import Neighbourhoods, StepOutcome, propose_initial, searched
from schedgap.solvers.result import Result, SolveOptions, Termination

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from schedgap.solvers.cp_sat.search import Value

Levels = dict[int, int]
"""The level of one job by slot."""

VARIABLES = 400
"""Number of (level, slot) variables that a window has about: many jobs in few slots, or few jobs in many."""
SHORTEST = 4
"""Slots of a window at least."""
FINEST = 1 << 40
"""Progress is counted in so many units of a job's work where no smaller whole numbers say the same."""
RESOLUTION = 10**7
"""Units of the largest utility in which a window's gain is counted."""
GAIN = 1e-12
"""Relative: what is better by less is rounding."""


def solve_lns(instance: HadarInstance, options: SolveOptions) -> Result:
    """``searched`` from the start of `options`."""
    best = Incumbent(MAXIMISE, options, partial(parsed(check, HadarSolution), instance))
    data = tables(instance)
    if instance.all_jobs_must_finish and not data.possible.all():
        best.infeasible = True
        return best.result()
    best.tighten(upper_bound(instance))
    if len(data.types) > MOST_TYPES:
        best.info["reason"] = f"more than {MOST_TYPES} device types"
        if options.start is not None:
            best.propose(options.start, "start")
        return best.result(Termination.TOO_LARGE)
    return searched(best, lambda: _after_orders(instance, best))


def _after_orders(instance: HadarInstance, best: Incumbent) -> WindowNeighbourhoods:
    """The neighbourhoods of the start, or of what a search over orders of the jobs makes better than it."""
    data = tables(instance)

    def found(levels: Mapping[int, Levels]) -> None:
        solution = solution_from_levels(instance, data, trimmed(levels, data))
        if solution is not None:
            propose_initial(best, solution, "orders", len(data.jobs))

    if len(data.jobs) * (data.horizon + 1) <= LARGEST:
        ListSearch(data, instance.all_jobs_must_finish).run(best, found)
        best.log("orders of the jobs")
    return WindowNeighbourhoods(instance, best)


@dataclass
class _Job:
    """A freed job in a window."""

    position: int  # position of the job
    # step, target: units of progress by level, and those that finish it
    step: Sequence[int]
    target: int
    before: int  # done ahead of the window
    tail: Sequence[tuple[int, int]]  # slots behind the window and the units done in each, in order
    slots: range  # slots of the window, from the job's arrival on
    run: dict[tuple[int, int], cp_model.IntVar] = field(default_factory=dict)  # literals by (slot, level)
    # literals by finish slot, with None for not at all
    finish: dict[int | None, cp_model.IntVar] = field(default_factory=dict)


class WindowNeighbourhoods(Neighbourhoods):
    """Jobs and a window of slots: what they did there is decided anew.

    What a freed job did before the window stays; behind it, it keeps the slots that it had as far as it still needs
    them. So more work in the window lets it finish earlier, in it or behind it. Parts are the jobs and then the slots.

    Parameters
    ----------
    best : with a solution
    """

    kinds = ("rolling", "waiting", "losing", "any")

    def __init__(self, instance: HadarInstance, best: Incumbent) -> None:
        self.instance, self.best = instance, best
        self.data = tables(instance)
        self.parts = len(instance.jobs) + self.data.horizon
        assert best.solution is not None
        self.levels: dict[int, Levels] = trimmed(levels_from(instance, self.data, best.solution), self.data)
        self.packing = Packing(self.data)
        self._front = 1
        self._known: dict[int, tuple[list[int], int]] = {}

    def _utility(self, levels: Mapping[int, Levels]) -> float:
        return float(sum(self.data.jobs[j].worth.at(max(own)) for j, own in sorted(levels.items())))

    # -- what is freed ------------------------------------------------------------------------------------------

    def freed(self, kind: str, size: int, rng: np.random.Generator) -> Collection[int]:
        """A window, and jobs that run or could run there; half of them run there now."""
        data, horizon = self.data, self.data.horizon
        size = max(2, min(size, len(data.jobs)))
        levels = max(1, max(job.levels for job in data.jobs))
        length = min(horizon, max(SHORTEST, VARIABLES // (size * levels)))
        last = max((max(own) for own in self.levels.values()), default=horizon)
        if kind == "rolling":
            first = self._front
            self._front = first + max(1, length // 2) if first + length <= last else 1
        else:  # more is gained early, where utilities fall fast
            first = 1 + int(last * rng.random() ** 3) - int(rng.integers(0, length))
        first = max(1, min(first, horizon - length + 1))
        window = range(first, first + length)
        able = [j for j in range(len(data.jobs)) if self._able(j, window)]
        running = [j for j in rng.permutation(able) if any(t in window for t in self.levels.get(j, ()))]
        chosen = dict.fromkeys(int(j) for j in running[: size if kind == "rolling" else size // 2])
        for j in self._ranked(kind, able, window, rng):
            if len(chosen) >= size:
                break
            chosen[j] = None
        return [*chosen, *(len(data.jobs) + t - 1 for t in window)] if chosen else []

    def _able(self, j: int, window: range) -> bool:
        job = self.data.jobs[j]
        late = j not in self.levels or max(self.levels[j]) >= window[0]
        return bool(self.data.possible[j]) and job.arrival <= window[-1] and late

    def _ranked(self, kind: str, able: Sequence[int], window: range, rng: np.random.Generator) -> list[int]:
        jobs = rng.permutation(np.array(able, dtype=np.int64))
        key = np.zeros(len(jobs))
        for i, j in enumerate(jobs.tolist()):
            job = self.data.jobs[j]
            now = job.worth.at(max(self.levels[j])) if j in self.levels else 0.0
            if kind == "losing":
                key[i] = now - job.max_utility
            elif kind == "waiting":  # what it could gain at once, for each slot of a device
                soon = max(window[0] + job.min_slots - 1, job.earliest)
                key[i] = (now - job.worth.at(soon)) / (job.workers * job.min_slots)
        key *= rng.uniform(0.2, 1.0, len(jobs))
        return [int(j) for j in jobs[np.argsort(key, kind="stable")]]

    # -- how it is solved ---------------------------------------------------------------------------------------

    def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
        """The window's program, exactly."""
        from ortools.sat.python import cp_model

        from schedgap.solvers.cp_sat.search import search_cp

        count = len(self.data.jobs)
        slots = sorted(part - count + 1 for part in parts if part >= count)
        window = range(slots[0], slots[-1] + 1)
        model = cp_model.CpModel()
        jobs = [self._job(model, j, window) for j in sorted(part for part in parts if part < count)]
        self._room(model, jobs, window)
        self._gain(model, jobs)
        answer = search_cp(model, self.best, seen=lambda _: self.best.out_of_time(), most_work=most_work)
        better = answer.value is not None and self._put_back(jobs, window, answer.value)
        return StepOutcome(better, answer.infeasible or answer.optimal)

    def _job(self, model: cp_model.CpModel, j: int, window: range) -> _Job:
        """Where it may run in the window, and when it may finish."""
        data, own = self.data, self.levels.get(j, {})
        table = data.jobs[j]
        step, target = self._units(j)
        tail = [(t, step[own[t]]) for t in sorted(own) if t > window[-1]]
        before = sum(step[level] for t, level in own.items() if t < window[0])
        slots = range(max(window[0], table.arrival), window[-1] + 1)
        job = _Job(j, step, target, before, tail, slots)
        fastest = step[0]
        for done, t in enumerate(slots, start=1):
            if before + done * fastest >= target:
                job.finish[t] = model.new_bool_var("")
        late = before
        for t, units in tail:
            late += units
            if late + len(slots) * fastest >= target:
                job.finish[t] = model.new_bool_var("")
        if not self.instance.all_jobs_must_finish:
            job.finish[None] = model.new_bool_var("")
        model.add_exactly_one(job.finish.values())
        for t in slots:
            still = [literal for finish, literal in job.finish.items() if finish is not None and finish >= t]
            for level in range(table.levels):
                job.run[t, level] = model.new_bool_var("")
                model.add_hint(job.run[t, level], own.get(t) == level)
            model.add(sum(job.run[t, level] for level in range(table.levels)) <= sum(still))
        progress = [(t, sum(step[level] * job.run[t, level] for level in range(table.levels))) for t in slots]
        for finish, literal in job.finish.items():
            if finish is not None:
                rest = sum(units for t, units in tail if t <= finish)
                here = sum(units for t, units in progress if t <= finish)
                model.add(here + before + rest >= target).only_enforce_if(literal)
        return job

    def _units(self, j: int) -> tuple[list[int], int]:
        """Progress of a slot at each level, and what finishes the job."""
        if j not in self._known:
            table = self.data.jobs[j]
            small, target = small_units(table.step, table.target, self.data.horizon - table.arrival + 1)
            step = [int(s) for s in small]
            if target > FINEST:
                step = [s * FINEST // target for s in step]
                target = FINEST - self.data.horizon  # each was rounded down by less than 1
            self._known[j] = step, target
        return self._known[j]

    def _room(self, model: cp_model.CpModel, jobs: Sequence[_Job], window: range) -> None:
        """Gangs that may only use types of a set want at most what the others leave of it (Hall's condition)."""
        data, packing = self.data, self.packing
        out = {job.position for job in jobs}
        load = np.zeros((len(window), len(packing.sets)), dtype=np.int64)
        for j, own in self.levels.items():
            if j not in out:
                for t in own:
                    if t in window:
                        mask = packing.masks[j][own[t]]
                        load[t - window[0], (packing.sets & mask) == mask] += data.jobs[j].workers
        for t in window:
            here = [(job, level) for job in jobs if t in job.slots for level in range(len(job.step))]
            for s, room in zip(packing.sets.tolist(), (packing.room - load[t - window[0]]).tolist(), strict=True):
                within = [
                    data.jobs[job.position].workers * job.run[t, level]
                    for job, level in here
                    if s & packing.masks[job.position][level] == packing.masks[job.position][level]
                ]
                if within:
                    model.add(sum(within) <= room)

    def _gain(self, model: cp_model.CpModel, jobs: Sequence[_Job]) -> None:
        """Minimise what is lost against the best finish of each job, and ask for less than now."""
        most = max(self.data.jobs[job.position].max_utility for job in jobs)
        lost, now = [], 0
        for job in jobs:
            worth = self.data.jobs[job.position].worth
            values = {t: 0.0 if t is None else worth.at(t) for t in job.finish}
            highest = max(values.values())
            costs = {t: round((highest - value) / most * RESOLUTION) if most else 0 for t, value in values.items()}
            lost += [costs[t] * literal for t, literal in job.finish.items()]
            own = self.levels.get(job.position)
            now += costs[None if own is None else max(own)]
        total = sum(lost)
        model.add(total <= now - 1)
        model.minimize(total)

    def _put_back(self, jobs: Sequence[_Job], window: range, value: Value) -> bool:
        """The whole schedule with the window's jobs as they are now; kept where it is worth more."""
        levels = dict(self.levels)
        for job in jobs:
            own = {t: level for t, level in levels.pop(job.position, {}).items() if t not in window}
            own.update({t: level for (t, level), literal in job.run.items() if value(literal)})
            if job.finish.get(None) is None or not value(job.finish[None]):
                levels[job.position] = own
        levels = trimmed(levels, self.data)
        if self._utility(levels) <= self._utility(self.levels) * (1 + GAIN):
            return False
        self.levels = levels
        return True

    def value(self) -> float:
        """The utility of the present levels."""
        return self._utility(self.levels)

    def solution(self) -> Solution:
        """The present levels, placed."""
        solution = solution_from_levels(self.instance, self.data, self.levels)
        if solution is None:
            raise Disagreement("lns: levels that fit by Hall's condition could not be placed")
        return solution
