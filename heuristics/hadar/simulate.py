"""The clock of the round-based algorithms: who has arrived, who is done, what a round achieves."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.metrics import metrics
from schedgap.formulations.hadar.placement import entries_of
from schedgap.formulations.hadar.tables import FINEST, ProgressTables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.round_devices import bottleneck
from schedgap.solvers.result import NO_DEADLINE, Deadline

Entries = list[dict[str, object]]
"""The devices of a run, as the solution object has them."""


RestartDelay: TypeAlias = Annotated[
    float, Field(ge=0, le=1e9, description="time lost when a job's devices change (unit of slot_length)")
]


Overhead: TypeAlias = Annotated[
    float, Field(ge=0, le=1e9, description="time lost in every round in which something runs (unit of slot_length)")
]


MOST_ENTRIES = 2_000_000
"""Most runs of a schedule; a simulation that needs more is stopped."""


SECONDS_PER_ENTRY = 1e-4
"""What a run costs after the last round: the solution object, metrics and the checker, twice in rationals.
30 to 90 microseconds measured."""


def short_of_time(deadline: Deadline, entries: int) -> bool:
    """Whether it is time to stop, so that a schedule of so many runs can still be written and scored."""
    remaining = deadline.remaining()
    return remaining is not None and remaining <= entries * SECONDS_PER_ENTRY


@dataclass
class State:
    """What an algorithm knows at the start of a round."""

    slot: int  # the round
    active: list[int]  # jobs that have arrived and are not done, in input order
    missing: Ints  # (J,) units of progress still missing
    finer: int  # factor by which these units are finer than those of the tables
    held: dict[int, Ints]  # devices (H, R) of each active job in the round before
    used: Ints  # (H, R) their sum
    attained: Ints  # (J,) device-rounds received so far
    arrived: list[int] = field(default_factory=list)  # positions of jobs that arrived since the last decision
    changed: bool = True  # whether jobs arrived or finished since the last decision


Policy = Callable[[State], dict[int, Ints]]
"""Devices (H, R) of every job that runs in this round; they have to fit, and every gang is whole."""


Steady = Callable[[State, dict[int, Ints], int], int]
"""In how many rounds after this one a policy would decide the same, at most so many, if nobody arrives or ends."""


def always(state: State, grids: dict[int, Ints], most: int) -> int:
    """The `Steady` of a policy that changes its mind only when jobs arrive or end."""
    return most


def never(state: State, grids: dict[int, Ints], most: int) -> int:
    """The `Steady` of a policy whose decisions depend on the slot."""
    return 0


@dataclass
class Simulated:
    """What came out of a simulation."""

    # by job, its runs: first slot, last slot, devices
    runs: dict[int, list[tuple[int, int, Entries]]] = field(default_factory=dict)
    finish: dict[int, int] = field(default_factory=dict)  # last slot of every job that is done
    rounds: int = 0  # the last round looked at
    changes: int = 0  # how often a job was moved
    decisions: int = 0  # how often the policy was asked
    # why the run ended before the jobs or the horizon did: "time limit" or "too large"; None where not
    stopped: str | None = None

    def hold(self, j: int, first: int, last: int, devices: Entries) -> None:
        """Add a run of a job behind its others; it goes on with the last one where it can."""
        runs = self.runs.setdefault(j, [])
        if runs and runs[-1][1] == first - 1 and runs[-1][2] == devices:
            first = runs.pop()[0]
        runs.append((first, last, devices))


def refuse_long_delay(method: str, instance: HadarInstance, delay: float) -> None:
    """A job that loses a whole slot or more at every move is none that the rounds can describe.

    Raises InputError: ``delay >= slot_length``.
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
    steady: Steady = never,
) -> Simulated:
    """Run a policy until all jobs are done or the horizon ends, from one decision to the next.

    Parameters
    ----------
    policy : what decides
    delay : time (same unit as ``slot_length``) that a job loses in a round in which its devices are new to it
    deadline : looked at before every decision, with the time that writing and scoring takes left; the rounds until
        then are kept
    overhead : time that a job loses in every round in which it runs
    may_wait : the policy can leave all devices free and start a job in a later round although no job arrived
        in between; where it cannot, such rounds are passed over
    steady : says which rounds need no decision: they are counted at once, up to the next arrival or end

    Notes
    -----
    Progress is counted in the whole units of :mod:`schedgap.formulations.hadar.tables`; a delay rounds it down. So
    n rounds on the same devices gain n times what one does, and rounds counted at once are those counted one by one.
    """
    clock = _Clock(instance, tables(instance), delay, overhead)
    state, result, horizon = clock.state, clock.result, clock.data.horizon
    slot = 0
    while slot < horizon and clock.unfinished:
        slot += 1
        if short_of_time(deadline, clock.entries):
            result.stopped = "time limit"
            break
        if clock.entries > MOST_ENTRIES:
            result.stopped = "too large"
            break
        clock.arrive(slot)
        grids = policy(state) if state.active else {}
        result.decisions += 1
        clock.first_round(grids)
        if grids:
            slot += clock.repeat(min(horizon, clock.next_arrival - 1) - slot, steady)
        result.rounds = slot
        if not grids and (not may_wait or clock.all_late(slot)):
            # nothing changes before the next arrival
            slot = min(clock.next_arrival, horizon + 1) - 1
    clock.release(list(state.held), result.rounds)
    return result


class _Clock:
    """The state between decisions: arrivals, progress, and the runs so far."""

    def __init__(self, instance: HadarInstance, data: ProgressTables, delay: float, overhead: float) -> None:
        self.instance, self.data = instance, data
        count = len(data.jobs)
        self.same = 1.0 - overhead / instance.slot_length
        self.fresh = self.same - delay / instance.slot_length
        # a delay takes a part of a slot's units away: finer units keep the rounding small
        finer = 1 if delay == overhead == 0 else max(1, min(10**6, FINEST // max(job.target for job in data.jobs)))
        remaining = np.array([job.target * finer for job in data.jobs], dtype=np.int64)
        used = np.zeros_like(data.machine_capacity)
        self.state = State(0, [], remaining, finer, {}, used, np.zeros(count, dtype=np.int64))
        self.result = Simulated()
        # a job that no set of devices of this cluster can run is never considered
        able = [j for j, job in enumerate(data.jobs) if job.levels > 0]
        self.coming = deque(sorted(able, key=lambda j: data.jobs[j].arrival))
        self.unfinished = len(able)
        self.workers = data.workers
        self.pace = np.zeros(count, dtype=np.int64)
        self.running: Ints = np.zeros(0, dtype=np.int64)
        self.since: dict[int, int] = {}
        self.known: dict[tuple[bytes, bytes], Entries] = {}
        self.entries = 0

    @property
    def next_arrival(self) -> int:
        """The slot in which the next job arrives; beyond the horizon where none does."""
        return self.data.jobs[self.coming[0]].arrival if self.coming else self.data.horizon + 1

    def arrive(self, slot: int) -> None:
        """Go to a slot in which a decision is due."""
        state = self.state
        state.slot, state.arrived = slot, []
        while self.next_arrival <= min(slot, self.data.horizon):
            state.arrived.append(self.coming.popleft())
        for j in state.arrived:
            insort(state.active, j)
        state.changed = state.changed or bool(state.arrived)

    def release(self, jobs: list[int], last: int) -> None:
        """These jobs give their devices back after a slot."""
        for j in jobs:
            grid = self.state.held.pop(j)
            self.state.used -= grid
            self.result.hold(j, self.since.pop(j), last, self._entries(grid))

    def _entries(self, grid: Ints) -> Entries:
        """The entries of these devices, made once: a trace has a million runs on the same thousand sets of devices."""
        flat = grid.ravel()
        held = flat.nonzero()[0]
        key = held.tobytes(), flat[held].tobytes()
        if key not in self.known:
            self.known[key] = entries_of(self.instance, self.data, grid)
        return self.known[key]

    def first_round(self, grids: dict[int, Ints]) -> None:
        """One round on the devices that were decided, some of them new to their jobs."""
        state, held = self.state, self.state.held
        state.changed = False
        moved = [
            j for j, grid in grids.items() if held.get(j) is not grid and not (j in held and (held[j] == grid).all())
        ]
        self.release([j for j in held if j not in grids] + [j for j in moved if j in held], state.slot - 1)
        for j in moved:
            step = state.finer * int(bottleneck(grids[j], self.data.jobs[j].type_step))
            self.pace[j] = int(step * self.fresh) if self.fresh < 1 else step
            held[j], self.since[j] = grids[j], state.slot
            state.used += grids[j]
        self.entries += len(moved)
        self.result.changes += len(moved)
        self.running = np.fromiter(held, dtype=np.int64, count=len(held))
        self._count(1)
        if self.fresh < self.same:
            for j in moved:
                if j in held:
                    step = state.finer * int(bottleneck(held[j], self.data.jobs[j].type_step))
                    self.pace[j] = int(step * self.same) if self.same < 1 else step

    def repeat(self, most: int, steady: Steady) -> int:
        """Count the rounds after this one that need no decision; how many they are."""
        if self.state.changed or most <= 0:
            return 0
        pace = self.pace[self.running]
        work = -(-self.state.missing[self.running] // np.maximum(pace, 1))
        rounds = min(most, int(work[pace > 0].min(initial=most)))
        rounds = steady(self.state, self.state.held, rounds)
        if rounds > 0:
            self.state.slot += rounds
            self._count(rounds)
        return rounds

    def _count(self, rounds: int) -> None:
        """So many rounds on the same devices; those who are done in the last of them leave."""
        state, running = self.state, self.running
        state.missing[running] -= np.minimum(self.pace[running] * rounds, state.missing[running])
        state.attained[running] += self.workers[running] * rounds
        done = running[state.missing[running] == 0].tolist()
        for j in done:
            self.result.finish[j] = state.slot
            del state.active[bisect_left(state.active, j)]
        self.release(done, state.slot)
        self.unfinished -= len(done)
        state.changed = state.changed or bool(done)

    def all_late(self, slot: int) -> bool:
        """Whether no active job can finish any more, not even on its fastest devices."""
        rounds = float(self.data.horizon - slot)
        paces = (max(1, int(self.data.jobs[j].type_step.max(initial=0))) * self.state.finer for j in self.state.active)
        return all(self.state.missing[j] > rounds * pace for j, pace in zip(self.state.active, paces, strict=True))


def run_of(instance: HadarInstance, simulated: Simulated, **facts: object) -> HeuristicRun:
    """The run of a simulated schedule with its metrics; no solution where it was cut or not all that must end do."""
    data = tables(instance)
    solution = solution_of(instance, simulated)
    info: dict[str, object] = {**facts, "rounds": simulated.rounds, "changes": simulated.changes}
    info["decisions"] = simulated.decisions
    done = f"{len(simulated.finish)} of {len(data.jobs)} jobs had finished"
    if simulated.stopped is not None:
        reason = f"cut in slot {simulated.rounds} of {data.horizon} ({simulated.stopped}), {done}"
        return HeuristicRun(None, {**info, "stopped": simulated.stopped, "reason": reason}, partial=solution)
    info.update(metrics(instance, solution))
    if instance.all_jobs_must_finish and len(simulated.finish) < len(data.jobs):
        missing = len(data.jobs) - len(simulated.finish)
        return HeuristicRun(None, {**info, "reason": f"{missing} jobs do not finish by the horizon"})
    return HeuristicRun(solution, info)


def solution_of(instance: HadarInstance, simulated: Simulated) -> Solution:
    """The solution object of a simulation: the runs of each job."""
    return {
        "allocation": {instance.jobs[j].id: [list(run) for run in runs] for j, runs in sorted(simulated.runs.items())}
    }
