"""One pass of Algorithms 1 to 3 of paper 000, of first fit and of random fit, in compiled code.

A pass takes jobs in a given order; the head job starts in the first slot in which it finds its GPUs, and nobody
overtakes it. What limits a pass is theta: a GPU takes a job only if its load stays at most theta.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from schedgap.formulations.rar_ddls.dynamics import Integers
from schedgap.formulations.common.compiled import forget_stale
from schedgap.heuristics.rar_ddls import gpus as gpus_module
from schedgap.heuristics.rar_ddls import simulation, workload
from schedgap.heuristics.rar_ddls.gpus import Gpus, order_servers, pop, push, release_servers, select_servers
from schedgap.heuristics.rar_ddls.simulation import DONE, NOW, Running, begin, exit_some
from schedgap.heuristics.rar_ddls.workload import NEVER, Workload

forget_stale(__file__, gpus_module.__file__, simulation.__file__, workload.__file__)

LEAST_LOADED, FIRST_FIT, RANDOM = 0, 1, 2
COMPLETE, BROKEN_OFF, ABANDONED = 0, 1, 2
MAKESPAN, LARGEST, HIGH, ATTEMPTS_2, ATTEMPTS_3 = 0, 1, 2, 3, 4


class Plan(NamedTuple):
    """What the passes of one search have in common; arrays that compiled code reads.

    Attributes
    ----------
    order : (J,) jobs in the order in which they are taken
    weights : (J,) what a job adds to the load of its GPUs
    need : (J,) GPUs that the servers selected by Algorithm 3 must have, min(ceil(lambda G_j), N)
    longest, area : (J + 1,) of the jobs from a place in the order on: the largest best duration, and the
        sum of G_j times best duration
    row : (J + 1,) the GPUs of job j are written to row[j]..row[j+1]-1
    draws : (2 sum G_j,) numbers in [0, 1) for random fit, else empty
    """

    order: Integers
    weights: Integers
    need: Integers
    longest: Integers
    area: Integers
    row: Integers
    draws: npt.NDArray[np.float64]


@numba.njit(cache=True)
def _place(work: Workload, run: Running, plan: Plan, gpus: Gpus, job: int) -> int:
    """Start a job on the GPUs in `taken`; returns the largest load that they have afterwards."""
    low = plan.row[job]
    chosen = gpus.taken[low : low + work.gangs[job]]
    chosen.sort()
    used = 0
    largest = 0
    entry = work.row[job] - 1
    for g in chosen:
        server = gpus.server_of[g]
        if used == 0 or run.servers[entry] != server:
            entry += 1
            used += 1
            run.servers[entry] = server
            run.amounts[entry] = 0
        run.amounts[entry] += 1
        gpus.busy[g] = True
        gpus.load[g] += plan.weights[job]
        gpus.total[server] += plan.weights[job]
        largest = max(largest, gpus.load[g])
    run.used[job] = used
    begin(work, run, job)
    return int(largest)


@numba.njit(cache=True)
def _take_least(gpus: Gpus, keys: int, out: Integers) -> None:
    """The first of `keys` sorted keys in `scratch` as GPU indices."""
    some = gpus.scratch[:keys]
    some.sort()
    for k in range(out.size):
        out[k] = some[k] % gpus.load.size


@numba.njit(cache=True)
def _take_pool(gpus: Gpus, room: int, out: Integers) -> bool:
    """Move the least loaded idle GPUs, ties by index, from the pool to `out`, if their loads are at most `room`."""
    count = gpus.load.size
    size = gpus.pool_size[0]
    if size < out.size:
        return False
    taken = 0
    while taken < out.size and gpus.pool[0] // count <= room:
        out[taken] = pop(gpus.pool, size)
        size -= 1
        taken += 1
    if taken < out.size:
        for k in range(taken):
            push(gpus.pool, size, out[k])
            size += 1
        return False
    for k in range(taken):
        out[k] %= count
    gpus.pool_size[0] = size
    return True


@numba.njit(cache=True)
def _take_first(gpus: Gpus, room: int, out: Integers) -> None:
    """Idle GPUs with a load of at most `room` and the lowest indices."""
    count = 0
    g = 0
    while count < out.size:
        if not gpus.busy[g] and gpus.load[g] <= room:
            out[count] = g
            count += 1
        g += 1


@numba.njit(cache=True)
def _take_random(work: Workload, gpus: Gpus, room: int, draws: npt.NDArray[np.float64], out: Integers) -> None:
    """Each GPU in turn: a random server that still has available GPUs, then a random one of these."""
    servers = gpus.total.size
    left = np.zeros(servers, dtype=np.int64)
    for g in range(gpus.load.size):
        if not gpus.busy[g] and gpus.load[g] <= room:
            left[gpus.server_of[g]] += 1
    some = np.flatnonzero(left)
    count = some.size
    for k in range(out.size):
        at = int(draws[2 * k] * count)
        server = some[at]
        rank = int(draws[2 * k + 1] * left[server])
        g = work.first[server] - 1
        while rank >= 0:
            g += 1
            if not gpus.busy[g] and gpus.load[g] <= room:
                rank -= 1
        out[k] = g
        gpus.busy[g] = True
        left[server] -= 1
        if left[server] == 0:
            some[at : count - 1] = some[at + 1 : count].copy()
            count -= 1


@numba.njit(cache=True)
def run_pass(
    work: Workload,
    plan: Plan,
    run: Running,
    gpus: Gpus,
    policy: int,
    kappa: int,
    limit: int,
    beat: int,
    literal: bool,
    facts: Integers,
) -> int:
    """One pass over all jobs.

    Parameters
    ----------
    work, plan : what is to be scheduled
    run, gpus : an empty cluster; hold the schedule afterwards
    policy : LEAST_LOADED (Algorithm 2 for G_j <= kappa, Algorithm 3 otherwise; jobs with G_j <= kappa come
        first in the order), FIRST_FIT or RANDOM
    limit : the largest load a GPU may get (theta), NEVER for none
    beat : the pass is of no use unless its makespan is smaller
    literal : wait as printed, and try again after every exit, even where neither can help
    facts : (5,) filled with the makespan, the largest load, the smallest load that theta kept a GPU from
        (NEVER for none), and how often Algorithms 2 and 3 looked for GPUs

    Returns
    -------
    COMPLETE; BROKEN_OFF where a job never finds its GPUs or something stalls for ever; ABANDONED where the
    makespan is at least `beat`. With the same `beat`, the outcome is the same for every limit from the largest
    load up to, not including, the smallest load that was kept off.

    Notes
    -----
    Exact-preserving: a job that too few GPUs can ever take is detected before waiting, and the GPUs that become
    available are counted, so that a selection is made only when it succeeds. O(sum_j G_j log N + J log J)
    for Algorithm 2 when theta does not bind, plus the rings that contend; first and random fit look through all
    GPUs once for a job.
    """
    jobs, count = work.gangs.size, gpus.load.size
    gone = np.empty(jobs, dtype=np.int64)
    pooled = policy == LEAST_LOADED
    by_server = False
    top = 0
    high = NEVER
    largest = 0
    facts[:] = 0
    drawn = 0
    for at in range(jobs):
        job = plan.order[at]
        size, weight = work.gangs[job], plan.weights[job]
        room = limit - weight
        third = policy == LEAST_LOADED and size > kappa
        if third and not by_server:
            by_server, pooled = True, False
            order_servers(work, gpus)
        out = gpus.taken[plan.row[job] : plan.row[job] + size]
        # Count what is available now; `reach` counts busy GPUs too.
        heap_size = 0
        available = reach = 0
        placed = pooled and not third and _take_pool(gpus, room, out)
        if third:
            heap_size = select_servers(work, gpus, plan.need[job])
            for k in range(heap_size, gpus.servers.size):
                server = gpus.servers[k]
                for g in range(work.first[server], work.first[server + 1]):
                    if gpus.load[g] <= room:
                        reach += 1
                        available += not gpus.busy[g]
                    else:
                        high = min(high, gpus.load[g] + weight)
        elif placed:
            available = reach = size
        elif pooled and top <= room:
            reach = count
            available = gpus.pool_size[0]
        else:
            for g in range(count):
                if gpus.load[g] <= room:
                    reach += 1
                    available += not gpus.busy[g]
                    if policy == FIRST_FIT and available == size:
                        break  # the first ones are taken, whatever follows
                else:
                    high = min(high, gpus.load[g] + weight)
        attempts = 1
        hopeless = reach < size
        facts[HIGH] = high
        while available < size and (literal or not hopeless):
            if not literal:
                bound = max(plan.longest[at], (plan.area[at] + count - 1) // count)
                if run.clock[NOW] + bound >= beat:  # this job and all later ones start after this slot
                    return ABANDONED
            exits = exit_some(work, run, gone)
            if exits == 0:
                break
            if run.clock[NOW] - 1 >= beat and not literal:
                return ABANDONED
            attempts += 1
            for k in range(exits):
                low = plan.row[gone[k]]
                for g in gpus.taken[low : low + work.gangs[gone[k]]]:
                    gpus.busy[g] = False
                    if pooled:
                        push(gpus.pool, gpus.pool_size[0], gpus.load[g] * count + g)
                        gpus.pool_size[0] += 1
                    if gpus.load[g] <= room and (not third or gpus.selected[gpus.server_of[g]]):
                        available += 1
        facts[ATTEMPTS_3 if third else ATTEMPTS_2] += attempts
        if available < size:
            return BROKEN_OFF
        if third:
            keys = 0
            for k in range(heap_size, gpus.servers.size):
                server = gpus.servers[k]
                for g in range(work.first[server], work.first[server + 1]):
                    if not gpus.busy[g] and gpus.load[g] <= room:
                        gpus.scratch[keys] = gpus.load[g] * count + g
                        keys += 1
            _take_least(gpus, keys, out)
        elif pooled:
            if not placed:
                _take_pool(gpus, room, out)
        elif policy == FIRST_FIT:
            _take_first(gpus, room, out)
        else:
            _take_random(work, gpus, room, plan.draws[drawn : drawn + 2 * size], out)
            drawn += 2 * size
        loaded = _place(work, run, plan, gpus, job)
        top = max(top, loaded)
        largest = max(largest, loaded)
        facts[LARGEST] = largest
        if third:
            release_servers(work, gpus, heap_size)
        if run.clock[NOW] - 1 + work.best[job] >= beat and not literal:
            return ABANDONED
    while run.clock[DONE] < jobs:
        if exit_some(work, run, gone) == 0:
            return BROKEN_OFF
        if run.clock[NOW] - 1 >= beat and not literal:
            return ABANDONED
    facts[MAKESPAN] = run.clock[NOW] - 1
    return COMPLETE
