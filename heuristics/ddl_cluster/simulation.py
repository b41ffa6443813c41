"""One simulated run: placements and scheduling by name, finish times, the log, and what the run must conserve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.numbers import exact
from schedgap.formulations.ddl_cluster.instance import MEMORY_CAPACITY, DdlClusterInstance, Gpu, clock_of
from schedgap.formulations.ddl_cluster.simulate_plain import POLICIES
from schedgap.heuristics.ddl_cluster.kernel import FIRST_FIT, LEAST_WORKLOAD, LIST, RANDOM, run_fast
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
    Ints,
    Rules,
    State,
    Table,
)

PLACEMENTS = {"lwf": LEAST_WORKLOAD, "ls": LIST, "ff": FIRST_FIT, "rand": RANDOM}
"""By name of a placement: its rule."""


CHUNK = 20_000
"""Moments that are simulated between two looks at the clock: 0.02 to 0.2 seconds."""
ROWS = 10_000
"""All-reduces, and skips, that are recorded before the record grows for the first time."""


MOST_MESSAGES = 40_000_000
"""All-reduces that are recorded: a gigabyte. What recurs is not, so a run that has more would go on for minutes."""


class OutOfTimeError(RuntimeError):
    """A simulation was stopped before its last finish."""


class TooManyMessagesError(OutOfTimeError):
    """A simulation was stopped as its record is full."""


@dataclass(frozen=True)
class FastLog:
    """When tasks ran, in ticks; those in skipped cycles have no entry of their own."""

    # start, end: compute tasks where asked for, else empty; laid out as the plain simulator's log
    start: Ints
    end: Ints
    # admitted, done: all-reduces in order; those of job j are from ``message_base[j]`` to ``message_base[j + 1]``
    admitted: Ints
    done: Ints
    # rows (job, tick, period, count, iterations): after `tick` the job, whose cycle of `period` ticks just ended and
    # had so many `iterations`, repeated it `count` times; in order for every job
    jumps: Ints
    placed: Ints  # by job
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

    finish: Ints  # by job, ticks
    # by job, its GPUs as (server position, index), given ones in the order of the file
    placement: tuple[tuple[Gpu, ...], ...]
    log: FastLog  # all-reduces always; compute tasks where asked for, else empty arrays
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
    kappa: int = 1,  # of LWF-kappa
    seed: int = 0,  # of the placement ``rand``
    first_server: bool = False,  # AdaDUAL's message on the first busy server, as printed, not the smallest on any
    record: bool = False,  # keep the times of every compute task (16 bytes each)
    strides: bool = True,  # fast-forward; without it the result is the same and takes longer
    cycles: bool = True,  # skip cycles; likewise. Where compute tasks are recorded no cycle is skipped
    stop: Callable[[], bool] | None = None,  # asked every CHUNK moments whether to stop; never where not given
) -> FastRun:
    """Run every job to its finish: what the plain simulator means, tick by tick, with placements chosen on the way.

    Raises OutOfTimeError: `stop` said so before every job had finished, or TooManyMessagesError: the record is full.

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
    jobs, workers = state.jobs, state.workers
    by_arrival = np.argsort(jobs["arrival"], kind="stable")
    progress = np.zeros(5, dtype=np.int64)
    while not run_fast(state, by_arrival, progress, CHUNK if stop is not None else NEVER, NEVER):
        if state.counts[MESSAGES] > MOST_MESSAGES:
            gone = f"{progress[1]} of {len(jobs)} jobs finished"
            raise TooManyMessagesError(f"more than {MOST_MESSAGES} all-reduces do not repeat others, {gone}")
        state = state._replace(
            messages=_with_room(state.messages, state.counts[MESSAGES], len(jobs)),
            jumps=_with_room(state.jumps, state.counts[JUMPS], len(jobs)),
        )
        if stop is not None and stop():
            raise OutOfTimeError(f"stopped with {progress[1]} of {len(jobs)} jobs finished")
    located = [(s, g) for s, server in enumerate(instance.servers) for g in range(server.gpus)]
    chosen = np.split(workers["gpu"], jobs["first_worker"][1:])
    messages = _by_job(state.messages, state.counts[MESSAGES])
    jumps = _by_job(state.jumps, state.counts[JUMPS])
    log = FastLog(
        state.started,
        state.ended,
        messages[:, 1].copy(),
        messages[:, 2].copy(),
        jumps[jumps[:, 3] > 0],
        jobs["placed"].copy(),
        _bases(2 * jobs["width"] * jobs["iterations"]),
        _bases(np.bincount(messages[:, 0], minlength=len(jobs))),
    )
    placement_of = tuple(tuple(located[gpu] for gpu in part) for part in chosen)
    return FastRun(jobs["finish"].copy(), placement_of, log, int(progress[2]), int(state.counts[SKIPPED]))


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


# What every simulated run must conserve, from its finish times and the times of its all-reduces alone.
#
# It is cheap enough for every run. It shares no code with the simulator; the complete audit, which also needs the times
# of every compute task, is ``formulations.ddl_cluster.audit``.


def broken_conservation(
    instance: DdlClusterInstance,
    placement: Sequence[Sequence[Gpu]],  # by job, its GPUs as (server position, index)
    finish: Ints,  # by job, ticks of 10^-digits seconds
    log: FastLog,  # of the run; the times of compute tasks are not looked at
    digits: int,
    limit: int,  # how many all-reduces may be active on a server
) -> list[str]:
    """Every way in which a run breaks conservation; empty where it does not.

    Returns
    -------
    One line for each of

    - iterations: a job on one server takes less than iterations (forward + backward) from its placement; one on
      several does not have exactly one all-reduce per iteration, each at least forward + backward after the one
      before, the last at its finish; or a cycle that is said to repeat does not have the iterations that it counts
    - message: an all-reduce takes less than latency + size b
    - link: on a server, in some maximal period in which all-reduces are active, their sizes times b are more
      than its length; or more than `limit` are active at a time
    - GPU: in some maximal period in which jobs are placed on a GPU, their compute tasks are more than its length

    Notes
    -----
    What skipped cycles repeat is conserved if one of them is: the run is looked at without them, the time that they
    take taken out on every server concerned (see _without). O(sum over servers of A log A) for A recorded all-reduces,
    vectorised.
    """
    scale = 10**digits
    a, b, _ = instance.link.exact_parameters()
    found: list[str] = []
    on_server: dict[int, list[int]] = {}
    on_gpu: dict[Gpu, list[int]] = {}
    least: list[tuple[int, int]] = []
    first_jump = np.searchsorted(log.jumps[:, 0], np.arange(len(instance.jobs) + 1))
    for j, (job, gpus) in enumerate(zip(instance.jobs, placement, strict=True)):
        where = f"job {job.id}"
        compute, solo = exact(job.forward) + exact(job.backward), a + b * exact(job.message)
        least.append((_whole(compute * scale), _whole(solo * scale)))
        shortest, message = least[-1]
        servers = {server for server, _ in gpus}
        for gpu in gpus:
            on_gpu.setdefault(gpu, []).append(j)
        jumps = log.jumps[first_jump[j] : first_jump[j + 1]]
        admitted = _without(jumps, log.admitted[log.message_base[j] : log.message_base[j + 1]])
        end = log.done[log.message_base[j] : log.message_base[j + 1]]
        done = _without(jumps, end)
        if log.placed[j] < exact(job.arrival) * scale:
            found.append(f"{where}: placed before its arrival")
        if len(servers) == 1:
            if len(done) or finish[j] - log.placed[j] < job.iterations * shortest:
                found.append(f"{where}: an iteration is missing, or there is an all-reduce on one server")
            continue
        for server in servers:
            on_server.setdefault(server, []).append(j)
        before = np.concatenate([log.placed[j : j + 1], done[:-1]])
        counted = [np.searchsorted(end, jumps[:, 1] - part, "right") for part in (jumps[:, 2], 0)]
        if (
            len(done) + int((jumps[:, 3] * jumps[:, 4]).sum()) != job.iterations
            or (counted[1] - counted[0] != jumps[:, 4]).any()
            or (admitted - before < shortest).any()
            or end[-1] != finish[j]
        ):
            found.append(f"{where}: an iteration is missing or took less than its compute tasks")
        short = int((done - admitted < message).sum())
        if short:
            found.append(f"{where}: {short} all-reduces take less than latency + size b = {float(solo):.9g} s")
    for server, jobs in sorted(on_server.items()):
        parts = [slice(log.message_base[j], log.message_base[j + 1]) for j in jobs]
        skips = np.concatenate([log.jumps[first_jump[j] : first_jump[j + 1]] for j in jobs])
        skips = skips[np.unique(skips[:, 1], return_index=True)[1]]  # jobs of a server skip together
        begin = _without(skips, np.concatenate([log.admitted[part] for part in parts]))
        end = _without(skips, np.concatenate([log.done[part] for part in parts]))
        size = np.concatenate(
            [np.full(part.stop - part.start, instance.jobs[j].message) for j, part in zip(jobs, parts, strict=True)]
        )
        where = f"server {instance.servers[server].id}"
        order = np.argsort(begin, kind="stable")
        begin, size, ends = begin[order], size[order], np.sort(end)
        most = int((np.arange(1, len(begin) + 1) - np.searchsorted(ends, begin, "right")).max())
        if most > limit:
            found.append(f"{where}: {most} all-reduces are active at a time, {limit} may be")
        over = _overload(begin, ends, size * float(b) * scale)
        if over > 1e-9 * float(ends[-1]) + len(begin):
            found.append(f"{where}: messages take {over / scale:.3g} s more of the link than there is")
    for (server, index), jobs in sorted(on_gpu.items()):
        order = np.argsort(log.placed[jobs], kind="stable")
        work = np.array([instance.jobs[j].iterations * least[j][0] for j in jobs], dtype=float)
        over = _overload(log.placed[jobs][order], np.sort(finish[jobs]), work[order])
        if over > 1e-9 * float(finish.max()):
            where = f"server {instance.servers[server].id}, GPU {index}"
            found.append(f"{where}: tasks take {over / scale:.3g} s more than there is")
    return found


def _without(jumps: Ints, ticks: Ints) -> Ints:
    """Moments of a job or a server when the time of its skipped cycles, jumps in order, is taken out before them."""
    gone = np.concatenate([[0], np.cumsum(jumps[:, 2] * jumps[:, 3])])
    result: Ints = ticks - gone[np.searchsorted(jumps[:, 1], ticks)]
    return result


def _overload(begin: Ints, end: Ints, load: NDArray[np.float64]) -> float:
    """The largest excess of load over length among the maximal periods that the intervals cover.

    `begin` and `end` are sorted each for itself, `load` belongs to `begin`. The i-th interval opens a period when
    the i before it have ended by then.
    """
    first = np.concatenate([[0], np.flatnonzero(end[:-1] <= begin[1:]) + 1])
    last = np.concatenate([first[1:] - 1, [len(end) - 1]])
    excess = np.add.reduceat(load, first) - (end[last] - begin[first])
    return float(excess.max())


def _whole(ticks: Fraction) -> int:
    """The whole ticks in a duration: what it takes at least."""
    return ticks.numerator // ticks.denominator
