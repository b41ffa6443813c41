"""The schedulings of paper 001 as methods: SRSF(1) to SRSF(3) and Ada-SRSF, each with any placement.

Idea: tasks of the job with the shortest remaining service go first. SRSF(n) admits n all-reduces on a server;
Ada-SRSF decides on a second one by AdaDUAL. Source: paper 001, Algorithms 1 to 3 and section V-A. Where ours differs:
AdaDUAL compares with the smallest remaining message on any server that the new one would meet, where Algorithm 2 as
printed forgets some; cycles of jobs whose state recurs are skipped, which changes no time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.options import options_of, parse_settings
from schedgap.formulations.ddl_cluster.clock import clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.ddl_cluster.conservation import Conservation
from schedgap.heuristics.ddl_cluster.run_times import check_seconds, placing_seconds
from schedgap.heuristics.ddl_cluster.simulation import FastRun, OutOfTimeError, simulate
from schedgap.solvers.result import NO_DEADLINE, Deadline

Placement: TypeAlias = Annotated[Literal["lwf", "ls", "ff", "rand"], Field(description="which GPUs a job gets")]


Kappa: TypeAlias = Annotated[
    int, Field(ge=0, le=10**6, description="lwf: jobs of up to so many GPUs get the least loaded ones anywhere")
]


class ConservationError(RuntimeError):
    """A simulated run made time, bytes or iterations out of nothing: an internal error."""


def _policy(name: str, rule: str) -> Callable[..., HeuristicRun]:
    def policy(
        instance: DdlClusterInstance,
        *,
        seed: int = 0,
        deadline: Deadline = NO_DEADLINE,
        placement: Placement = "lwf",
        kappa: Kappa = 1,
    ) -> HeuristicRun:
        return _run(instance, name, seed, deadline, placement, kappa)

    policy.__name__ = name.replace("-", "_")
    policy.__doc__ = f"""Shortest remaining service first; {rule}

    Parameters
    ----------
    instance : the instance; jobs that carry a placement keep it
    seed : of the placement ``rand``
    deadline : a run that with its check cannot end by then is refused beforehand, or stopped
    placement : lwf (LWF-kappa), ls, ff or rand
    kappa : of LWF-kappa

    Returns
    -------
    HeuristicRun; the solution is None where the time is too short (``info["reason"]``).

    Notes
    -----
    See :func:`~schedgap.heuristics.ddl_cluster.simulation.simulate`. No ratio is claimed. Source: paper 001,
    section V-A; Algorithm 1 for LWF-kappa, Algorithms 2 and 3 for Ada-SRSF.
    """
    return policy


srsf_1 = _policy("srsf-1", "at most one all-reduce on a server: no contention.")


srsf_2 = _policy("srsf-2", "at most two all-reduces on a server.")


srsf_3 = _policy("srsf-3", "at most three all-reduces on a server.")


srsf_4 = _policy("srsf-4", "at most four all-reduces on a server.")


ada_srsf = _policy(
    "ada-srsf",
    """AdaDUAL decides whether a second all-reduce starts beside a first.

    With one active on some server of the job and none with more, it starts where 2 (b + eta) M_new < b M_left,
    M_left the smallest remaining message among those it would meet on any server. (Algorithm 2 as printed
    collects them only where a server has more of them than the servers before, so it forgets some.)""",
)


@dataclass(frozen=True)
class ConservedRun:
    """A run whose conservation has been checked."""

    run: FastRun  # simulated run
    flow: Floats  # finish - arrival of each job, seconds
    # by GPU, the part of the time from its first placement to its last finish in which it computes; 0 for a GPU that
    # has no job
    utilisation: Floats
    # see :func:`metrics`; and ``message speed``, the largest ratio of latency + size b to the time an all-reduce took,
    # 0 where there is none
    metrics: Mapping[str, Any]


def run_policy(
    instance: DdlClusterInstance,
    policy: str,
    seed: int,
    placement: str,
    kappa: int = 1,
    stop: Callable[[], bool] | None = None,
    first_server: bool = False,
) -> ConservedRun:
    """Simulate a policy and check the run; `stop` and `first_server` as in the simulation.

    Raises
    ------
    OutOfTimeError
        `stop` said so before every job had finished.
    ConservationError
        The run breaks conservation.
    """
    clock = clock_of(instance)
    conserved = Conservation(instance, POLICIES[policy][0])
    run = simulate(
        instance,
        policy,
        placement,
        kappa=kappa,
        seed=seed,
        first_server=first_server,
        stop=stop,
        take=conserved.add,
    )
    conserved.finish(run.log, run.placement, run.finish)
    if conserved.broken:
        text = f"{conserved.broken[0]} ({len(conserved.broken)} findings)"
        raise ConservationError(f"{policy} with {placement} on {instance.name}: {text}")
    flow = np.array([clock.seconds(end - begin) for end, begin in zip(run.finish, clock.arrival, strict=True)])
    used = np.zeros(instance.total_gpus)
    for (server, index), (work, first, last) in gpu_use(instance, run).items():
        used[instance.first_gpu[server] + index] = work / (last - first)
    return ConservedRun(run, flow, used, {**metrics(instance, run), "message speed": conserved.fastest})


def _run(
    instance: DdlClusterInstance, policy: str, seed: int, deadline: Deadline, placement: str, kappa: int
) -> HeuristicRun:
    parse_settings(options_of(srsf_1), {"placement": placement, "kappa": kappa}, f"method {policy}")
    least = check_seconds(instance)

    def short(needed: float) -> bool:
        remaining = deadline.remaining()
        return remaining is not None and remaining <= needed

    whole = least + placing_seconds(instance, placement, kappa)
    if short(whole):
        return late(f"the run and its check take {whole:.3g} s or more")
    try:
        outcome = run_policy(instance, policy, seed, placement, kappa, lambda: short(least))
    except OutOfTimeError as error:
        return late(f"{error}, its check takes another {least:.3g} s or more")
    clock = clock_of(instance)
    check = check_seconds(instance, outcome.run)
    if short(check):
        return late(f"the run is simulated, its check takes another {check:.3g} s or more")
    solution = {
        "placement": {
            job.id: [[instance.servers[s].id, g] for s, g in gpus]
            for job, gpus in zip(instance.jobs, outcome.run.placement, strict=True)
        },
        "policy": policy,
        "finish": {job.id: clock.seconds(end) for job, end in zip(instance.jobs, outcome.run.finish, strict=True)},
    }
    return HeuristicRun(solution, outcome.metrics)


def late(reason: str) -> HeuristicRun:
    """No answer: a run that the checker cannot confirm within the limit is none."""
    return HeuristicRun(None, {"reason": f"the time limit is too short: {reason}", "stopped": "time limit"})


def metrics(instance: DdlClusterInstance, run: FastRun) -> Mapping[str, Json]:
    """The figures of Tables IV and V.

    Returns
    -------
    ``jct mean``, ``jct median``, ``jct 95th`` (seconds); ``makespan``, from the first arrival to the last finish
    (seconds); ``utilisation``, the mean over GPUs of the part of the makespan in which it computes, and
    ``utilisation busy``, the same with each GPU's time counted from its first placement to its last finish and
    GPUs without a job left out; ``jobs across servers``; ``all-reduces`` and ``contended``, the part of them that
    took longer than they do alone (None where the record was too long to be kept as a whole); ``events``, simulated
    moments, and ``cycles skipped`` beside them.
    """
    clock = clock_of(instance)
    arrival = np.array(clock.arrival, dtype=np.int64)
    flow = np.array([clock.seconds(tick) for tick in run.finish - arrival])
    busy = gpu_use(instance, run)
    span = clock.seconds(int(run.finish.max() - arrival.min()))
    used = [(work, last - first) for work, first, last in busy.values()]
    spread = [len({s for s, _ in gpus}) > 1 for gpus in run.placement]
    solo = np.repeat(np.array(clock.solo, dtype=np.int64), np.diff(run.log.message_base))
    taken = run.log.done - run.log.admitted
    contended = float(np.average(taken > solo + 1, weights=run.log.weights())) if len(taken) else 0.0
    return {
        "jct mean": float(flow.mean()),
        "jct median": float(np.median(flow)),
        "jct 95th": float(np.percentile(flow, 95)),
        "makespan": span,
        "utilisation": sum(work for work, _ in used) / (span * instance.total_gpus),
        "utilisation busy": float(np.mean([work / length for work, length in used])),
        "jobs across servers": sum(spread),
        "all-reduces": sum(job.iterations for job, across in zip(instance.jobs, spread, strict=True) if across),
        "contended": contended if run.whole else None,
        "events": run.moments,
        "cycles skipped": run.skipped,
    }


def gpu_use(instance: DdlClusterInstance, run: FastRun) -> dict[tuple[int, int], tuple[float, float, float]]:
    """The use of each GPU that has jobs: seconds of compute tasks, its first placement, its last finish."""
    clock = clock_of(instance)
    result: dict[tuple[int, int], tuple[float, float, float]] = {}
    for j, (job, gpus) in enumerate(zip(instance.jobs, run.placement, strict=True)):
        work = job.iterations * (job.forward + job.backward)
        begin, end = clock.seconds(int(run.log.placed[j])), clock.seconds(int(run.finish[j]))
        for gpu in gpus:
            total, first, last = result.get(gpu, (0.0, begin, end))
            result[gpu] = (total + work, min(first, begin), max(last, end))
    return result
