"""The columns of P2: schedules of hadar's jobs, their pricing for the master, and what a search node forbids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import levels_from, trimmed
from schedgap.formulations.hadar.pricing import (
    IMPOSSIBLE,
    Automaton,
    automaton,
    best_schedules,
    demand,
    slot_costs,
    trace,
)
from schedgap.formulations.hadar.tables import JobTable, ProgressTables
from schedgap.solvers.column_generation import Column, Generated, Priced, RowBounds
from schedgap.solvers.linear_program import INFINITY, LinearProgram

# Cuts for hadar's master: which gangs can run together in one slot.
#
# A running job is of a *class* (W, the set of device types its level allows). How many jobs of each class run in a
# slot is a vector n of whole numbers, and whether it fits is decided by Hall's condition over sets of types. The
# capacity rows of P2 allow convex combinations outside the hull of these vectors: on 2 + 2 + 2 devices, 4/3 gangs of
# 3 that use two of the types, where only one fits. An inequality ``alpha n <= 1`` that every fitting n satisfies,
# alpha >= 0, cuts them off. It charges a job by slot and class, so pricing only sees another cost of a slot.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

VIOLATION = 1e-3
"""A cut must be violated by this much."""

MOST_PACKINGS = 4000
"""With more maximal packings than this there are no cuts."""

MOST_STEPS = 40_000
"""Nor with more steps than this to find them: about half a second."""


class SlotCuts:
    """The classes of an instance and the cuts so far; its maximal packings of one slot when a cut is looked for first.

    Parameters
    ----------
    data : the instance's tables
    """

    def __init__(self, data: ProgressTables) -> None:
        self.horizon = data.horizon
        wanted: dict[tuple[int, int], int] = {}
        self.classes: list[Ints] = []
        most: dict[tuple[int, int], int] = {}
        for job in data.jobs:
            own = [(job.workers, sum(1 << int(r) for r in np.flatnonzero(row))) for row in job.allowed]
            for key in own:
                wanted.setdefault(key, len(wanted))
                most[key] = most.get(key, 0) + 1
            self.classes.append(np.array([wanted[key] for key in own], dtype=np.int64))
        self.keys = list(wanted)
        self._most = [most[key] for key in self.keys]
        self._capacity: list[int] = data.capacity.tolist()
        self.slots = np.zeros(0, dtype=np.int64)
        self.alpha = np.zeros((0, len(self.keys)))
        self._separator: LinearProgram | None = None

    @cached_property
    def packings(self) -> Ints | None:
        """(packings, classes) the maximal packings of one slot; None where there are too many."""
        return maximal_packings(self.keys, self._most, self._capacity)

    def charges(self, duals: Floats) -> Floats | None:
        """(T + 1, classes) what a job of a class pays for running in a slot, from the cuts' duals."""
        if not len(duals):
            return None
        charges = np.zeros((self.horizon + 1, len(self.keys)))
        np.add.at(charges, self.slots[: len(duals)], duals[:, None] * self.alpha[: len(duals)])
        return charges

    def entries(self, j: int, levels: Ints, first: int = 0) -> tuple[Ints, Floats]:
        """The cuts (from number `first`) that a schedule of job j takes part in, and its coefficients."""
        if len(self.slots) == first:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        at = levels[self.slots[first:]]
        values = np.where(
            at > 0, self.alpha[np.arange(first, len(self.slots)), self.classes[j][np.maximum(at, 1) - 1]], 0
        )
        where = np.flatnonzero(values)
        return where + first, values[where]

    def load(self, schedules: Sequence[tuple[int, Ints, float]]) -> Floats:
        """(T + 1, classes) how much of each class runs in each slot, for weighted (job, levels, weight)."""
        load = np.zeros((self.horizon + 1, len(self.keys)))
        for j, levels, weight in schedules:
            slots = np.flatnonzero(levels)
            np.add.at(load, (slots, self.classes[j][levels[slots] - 1]), weight)
        return load

    def separate(self, load: Floats) -> int:
        """Add the most violated cut of every slot; returns how many were added."""
        if self.packings is None:
            return 0
        found: list[tuple[int, Floats]] = []
        for slot in range(1, self.horizon + 1):
            if load[slot].sum() <= 1 + VIOLATION:
                continue
            alpha = self._cut(load[slot])
            if float(alpha @ load[slot]) > 1 + VIOLATION:
                found.append((slot, alpha))
        if found:
            self.slots = np.append(self.slots, [slot for slot, _ in found])
            self.alpha = np.vstack([self.alpha, [alpha for _, alpha in found]])
        return len(found)

    def _cut(self, load: Floats) -> Floats:
        """max alpha load, alpha n <= 1 for every maximal packing n, 0 <= alpha <= 1."""
        assert self.packings is not None
        if self._separator is None:
            self._separator = _separator(self.packings)
        # a little on every class lifts the coefficients of those that do not run here
        self._separator.set_costs(np.arange(len(load)), -(load + 1e-4))
        found = self._separator.solve()
        if found is None:  # 0 is feasible, and 1 the largest coefficient: HiGHS gave up
            return np.zeros(len(load))
        alpha = np.clip(found.x, 0.0, 1.0)
        alpha[alpha < 1e-9] = 0.0
        return np.asarray(alpha / max(1.0, float((self.packings @ alpha).max())))


def _separator(packings: Ints) -> LinearProgram:
    rows, n = packings.shape
    program = LinearProgram()
    program.add_columns(np.zeros(n), np.ones(n))
    used = [np.flatnonzero(packing) for packing in packings]
    entries = [(index, packing[index].astype(float)) for index, packing in zip(used, packings, strict=True)]
    program.add_rows(np.full(rows, -INFINITY), np.ones(rows), entries)
    return program


def maximal_packings(keys: Sequence[tuple[int, int]], most: Sequence[int], capacity: Sequence[int]) -> Ints | None:
    """(packings, classes) the maximal numbers of gangs by class that fit one slot; None where there are too many.

    Parameters
    ----------
    keys : (workers, set of types as bits) of each class
    most : jobs of each class
    capacity : devices by type
    """
    sets = np.arange(1 << len(capacity))
    room = sum((((sets >> r) & 1) * c for r, c in enumerate(capacity)), np.zeros_like(sets))
    weight = np.array([[w if (s & mask) == mask else 0 for s in sets] for w, mask in keys]).reshape(
        len(keys), len(sets)
    )
    found: list[Ints] = []
    counts = np.zeros(len(keys), dtype=np.int64)
    steps = 0

    def extend(position: int, left: Ints) -> bool:
        nonlocal steps
        steps += 1
        if steps > MOST_STEPS or len(found) > MOST_PACKINGS:
            return False
        if position == len(keys):
            fits = (weight <= left[None, :]).all(axis=1) & (counts < np.array(most))
            if not fits.any():
                found.append(counts.copy())
            return True
        free = left.copy()
        for count in range(most[position] + 1):
            counts[position] = count
            if not extend(position + 1, free):
                return False
            free = free - weight[position]
            if (free < 0).any():
                break
        counts[position] = 0
        return True

    if len(capacity) > 8 or not extend(0, room):
        return None
    return np.array(found, dtype=np.int64).reshape(len(found), len(keys))


Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Schedule:
    """One column: `levels` (T + 1,), 0 idle and l + 1 level l, and the finish slot."""

    levels: Ints
    finish: int


@dataclass(frozen=True)
class Prices:
    """What a schedule pays."""

    devices: Floats  # (T + 1, R) for a device of a type in a slot; slot 0 is unused
    # (T + 1, classes) for running in a slot, by class (:class:`SlotCuts`); None where nothing is charged
    charges: Floats | None = None

    def scaled(self, factor: float) -> Prices:
        """All prices times a factor."""
        return Prices(factor * self.devices, None if self.charges is None else factor * self.charges)


@dataclass(frozen=True)
class Rules:
    """What one job's schedules may be at a node."""

    permit: Bools  # (T + 1, L + 1) what a slot may be, idle first
    finish: Bools  # (T + 1,) the finish slots that may be chosen
    must: bool  # the job has to finish

    @property
    def last(self) -> int:
        """The latest finish slot that may be chosen, 0 where there is none."""
        return int(np.max(np.flatnonzero(self.finish), initial=0))

    def finishing(self, allowed: Bools, must: bool | None = None) -> Rules:
        """The rules with fewer finish slots."""
        return replace(self, finish=self.finish & allowed, must=self.must if must is None else must)

    def choosing(self, slot: int, choice: int, taken: bool) -> Rules:
        """The rules with `choice` (0 idle, l + 1 level l) forced or forbidden in a slot."""
        permit = self.permit.copy()
        if taken:
            keep = permit[slot, choice]
            permit[slot] = False
            permit[slot, choice] = keep
        else:
            permit[slot, choice] = False
        return replace(self, permit=permit)


class Scheduler:
    """Best schedules of every job of an instance under prices.

    Rows of the master are (slot, type) in the order of :meth:`row`; groups are the jobs.
    """

    def __init__(self, data: ProgressTables, most_states: int = 50_000) -> None:
        self.data = data
        self.horizon = data.horizon
        self.kinds = len(data.types)
        self.automata: list[Automaton | None] = [
            automaton(job, data.horizon - job.arrival + 1, most_states) if job.earliest <= data.horizon else None
            for job in data.jobs
        ]
        self.free_rules = [self._free_rules(job) for job in data.jobs]
        self.cuts = SlotCuts(data)

    @property
    def exact(self) -> bool:
        """Whether every job's best schedule is found exactly."""
        return all(found is None or found.exact for found in self.automata)

    def _free_rules(self, job: JobTable) -> Rules:
        permit = np.zeros((self.horizon + 1, job.levels + 1), dtype=np.bool_)
        permit[:, 0] = True
        permit[job.arrival :, :] = True
        return Rules(permit, np.arange(self.horizon + 1) >= job.earliest, False)

    def row(self, slot: int, kind: int) -> int:
        """The master's row of a device type in a slot."""
        return (slot - 1) * self.kinds + kind

    def rows(self) -> int:
        """T R."""
        return self.horizon * self.kinds

    def capacity_rows(self) -> list[RowBounds]:
        """The rows of the master without cuts."""
        return [RowBounds(upper=float(c)) for _ in range(self.horizon) for c in self.data.capacity]

    def prices(self, duals: Floats) -> Prices:
        """Prices from row duals: of devices, and of running in a slot, which is what cuts charge for."""
        duals = np.maximum(duals, 0.0)
        devices = duals[: self.rows()].reshape(self.horizon, self.kinds)
        return Prices(np.vstack([np.zeros((1, self.kinds)), devices]), self.cuts.charges(duals[self.rows() :]))

    def no_prices(self) -> Prices:
        """Everything is free."""
        return self.prices(np.zeros(self.rows()))

    def best(
        self, j: int, price: Prices, rules: Rules, weight: float = 1.0, utility: Floats | None = None
    ) -> tuple[Floats, PricedJob]:
        """Payoff by finish slot (-inf where impossible) and the means to build the schedules."""
        job = self.data.jobs[j]
        machine = self.automata[j]
        last = rules.last
        if machine is None or last == 0:
            return np.full(self.horizon + 1, IMPOSSIBLE), PricedJob(self, j, None)
        cost, order = slot_costs(price.devices, self.data.capacity[None], job.workers, job.allowed, job.arrival, last)
        if price.charges is not None:
            cost += price.charges[:, self.cuts.classes[j]]
        worth = job.utility if utility is None else utility
        payoff, end, level_of, state_of = best_schedules(
            cost, worth, machine.following, rules.permit, rules.finish, last, weight
        )
        return payoff, PricedJob(self, j, (order, end, level_of, state_of))

    def column(self, j: int, levels: Ints, order: Ints, finish: int) -> Column:
        """The master's column of a schedule, with the devices that `order` (types by price) prefers."""
        job = self.data.jobs[j]
        used = demand(levels, order, self.data.capacity[None], job.workers, job.allowed)
        slots, kinds = np.nonzero(used)
        cut_rows, cut_values = self.cuts.entries(j, levels)
        return Column(
            j,
            float(job.utility[finish]),
            np.concatenate([(slots - 1) * self.kinds + kinds, self.rows() + cut_rows]),
            np.concatenate([used[slots, kinds].astype(float), cut_values]),
            Schedule(levels, finish),
        )

    def from_solution(self, instance: HadarInstance, solution: Solution) -> list[Schedule | None]:
        """The schedules of a feasible solution object; None for a job that does not finish in it."""
        levels = levels_from(instance, self.data, solution)
        schedules: list[Schedule | None] = [None] * len(self.data.jobs)
        for j, own in trimmed(levels, self.data).items():
            line = np.zeros(self.horizon + 1, dtype=np.int64)
            for slot, level in own.items():
                line[slot] = level + 1
            schedules[j] = Schedule(line, max(own))
        return schedules

    def price_all(self, duals: Floats, weight: float, rules: Sequence[Rules], most: int = 3) -> Priced:
        """Price every job: the exact best payoffs, and up to `most` schedules a job with different finish slots."""
        price = self.prices(duals)
        best = np.full(len(self.data.jobs), IMPOSSIBLE)
        columns: list[Column] = []
        for j in range(len(self.data.jobs)):
            payoff, found = self.best(j, price, rules[j], weight)
            best[j] = payoff.max()
            if best[j] == IMPOSSIBLE:
                continue
            for finish in np.argsort(-payoff, kind="stable")[:most]:
                if payoff[finish] > IMPOSSIBLE:
                    columns.append(found.column(int(finish)))
        return Priced(best, columns)


@dataclass(frozen=True)
class PricedJob:
    """What :meth:`Scheduler.best` found for one job."""

    scheduler: Scheduler
    job: int
    parts: tuple[Ints, Ints, Ints, Ints] | None

    def levels(self, finish: int) -> Ints:
        """(T + 1,) the best schedule that finishes in a slot: 0 idle, l + 1 level l."""
        if self.parts is None:
            raise ValueError("the job has no schedule")
        _, end, level_of, state_of = self.parts
        return np.asarray(trace(end, level_of, state_of, finish), dtype=np.int64)

    def column(self, finish: int) -> Column:
        """The column of that schedule."""
        if self.parts is None:
            raise ValueError("the job has no schedule")
        return self.scheduler.column(self.job, self.levels(finish), self.parts[0], finish)


# Branch and price for P1 and P2: nodes, which columns they allow, what to branch on, what bounds fix.


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
