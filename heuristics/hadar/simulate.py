"""The clock of the round-based algorithms: who has arrived, who is done, what a round achieves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.metrics import metrics
from schedgap.formulations.hadar.placement import entries_of
from schedgap.formulations.hadar.tables import FINEST, Tables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.cluster import bottleneck
from schedgap.solvers.result import NO_DEADLINE, Deadline

Ints = NDArray[np.int64]
RestartDelay: TypeAlias = Annotated[
    float, Field(ge=0, le=1e9, description="time lost when a job's devices change (unit of slot_length)")
]
Overhead: TypeAlias = Annotated[
    float, Field(ge=0, le=1e9, description="time lost in every round in which something runs (unit of slot_length)")
]

MOST_ENTRIES = 2_000_000
MOST_BYTES = 1 << 30
"""Most (job, slot) pairs of a schedule, and most bytes of its device grids; a run that needs more is stopped."""

SECONDS_PER_ENTRY = 1e-4
"""What a (job, slot) pair costs after the last round: the solution object, metrics and the checker, twice in rationals.
30 to 90 microseconds measured."""


def short_of_time(deadline: Deadline, entries: int) -> bool:
    """Whether it is time to stop, so that a schedule with so many (job, slot) pairs can still be written and scored."""
    left = deadline.left()
    return left is not None and left <= entries * SECONDS_PER_ENTRY


@dataclass
class State:
    """What an algorithm knows at the start of a round.

    Attributes
    ----------
    slot : the round
    active : jobs that have arrived and are not done, in input order
    left : (J,) units of progress still missing
    finer : by how much these units are finer than those of the tables
    held : devices (H, R) of each job in the round before
    attained : (J,) device-rounds received so far
    changed : whether jobs arrived or finished since the round before
    """

    slot: int
    active: list[int]
    left: Ints
    finer: int
    held: dict[int, Ints]
    attained: Ints
    changed: bool = True


Policy = Callable[[State], dict[int, Ints]]
"""Devices (H, R) of every job that runs in this round; they have to fit, and every gang is whole."""


@dataclass
class Simulated:
    """What came out of a run.

    Attributes
    ----------
    grids : devices by slot and job
    finish : last slot of every job that is done
    rounds : the last round looked at
    changes : how often a job was moved
    stopped : why the run ended before the jobs or the horizon did: "time limit" or "too large"; None where not
    """

    grids: dict[int, dict[int, Ints]] = field(default_factory=dict)
    finish: dict[int, int] = field(default_factory=dict)
    rounds: int = 0
    changes: int = 0
    stopped: str | None = None


def refuse_long_delay(method: str, instance: HadarInstance, delay: float) -> None:
    """A job that loses a whole slot or more at every move is none that the rounds can describe.

    Raises
    ------
    InputError
        ``delay >= slot_length``.
    """
    if delay >= instance.slot_length:
        raise InputError(
            f"{method}: restart_delay: must be less than slot_length ({instance.slot_length:g}), got {delay:g}"
        )


def simulate(
    instance: HadarInstance,
    policy: Policy,
    delay: float = 0.0,
    deadline: Deadline = NO_DEADLINE,
    *,
    overhead: float = 0.0,
    may_wait: bool = False,
) -> Simulated:
    """Run a policy round by round until all jobs are done or the horizon ends.

    Parameters
    ----------
    policy : what decides
    delay : time (same unit as ``slot_length``) that a job loses in a round in which its devices are new to it
    deadline : looked at before every round, with the time that writing and scoring takes left; the rounds until
        then are kept
    overhead : time that a job loses in every round in which it runs
    may_wait : the policy can leave all devices free and start a job in a later round although no job arrived
        in between; where it cannot, such rounds are passed over

    Notes
    -----
    Progress is counted in the whole units of :mod:`schedgap.formulations.hadar.tables`; a delay rounds it down.
    """
    data = tables(instance)
    count = len(data.jobs)
    same = 1.0 - overhead / instance.slot_length
    fresh = same - delay / instance.slot_length
    # a delay takes a part of a slot's units away: finer units keep the rounding small
    finer = 1 if delay == overhead == 0 else max(1, min(10**6, FINEST // max(job.target for job in data.jobs)))
    left = np.array([job.target * finer for job in data.jobs], dtype=np.int64)
    arrival = np.array([job.arrival for job in data.jobs])
    state = State(0, [], left, finer, {}, np.zeros(count, dtype=np.int64))
    result = Simulated()
    # a job that no set of devices of this cluster can run is never considered
    able = np.array([job.levels > 0 for job in data.jobs], dtype=bool)
    fastest = np.array([max(1, int(job.type_step.max(initial=0))) * finer for job in data.jobs], dtype=np.int64)
    entries = size = 0
    slot = 0
    while slot < data.horizon and (able & (left > 0)).any():
        slot += 1
        if short_of_time(deadline, entries):
            result.stopped = "time limit"
            break
        if entries > MOST_ENTRIES or size > MOST_BYTES:
            result.stopped = "too large"
            break
        state.slot = slot
        active = [int(j) for j in np.flatnonzero((arrival <= slot) & (left > 0) & able)]
        state.changed = active != state.active
        state.active = active
        grids = policy(state) if active else {}
        for j, grid in grids.items():
            entries += 1
            size += 0 if state.held.get(j) is grid else grid.nbytes
            step = finer * int(bottleneck(grid, data.jobs[j].type_step))
            moved = j not in state.held or not np.array_equal(state.held[j], grid)
            result.changes += int(moved)
            useful = fresh if moved else same
            gained = int(step * useful) if useful < 1 else step
            left[j] -= min(gained, int(left[j]))
            state.attained[j] += data.jobs[j].workers
            if left[j] == 0:
                result.finish[j] = slot
        result.grids[slot] = grids
        result.rounds = slot
        state.held = grids
        late = left[active] > (data.horizon - slot) * fastest[active].astype(float)
        if not grids and (not may_wait or late.all()):
            # nothing changes before the next arrival
            slot = int(arrival[able & (arrival > slot)].min(initial=data.horizon + 1)) - 1
    return result


def run_of(instance: HadarInstance, simulated: Simulated, **facts: object) -> HeuristicRun:
    """The run of a simulated schedule with its metrics; no solution where it was cut or not all that must end do."""
    data = tables(instance)
    solution = solution_of(instance, data, simulated.grids)
    info: dict[str, object] = {**facts, "rounds": simulated.rounds, "changes": simulated.changes}
    done = f"{len(simulated.finish)} of {len(data.jobs)} jobs had finished"
    if simulated.stopped is not None:
        reason = f"cut in slot {simulated.rounds} of {data.horizon} ({simulated.stopped}), {done}"
        return HeuristicRun(None, {**info, "stopped": simulated.stopped, "reason": reason}, partial=solution)
    info.update(metrics(instance, solution))
    if instance.all_jobs_must_finish and len(simulated.finish) < len(data.jobs):
        missing = len(data.jobs) - len(simulated.finish)
        return HeuristicRun(None, {**info, "reason": f"{missing} jobs do not finish by the horizon"})
    return HeuristicRun(solution, info)


def solution_of(instance: HadarInstance, data: Tables, grids: dict[int, dict[int, Ints]]) -> Solution:
    """The solution object of devices (H, R) by slot and job."""
    allocation: dict[str, dict[str, list[dict[str, object]]]] = {}
    for slot in sorted(grids):
        for j, grid in sorted(grids[slot].items()):
            allocation.setdefault(instance.jobs[j].id, {})[str(slot)] = entries_of(instance, data, grid)
    return {"allocation": allocation}
