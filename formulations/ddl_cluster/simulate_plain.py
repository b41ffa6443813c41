"""The meaning of ddl-cluster: a plain reference simulator, one event after another.

It is the definition that the checker replays and that any faster simulator must reproduce tick by tick. Time is
counted in ticks (see :class:`~schedgap.formulations.ddl_cluster.clock.Clock`), so there are no tolerances.

A job's life. It enters the queue at its arrival, or later where a schedule holds it back until its release ("arrives"
below is then the release; its completion time counts from the arrival all the same). It is placed, and then repeats
`iterations` times: each worker runs its forward task and then its backward task on its own GPU; when every worker's
backward task has ended (the barrier), one all-reduce follows where the job's GPUs are on more than one server, and
nothing otherwise. The iteration ends with it, and the next one's forward tasks are ready. The job's memory is held from
its placement until it finishes.

An all-reduce waits from the barrier until it is admitted. It counts as *active* from then on: first its latency
passes, then it *transfers* until its message has been moved: for ceil(size b) ticks where it is alone. While it
transfers, k is the largest number of transfers on any of its servers, itself among them, and it takes slowdown[k] =
k + (k - 1) eta / b times as long; one that is still in its latency does not count for k. With `left` ticks of being
alone to go at the moment its k becomes what it is, it ends ceil(left * slowdown[k] - 0.001) ticks later, at least one
(the thousandth of a tick absorbs the rounding of the product); when its k changes after d ticks, `left` becomes
left - d / slowdown[k]. A k that is the same after an event as before changes nothing, whichever transfers it counts.

Remaining service of a job, in ticks: the sum over its workers of the forward and backward tasks that have not
ended, plus, once it is placed on more than one server, the number of its GPUs times `solo` for every all-reduce
that has not ended. A task counts in full until it ends. SRSF order is by remaining service, ties by position in
the instance.

Events. Time moves to the next tick at which a job arrives, a compute task ends, a latency passes or a transfer ends.
All that happens at that tick happens at once, and then, in this order:

1. Ends. All compute tasks and transfers that end now have ended: services are reduced, barriers, iterations and
   jobs that are complete are so, memory is freed. Workers whose forward task ended are ready for the backward one.
2. Arrivals. Jobs that arrive now enter the queue.
3. Placement. Every job in the queue is asked once, in the SRSF order that step 2 leaves. It is placed when its
   GPUs all have the memory for it, given the jobs placed before it; a job that is not placed keeps its place and
   holds nobody up. Its forward tasks are ready at once. (A rule that chooses GPUs must do so exactly when there
   are as many GPUs with enough memory as the job has workers. Then replaying the placements that it chose places
   every job at the same tick.)
4. Admission. Every waiting all-reduce is asked once, in SRSF order; those admitted count for those asked later, a
   refusal holds nobody up. srsf-n admits when fewer than n are active on every server of the job. ada-srsf admits
   when none is active on any of its servers, or when at most one is on each and 2 (b + eta) m < b l, with m the
   message and l the smallest remaining message of those active on any of them (a whole message during its
   latency), both as the ticks that they take alone; it refuses where two are active on one server.
5. Transfers. Those admitted now with latency 0 and those whose latency has passed transfer from now on. Every k is
   computed anew, and the ends of those whose k changed.
6. Dispatch. Every GPU without a task starts, of the ready compute tasks of the jobs on it, the first in SRSF order.

The simulation ends when every job has finished.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.clock import Clock, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.plain_events import run_events

POLICIES: Mapping[str, tuple[int, bool]] = {
    "srsf-1": (1, False),
    "srsf-2": (2, False),
    "srsf-3": (3, False),
    "srsf-4": (4, False),
    "ada-srsf": (2, True),
}
"""By name of a policy: how many all-reduces may be active on a server, and whether AdaDUAL decides on the second."""

INTERPRETED_TASKS = 100_000
"""Up to so many compute tasks are simulated by the interpreter; compiling the same function takes seconds."""

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Log:
    """When every task ran, in ticks.

    Attributes
    ----------
    start, end : compute tasks. That of job j, iteration i, worker w and kind (0 forward, 1 backward) is at
        ``task_base[j] + 2 * (i * gpus_j + w) + kind``
    admitted, done : all-reduces. That of job j and iteration i is at ``message_base[j] + i``; -1 where the job
        has none
    placed : by job
    """

    start: IntArray
    end: IntArray
    admitted: IntArray
    done: IntArray
    placed: IntArray
    task_base: IntArray
    message_base: IntArray


@dataclass(frozen=True)
class Run:
    """What came of a simulation.

    Attributes
    ----------
    finish : by job, seconds
    finish_ticks, placed_ticks : by job
    log : every task's times, where asked for
    """

    finish: tuple[float, ...]
    finish_ticks: tuple[int, ...]
    placed_ticks: tuple[int, ...]
    log: Log | None


def task_count(instance: DdlClusterInstance) -> int:
    """Compute tasks of all jobs, workers and iterations."""
    return sum(2 * job.gpus * job.iterations for job in instance.jobs)


def simulate_plain(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    policy: str,
    *,
    release: Mapping[str, float] | None = None,
    record: bool = False,
    interpreted: bool | None = None,
    digits: int | None = None,
) -> Run:
    """Run every job on its GPUs under a policy, as defined at the head of this module.

    Parameters
    ----------
    placement : by job, its GPUs as (server position, index); as many as it needs, all different
    policy : one of POLICIES
    release : seconds before which a job, by id, is held back from the queue; the others enter it at their arrival
    record : keep every task's times (16 bytes per task)
    interpreted : run the interpreter, or machine code compiled from the same function; by the number of tasks
        where not given
    digits : ticks are of 10^-digits seconds; those of the instance's own clock where not given

    Returns
    -------
    Run

    Notes
    -----
    O(E (J + G + W L)) for E events, J jobs, G GPUs, W waiting all-reduces and L servers per job.
    """
    limit, adaptive = POLICIES[policy]
    clock = clock_of(instance, digits)
    jobs = instance.jobs
    count = len(jobs)
    workers = [(j, instance.first_gpu[s] + g) for j, gpus in enumerate(placement) for s, g in gpus]
    on_gpu: list[list[int]] = [[] for _ in range(instance.total_gpus)]
    for worker, (_, gpu) in enumerate(workers):
        on_gpu[gpu].append(worker)
    servers = [sorted({s for s, _ in gpus}) for gpus in placement]
    task_base = _bases(2 * job.gpus * job.iterations for job in jobs)
    message_base = _bases(job.iterations for job in jobs)
    sizes = (task_base[-1], message_base[-1]) if record else (0, 0)
    inputs: list[list[Any]] = [
        [max(tick, held) for tick, held in zip(clock.arrival, _ticks(instance, release or {}, clock), strict=True)],
        [job.iterations for job in jobs],
        list(clock.forward),
        list(clock.backward),
        list(clock.solo),
        list(clock.transfer),
        list(clock.memory),
        _bases(job.gpus for job in jobs),
        [j for j, _ in workers],
        [gpu for _, gpu in workers],
        _bases(len(row) for row in on_gpu),
        [worker for row in on_gpu for worker in row],
        _bases(len(row) for row in servers),
        [s for row in servers for s in row],
        list(clock.slowdown),
        task_base,
        message_base,
    ]
    if interpreted is None:
        interpreted = task_base[-1] <= INTERPRETED_TASKS
    finish: Any = np.full(count, -1, dtype=np.int64)
    placed: Any = np.full(count, -1, dtype=np.int64)
    log = [np.full(sizes[k], -1, dtype=np.int64) for k in (0, 0, 1, 1)]
    arrays: list[Any]
    if interpreted:  # lists are several times faster than arrays for the interpreter
        arrays = inputs
        run: Callable[..., None] = run_events
    else:
        arrays = [np.array(values, dtype=float if k == 14 else np.int64) for k, values in enumerate(inputs)]
        run = _compiled()
    run(*arrays, clock.latency, len(instance.servers), limit, adaptive, clock.pair_factor, finish, placed, *log, record)
    kept = None
    if record:
        kept = Log(log[0], log[1], log[2], log[3], placed, np.array(task_base), np.array(message_base))
    return Run(
        tuple(clock.seconds(tick) for tick in finish),
        tuple(int(tick) for tick in finish),
        tuple(int(tick) for tick in placed),
        kept,
    )


def solution_of(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    policy: str,
    run: Run,
    release: Mapping[str, float] | None = None,
) -> Solution:
    """The solution that a run under a policy is, with the jobs, by id, that were held back."""
    solution: Solution = {
        "placement": {
            job.id: [[instance.servers[server].id, index] for server, index in gpus]
            for job, gpus in zip(instance.jobs, placement, strict=True)
        },
        "policy": policy,
        "finish": {job.id: end for job, end in zip(instance.jobs, run.finish, strict=True)},
    }
    return solution | {"release": dict(release)} if release else solution


def _ticks(instance: DdlClusterInstance, release: Mapping[str, float], clock: Clock) -> list[int]:
    """By job, the first tick at or after its release; 0 where it has none."""
    return [ceil(exact(release.get(job.id, 0.0)) * 10**clock.digits) for job in instance.jobs]


def _bases(counts: Any) -> list[int]:
    """Where each of consecutive ranges of these lengths begins, and the end of the last."""
    return [0, *accumulate(counts)]


@lru_cache(maxsize=1)
def _compiled() -> Callable[..., None]:
    """The simulation as machine code."""
    from schedgap.formulations.common.compiled import njit_cached

    compiled: Callable[..., None] = njit_cached(run_events)
    return compiled
