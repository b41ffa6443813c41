"""The time-indexed integer program of problems P1 and P2 (paper 002, (1) and (2)).

Variables, for job j, slot t, level l and device type r:

- ``f[j,t]`` = 1 when j finishes in slot t; ``sum_t f[j,t] <= 1`` (P2) or ``= 1`` (P1);
- ``z[j,t,l]`` = 1 when j runs in slot t counting its level-l rate;
- ``w[j,t,r] >= 0`` devices. For fixed z they are a transportation problem, so whole numbers solve it.

Rows: gang ``sum_r w = W_j sum_l z``; a type only under levels that allow it; capacity; running only up to the
finish, ``sum_l z[j,t,l] <= sum_{u >= t} f[j,u]``; progress by every slot t,
``sum_{u <= t, l} step_l z[j,u,l] >= target sum_{u <= t} f[j,u]``.

There is no locality in the problem, so machines are aggregated by type. Jobs with a single allowed set of types
that is the whole cluster still need w; where the cluster has one type only, w is W_j z and is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import solution_from_levels, trimmed
from schedgap.formulations.hadar.tables import JobTable, Tables, small_units, tables

Term = tuple[pulp.LpVariable, float]
Value = Callable[[pulp.LpVariable], float]


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


class _Builder:
    """Collects variables and rows job by job."""

    def __init__(self, instance: HadarInstance, data: Tables) -> None:
        self.instance = instance
        self.data = data
        self.problem = pulp.LpProblem("hadar", pulp.LpMaximize)
        self.run: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.finish: dict[tuple[int, int], pulp.LpVariable] = {}
        self.devices: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.load: dict[tuple[int, int], list[Term]] = defaultdict(list)
        self.objective: list[Term] = []

    def row(self, terms: list[Term], sense: int, right: float, name: str) -> None:
        self.problem.addConstraint(pulp.LpConstraint(pulp.LpAffineExpression(terms), sense=sense, rhs=right), name=name)

    def job(self, j: int, table: JobTable) -> None:
        horizon = self.data.horizon
        slots = range(table.arrival, horizon + 1)
        finishes = range(table.earliest, horizon + 1)
        step, target = small_units(table.step, table.target, horizon - table.arrival + 1)
        for t in finishes:
            variable = pulp.LpVariable(f"f_{j}_{t}", cat="Binary")
            self.finish[j, t] = variable
            self.objective.append((variable, float(table.utility[t])))
        for t in slots:
            for level in range(table.levels):
                self.run[j, t, level] = pulp.LpVariable(f"z_{j}_{t}_{level}", cat="Binary")
        done = [(self.finish[j, t], 1.0) for t in finishes]
        must = self.instance.all_jobs_must_finish
        self.row(done, pulp.LpConstraintEQ if must else pulp.LpConstraintLE, 1.0, f"once_{j}")
        scale = float(target)
        progress: list[Term] = []
        finished: list[Term] = []
        for t in slots:
            active = [(self.run[j, t, level], 1.0) for level in range(table.levels)]
            later = [(self.finish[j, u], -1.0) for u in finishes if u >= t]
            self.row(active + later, pulp.LpConstraintLE, 0.0, f"until_{j}_{t}")
            progress = progress + [(self.run[j, t, level], float(step[level])) for level in range(table.levels)]
            if t >= table.earliest:
                finished = [*finished, (self.finish[j, t], -scale)]
                self.row(progress + finished, pulp.LpConstraintGE, 0.0, f"work_{j}_{t}")
            self.gang(j, t, table)

    def gang(self, j: int, t: int, table: JobTable) -> None:
        width = float(table.workers)
        if len(self.data.types) == 1:
            self.load[t, 0].extend((self.run[j, t, level], width) for level in range(table.levels))
            return
        members: list[Term] = []
        for kind in range(len(self.data.types)):
            levels = [level for level in range(table.levels) if table.allowed[level, kind]]
            if not levels:
                continue
            most = float(min(table.workers, int(self.data.capacity[kind])))
            variable = pulp.LpVariable(f"w_{j}_{t}_{kind}", lowBound=0, upBound=most)
            self.devices[j, t, kind] = variable
            members.append((variable, 1.0))
            self.load[t, kind].append((variable, 1.0))
            self.row(
                [(variable, 1.0), *((self.run[j, t, level], -most) for level in levels)],
                pulp.LpConstraintLE,
                0.0,
                f"type_{j}_{t}_{kind}",
            )
        gang = [(self.run[j, t, level], -width) for level in range(table.levels)]
        self.row(members + gang, pulp.LpConstraintEQ, 0.0, f"gang_{j}_{t}")

    def close(self) -> None:
        for (t, kind), terms in self.load.items():
            self.row(terms, pulp.LpConstraintLE, float(self.data.capacity[kind]), f"capacity_{t}_{kind}")
        self.problem.setObjective(pulp.LpAffineExpression(self.objective))


def build_ilp(instance: HadarInstance) -> DeclarativeModel:
    """The time-indexed program of P2, or of P1 where the instance says that every job must finish.

    A job that cannot finish by the horizon even alone has no variables in P2; in P1 it makes an infeasible row.

    Complexity: O(J T (T + R L)) nonzeros, see :func:`ilp_nonzeros`. Source: paper 002, (1a)-(1e), (2).
    """
    data = tables(instance)
    builder = _Builder(instance, data)
    impossible = []
    for j, table in enumerate(data.jobs):
        if table.earliest <= data.horizon:
            builder.job(j, table)
        else:
            impossible.append(instance.jobs[j].id)
    builder.close()
    if impossible and instance.all_jobs_must_finish:
        never = pulp.LpVariable("never", lowBound=0, upBound=0)
        builder.row([(never, 1.0)], pulp.LpConstraintGE, 1.0, "cannot_finish")

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
        problem=builder.problem,
        extract=extract,
        sense=MAXIMISE,
        assign=assign,
        restated_integral=frozenset(
            {variable.name for variable in builder.devices.values()} | ({"never"} if impossible else set())
        ),
        info={"impossible": impossible},
    )


def _assignment(builder: _Builder, solution: Solution) -> dict[pulp.LpVariable, float]:
    """Variable values of a solution; a slot counts at the level of its slowest device type."""
    data, instance = builder.data, builder.instance
    values: dict[pulp.LpVariable, float] = dict.fromkeys(
        [*builder.run.values(), *builder.finish.values(), *builder.devices.values()], 0.0
    )
    for name, slots in solution["allocation"].items():
        j = instance.job_index[name]
        table = data.jobs[j]
        if not slots or table.earliest > data.horizon:
            continue
        for slot, entries in slots.items():
            kinds = [data.types.index(entry["type"]) for entry in entries]
            level = next(level for level in range(table.levels) if all(table.allowed[level, kind] for kind in kinds))
            values[builder.run[j, int(slot), level]] = 1.0
            for entry, kind in zip(entries, kinds, strict=True):
                variable = builder.devices.get((j, int(slot), kind))
                if variable is not None:
                    values[variable] += float(entry["gpus"])
        values[builder.finish[j, max(map(int, slots))]] = 1.0
    return values
