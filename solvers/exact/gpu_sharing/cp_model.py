"""The CP-SAT model of gpu-sharing over runs that are left, and one search of it.

Idea: one literal for each run that is left, one number for the GPUs that two jobs share. Source: paper 003's (15); no
GPU has a name, since with two jobs on a GPU at most the numbers are enough (`gpu_lists`). Guarantee: exact, except
losses that had to be rounded; points that break them are excluded and the model is solved again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices
from schedgap.solvers.exact.gpu_sharing.lp import (
    Columns,
)

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


Run = tuple[int, int, int, int]
"""Job, mode index, first slot, slots."""


Excess = tuple[int, int, int, tuple[int, ...]]
"""Job, mode index, slots, and slots at each of its levels or worse: together they lose more than such a run may."""


@dataclass(frozen=True)
class Point:
    """A solution of the model: the run of each job, GPUs shared by pairs, the sum of JCT."""

    runs: tuple[Run, ...]
    overlap: dict[tuple[int, int], int]
    total: int


@dataclass
class SharingModel:
    """Choose a run per job and the overlaps of pairs; every run of the model is a column.

    A pair shares o GPUs in all slots in which both run, or none. q literals form a staircase over the
    slowdowns of a slot. Besides the exact budget of each run, for every slowdown x the slots at x or worse
    are counted: at most floor((d - W) / (1 - 1/x)), which the budget implies for whole slots only. What rounded losses
    admitted before is `excluded`.
    """

    instance: GpuSharingInstance
    choices: Choices
    columns: Columns
    least: int
    cutoff: int | None
    excluded: Sequence[Excess] = ()
    model: cp_model.CpModel = field(init=False)

    def __post_init__(self) -> None:
        from ortools.sat.python import cp_model

        self.model = cp_model.CpModel()
        self.runs: dict[Run, cp_model.IntVar] = {}
        self.of_job: list[list[tuple[Run, cp_model.IntVar]]] = [[] for _ in self.instance.jobs]
        self.active: dict[tuple[int, int], cp_model.IntVar] = {}
        self.mode: dict[tuple[int, int], cp_model.IntVar] = {}
        self.overlap: dict[tuple[int, int], cp_model.IntVar] = {}
        self.partners: dict[tuple[int, int], list[tuple[int, cp_model.IntVar, cp_model.IntVar]]] = {}
        self.saved: dict[int, list[cp_model.IntVar]] = {}
        self._runs()
        for j, k in self.choices.pairs:
            self._pair(j, k)
        self._capacity()
        for j in range(len(self.instance.jobs)):
            self._losses(j)
        columns = self.columns
        total = cp_model.LinearExpr.weighted_sum(list(self.runs.values()), columns.cost.tolist())
        self.model.minimize(total)
        self.model.add(total >= self.least)
        if self.cutoff is not None:
            self.model.add(total <= self.cutoff)

    def _runs(self) -> None:
        from ortools.sat.python import cp_model

        model, columns = self.model, self.columns
        cover: dict[tuple[int, int], list[cp_model.IntVar]] = {}
        by_mode: dict[tuple[int, int], list[cp_model.IntVar]] = {}
        rows = (columns.job, columns.mode, columns.start, columns.slots)
        for j, m, t, d in zip(*(row.tolist() for row in rows), strict=True):
            x = model.new_bool_var(f"x_{j}_{m}_{t}_{d}")
            self.runs[j, m, t, d] = x
            self.of_job[j].append(((j, m, t, d), x))
            by_mode.setdefault((j, m), []).append(x)
            for slot in range(t, t + d):
                cover.setdefault((j, slot), []).append(x)
        for own in self.of_job:
            model.add_exactly_one(x for _, x in own)
        for key, literals in by_mode.items():
            self.mode[key] = model.new_bool_var("")
            model.add(cp_model.LinearExpr.sum(literals) == self.mode[key])
        for key, literals in cover.items():
            self.active[key] = model.new_bool_var("")
            model.add(cp_model.LinearExpr.sum(literals) == self.active[key])

    def _pair(self, j: int, k: int) -> None:
        """Overlap of two jobs in the slots in which both may run."""
        model, active = self.model, self.active
        slots = [t for t in range(1, self.instance.horizon + 1) if (j, t) in active and (k, t) in active]
        if not slots:
            return
        most = min(self.instance.jobs[j].gpus, self.instance.jobs[k].gpus)
        any_shared = model.new_bool_var("")
        count = any_shared if most == 1 else model.new_int_var(0, most, "")
        self.overlap[j, k] = count
        if most > 1:
            model.add(count >= 1).only_enforce_if(any_shared)
            model.add(count == 0).only_enforce_if(~any_shared)
        for one, other in self.choices.clashes(j, k):
            if (j, one) in self.mode and (k, other) in self.mode:
                model.add_bool_or(~self.mode[j, one], ~self.mode[k, other], ~any_shared)
        for t in slots:
            both = model.new_bool_var("")
            for needed in (active[j, t], active[k, t], any_shared):
                model.add_implication(both, needed)
            model.add_bool_or(both, ~active[j, t], ~active[k, t], ~any_shared)
            now = both
            if most > 1:
                now = model.new_int_var(0, most, "")
                model.add(now == count).only_enforce_if(both)
                model.add(now == 0).only_enforce_if(~both)
                model.add(now <= most * both)
                model.add(now <= count)
            self.partners.setdefault((j, t), []).append((k, now, both))
            self.partners.setdefault((k, t), []).append((j, now, both))
            self.saved.setdefault(t, []).append(now)

    def _capacity(self) -> None:
        from ortools.sat.python import cp_model

        jobs, total = self.instance.jobs, self.instance.total_gpus
        for t in range(1, self.instance.horizon + 1):
            here = [(job.gpus, self.active[j, t]) for j, job in enumerate(jobs) if (j, t) in self.active]
            if sum(size for size, _ in here) > total:
                used = cp_model.LinearExpr.weighted_sum([v for _, v in here], [size for size, _ in here])
                self.model.add(used - cp_model.LinearExpr.sum(self.saved.get(t, [])) <= total)

    def _losses(self, j: int) -> None:
        """The staircase of each slot, the budget of the run, and whole slots at each slowdown or worse."""
        from ortools.sat.python import cp_model

        model, own = self.model, self.choices.jobs[j]
        slowdown = self.choices.tables.slowdown
        size = self.instance.jobs[j].gpus
        spent: list[cp_model.IntVar] = []
        weights: list[int] = []
        at_least: dict[float, list[cp_model.IntVar]] = {x: [] for x in own.levels}
        for t in range(1, self.instance.horizon + 1):
            here = self.partners.get((j, t))
            if not here:
                continue
            shared = cp_model.LinearExpr.sum([now for _, now, _ in here])
            model.add(shared <= size * self.active[j, t])
            above, before = self.active[j, t], 0
            for x in sorted({float(slowdown[j, k]) for k, _, _ in here if slowdown[j, k] > 1.0}):
                step = model.new_bool_var("")
                spent.append(step)
                weights.append(own.loss(x) - before)
                before = own.loss(x)
                for k, _, both in here:
                    if slowdown[j, k] == x:
                        model.add_implication(both, step)
                model.add_implication(step, above)
                at_least[x].append(step)
                above = step
        if not spent:
            return
        literals = [x for _, x in self.of_job[j]]
        slack = [(run[3], own.modes[run[1]]) for run, _ in self.of_job[j]]
        budgets = [own.budget(mode, d) for d, mode in slack]
        lost = cp_model.LinearExpr.weighted_sum(spent, weights)
        model.add(lost <= cp_model.LinearExpr.weighted_sum(literals, budgets))
        for level, steps in at_least.items():
            loss = 1 - 1 / exact(level)
            limits = [min(math.floor((d - mode.work) / loss), len(steps)) for d, mode in slack]
            # where rounded losses admit too much, these whole numbers tell near ties apart
            if steps and (max(limits) if own.exact else min(limits)) < len(steps):
                allowed = cp_model.LinearExpr.weighted_sum(literals, limits)
                model.add(cp_model.LinearExpr.sum(steps) <= allowed)
        for owner, m, slots, least in self.excluded:
            if owner != j:
                continue
            reached = []
            for steps, many in zip(at_least.values(), least, strict=True):
                reached.append(model.new_bool_var(""))
                model.add(cp_model.LinearExpr.sum(steps) <= many - 1).only_enforce_if(~reached[-1])
            such = [x for (_, mode, _, d), x in self.of_job[j] if mode == m and d <= slots]
            model.add(cp_model.LinearExpr.sum(such) == 0).only_enforce_if(reached)

    def point(self, value: Callable[[cp_model.IntVar], int]) -> Point:
        """The solution that `value` describes."""
        runs = tuple(next(run for run, x in own if value(x)) for own in self.of_job)
        overlap = {pair: int(value(count)) for pair, count in self.overlap.items() if value(count)}
        jobs = self.instance.jobs
        total = sum(t + d - jobs[j].arrival for j, _, t, d in runs)
        return Point(runs, overlap, total)


def overspent(choices: Choices, point: Point) -> list[Excess]:
    """Which jobs lose more in a point of the model than their runs may, in rationals."""
    found = []
    for j, m, start, slots in point.runs:
        worst = [1.0] * slots
        for pair in point.overlap:
            if j in pair:
                k, _, first, length = point.runs[sum(pair) - j]
                for t in range(max(start, first), min(start + slots, first + length)):
                    worst[t - start] = max(worst[t - start], float(choices.tables.slowdown[j, k]))
        if sum(1 - 1 / exact(x) for x in worst) > slots - choices.jobs[j].modes[m].work:
            found.append((j, m, slots, tuple(sum(x >= level for x in worst) for level in choices.jobs[j].levels)))
    return found
