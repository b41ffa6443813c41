"""What the compiled simulator works on: tables of jobs, workers, GPUs and servers, and lists of them.

The tables are structured arrays: compiled code reads and writes their fields in place. The fields are in ticks,
MB, and positions in other tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.compiled import njit_inline

Table = Any
"""A structured array with the fields of JOB, WORKER, GPU or SERVER."""


NEVER = 2**62


FORWARD_READY, IN_FORWARD, BACKWARD_READY, IN_BACKWARD, AT_BARRIER = range(5)
"""States of a worker; before its job is placed it is at the barrier."""


NO_MESSAGE, WAITING, IN_LATENCY, TRANSFERRING = range(4)
"""States of a job's all-reduce."""


DIRTY, QUEUED, ASKED, BEGINNING, CHANGED, CANDIDATES, ENDED, ASLEEP, SCRATCH = range(9)
"""Rows of `lists`: GPUs to look at; jobs in the queue, in SRSF order; and of the present tick: all-reduces to ask,
those that begin to transfer, servers whose transfers changed, jobs that may stride, jobs whose iteration ended;
roots of components that have skipped cycles; working memory. The first entry of a row is its length."""


MESSAGES, JUMPS, SKIPPED, HELD, RELEASED = range(5)
"""Entries of `counts`: rows of `messages` and of `jumps` in use, cycles skipped, the tick that no skip may pass, and
whether a job that stood still goes on at this tick."""


_WHOLE = (
    *("arrival", "iterations", "forward", "backward", "transfer", "solo", "memory", "task_base"),
    *("first_worker", "width"),  # its workers
    *("key", "place"),  # the tick of its next event, and where it stands in the heap
    *("service", "iteration", "at_barrier"),  # remaining service, iterations done, workers at the barrier
    *("stride", "stride_start"),  # iterations that it runs through as one event, or 0; from when on
    *("started", "started_at"),  # how many workers began a forward task at the last tick at which one did,
    "alone",  # and how many of them on a GPU without another ready task
    *("message_state", "since", "level", "asked_at"),  # `left` counts from `since`, among `level`; last barrier
    *("admitted", "dispatched"),  # when its all-reduce was, and the last of its tasks that is no part of a stride
    "shared_at",  # the last tick at which its `level` was looked at
    "spread",  # on how many servers it is; they are in the field `server` of its first workers
    *("finish", "placed"),
)


JOB = np.dtype([*((name, np.int64) for name in _WHOLE), ("left", np.float64)])


WORKER = np.dtype(
    [
        *((name, np.int64) for name in ("job", "gpu", "state", "end", "after", "before")),
        *((name, np.int64) for name in ("server", "wait_after", "wait_before", "kept_state", "kept_end")),
        ("draws", np.float64),
    ]
)
"""``after`` and ``before``: its neighbours on its GPU; ``draws``: a number in [0, 1) for the placement ``rand``.
The k-th worker of a job also stands for the k-th server of the job: ``server``, and, while the job's all-reduce
waits, its neighbours ``wait_after`` and ``wait_before`` among those that wait there. ``kept_state``, ``kept_end``: see
CYCLE."""


CYCLE = np.dtype(
    [
        *((name, np.int64) for name in ("root", "next", "parent", "still", "releases")),
        *((name, np.int64) for name in ("kept_iteration", "kept_service", "kept_key", "kept_message", "kept_since")),
        *((name, np.int64) for name in ("kept_level", "kept_phase", "iterations", "service")),
        *((name, np.int64) for name in ("first", "size", "leader", "kept_at", "patience", "limit")),
        *((name, np.int64) for name in ("until", "period", "row", "listed", "before")),
        ("kept_left", np.float64),
    ]
)
"""Columns per job: ``root``, first job of its component, ``next``, next one in it, ``still``, whether it is of none,
``releases``, how often it no longer was; the state that is kept of it (ticks relative to ``kept_at``); ``iterations``
and ``service``, what a cycle takes of it. By root: ``first`` and ``size`` of the component, the ``leader`` whose
iteration ended when its state was kept, when that was, how many iterations have ended since (``patience``) and after
how many another state is kept; ``until`` when it has skipped cycles of ``period``, the first of its rows in `jumps`,
whether it is among ASLEEP; ``before`` is working memory of finding components."""


GPU = np.dtype([(name, np.int64) for name in ("server", "task", "free", "weight", "head", "dirty", "room", "taken")])
"""``task``: its worker or -1; ``head``: the first worker placed on it; ``dirty``: whether it is on the list.
``room`` (a list) and ``taken`` are working memory of placing."""


SERVER = np.dtype(
    [
        (name, np.int64)
        for name in ("first_gpu", "size", "active", "transfers", "changed_on", "wait_head", "total", "passed", "user")
    ]
)
"""``changed_on``: the last tick at which ``transfers`` changed; ``wait_head``: the first all-reduce that waits;
``total`` and ``passed`` are working memory of placing, ``user`` of finding components."""


class Rules(NamedTuple):
    """The link, the scheduling (limit, adaptive, first_server), the placement, and how to run.

    ``first_server``: AdaDUAL compares with the message on the first busy server of the job, as lines 3 to 7 of
    Algorithm 2 are printed, where a second one of the same count is not collected; else with the smallest on any.
    ``shift``: placements weigh services in units of 2^shift ticks, so that a server's sum stays in range.
    ``strides``: whether to fast-forward; ``cycles``: whether to skip them; ``record``: whether to keep the times of
    compute tasks.
    """

    latency: int
    pair_factor: float
    slowdown: tuple[float, float, float, float, float]
    limit: int
    adaptive: bool
    first_server: bool
    rule: int
    kappa: int
    shift: int
    strides: bool
    cycles: bool
    record: bool


class State(NamedTuple):
    """A cluster in the course of a simulation; the arrays change."""

    # jobs, workers, gpus, servers: tables
    jobs: Table
    cycles: Table
    workers: Table
    gpus: Table
    servers: Table
    links: Ints  # jobs whose all-reduces are active on each server
    lists: Ints  # lists by row, see above
    # a heap of jobs by the tick of their next event: how many they are, then the jobs. ``place`` of a job is its
    # position there, 0 where it has no event; ``key`` is the tick
    events: Ints
    rules: Rules  # the link, the policy and how to run
    # started, ended: of every compute task, where they are recorded; laid out as in the plain simulator's log
    started: Ints
    ended: Ints
    messages: Ints  # a row for each all-reduce that has ended: its job, its admission, its end
    # a row for each job of a component that skipped cycles: the job, the tick, the cycle's length, how many were
    # skipped, how many iterations of the job a cycle has
    jumps: Ints
    counts: Ints  # see above


@njit_inline
def append(state: State, row: int, entry: int) -> None:
    """Add an entry to a list."""
    lists = state.lists
    lists[row, 0] += 1
    lists[row, lists[row, 0]] = entry


@njit_inline
def look_at(state: State, gpu: int) -> None:
    """Have a GPU looked at in the dispatch of this tick."""
    lists = state.lists
    if state.gpus[gpu].dirty == 0:
        state.gpus[gpu].dirty = 1
        lists[DIRTY, 0] += 1
        lists[DIRTY, lists[DIRTY, 0]] = gpu


@njit_inline
def comes_before(state: State, one: int, other: int) -> bool:
    """SRSF order of jobs."""
    jobs = state.jobs
    return jobs[one].service < jobs[other].service or (jobs[one].service == jobs[other].service and one < other)


@njit_inline
def put(state: State, job: int, tick: int) -> None:
    """Set the event of `job` to `tick`, whether it has one or not."""
    jobs, heap = state.jobs, state.events
    before = jobs[job].key
    jobs[job].key = tick
    if jobs[job].place == 0:
        heap[0] += 1
        jobs[job].place = heap[0]
        _up(state, job, heap[0])
    elif tick < before:
        _up(state, job, jobs[job].place)
    elif tick > before:
        _down(state, job, jobs[job].place)


@njit_inline
def drop(state: State, job: int) -> None:
    """Take `job` out of the events, among which it is."""
    jobs, heap = state.jobs, state.events
    position = jobs[job].place
    last = heap[heap[0]]
    heap[0] -= 1
    jobs[job].place = 0
    if last != job:
        if jobs[last].key < jobs[job].key:
            _up(state, last, position)
        else:
            _down(state, last, position)


@njit_inline
def _up(state: State, job: int, position: int) -> None:
    jobs, heap = state.jobs, state.events
    while position > 1 and jobs[heap[position // 2]].key > jobs[job].key:
        heap[position] = heap[position // 2]
        jobs[heap[position]].place = position
        position //= 2
    heap[position] = job
    jobs[job].place = position


@njit_inline
def _down(state: State, job: int, position: int) -> None:
    jobs, heap = state.jobs, state.events
    count = heap[0]
    while 2 * position <= count:
        child = 2 * position
        if child < count and jobs[heap[child + 1]].key < jobs[heap[child]].key:
            child += 1
        if jobs[heap[child]].key >= jobs[job].key:
            break
        heap[position] = heap[child]
        jobs[heap[position]].place = position
        position = child
    heap[position] = job
    jobs[job].place = position
