"""Tiresias and YARN-CS, as paper 002 sets them up for comparison (section IV).

Idea: Tiresias has two queues by attained service and gives each job devices of one type; YARN-CS is first in, first
out and never preempts. Source: paper 002, section IV, after Gu et al. (NSDI 2019) and Hadoop's capacity scheduler.
Where ours differs: nothing of their systems but these rules; no starved job is promoted, and speeds of types are not
looked at.
"""

from __future__ import annotations

import math
from bisect import insort
from typing import Annotated

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.round_devices import take_any, take_type
from schedgap.heuristics.hadar.simulate import (
    Policy,
    RestartDelay,
    State,
    Steady,
    always,
    refuse_long_delay,
    run_of,
    simulate,
)
from schedgap.solvers.result import NO_DEADLINE, Deadline

PIECE = 10**7
"""Priorities that are compared in one go at most: compiled code heeds no deadline and no Ctrl-C."""


def one_type(data: ProgressTables, j: int, free: Ints, kind: int) -> Ints | None:
    """(H, R) a gang on one device type, packed on few machines; None where it does not fit or cannot run there."""
    job = data.jobs[j]
    if job.type_step[kind] == 0:
        return None
    machines = take_type(free, kind, job.workers)
    if not machines.any():
        return None
    grid = np.zeros_like(free)
    grid[:, kind] = machines
    return grid


def tiresias(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    threshold: Annotated[
        float, Field(gt=0, description="device-rounds of service before a job moves to the second queue")
    ] = 60.0,
    restart_delay: RestartDelay = 0.0,
) -> HeuristicRun:
    """Two-queue least attained service, preemptive, without promotion; blind to how fast a type is.

    Jobs whose attained service is below the threshold come first, each queue in order of arrival. A job takes one
    device type, the first in the order of the cluster that has room for its gang.

    Parameters
    ----------
    threshold : device-rounds of service after which a job moves to the second queue
    restart_delay : time lost when a job's devices change

    Notes
    -----
    O(J R H) a round. Source: paper 002, section IV ("two priority queues and its PromoteKnob disabled").
    """
    del seed
    refuse_long_delay("tiresias", instance, restart_delay)
    policy, steady = least_attained(tables(instance), threshold)
    return run_of(instance, simulate(instance, policy, restart_delay, deadline, steady=steady))


def least_attained(data: ProgressTables, threshold: float) -> tuple[Policy, Steady]:
    """The decisions of :func:`tiresias`, and in how many rounds they stay."""
    passing = math.ceil(threshold)  # service is whole
    workers = [job.workers for job in data.jobs]
    arrival = np.array([job.arrival for job in data.jobs], dtype=np.int64)

    def policy(state: State) -> dict[int, Ints]:
        free = data.machine_capacity.copy()
        active = np.array(state.active, dtype=np.int64)
        order = active[np.lexsort((active, arrival[active], state.attained[active] >= passing))]
        grids: dict[int, Ints] = {}
        room = int(free.sum(axis=0).max())
        for j in order.tolist():
            if workers[j] > room:
                continue
            held = state.held.get(j)
            grid = held if held is not None and (held <= free).all() else None
            for kind in range(len(data.types) if grid is None else 0):
                grid = one_type(data, j, free, kind)
                if grid is not None:
                    break
            if grid is not None:
                grids[j] = grid
                free -= grid
                room = int(free.sum(axis=0).max())
                if room == 0:
                    break
        return grids

    def steady(state: State, grids: dict[int, Ints], most: int) -> int:
        """The order of the queues stays until a running job passes the threshold."""
        for j in grids:
            before = int(state.attained[j])
            if before - workers[j] < passing:
                most = min(most, max(0, -((before - passing) // workers[j])))
        return most

    return policy, steady


def yarn_cs(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    backfill: Annotated[bool, Field(description="jobs behind one that does not fit may start")] = False,
    restart_delay: RestartDelay = 0.0,  # time lost in a job's first round
) -> HeuristicRun:
    """First in, first out, never preempted: a job keeps its devices until it is done.

    A gang takes the first free devices it can use, whatever their types, in the order of machines. A job that
    does not fit yet blocks those behind it, unless `backfill`.

    Notes
    -----
    O(J R H) a round. Source: paper 002, section IV.
    """
    del seed
    refuse_long_delay("yarn-cs", instance, restart_delay)
    data = tables(instance)

    waiting: list[tuple[int, int]] = []

    def policy(state: State) -> dict[int, Ints]:
        grids = dict(state.held)
        free = data.machine_capacity - state.used
        for j in state.arrived:
            insort(waiting, (data.jobs[j].arrival, j))
        passed = 0
        while passed < len(waiting) and (room := int(free.sum())) > 0:
            j = waiting[passed][1]
            job = data.jobs[j]
            grid = take_any(free, job.type_step > 0, job.workers) if job.workers <= room else None
            if grid is not None and grid.any():
                grids[j] = grid
                free -= grid
                del waiting[passed]
            elif backfill:
                passed += 1
            else:
                break
        return grids

    return run_of(instance, simulate(instance, policy, restart_delay, deadline, steady=always))


def srpt(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    restart_delay: RestartDelay = 0.0,  # time lost when a job's devices change
) -> HeuristicRun:
    """Shortest remaining processing time first, preemptive, decided when jobs arrive or end.

    Jobs in order of the rounds they still need on their fastest type; each takes the fastest type that has room for
    its gang, and keeps its devices where they are of that type and nobody before it took them.

    Notes
    -----
    O(J log J + J R H) a decision, at most 2 J decisions. It knows the work of the jobs, as clairvoyant policies do.
    """
    del seed
    refuse_long_delay("srpt", instance, restart_delay)
    policy = shortest_remaining(tables(instance))
    return run_of(instance, simulate(instance, policy, restart_delay, deadline, steady=always))


def shortest_remaining(data: ProgressTables) -> Policy:
    """The decisions of :func:`srpt`."""
    workers = [job.workers for job in data.jobs]
    fastest = np.array([max(1, int(job.type_step.max(initial=0))) for job in data.jobs], dtype=np.float64)
    kinds = [np.argsort(-job.type_step, kind="stable").tolist() for job in data.jobs]

    def policy(state: State) -> dict[int, Ints]:
        free = data.machine_capacity.copy()
        active = np.array(state.active, dtype=np.int64)
        order = active[np.argsort(state.missing[active] / fastest[active], kind="stable")]
        grids: dict[int, Ints] = {}
        room = free.sum(axis=0)
        for j in order.tolist():
            if workers[j] > room.max():
                continue
            kind = next((r for r in kinds[j] if data.jobs[j].type_step[r] > 0 and room[r] >= workers[j]), None)
            if kind is None:
                continue
            held = state.held.get(j)
            stays = held is not None and held[:, kind].sum() == workers[j] and bool((held <= free).all())
            grid = held if stays else one_type(data, j, free, kind)
            if grid is not None:
                grids[j] = grid
                free -= grid
                room[kind] -= workers[j]
        return grids

    return policy
