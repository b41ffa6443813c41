"""Greedy schedules of rar-ddls from an order of jobs and a few choices per job, and annealing over these; compiled.

Everything compiled is in this file, so that the cache on disk notices every change.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from schedgap.formulations.rar_ddls.dynamics import Integers

NEVER_CROSS, CROSS_ALONE, CROSS_ANY = 0, 1, 2
"""When a job that fits one server may cross servers: never, where it meets no other ring, whenever it fits."""

RULES = 4
"""Orders in which a ring fills servers: roomy first, unshared then roomy, unshared then tight, shared then roomy."""

_FAR = 1 << 60


class Case(NamedTuple):
    """An instance in arrays.

    Attributes
    ----------
    gpus, iterations : (J,) G_j, F_j
    sizes : (S,) GPUs of the servers
    rate : (J, n + 1, p + 1) iterations per slot on at most n servers beside at most p - 1 other rings
    """

    gpus: Integers
    iterations: Integers
    sizes: Integers
    rate: Integers


class Genes(NamedTuple):
    """What a schedule is built from.

    Attributes
    ----------
    order : (J,) jobs by falling priority
    cross : (J,) NEVER_CROSS, CROSS_ALONE or CROSS_ANY
    rule : (J,) how a ring fills servers, 0 .. RULES - 1
    holds : (J,) 1 where no job behind it may start while it waits
    likes : (J,) a server it tries first, or S for none
    """

    order: Integers
    cross: Integers
    rule: Integers
    holds: Integers
    likes: Integers


class Built(NamedTuple):
    """A schedule: (J,) slots before the start and last slots, servers and GPUs of each job, how many of them."""

    start: Integers
    end: Integers
    servers: Integers
    shares: Integers
    used: Integers


class Scratch(NamedTuple):
    """Working memory of :func:`build`."""

    idle: Integers
    rings: Integers
    state: Integers
    left: Integers
    speed: Integers
    running: Integers
    ranked: Integers


@numba.njit(cache=True)
def _key(rule: int, idle: int, rings: int, liked: bool) -> int:
    if liked:
        return -_FAR
    if rule == 0:
        return rings - (idle << 20)
    if rule == 1:
        return (rings << 40) - idle
    if rule == 2:
        return ((1 << 40) if rings > 0 else 0) + idle
    return -(rings << 40) - idle


# Arrays are passed one by one, not as tuples: passing a tuple of arrays counts references to each of them.


@numba.njit(cache=True)
def _spread(
    gang: int,
    cross: int,
    rule: int,
    likes: int,
    idle: Integers,
    rings: Integers,
    ranked: Integers,
    servers: Integers,
    shares: Integers,
) -> int:
    """Choose servers for a ring, written to `servers` and `shares`; how many, or 0 where its choices forbid it."""
    count = 0
    for s in range(idle.size):
        if idle[s] == 0:
            continue
        key = _key(rule, idle[s], rings[s], likes == s)
        at = count
        while at > 0:
            other = ranked[at - 1]
            if _key(rule, idle[other], rings[other], likes == other) <= key:
                break
            ranked[at] = other
            at -= 1
        ranked[at] = s
        count += 1
    left = gang
    used = 0
    meets = 0
    for place in range(count):
        s = ranked[place]
        take = idle[s]
        if take >= left:  # the rest goes where it leaves the least room, and meets no more rings
            for later in range(place + 1, count):
                other = ranked[later]
                if left <= idle[other] < idle[s] and rings[other] <= rings[s]:
                    s = other
            take = left
        if used == servers.size:
            return 0
        servers[used] = s
        shares[used] = take
        meets = max(meets, rings[s])
        used += 1
        left -= take
        if left == 0:
            break
    if meets > 0 and cross != CROSS_ANY:
        return 0
    return used


@numba.njit(cache=True)
def _one_server(gang: int, likes: int, idle: Integers) -> int:
    """The server it likes, or else the fullest one that holds it; -1 where none does."""
    if likes < idle.size and idle[likes] >= gang:
        return likes
    best = -1
    room = _FAR
    for s in range(idle.size):
        if gang <= idle[s] < room:
            room = idle[s]
            best = s
    return best


@numba.njit(cache=True)
def build(case: Case, genes: Genes, built: Built, scratch: Scratch, limit: int) -> int:
    """Build the schedule that `genes` stand for.

    In slot 1 and after every completion the waiting jobs are looked at in order. One that fits the server it
    likes, or else the fullest server that holds it, goes there; any other may cross servers as its choices say.

    Returns
    -------
    The makespan in slots, or -1 where it exceeds `limit` or some job stalls for ever.

    Notes
    -----
    O(E (J S^2 + R S)) for E completions and R jobs that run at once.
    """
    gpus, iterations, sizes, rate = case.gpus, case.iterations, case.sizes, case.rate
    order, cross, rule, holds, likes = genes.order, genes.cross, genes.rule, genes.holds, genes.likes
    idle, rings, state, left = scratch.idle, scratch.rings, scratch.state, scratch.left
    speeds, running, ranked = scratch.speed, scratch.running, scratch.ranked
    begins, ends, servers, shares, used = built.start, built.end, built.servers, built.shares, built.used
    deepest = rate.shape[2] - 1
    jobs = gpus.size
    free = 0
    largest = 0
    for s in range(sizes.size):
        idle[s] = sizes[s]
        rings[s] = 0
        free += sizes[s]
        largest = max(largest, sizes[s])
    state[:] = 0
    now = 0
    active = 0
    waiting = jobs
    while waiting > 0 or active > 0:
        if free > 0 and waiting > 0:
            refused = _FAR  # no server holds this many GPUs any more, as far as tried in this slot
            for place in range(jobs):
                job = order[place]
                if state[job] != 0:
                    continue
                gang = gpus[job]
                stays = cross[job] == NEVER_CROSS and gang <= largest
                placed = False
                if gang <= free and not (stays and gang >= refused):
                    s = _one_server(gang, likes[job], idle)
                    if s >= 0:
                        servers[job, 0] = s
                        shares[job, 0] = gang
                        used[job] = 1
                        idle[s] -= gang
                        placed = True
                    elif not stays:
                        count = _spread(
                            gang, cross[job], rule[job], likes[job], idle, rings, ranked, servers[job], shares[job]
                        )
                        used[job] = count
                        for at in range(count):
                            s = servers[job, at]
                            idle[s] -= shares[job, at]
                            rings[s] += 1
                        placed = count > 0
                if placed:
                    state[job] = 1
                    left[job] = iterations[job]
                    begins[job] = now
                    running[active] = job
                    active += 1
                    waiting -= 1
                    free -= gang
                    if free == 0:
                        break
                else:
                    if stays:
                        refused = min(refused, gang)
                    if holds[job] == 1 and active > 0:
                        break
        step = _FAR
        for k in range(active):
            job = running[k]
            if used[job] == 1:
                speed = rate[job, 1, 1]
            else:
                meets = 1
                for at in range(used[job]):
                    meets = max(meets, rings[servers[job, at]])
                speed = rate[job, used[job], min(meets, deepest)]
            speeds[job] = speed
            if speed > 0:
                step = min(step, (left[job] + speed - 1) // speed)
        if step == _FAR:
            return -1
        now += step
        if now > limit:
            return -1
        kept = 0
        for k in range(active):
            job = running[k]
            left[job] -= speeds[job] * step
            if left[job] > 0:
                running[kept] = job
                kept += 1
                continue
            state[job] = 2
            ends[job] = now
            free += gpus[job]
            for at in range(used[job]):
                s = servers[job, at]
                idle[s] += shares[job, at]
                if used[job] > 1:
                    rings[s] -= 1
        active = kept
    return now


@numba.njit(cache=True)
def _change(genes: Genes, servers: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """One random change; returns what :func:`_undo` needs."""
    jobs = genes.order.size
    a = int(rng.integers(0, jobs))
    b = int(rng.integers(0, jobs))
    kind = int(rng.integers(0, 10))
    old = 0
    if kind < 3:
        genes.order[a], genes.order[b] = genes.order[b], genes.order[a]
    elif kind < 6:
        _move(genes.order, a, b)
    elif kind == 6:
        old = genes.cross[a]
        genes.cross[a] = rng.integers(0, 3)
    elif kind == 7:
        old = genes.rule[a]
        genes.rule[a] = rng.integers(0, RULES)
    elif kind == 8:
        old = genes.holds[a]
        genes.holds[a] = 1 - old
    else:
        old = genes.likes[a]
        genes.likes[a] = rng.integers(0, servers) if rng.random() < 0.6 else servers
    return kind, a, b, old


@numba.njit(cache=True)
def _move(order: Integers, source: int, target: int) -> None:
    job = order[source]
    step = 1 if source < target else -1
    for k in range(source, target, step):
        order[k] = order[k + step]
    order[target] = job


@numba.njit(cache=True)
def _undo(genes: Genes, kind: int, a: int, b: int, old: int) -> None:
    if kind < 3:
        genes.order[a], genes.order[b] = genes.order[b], genes.order[a]
    elif kind < 6:
        _move(genes.order, b, a)
    elif kind == 6:
        genes.cross[a] = old
    elif kind == 7:
        genes.rule[a] = old
    elif kind == 8:
        genes.holds[a] = old
    else:
        genes.likes[a] = old


@numba.njit(cache=True)
def _excess(case: Case, built: Built, makespan: int, target: int) -> float:
    """GPU slots after `target`, and a little for the makespan itself: 0 once the target is met."""
    total = 0.5 * max(0, makespan - target)
    for job in range(case.gpus.size):
        if built.end[job] > target:
            total += case.gpus[job] * (built.end[job] - target)
    return total


@numba.njit(cache=True)
def anneal(
    case: Case,
    genes: Genes,
    built: Built,
    scratch: Scratch,
    best: Built,
    target: int,
    limit: int,
    leg: tuple[int, int, int],
    heat: float,
    current: float,
    rng: np.random.Generator,
) -> tuple[int, int, float]:
    """A leg of annealing towards a makespan of `target` slots; stops as soon as it is met.

    Parameters
    ----------
    genes : where to begin; changed in place, the last accepted ones at the end
    best : receives the schedule of smallest makespan
    limit : schedules longer than this are refused
    leg : first step, steps of this leg, steps of the whole run; a step builds one schedule
    heat : temperature of the first step in GPU slots, falling quadratically to 0
    current : cost of `genes`; infinity where they were not built yet, and step 0 then leaves them as they are

    Returns
    -------
    (smallest makespan of this leg or -1, schedules built, cost of `genes`).
    """
    shortest = -1
    first, steps, total = leg
    for step in range(first, first + steps):
        kind, a, b, old = -1, 0, 0, 0
        if step > 0:
            kind, a, b, old = _change(genes, case.sizes.size, rng)
        makespan = build(case, genes, built, scratch, limit)
        accepted = False
        if makespan >= 0:
            if shortest < 0 or makespan < shortest:
                shortest = makespan
                best.start[:] = built.start
                best.end[:] = built.end
                best.servers[:] = built.servers
                best.shares[:] = built.shares
                best.used[:] = built.used
                if shortest <= target:
                    return shortest, step + 1 - first, current
            cost = _excess(case, built, makespan, target)
            temperature = heat * (1 - step / total) ** 2 + 1e-9
            if cost <= current or rng.random() < math.exp((current - cost) / temperature):
                current = cost
                accepted = True
        if not accepted and step > 0:
            _undo(genes, kind, a, b, old)
    return shortest, steps, current


def scratch_for(jobs: int, servers: int) -> Scratch:
    """Working memory for instances of this size."""

    def empty(count: int) -> Integers:
        return np.zeros(count, dtype=np.int64)

    return Scratch(empty(servers), empty(servers), empty(jobs), empty(jobs), empty(jobs), empty(jobs), empty(servers))


def built_for(jobs: int, most_servers: int) -> Built:
    """Room for a schedule in which a job uses at most `most_servers` servers."""
    shape = (jobs, most_servers)
    line: list[npt.NDArray[np.int64]] = [np.zeros(jobs, dtype=np.int64) for _ in range(3)]
    return Built(line[0], line[1], np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64), line[2])
