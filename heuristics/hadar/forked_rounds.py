"""HadarE's rounds: copies of jobs on nodes, steps split by speed, and the cluster resource utilisation (CRU)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.heuristics.hadar.simulate import MOST_ENTRIES, short_of_time
from schedgap.solvers.result import NO_DEADLINE, Deadline

DONE = 1e-12
"""Part of a job's work that counts as none."""


@dataclass
class Forked:
    """A forked schedule."""

    # by slot, the job and the steps of every node that runs a copy
    rounds: dict[int, dict[int, tuple[int, float]]] = field(default_factory=dict)
    finish: dict[int, int] = field(default_factory=dict)  # last slot of every job that is done
    busy: list[float] = field(default_factory=list)  # per slot, node-time in slots
    stopped: str | None = None  # "time limit" or "too large" where the run ended before the jobs or the horizon did

    def utilisation(self, nodes: int) -> float:
        """CRU: busy node-time over nodes times rounds (paper 002, section V-C)."""
        return float(sum(self.busy) / (nodes * len(self.busy))) if self.busy else 0.0


Choose = Callable[[int, Sequence[int], Floats, Floats], Mapping[int, Sequence[int]]]
"""The nodes that each job gets a copy on in a round: ``choose(slot, jobs, left, believed)``."""


Order = Callable[[int, Sequence[int], Floats], Sequence[int]]
"""The order in which jobs pick nodes in a round: ``order(slot, jobs, left)``."""


def fork(
    work: Floats,  # (J,) steps
    speed: Floats,  # (J, H) true steps per slot
    guess: Callable[[], Floats],  # gives the speeds believed in, (J, H); 0 where a node cannot run the job
    copies: int,  # x, copies of each job
    # horizon, arrival: slots
    horizon: int,
    arrival: Sequence[int],
    order: Order,  # see :data:`Order`
    observed: Callable[[int, int], None] | None = None,  # called with (job, node) that ran
    deadline: Deadline = NO_DEADLINE,  # looked at before every round
    choose: Choose | None = None,  # which nodes a job's copies get, instead of that rule
    # restart, overhead: parts of a slot that a node loses in a round in which its job is new to it, and in every round
    # in which it runs; it makes no steps meanwhile and does not count as busy
    restart: float = 0.0,
    overhead: float = 0.0,
) -> Forked:
    """Run copies of jobs on nodes until everything is done or the horizon ends.

    In a round every job's first copy picks the node it believes fastest among those free, in the given order, then
    the second copies, up to `copies`. The steps a job has left are split over its scheduled copies in proportion
    to the speeds it believes in; a node does at most what its true speed allows, and the sums are settled at the
    round's end.

    Notes
    -----
    O(T J copies H).
    """
    remaining = work.astype(float).copy()
    result = Forked()
    nodes = speed.shape[1]
    entries = 0
    before: dict[int, int] = {}
    waiting = np.flatnonzero(speed.any(axis=1) & (work > 0)).tolist()  # not done, by number
    for slot in range(1, horizon + 1):
        if not waiting:
            break
        if short_of_time(deadline, entries):
            result.stopped = "time limit"
            break
        if entries > MOST_ENTRIES:
            result.stopped = "too large"
            break
        active = [j for j in waiting if arrival[j] <= slot]
        believed = guess()
        if choose is None:
            assigned: Mapping[int, Sequence[int]] = _in_turn(
                order(slot, active, remaining), speed, believed, min(copies, nodes)
            )
        else:
            assigned = choose(slot, active, remaining, believed)
        round_busy = 0.0
        running: dict[int, tuple[int, float]] = {}
        for j, chosen in assigned.items():
            useful = {h: 1.0 - overhead - (restart if before.get(h) != j else 0.0) for h in chosen}
            total = float(sum(believed[j, h] * useful[h] for h in chosen))
            missing = remaining[j]
            for h in chosen:
                share = float(believed[j, h]) * useful[h] / total
                steps = min(missing * share, float(speed[j, h]) * useful[h])
                running[h] = (j, steps)
                round_busy += steps / float(speed[j, h])
                remaining[j] -= steps
                if observed is not None:
                    observed(j, h)
            if remaining[j] <= DONE * work[j]:
                remaining[j] = 0.0
                result.finish[j] = slot
                waiting.remove(j)
        entries += max(1, len(running))
        before = {h: j for h, (j, _) in running.items()}
        result.rounds[slot] = running
        result.busy.append(round_busy)
    return result


def _in_turn(ranked: Sequence[int], speed: Floats, believed: Floats, copies: int) -> dict[int, list[int]]:
    """First copies of all jobs in this order, then second ones, each on the node it believes fastest of those free."""
    assigned: dict[int, list[int]] = {}
    free = np.ones(speed.shape[1], dtype=bool)
    able = speed > 0
    for _ in range(copies):
        if not free.any():
            break
        for j in ranked:
            node = int(np.where(able[j] & free, believed[j], -np.inf).argmax())
            if able[j, node] and free[node]:
                assigned.setdefault(j, []).append(node)
                free[node] = False
    return assigned


def input_order(_: int, jobs: Sequence[int], __: Floats) -> Sequence[int]:
    """Jobs in the order of the input, as in Theorem 3's example."""
    return jobs


def utilisation_by_copies(work: Floats, speed: Floats, most: int) -> list[float]:
    """CRU^x for x = 1..most copies of every job, all jobs present, input order, run to the end."""
    slowest = float(np.where(speed > 0, speed, np.inf).min())
    horizon = int(np.ceil(float(work.sum()) / slowest)) + len(work)
    return [
        fork(work, speed, lambda: speed, copies, horizon, [1] * len(work), input_order).utilisation(speed.shape[1])
        for copies in range(1, most + 1)
    ]
