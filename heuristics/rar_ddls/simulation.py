"""Jobs running under contention, event by event, in compiled code (paper 000, equations (6) to (9)).

The placement algorithms start jobs and ask for the next exits; rates are brought up to date only where a ring
came or went. Compiled functions are cached on disk.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from schedgap.formulations.rar_ddls.dynamics import Integers
from schedgap.heuristics.common.compiled import forget_stale
from schedgap.heuristics.rar_ddls import workload
from schedgap.heuristics.rar_ddls.workload import NEVER, Workload

forget_stale(__file__, workload.__file__)

NOW, HEAP_SIZE, DIRTY, DONE = 0, 1, 2, 3


class Running(NamedTuple):
    """What runs; arrays that compiled code changes.

    Attributes
    ----------
    clock : (4,) the current slot, jobs in the heap, jobs to look at, completed jobs
    left, rate, since, finish : (J,) iterations left at the start of slot `since`, at this rate from then on;
        `finish` is the last slot if nothing changes, NEVER at rate 0
    heap, place : (J,) running jobs as a binary heap by `finish`; the position of each in it, -1 for none
    used : (J,) servers that the job uses
    servers, amounts : (row[J],) these servers, rising, and the GPUs on each, from row[j] on
    rings : (S,) running jobs that cross each server
    crossing : (ring[S],) their entries in `servers`, from ring[s] on
    position : (row[J],) where an entry stands in `crossing`
    dirty : (J,) jobs whose contention may have changed; `is_dirty`: (J,) marks
    start, completion : (J,) slots; 0 before they are known
    """

    clock: Integers
    left: Integers
    rate: Integers
    since: Integers
    finish: Integers
    heap: Integers
    place: Integers
    used: Integers
    servers: Integers
    amounts: Integers
    rings: Integers
    crossing: Integers
    position: Integers
    dirty: Integers
    is_dirty: npt.NDArray[np.bool_]
    start: Integers
    completion: Integers


def new_running(work: Workload) -> Running:
    """An empty cluster in slot 1."""
    jobs, entries, servers = work.gangs.size, work.owner.size, work.sizes.size

    def zeros(length: int) -> Integers:
        return np.zeros(length, dtype=np.int64)

    clock = zeros(4)
    clock[NOW] = 1
    return Running(
        clock=clock,
        left=work.iterations.copy(),
        rate=zeros(jobs) - 1,
        since=zeros(jobs),
        finish=zeros(jobs),
        heap=zeros(jobs),
        place=zeros(jobs) - 1,
        used=zeros(jobs),
        servers=zeros(entries),
        amounts=zeros(entries),
        rings=zeros(servers),
        crossing=zeros(int(work.ring[-1])),
        position=zeros(entries),
        dirty=zeros(jobs),
        is_dirty=np.zeros(jobs, dtype=np.bool_),
        start=zeros(jobs),
        completion=zeros(jobs),
    )


@numba.njit(cache=True)
def _sift_up(run: Running, at: int) -> None:
    job = run.heap[at]
    key = run.finish[job]
    while at > 0:
        parent = (at - 1) >> 1
        other = run.heap[parent]
        if run.finish[other] <= key:
            break
        run.heap[at] = other
        run.place[other] = at
        at = parent
    run.heap[at] = job
    run.place[job] = at


@numba.njit(cache=True)
def _sift_down(run: Running, at: int) -> None:
    size = run.clock[HEAP_SIZE]
    job = run.heap[at]
    key = run.finish[job]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and run.finish[run.heap[child + 1]] < run.finish[run.heap[child]]:
            child += 1
        other = run.heap[child]
        if run.finish[other] >= key:
            break
        run.heap[at] = other
        run.place[other] = at
        at = child
    run.heap[at] = job
    run.place[job] = at


@numba.njit(cache=True)
def _mark_server(work: Workload, run: Running, server: int) -> None:
    """Note every job that crosses `server` as one whose contention may have changed."""
    # Written out, not a function for one job: a call costs more than a mark, as it counts references to all arrays.
    is_dirty, dirty, crossing, owner = run.is_dirty, run.dirty, run.crossing, work.owner
    count = run.clock[DIRTY]
    low = work.ring[server]
    for k in range(low, low + run.rings[server]):
        job = owner[crossing[k]]
        if not is_dirty[job]:
            is_dirty[job] = True
            dirty[count] = job
            count += 1
    run.clock[DIRTY] = count


@numba.njit(cache=True)
def begin(work: Workload, run: Running, job: int) -> None:
    """Start a job now; `used`, `servers` and `amounts` of it are filled in already."""
    run.start[job] = run.clock[NOW]
    run.since[job] = run.clock[NOW]
    run.finish[job] = NEVER
    at = run.clock[HEAP_SIZE]
    run.clock[HEAP_SIZE] += 1
    run.heap[at] = job
    run.place[job] = at
    run.is_dirty[job] = True
    run.dirty[run.clock[DIRTY]] = job
    run.clock[DIRTY] += 1
    if run.used[job] > 1:
        for entry in range(work.row[job], work.row[job] + run.used[job]):
            server = run.servers[entry]
            _mark_server(work, run, server)
            at = work.ring[server] + run.rings[server]
            run.crossing[at] = entry
            run.position[entry] = at
            run.rings[server] += 1


@numba.njit(cache=True)
def _settle(work: Workload, run: Running) -> None:
    """Bring every job whose contention may have changed up to the start of the current slot."""
    now = run.clock[NOW]
    for k in range(run.clock[DIRTY]):
        job = run.dirty[k]
        run.is_dirty[job] = False
        if run.place[job] < 0:
            continue
        row, used = work.row[job], run.used[job]
        most = 0  # p_j of eq. (6); 0 for a ring inside one server
        if used > 1:
            for entry in range(row, row + used):
                most = max(most, run.rings[run.servers[entry]])
        rate = work.rates[row + used - 1, most]
        if rate == run.rate[job]:
            continue
        if run.rate[job] > 0:
            run.left[job] -= run.rate[job] * (now - run.since[job])
        run.since[job] = now
        run.rate[job] = rate
        before = run.finish[job]
        run.finish[job] = now + (run.left[job] + rate - 1) // rate - 1 if rate > 0 else NEVER
        if run.finish[job] < before:
            _sift_up(run, run.place[job])
        elif run.finish[job] > before:
            _sift_down(run, run.place[job])
    run.clock[DIRTY] = 0


@numba.njit(cache=True)
def _leave(work: Workload, run: Running, job: int) -> None:
    for entry in range(work.row[job], work.row[job] + run.used[job]):
        server = run.servers[entry]
        run.rings[server] -= 1
        last = run.crossing[work.ring[server] + run.rings[server]]
        run.crossing[run.position[entry]] = last
        run.position[last] = run.position[entry]
        _mark_server(work, run, server)


@numba.njit(cache=True)
def exit_some(work: Workload, run: Running, gone: Integers) -> int:
    """Advance the clock to the slot after the next completion.

    Writes the jobs that complete to the head of `gone` and returns how many they are; 0 where nothing runs or
    nothing that runs ever completes.
    """
    _settle(work, run)
    if run.clock[HEAP_SIZE] == 0 or run.finish[run.heap[0]] == NEVER:
        return 0
    slot = run.finish[run.heap[0]]
    count = 0
    while run.clock[HEAP_SIZE] > 0 and run.finish[run.heap[0]] == slot:
        job = run.heap[0]
        run.clock[HEAP_SIZE] -= 1
        run.place[job] = -1
        last = run.heap[run.clock[HEAP_SIZE]]
        if last != job:
            run.heap[0] = last
            _sift_down(run, 0)
        run.completion[job] = slot
        gone[count] = job
        count += 1
    for k in range(count):
        if run.used[gone[k]] > 1:
            _leave(work, run, gone[k])
    run.clock[NOW] = slot + 1
    run.clock[DONE] += count
    return count
