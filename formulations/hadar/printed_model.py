"""Problems P1 and P2 as paper 002 prints them, (1) to (1e), linearised without any assumption (form `time-indexed`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import by_slot
from schedgap.formulations.hadar.tables import JobTable, small_units, tables

PRINTED_VARIABLES = {
    "devices": VariableFamily(
        "job, machine, type, slot", "w_jh^r(t), devices of the type that the job has there", decision=True
    ),
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
