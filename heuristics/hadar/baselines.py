"""Tiresias and YARN-CS, as paper 002 sets them up for comparison (section IV)."""

from __future__ import annotations

from collections import deque
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import Tables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.cluster import take_any, take_type
from schedgap.heuristics.hadar.simulate import RestartDelay, State, refuse_long_delay, run_of, simulate
from schedgap.solvers.result import NO_DEADLINE, Deadline

Ints = NDArray[np.int64]


def one_type(data: Tables, j: int, free: Ints, kind: int) -> Ints | None:
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
    data = tables(instance)

    def policy(state: State) -> dict[int, Ints]:
        free = data.machine_capacity.copy()
        order = sorted(state.active, key=lambda j: (state.attained[j] >= threshold, data.jobs[j].arrival, j))
        grids: dict[int, Ints] = {}
        for j in order:
            held = state.held.get(j)
            if held is not None and (held <= free).all():
                grids[j] = held
                free -= held
                continue
            for kind in range(len(data.types)):
                grid = one_type(data, j, free, kind)
                if grid is not None:
                    grids[j] = grid
                    free -= grid
                    break
        return grids

    return run_of(instance, simulate(instance, policy, restart_delay, deadline))


def yarn_cs(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    backfill: Annotated[bool, Field(description="jobs behind one that does not fit may start")] = False,
    restart_delay: RestartDelay = 0.0,
) -> HeuristicRun:
    """First in, first out, never preempted: a job keeps its devices until it is done.

    A gang takes the first free devices it can use, whatever their types, in the order of machines. A job that
    does not fit yet blocks those behind it, unless `backfill`.

    Parameters
    ----------
    backfill : jobs behind one that does not fit may start
    restart_delay : time lost in a job's first round

    Notes
    -----
    O(J R H) a round. Source: paper 002, section IV.
    """
    del seed
    refuse_long_delay("yarn-cs", instance, restart_delay)
    data = tables(instance)

    def policy(state: State) -> dict[int, Ints]:
        grids = {j: state.held[j] for j in state.active if j in state.held}
        free = data.machine_capacity - sum(grids.values(), np.zeros_like(data.machine_capacity))
        waiting = deque(sorted((j for j in state.active if j not in grids), key=lambda j: (data.jobs[j].arrival, j)))
        while waiting:
            j = waiting.popleft()
            job = data.jobs[j]
            grid = take_any(free, job.type_step > 0, job.workers)
            if grid.any():
                grids[j] = grid
                free -= grid
            elif not backfill:
                break
        return grids

    return run_of(instance, simulate(instance, policy, restart_delay, deadline))
