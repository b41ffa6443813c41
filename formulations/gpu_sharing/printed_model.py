"""Problem (15) of paper 003 with (7) to (14), linearised without any assumption (form `time-indexed`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import combinations

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.gpu_sharing.dynamics import exact_work, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.schedule import simulate

PRINTED_VARIABLES = {
    "start": VariableFamily("job, slot", "1 where the job starts in the slot", decision=True),
    "end": VariableFamily("job, slot", "1 where it completes in the slot"),
    "run": VariableFamily("job, slot", "1 from its start slot to its end slot"),
    "gpu": VariableFamily("job, server, index", "1 where it has the GPU while it runs", decision=True),
    "held": VariableFamily("job, server, index, slot", "y_jg(t): 1 where it has the GPU in the slot"),
    "steps": VariableFamily("job, steps", "1 for its accumulation steps", decision=True),
    "meet": VariableFamily("job, job, server, index", "1 where the GPU is one of both jobs"),
    "beside": VariableFamily("job, job, slot", "1 where both run and share a GPU"),
    "pace": VariableFamily("job, steps, slowdown, slot", "1 where it runs with these steps at this slowdown"),
}


PRINTED_ROWS = {
    "gang": RowFamily("(8)", "sum_g held[j,g,t] = G_j run[j,t]"),
    "placed": RowFamily("(8)", "sum_g gpu[j,g] = G_j"),
    "capacity": RowFamily("(9)", "sum_j held[j,g,t] <= C"),
    "kept": RowFamily("(10)", "held[j,g,t] <= gpu[j,g]: with (8), the same GPUs in every slot"),
    "starts": RowFamily("(11)", "sum_t start[j,t] = 1"),
    "ends": RowFamily("(11)", "sum_t end[j,t] = 1"),
    "active": RowFamily("(12)", "run[j,t] = 1 from the start slot to the end slot, else 0"),
    "done": RowFamily("(13)", "progress up to slot t >= the job's work if it has completed by t"),
    "first": RowFamily("(13)", "progress up to slot t < the job's work if not"),
    "one_pace": RowFamily("(14)", "sum pace[j,s,x,t] = run[j,t]"),
    "of_steps": RowFamily("(14)", "sum_x pace[j,s,x,t] <= steps[j,s]"),
    "slowed": RowFamily("(14)", "the slowdown is at least that of every job beside"),
    "attained": RowFamily("(14)", "the slowdown is that of some job beside, or 1"),
    "one_steps": RowFamily("(7)", "sum_s steps[j,s] = 1"),
    "both": RowFamily("", "meet[j,k,g] >= gpu[j,g] + gpu[k,g] - 1"),
    "mine": RowFamily("", "meet[j,k,g] <= gpu[j,g]"),
    "theirs": RowFamily("", "meet[j,k,g] <= gpu[k,g]"),
    "shared": RowFamily("", "beside[j,k,t] >= meet[j,k,g] + run[j,t] + run[k,t] - 2"),
    "meets": RowFamily("", "beside[j,k,t] <= sum_g meet[j,k,g]"),
    "runs": RowFamily("", "beside[j,k,t] <= run[j,t] and <= run[k,t]"),
    "memory": RowFamily("", "two jobs do not share a GPU with steps whose sub-batches do not fit it together"),
}


LARGEST = 2**40
"""The largest whole number in a row."""


def build_equations(instance: GpuSharingInstance) -> DeclarativeModel:
    """The untightened model: its integer points are the feasible schedules, one for each.

    A slot at slowdown x makes 1/x of a solo slot; with L the least common multiple of the numerators of the x, progress
    counts in units of 1/L, so that a job completes exactly when ceil(L W) units are made. Raises ModelRefused: the
    slowdowns have so many digits that the units are too fine.

    Notes
    -----
    O(J^2 G T) nonzeros for G GPUs. Source: paper 003, problem (15) with (7) to (14).
    """
    return _Equations(instance).build()


class _Equations:
    def __init__(self, instance: GpuSharingInstance) -> None:
        self.instance = instance
        self.data = tables(instance)
        self.gpus = [(server.id, index) for server in instance.servers for index in range(server.gpus)]
        self.jobs = [job.id for job in instance.jobs]
        self.layout = Layout(
            pulp.LpProblem("gpu_sharing", pulp.LpMinimize),
            PRINTED_VARIABLES,
            PRINTED_ROWS,
            "(15), the mean of end - arrival + 1",
            {
                "job": self.jobs,
                "GPU": [f"{server}.{index}" for server, index in self.gpus],
                "slot": range(1, instance.horizon + 1),
            },
        )

    def slots(self, j: int) -> range:
        """From the arrival on."""
        return range(self.instance.jobs[j].arrival, self.instance.horizon + 1)

    def slowdown(self, j: int, k: int) -> float:
        """xi of j beside k, at least 1."""
        return max(1.0, float(self.data.slowdown[j, k]))

    def slowdowns(self, j: int) -> list[float]:
        """What can be the job's slowdown, 1 first."""
        return sorted({1.0, *(self.slowdown(j, k) for k in range(len(self.jobs)) if k != j)})

    def build(self) -> DeclarativeModel:
        out, jobs = self.layout, self.instance.jobs
        costs: list[Term] = []
        for j in range(len(jobs)):
            costs += self._job(j)
        for j, k in combinations(range(len(jobs)), 2):
            self._pair(j, k)
        for j in range(len(jobs)):
            self._progress(j)
        var = out.variables
        for t in range(1, self.instance.horizon + 1):
            for gpu in self.gpus:
                here = [(var["held"][i, *gpu, t], 1.0) for i in self.jobs if (i, *gpu, t) in var["held"]]
                if here:
                    out.row("capacity", (*gpu, t), here, "<=", self.instance.max_jobs_per_gpu)
        out.objective(costs)
        return DeclarativeModel(
            problem=out.problem,
            extract=self._extract,
            sense=MINIMISE,
            assign=self._point,
            layout=out,
            tightened=False,
        )

    def _job(self, j: int) -> list[Term]:
        """Placement and time of one job; what its end costs."""
        out, job, i = self.layout, self.instance.jobs[j], self.jobs[j]
        gpus = [(out.variable("gpu", i, *gpu), 1.0) for gpu in self.gpus]
        out.row("placed", (i,), gpus, "==", job.gpus)
        out.row("one_steps", (i,), [(out.variable("steps", i, s), 1.0) for s in self.data.steps[j]], "==", 1)
        start: list[Term] = []
        end: list[Term] = []
        costs: list[Term] = []
        for t in self.slots(j):
            run = out.variable("run", i, t)
            before = list(end)
            start.append((out.variable("start", i, t), 1.0))
            end.append((out.variable("end", i, t), 1.0))
            costs.append((end[-1][0], (t - job.arrival + 1) / len(self.jobs)))
            out.row("active", (i, t), [(run, 1.0), *((v, -1.0) for v, _ in start), *before], "==", 0)
            held = [(out.variable("held", i, *gpu, t), 1.0) for gpu in self.gpus]
            out.row("gang", (i, t), [*held, (run, -float(job.gpus))], "==", 0)
            for gpu, (here, _), (mine, _) in zip(self.gpus, held, gpus, strict=True):
                out.row("kept", (i, *gpu, t), [(here, 1.0), (mine, -1.0)], "<=", 0)
        out.row("starts", (i,), start, "==", 1)
        out.row("ends", (i,), end, "==", 1)
        return costs

    def _pair(self, j: int, k: int) -> None:
        """Whether two jobs share GPUs, and when."""
        out, var = self.layout, self.layout.variables
        one, other = self.jobs[j], self.jobs[k]
        meets: list[Term] = []
        for gpu in self.gpus:
            meet = out.variable("meet", one, other, *gpu)
            mine, theirs = var["gpu"][one, *gpu], var["gpu"][other, *gpu]
            meets.append((meet, 1.0))
            out.row("both", (one, other, *gpu), [(meet, 1.0), (mine, -1.0), (theirs, -1.0)], ">=", -1)
            out.row("mine", (one, other, *gpu), [(meet, 1.0), (mine, -1.0)], "<=", 0)
            out.row("theirs", (one, other, *gpu), [(meet, 1.0), (theirs, -1.0)], "<=", 0)
        for t in self.slots(j):
            if t < self.instance.jobs[k].arrival:
                continue
            beside, runs = out.variable("beside", one, other, t), (var["run"][one, t], var["run"][other, t])
            out.row("meets", (one, other, t), [(beside, 1.0), *((v, -1.0) for v, _ in meets)], "<=", 0)
            for run, whose in zip(runs, (one, other), strict=True):
                out.row("runs", (one, other, whose, t), [(beside, 1.0), (run, -1.0)], "<=", 0)
            for gpu, (meet, _) in zip(self.gpus, meets, strict=True):
                terms = [(beside, 1.0), (meet, -1.0), *((run, -1.0) for run in runs)]
                out.row("shared", (one, other, *gpu, t), terms, ">=", -2)
            for a in self.data.steps[j]:
                for b in self.data.steps[k]:
                    if not self.data.pair_fits(j, a, k, b):
                        terms = [(beside, 1.0), (var["steps"][one, a], 1.0), (var["steps"][other, b], 1.0)]
                        out.row("memory", (one, other, a, b, t), terms, "<=", 2)

    def _beside(self, j: int, k: int, t: int) -> pulp.LpVariable | None:
        pair = (j, k) if j < k else (k, j)
        return self.layout.variables.get("beside", {}).get((self.jobs[pair[0]], self.jobs[pair[1]], t))

    def _progress(self, j: int) -> None:
        """(13) and (14)."""
        out, var, i = self.layout, self.layout.variables, self.jobs[j]
        speeds = {x: 1 / exact(x) for x in self.slowdowns(j)}
        unit = math.lcm(*(speed.denominator for speed in speeds.values()))
        works = {s: exact_work(self.instance.jobs[j], s, self.instance.slot_length) for s in self.data.steps[j]}
        # no job makes more than this within the horizon, so a longer one need not be counted to its end
        most = unit * (self.instance.horizon + 1)
        needs = {s: min(most, math.ceil(work * unit)) for s, work in works.items()}
        if most > LARGEST:
            raise ModelRefused(f"job {i}: its slowdowns have too many digits for a model in whole numbers")
        largest = max(needs.values(), default=0)
        need = [(var["steps"][i, s], -float(n)) for s, n in needs.items()]
        made: list[Term] = []
        ended: list[Term] = []
        for t in self.slots(j):
            others = [(k, b) for k in range(len(self.jobs)) if k != j and (b := self._beside(j, k, t)) is not None]
            pace = {(s, x): out.variable("pace", i, s, str(x), t) for s in works for x in speeds}
            out.row("one_pace", (i, t), [*((v, 1.0) for v in pace.values()), (var["run"][i, t], -1.0)], "==", 0)
            for s in works:
                terms = [(pace[s, x], 1.0) for x in speeds]
                out.row("of_steps", (i, s, t), [*terms, (var["steps"][i, s], -1.0)], "<=", 0)
            for k, beside in others:
                slow = [(v, 1.0) for (_, x), v in pace.items() if x >= self.slowdown(j, k)]
                out.row("slowed", (i, self.jobs[k], t), [*slow, (beside, -1.0)], ">=", 0)
            for x in speeds:
                if x > 1:
                    causes = [(beside, -1.0) for k, beside in others if self.slowdown(j, k) == x]
                    here = [(v, 1.0) for (_, y), v in pace.items() if y == x]
                    out.row("attained", (i, str(x), t), [*here, *causes], "<=", 0)
            made = made + [(v, float(speeds[x] * unit)) for (_, x), v in pace.items()]
            ended = [*ended, (var["end"][i, t], 1.0)]
            by_now = [(v, -float(largest)) for v, _ in ended]
            out.row("done", (i, t), [*made, *need, *by_now], ">=", -largest)
            out.row("first", (i, t), [*made, *need, *((v, -float(unit)) for v, _ in ended)], "<=", -1)

    def _extract(self, value: Callable[[pulp.LpVariable], float]) -> Solution:
        var = self.layout.variables
        on = {family: {key for key, v in var[family].items() if value(v) > 0.5} for family in ("start", "gpu", "steps")}
        return {
            "start": dict(on["start"]),  # type: ignore[arg-type]
            "gpus": {i: [list(gpu) for gpu in self.gpus if (i, *gpu) in on["gpu"]] for i in self.jobs},
            "accumulation": dict(on["steps"]),  # type: ignore[arg-type]
        }

    def _point(self, solution: Solution) -> Mapping[pulp.LpVariable, float]:
        var, completion = self.layout.variables, simulate(self.instance, solution).completion
        if any(end is None or end > self.instance.horizon for end in completion.values()):
            return {}
        values = dict.fromkeys(self.layout.family_of, 0.0)
        places = {i: {(server, index) for server, index in solution["gpus"][i]} for i in self.jobs}
        running = {i: range(solution["start"][i], completion[i] + 1) for i in self.jobs}
        for j, i in enumerate(self.jobs):
            steps = solution["accumulation"][i]
            ones = [var["start"][i, running[i][0]], var["end"][i, running[i][-1]], var["steps"][i, steps]]
            ones += [var["gpu"][i, *gpu] for gpu in places[i]]
            for t in running[i]:
                ones += [var["run"][i, t], *(var["held"][i, *gpu, t] for gpu in places[i])]
                beside = [k for k, o in enumerate(self.jobs) if k != j and t in running[o] and places[i] & places[o]]
                slowdown = max([1.0, *(self.slowdown(j, k) for k in beside)])
                ones.append(var["pace"][i, steps, str(slowdown), t])
                ones += [v for k in beside if (v := self._beside(j, k, t)) is not None]
            for o in self.jobs[j + 1 :]:
                ones += [var["meet"][i, o, *gpu] for gpu in places[i] & places[o]]
            values.update(dict.fromkeys(ones, 1.0))
        return values
