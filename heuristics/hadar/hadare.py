"""Method ``hadare``: every job forked into copies on separate nodes (paper 002, section V). Outside the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.hadar.check import check_forked
from schedgap.formulations.hadar.instance import ForkedSolution, HadarInstance, node_speeds
from schedgap.formulations.hadar.tables import tables, worth_of
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.simulate import MOST_ENTRIES, Overhead, RestartDelay, refuse_long_delay, short_of_time
from schedgap.solvers.exact.hadar.bound import forked_bound
from schedgap.solvers.result import NO_DEADLINE, Deadline

# HadarE's rounds: copies of jobs on nodes, steps split by speed, and the cluster resource utilisation (CRU).

Floats = NDArray[np.float64]

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


# The throughput estimate of paper 002, eq. (10), and how observations refine it.


@dataclass(frozen=True)
class Device:
    """Public data-sheet numbers of a device: peak tensor (or half precision) teraflops, GB of memory, PCIe version."""

    teraflops: float
    memory: float
    pcie: int

    @property
    def index(self) -> float:
        """PMI, the performance-memory index: the root of teraflops over memory."""
        return math.sqrt(self.teraflops / self.memory)


DEVICES: Mapping[str, Device] = {
    "V100": Device(125.0, 16.0, 3),
    "P100": Device(18.7, 16.0, 3),
    "K80": Device(4.1, 12.0, 3),
    "T4": Device(65.0, 16.0, 3),
    "T400": Device(2.2, 4.0, 3),
    "RTX3090": Device(142.0, 24.0, 4),
    "TitanRTX": Device(130.0, 24.0, 3),
    "A2000": Device(63.9, 6.0, 4),
}
"""NVIDIA data sheets; a type that is not here counts like a K80."""


def estimate(device: Device, batch_size: float, model_weight: float, dataset_size: float) -> float:
    """Eq. (10): PMI batch_size pcie_scaling / (model_weight dataset_size), pcie_scaling = version / 3."""
    return device.index * batch_size * (device.pcie / 3.0) / (model_weight * dataset_size)


class Beliefs:
    """What HadarE believes of a job's speed on each node, refined by every round.

    Factors of a job (batch size, model weight, dataset size) are the same on all nodes: they cancel in the split of
    steps and where nodes are only ranked, so the estimate uses 1 for each. With ``scheduler="hadar"`` they do not:
    its payoffs are made of the rounds that the believed steps take, which are far too many before a job has run. A
    node that ran the job is known; the others are scaled by the mean ratio of known to estimated speeds.

    Parameters
    ----------
    speed : (J, H) the true speeds, revealed one by one
    """

    def __init__(self, instance: HadarInstance, speed: Floats) -> None:
        fallback = DEVICES["K80"]
        per_node = [
            max(estimate(DEVICES.get(kind, fallback), 1.0, 1.0, 1.0) for kind in machine.gpus)
            for machine in instance.machines
        ]
        self.speed = speed
        self.initial = np.where(speed > 0, np.array(per_node)[None, :], 0.0)
        self.known = np.zeros(speed.shape, dtype=bool)

    def observe(self, job: int, node: int) -> None:
        """The actual throughput of the node was observed."""
        self.known[job, node] = True

    def current(self) -> Floats:
        """(J, H) the speeds believed in now."""
        believed = self.initial.copy()
        for j in np.flatnonzero(self.known.any(axis=1)):
            seen = self.known[j]
            believed[j] *= float(np.mean(self.speed[j, seen] / self.initial[j, seen]))
            believed[j, seen] = self.speed[j, seen]
        return believed


@once_per_instance
def _own_bound(instance: HadarInstance) -> float:
    """The forked problem's bound, the same for every run on the instance that has no deadline."""
    return forked_bound(instance, node_speeds(instance))


def hadare(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    copies: Annotated[
        int | None, Field(ge=1, le=10**6, description="copies of each job; the number of machines where not given")
    ] = None,
    throughput: Annotated[
        Literal["given", "estimated"], Field(description="the instance's rates, or eq. (10) refined by observation")
    ] = "given",
    scheduler: Annotated[
        Literal["greedy", "hadar"],
        Field(description="first copies of all jobs, then second ones; or copies by Algorithm 2's payoff"),
    ] = "greedy",
    restart_delay: RestartDelay = 0.0,
    overhead: Overhead = 0.0,
) -> HeuristicRun:
    """Fork every job into copies, at most one copy on a node, and split the steps left by speed in every round.

    Jobs pick nodes in the order of their utility density: the utility of finishing with one node's best speed,
    over the rounds that takes.

    Parameters
    ----------
    copies : copies of each job; the number of nodes where not given
    throughput : ``given`` uses the instance's rates; ``estimated`` starts from eq. (10) and updates a node's rate
        when it has run the job
    scheduler : ``greedy`` as above; ``hadar``: a copy competes like a job of one worker, its payoff the utility
        density of its job at that node's speed less the node's least price (eq. (6)), largest first; a job takes no
        further node once its steps fit the round; then free nodes go to copies without a payoff
    restart_delay, overhead : time that a node loses when its job is new to it, and in every round it runs

    Returns
    -------
    HeuristicRun
        A forked schedule (:mod:`schedgap.formulations.hadar.check`) with the forked problem's own bound.
        ``info``: ``utilisation`` (CRU), ``own_ratio`` (bound over objective), jobs finished, JCT, makespan.

    Notes
    -----
    O(T J H copies). Outside the model: no ratio to the optimum of P1 or P2. Source: paper 002, section V.
    """
    del seed
    refuse_long_delay("hadare", instance, restart_delay + overhead)
    data = tables(instance)
    speed = node_speeds(instance)
    per_slot = speed * instance.slot_length
    work = np.array([job.work for job in instance.jobs], dtype=float)
    beliefs = Beliefs(instance, per_slot)
    horizon = instance.horizon
    # copies can finish sooner than the tables of the unforked model know
    worths = [worth_of(job, horizon, exact(instance.slot_length), 0) for job in instance.jobs]

    def density(j: int, slot: int, left: Floats) -> float:
        best = float(per_slot[j].max())
        rounds = max(1, int(np.ceil(left[j] / best - 1e-9)))
        finish = slot + rounds - 1
        if finish > horizon:
            return 0.0
        return worths[j].of(finish) / rounds

    def choose(slot: int, jobs: Sequence[int], left: Floats, believed: Floats) -> dict[int, list[int]]:
        payoff = {}
        for j in jobs:
            for h in np.flatnonzero(per_slot[j] > 0).tolist():
                rounds = max(1, int(np.ceil(left[j] / float(believed[j, h]) - 1e-9)))
                finish = slot + rounds - 1
                payoff[j, h] = worths[j].of(finish) / rounds if finish <= horizon else 0.0
        worth = [value for value in payoff.values() if value > 0]
        price = min(worth, default=0.0) / (4.0 * instance.total_gpus)
        ranked = sorted(payoff, key=lambda pair: (-payoff[pair], pair))
        taken: dict[int, list[int]] = {}
        free = set(range(len(instance.machines)))
        for wanted in (True, False):
            for j, h in ranked:
                own = taken.get(j, [])
                covered = float(sum(believed[j, k] for k in own)) >= left[j]
                if (payoff[j, h] > price) is wanted and h in free and len(own) < limit and not covered:
                    taken.setdefault(j, []).append(h)
                    free.discard(h)
        return taken

    def order(slot: int, jobs: Sequence[int], left: Floats) -> Sequence[int]:
        return sorted(jobs, key=lambda j: (-density(j, slot, left), data.jobs[j].arrival, j))

    arrival = [job.arrival for job in instance.jobs]
    limit = len(instance.machines) if copies is None else copies
    estimated = throughput == "estimated"
    found = fork(
        work,
        per_slot,
        beliefs.current if estimated else lambda: per_slot,
        limit,
        horizon,
        arrival,
        order,
        beliefs.observe if estimated else None,
        deadline,
        choose if scheduler == "hadar" else None,
        restart_delay / instance.slot_length,
        overhead / instance.slot_length,
    )
    solution = {
        "rounds": {
            str(slot): {
                instance.machines[h].id: {"job": instance.jobs[j].id, "steps": steps}
                for h, (j, steps) in sorted(nodes.items())
                if steps > 0
            }
            for slot, nodes in found.rounds.items()
        }
    }
    report = check_forked(instance, ForkedSolution.parse(solution))
    objective = float(report.objective or 0)
    bound = _own_bound(instance) if deadline.moment is None else forked_bound(instance, speed, deadline=deadline)
    times = [(slot - arrival[j] + 1) * instance.slot_length for j, slot in found.finish.items()]
    complete = len(times) == len(instance.jobs)
    info: dict[str, object] = {
        "outside_model": True,
        "objective": objective,
        "utilisation": float(found.utilisation(len(instance.machines))),
        "own_bound": bound,
        "own_ratio": 1.0 if objective == bound else (bound / objective if objective > 0 else None),
        "rounds": len(found.busy),
        "jobs_finished": len(times),
        "mean_jct": float(np.mean(times)) if complete else None,
        "median_jct": float(np.median(times)) if complete else None,
        "makespan": max(found.finish.values()) * instance.slot_length if complete else None,
    }
    if found.stopped is not None:
        info["stopped"] = found.stopped
        info["reason"] = f"cut ({found.stopped}), {len(times)} of {len(instance.jobs)} jobs had finished"
    elif instance.all_jobs_must_finish and not complete:
        info["reason"] = f"{len(instance.jobs) - len(times)} jobs do not finish by the horizon"
    if "reason" in info:
        info["objective"] = info["own_ratio"] = None
        return HeuristicRun(None, info, bound)
    return HeuristicRun(solution, info, bound)
