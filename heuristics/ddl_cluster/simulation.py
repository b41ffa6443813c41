"""One simulated run: placements and scheduling by name, finish times, and the log that conservation is checked on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES, Log
from schedgap.heuristics.ddl_cluster.kernel import FIRST_FIT, LEAST_WORKLOAD, LIST, RANDOM, run_fast
from schedgap.heuristics.ddl_cluster.state import AT_BARRIER, GPU, JOB, NEVER, SERVER, WORKER, Ints, Rules, State, Table

PLACEMENTS = {"lwf": LEAST_WORKLOAD, "ls": LIST, "ff": FIRST_FIT, "rand": RANDOM}
"""By name of a placement: its rule."""


CHUNK = 20_000
"""Moments that are simulated between two looks at the clock: 0.02 to 0.2 seconds."""


class OutOfTimeError(RuntimeError):
    """A simulation was stopped before its last finish."""


@dataclass(frozen=True)
class FastRun:
    """What came of a simulation.

    Attributes
    ----------
    finish : by job, ticks
    placement : by job, its GPUs as (server position, index), given ones in the order of the file
    log : all-reduces always; compute tasks where asked for, else empty arrays
    moments : ticks at which something happened
    """

    finish: Ints
    placement: tuple[tuple[Gpu, ...], ...]
    log: Log
    moments: int


def prepared(
    instance: DdlClusterInstance,
    policy: str,
    placement: str,
    *,
    kappa: int = 1,
    seed: int = 0,
    record: bool = False,
    strides: bool = True,
) -> State:
    """The state before the first event; parameters as of :func:`simulate`."""
    limit, adaptive = POLICIES[policy]
    clock = clock_of(instance)
    jobs, workers, gpus, servers = tables(instance, seed)
    work = sum(
        job.gpus * job.iterations * (f + b + r)
        for job, f, b, r in zip(instance.jobs, clock.forward, clock.backward, clock.solo, strict=True)
    )
    none, one, two, three, four = clock.slowdown
    rules = Rules(
        latency=clock.latency,
        pair_factor=clock.pair_factor,
        slowdown=(none, one, two, three, four),
        limit=limit,
        adaptive=adaptive,
        rule=PLACEMENTS[placement],
        kappa=kappa,
        shift=(work * int(servers["size"].max()) // NEVER).bit_length(),
        strides=strides,
        record=record,
    )
    task_base = _bases(2 * jobs["width"] * jobs["iterations"])
    jobs["task_base"], jobs["message_base"] = task_base[:-1], _bases(jobs["iterations"])[:-1]
    tasks, messages = int(task_base[-1]) if record else 0, int(jobs["iterations"].sum())
    start, end, admitted, done = (np.full(count, -1, dtype=np.int64) for count in (tasks, tasks, messages, messages))
    return State(
        jobs,
        workers,
        gpus,
        servers,
        np.full((len(servers), limit), -1, dtype=np.int64),
        np.zeros((6, max(2 * len(gpus), len(jobs), len(servers)) + 1), dtype=np.int64),
        np.zeros(len(jobs) + 1, dtype=np.int64),
        rules,
        start,
        end,
        admitted,
        done,
    )


def simulate(
    instance: DdlClusterInstance,
    policy: str,
    placement: str,
    *,
    kappa: int = 1,
    seed: int = 0,
    record: bool = False,
    strides: bool = True,
    stop: Callable[[], bool] | None = None,
) -> FastRun:
    """Run every job to its finish: what the plain simulator means, tick by tick, with placements chosen on the way.

    Parameters
    ----------
    instance : the instance; jobs that carry a placement keep it
    policy : one of POLICIES
    placement : one of PLACEMENTS
    kappa : of LWF-kappa
    seed : of the placement ``rand``
    record : keep the times of every compute task (16 bytes each)
    strides : fast-forward; without it the result is the same and takes longer
    stop : asked every CHUNK moments whether to stop; never where not given

    Returns
    -------
    FastRun

    Raises
    ------
    OutOfTimeError
        `stop` said so before every job had finished.

    Notes
    -----
    O(E (log J + w)) for E events and w workers of the job concerned. Source: paper 001, Algorithms 1 to 3.
    """
    state = prepared(instance, policy, placement, kappa=kappa, seed=seed, record=record, strides=strides)
    jobs, workers = state.jobs, state.workers
    by_arrival = np.argsort(jobs["arrival"], kind="stable")
    progress = np.zeros(5, dtype=np.int64)
    while not run_fast(state, by_arrival, progress, CHUNK if stop is not None else NEVER, NEVER):
        if stop is not None and stop():
            raise OutOfTimeError(f"stopped with {progress[1]} of {len(jobs)} jobs finished")
    located = [(s, g) for s, server in enumerate(instance.servers) for g in range(server.gpus)]
    chosen = np.split(workers["gpu"], jobs["first_worker"][1:])
    log = Log(
        state.started,
        state.ended,
        state.admitted,
        state.done,
        jobs["placed"].copy(),
        _bases(2 * jobs["width"] * jobs["iterations"]),
        _bases(jobs["iterations"]),
    )
    placement_of = tuple(tuple(located[gpu] for gpu in part) for part in chosen)
    return FastRun(jobs["finish"].copy(), placement_of, log, int(progress[2]))


def tables(instance: DdlClusterInstance, seed: int) -> tuple[Table, Table, Table, Table]:
    """Jobs, workers, GPUs and servers before the first event; `seed` is of the draws for ``rand``."""
    clock = clock_of(instance)
    jobs = np.zeros(len(instance.jobs), dtype=JOB)
    jobs["arrival"], jobs["iterations"] = clock.arrival, [job.iterations for job in instance.jobs]
    jobs["forward"], jobs["backward"], jobs["solo"] = clock.forward, clock.backward, clock.solo
    jobs["transfer"], jobs["memory"] = clock.transfer, clock.memory
    jobs["width"] = [job.gpus for job in instance.jobs]
    jobs["first_worker"] = _bases(jobs["width"])[:-1]
    jobs["service"] = jobs["width"] * jobs["iterations"] * (jobs["forward"] + jobs["backward"])
    for name in ("started_at", "asked_at", "shared_at", "finish", "placed"):
        jobs[name] = -1
    workers = np.zeros(int(jobs["width"].sum()), dtype=WORKER)
    workers["job"] = np.repeat(np.arange(len(jobs)), jobs["width"])
    workers["state"], workers["end"] = AT_BARRIER, NEVER
    workers["draws"] = np.random.default_rng(seed).random(len(workers))
    for name in ("gpu", "after", "before", "server", "wait_after", "wait_before"):
        workers[name] = -1
    for first, given in zip(jobs["first_worker"], instance.given, strict=True):
        if given is not None:
            workers["gpu"][first : first + len(given)] = [instance.first_gpu[s] + g for s, g in given]
    gpus = np.zeros(instance.total_gpus, dtype=GPU)
    servers = np.zeros(len(instance.servers), dtype=SERVER)
    servers["first_gpu"], servers["size"] = instance.first_gpu, [server.gpus for server in instance.servers]
    servers["changed_on"] = servers["wait_head"] = -1
    gpus["server"] = np.repeat(np.arange(len(servers)), servers["size"])
    gpus["task"] = gpus["head"] = -1
    gpus["free"] = MEMORY_CAPACITY
    return jobs, workers, gpus, servers


def _bases(counts: Ints) -> Ints:
    """Where each of consecutive ranges of these lengths begins, and the end of the last."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
