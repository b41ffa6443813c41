"""Problem P2 of paper 002 over enumerated schedules (form `P2`), and its dual P3 written out (form `P3`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE, MINIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import by_slot
from schedgap.formulations.hadar.tables import tables

LIMIT = 20_000
"""The most schedules of all jobs together."""


Pool = tuple[str, str]
"""A machine and a type."""


Held = tuple[tuple[Pool, int], ...]
"""What a job has in a slot."""


P2_VARIABLES = {"choose": VariableFamily("job, schedule", "y_js: 1 where the job follows the schedule")}


P2_ROWS = {
    "capacity": RowFamily("(2a)", "sum of w_jh^rs(t) y_js <= c_h^r"),
    "one": RowFamily("(2b)", "sum_s y_js <= 1; = 1 where every job must finish"),
}


P3_VARIABLES = {
    "price": VariableFamily("machine, type, slot", "k_h^r(t), the price of a device"),
    "payoff": VariableFamily("job", "mu_j"),
}


P3_ROWS = {"covered": RowFamily("(3a)", "mu_j >= U_j(f_js - a_j) - sum of k_h^r(t) w_jh^rs(t)")}


LONGEST = 200
"""Slots of a job's window that are enumerated; each is one level of the recursion."""


@dataclass(frozen=True)
class Schedule:
    """A schedule s of one job: what it has in each slot in which it runs, and what that is worth."""

    slots: tuple[tuple[int, Held], ...]
    worth: float

    def uses(self) -> Mapping[tuple[str, str, int], int]:
        """w_h^rs(t) by machine, type and slot."""
        return {(h, r, t): count for t, held in self.slots for (h, r), count in held}


def schedules_of(instance: HadarInstance, limit: int = LIMIT) -> list[list[Schedule]]:
    """Each job's schedules: every one that ends in the slot in which its work is done.

    A schedule that keeps devices after its work, or that does not complete, is never better: it is left out. So is a
    slot in which the job runs when without it the others suffice until the same finish. Raises ModelRefused: there are
    more than `limit` schedules.
    """
    for job in instance.jobs:
        if instance.horizon - job.arrival >= LONGEST:
            raise ModelRefused(f"P2: {instance.horizon - job.arrival + 1} slots, at most {LONGEST} are enumerated")
    data = tables(instance)
    found: list[list[Schedule]] = []
    total = 0
    for job, table in zip(instance.jobs, data.jobs, strict=True):
        pools = [
            (machine.id, kind, min(count, job.workers))
            for machine in instance.machines
            for kind, count in machine.gpus.items()
            if count and table.type_step[data.types.index(kind)]
        ]
        gangs: list[tuple[Held, int]] = []
        if len(pools) < 12:
            for counts in itertools.product(*(range(most + 1) for _, _, most in pools)):
                if sum(counts) == job.workers:
                    held = tuple(((h, r), n) for (h, r, _), n in zip(pools, counts, strict=True) if n)
                    gangs.append((held, min(int(table.type_step[data.types.index(r)]) for (_, r), _ in held)))
        else:
            raise ModelRefused(f"P2: job {job.id} has {len(pools)} pools of devices, at most 11 are enumerated")
        mine: list[Schedule] = []

        def extend(t: int, done: int, slots: tuple[tuple[int, Held], ...], slowest: int) -> None:
            nonlocal total
            if done >= table.target:  # noqa: B023 - called at once
                if done - slowest < table.target:  # noqa: B023
                    mine.append(Schedule(slots, table.worth.at(slots[-1][0])))  # noqa: B023
                    total += 1
                if total > limit:
                    raise ModelRefused(f"P2: more than {limit} schedules")
                return
            if t > instance.horizon:
                return
            for held, step in gangs:  # noqa: B023
                extend(t + 1, done + step, (*slots, (t, held)), min(slowest, step) if slots else step)
            extend(t + 1, done, slots, slowest)

        extend(job.arrival, 0, (), 0)
        found.append(mine)
    return found


def _by_job(instance: HadarInstance) -> dict[str, list[Schedule]]:
    return dict(zip((job.id for job in instance.jobs), schedules_of(instance), strict=True))


def _devices(instance: HadarInstance) -> dict[Pool, int]:
    return {(machine.id, kind): count for machine in instance.machines for kind, count in machine.gpus.items()}


def build_p2(instance: HadarInstance, *, relaxed: bool = False) -> DeclarativeModel:
    """(2) to (2c): at most one schedule for every job, capacities kept, the sum of utilities as large as possible.

    Raises ModelRefused: there are more than 20,000 schedules.

    Parameters
    ----------
    instance : a tiny instance
    relaxed : LP(P2), without (2c)
    """
    schedules = _by_job(instance)
    out = Layout(
        pulp.LpProblem("hadar_p2", pulp.LpMaximize),
        P2_VARIABLES,
        P2_ROWS,
        "(2), the sum of the utilities of the schedules that are followed",
        {"job": list(schedules), "schedule": range(1, max(map(len, schedules.values()), default=0) + 1)},
    )
    devices = _devices(instance)
    costs: list[Term] = []
    loads: dict[tuple[str, str, int], list[Term]] = {}
    for j, mine in schedules.items():
        every: list[Term] = []
        for s, schedule in enumerate(mine, start=1):
            choose = out.variable("choose", j, s, high=None if relaxed else 1, integer=not relaxed)
            every.append((choose, 1.0))
            costs.append((choose, schedule.worth))
            for key, count in schedule.uses().items():
                loads.setdefault(key, []).append((choose, float(count)))
        out.row("one", (j,), every, "==" if instance.all_jobs_must_finish else "<=", 1)
    for key, terms in loads.items():
        out.row("capacity", key, terms, "<=", devices[key[:2]])
    out.objective(costs)

    def extract(value: Callable[[pulp.LpVariable], float]) -> Solution:
        allocation: dict[str, dict[str, list[dict[str, object]]]] = {}
        for j, mine in schedules.items():
            for s, schedule in enumerate(mine, start=1):
                if value(out.variables["choose"][j, s]) > 0.5:
                    allocation[j] = {
                        str(t): [{"machine": h, "type": r, "gpus": n} for (h, r), n in held]
                        for t, held in schedule.slots
                    }
        return {"allocation": allocation}

    def assign(solution: Solution) -> Mapping[pulp.LpVariable, float]:
        values = dict.fromkeys(out.family_of, 0.0)
        for j, mine in schedules.items():
            life = by_slot(solution["allocation"].get(j, {}))
            slots = {
                t: {(e["machine"], e["type"]): e["gpus"] for e in entries} for t, entries in life.items() if entries
            }
            if not slots:
                continue
            place = [s for s, known in enumerate(mine, start=1) if {t: dict(held) for t, held in known.slots} == slots]
            if not place:
                return {}
            values[out.variables["choose"][j, place[0]]] = 1.0
        return values

    return DeclarativeModel(
        problem=out.problem,
        extract=extract,
        sense=MAXIMISE,
        assign=assign,
        layout=out,
        tightened=False,
        abstract=relaxed,
        info={"schedules": sum(map(len, schedules.values()))},
    )


def build_p3(instance: HadarInstance) -> DeclarativeModel:
    """(3), (3a): prices and payoffs of least value that cover every schedule; the dual of LP(P2).

    Where every job must finish (P1), payoffs are free in sign. Raises ModelRefused: there are more than 20,000
    schedules.
    """
    schedules = _by_job(instance)
    out = Layout(
        pulp.LpProblem("hadar_p3", pulp.LpMinimize),
        P3_VARIABLES,
        P3_ROWS,
        "(3), the sum of the payoffs and of all devices at their prices",
        {
            "job": list(schedules),
            "machine": [machine.id for machine in instance.machines],
            "type": list(instance.types),
        },
    )
    devices = _devices(instance)
    prices: dict[tuple[str, str, int], pulp.LpVariable] = {}
    costs: list[Term] = []
    for key in dict.fromkeys(key for mine in schedules.values() for schedule in mine for key in schedule.uses()):
        prices[key] = out.variable("price", *key, high=None, integer=False)
        costs.append((prices[key], float(devices[key[:2]])))
    low = None if instance.all_jobs_must_finish else 0
    for j, mine in schedules.items():
        payoff = out.variable("payoff", j, low=low, high=None, integer=False)
        costs.append((payoff, 1.0))
        for s, schedule in enumerate(mine, start=1):
            paid = [(prices[key], float(count)) for key, count in schedule.uses().items()]
            out.row("covered", (j, s), [(payoff, 1.0), *paid], ">=", schedule.worth)
    out.objective(costs)
    return DeclarativeModel(
        problem=out.problem,
        extract=lambda _: {},
        sense=MINIMISE,
        layout=out,
        tightened=False,
        abstract=True,
    )
