"""Problem RAR-DDLS as paper 000 prints it, (1) to (9), linearised without any assumption (form `time-indexed`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pulp

from schedgap.formulations.common.declarative import DeclarativeModel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Layout, Role, RowFamily, Term, VariableFamily
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.rar_ddls.bounds import lower_bound
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.models.extraction import identical_jobs
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.formulations.rar_ddls.ring_cut import most_jobs

VARIABLES = {
    "start": VariableFamily("job, slot", "1 where the job starts in the slot: a_j", decision=True),
    "end": VariableFamily("job, slot", "1 where it completes in the slot: T_j"),
    "gpus": VariableFamily("job, server", "its GPUs on the server while it runs", decision=True),
    "held": VariableFamily("job, server, slot", "y_js[t], its GPUs on the server in the slot"),
    "uses": VariableFamily("job, server", "1 where it has GPUs on the server"),
    "width": VariableFamily("job, servers", "1 where it uses so many servers"),
    "run": VariableFamily("job, servers, rings, slot", "1 where it runs so: servers used, and p_j[t] of (6)"),
    "ring": VariableFamily("job, server, slot", "1 where its ring crosses the server: 0 < y_js[t] < G_j"),
    "worst": VariableFamily("job, server, slot", "1 for a server where p_j[t] is reached", free=True),
    "makespan": VariableFamily("", "max_j T_j"),
    "last": VariableFamily("job", "1 for a job that completes in slot makespan", free=True),
}
ROWS = {
    "gang": RowFamily("(1)", "sum_s held[j,s,t] = G_j where j is active in t, else 0"),
    "placed": RowFamily("(1)", "sum_s gpus[j,s] = G_j"),
    "capacity": RowFamily("(2)", "sum_j held[j,s,t] <= O_s"),
    "kept": RowFamily("(3)", "held[j,s,t] <= gpus[j,s]: with (1), the same GPUs in every active slot"),
    "starts": RowFamily("(3)", "sum_t start[j,t] = 1"),
    "ends": RowFamily("(3)", "sum_t end[j,t] = 1"),
    "active": RowFamily("(4)", "sum_np run[j,n,p,t] = 1 from the start slot to the end slot, else 0"),
    "some": RowFamily("(5)", "gpus[j,s] >= uses[j,s]"),
    "none": RowFamily("(5)", "gpus[j,s] <= min(O_s, G_j) uses[j,s]"),
    "one_width": RowFamily("(8)", "sum_n width[j,n] = 1"),
    "servers": RowFamily("(8)", "sum_s uses[j,s] = sum_n n width[j,n]"),
    "wide": RowFamily("(8)", "sum_p run[j,n,p,t] <= width[j,n]"),
    "crossed": RowFamily("(6)", "ring[j,s,t] <= uses[j,s]"),
    "rings": RowFamily("(6)", "sum_s ring[j,s,t] = the servers it uses, if it is active on several"),
    "most": RowFamily("(6)", "p_j[t] >= sum_i ring[i,s,t] where ring[j,s,t] = 1"),
    "reached": RowFamily("(6)", "p_j[t] <= sum_i ring[i,s,t] where worst[j,s,t] = 1"),
    "at_ring": RowFamily("(6)", "worst[j,s,t] <= ring[j,s,t]"),
    "one_worst": RowFamily("(6)", "sum_s worst[j,s,t] = 1 where j is active on several servers, else 0"),
    "done": RowFamily("(9)", "phi summed up to slot t >= F_j if j has completed by t"),
    "first": RowFamily("(9)", "phi summed up to slot t < F_j if not"),
    "latest": RowFamily("objective", "makespan >= T_j"),
    "attained": RowFamily("objective", "makespan <= T_j where last[j] = 1"),
    "one_last": RowFamily("objective", "sum_j last[j] = 1"),
    "shortest": RowFamily(
        "",
        "ended by t <= started by t - d_j + 1, d_j its shortest duration",
        Role.VALID,
        "no rate is above that of the job alone on as few servers as hold it",
    ),
    "gangs": RowFamily(
        "",
        "jobs of at least g GPUs that run at once <= what all GPUs hold of them",
        Role.VALID,
        "those that run together hold no more than all GPUs: a knapsack of whole gangs",
    ),
    "floor": RowFamily(
        "",
        "makespan >= the certified bound of the instance",
        Role.VALID,
        "the bound is one on every schedule of the instance",
    ),
    "order": RowFamily(
        "",
        "equal jobs start in their order",
        Role.SYMMETRY,
        "equal jobs change places whole, and the rates of all stay",
    ),
}


def build_equations(instance: RarDdlsInstance) -> DeclarativeModel:
    """The untightened model: its integer points are the feasible schedules, one point for each (but for ties in max).

    The paper's y_js[t] are ``held``; its max of (6) and argmin of (9) are written from both sides, so that nothing
    depends on the objective. The rates phi of (7) and (8) are tabulated by the servers used and by p_j[t].

    Complexity: O(T sum_j (S + N_j P) T) nonzeros, for N_j servers and P rings at most. Source: paper 000, (1) to (9).
    """
    return _Equations(instance).build()


class _Equations:
    def __init__(self, instance: RarDdlsInstance) -> None:
        self.instance = instance
        self.phi = rate_table(instance).phi
        self.slots = range(1, instance.horizon + 1)
        self.jobs = [job.id for job in instance.jobs]
        self.servers = [server.id for server in instance.servers]
        crossing = sum(job.gpus > 1 for job in instance.jobs)
        self.rings = [min(crossing, server.gpus) for server in instance.servers]
        self.layout = Layout(
            pulp.LpProblem("rar_ddls", pulp.LpMinimize),
            VARIABLES,
            ROWS,
            "makespan, max_j T_j",
            {"job": self.jobs, "server": self.servers, "slot": self.slots},
        )

    def build(self) -> DeclarativeModel:
        out, instance = self.layout, self.instance
        makespan = out.variable("makespan", low=0, high=instance.horizon)
        out.objective([(makespan, 1.0)])
        for position in range(len(self.jobs)):
            self._job(position)
        var = out.variables
        for s, server in zip(self.servers, instance.servers, strict=True):
            for t in self.slots:
                out.row("capacity", (s, t), [(var["held"][j, s, t], 1.0) for j in self.jobs], "<=", server.gpus)
        for j, job in zip(self.jobs, instance.jobs, strict=True):
            if job.gpus > 1 and len(self.servers) > 1:
                for t in self.slots:
                    self._contention(j, t)
        out.row("one_last", (), [(var["last"][j], 1.0) for j in self.jobs], "==", 1)
        self._strengthen(makespan)
        return DeclarativeModel(
            problem=out.problem,
            extract=self._extract,
            sense=MINIMISE,
            assign=self._point,
            objective_is_integral=True,
            layout=out,
            tightened=False,
        )

    def _strengthen(self, makespan: pulp.LpVariable) -> None:
        """Rows that cut no schedule, and an order of equal jobs."""
        out, instance = self.layout, self.instance
        bound = lower_bound(instance)
        if bound is not None and 1 < bound <= instance.horizon:
            out.row("floor", (), [(makespan, 1.0)], ">=", bound)
        start, end = out.variables["start"], out.variables["end"]
        durations = rate_table(instance).best_duration.tolist()
        for j, shortest in zip(self.jobs, durations, strict=True):
            for t in self.slots if shortest > 1 else ():
                ended = [(end[j, u], 1.0) for u in range(1, t + 1)]
                started = [(start[j, u], -1.0) for u in range(1, t - int(shortest) + 2)]
                out.row("shortest", (j, t), [*ended, *started], "<=", 0)
        sizes = [job.gpus for job in instance.jobs]
        for least in sorted(set(sizes)):
            larger = [gpus for gpus in sizes if gpus >= least]
            limit = most_jobs(larger, instance.total_gpus)
            if limit < len(larger):
                members = [p for p, gpus in enumerate(sizes) if gpus >= least]
                for t in self.slots:
                    running = [term for p in members for term in self._running(self.jobs[p], t, lambda n, p: 1.0)]
                    out.row("gangs", (least, t), running, "<=", limit)
        for group in identical_jobs(instance):
            for first, second in pairwise(self.jobs[p] for p in group):
                terms = [(start[first, t], float(t)) for t in self.slots]
                out.order("order", "job", first, second, [*terms, *((start[second, t], -float(t)) for t in self.slots)])

    def _widths(self, j: int) -> range:
        return range(1, min(self.instance.jobs[j].gpus, len(self.servers)) + 1)

    def _levels(self, n: int) -> range:
        """What p_j[t] can be on n servers; 0 on one."""
        return range(1, max(1, *self.rings) + 1) if n > 1 else range(1)

    def _running(self, j: str, t: int, weight: Callable[[int, int], float]) -> list[Term]:
        modes = ((n, p) for n in self._widths(self.jobs.index(j)) for p in self._levels(n))
        run = self.layout.variables["run"]
        return [(run[j, n, p, t], weight(n, p)) for n, p in modes if weight(n, p)]

    def _job(self, position: int) -> None:
        out, job, j = self.layout, self.instance.jobs[position], self.jobs[position]
        room = [min(server.gpus, job.gpus) for server in self.instance.servers]
        for t in self.slots:
            out.variable("start", j, t)
            out.variable("end", j, t)
            for n in self._widths(position):
                for p in self._levels(n):
                    out.variable("run", j, n, p, t)
        for s, most in zip(self.servers, room, strict=True):
            out.variable("gpus", j, s, high=most)
            out.variable("uses", j, s)
            for t in self.slots:
                out.variable("held", j, s, t, high=most)
        for n in self._widths(position):
            out.variable("width", j, n)
        self._placement(position, room)
        self._time(position)

    def _placement(self, position: int, room: list[int]) -> None:
        """(1), (3), (5) and the servers used."""
        out, job, j = self.layout, self.instance.jobs[position], self.jobs[position]
        var = out.variables
        out.row("placed", (j,), [(var["gpus"][j, s], 1.0) for s in self.servers], "==", job.gpus)
        for s, most in zip(self.servers, room, strict=True):
            gpus, uses = var["gpus"][j, s], var["uses"][j, s]
            out.row("some", (j, s), [(gpus, 1.0), (uses, -1.0)], ">=", 0)
            out.row("none", (j, s), [(gpus, 1.0), (uses, -float(most))], "<=", 0)
            for t in self.slots:
                out.row("kept", (j, s, t), [(var["held"][j, s, t], 1.0), (gpus, -1.0)], "<=", 0)
        widths = [(var["width"][j, n], n) for n in self._widths(position)]
        out.row("one_width", (j,), [(v, 1.0) for v, _ in widths], "==", 1)
        used = [(var["uses"][j, s], 1.0) for s in self.servers]
        out.row("servers", (j,), [*used, *((v, -float(n)) for v, n in widths)], "==", 0)
        for t in self.slots:
            held = [(var["held"][j, s, t], 1.0) for s in self.servers]
            out.row("gang", (j, t), [*held, *self._running(j, t, lambda n, p: -job.gpus)], "==", 0)
            for v, n in widths:
                here = self._running(j, t, lambda m, p, n=n: float(m == n))  # type: ignore[misc]
                out.row("wide", (j, n, t), [*here, (v, -1.0)], "<=", 0)

    def _time(self, position: int) -> None:
        """Active from start to end, and (9)."""
        out, job, j = self.layout, self.instance.jobs[position], self.jobs[position]
        start, end = ([(out.variables[f][j, t], 1.0) for t in self.slots] for f in ("start", "end"))
        out.row("starts", (j,), start, "==", 1)
        out.row("ends", (j,), end, "==", 1)
        made: list[Term] = []
        for t in self.slots:
            active = [*((v, -1.0) for v, _ in start[:t]), *end[: t - 1]]
            out.row("active", (j, t), [*self._running(j, t, lambda n, p: 1.0), *active], "==", 0)
            made = made + self._running(j, t, lambda n, p: self._rate(position, n, p))
            terms = [*made, *((v, -float(job.iterations)) for v, _ in end[:t])]
            out.row("done", (j, t), terms, ">=", 0)
            out.row("first", (j, t), terms, "<=", job.iterations - 1)
        makespan = out.variables["makespan"][()]
        ends = [(v, -float(t)) for (v, _), t in zip(end, self.slots, strict=True)]
        last, horizon = out.variable("last", j), float(self.instance.horizon)
        out.row("latest", (j,), [(makespan, 1.0), *ends], ">=", 0)
        out.row("attained", (j,), [(makespan, 1.0), *ends, (last, horizon)], "<=", horizon)

    def _rate(self, position: int, n: int, p: int) -> float:
        return float(min(self.phi[position, n, p], self.instance.jobs[position].iterations))

    def _contention(self, j: str, t: int) -> None:
        """(6) for one job and slot."""
        out = self.layout
        var = out.variables
        several = self._running(j, t, lambda n, p: float(n > 1))
        level = self._running(j, t, lambda n, p: float(p))
        minus = [(v, -c) for v, c in several]
        for s in self.servers:
            self._ring(j, s, t)
            out.variable("worst", j, s, t)
        rings = [(var["ring"][j, s, t], 1.0) for s in self.servers]
        out.row("rings", (j, t), [*rings, *self._running(j, t, lambda n, p: -float(n) * (n > 1))], "==", 0)
        out.row("one_worst", (j, t), [*((var["worst"][j, s, t], 1.0) for s in self.servers), *minus], "==", 0)
        for s, most in zip(self.servers, self.rings, strict=True):
            ring, worst = self._ring(j, s, t), var["worst"][j, s, t]
            others = [i for i, job in zip(self.jobs, self.instance.jobs, strict=True) if job.gpus > 1]
            here = [(self._ring(i, s, t), -1.0) for i in others]
            out.row("crossed", (j, s, t), [(ring, 1.0), (var["uses"][j, s], -1.0)], "<=", 0)
            out.row("at_ring", (j, s, t), [(worst, 1.0), (ring, -1.0)], "<=", 0)
            out.row("most", (j, s, t), [*level, *here, (ring, -float(most))], ">=", -most)
            top = float(max(1, *self.rings))
            out.row("reached", (j, s, t), [*level, *here, (worst, top)], "<=", top)

    def _ring(self, j: str, s: str, t: int) -> pulp.LpVariable:
        known = self.layout.variables.get("ring", {}).get((j, s, t))
        return self.layout.variable("ring", j, s, t) if known is None else known

    def _extract(self, value: Callable[[pulp.LpVariable], float]) -> Solution:
        var = self.layout.variables
        start = {j: max(self.slots, key=lambda t: value(var["start"][j, t])) for j in self.jobs}
        gpus = {j: {s: round(value(var["gpus"][j, s])) for s in self.servers} for j in self.jobs}
        return {"start": start, "placement": {j: {s: n for s, n in gpus[j].items() if n} for j in self.jobs}}

    def _point(self, solution: Solution) -> Mapping[pulp.LpVariable, float]:
        """Values of all variables; empty for a schedule that does not complete within the horizon."""
        start, placement = solution["start"], solution["placement"]
        schedule = simulate(self.instance, start, placement)
        makespan = schedule.makespan
        if makespan is None or makespan > self.instance.horizon:
            return {}
        var = self.layout.variables
        values = dict.fromkeys(self.layout.family_of, 0.0)
        crossed: dict[tuple[str, int], int] = {}
        level: dict[tuple[str, int], int] = {}

        def put(family: str, *key: Any, number: float = 1.0) -> None:
            values[var[family][key]] = float(number)

        values[var["makespan"][()]] = float(makespan)
        values[var["last"][next(j for j in self.jobs if schedule.completion[j] == makespan)]] = 1.0
        for j in self.jobs:
            placed, n = placement[j], len(placement[j])
            put("start", j, start[j])
            put("end", j, schedule.completion[j])
            put("width", j, n)
            for s, gpus in placed.items():
                put("gpus", j, s, number=gpus)
                put("uses", j, s)
            for segment in schedule.segments[j]:
                for t in range(segment.first, (segment.last or makespan) + 1):
                    level[j, t] = segment.contention if n > 1 else 0
                    put("run", j, n, level[j, t], t)
                    for s, gpus in placed.items():
                        put("held", j, s, t, number=gpus)
                        if n > 1:
                            put("ring", j, s, t)
                            crossed[s, t] = crossed.get((s, t), 0) + 1
        for (j, t), p in level.items():
            if p:
                put("worst", j, next(s for s in placement[j] if crossed[s, t] == p), t)
        return values
