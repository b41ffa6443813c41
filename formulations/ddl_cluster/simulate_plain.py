"""The meaning of ddl-cluster, and the simulator that the checker replays a policy with.

What is written here is the definition that any simulator must reproduce tick by tick; :mod:`.replay` is the checker's,
and `tests/oracles/ddl_cluster_events.py` the plain form, which goes through every event of every job. Time is
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

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import ceil
from typing import Any

import numpy as np

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster import replay as events
from schedgap.formulations.ddl_cluster import replay_components as tables
from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, Clock, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu

POLICIES: Mapping[str, tuple[int, bool]] = {
    "srsf-1": (1, False),
    "srsf-2": (2, False),
    "srsf-3": (3, False),
    "srsf-4": (4, False),
    "ada-srsf": (2, True),
}
"""Policies by name: all-reduces that may be active on a server, and whether AdaDUAL decides on the second."""

INTERPRETED_TASKS = 100_000
"""Up to so many compute tasks are simulated by the interpreter; compiling the same function takes seconds."""


@dataclass(frozen=True)
class Log:
    """When every task ran, in ticks; where cycles were passed over, every task that was gone through.

    Attributes
    ----------
    start, end : compute tasks. That of job j, iteration i, worker w and kind (0 forward, 1 backward) is at
        ``task_base[j] + 2 * (i * gpus_j + w) + kind``; i counts the iterations that were gone through
    admitted, done : all-reduces. That of job j and iteration i is at ``message_base[j] + i``; -1 where the job
        has none
    placed : placement of each job
    jumps : rows (job, tick, period, ticks, iterations), by job and in time. At `tick` a cycle of `period` ticks and so
        many iterations of the job had ended, and it came again and again in the `ticks` that follow; of them, the log
        has what was begun in the last one and went on
    """

    start: Ints
    end: Ints
    admitted: Ints
    done: Ints
    placed: Ints
    task_base: Ints
    message_base: Ints
    jumps: Ints


@dataclass(frozen=True)
class Run:
    """What came of a simulation.

    Attributes
    ----------
    finish : finish of each job, seconds
    finish_ticks, placed_ticks : ticks of each job's finish and placement
    log : every task's times, where asked for
    skipped : cycles that were passed over
    moments : ticks at which something happened, those passed over left out; both None where nothing was simulated
    iterations : iterations gone through, per job
    jumps : how many rows the log's jumps have, or would have
    """

    finish: tuple[float, ...]
    finish_ticks: tuple[int, ...]
    placed_ticks: tuple[int, ...]
    log: Log | None
    skipped: int | None = None
    moments: int | None = None
    iterations: tuple[int, ...] = ()
    jumps: int = 0


def task_count(instance: DdlClusterInstance, iterations: Sequence[int] | None = None) -> int:
    """Compute tasks of all jobs, workers and iterations; or of so many iterations, by job."""
    if iterations is None:
        iterations = [job.iterations for job in instance.jobs]
    return sum(2 * job.gpus * count for job, count in zip(instance.jobs, iterations, strict=True))


def simulate_plain(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],
    policy: str,
    *,
    release: Mapping[str, float] | None = None,
    record: bool = False,
    interpreted: bool | None = None,
    digits: int | None = None,
    skips: bool | None = None,
    logged: Run | None = None,
) -> Run:
    """Run every job on its GPUs under a policy, as defined at the head of this module.

    Parameters
    ----------
    placement : GPUs of each job as (server position, index); as many as it needs, all different
    policy : one of POLICIES
    release : seconds before which a job, by id, is held back from the queue; the others enter it at their arrival
    record : keep the times of every task that is gone through (16 bytes per task)
    interpreted : run the interpreter, or machine code compiled from the same function; by the number of tasks
        where not given
    digits : ticks are of 10^-digits seconds; those of the instance's own clock where not given
    skips : pass over whole cycles where states recur; by default where nothing is recorded
    logged : the same run without a record, which says how large the record is; needed where cycles are passed over

    Returns
    -------
    Run

    Notes
    -----
    O(E (log J + w + C L)) for E events that are gone through, J jobs, w workers on the GPUs of the job concerned and,
    where it is an all-reduce's, C jobs of its component, L servers a job.
    """
    limit, adaptive = POLICIES[policy]
    clock = clock_of(instance, digits)
    jobs = instance.jobs
    count = len(jobs)
    workers = [(j, instance.first_gpu[s] + g) for j, gpus in enumerate(placement) for s, g in gpus]
    first_worker = _bases(job.gpus for job in jobs)
    places: list[int] = []
    first_place, first_server = [0], []
    for j, gpus in enumerate(placement):
        servers = {s for s, _ in gpus}
        places += [gpu for _, gpu in workers[first_worker[j] : first_worker[j + 1]]]
        first_server.append(len(places))
        places += [instance.total_gpus + s for s in sorted(servers) if len(servers) > 1]
        first_place.append(len(places))
    there = Counter(places)
    rows = _bases(there[p] for p in range(instance.total_gpus + len(instance.servers)))
    iterations = [job.iterations for job in jobs] if logged is None else logged.iterations
    task_base = _bases(2 * job.gpus * gone for job, gone in zip(jobs, iterations, strict=True))
    message_base = _bases(iterations)
    sizes = (task_base[-1], message_base[-1]) if record else (0, 0)
    if interpreted is None:
        interpreted = task_count(instance) <= INTERPRETED_TASKS
    held = _ticks(instance, release or {}, clock)
    arrival = [max(tick, moment) for tick, moment in zip(clock.arrival, held, strict=True)]
    leaves = 2 ** (count - 1).bit_length()
    log = [np.full(sizes[k], -1, dtype=np.int64) for k in (0, 0, 1, 1)]
    jumps = np.zeros((logged.jumps if logged is not None else 0, 5), dtype=np.int64)

    def table(rows: list[list[Any]], kind: type = int) -> Any:
        """Lists are several times faster than arrays for the interpreter."""
        return rows if interpreted else np.array(rows, dtype=kind)

    total = len(rows) - 1
    given = {
        tables.ARRIVAL: arrival,
        tables.ITERATIONS: [job.iterations for job in jobs],
        tables.FORWARD: clock.forward,
        tables.BACKWARD: clock.backward,
        tables.SOLO: clock.solo,
        tables.TRANSFER: clock.transfer,
        tables.MEMORY: clock.memory,
        tables.BY_ARRIVAL: sorted(range(count), key=lambda j: arrival[j]),
        tables.FIRST_WORKER: first_worker,
        tables.FIRST_PLACE: first_place,
        tables.FIRST_SERVER: first_server,
        tables.TASK_BASE: task_base,
        tables.MESSAGE_BASE: message_base,
        tables.SERVICE: [
            job.gpus * job.iterations * (f + b) for job, f, b in zip(jobs, clock.forward, clock.backward, strict=True)
        ],
        tables.LINK_EVENT: [tables.NEVER] * count,
        **{column: [-1] * count for column in (tables.FINISH, tables.PLACED, tables.ROOT, tables.KEPT_AT)},
    }
    by_job = [list(given.get(column, ())) for column in range(tables.JOB_COLUMNS)]
    for column in by_job:
        column += [0] * (count + 1 - len(column))
    by_worker = [[0] * len(workers) for _ in range(tables.WORKER_COLUMNS)]
    by_worker[tables.JOB], by_worker[tables.GPU] = [j for j, _ in workers], [gpu for _, gpu in workers]
    by_worker[tables.STATE] = [4] * len(workers)
    by_place = [[0] * (total + 1) for _ in range(tables.PLACE_COLUMNS)]
    by_place[tables.ROW] = rows
    by_place[tables.TASK] = [-1] * (total + 1)
    by_place[tables.TASK_END], by_place[tables.FREE] = ([n] * (total + 1) for n in (tables.NEVER, MEMORY_CAPACITY))
    state = tables.Replay(
        job=table(by_job),
        worker=table(by_worker),
        place=table(by_place),
        entry=table([places, [0] * len(places)]),
        left=table([[0.0] * count, [0.0] * count], float),
        due=table([[tables.NEVER] * (2 * leaves)])[0],
        counts=table([[0] * tables.COUNTS])[0],
        lists=table([[0] * (2 * count + total) for _ in range(tables.LISTS)]),
        log_start=log[0],
        log_end=log[1],
        log_admitted=log[2],
        log_done=log[3],
        log_jumps=jumps,
        slowdown=clock.slowdown,
        pair_factor=clock.pair_factor,
        latency=clock.latency,
        most_active=limit,
        leaves=leaves,
        adaptive=adaptive,
        record=record,
        skips=(logged is not None or not record) if skips is None else skips,
    )
    (events.run_events if interpreted else _compiled())(state)
    finish, placed = ([int(tick) for tick in state.job[column][:count]] for column in (tables.FINISH, tables.PLACED))
    kept = None
    if record:
        jumps = jumps[np.argsort(jumps[:, 0], kind="stable")]
        bases = np.array(task_base), np.array(message_base)
        kept = Log(log[0], log[1], log[2], log[3], np.array(placed), *bases, jumps)
    return Run(
        tuple(clock.seconds(tick) for tick in finish),
        tuple(finish),
        tuple(placed),
        kept,
        int(state.counts[tables.SKIPPED]),
        int(state.counts[tables.MOMENTS]),
        tuple(job.iterations - int(state.job[tables.OVER][j]) for j, job in enumerate(jobs)),
        int(state.counts[tables.JUMPS]),
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
    """The first tick at or after each job's release; 0 where it has none."""
    return [ceil(exact(release.get(job.id, 0.0)) * 10**clock.digits) for job in instance.jobs]


def _bases(counts: Any) -> list[int]:
    """Where each of consecutive ranges of these lengths begins, and the end of the last."""
    return [0, *accumulate(counts)]


@lru_cache(maxsize=1)
def _compiled() -> Callable[[Any], None]:
    """The simulation as machine code."""
    from schedgap.formulations.common.compiled import njit_with

    return njit_with(events.run_events, events.HELPERS)
