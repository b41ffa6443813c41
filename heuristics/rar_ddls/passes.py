"""One pass of Algorithms 1 to 3 of paper 000, of first fit and of random fit, in compiled code.

A pass takes jobs in a given order; the head job starts in the first slot in which it finds its GPUs, and nobody
overtakes it. What limits a pass is theta: a GPU takes a job only if its load stays at most theta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schedgap.formulations.common.compiled import njit_inline, njit_inner, njit_kernel
from schedgap.formulations.rar_ddls.rates import Integers
from schedgap.formulations.rar_ddls.running import DONE, FAR, HEAP, NOW, RUNNING, Workload, begin, clear, exit_some
from schedgap.heuristics.rar_ddls.loads import Gpus, order_servers, pop, push, release_servers, select_servers

LEAST_LOADED, FIRST_FIT, RANDOM = 0, 1, 2


COMPLETE, BROKEN_OFF, ABANDONED = 0, 1, 2


MAKESPAN, LARGEST, HIGH, ATTEMPTS_2, ATTEMPTS_3 = 0, 1, 2, 3, 4


TOO_LATE = -1


class Plan(NamedTuple):
    """What the passes of one search have in common; arrays that compiled code reads."""

    order: Integers  # (J,) jobs in the order in which they are taken
    weights: Integers  # (J,) what a job adds to the load of its GPUs
    need: Integers  # (J,) GPUs that the servers selected by Algorithm 3 must have, min(ceil(lambda G_j), N)
    # longest, area: (J + 1,) of the jobs from a place in the order on: the largest best duration, and the sum of G_j
    # times best duration
    longest: Integers
    area: Integers
    row: Integers  # (J + 1,) the GPUs of job j are written to row[j]..row[j+1]-1
    draws: npt.NDArray[np.float64]  # (2 sum G_j,) numbers in [0, 1) for random fit, else empty


@njit_kernel
def _place(work: Workload, plan: Plan, gpus: Gpus, j: int) -> int:
    """Start a job on the GPUs in `taken`; returns the largest load that they have afterwards."""
    chosen = gpus.taken[plan.row[j] : plan.row[j + 1]]
    for k in range(chosen.size):
        push(gpus.scratch, k, chosen[k])
    for k in range(chosen.size):
        chosen[k] = pop(gpus.scratch, chosen.size - k)
    used = 0
    largest = 0
    entries, e = work.entries, work.jobs[j].row - 1
    for g in chosen:
        server = gpus.server_of[g]
        if used == 0 or entries[e].server != server:
            e += 1
            used += 1
            entries[e].server = server
            entries[e].gpus = 0
        entries[e].gpus += 1
        gpus.busy[g] = True
        gpus.load[g] += plan.weights[j]
        gpus.total[server] += plan.weights[j]
        largest = max(largest, gpus.load[g])
    work.jobs[j].used = used
    begin(work, j)
    return int(largest)


@njit_inner
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


@njit_inner
def _take_first(gpus: Gpus, room: int, out: Integers) -> None:
    """Idle GPUs with a load of at most `room` and the lowest indices."""
    count = 0
    g = 0
    while count < out.size:
        if not gpus.busy[g] and gpus.load[g] <= room:
            out[count] = g
            count += 1
        g += 1


@njit_inner
def _take_random(work: Workload, gpus: Gpus, room: int, draws: npt.NDArray[np.float64], out: Integers) -> None:
    """Each GPU in turn: a random server that still has available GPUs, then a random one of these."""
    remaining, some = gpus.scratch, gpus.pool  # by server; the pool is not used here
    for server in range(gpus.total.size):
        remaining[server] = 0
    for g in range(gpus.load.size):
        if not gpus.busy[g] and gpus.load[g] <= room:
            remaining[gpus.server_of[g]] += 1
    count = 0
    for server in range(gpus.total.size):
        if remaining[server] > 0:
            some[count] = server
            count += 1
    for k in range(out.size):
        at = int(draws[2 * k] * count)
        server = some[at]
        rank = int(draws[2 * k + 1] * remaining[server])
        g = work.servers[server].first - 1
        while rank >= 0:
            g += 1
            if not gpus.busy[g] and gpus.load[g] <= room:
                rank -= 1
        out[k] = g
        gpus.busy[g] = True
        remaining[server] -= 1
        if remaining[server] == 0:
            count -= 1
            for later in range(at, count):
                some[later] = some[later + 1]


class Available(NamedTuple):
    """GPUs of a load that leaves room for a job, when its turn comes."""

    idle: int  # how many are free now
    reach: int  # how many there are, busy ones included; fewer than the gang has will never be enough
    high: int  # the smallest load, the job's weight included, that theta kept a GPU from; FAR for none


@njit_inline
def _on_selected(work: Workload, gpus: Gpus, heap_size: int, room: int) -> Available:
    """Algorithm 3: of the servers that were selected, which stand behind the heap."""
    idle = reach = 0
    least = FAR
    for k in range(heap_size, gpus.servers.size):
        server = gpus.servers[k]
        for g in range(work.servers[server].first, work.servers[server + 1].first):
            if gpus.load[g] <= room:
                reach += 1
                idle += not gpus.busy[g]
            else:
                least = min(least, gpus.load[g])
    return Available(idle, reach, least)


@njit_inline
def _on_all(gpus: Gpus, room: int, enough: int) -> Available:
    """The idle GPUs of the whole cluster; counting ends at `enough` idle ones, where the first ones will do."""
    idle = reach = 0
    least = FAR
    for g in range(gpus.load.size):
        if gpus.load[g] <= room:
            reach += 1
            idle += not gpus.busy[g]
            if idle == enough:
                break
        else:
            least = min(least, gpus.load[g])
    return Available(idle, reach, least)


@njit_inline
def _free_last_exits(work: Workload, plan: Plan, gpus: Gpus, exits: int, room: int, pooled: bool, third: bool) -> int:
    """Make the GPUs of the jobs that have just ended idle; how many more the waiting job may use."""
    more = 0
    running = work.clock[RUNNING]
    for k in range(running, running + exits):
        gone = work.lists[HEAP, k]
        for g in gpus.taken[plan.row[gone] : plan.row[gone + 1]]:
            gpus.busy[g] = False
            if pooled:
                push(gpus.pool, gpus.pool_size[0], gpus.load[g] * gpus.load.size + g)
                gpus.pool_size[0] += 1
            if gpus.load[g] <= room and (not third or gpus.selected[gpus.server_of[g]]):
                more += 1
    return more


@njit_inline
def _wait(
    work: Workload,
    plan: Plan,
    gpus: Gpus,
    at: int,
    idle: int,
    room: int,
    beat: int,
    literal: bool,
    pooled: bool,
    third: bool,
) -> tuple[int, int]:
    """Let jobs end until the one at place `at` of the order finds enough of its GPUs idle, or no job runs.

    Returns how many of them are idle now, :data:`TOO_LATE` where the pass cannot beat the best one any more, and exits.
    """
    count, clock, size = gpus.load.size, work.clock, work.jobs[plan.order[at]].gang
    waited = 0
    while idle < size:
        if not literal:
            # This job and all later ones start after this slot.
            bound = max(plan.longest[at], (plan.area[at] + count - 1) // count)
            if clock[NOW] + bound >= beat:
                return TOO_LATE, waited
        exits = exit_some(work)
        if exits == 0:
            break
        if clock[NOW] - 1 >= beat and not literal:
            return TOO_LATE, waited
        waited += 1
        idle += _free_last_exits(work, plan, gpus, exits, room, pooled, third)
    return idle, waited


@njit_inline
def _run_out(work: Workload, beat: int, literal: bool, facts: Integers) -> int:
    """Every job has started: run to the last exit, which is the makespan."""
    clock = work.clock
    while clock[DONE] < work.jobs.size - 1:
        if exit_some(work) == 0:
            return BROKEN_OFF
        if clock[NOW] - 1 >= beat and not literal:
            return ABANDONED
    facts[MAKESPAN] = clock[NOW] - 1
    return COMPLETE


@njit_inline
def _take_selected(work: Workload, gpus: Gpus, heap_size: int, room: int, out: Integers) -> None:
    """Algorithm 3, lines 3 to 5: the least loaded idle GPUs of the selected servers, ties by index."""
    count, keys = gpus.load.size, 0
    for k in range(heap_size, gpus.servers.size):
        server = gpus.servers[k]
        for g in range(work.servers[server].first, work.servers[server + 1].first):
            if not gpus.busy[g] and gpus.load[g] <= room:
                push(gpus.scratch, keys, gpus.load[g] * count + g)
                keys += 1
    for k in range(out.size):
        out[k] = pop(gpus.scratch, keys - k) % count


@njit_kernel
def run_pass(
    # work, plan: what is to be scheduled; `work` holds the schedule afterwards
    work: Workload,
    plan: Plan,
    gpus: Gpus,  # all of them idle
    # LEAST_LOADED (Algorithm 2 for G_j <= kappa, Algorithm 3 otherwise; jobs with G_j <= kappa come first in the
    # order), FIRST_FIT or RANDOM
    policy: int,
    kappa: int,
    limit: int,  # the largest load a GPU may get (theta), FAR for none
    beat: int,  # the pass is of no use unless its makespan is smaller
    literal: bool,  # wait as printed, and try again after every exit, even where neither can help
    # (5,) filled with the makespan, the largest load, the smallest load that theta kept a GPU from (FAR for none), and
    # how often Algorithms 2 and 3 looked for GPUs
    facts: Integers,
) -> int:
    """One pass over all jobs.

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
    jobs, count = plan.order.size, gpus.load.size
    clock = work.clock
    clear(work)
    pooled = policy == LEAST_LOADED  # idle GPUs are in the heap `pool` as long as Algorithm 2 takes from it
    by_server = False
    high, largest, drawn = FAR, 0, 0
    facts[:] = 0
    for at in range(jobs):
        job = plan.order[at]
        size, weight = work.jobs[job].gang, plan.weights[job]
        room = limit - weight
        third = policy == LEAST_LOADED and size > kappa
        if third and not by_server:
            by_server, pooled = True, False
            order_servers(work, gpus)
        out = gpus.taken[plan.row[job] : plan.row[job + 1]]
        # What is there for the head job: Algorithm 2 takes at once where it can; where no load is above `room` the
        # pool's size says all; else GPUs are counted.
        heap_size = 0
        placed = pooled and not third and _take_pool(gpus, room, out)
        if third:
            heap_size = select_servers(work, gpus, plan.need[job])
            there = _on_selected(work, gpus, heap_size, room)
        elif placed:
            there = Available(size, size, FAR)
        elif pooled and largest <= room:
            there = Available(gpus.pool_size[0], count, FAR)
        else:
            there = _on_all(gpus, room, size if policy == FIRST_FIT else count + 1)
        if there.high < FAR:
            high = min(high, there.high + weight)
        facts[HIGH] = high
        idle, attempts = there.idle, 1
        if idle < size and (literal or there.reach >= size):
            idle, more = _wait(work, plan, gpus, at, idle, room, beat, literal, pooled, third)
            if idle == TOO_LATE:
                return ABANDONED
            attempts += more
        facts[ATTEMPTS_3 if third else ATTEMPTS_2] += attempts
        if idle < size:
            return BROKEN_OFF
        # Take them.
        if third:
            _take_selected(work, gpus, heap_size, room, out)
        elif pooled:
            if not placed:
                _take_pool(gpus, room, out)
        elif policy == FIRST_FIT:
            _take_first(gpus, room, out)
        else:
            _take_random(work, gpus, room, plan.draws[drawn : drawn + 2 * size], out)
            drawn += 2 * size
        # Start the job; what it ends at the earliest may already be too late.
        largest = max(largest, _place(work, plan, gpus, job))
        facts[LARGEST] = largest
        if third:
            release_servers(work, gpus, heap_size)
        if clock[NOW] - 1 + work.jobs[job].best >= beat and not literal:
            return ABANDONED
    return _run_out(work, beat, literal, facts)
