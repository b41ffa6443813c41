"""A lower bound by what can run at once: slots as columns, priced by a small integer program; contention counts.

Idea: if jobs could stop and go on at will, the fewest slots are a covering program over what can run at once. Source:
column generation (Gilmore and Gomory, 1961); needs by grade of contention are ours. Guarantee: any rounded duals give
a valid cut, so the bound is exact in whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.rar_ddls.job_options import JobOptions
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.exact.rar_ddls.job_needs import Need, contention_grades, job_needs
from schedgap.solvers.exact.rar_ddls.patterns import Knapsack, Label, OneSlot
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import NO_DEADLINE

_SCALE = 10**7


_MOST_COLUMNS = 2_000
"""Rounds may end anywhere: each cut rests on its own weights and on a capacity that is proven for these."""


@dataclass(frozen=True)
class SlotCut:
    """No slot holds more than `capacity`: sum over labels of slots * weight <= capacity * makespan."""

    weights: Mapping[Label, int]  # weight per (job, way it runs)
    capacity: int  # the most that any slot holds, proven
    total: int  # what all jobs together need at least

    @property
    def bound(self) -> int:
        """ceil(total / capacity), a lower bound on the makespan."""
        return -(-self.total // self.capacity)


class SlotPacking:
    """The fewest slots in which all jobs get what they need when they may be interrupted at will.

    min sum x_c over sets c of labels that can run in one slot, subject to job_needs; by column generation. Every
    dual solution u >= 0, rounded to whole numbers, gives a :class:`SlotCut`: with weight w_l = sum_r u_r a_rl per
    slot of label l and V the largest weight of any c, makespan >= sum_r u_r b_r / V, whatever was rounded.

    Attributes
    ----------
    grades, needs : grades of contention and inequalities it is made of
    cuts : the strongest cuts found, strongest first
    """

    def __init__(self, incumbent: BestSchedule, options: Sequence[JobOptions]) -> None:
        instance = incumbent.instance
        self.grades = contention_grades(instance)
        self.needs: list[Need] = job_needs(options, self.grades)
        self.cuts: list[SlotCut] = []
        servers = instance.servers
        one = len(servers) == 1
        self._slot = Knapsack(servers[0].gpus, options) if one else OneSlot(instance, options, self.grades)

    def raise_bound(self, incumbent: BestSchedule, share: float, keep: int = 6) -> None:
        """Column generation until the bound cannot rise any more, or `share` of what is left is used.

        Notes
        -----
        A few dozen rounds for 20 jobs on 6 servers, each a few hundredths of a second; nothing where servers
        are so large that patterns are too many.
        """
        if self._slot.too_large:
            return
        budget = incumbent.work_left(share)
        remaining = incumbent.seconds_left(share)
        deadline = NO_DEADLINE if remaining is None else incumbent.options.deadline.capped(remaining)
        master = _Master(self.needs, list(self._slot.runs))
        began = incumbent.work
        for _ in range(_MOST_COLUMNS):
            value, duals = master.solve()
            if duals is None:
                break
            cut, labels = self._cut(duals, incumbent)
            self._keep(cut, keep)
            incumbent.tighten(cut.bound)
            best = max(c.bound for c in self.cuts)
            if best >= np.ceil(value - 1e-6) or not labels or not master.add(labels) or incumbent.finished():
                break
            if (budget is not None and incumbent.work - began >= budget) or deadline.passed:
                break

    def _cut(self, duals: Sequence[float], incumbent: BestSchedule) -> tuple[SlotCut, list[Label]]:
        weights: dict[Label, int] = {}
        total = 0
        for need, dual in zip(self.needs, duals, strict=True):
            factor = int(dual * _SCALE)  # a dual per unit of the right-hand side, which is at least 1
            if factor <= 0:
                continue
            total += factor * need.amount
            for way, value in enumerate(need.values):
                if value and (need.job, way) in self._slot.runs:
                    label = (need.job, way)
                    weights[label] = weights.get(label, 0) + factor * value
        labels, capacity = self._slot.best(weights, incumbent)
        return SlotCut(weights, max(1, capacity), total), labels

    def _keep(self, cut: SlotCut, keep: int) -> None:
        self.cuts.append(cut)
        self.cuts.sort(key=lambda c: -c.total / c.capacity)
        del self.cuts[keep:]


class _Master:
    """The linear program over the columns so far, on HiGHS."""

    def __init__(self, needs: Sequence[Need], labels: Sequence[Label]) -> None:
        self._program = LinearProgram()
        self._program.add_rows(np.ones(len(needs)), np.full(len(needs), INFINITY))
        self._rows: dict[Label, list[tuple[int, float]]] = {label: [] for label in labels}
        self._amounts = [need.amount for need in needs]
        for row, need in enumerate(needs):
            for way, value in enumerate(need.values):
                if value and (need.job, way) in self._rows:
                    self._rows[need.job, way].append((row, value / need.amount))
        self._seen: set[tuple[Label, ...]] = set()
        for label in labels:
            self.add([label])

    def add(self, labels: Sequence[Label]) -> bool:
        """A column; False where it is there already."""
        key = tuple(sorted(labels))
        if key in self._seen:
            return False
        self._seen.add(key)
        column: dict[int, float] = {}
        for label in key:
            for row, value in self._rows[label]:
                column[row] = column.get(row, 0.0) + value
        entries = [(np.array(list(column), dtype=np.int64), np.array(list(column.values())))]
        self._program.add_columns(np.ones(1), np.full(1, INFINITY), entries)
        return True

    def solve(self) -> tuple[float, list[float] | None]:
        """(value, dual per unit of each need's amount), or no duals where there are none."""
        found = self._program.solve()
        if found is None:
            return 0.0, None
        return found.value, [max(0.0, float(d)) / b for d, b in zip(found.duals, self._amounts, strict=True)]
