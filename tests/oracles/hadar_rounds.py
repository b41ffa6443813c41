"""Hadar's round-based policies in their plain form: every round is decided and counted, one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import FINEST, ProgressTables, tables
from schedgap.heuristics.hadar.baselines import one_type
from schedgap.heuristics.hadar.gavel import time_fractions
from schedgap.heuristics.hadar.round_devices import bottleneck, take_any

Ints = NDArray[np.int64]


@dataclass
class State:
    """What an algorithm knows at the start of a round.

    Attributes
    ----------
    slot : the round
    active : jobs that have arrived and are not done, in input order
    missing : (J,) units of progress that are missing
    finer : by how much these units are finer than those of the tables
    held : devices (H, R) of each job in the round before
    attained : (J,) device-rounds received so far
    changed : whether jobs arrived or finished since the round before
    """

    slot: int
    active: list[int]
    missing: Ints
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
    """

    grids: dict[int, dict[int, Ints]] = field(default_factory=dict)
    finish: dict[int, int] = field(default_factory=dict)
    rounds: int = 0
    changes: int = 0


def simulate(
    instance: HadarInstance,
    policy: Policy,
    delay: float = 0.0,
    *,
    overhead: float = 0.0,
    may_wait: bool = False,
) -> Simulated:
    """Run a policy round by round until all jobs are done or the horizon ends.

    Parameters
    ----------
    policy : what decides
    delay : time (same unit as ``slot_length``) that a job loses in a round in which its devices are new to it
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
    missing = np.array([job.target * finer for job in data.jobs], dtype=np.int64)
    arrival = np.array([job.arrival for job in data.jobs])
    state = State(0, [], missing, finer, {}, np.zeros(count, dtype=np.int64))
    result = Simulated()
    # a job that no set of devices of this cluster can run is never considered
    able = np.array([job.levels > 0 for job in data.jobs], dtype=bool)
    fastest = np.array([max(1, int(job.type_step.max(initial=0))) * finer for job in data.jobs], dtype=np.int64)
    slot = 0
    while slot < data.horizon and (able & (missing > 0)).any():
        slot += 1
        state.slot = slot
        active = [int(j) for j in np.flatnonzero((arrival <= slot) & (missing > 0) & able)]
        state.changed = active != state.active
        state.active = active
        grids = policy(state) if active else {}
        for j, grid in grids.items():
            step = finer * int(bottleneck(grid, data.jobs[j].type_step))
            moved = j not in state.held or not np.array_equal(state.held[j], grid)
            result.changes += int(moved)
            useful = fresh if moved else same
            gained = int(step * useful) if useful < 1 else step
            missing[j] -= min(gained, int(missing[j]))
            state.attained[j] += data.jobs[j].workers
            if missing[j] == 0:
                result.finish[j] = slot
        result.grids[slot] = grids
        result.rounds = slot
        state.held = grids
        late = missing[active] > (data.horizon - slot) * fastest[active].astype(float)
        if not grids and (not may_wait or late.all()):
            # nothing changes before the next arrival
            slot = int(arrival[able & (arrival > slot)].min(initial=data.horizon + 1)) - 1
    return result


def tiresias(instance: HadarInstance, threshold: float) -> Policy:
    """Two-queue least attained service."""
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

    return policy


def yarn_cs(instance: HadarInstance, backfill: bool) -> Policy:
    """First in, first out, never preempted."""
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

    return policy


class Rounds:
    """Gavel's round-based mechanism for given fractions, entry by entry.

    Entries (job, type) with Y > 0 are served by priority Y / rounds received there (infinite at none), ties by job
    and then by the larger Y; a job runs on the first type that has room for its whole gang.
    """

    def __init__(self, data: ProgressTables) -> None:
        self.data = data
        self.received: dict[tuple[int, int], int] = {}
        self.fractions: dict[tuple[int, int], float] = {}

    def set(self, fractions: Mapping[tuple[int, int], float]) -> None:
        """New fractions; rounds received are counted from here on."""
        self.fractions = {key: y for key, y in fractions.items() if y > 0}
        self.received = {}

    def serve(self, state: State) -> dict[int, Ints]:
        """The devices of this round."""
        active = set(state.active)
        entries = [key for key in self.fractions if key[0] in active]

        def rank(key: tuple[int, int]) -> tuple[float, int, float]:
            rounds = self.received.get(key, 0)
            y = self.fractions[key]
            return (-(y / rounds) if rounds else -float("inf"), key[0], -y)

        free = self.data.machine_capacity.copy()
        grids: dict[int, Ints] = {}
        for j, kind in sorted(entries, key=rank):
            if j in grids:
                continue
            held = state.held.get(j)
            stays = held is not None and held[:, kind].sum() == held.sum() and bool((held <= free).all())
            grid = held if stays else one_type(self.data, j, free, kind)
            if grid is not None:
                grids[j] = grid
                free -= grid
                self.received[j, kind] = self.received.get((j, kind), 0) + 1
        return grids


def gavel(instance: HadarInstance, objective: str, by_class: bool = False) -> Policy:
    """Fractions anew at every change of the job set, rounds by priority."""
    data = tables(instance)
    rounds = Rounds(data)

    def decide(state: State) -> dict[int, Ints]:
        if state.changed:
            jobs = np.array(state.active, dtype=np.int64)
            fractions, _ = time_fractions(data, jobs, state.missing / state.finer, objective, by_class)
            rounds.set(
                {(int(j), r): float(fractions[i, r]) for i, j in enumerate(jobs) for r in range(len(data.types))}
            )
        return rounds.serve(state)

    return decide


def shares(data: ProgressTables, jobs: Ints) -> NDArray[np.float64]:
    """(n, R) what a job gets of a type in a slot, in units of its equal share; 0 where it has no room."""
    rows = np.zeros((len(jobs), len(data.types)))
    for i, j in enumerate(jobs):
        job = data.jobs[int(j)]
        useful = np.where(job.workers <= data.capacity, job.type_step, 0) / float(job.target)
        if useful.any():
            rows[i] = useful * job.workers * data.capacity.sum() / (useful * data.capacity).sum()
    return rows


def most_of_max_min(data: ProgressTables, jobs: Ints) -> tuple[float, float]:
    """The largest least ratio of the jobs, by a program with columns of each, and the largest sum of ratios then."""
    ratio = shares(data, jobs)
    able = np.flatnonzero(ratio.any(axis=1))
    n, kinds = len(jobs), len(data.types)
    if not len(able):
        return 0.0, 0.0
    own = np.zeros((n, n * kinds))
    least = np.zeros((n, n * kinds))
    devices = np.zeros((kinds, n * kinds))
    for i, j in enumerate(jobs):
        own[i, i * kinds : (i + 1) * kinds] = 1.0
        least[i, i * kinds : (i + 1) * kinds] = ratio[i]
        devices[:, i * kinds : (i + 1) * kinds] = np.eye(kinds) * data.jobs[int(j)].workers
    room = np.concatenate((np.ones(n), data.capacity))
    held = np.vstack((own, devices))
    boxes = [(0.0, float(r > 0)) for r in ratio.ravel()]
    above = np.column_stack((np.vstack((held, -least[able])), np.append(np.zeros(n + kinds), np.ones(len(able)))))
    first = linprog(
        np.append(np.zeros(n * kinds), -1.0), above, np.append(room, np.zeros(len(able))), bounds=[*boxes, (0, None)]
    )
    value = float(first.x[-1])
    second = linprog(
        -ratio.ravel(),
        np.vstack((held, -least[able])),
        np.append(room, np.full(len(able), -value * (1 - 1e-9))),
        bounds=boxes,
    )
    return value, -float(second.fun)
