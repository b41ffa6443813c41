"""Method ``hadare``: every job forked into copies on separate nodes (paper 002, section V). Outside the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.hadar.check_forked import check_forked
from schedgap.formulations.hadar.forked import node_speeds
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import ForkedSolution
from schedgap.formulations.hadar.tables import tables, worth_of
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.forked_rounds import fork
from schedgap.heuristics.hadar.simulate import Overhead, RestartDelay, refuse_long_delay
from schedgap.heuristics.hadar.throughput_estimate import Beliefs
from schedgap.solvers.exact.hadar.forked_bound import forked_bound
from schedgap.solvers.result import NO_DEADLINE, Deadline


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
