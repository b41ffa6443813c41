"""A binary heap of jobs by the tick of their next event, whose entries can be moved; compiled."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Table = Any


@numba.njit(cache=True)
def put(heap: Ints, jobs: Table, job: int, tick: int) -> None:
    """Set the event of `job` to `tick`, whether it has one or not.

    Parameters
    ----------
    heap : number of entries, then the jobs in heap order
    jobs : ``place`` is the position in `heap`, 0 where the job has no event; ``key`` is the tick of its event
    """
    before = jobs[job].key
    jobs[job].key = tick
    if jobs[job].place == 0:
        heap[0] += 1
        jobs[job].place = heap[0]
        _up(heap, jobs, job, heap[0])
    elif tick < before:
        _up(heap, jobs, job, jobs[job].place)
    elif tick > before:
        _down(heap, jobs, job, jobs[job].place)


@numba.njit(cache=True)
def drop(heap: Ints, jobs: Table, job: int) -> None:
    """Take `job` out, which has an event."""
    position = jobs[job].place
    last = heap[heap[0]]
    heap[0] -= 1
    jobs[job].place = 0
    if last != job:
        if jobs[last].key < jobs[job].key:
            _up(heap, jobs, last, position)
        else:
            _down(heap, jobs, last, position)


@numba.njit(cache=True)
def _up(heap: Ints, jobs: Table, job: int, position: int) -> None:
    while position > 1 and jobs[heap[position // 2]].key > jobs[job].key:
        heap[position] = heap[position // 2]
        jobs[heap[position]].place = position
        position //= 2
    heap[position] = job
    jobs[job].place = position


@numba.njit(cache=True)
def _down(heap: Ints, jobs: Table, job: int, position: int) -> None:
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
