"""The schedule generation scheme of rar-ddls: greedy schedules from an order of jobs and a few choices, compiled.

List schedulers, the local search of the exact method and the quick schedules of the models differ in choices only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.compiled import njit_inline, njit_inner, njit_kernel
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import Integers, rate_table
from schedgap.formulations.rar_ddls.running import (
    DONE,
    FAR,
    HEAP,
    NOW,
    RUNNING,
    Records,
    Workload,
    begin,
    build_workload,
    clear,
    exit_some,
    solution_of,
)

NEVER_CROSS, CROSS_ALONE, CROSS_ANY = 0, 1, 2
"""When a job that fits one server may cross servers: never, where it meets no other ring, whenever it fits."""

ROOMY, UNSHARED_ROOMY, UNSHARED_TIGHT, SHARED_ROOMY, LARGEST_FIRST, QUIET, UNSHARED_FILL = range(7)
"""Orders in which a ring fills servers.

The first ``RULES`` put what is left over where it leaves the least room and meets no more rings: roomy servers
first, unshared then roomy, unshared then tight, shared then roomy. LARGEST_FIRST puts it where it leaves the least
room; QUIET (few rings, in proportion to the GPUs) and UNSHARED_FILL (few rings, then roomy) take servers as they come.
"""

RULES = 4

HEEDLESS, PROGRESS, CONSIDERATE = 0, 1, 2
"""What a ring looks at before it crosses: nothing; its own rate; its slowdown, and that it stalls nobody."""

_LOOKS = 40_000


class Choices(NamedTuple):
    """What a schedule is built from."""

    order: Integers  # (J,) jobs by falling priority
    cross: Integers  # (J,) NEVER_CROSS, CROSS_ALONE or CROSS_ANY
    rule: Integers  # (J,) how a ring fills servers
    holds: Integers  # (J,) 1 where no job behind it may start while it waits
    likes: Integers  # (J,) a server it tries first, or S for none
    kind: Integers  # (J,) where a job finds no room, no other of its kind (0 <= kind < J) is tried in that slot


def uniform_choices(work: Workload, order: Integers, cross: Integers | int, rule: Integers | int) -> Choices:
    """Choices in which no job holds the others back, likes a server, or speaks for another one."""
    jobs, servers = work.jobs.size - 1, work.servers.size - 1

    def every(value: Integers | int) -> Integers:
        return np.array(np.broadcast_to(value, jobs), dtype=np.int64)

    return Choices(order.astype(np.int64), every(cross), every(rule), every(0), every(servers), np.arange(jobs))


class Rings(NamedTuple):
    """Which rings are let across servers."""

    care: int  # HEEDLESS, PROGRESS or CONSIDERATE; other than HEEDLESS only with the rates under all contention
    slack: float  # how many times its best duration a considerate ring may take
    second: int  # the rule that is tried where the first one leads across servers that `care` refuses; -1 for none


ANY_RING = Rings(HEEDLESS, 0.0, -1)


class Scratch(NamedTuple):
    """Working memory of :func:`list_schedule`: by rank of a server, place in the order, or kind."""

    ranked: Integers
    keys: Integers
    following: Integers
    waiting: Integers
    closed: Integers


def scratch_for(work: Workload) -> Scratch:
    """Working memory for this workload."""
    jobs, servers = work.jobs.size, work.servers.size
    return Scratch(*(np.zeros(length, dtype=np.int64) for length in (servers, servers, jobs, jobs, jobs)))


@njit_inline
def _key(rule: int, gang: int, gpus: int, idle: int, rings: int, liked: bool) -> int:
    if liked:
        return -FAR
    if rule == ROOMY:
        return rings - (idle << 20)
    if rule in (UNSHARED_ROOMY, UNSHARED_FILL):
        return (rings << 40) - idle
    if rule == UNSHARED_TIGHT:
        return ((1 << 40) if rings > 0 else 0) + idle
    if rule == LARGEST_FIRST:
        return -idle
    if rule == QUIET:
        return rings * (gang + gpus + 1) - idle
    return -(rings << 40) - idle


@njit_inline
def _spread(work: Workload, scratch: Scratch, j: int, rule: int, cross: int, likes: int) -> int:
    """Write servers for a ring to its entries; how many, or 0 where its choices forbid it."""
    entries, servers, ranked, keys = work.entries, work.servers, scratch.ranked, scratch.keys
    gang, low = work.jobs[j].gang, work.jobs[j].row
    most = work.jobs[j + 1].row - low
    count = 0
    for s in range(servers.size - 1):
        server = servers[s]
        if server.idle == 0:
            continue
        key = _key(rule, gang, server.gpus, server.idle, server.rings, likes == s)
        at = count
        while at > 0 and keys[at - 1] > key:
            ranked[at], keys[at] = ranked[at - 1], keys[at - 1]
            at -= 1
        ranked[at], keys[at] = s, key
        count += 1
    remaining = gang
    used = 0
    meets = 0
    for place in range(count):
        s = ranked[place]
        take = servers[s].idle
        if take >= remaining:
            if rule <= LARGEST_FIRST:
                for later in range(place + 1, count):
                    other = servers[ranked[later]]
                    tighter = remaining <= other.idle < servers[s].idle
                    if tighter and (rule == LARGEST_FIRST or other.rings <= servers[s].rings):
                        s = ranked[later]
            take = remaining
        if used == most:
            return 0
        entries[low + used].server = s
        entries[low + used].gpus = take
        meets = max(meets, servers[s].rings)
        used += 1
        remaining -= take
        if remaining == 0:
            break
    if remaining > 0 or (meets > 0 and cross != CROSS_ANY):
        return 0
    return used


@njit_inner
def _tolerable(work: Workload, j: int, used: int, care: int, slack: float) -> bool:
    """Whether a ring on the `used` servers written for job `j` makes progress beside the rings that are there now.

    With CONSIDERATE it must also take at most `slack` times its best duration, and stall nobody.
    """
    jobs, entries, servers, rates = work.jobs, work.entries, work.servers, work.rates
    low = jobs[j].row
    most = 0
    for e in range(low, low + used):
        most = max(most, servers[entries[e].server].rings + 1)
    rate = rates[low + used - 1, most]
    if rate == 0 or care == PROGRESS:
        return bool(rate > 0)
    if (jobs[j].iterations + rate - 1) // rate > slack * jobs[j].best:
        return False
    for e in range(low, low + used):
        server = servers[entries[e].server]
        for at in range(server.ring, server.ring + server.rings):
            other = jobs[entries[work.crossing[at]].owner]
            if rates[other.row + other.used - 1, server.rings + 1] == 0:
                return False
    return True


@njit_inline
def _one_server(servers: Records, gang: int, likes: int) -> int:
    """The server it likes, or else the fullest one that holds it; -1 where none does."""
    if likes < servers.size - 1 and servers[likes].idle >= gang:
        return likes
    best = -1
    room = FAR
    for s in range(servers.size - 1):
        if gang <= servers[s].idle < room:
            room = servers[s].idle
            best = s
            if room == gang:
                break
    return best


@njit_inline
def _queue_up(choices: Choices, scratch: Scratch) -> int:
    """Link the places of all jobs, from the last entry of `following` on; how many kinds there are."""
    count, kinds = choices.order.size, 0
    for kind in range(count):
        scratch.waiting[kind] = 0
        scratch.closed[kind] = 0
    scratch.following[count] = 0
    for place in range(count):
        scratch.following[place] = place + 1
        kind = choices.kind[choices.order[place]]
        if scratch.waiting[kind] == 0:
            kinds += 1
        scratch.waiting[kind] += 1
    return kinds


@njit_inline
def _across(work: Workload, choices: Choices, scratch: Scratch, j: int, largest: int, rings: Rings) -> int:
    """Write servers for a job that no single one holds now; how many, or 0 where it waits."""
    if choices.cross[j] == NEVER_CROSS and work.jobs[j].gang <= largest:
        return 0
    rule = choices.rule[j]
    while rule >= 0:
        used = _spread(work, scratch, j, rule, choices.cross[j], choices.likes[j])
        if used == 0 or rings.care == HEEDLESS or _tolerable(work, j, used, rings.care, rings.slack):
            return used
        rule = rings.second if rule != rings.second else -1
    return 0


@njit_inline
def _start_waiting(
    work: Workload,
    choices: Choices,
    scratch: Scratch,
    rings: Rings,
    largest: int,
    limit: int,
    free: int,
    smallest: int,
    kinds: int,
) -> tuple[int, int, int]:
    """Start those of the waiting jobs that fit in this slot.

    Returns the last three as they are then: free GPUs (-1: a job would end after `limit`),
    GPUs that no waiting job is below, and how many kinds wait.
    """
    jobs, entries, servers, now = work.jobs, work.entries, work.servers, work.clock[NOW]
    order, following, waiting, closed = choices.order, scratch.following, scratch.waiting, scratch.closed
    count = order.size
    total = servers[servers.size - 1].first
    shut = 0  # kinds of which a job found no room in this slot
    least = FAR
    refused = FAR  # no server holds this many GPUs any more, as far as tried in this slot
    before, place = count, following[count]
    while place < count and free >= smallest and shut < kinds:
        j = order[place]
        job = jobs[j]
        gang, kind = job.gang, choices.kind[j]
        used = 0
        if gang <= free and closed[kind] != now:
            server = _one_server(servers, gang, choices.likes[j]) if gang < refused else -1
            if server >= 0:
                entries[job.row].server = server
                entries[job.row].gpus = gang
                used = 1
            else:
                refused = min(refused, gang)
                used = _across(work, choices, scratch, j, largest, rings)
        if used > 0:
            for e in range(job.row, job.row + used):
                servers[entries[e].server].idle -= entries[e].gpus
            job.used = used
            begin(work, j)
            if now - 1 + job.best > limit:
                return -1, smallest, kinds
            free -= gang
            waiting[kind] -= 1
            if waiting[kind] == 0:
                kinds -= 1
            place = following[before] = following[place]
            continue
        # It waits: no other of its kind is tried in this slot.
        least = min(least, gang)
        before, place = place, following[place]
        if closed[kind] != now:
            closed[kind] = now
            shut += 1
            if choices.holds[j] == 1 and free < total:
                break
    return free, least if place == count else smallest, kinds


@njit_inline
def _give_back(work: Workload, exits: int) -> int:
    """Free the servers of the jobs that have just completed; how many GPUs that are."""
    jobs, entries, freed = work.jobs, work.entries, 0
    for k in range(work.clock[RUNNING], work.clock[RUNNING] + exits):
        job = jobs[work.lists[HEAP, k]]
        freed += job.gang
        for e in range(job.row, job.row + job.used):
            work.servers[entries[e].server].idle += entries[e].gpus
    return freed


@njit_kernel
def list_schedule(work: Workload, choices: Choices, scratch: Scratch, limit: int, rings: Rings) -> int:
    """Build the schedule that `choices` stand for, in `work`.

    In slot 1 and after every completion the waiting jobs are looked at in order. One that fits the server it
    likes, or else the fullest server that holds it, goes there; any other may cross servers as its choices say. Returns
    the makespan in slots, or -1 where it exceeds `limit` or some job stalls for ever.

    Parameters
    ----------
    work : what is to be scheduled; holds the schedule afterwards
    choices, scratch : what it is built from; working memory
    limit : the schedule is of no use where its makespan is larger
    rings : which rings are let across servers

    Notes
    -----
    O(E (W S^2 + log J)) for E completions and W jobs that are tried after each, and the rings that contend.
    """
    servers, clock, count = work.servers, work.clock, choices.order.size
    clear(work)
    kinds = _queue_up(choices, scratch)
    largest = 0
    for s in range(servers.size - 1):
        largest = max(largest, servers[s].gpus)
    free, smallest = servers[servers.size - 1].first, 1
    while clock[DONE] < count:
        free, smallest, kinds = _start_waiting(work, choices, scratch, rings, largest, limit, free, smallest, kinds)
        if free < 0:
            return -1
        exits = exit_some(work)
        if exits == 0 or clock[NOW] - 1 > limit:
            return -1
        free += _give_back(work, exits)
    return int(clock[NOW] - 1)


def quick_schedule(instance: RarDdlsInstance, seed: int = 0) -> tuple[int, Solution] | None:
    """The best of many greedy schedules: (makespan, solution), or None where none keeps the horizon.

    Each pass takes the jobs in some order; in slot 1 and after every completion a job that fits one server goes
    to the fullest such server, any other to the emptiest ones, either as soon as they are free or only when no
    other ring crosses them. Four passes have fixed orders (falling GPUs x duration, falling duration), the rest
    disturb them at random from `seed`.

    Notes
    -----
    The number of passes falls with J^2, from 100 for ten jobs to the four fixed ones.
    """
    table = rate_table(instance)
    if (table.best_rate == 0).any():
        return None
    jobs = len(instance.jobs)
    rng = np.random.default_rng(seed)
    area = (table.gpus * table.best_duration).astype(np.float64)
    length = table.best_duration.astype(np.float64)
    passes = [(key, sharing) for key in (area, length) for sharing in (0.0, 1.0)]
    for index in range(min(96, _LOOKS // (4 * jobs * jobs))):
        key = (area, length)[index % 2]
        passes.append((key * rng.uniform(0.3, 1.0, jobs), float(rng.choice([0.0, 0.5, 1.0]))))
    work = build_workload(instance)
    scratch = scratch_for(work)
    best: tuple[int, Workload] | None = None
    for key, sharing in passes:
        order = np.argsort(-key, kind="stable")
        cross = np.where(rng.random(jobs) < sharing, CROSS_ANY, CROSS_ALONE)
        limit = instance.horizon if best is None else best[0] - 1
        choices = uniform_choices(work, order, cross, UNSHARED_FILL)
        makespan = list_schedule(work, choices, scratch, limit, Rings(PROGRESS, 0.0, -1))
        if makespan >= 0:
            best, work = (makespan, work), work.another()
    return None if best is None else (best[0], solution_of(instance, best[1]))
