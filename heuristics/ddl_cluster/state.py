"""What the compiled simulator works on: tables of jobs, workers, GPUs and servers, and lists of them.

The tables are structured arrays: compiled code reads and writes their fields in place, and a call passes few
arrays. The fields are in ticks, MB, and positions in other tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Table = Any
"""A structured array with the fields of JOB, WORKER, GPU or SERVER."""
NEVER = 2**62

FORWARD_READY, IN_FORWARD, BACKWARD_READY, IN_BACKWARD, AT_BARRIER = range(5)
"""States of a worker; before its job is placed it is at the barrier."""
NO_MESSAGE, WAITING, IN_LATENCY, TRANSFERRING = range(4)
"""States of a job's all-reduce."""
DIRTY, QUEUED, ASKED, BEGINNING, CHANGED, CANDIDATES = range(6)
"""Rows of `lists`: GPUs to look at; jobs in the queue, in SRSF order; and of the present tick: all-reduces to ask,
those that begin to transfer, servers whose transfers changed, jobs that may stride. The first entry of a row is
its length."""

_WHOLE = (
    *("arrival", "iterations", "forward", "backward", "solo", "memory", "task_base", "message_base"),
    *("first_worker", "width"),  # its workers
    *("key", "place"),  # the tick of its next event, and where it stands in the heap
    *("service", "iteration", "at_barrier"),  # remaining service, iterations done, workers at the barrier
    *("stride", "stride_start"),  # iterations that it runs through as one event, or 0; from when on
    *("started", "started_at"),  # how many workers began a forward task at the last tick at which one did,
    "alone",  # and how many of them on a GPU without another ready task
    *("message_state", "since", "level", "asked_at"),  # `left` counts from `since`, among `level`; last barrier
    "shared_at",  # the last tick at which its `level` was looked at
    "spread",  # on how many servers it is; they are in the field `server` of its first workers
    *("finish", "placed"),
)
JOB = np.dtype([*((name, np.int64) for name in _WHOLE), ("message", np.float64), ("left", np.float64)])
WORKER = np.dtype(
    [
        *((name, np.int64) for name in ("job", "gpu", "state", "end", "after", "before")),
        *((name, np.int64) for name in ("server", "wait_after", "wait_before")),
        ("draws", np.float64),
    ]
)
"""``after`` and ``before``: its neighbours on its GPU; ``draws``: a number in [0, 1) for the placement ``rand``.
The k-th worker of a job also stands for the k-th server of the job: ``server``, and, while the job's all-reduce
waits, its neighbours ``wait_after`` and ``wait_before`` among those that wait there."""
GPU = np.dtype([(name, np.int64) for name in ("server", "task", "free", "weight", "head", "dirty")])
"""``task``: its worker or -1; ``head``: the first worker placed on it; ``dirty``: whether it is on the list."""
SERVER = np.dtype(
    [(name, np.int64) for name in ("first_gpu", "size", "active", "transfers", "changed_on", "wait_head")]
)
"""``changed_on``: the last tick at which ``transfers`` changed; ``wait_head``: the first all-reduce that waits."""


class Rules(NamedTuple):
    """The link, the scheduling (limit, adaptive), the placement, and how to run.

    ``shift``: placements weigh services in units of 2^shift ticks, so that a server's sum stays in range.
    ``strides``: whether to fast-forward; ``record``: whether to keep the times of compute tasks.
    """

    latency: int
    pair_cost: float
    unit_cost: float
    ticks_per_unit: tuple[float, float, float, float]
    limit: int
    adaptive: bool
    rule: int
    kappa: int
    shift: int
    strides: bool
    record: bool


@numba.njit(cache=True, inline="always")
def append(lists: Ints, row: int, entry: int) -> None:
    """Add an entry to a list."""
    lists[row, 0] += 1
    lists[row, lists[row, 0]] = entry


@numba.njit(cache=True, inline="always")
def look_at(gpus: Table, lists: Ints, gpu: int) -> None:
    """Have a GPU looked at in the dispatch of this tick."""
    if gpus[gpu].dirty == 0:
        gpus[gpu].dirty = 1
        lists[DIRTY, 0] += 1
        lists[DIRTY, lists[DIRTY, 0]] = gpu


@numba.njit(cache=True, inline="always")
def comes_before(jobs: Table, one: int, other: int) -> bool:
    """SRSF order of jobs."""
    return jobs[one].service < jobs[other].service or (jobs[one].service == jobs[other].service and one < other)
