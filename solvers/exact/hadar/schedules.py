"""The columns of P2: schedules of hadar's jobs, their pricing for the master, and what a search node forbids.

Idea: at prices of devices a job's best schedule is a covering knapsack over (slot, progress). Source: paper 002, (4)
and (8) by dynamic programming; all finish slots in one pass are ours. Guarantee: pricing is exact, so payoffs make a
bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
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
from schedgap.solvers.column_generation import Column, Priced, RowBounds
from schedgap.solvers.exact.hadar.own_rows import OwnRows
from schedgap.solvers.exact.hadar.slot_cuts import SlotCuts


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
    # (J, T + 1) each, for running in a slot and for finishing in it, by rows of a user's; None where there are none
    own: tuple[Floats, Floats] | None = None

    def scaled(self, factor: float) -> Prices:
        """All prices times a factor."""
        own = None if self.own is None else (factor * self.own[0], factor * self.own[1])
        return Prices(factor * self.devices, None if self.charges is None else factor * self.charges, own)


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

    Rows of the master are (slot, type) in the order of :meth:`row`, then those of a user's own; groups are the jobs.
    """

    def __init__(self, data: ProgressTables, most_states: int = 50_000, user_rows: OwnRows | None = None) -> None:
        self.data = data
        self.user_rows = user_rows
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

    def device_rows(self) -> int:
        """T R."""
        return self.horizon * self.kinds

    def rows(self) -> int:
        """Rows of the master without cuts."""
        return self.device_rows() + (0 if self.user_rows is None else len(self.user_rows.upper))

    def capacity_rows(self) -> list[RowBounds]:
        """The rows of the devices."""
        return [RowBounds(upper=float(c)) for _ in range(self.horizon) for c in self.data.capacity]

    def user_limits(self) -> list[RowBounds]:
        """The rows of a user's own."""
        return [] if self.user_rows is None else [RowBounds(upper=level) for level in self.user_rows.upper.tolist()]

    def worth(self, j: int, levels: Ints, finish: int) -> float:
        """What a schedule is worth: its utility, or what a user's objective counts."""
        if self.user_rows is None or self.user_rows.worth is None:
            return float(self.data.jobs[j].utility[finish])
        return float(self.user_rows.worth[j, finish] + self.user_rows.run_worth[j] @ (levels > 0))

    def run_worth(self, j: int) -> Floats:
        """(T + 1,) what running in a slot adds to that."""
        return np.zeros(self.horizon + 1) if self.user_rows is None else self.user_rows.run_worth[j]

    def prices(self, duals: Floats) -> Prices:
        """Prices from row duals: of devices, and of running in a slot, which is what cuts charge for."""
        duals = np.maximum(duals, 0.0)
        devices = duals[: self.device_rows()].reshape(self.horizon, self.kinds)
        own = None if self.user_rows is None else self.user_rows.charges(duals[self.device_rows() : self.rows()])
        return Prices(np.vstack([np.zeros((1, self.kinds)), devices]), self.cuts.charges(duals[self.rows() :]), own)

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
        if self.user_rows is not None and price.own is not None:
            worth = worth if self.user_rows.worth is None else self.user_rows.worth[j]
            cost += (price.own[0][j] - weight * self.user_rows.run_worth[j])[:, None]
            worth, weight = weight * worth - price.own[1][j], 1.0
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
        own_values = np.zeros(0) if self.user_rows is None else self.user_rows.entries(j, levels, finish)
        own_rows = np.flatnonzero(own_values)
        return Column(
            j,
            self.worth(j, levels, finish),
            np.concatenate([(slots - 1) * self.kinds + kinds, self.device_rows() + own_rows, self.rows() + cut_rows]),
            np.concatenate([used[slots, kinds].astype(float), own_values[own_rows], cut_values]),
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
