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

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import IMPOSSIBLE, NEVER, Layout, RowFamily, Term, Value, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import levels_from, solution_from_levels, trimmed
from schedgap.formulations.hadar.solution import by_slot
from schedgap.formulations.hadar.tables import JobTable, ProgressTables, small_units, tables

LARGEST_UNITS = 10**5
"""Largest work of a job in whole numbers; beyond, the tolerance of a row could hide missing progress."""


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
