"""The tightened time-indexed program of gpu-sharing, for any engine (method `cbc`, `highs`, `cpsat`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import combinations

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import IMPOSSIBLE, NEVER, Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MINIMISE, exact
from schedgap.formulations.gpu_sharing.dynamics import exact_work, tables
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices, choices, placed
from schedgap.formulations.gpu_sharing.schedule import latest_ends, simulate

Terms = list[Term]
Column = tuple[int, int, int, int]
"""Job, index of its mode, start slot, slots."""
_UNIT = 10**10

VARIABLES = {
    "column": VariableFamily("job, mode, slot, slots", "1 where it starts then, with this mode, for so many slots"),
    "mode": VariableFamily("job, mode", "1 for its accumulation steps"),
    "run": VariableFamily("job, slot", "1 while it runs"),
    "overlap": VariableFamily("job, job", "GPUs that the two share"),
    "share": VariableFamily("job, job", "1 where they share any"),
    "both": VariableFamily("job, job, slot", "1 where both run and share"),
    "now": VariableFamily("job, job, slot", "GPUs that they share in the slot"),
    "level": VariableFamily("job, level, slot", "1 where its slowdown is the level's or worse"),
    "impossible": IMPOSSIBLE,
}
ROWS = {
    "once": RowFamily("(11)", "one column for every job"),
    "mode": RowFamily("(7)", "the column's mode"),
    "run": RowFamily("(12)", "the column's slots"),
    "capacity": RowFamily("(9)", "GPUs of the running jobs less those shared <= all GPUs"),
    "gang": RowFamily("(8)", "GPUs that a job shares <= its own"),
    "shared": RowFamily("(9)", "what is shared, and when"),
    "both": RowFamily("(12)", "both run and share"),
    "now": RowFamily("(9)", "in a slot in which both run, the overlap"),
    "memory": RowFamily("", "modes that do not fit one GPU together do not share"),
    "level": RowFamily("(14)", "slowdowns at least those of the jobs beside"),
    "budget": RowFamily("(13)", "losses of the run <= what so many slots may lose"),
    "steps": RowFamily("", "slots at a slowdown or worse <= what the run may have", tightening=True),
    "impossible": NEVER,
}


def build_ilp(instance: GpuSharingInstance) -> DeclarativeModel:
    """The integer program: minimise the mean JCT.

    Binary x[j, m, t, d] starts job j in slot t with mode m (accumulation steps) for d slots; run[j, t] sums
    the columns that cover t. For two jobs that may share: o[j, k] GPUs shared, b[j, k] whether any, and per
    slot z (both run and share) and O = o z. With G the gang sizes and N the GPUs::

        sum_j G_j run[j, t] - sum_jk O[j, k, t] <= N,   sum_k O[j, k, t] <= G_j run[j, t]
        o - g (2 - run_j - run_k) <= O <= min(o, g z),  z <= run_j, run_k, b,   g = min(G_j, G_k)
        b + mode[j, m] + mode[k, m'] <= 2 where the two modes do not fit one GPU together
        sum_t loss[j, t] <= sum budget(m, d) x[j, m, t, d]

    loss[j, t] is the largest loss over the partners of slot t, as a staircase over the distinct slowdowns.
    Runs that end later than they can in anything better than a quick schedule without sharing are left out;
    for each slowdown, the slots at it or worse are also counted, at most floor((d - W) / (1 - 1/x)), which cuts
    off fractions only.

    The objective's unit 1/J is rounded down to 10 decimals, so that it is an exact decimal: the bound stays
    valid, and an objective is low by less than J 1e-10 relative. Returns extracts start slots, GPU lists (rebuilt from
    the overlaps) and accumulation steps.

    Notes
    -----
    O(J H D M + J^2 H) variables for D durations and M modes a job. Source: paper 003, problem (15), restated
    with overlap integers instead of GPU identities.
    """
    return _TimeIndexed(instance).model()


def ilp_nonzeros(instance: GpuSharingInstance) -> int:
    """About how many nonzeros the model has, before it is built."""
    found = choices(instance)
    if found.blocked:
        return 1
    latest = latest_ends(instance)
    total = 0
    for j, own in enumerate(found.jobs):
        for mode in own.modes:
            for d in found.slots(j, mode):
                total += max(0, latest[j] - d - instance.jobs[j].arrival + 2) * (d + 3)
    for j, k in found.pairs:
        window = min(latest[j], latest[k]) - max(instance.jobs[j].arrival, instance.jobs[k].arrival) + 1
        total += 22 * max(0, window)
    return total


class _TimeIndexed:
    """One model under construction."""

    def __init__(self, instance: GpuSharingInstance) -> None:
        self.instance = instance
        self.choices: Choices = choices(instance)
        self.latest = [] if self.choices.blocked else latest_ends(instance)
        self.ids = [job.id for job in instance.jobs]
        self.layout = Layout(
            pulp.LpProblem("gpu_sharing", pulp.LpMinimize),
            VARIABLES,
            ROWS,
            "(15), the mean of end - arrival + 1",
            {"job": self.ids, "slot": range(1, max(self.latest, default=1) + 1)},
        )
        self.columns: dict[Column, pulp.LpVariable] = {}
        self.mode: dict[tuple[int, int], pulp.LpVariable] = {}
        self.run: dict[tuple[int, int], pulp.LpVariable] = {}
        self.overlap: dict[tuple[int, int], pulp.LpVariable] = {}
        self.shared: dict[tuple[int, int], pulp.LpVariable] = {}
        self.both: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.now: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.level: dict[tuple[int, int, int], pulp.LpVariable] = {}
        self.rounded: dict[str, dict[pulp.LpVariable, Fraction]] = {}

    def model(self) -> DeclarativeModel:
        """The whole model."""
        if self.choices.blocked:
            self.layout.impossible(("blocked",))
            self.layout.objective([])
            return DeclarativeModel(self.layout.problem, lambda _: {}, 1, layout=self.layout)
        costs: Terms = []
        for j in range(len(self.instance.jobs)):
            costs += self._job(j)
        self.layout.objective(costs)
        for j, k in self.choices.pairs:
            self._pair(j, k)
        self._capacity()
        for j in range(len(self.instance.jobs)):
            self._losses(j)
        return DeclarativeModel(
            self.layout.problem,
            self._extract,
            1,
            assign=self._assign,
            layout=self.layout,
            rounded=self.rounded,
        )

    def _job(self, j: int) -> Terms:
        """Columns, modes and run variables of one job; what its columns cost."""
        job, horizon = self.instance.jobs[j], self.latest[j]
        unit = _UNIT // len(self.instance.jobs)
        costs: Terms = []
        cover: dict[int, Terms] = {t: [] for t in range(job.arrival, horizon + 1)}
        by_mode: list[Terms] = []
        for m, mode in enumerate(self.choices.jobs[j].modes):
            own: Terms = []
            for d in self.choices.slots(j, mode):
                for t in range(job.arrival, horizon - d + 2):
                    x = self.layout.variable("column", self.ids[j], m, t, d)
                    self.columns[j, m, t, d] = x
                    own.append((x, 1.0))
                    costs.append((x, (t + d - job.arrival) * unit / _UNIT))
                    for slot in range(t, t + d):
                        cover[slot].append((x, 1.0))
            by_mode.append(own)
        self.layout.numbered("once", [term for own in by_mode for term in own], "==", 1)
        for m, own in enumerate(by_mode):
            self.mode[j, m] = self.layout.variable("mode", self.ids[j], m)
            self.layout.numbered("mode", [*own, (self.mode[j, m], -1.0)], "==", 0)
        for slot, terms in cover.items():
            self.run[j, slot] = self.layout.variable("run", self.ids[j], slot)
            self.layout.numbered("run", [*terms, (self.run[j, slot], -1.0)], "==", 0)
        return costs

    def _pair(self, j: int, k: int) -> None:
        """Overlap of two jobs that may share."""
        jobs = self.instance.jobs
        most = min(jobs[j].gpus, jobs[k].gpus)
        o = self.layout.variable("overlap", self.ids[j], self.ids[k], high=most)
        b = self.layout.variable("share", self.ids[j], self.ids[k])
        self.overlap[j, k], self.shared[j, k] = o, b
        self.layout.numbered("shared", [(o, 1.0), (b, -float(most))], "<=", 0)
        clashes: dict[int, list[int]] = {}
        for one, other in self.choices.clashes(j, k):
            clashes.setdefault(one, []).append(other)
        for one, others in clashes.items():
            terms = [(self.mode[j, one], 1.0), (b, 1.0), *((self.mode[k, other], 1.0) for other in others)]
            self.layout.numbered("memory", terms, "<=", 2)
        for t in range(max(jobs[j].arrival, jobs[k].arrival), min(self.latest[j], self.latest[k]) + 1):
            run_j, run_k = self.run[j, t], self.run[k, t]
            z = self.layout.variable("both", self.ids[j], self.ids[k], t)
            now = self.layout.variable("now", self.ids[j], self.ids[k], t, high=most)
            self.both[j, k, t], self.now[j, k, t] = z, now
            for limit in (run_j, run_k, b):
                self.layout.numbered("both", [(z, 1.0), (limit, -1.0)], "<=", 0)
            self.layout.numbered("shared", [(now, 1.0), (z, -float(most))], "<=", 0)
            self.layout.numbered("now", [(now, 1.0), (o, -1.0)], "<=", 0)
            terms = [(now, 1.0), (o, -1.0), (run_j, -float(most)), (run_k, -float(most))]
            self.layout.numbered("now", terms, ">=", -2 * most)

    def _capacity(self) -> None:
        jobs = self.instance.jobs
        for t in range(1, max(self.latest) + 1):
            terms = [(self.run[j, t], float(job.gpus)) for j, job in enumerate(jobs) if (j, t) in self.run]
            shared = [(self.now[j, k, t], -1.0) for j, k in self.choices.pairs if (j, k, t) in self.now]
            if terms:
                self.layout.numbered("capacity", terms + shared, "<=", self.instance.total_gpus)
        beside: dict[tuple[int, int], Terms] = {}
        for (j, k, t), now in self.now.items():
            beside.setdefault((j, t), []).append((now, 1.0))
            beside.setdefault((k, t), []).append((now, 1.0))
        for (j, t), terms in beside.items():
            self.layout.numbered("gang", [*terms, (self.run[j, t], -float(jobs[j].gpus))], "<=", 0)

    def _losses(self, j: int) -> None:
        """The staircase of losses in each slot, and the budget of the run."""
        own, slowdown = self.choices.jobs[j], self.choices.tables.slowdown
        partners = [(min(j, k), max(j, k), slowdown[j, k]) for p in self.choices.pairs if j in p for k in p if k != j]
        if not own.levels or not partners:
            return
        spent: Terms = []
        losses = [Fraction(0), *(1 - 1 / exact(x) for x in own.levels)]
        lost: dict[pulp.LpVariable, Fraction] = {}
        for t in range(self.instance.jobs[j].arrival, self.latest[j] + 1):
            before = 0
            for i, x in enumerate(own.levels):
                q = self.layout.variable("level", self.ids[j], i, t)
                self.level[j, i, t] = q
                lost[q] = losses[i + 1] - losses[i]
                spent.append((q, float(own.loss(x) - before)))
                before = own.loss(x)
                if i:
                    self.layout.numbered("level", [(q, 1.0), (self.level[j, i - 1, t], -1.0)], "<=", 0)
                for one, other, factor in partners:
                    if factor == x and (one, other, t) in self.both:
                        self.layout.numbered("level", [(self.both[one, other, t], 1.0), (q, -1.0)], "<=", 0)
        budget = [
            (x, -float(own.budget(own.modes[m], d))) for (owner, m, _, d), x in self.columns.items() if owner == j
        ]
        self.layout.numbered("budget", [(v, c) for v, c in spent + budget if c], "<=", 0)
        if not own.exact:
            for (owner, m, _, d), x in self.columns.items():
                if owner == j:
                    lost[x] = own.modes[m].work - d
            self.rounded[self.layout.rows["budget"][-1]] = lost
        for i, x in enumerate(own.levels):
            loss = 1 - 1 / exact(x)
            limits = [
                (column, -float(math.floor((d - own.modes[m].work) / loss)))
                for (owner, m, _, d), column in self.columns.items()
                if owner == j
            ]
            steps = [(self.level[j, i, t], 1.0) for (owner, place, t) in self.level if owner == j and place == i]
            self.layout.numbered("steps", steps + [term for term in limits if term[1]], "<=", 0)

    def _extract(self, value: Callable[[pulp.LpVariable], float]) -> Solution:
        start, end, steps = ([0] * len(self.instance.jobs) for _ in range(3))
        for (j, m, t, d), x in self.columns.items():
            if value(x) > 0.5:
                start[j], end[j], steps[j] = t, t + d - 1, self.choices.jobs[j].modes[m].steps
        overlap = {pair: math.floor(value(o) + 0.5) for pair, o in self.overlap.items()}
        return placed(self.instance, start, end, overlap, steps)

    def _assign(self, solution: Solution) -> Mapping[pulp.LpVariable, float]:
        """Values of a solution's variables; none of a solution that needs modes the model leaves out."""
        jobs = self.instance.jobs
        completion = simulate(self.instance, solution).completion
        sets = [{(server, index) for server, index in solution["gpus"][job.id]} for job in jobs]
        chosen: dict[int, Column] = {}
        for j, job in enumerate(jobs):
            steps, t = solution["accumulation"][job.id], solution["start"][job.id]
            m = next((m for m, mode in enumerate(self.choices.jobs[j].modes) if mode.steps == steps), -1)
            chosen[j] = (j, m, t, completion[job.id] - t + 1)
            if chosen[j] not in self.columns:
                return {}
        values: dict[pulp.LpVariable, float] = dict.fromkeys(self.layout.family_of, 0.0)
        for j, (_, m, t, d) in chosen.items():
            values[self.columns[chosen[j]]] = values[self.mode[j, m]] = 1.0
            for slot in range(t, t + d):
                values[self.run[j, slot]] = 1.0
        for j, k in self.choices.pairs:
            common = range(max(chosen[j][2], chosen[k][2]), min(sum(chosen[j][2:]), sum(chosen[k][2:])))
            count = len(sets[j] & sets[k])
            if not common or not count:
                continue
            values[self.overlap[j, k]], values[self.shared[j, k]] = float(count), 1.0
            for t in common:
                values[self.both[j, k, t]], values[self.now[j, k, t]] = 1.0, float(count)
                for one, other in ((j, k), (k, j)):
                    for i, x in enumerate(self.choices.jobs[one].levels):
                        if x <= self.choices.tables.slowdown[one, other]:
                            values[self.level[one, i, t]] = 1.0
        return values


# Problem (15) of paper 003 with (7) to (14), linearised without any assumption (form `time-indexed`).

PRINTED_VARIABLES = {
    "start": VariableFamily("job, slot", "1 where the job starts in the slot"),
    "end": VariableFamily("job, slot", "1 where it completes in the slot"),
    "run": VariableFamily("job, slot", "1 from its start slot to its end slot"),
    "gpu": VariableFamily("job, server, index", "1 where it has the GPU while it runs"),
    "held": VariableFamily("job, server, index, slot", "y_jg(t): 1 where it has the GPU in the slot"),
    "steps": VariableFamily("job, steps", "1 for its accumulation steps"),
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
