"""The tightened time-indexed program of gpu-sharing, for any engine (method `cbc`, `highs`, `cpsat`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import IMPOSSIBLE, NEVER, Layout, Role, RowFamily, Terms, VariableFamily
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.gpu_sharing.gpu_lists import placed
from schedgap.formulations.gpu_sharing.instance import GpuSharingInstance
from schedgap.formulations.gpu_sharing.modes import Choices, choices
from schedgap.formulations.gpu_sharing.schedule import latest_ends, simulate

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
    "steps": RowFamily(
        "",
        "slots at a slowdown or worse <= what the run may have",
        Role.VALID,
        "a run that loses more than its column allows does not end in it: the budget, level by level",
    ),
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
