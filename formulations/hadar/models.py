"""The tightened time-indexed program of problems P1 and P2 (paper 002, (1) and (2)).

Variables, for job j, slot t, level l and device type r:

- ``f[j,t]`` = 1 when j finishes in slot t; ``sum_t f[j,t] <= 1`` (P2) or ``= 1`` (P1);
- ``z[j,t,l]`` = 1 when j runs in slot t counting its level-l rate;
- ``w[j,t,r] >= 0`` devices. For fixed z they are a transportation problem, so whole numbers solve it.

Rows: gang ``sum_r w = W_j sum_l z``; a type only under levels that allow it; capacity; running only up to the
finish, ``sum_l z[j,t,l] <= sum_{u >= t} f[j,u]``; progress by every slot t,
``sum_{u <= t, l} step_l z[j,u,l] >= target sum_{u <= t} f[j,u]``.

There is no locality in the problem, so machines are aggregated by type. Jobs with a single allowed set of types
that is the whole cluster still need w; where the cluster has one type only, w is W_j z and is left out."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import IMPOSSIBLE, NEVER, Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE, MINIMISE
from schedgap.formulations.hadar.instance import HadarInstance, by_slot
from schedgap.formulations.hadar.placement import levels_from, solution_from_levels, trimmed
from schedgap.formulations.hadar.tables import JobTable, ProgressTables, small_units, tables

Value = Callable[[pulp.LpVariable], float]

LARGEST_UNITS = 10**5
"""Of a job's work in whole numbers; of more, what engines allow a row could be progress that is missing."""

VARIABLES = {
    "finish": VariableFamily("job, slot", "f: 1 where the job finishes in the slot"),
    "run": VariableFamily("job, slot, level", "z: 1 where it runs and counts the rate of the level"),
    "devices": VariableFamily("job, slot, type", "w: its devices of the type, on whichever machines"),
    "impossible": IMPOSSIBLE,
}
ROWS = {
    "once": RowFamily("(1c)", "it finishes at most once; in P1, once"),
    "until": RowFamily("(1c)", "it runs only up to its finish"),
    "work": RowFamily("(1a)", "progress up to slot t >= E_j N_j if it has finished by t"),
    "type": RowFamily("(1b)", "devices of a type only under levels that allow it"),
    "gang": RowFamily("(1e)", "sum_r devices = W_j sum_l run"),
    "capacity": RowFamily("(1d)", "devices of a type <= those of all machines"),
    "impossible": NEVER,
}


def ilp_nonzeros(instance: HadarInstance) -> int:
    """Nonzeros of the model's rows, estimated before anything is built; O(J)."""
    data = tables(instance)
    total = 0
    for job in data.jobs:
        slots = data.horizon - job.arrival + 1
        if job.earliest > data.horizon:
            continue
        usable = int(job.allowed.any(axis=0).sum())
        levels = job.levels
        per_slot = usable * (levels + 3) + 2 * levels
        # running only up to the finish, and cumulative progress, are triangular
        total += slots * per_slot + slots * slots * (levels + 2) // 2
    return total


class _TimeIndexed:
    """Collects variables and rows job by job."""

    def __init__(self, instance: HadarInstance, data: ProgressTables) -> None:
        self.instance = instance
        self.data = data
        self.layout = Layout(
            pulp.LpProblem("hadar", pulp.LpMaximize),
            VARIABLES,
            ROWS,
            "the sum of the utilities of the jobs that finish",
            {"job": [job.id for job in instance.jobs], "type": list(data.types), "slot": range(1, data.horizon + 1)},
        )
        self.run: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.finish: dict[tuple[int, int], pulp.LpVariable] = {}
        self.devices: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.load: dict[tuple[int, int], list[Term]] = defaultdict(list)
        self.objective: list[Term] = []
        self.rounded: dict[str, dict[pulp.LpVariable, Fraction]] = {}

    def job(self, j: int, table: JobTable) -> None:
        horizon, out, name = self.data.horizon, self.layout, self.instance.jobs[j].id
        slots = range(table.arrival, horizon + 1)
        finishes = range(table.earliest, horizon + 1)
        step, target = small_units(table.step, table.target, horizon - table.arrival + 1)
        for t in finishes:
            variable = out.variable("finish", name, t)
            self.finish[j, t] = variable
            self.objective.append((variable, float(table.utility[t])))
        for t in slots:
            for level in range(table.levels):
                self.run[j, t, level] = out.variable("run", name, t, level)
        done = [(self.finish[j, t], 1.0) for t in finishes]
        must = self.instance.all_jobs_must_finish
        out.row("once", (name,), done, "==" if must else "<=", 1)
        scale = float(target)
        progress: list[Term] = []
        finished: list[Term] = []
        for t in slots:
            active = [(self.run[j, t, level], 1.0) for level in range(table.levels)]
            later = [(self.finish[j, u], -1.0) for u in finishes if u >= t]
            out.row("until", (name, t), active + later, "<=", 0)
            progress = progress + [(self.run[j, t, level], float(step[level])) for level in range(table.levels)]
            if t >= table.earliest:
                finished = [*finished, (self.finish[j, t], -scale)]
                out.row("work", (name, t), progress + finished, ">=", 0)
                if target > LARGEST_UNITS:
                    units = [-Fraction(int(amount)) for amount in step]
                    made = {self.run[j, u, n]: amount for u in slots if u <= t for n, amount in enumerate(units)}
                    made |= {self.finish[j, u]: Fraction(target) for u in finishes if u <= t}
                    self.rounded[out.rows["work"][-1]] = made
            self.gang(j, t, table)

    def gang(self, j: int, t: int, table: JobTable) -> None:
        width, out, name = float(table.workers), self.layout, self.instance.jobs[j].id
        if len(self.data.types) == 1:
            self.load[t, 0].extend((self.run[j, t, level], width) for level in range(table.levels))
            return
        members: list[Term] = []
        for kind in range(len(self.data.types)):
            levels = [level for level in range(table.levels) if table.allowed[level, kind]]
            if not levels:
                continue
            most = float(min(table.workers, int(self.data.capacity[kind])))
            variable = out.variable("devices", name, t, self.data.types[kind], high=most, integer=False)
            self.devices[j, t, kind] = variable
            members.append((variable, 1.0))
            self.load[t, kind].append((variable, 1.0))
            limit = [(self.run[j, t, level], -most) for level in levels]
            out.row("type", (name, t, self.data.types[kind]), [(variable, 1.0), *limit], "<=", 0)
        gang = [(self.run[j, t, level], -width) for level in range(table.levels)]
        out.row("gang", (name, t), members + gang, "==", 0)

    def close(self) -> None:
        for (t, kind), terms in self.load.items():
            self.layout.row("capacity", (t, self.data.types[kind]), terms, "<=", float(self.data.capacity[kind]))
        self.layout.objective(self.objective)


def build_ilp(instance: HadarInstance) -> DeclarativeModel:
    """The time-indexed program of P2, or of P1 where the instance says that every job must finish.

    A job that cannot finish by the horizon even alone has no variables in P2; in P1 it makes an infeasible row.

    Complexity: O(J T (T + R L)) nonzeros, see :func:`ilp_nonzeros`. Source: paper 002, (1a)-(1e), (2).
    """
    data = tables(instance)
    builder = _TimeIndexed(instance, data)
    impossible = []
    for j, table in enumerate(data.jobs):
        if table.earliest <= data.horizon:
            builder.job(j, table)
        else:
            impossible.append(instance.jobs[j].id)
    builder.close()
    if impossible and instance.all_jobs_must_finish:
        builder.layout.impossible(("cannot_finish",))

    def levels_of(value: Value) -> dict[int, dict[int, int]]:
        chosen: dict[int, dict[int, int]] = defaultdict(dict)
        for (j, t, level), variable in builder.run.items():
            if value(variable) > 0.5:
                chosen[j][t] = level
        return chosen

    def extract(value: Value) -> Solution:
        found = solution_from_levels(instance, data, trimmed(levels_of(value), data))
        if found is None:
            raise ValueError("hadar: the levels of an engine's answer do not fit the devices")
        return found

    def assign(solution: Solution) -> Mapping[pulp.LpVariable, float]:
        return _assignment(builder, solution)

    return DeclarativeModel(
        problem=builder.layout.problem,
        extract=extract,
        sense=MAXIMISE,
        assign=assign,
        restated_integral=frozenset(variable.name for variable in builder.devices.values()),
        rounded=builder.rounded,
        layout=builder.layout,
        info={"impossible": impossible},
    )


def _assignment(builder: _TimeIndexed, solution: Solution) -> dict[pulp.LpVariable, float]:
    """Variable values of a solution; a slot counts at the level of its slowest device type.

    A job that holds devices and never finishes is left out, and so are slots after the end of a job's work: they are
    worth nothing, and the program runs a job up to a finish only.
    """
    data, instance = builder.data, builder.instance
    values: dict[pulp.LpVariable, float] = dict.fromkeys(
        [*builder.run.values(), *builder.finish.values(), *builder.devices.values()], 0.0
    )
    for j, levels in trimmed(levels_from(instance, data, solution), data).items():
        held = by_slot(solution["allocation"][instance.jobs[j].id])
        for slot, level in levels.items():
            values[builder.run[j, slot, level]] = 1.0
            for entry in held[slot]:
                variable = builder.devices.get((j, slot, data.types.index(entry["type"])))
                if variable is not None:
                    values[variable] += float(entry["gpus"])
        values[builder.finish[j, max(levels)]] = 1.0
    return values


# Problems P1 and P2 as paper 002 prints them, (1) to (1e), linearised without any assumption (form `time-indexed`).

PRINTED_VARIABLES = {
    "devices": VariableFamily("job, machine, type, slot", "w_jh^r(t), devices of the type that the job has there"),
    "run": VariableFamily("job, slot", "1 where the job has its devices in the slot"),
    "uses": VariableFamily("job, type, slot", "1 where it has some of the type"),
    "rate": VariableFamily("job, level, slot", "1 where x_j(t) of (1b) is the level's rate, the fastest first"),
    "finish": VariableFamily("job, slot", "1 where the job is complete and this is its last slot: f_j"),
}
PRINTED_ROWS = {
    "work": RowFamily("(1a)", "progress over all slots >= E_j N_j if the job finishes"),
    "unfinished": RowFamily("(1a)", "progress over all slots < E_j N_j if it does not"),
    "slowest": RowFamily("(1b)", "a type in use is at least as fast as the rate"),
    "attained": RowFamily("(1b)", "a type of that rate is in use"),
    "one_rate": RowFamily("(1b)", "one rate where the job runs, none elsewhere"),
    "last": RowFamily("(1c)", "it runs in the slot in which it finishes"),
    "after": RowFamily("(1c)", "it does not run after the slot in which it finishes"),
    "once": RowFamily("(1c)", "it finishes at most once; in P1, once"),
    "capacity": RowFamily("(1d)", "sum_j devices[j,h,r,t] <= c_h^r"),
    "gang": RowFamily("(1e)", "sum_hr devices[j,h,r,t] = W_j run[j,t]"),
    "some": RowFamily("(1b)", "sum_h devices[j,h,r,t] >= uses[j,r,t]"),
    "none": RowFamily("(1b)", "sum_h devices[j,h,r,t] <= W_j uses[j,r,t]"),
}


def build_equations(instance: HadarInstance) -> DeclarativeModel:
    """The untightened model: its integer points are the feasible allocations, one for each, machine by machine.

    Jobs run from their arrival on, on types that they can use: the paper's last constraint leaves no other variables.
    Progress is in whole units with the same meaning (``small_units``).

    Complexity: O(J T (H R + L R)) nonzeros. Source: paper 002, (1) to (1e); (2) where jobs may be left out.
    """
    return _Equations(instance).build()


class _Equations:
    def __init__(self, instance: HadarInstance) -> None:
        self.instance = instance
        self.data = tables(instance)
        self.layout = Layout(
            pulp.LpProblem("hadar", pulp.LpMaximize),
            PRINTED_VARIABLES,
            PRINTED_ROWS,
            "the sum of the utilities of the jobs that finish",
            {
                "job": [job.id for job in instance.jobs],
                "machine": [machine.id for machine in instance.machines],
                "type": list(self.data.types),
                "slot": range(1, instance.horizon + 1),
            },
        )

    def build(self) -> DeclarativeModel:
        out, instance = self.layout, self.instance
        worth: list[Term] = []
        for job, table in zip(instance.jobs, self.data.jobs, strict=True):
            worth += self._job(job.id, table)
        devices: dict[tuple[str, str, int], list[Term]] = {}
        for key, variable in out.variables.get("devices", {}).items():
            assert isinstance(key, tuple)
            _, h, r, t = key
            devices.setdefault((str(h), str(r), int(t)), []).append((variable, 1.0))
        there = {machine.id: machine.gpus for machine in instance.machines}
        for (h, r, t), terms in devices.items():
            out.row("capacity", (h, r, t), terms, "<=", there[h][r])
        out.objective(worth)
        return DeclarativeModel(
            problem=out.problem,
            extract=self._extract,
            sense=MAXIMISE,
            assign=self._point,
            layout=out,
            tightened=False,
        )

    def levels(self, table: JobTable) -> list[int]:
        """Distinct progress of a slot, by the slowest type in use, the fastest first."""
        return sorted({int(step) for step in table.type_step if step}, reverse=True)

    def _job(self, j: str, table: JobTable) -> list[Term]:
        """Variables and rows of one job; what it is worth."""
        out, width, horizon = self.layout, float(table.workers), self.instance.horizon
        slots = range(table.arrival, horizon + 1)
        levels = self.levels(table)
        step, target = small_units(np.array(levels, dtype=np.int64), table.target, len(slots))
        made: list[Term] = []
        finish: list[Term] = []
        for t in slots:
            run = out.variable("run", j, t)
            rates = [out.variable("rate", j, n, t) for n in range(1, len(levels) + 1)]
            made += [(rate, float(units)) for rate, units in zip(rates, step, strict=True)]
            out.row("one_rate", (j, t), [*((rate, 1.0) for rate in rates), (run, -1.0)], "==", 0)
            every: list[Term] = []
            used: list[tuple[str, pulp.LpVariable, int]] = []
            for position, r in enumerate(self.data.types):
                units = int(table.type_step[position])
                if not units:
                    continue
                here = [
                    (out.variable("devices", j, machine.id, r, t, high=min(table.workers, machine.gpus[r])), 1.0)
                    for machine in self.instance.machines
                    if machine.gpus.get(r)
                ]
                uses = out.variable("uses", j, r, t)
                used.append((r, uses, units))
                every += here
                out.row("some", (j, r, t), [*here, (uses, -1.0)], ">=", 0)
                out.row("none", (j, r, t), [*here, (uses, -width)], "<=", 0)
            for r, uses, units in used:
                slow = [(rate, 1.0) for rate, level in zip(rates, levels, strict=True) if level <= units]
                out.row("slowest", (j, r, t), [*slow, (uses, -1.0)], ">=", 0)
            for n, (rate, level) in enumerate(zip(rates, levels, strict=True), start=1):
                same = [(uses, 1.0) for _, uses, units in used if units == level]
                out.row("attained", (j, n, t), [*same, (rate, -1.0)], ">=", 0)
            out.row("gang", (j, t), [*every, (run, -width)], "==", 0)
            out.row("after", (j, t), [(run, 1.0), *finish], "<=", 1)
            last = out.variable("finish", j, t)
            finish.append((last, 1.0))
            out.row("last", (j, t), [(last, 1.0), (run, -1.0)], "<=", 0)
        out.row("once", (j,), finish, "==" if self.instance.all_jobs_must_finish else "<=", 1)
        most = float(max([int(s) for s in step], default=0) * len(slots))
        out.row("work", (j,), [*made, *((v, -float(target)) for v, _ in finish)], ">=", 0)
        out.row("unfinished", (j,), [*made, *((v, -most) for v, _ in finish)], "<=", target - 1)
        return [(variable, table.worth.at(t)) for (variable, _), t in zip(finish, slots, strict=True)]

    def _extract(self, value: Callable[[pulp.LpVariable], float]) -> Solution:
        allocation: dict[str, dict[str, list[dict[str, object]]]] = {}
        for key, variable in self.layout.variables.get("devices", {}).items():
            assert isinstance(key, tuple)
            j, h, r, t = key
            if count := round(value(variable)):
                entry: dict[str, object] = {"machine": h, "type": r, "gpus": count}
                allocation.setdefault(str(j), {}).setdefault(str(t), []).append(entry)
        return {"allocation": allocation}

    def _point(self, solution: Solution) -> Mapping[pulp.LpVariable, float]:
        var = self.layout.variables
        values = dict.fromkeys(self.layout.family_of, 0.0)
        for j, held in solution["allocation"].items():
            table = self.data.jobs[self.instance.job_index[j]]
            levels, done, last = self.levels(table), 0, 0
            for t, entries in by_slot(held).items():
                kinds = {entry["type"] for entry in entries if entry["gpus"]}
                if not kinds:
                    continue
                for entry in entries:
                    values[var["devices"][j, entry["machine"], entry["type"], t]] += float(entry["gpus"])
                slowest = min(int(table.type_step[self.data.types.index(r)]) for r in kinds)
                done, last = done + slowest, max(last, t)
                values[var["run"][j, t]] = values[var["rate"][j, levels.index(slowest) + 1, t]] = 1.0
                for r in kinds:
                    values[var["uses"][j, r, t]] = 1.0
            if last and done >= table.target:
                values[var["finish"][j, last]] = 1.0
        return values


# Problem P2 of paper 002 over enumerated schedules (form `P2`), and its dual P3 written out (form `P3`).

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
    """By job, every schedule that ends in the slot in which its work is done.

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
