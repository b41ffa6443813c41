"""One pass of the colocating list scheduler, in compiled code."""

from __future__ import annotations

import numba
import numpy as np

from schedgap.formulations.rar_ddls.dynamics import Integers
from schedgap.formulations.common.compiled import forget_stale
from schedgap.heuristics.rar_ddls import simulation, workload
from schedgap.heuristics.rar_ddls.simulation import DONE, NOW, Running, begin, exit_some
from schedgap.heuristics.rar_ddls.workload import Workload

forget_stale(__file__, simulation.__file__, workload.__file__)

COMPLETE, STALLED, ABANDONED = 0, 1, 2


@numba.njit(cache=True)
def _best_fit(idle: Integers, size: int) -> int:
    """The server with the fewest idle GPUs among those with at least `size`, ties by index; -1 for none."""
    best = -1
    for server in range(idle.size):
        if idle[server] >= size and (best < 0 or idle[server] < idle[best]):
            best = server
            if idle[server] == size:
                break
    return best


@numba.njit(cache=True)
def _spread(work: Workload, run: Running, idle: Integers, job: int, quiet: bool) -> int:
    """Write a placement of `job` on few servers, or on few servers with few rings; returns how many, 0 for none.

    Servers with the most idle GPUs first (with `quiet`: those with the fewest rings first); what is left over
    goes to the server that it fits best.
    """
    size = work.gangs[job]
    servers = idle.size
    key = np.empty(servers, dtype=np.int64)
    total = 0
    for server in range(servers):
        total += idle[server]
        key[server] = -idle[server]
        if quiet:
            key[server] += run.rings[server] * (size + work.sizes[server] + 1)
    if total < size:
        return 0
    order = np.argsort(key, kind="mergesort")
    low = work.row[job]
    used = 0
    left = size
    for server in order:
        if idle[server] == 0:
            continue
        if used == min(size, servers):
            return 0
        if idle[server] >= left:
            if not quiet:
                last = -1
                for other in range(servers):
                    taken = False
                    for k in range(used):
                        taken = taken or run.servers[low + k] == other
                    if not taken and idle[other] >= left and (last < 0 or idle[other] < idle[last]):
                        last = other
                server = last
            run.servers[low + used] = server
            run.amounts[low + used] = left
            return used + 1
        run.servers[low + used] = server
        run.amounts[low + used] = idle[server]
        left -= idle[server]
        used += 1
    return 0


@numba.njit(cache=True)
def _tolerable(work: Workload, run: Running, job: int, used: int, slack: float) -> bool:
    """Whether a ring on the first `used` servers written for `job` is fast enough, and stalls nobody.

    Fast enough: with the rings that are there now, at most `slack` times the best duration.
    """
    low = work.row[job]
    most = 0
    for k in range(low, low + used):
        most = max(most, run.rings[run.servers[k]] + 1)
    rate = work.rates[low + used - 1, most]
    if rate == 0 or (work.iterations[job] + rate - 1) // rate > slack * work.best[job]:
        return False
    for k in range(low, low + used):
        server = run.servers[k]
        for at in range(work.ring[server], work.ring[server] + run.rings[server]):
            other = work.owner[run.crossing[at]]
            crowd = run.rings[server] + 1
            if work.rates[work.row[other] + run.used[other] - 1, crowd] == 0:
                return False
    return True


@numba.njit(cache=True)
def list_pass(
    work: Workload, run: Running, order: Integers, kind: Integers, kinds: int, slack: float, beat: int
) -> int:
    """Start, whenever jobs have left, every job that may start, in this order.

    Parameters
    ----------
    work : what is to be scheduled
    run : an empty cluster; holds the schedule afterwards
    order : (J,) jobs
    kind : (J,) jobs of the same number of GPUs have the same number in 0..kinds-1
    slack : a job may cross servers when it would then take at most this factor times its best duration
    beat : the pass is of no use unless its makespan is smaller

    Returns
    -------
    COMPLETE, ABANDONED (the makespan is at least `beat`) or STALLED (which cannot happen where every job makes
    progress alone: no job is started that would stall, or stall another).
    """
    jobs, servers = work.gangs.size, work.sizes.size
    idle = work.sizes.copy()
    gone = np.empty(jobs, dtype=np.int64)
    # Jobs of one kind queue up in the order given: if the first does not find room, the next does not either.
    queue = np.empty(jobs, dtype=np.int64)
    first = np.zeros(kinds + 1, dtype=np.int64)
    for job in order:
        first[kind[job] + 1] += 1
    for k in range(kinds):
        first[k + 1] += first[k]
    end = first[:kinds].copy()
    rank = np.empty(jobs, dtype=np.int64)
    for at in range(jobs):
        job = order[at]
        rank[job] = at
        queue[end[kind[job]]] = job
        end[kind[job]] += 1
    head = first[:kinds].copy()
    closed = np.zeros(kinds, dtype=np.bool_)
    waiting = jobs
    while waiting > 0:
        closed[:] = False
        while True:
            pick = -1
            for k in range(kinds):
                if not closed[k] and head[k] < end[k] and (pick < 0 or rank[queue[head[k]]] < rank[queue[head[pick]]]):
                    pick = k
            if pick < 0:
                break
            job = queue[head[pick]]
            size = work.gangs[job]
            low = work.row[job]
            used = 0
            server = _best_fit(idle, size)
            if server >= 0 and work.rates[low, 0] > 0:
                run.servers[low] = server
                run.amounts[low] = size
                used = 1
            elif slack > 0 and servers > 1 and size > 1:
                used = _spread(work, run, idle, job, False)
                if used > 1 and not _tolerable(work, run, job, used, slack):
                    used = _spread(work, run, idle, job, True)
                    if used > 1 and not _tolerable(work, run, job, used, slack):
                        used = 0
                elif used == 1:
                    used = 0
            if used == 0:
                closed[pick] = True
                continue
            run.used[job] = used
            for k in range(low, low + used):
                idle[run.servers[k]] -= run.amounts[k]
            begin(work, run, job)
            head[pick] += 1
            waiting -= 1
            if run.clock[NOW] - 1 + work.best[job] >= beat:
                return ABANDONED
        if waiting > 0:
            exits = exit_some(work, run, gone)
            if exits == 0:
                return STALLED
            if run.clock[NOW] - 1 >= beat:
                return ABANDONED
            for e in range(exits):
                low = work.row[gone[e]]
                for k in range(low, low + run.used[gone[e]]):
                    idle[run.servers[k]] += run.amounts[k]
    while run.clock[DONE] < jobs:
        if exit_some(work, run, gone) == 0:
            return STALLED
        if run.clock[NOW] - 1 >= beat:
            return ABANDONED
    return COMPLETE
