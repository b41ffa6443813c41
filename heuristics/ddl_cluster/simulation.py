"""One simulated run: placements and scheduling by name, finish times, the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.ddl_cluster.clock import MEMORY_CAPACITY, clock_of
from schedgap.formulations.ddl_cluster.instance import DdlClusterInstance, Gpu
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES
from schedgap.heuristics.ddl_cluster.kernel import run_fast
from schedgap.heuristics.ddl_cluster.kernel_placement import FIRST_FIT, LEAST_WORKLOAD, LIST, RANDOM
from schedgap.heuristics.ddl_cluster.state import (
    AT_BARRIER,
    CYCLE,
    GPU,
    JOB,
    JUMPS,
    MESSAGES,
    NEVER,
    SERVER,
    SKIPPED,
    WORKER,
    Rules,
    State,
    Table,
)

PLACEMENTS = {"lwf": LEAST_WORKLOAD, "ls": LIST, "ff": FIRST_FIT, "rand": RANDOM}
"""Rules of placement by name."""


CHUNK = 20_000
"""Moments that are simulated between two looks at the clock: 0.02 to 0.2 seconds."""


ROWS = 10_000
"""All-reduces, and skips, that are recorded before the record grows for the first time."""


RECORDED = 4_000_000
"""All-reduces that are in memory at a time where somebody takes the record chunk by chunk: 100 MB."""


class OutOfTimeError(RuntimeError):
    """A simulation was stopped before its last finish."""


@dataclass(frozen=True)
class FastLog:
    """When tasks ran, in ticks; those in skipped cycles have no entry of their own.

    Of a run whose record is taken chunk by chunk it has the all-reduces of one chunk, which ended one after another,
    and all jumps so far; a job that is not placed yet has -1 in `placed`.
    """

    # start, end: compute tasks where asked for, else empty; laid out as the plain simulator's log
    start: Ints
    end: Ints
    # admitted, done: all-reduces in order; those of job j are from ``message_base[j]`` to ``message_base[j + 1]``
    admitted: Ints
    done: Ints
    # rows (job, tick, period, count, iterations): after `tick` the job, whose cycle of `period` ticks just ended and
    # had so many `iterations`, repeated it `count` times; in order for every job
    jumps: Ints
    placed: Ints  # ticks of each job's placement
    task_base: Ints
    message_base: Ints

    def weights(self) -> Ints:
        """How many all-reduces each entry of `admitted` and `done` stands for: itself, and its repetitions."""
        weights = np.ones(len(self.done), dtype=np.int64)
        for job, tick, period, count, _ in self.jumps:
            first, last = self.message_base[job], self.message_base[job + 1]
            begin, end = np.searchsorted(self.done[first:last], [tick - period, tick], "right")
            weights[first + begin : first + end] += count
        return weights


@dataclass(frozen=True)
class FastRun:
    """What came of a simulation."""

    finish: Ints  # ticks of each job
    # by job, its GPUs as (server position, index), given ones in the order of the file
    placement: tuple[tuple[Gpu, ...], ...]
    # all-reduces always, the last chunk's where they were taken by chunks; compute tasks where asked for, else empty
    log: FastLog
    messages: Ints  # all-reduces of each job, those of skipped cycles left out
    whole: bool  # whether `log` has all of them
    moments: int  # ticks at which something happened, those of skipped cycles left out
    skipped: int  # cycles that were skipped


def prepared(
    instance: DdlClusterInstance,
    policy: str,
    placement: str,
    *,
    kappa: int = 1,
    seed: int = 0,
    first_server: bool = False,
    record: bool = False,
    strides: bool = True,
    cycles: bool = False,
    rows: int | None = None,
) -> State:
    """The state before the first event; parameters as of :func:`simulate`.

    There is room for the record of every all-reduce, or for `rows` of them.
    """
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
        first_server=first_server,
        rule=PLACEMENTS[placement],
        kappa=kappa,
        shift=(work * int(servers["size"].max()) // NEVER).bit_length(),
        strides=strides,
        cycles=cycles,
        record=record,
    )
    task_base = _bases(2 * jobs["width"] * jobs["iterations"])
    jobs["task_base"] = task_base[:-1]
    start, end = (np.full(int(task_base[-1]) if record else 0, -1, dtype=np.int64) for _ in range(2))
    components = np.zeros(len(jobs), dtype=CYCLE)
    components["root"] = -1
    return State(
        jobs,
        components,
        workers,
        gpus,
        servers,
        np.full((len(servers), limit), -1, dtype=np.int64),
        np.zeros((9, max(2 * len(gpus), len(jobs), len(servers)) + 2), dtype=np.int64),
        np.zeros(len(jobs) + 1, dtype=np.int64),
        rules,
        start,
        end,
        np.zeros((int(jobs["iterations"].sum()) + len(jobs) if rows is None else rows, 3), dtype=np.int64),
        np.zeros((len(jobs) if rows is None else rows, 5), dtype=np.int64),
        np.zeros(5, dtype=np.int64),
    )


def simulate(
    instance: DdlClusterInstance,  # the instance; jobs that carry a placement keep it
    policy: str,  # one of POLICIES
    placement: str,  # one of PLACEMENTS
    *,
    kappa: int = 1,  # parameter of LWF-kappa
    seed: int = 0,  # seed of the placement ``rand``
    first_server: bool = False,  # AdaDUAL's message on the first busy server, as printed, not the smallest on any
    record: bool = False,  # keep the times of every compute task (16 bytes each)
    strides: bool = True,  # fast-forward; without it the result is the same and takes longer
    cycles: bool = True,  # skip cycles; likewise. Where compute tasks are recorded no cycle is skipped
    stop: Callable[[], bool] | None = None,  # asked every CHUNK moments whether to stop; never where not given
    # takes the record, with the GPUs of each job (none before it is placed), whenever RECORDED all-reduces are in it,
    # and at the end; without it all are kept, 24 bytes each
    take: Callable[[FastLog, Sequence[Sequence[Gpu]]], None] | None = None,
) -> FastRun:
    """Run every job to its finish: what the plain simulator means, tick by tick, with placements chosen on the way.

    Raises OutOfTimeError: `stop` said so before every job had finished.

    Notes
    -----
    O(E (log J + w)) for E events and w workers of the job concerned. Source: paper 001, Algorithms 1 to 3.
    """
    state = prepared(
        instance,
        policy,
        placement,
        kappa=kappa,
        seed=seed,
        first_server=first_server,
        record=record,
        strides=strides,
        cycles=cycles and not record,
        rows=2 * len(instance.jobs) + ROWS,
    )
    jobs = state.jobs
    by_arrival = np.argsort(jobs["arrival"], kind="stable")
    progress = np.zeros(5, dtype=np.int64)
    located = [(s, g) for s, server in enumerate(instance.servers) for g in range(server.gpus)]
    sent, whole = np.zeros(len(jobs), dtype=np.int64), True
    while not run_fast(state, by_arrival, progress, CHUNK if stop is not None else NEVER, NEVER):
        if take is not None and state.counts[MESSAGES] >= RECORDED:
            log, whole = _log(state), False
            sent += np.diff(log.message_base)
            take(log, _placements(state, located))
            state.counts[MESSAGES] = 0
        state = state._replace(
            messages=_with_room(state.messages, state.counts[MESSAGES], len(jobs)),
            jumps=_with_room(state.jumps, state.counts[JUMPS], len(jobs)),
        )
        if stop is not None and stop():
            raise OutOfTimeError(f"stopped with {progress[1]} of {len(jobs)} jobs finished")
    log, chosen = _log(state), _placements(state, located)
    sent += np.diff(log.message_base)
    if take is not None:
        take(log, chosen)
    return FastRun(jobs["finish"].copy(), chosen, log, sent, whole, int(progress[2]), int(state.counts[SKIPPED]))


def _log(state: State) -> FastLog:
    """The record as it is, by job."""
    jobs = state.jobs
    messages = _by_job(state.messages, state.counts[MESSAGES])
    jumps = _by_job(state.jumps, state.counts[JUMPS])
    return FastLog(
        state.started,
        state.ended,
        messages[:, 1].copy(),
        messages[:, 2].copy(),
        jumps[jumps[:, 3] > 0],
        jobs["placed"].copy(),
        _bases(2 * jobs["width"] * jobs["iterations"]),
        _bases(np.bincount(messages[:, 0], minlength=len(jobs))),
    )


def _placements(state: State, located: Sequence[Gpu]) -> tuple[tuple[Gpu, ...], ...]:
    """The GPUs of each job that is placed."""
    chosen = np.split(state.workers["gpu"], state.jobs["first_worker"][1:])
    return tuple(tuple(located[gpu] for gpu in part if gpu >= 0) for part in chosen)


def _with_room(rows: Ints, used: int, spare: int) -> Ints:
    """The rows, or twice as many, where there is no room for `spare` more."""
    return rows if used + spare <= len(rows) else np.concatenate([rows, np.zeros_like(rows)])


def _by_job(rows: Ints, used: int) -> Ints:
    """The rows in use, by their first entry, those of a job as they came."""
    return rows[:used][np.argsort(rows[:used, 0], kind="stable")]


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
