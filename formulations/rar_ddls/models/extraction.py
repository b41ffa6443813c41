"""From the variables of the time-indexed model to a solution, and back for a warm start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pulp

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.layout import Value
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.job_options import JobOptions
from schedgap.formulations.rar_ddls.models.rows import Variables


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
