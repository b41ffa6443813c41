"""The variables and rows of the tightened time-indexed model, and the few ways in which rows are added to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pulp

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import IMPOSSIBLE, NEVER, Layout, RowFamily, Term, VariableFamily
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions

Terms = list[Term]

VARIABLES = {
    "local": VariableFamily("job, server, slot", "1 where it starts there and then, alone on the server"),
    "spread": VariableFamily("job, slot", "1 where it starts then on several servers"),
    "run": VariableFamily("job, mode, slot", "1 where it runs so: at most so many servers and rings, at such a rate"),
    "kind": VariableFamily("job, class", "1 for the class of its number of servers"),
    "share": VariableFamily("job, server", "its GPUs on the server, if on several"),
    "held": VariableFamily("job, server, slot", "the same in the slots in which it runs, else 0"),
    "ring": VariableFamily("job, server, slot, level", "1 where it crosses the server and allows so many rings there"),
    "few": VariableFamily("server, slot, level", "1 where no more rings than the level are allowed"),
    "used": VariableFamily("slot", "1 where some job is not complete before the slot"),
    "impossible": IMPOSSIBLE,
}
ROWS = {
    "once": RowFamily("(3)", "every job starts once"),
    "gpus": RowFamily("(1)", "the GPUs of a job on several servers are those it needs"),
    "gang": RowFamily("(1)", "all of them while it runs, else none"),
    "kept": RowFamily("(3)", "held[j,s,t] <= share[j,s]"),
    "capacity": RowFamily("(2)", "GPUs held on a server <= those it has, 0 after the makespan"),
    "contiguous": RowFamily("(3)", "it runs without a break from its start slot"),
    "crossed": RowFamily("(6)", "a ring where GPUs are held, and only there"),
    "level": RowFamily("(6)", "the rings are at the level of the mode"),
    "links": RowFamily("(6)", "no server is crossed by more rings than any ring there allows"),
    "class": RowFamily("(8)", "the modes are those of the class of its number of servers"),
    "progress": RowFamily("(9)", "iterations made >= F_j; also divided by each rate and rounded up"),
    "makespan": RowFamily("objective", "no slot counts as used only after a job is complete"),
    "shortest": RowFamily("", "a job on several servers runs for its shortest duration at least", tightening=True),
    "gangs": RowFamily("", "how many gangs of at least some size run at once", tightening=True),
    "ring_cut": RowFamily("", "how many rings a ring with a free link excludes", tightening=True),
    "order": RowFamily("", "an order among identical jobs and among identical servers", tightening=True),
    "impossible": NEVER,
}


@dataclass
class Variables:
    """By job j, server s, slot t, mode m, class c and level l; see ``build_ilp``."""

    local: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    spread: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    run: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    kind: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    share: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    held: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    ring: dict[tuple[int, int, int, int], pulp.LpVariable] = field(default_factory=dict)
    few: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    used: dict[int, pulp.LpVariable] = field(default_factory=dict)


@dataclass
class Frame:
    """The model as it grows."""

    layout: Layout  # the PuLP problem with its parts by name
    variables: Variables
    # jobs, servers: ids
    jobs: list[str]
    servers: list[str]
    sizes: list[int]  # (S,) GPUs of the servers
    slots: int  # H
    # GPUs by server and slot; `active`: 1 while job j is active in slot t
    load: defaultdict[tuple[int, int], Terms] = field(default_factory=lambda: defaultdict(list))
    active: defaultdict[tuple[int, int], Terms] = field(default_factory=lambda: defaultdict(list))

    def variable(self, family: str, *places: int, high: int = 1, integer: bool = True) -> pulp.LpVariable:
        """A new variable from 0 to `high`, named by the ids of the job and the server at these positions."""
        key: list[str | int] = list(places)
        for n, what in enumerate(VARIABLES[family].index.split(", ")):
            if what in ("job", "server"):
                key[n] = (self.jobs if what == "job" else self.servers)[places[n]]
        return self.layout.variable(family, *key, high=high, integer=integer)

    def at_most(self, law: str, terms: Terms, limit: int) -> None:
        """sum of terms <= limit."""
        self.layout.numbered(law, terms, "<=", limit)

    def at_least(self, law: str, terms: Terms, limit: int) -> None:
        """sum of terms >= limit."""
        self.layout.numbered(law, terms, ">=", limit)

    def equal(self, law: str, terms: Terms, value: int) -> None:
        """sum of terms = value."""
        self.layout.numbered(law, terms, "==", value)


# From the variables of the time-indexed model to a solution, and back for a warm start.

Value = Callable[[pulp.LpVariable], float]


def extraction(instance: RarDdlsInstance, variables: Variables) -> Callable[[Value], Solution]:
    """The function that reads a solution from variable values."""
    jobs, servers = instance.jobs, instance.servers

    def extract(value: Value) -> Solution:
        start: dict[str, int] = {}
        placement: dict[str, dict[str, int]] = {}
        for (j, s, t), variable in variables.local.items():
            if value(variable) > 0.5:
                start[jobs[j].id] = t
                placement[jobs[j].id] = {servers[s].id: jobs[j].gpus}
        for (j, t), variable in variables.spread.items():
            if value(variable) > 0.5:
                start[jobs[j].id] = t
                placement[jobs[j].id] = {}
        for (j, s), variable in variables.share.items():
            gpus = round(value(variable))
            # The share of a job that is not spread is 0 by the rows of the model.
            if gpus > 0 and jobs[j].id in placement:
                placement[jobs[j].id][servers[s].id] = gpus
        return {"start": start, "placement": placement}

    return extract


def assignment(
    instance: RarDdlsInstance, jobs: list[JobOptions], variables: Variables, slots: int
) -> Callable[[Solution], Mapping[pulp.LpVariable, float]]:
    """The function that turns a feasible solution into variable values; empty where it takes more than `slots`."""

    def assign(solution: Solution) -> Mapping[pulp.LpVariable, float]:
        start, placement = _reordered(instance, solution)
        schedule = simulate(instance, start, placement)
        makespan = schedule.makespan
        if makespan is None or makespan > slots:
            return {}
        ones: list[pulp.LpVariable] = [variable for t, variable in variables.used.items() if t <= makespan]
        values: dict[pulp.LpVariable, float] = {}
        for j, job in enumerate(instance.jobs):
            first, placed = start[job.id], {instance.server_index[s]: gpus for s, gpus in placement[job.id].items()}
            if len(placed) == 1:
                ones.append(variables.local[j, next(iter(placed)), first])
                continue
            ones.append(variables.spread[j, first])
            for s, gpus in placed.items():
                values[variables.share[j, s]] = float(gpus)
            used_class = next(c for c, servers in enumerate(jobs[j].classes) if servers >= len(placed))
            if (j, used_class) in variables.kind:
                ones.append(variables.kind[j, used_class])
            for segment in schedule.segments[job.id]:
                m = next(
                    m
                    for m, mode in enumerate(jobs[j].modes)
                    if mode.spread_class == used_class and mode.level >= segment.contention
                )
                level = jobs[j].modes[m].level
                for t in range(segment.first, (segment.last or makespan) + 1):
                    ones.append(variables.run[j, m, t])
                    for s, gpus in placed.items():
                        values[variables.held[j, s, t]] = float(gpus)
                        if (j, s, t, level) in variables.ring:
                            ones.append(variables.ring[j, s, t, level])
        values.update((variable, 1.0) for variable in ones)
        crossed: set[tuple[int, int, int]] = set()
        for (_, s, t, level), ring in variables.ring.items():
            if values.get(ring) == 1.0:
                crossed.add((s, t, level))
        for (s, t, allowed), few in variables.few.items():
            if any((s, t, level) in crossed for level in range(1, allowed + 1)):
                values[few] = 1.0
        every = [*variables.local.values(), *variables.spread.values(), *variables.run.values()]
        every += [*variables.kind.values(), *variables.share.values(), *variables.held.values()]
        every += [*variables.ring.values(), *variables.few.values(), *variables.used.values()]
        return {variable: values.get(variable, 0.0) for variable in every}

    return assign


def identical_jobs(instance: RarDdlsInstance) -> list[list[int]]:
    """Groups (of at least two) of jobs that differ in nothing but their ids."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for j, job in enumerate(instance.jobs):
        groups.setdefault(tuple(job.model_dump(exclude={"id"}).values()), []).append(j)
    return [group for group in groups.values() if len(group) > 1]


def identical_servers(instance: RarDdlsInstance) -> tuple[int, list[list[int]]]:
    """The first of the largest jobs, and groups (of at least two) of servers of equal size."""
    largest = max(range(len(instance.jobs)), key=lambda j: (instance.jobs[j].gpus, -j))
    groups: dict[int, list[int]] = {}
    for s, server in enumerate(instance.servers):
        groups.setdefault(server.gpus, []).append(s)
    return largest, [group for group in groups.values() if len(group) > 1]


def _reordered(instance: RarDdlsInstance, solution: Solution) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """The same schedule with identical jobs, then identical servers, in the order that the model asks for."""
    start: dict[str, int] = dict(solution["start"])
    placement: dict[str, dict[str, int]] = dict(solution["placement"])
    for group in identical_jobs(instance):
        names = [instance.jobs[j].id for j in group]
        lives = sorted(((start[name], placement[name]) for name in names), key=lambda life: life[0])
        for name, (first, placed) in zip(names, lives, strict=True):
            start[name], placement[name] = first, placed
    largest, groups = identical_servers(instance)
    most = placement[instance.jobs[largest].id]
    renamed: dict[str, str] = {}
    for servers in groups:
        names = [instance.servers[s].id for s in servers]
        by_share = sorted(names, key=lambda name: -most.get(name, 0))
        renamed.update(zip(by_share, names, strict=True))
    placement = {
        name: {renamed.get(server, server): gpus for server, gpus in placed.items()}
        for name, placed in placement.items()
    }
    return start, placement
