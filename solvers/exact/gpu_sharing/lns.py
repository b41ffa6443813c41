"""Method ``lns`` of gpu-sharing: jobs of one time are started anew by an interval model, beside the others.

Idea: take jobs of one time out, let an interval model start them anew. Source: large neighbourhood search (Shaw,
1998). Sharing is by pairs with all GPUs in common, so not every schedule is reached; nothing is proven.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from schedgap.formulations.common.instance import FrozenDict
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.common.solution import parsed
from schedgap.formulations.gpu_sharing.check import check
from schedgap.formulations.gpu_sharing.dynamics import tables
from schedgap.formulations.gpu_sharing.gpu_lists import placed
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import choices, impossible
from schedgap.formulations.gpu_sharing.schedule import simulate
from schedgap.formulations.gpu_sharing.solution import GpuSharingSolution
from schedgap.solvers.exact.gpu_sharing.bound import lower_bound
from schedgap.solvers.exact.gpu_sharing.first_phase import from_orders
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.neighbourhoods import Neighbourhoods, StepOutcome, searched, with_companions
from schedgap.solvers.result import Result, SolveOptions

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

    from schedgap.solvers.cp_sat.search import Value

SCALE = 10**6
"""Losses are counted in units of 1/SCALE of a slot, rounded up: no point claims too much."""
_MOST = 80
"""Jobs that one model has: its size grows with their pairs."""


def solve_lns(instance: GpuSharingInstance, options: SolveOptions) -> Result:
    """``searched`` from the start of `options`."""
    jobs = len(instance.jobs)
    best = Incumbent(
        MINIMISE, options, partial(parsed(check, GpuSharingSolution), instance), unit=Fraction(1, jobs), whole=True
    )
    reason = impossible(instance)
    if reason is not None:
        best.impossible(reason)
    else:
        simple = lower_bound(instance)
        best.tighten(None if simple is None else math.ceil(simple * jobs - 1e-6))
    return searched(best, lambda: _after_orders(instance, best))


def _after_orders(instance: GpuSharingInstance, best: Incumbent) -> SharingNeighbourhoods:
    """The neighbourhoods of the start, or of what annealed priorities make better than it."""
    neighbourhoods = SharingNeighbourhoods(instance, best)
    from_orders(instance, best, neighbourhoods.start, neighbourhoods.steps, neighbourhoods.overlap)
    best.log("annealed priorities")
    neighbourhoods.read()
    return neighbourhoods


class SharingNeighbourhoods(Neighbourhoods):
    """Jobs of about one time: when they start, in how many steps, and which two of them share GPUs.

    Jobs that share GPUs are taken out together. Those that are put back share with at most one other, as many GPUs as
    both have, and never with one that stayed, so that the others go on as they did.

    Parameters
    ----------
    best : with a solution
    """

    kinds = ("rolling", "delayed", "any")

    def __init__(self, instance: GpuSharingInstance, best: Incumbent) -> None:
        self.instance, self.best = instance, best
        self.parts = len(instance.jobs)
        self._solo = tables(instance).solo_slots
        self._arrival = np.array([job.arrival for job in instance.jobs])
        self._front = 0
        self.read()

    def read(self) -> None:
        """Take over the incumbent's solution."""
        jobs, solution = self.instance.jobs, self.best.solution
        assert solution is not None
        completion = simulate(self.instance, solution).completion
        self.start = np.array([solution["start"][job.id] for job in jobs])
        self.end = np.array([completion[job.id] for job in jobs])
        self.steps = [int(solution["accumulation"][job.id]) for job in jobs]
        gpus = [{(server, index) for server, index in solution["gpus"][job.id]} for job in jobs]
        self.overlap: dict[tuple[int, int], int] = {}
        for j in range(self.parts):
            for k in np.flatnonzero((self.start <= self.end[j]) & (self.end >= self.start[j])).tolist():
                if j < k and (shared := len(gpus[j] & gpus[k])):
                    self.overlap[j, k] = shared

    # -- what is freed ------------------------------------------------------------------------------------------

    def freed(self, kind: str, size: int, rng: np.random.Generator) -> Collection[int]:
        """Jobs that are there at one moment or near it, and those that they share GPUs with."""
        if kind == "rolling":
            order = np.argsort(self._arrival, kind="stable")
            moment = int(self._arrival[order[self._front % self.parts]])
            self._front += max(1, size // 2)
        elif kind == "delayed":
            delay = (self.end - self._arrival + 1 - self._solo) * rng.uniform(0.0, 1.0, self.parts)
            j = int(np.argmax(delay))
            moment = int(rng.integers(self._arrival[j], self.start[j] + 1))
        else:
            moment = int(rng.integers(self._arrival.min(), self.end.max() + 1))
        away = np.maximum(0, np.maximum(self._arrival - moment, moment - self.end)) * rng.uniform(0.5, 1.5, self.parts)
        away += rng.uniform(0.0, 1e-3, self.parts)
        chosen = [int(j) for j in np.argsort(away, kind="stable")[:size]]
        return with_companions(chosen, lambda j: (sum(pair) - j for pair in self.overlap if j in pair))

    # -- how it is solved ---------------------------------------------------------------------------------------

    def solve(self, parts: Collection[int], most_work: float) -> StepOutcome:
        """The interval model of the freed jobs, exactly; fewer are tried next where there are too many.

        On a full cluster one job may share with the next all the way through.
        """
        if len(parts) > _MOST:
            return StepOutcome(better=False, complete=False)
        from schedgap.solvers.cp_sat.search import search_cp

        jobs = sorted(parts)
        model = _Model(self, jobs)
        answer = search_cp(model.model, self.best, seen=lambda _: self.best.out_of_time(), most_work=most_work)
        if answer.value is not None:
            self._put_back(jobs, model, answer.value)
        return StepOutcome(answer.value is not None, answer.infeasible or answer.optimal)

    def _put_back(self, jobs: Sequence[int], model: _Model, value: Value) -> None:
        start, end, steps = self.start.tolist(), self.end.tolist(), list(self.steps)
        overlap = {pair: shared for pair, shared in self.overlap.items() if pair[0] not in jobs}
        for i, j in enumerate(jobs):
            start[j], end[j] = value(model.start[i]), value(model.end[i]) - 1
            steps[j] = next(s for s, literal in model.modes[i].items() if value(literal))
        for (late, early), pair in model.pairs.items():
            if value(pair.shares):
                one, other = sorted((jobs[late], jobs[early]))
                overlap[one, other] = pair.gpus
        self.best.propose(placed(self.instance, start, end, overlap, steps), "lns", trusted=True)
        self.read()

    def reserved(self, jobs: Collection[int]) -> list[tuple[int, int, int]]:
        """GPUs that the others hold: (first slot, first slot after it, GPUs)."""
        change: dict[int, int] = {}
        for j, job in enumerate(self.instance.jobs):
            if j not in jobs:
                _add(change, int(self.start[j]), int(self.end[j]) + 1, job.gpus)
        for (j, k), shared in self.overlap.items():
            if j not in jobs:
                both = int(max(self.start[j], self.start[k])), int(min(self.end[j], self.end[k])) + 1
                _add(change, *both, -shared)
        found, held = [], 0
        for moment, after in pairwise(sorted(change)):
            held += change[moment]
            if held:
                found.append((moment, after, held))
        return found


def _add(change: dict[int, int], first: int, after: int, gpus: int) -> None:
    change[first] = change.get(first, 0) + gpus
    change[after] = change.get(after, 0) - gpus


@dataclass(frozen=True)
class _Pair:
    """A job that joins an earlier one: whether it does, the GPUs they share, the slots of both."""

    shares: cp_model.IntVar
    gpus: int
    slots: cp_model.IntVar


class _Model:
    """The sum of last slots of some jobs, to be less than it is; slots start .. end - 1."""

    def __init__(self, there: SharingNeighbourhoods, jobs: Sequence[int]) -> None:
        from ortools.sat.python import cp_model

        instance = there.instance
        own = tuple(instance.jobs[j] for j in jobs)
        names = {job.id for job in own}
        table = FrozenDict(
            (name, FrozenDict((other, x) for other, x in row.items() if other in names))
            for name, row in instance.interference.items()
            if name in names
        )
        part = GpuSharingInstance.model_construct(**{**dict(instance), "jobs": own, "interference": table})
        self.choices = choices(part, SCALE)
        self.jobs = own
        self.model = model = cp_model.CpModel()
        now = sum(int(there.end[j]) + 1 for j in jobs)
        least = [job.arrival + modes.modes[0].shortest for job, modes in zip(own, self.choices.jobs, strict=True)]
        last = [min(instance.horizon + 1, low + now - sum(least)) for low in least]
        self.start = [model.new_int_var(job.arrival, high, "") for job, high in zip(own, last, strict=True)]
        self.end = [model.new_int_var(low, high, "") for low, high in zip(least, last, strict=True)]
        self._last = last
        self._length = [model.new_int_var(1, max(last), "") for _ in own]
        self.modes = [{mode.steps: model.new_bool_var("") for mode in found.modes} for found in self.choices.jobs]
        self.pairs: dict[tuple[int, int], _Pair] = {}
        self._held: list[tuple[cp_model.IntervalVar, int]] = []
        for j, k in self.choices.pairs:
            self._join(j, k)
            self._join(k, j)
        for j in range(len(own)):
            self._run(j)
        for first, after, gpus in there.reserved(jobs):
            if after > min(job.arrival for job in own) and first < max(last):
                self._held.append((model.new_fixed_size_interval_var(first, after - first, ""), gpus))
        model.add_cumulative([held for held, _ in self._held], [gpus for _, gpus in self._held], instance.total_gpus)
        model.add(sum(self.end) < now)
        model.minimize(sum(self.end))

    def _join(self, late: int, early: int) -> None:
        """`late` starts while `early` runs, on all GPUs of the smaller of the two."""
        model, jobs = self.model, self.jobs
        gpus = min(jobs[late].gpus, jobs[early].gpus)
        longest = max(mode.longest for mode in self.choices.jobs[late].modes)
        shares = model.new_bool_var("")
        slots = model.new_int_var(0, longest, "")
        until = model.new_int_var(0, max(self._last[late], self._last[early]), "")
        remaining = model.new_int_var(0, self._last[late], "")
        model.add_min_equality(until, [self.end[late], self.end[early]])
        model.add(self.start[late] >= self.start[early]).only_enforce_if(shares)
        model.add(self.start[late] < self.end[early]).only_enforce_if(shares)
        model.add(slots == until - self.start[late]).only_enforce_if(shares)
        model.add(slots == 0).only_enforce_if(shares.Not())
        one, other = sorted((late, early))
        for a, b in self.choices.clashes(one, other):
            modes = self.choices.jobs[one].modes[a].steps, self.choices.jobs[other].modes[b].steps
            model.add_bool_or(shares.Not(), self.modes[one][modes[0]].Not(), self.modes[other][modes[1]].Not())
        self.pairs[late, early] = _Pair(shares, gpus, slots)
        alone = model.new_optional_interval_var(until, remaining, self.end[late], shares, "")
        self._held.append((alone, gpus))
        if jobs[late].gpus > gpus:
            length, end = self._length[late], self.end[late]
            rest = model.new_optional_interval_var(self.start[late], length, end, shares, "")
            self._held.append((rest, jobs[late].gpus - gpus))

    def _run(self, j: int) -> None:
        """How long it takes, and what it holds where it does not join another."""
        model, found = self.model, self.choices.jobs[j]
        model.add_exactly_one(self.modes[j].values())
        work = sum(math.ceil(SCALE * mode.work) * self.modes[j][mode.steps] for mode in found.modes)
        slowdown = self.choices.tables.slowdown
        lost = []
        for (late, early), pair in self.pairs.items():
            if j in (late, early):
                x = exact(float(slowdown[j, late + early - j]))
                lost.append(math.ceil(SCALE * (1 - 1 / x)) * pair.slots)
        length = self._length[j]
        model.add(self.start[j] + length == self.end[j])
        model.add(SCALE * length >= work + sum(lost))
        for mode in found.modes:
            model.add(length >= mode.shortest).only_enforce_if(self.modes[j][mode.steps])
        model.add_at_most_one(pair.shares for key, pair in self.pairs.items() if j in key)
        joins = [pair.shares for (late, _), pair in self.pairs.items() if late == j]
        alone = model.new_bool_var("")
        model.add_exactly_one([alone, *joins])
        held = model.new_optional_interval_var(self.start[j], length, self.end[j], alone, "")
        self._held.append((held, self.jobs[j].gpus))
