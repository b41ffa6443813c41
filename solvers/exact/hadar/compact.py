"""A compact program for what branch and price leaves open: finish slots and levels, devices by Hall's condition.

Variables are ``f[j,t]`` (job j finishes in slot t) and ``z[j,t,l]`` (it runs at level l). Instead of devices by
type, for every set S of types the gangs that may only use types of S want at most what S has: that is exact,
see :class:`schedgap.solvers.exact.hadar.schedule_choices.Packing`. Finish slots that a bound has ruled out are left
out, the cuts of the search are rows, and only solutions better than the incumbent are asked for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.hadar.tables import small_units
from schedgap.solvers.exact.hadar.schedules import Rules, Schedule, Scheduler
from schedgap.solvers.integer_program import IntegerProgram, SearchLimits
from schedgap.solvers.linear_program import INFINITY

MARGIN = 4e-10
"""What is looked for is better than the incumbent by this, relatively; optimal means within 1e-9."""


ROUNDING = 1e-10
"""What HiGHS's bound may be off by, relatively, where utilities are far above its tolerances."""


@dataclass(frozen=True)
class CompactAnswer:
    """What the program gave."""

    chosen: list[Schedule | None] | None  # schedules of a solution better than the incumbent, or None
    # a valid upper bound on every solution that keeps the rules and beats the incumbent; None where unknown
    bound: float | None
    complete: bool  # the search was finished: `chosen` is the best, or nothing beats the incumbent


class Compact:
    """The program of an instance under rules; solved by HiGHS from arrays.

    Parameters
    ----------
    scheduler : jobs and cuts
    rules : rules of the root, with finish slots fixed by bounds
    """

    def __init__(self, scheduler: Scheduler, rules: Sequence[Rules]) -> None:
        self.scheduler = scheduler
        self.rules = rules
        self.cost: list[float] = []
        self.finish: dict[tuple[int, int], int] = {}
        self.run: dict[tuple[int, int, int], int] = {}
        self.rows: list[tuple[dict[int, float], float, float]] = []
        for j in range(len(rules)):
            self._job(j)
        self._capacity()
        self._own_rows()

    def _variable(self, cost: float) -> int:
        self.cost.append(cost)
        return len(self.cost) - 1

    def _job(self, j: int) -> None:
        data, rule = self.scheduler.data, self.rules[j]
        job = data.jobs[j]
        finishes = [int(t) for t in np.flatnonzero(rule.finish)]
        if not finishes or job.levels == 0:
            return
        last = finishes[-1]
        step, target = small_units(job.step, job.target, data.horizon - job.arrival + 1)
        idle, running_worth = np.zeros(data.horizon + 1, dtype=np.int64), self.scheduler.run_worth(j)
        for t in finishes:
            self.finish[j, t] = self._variable(self.scheduler.worth(j, idle, t))
        for t in range(job.arrival, last + 1):
            for level in range(job.levels):
                if rule.permit[t, level + 1]:
                    self.run[j, t, level] = self._variable(float(running_worth[t]))
        self.rows.append(({self.finish[j, t]: 1.0 for t in finishes}, 1.0 if rule.must else 0.0, 1.0))
        progress: dict[int, float] = {}
        for t in range(job.arrival, last + 1):
            running = [level for level in range(job.levels) if (j, t, level) in self.run]
            row = {self.run[j, t, level]: 1.0 for level in running}
            row.update({self.finish[j, u]: -1.0 for u in finishes if u >= t})
            self.rows.append((row, -INFINITY, 0.0))
            progress.update({self.run[j, t, level]: float(step[level]) for level in running})
            if rule.finish[t]:
                done = {self.finish[j, u]: -float(target) for u in finishes if u <= t}
                self.rows.append(({**progress, **done}, 0.0, INFINITY))

    def _capacity(self) -> None:
        data, cuts = self.scheduler.data, self.scheduler.cuts
        wanted: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
        kinds = len(data.types)
        masks = {
            (j, level): sum(1 << int(r) for r in np.flatnonzero(data.jobs[j].allowed[level]))
            for j, _, level in self.run
        }
        for (j, t, level), variable in self.run.items():
            for s in range(1, 1 << kinds):
                if s & masks[j, level] == masks[j, level]:
                    wanted[t, s][variable] = float(data.jobs[j].workers)
        for (_, s), row in wanted.items():
            room = float(sum(int(c) for r, c in enumerate(data.capacity) if s >> r & 1))
            if sum(row.values()) > room:
                self.rows.append((row, -INFINITY, room))
        by_slot: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for j, t, level in self.run:
            by_slot[t].append((j, level, self.run[j, t, level]))
        for slot, alpha in zip(cuts.slots.tolist(), cuts.alpha, strict=True):
            row = {v: float(alpha[cuts.classes[j][level]]) for j, level, v in by_slot[slot]}
            row = {v: a for v, a in row.items() if a > 0}
            if sum(row.values()) > 1:
                self.rows.append((row, -INFINITY, 1.0))

    def _own_rows(self) -> None:
        own = self.scheduler.user_rows
        for number, level in enumerate([] if own is None else own.upper.tolist()):
            assert own is not None
            row = {v: float(own.finishes[number, j, t]) for (j, t), v in self.finish.items()}
            row |= {v: float(own.runs[number, j, t]) for (j, t, _), v in self.run.items()}
            self.rows.append(({v: c for v, c in row.items() if c}, -INFINITY, level))

    def solve(self, above: float, bound: float, limits: SearchLimits) -> CompactAnswer:
        """Look for the best solution worth more than `above`.

        Parameters
        ----------
        above : the incumbent's value, -inf where there is none
        bound : a valid upper bound
        limits : limits of the search
        """
        n = len(self.cost)
        if n == 0:
            kept = all(low <= 0 <= high for _, low, high in self.rows)
            empty = CompactAnswer([None] * len(self.rules), 0.0, True)
            return empty if above < 0 and kept else CompactAnswer(None, None, True)
        cost = np.array(self.cost)
        program = IntegerProgram()
        program.add_columns(-cost, np.ones(n))
        rows = list(self.rows)
        if np.isfinite(above):
            objective = {i: float(c) for i, c in enumerate(cost) if c}
            rows.append((objective, above + MARGIN * abs(above), bound + MARGIN * abs(bound)))
        low, high = np.array([low for _, low, _ in rows]), np.array([high for _, _, high in rows])
        program.add_rows(low, high, [(np.array(list(row)), np.array(list(row.values()))) for row, _, _ in rows])
        answer = program.search(limits)
        if answer.complete and answer.x is None:
            return CompactAnswer(None, above + MARGIN * abs(above) if np.isfinite(above) else None, True)
        chosen = None if answer.x is None else self._chosen(answer.x)
        proven = None if answer.bound is None else -answer.bound + ROUNDING * abs(answer.bound)
        return CompactAnswer(chosen, proven, answer.complete)

    def _chosen(self, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[Schedule | None]:
        """The schedules of a solution, cut where the work is done."""
        data = self.scheduler.data
        lines: dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
        for (j, t, level), variable in self.run.items():
            if values[variable] > 0.5:
                lines.setdefault(j, np.zeros(data.horizon + 1, dtype=np.int64))[t] = level + 1
        chosen: list[Schedule | None] = [None] * len(data.jobs)
        for j, line in lines.items():
            done = 0
            for t in np.flatnonzero(line).tolist():
                done += int(data.jobs[j].step[line[t] - 1])
                if done >= data.jobs[j].target:
                    line[t + 1 :] = 0
                    chosen[j] = Schedule(line, t)
                    break
        return chosen
