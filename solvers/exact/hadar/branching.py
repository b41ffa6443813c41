"""Branch and price for P1 and P2: nodes, which columns they allow, what to branch on, what bounds fix.

Idea: branch on when a job finishes, then on what it does in a slot; reduced costs rule finish slots out. Source: Ryan
and Foster (1981) for branching on what columns have in common; the order is ours. Guarantee: the children lose no
better choice; where all slots are settled the types are a transportation problem.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Bools, Floats
from schedgap.solvers.column_generation import Column, Generated
from schedgap.solvers.exact.hadar.schedules import Rules, Schedule, Scheduler

FRACTION = 1e-6
"""A sum of weights this close to a whole number counts as whole."""


def schedule_of(column: Column) -> Schedule:
    """The schedule that a column stands for."""
    schedule: Schedule = column.payload
    return schedule


class Pool:
    """The columns seen so far, by job, in arrays, so that a node's rules are applied at once."""

    def __init__(self, jobs: int) -> None:
        self._seen = 0
        self._levels: list[list[NDArray[np.int64]]] = [[] for _ in range(jobs)]
        self._finish: list[list[int]] = [[] for _ in range(jobs)]
        self._index: list[list[int]] = [[] for _ in range(jobs)]

    def allowed(self, columns: Sequence[Column], rules: Sequence[Rules], free: Sequence[Rules]) -> Bools:
        """(columns,) which of them keep the rules."""
        for position in range(self._seen, len(columns)):
            schedule = schedule_of(columns[position])
            j = columns[position].group
            self._levels[j].append(schedule.levels)
            self._finish[j].append(schedule.finish)
            self._index[j].append(position)
        self._seen = len(columns)
        keep = np.ones(len(columns), dtype=bool)
        for j, rule in enumerate(rules):
            if rule is free[j] or not self._index[j]:
                continue
            levels = np.array(self._levels[j])
            sound = rule.finish[np.array(self._finish[j])]
            if rule.permit is not free[j].permit:
                sound &= rule.permit[np.arange(levels.shape[1])[None, :], levels].all(axis=1)
            keep[np.array(self._index[j])] = sound
        return keep


def fix_by_bound(
    scheduler: Scheduler, rules: tuple[Rules, ...], generated: Generated, incumbent: float
) -> tuple[Rules, ...]:
    """Rules without the finish slots (and rejections) that cannot lead to more than `incumbent`.

    With the node's bound ``B = sum c k + sum_j best_j`` at prices k, a solution in which job j has a schedule of
    payoff p is worth at most ``B - best_j + p``.
    """
    if generated.bound is None:
        return rules
    slack = generated.bound - incumbent
    price = scheduler.prices(generated.duals)
    fixed = list(rules)
    for j, rule in enumerate(rules):
        payoff, _ = scheduler.best(j, price, rule)
        best = float(payoff.max()) if rule.must else max(0.0, float(payoff.max()))
        # a margin, so that rounding never removes an optimum
        margin = 1e-7 * max(1.0, abs(generated.bound))
        useful = payoff >= best - slack - margin
        must = rule.must or best - slack > margin
        if must != rule.must or not useful[rule.finish].all():
            fixed[j] = rule.finishing(useful, must)
    return tuple(fixed)


def branch(
    scheduler: Scheduler, rules: tuple[Rules, ...], columns: Sequence[Column], weights: Floats
) -> tuple[tuple[Rules, ...], tuple[Rules, ...]] | None:
    """Two children that cut off the fractional weights, or None where every slot's level is settled.

    First on when a job finishes (by a slot: then it must; or later, or never), where the utilities on both sides
    differ most; then on what a job does in a slot. Where all of that is whole, the device types of every slot are
    a transportation problem, so a whole solution of the same worth exists.
    """
    used = [int(i) for i in np.flatnonzero(weights > FRACTION)]
    by_job: dict[int, list[int]] = {}
    for position in used:
        by_job.setdefault(columns[position].group, []).append(position)
    finish = _finish_branch(scheduler, rules, columns, weights, by_job)
    if finish is not None:
        j, slot = finish
        slots = np.arange(scheduler.horizon + 1)
        return (
            _replaced(rules, j, rules[j].finishing(slots <= slot, True)),
            _replaced(rules, j, rules[j].finishing(slots > slot)),
        )
    choice = _slot_branch(scheduler, columns, weights, by_job)
    if choice is None:
        return None
    j, slot, level = choice
    return (
        _replaced(rules, j, rules[j].choosing(slot, level, True)),
        _replaced(rules, j, rules[j].choosing(slot, level, False)),
    )


def _replaced(rules: tuple[Rules, ...], j: int, rule: Rules) -> tuple[Rules, ...]:
    return (*rules[:j], rule, *rules[j + 1 :])


def _finish_branch(
    scheduler: Scheduler,
    rules: Sequence[Rules],
    columns: Sequence[Column],
    weights: Floats,
    by_job: dict[int, list[int]],
) -> tuple[int, int] | None:
    """(job, slot): finish by the slot, or not; None where every job's finish is settled."""
    best: tuple[float, int, int] | None = None
    for j, positions in sorted(by_job.items()):
        utility = scheduler.data.jobs[j].utility
        by_slot = np.zeros(scheduler.horizon + 1)
        for position in positions:
            by_slot[schedule_of(columns[position]).finish] += weights[position]
        until = np.cumsum(by_slot)
        slots = np.flatnonzero(by_slot > FRACTION)
        for slot in slots:
            if FRACTION < until[slot] < 1 - FRACTION:
                later = slots[slots > slot]
                below = float(utility[later[0]]) if len(later) else 0.0
                if not len(later) and rules[j].must:
                    continue
                step = float(utility[slot]) - below
                score = min(until[slot], 1 - until[slot]) * (step + 1e-3 * float(utility[slot]) + 1e-9)
                if best is None or score > best[0] * (1 + 1e-9):
                    best = (score, j, int(slot))
    return None if best is None else (best[1], best[2])


def _slot_branch(
    scheduler: Scheduler, columns: Sequence[Column], weights: Floats, by_job: dict[int, list[int]]
) -> tuple[int, int, int] | None:
    """(job, slot, choice) of the most fractional choice, running or not before which level."""
    best: tuple[float, int, int, int] | None = None
    for j, positions in sorted(by_job.items()):
        share = np.zeros((scheduler.horizon + 1, scheduler.data.jobs[j].levels + 1))
        for position in positions:
            levels = schedule_of(columns[position]).levels
            share[np.arange(len(levels)), levels] += weights[position]
        half = np.minimum(share, 1 - share)
        half[0] = 0.0
        half[:, 0] *= 1.0 + scheduler.data.jobs[j].workers
        slot, choice = np.unravel_index(int(np.argmax(half)), half.shape)
        if min(share[slot, choice], 1 - share[slot, choice]) > FRACTION and (
            best is None or half[slot, choice] > best[0]
        ):
            best = (float(half[slot, choice]), j, int(slot), int(choice))
    return None if best is None else best[1:]
