"""List scheduling on nodes, event by event and compiled: strict order, whatever fits, or EASY backfilling."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inner

STRICT, FITTING, EASY = 0, 1, 2
"""Who may start: the first in order alone; whoever fits; whoever fits and does not delay the first."""
POLICIES = {
    "fifo": (STRICT, "arrival", "by submission; nobody overtakes"),
    "easy": (EASY, "arrival", "by submission; a later job starts early where that does not delay the first"),
    "first-fit": (FITTING, "arrival", "by submission; whatever fits starts"),
    "sjf": (FITTING, "shortest", "the shortest first; whatever fits starts"),
    "saf": (FITTING, "smallest area", "the smallest GPU time first; whatever fits starts"),
    "laf": (FITTING, "largest area", "the largest GPU time first; whatever fits starts"),
    "widest": (FITTING, "widest", "the most GPUs first; whatever fits starts"),
    "longest": (FITTING, "longest", "the longest first; whatever fits starts"),
}
"""Policies by id: who may start, in which order, and in words."""
SEARCHES = {"search": "orders changed at random, for the mean", "search-weighted": "the same for the weighted mean"}
"""Words for a policy, by id."""
MOST_ORDERS = 20_000
"""Orders that the search tries at most, so that its answer does not hang on the machine where time allows them all."""


class Nodes(NamedTuple):
    """N nodes, or one for each pool of GPUs where jobs are not held to nodes."""

    # gpus, processors, memory: (N,) how many there are; memory in bytes
    gpus: Ints
    processors: Ints
    memory: Ints
    order: Ints  # (N,) nodes of a smaller number are taken first: those that other jobs ask for less


class Shapes(NamedTuple):
    """K different requests, each of one or more pieces on different nodes, the largest piece first."""

    first: Ints  # (K + 1,) where the pieces of a request begin
    # gpus, processors, memory: (P,) of the pieces
    gpus: Ints
    processors: Ints
    memory: Ints
    mask: Ints  # (K,) row of `allowed`
    core: Ints  # (K,) number of the same request without processors and memory
    allowed: NDArray[np.bool_]  # (R, N) nodes that a request may use


class Work(NamedTuple):
    """J jobs; times in slots, from 0."""

    arrival: Ints  # (J,)
    length: Ints  # (J,)
    shape: Ints  # (J,) number of the request
    offset: Ints  # (J + 1,) where the nodes of a job's pieces begin in the list of all


class Free(NamedTuple):
    """What is free on each node."""

    gpus: Ints
    processors: Ints
    memory: Ints


@njit_inner
def _find(k: int, shapes: Shapes, order: Ints, free: Free, limit: Free, used: Ints, stamp: int, out: Ints) -> bool:
    """Whether a request fits both what is free and a limit; `out` gets the nodes of its pieces, the fullest first."""
    mask = shapes.allowed[shapes.mask[k]]
    begin = shapes.first[k]
    for q in range(begin, shapes.first[k + 1]):
        best = -1
        g, p, m = shapes.gpus[q], shapes.processors[q], shapes.memory[q]
        for n in range(len(order)):
            if free.gpus[n] < g or limit.gpus[n] < g or not mask[n] or used[n] == stamp:
                continue
            if free.processors[n] < p or limit.processors[n] < p or free.memory[n] < m or limit.memory[n] < m:
                continue
            if best < 0 or (order[n], free.gpus[n]) < (order[best], free.gpus[best]):
                best = n
        if best < 0:
            return False
        used[best] = stamp
        out[q - begin] = best
    return True


@njit_inner
def _take(k: int, shapes: Shapes, free: Free, nodes: Ints, sign: int) -> None:
    """Take a request's pieces from what is free on these nodes, or give them back (`sign` -1)."""
    begin = shapes.first[k]
    for q in range(begin, shapes.first[k + 1]):
        n = nodes[q - begin]
        free.gpus[n] -= sign * shapes.gpus[q]
        free.processors[n] -= sign * shapes.processors[q]
        free.memory[n] -= sign * shapes.memory[q]


@njit_inner
def _queue(wait: Ints, waiting: int, rank: Floats, j: int) -> None:
    """Put a job among those that wait, by rank."""
    low, high = 0, waiting
    while low < high:
        middle = (low + high) // 2
        if rank[wait[middle]] <= rank[j]:
            low = middle + 1
        else:
            high = middle
    for q in range(waiting, low, -1):
        wait[q] = wait[q - 1]
    wait[low] = j


@njit_inner
def _hold(ends: Ints, running: Ints, holding: int, over: int, j: int) -> None:
    """Put a job among those that run, by its end, the last first."""
    at = holding
    while at > 0 and ends[at - 1] < over:
        ends[at], running[at] = ends[at - 1], running[at - 1]
        at -= 1
    ends[at], running[at] = over, j


@njit_cached
def schedule(work: Work, shapes: Shapes, nodes: Nodes, rank: Floats, mode: int) -> tuple[Ints, Ints]:
    """Starts of all jobs and the nodes of their pieces, jobs taken by rank at every submission and every end.

    Every job must fit the empty cluster. O(E (Q + N)) for E events, Q jobs that wait and N nodes, mostly less: requests
    that do not fit are asked for once in a moment.
    """
    count = len(work.arrival)
    free = Free(nodes.gpus.copy(), nodes.processors.copy(), nodes.memory.copy())
    extra = Free(nodes.gpus.copy(), nodes.processors.copy(), nodes.memory.copy())
    start, places = np.full(count, -1, np.int64), np.full(work.offset[count], -1, np.int64)
    arriving = np.argsort(work.arrival, kind="mergesort")
    ends, running, holding = np.empty(count, np.int64), np.empty(count, np.int64), 0  # the last ends first
    wait, waiting = np.empty(count, np.int64), 0
    used, stamp = np.full(len(nodes.gpus), -1, np.int64), 0
    closed = np.full(len(shapes.mask), -1, np.int64)  # the moment at which a request was last found not to fit
    closed_core = np.full(len(shapes.mask), -1, np.int64)
    closed_late = np.full(len(shapes.mask), -1, np.int64)
    queued, kinds = np.zeros(len(shapes.mask), np.int64), 0  # jobs that wait by request, and requests that any has
    widest = 1
    for k in range(len(shapes.mask)):
        widest = max(widest, shapes.first[k + 1] - shapes.first[k])
    out = np.empty(widest, np.int64)
    coming, done, moment = 0, 0, 0
    reserved, shadow = -1, 0
    while done < count:
        now = np.int64(2**62)
        if coming < count:
            now = work.arrival[arriving[coming]]
        if holding and ends[holding - 1] < now:
            now = ends[holding - 1]
        moment += 1
        while holding and ends[holding - 1] <= now:
            j = running[holding - 1]
            _take(work.shape[j], shapes, free, places[work.offset[j] :], -1)
            holding -= 1
        while coming < count and work.arrival[arriving[coming]] <= now:
            j = arriving[coming]
            _queue(wait, waiting, rank, j)
            waiting += 1
            coming += 1
            kinds += queued[work.shape[j]] == 0
            queued[work.shape[j]] += 1
        staying, blocked, q = 0, False, 0
        hopeful = kinds if free.gpus.max() > 0 else 0  # requests of which none was yet found not to fit
        while q < waiting and hopeful > 0 and not (blocked and mode == STRICT):
            j = wait[q]
            q += 1
            k = work.shape[j]
            late = mode == EASY and blocked and now + work.length[j] > shadow
            if closed[k] != moment and closed_core[shapes.core[k]] == moment:
                closed[k] = moment
                hopeful -= 1
            fits = closed[k] != moment and not (late and closed_late[k] == moment)
            if fits:
                stamp += 1
                fits = _find(k, shapes, nodes.order, free, extra if late else free, used, stamp, out)
                if not fits and not late:
                    closed[k] = moment
                    hopeful -= 1
                    if shapes.core[k] == k:
                        closed_core[k] = moment
                elif not fits:
                    closed_late[k] = moment
            if not fits:
                if not blocked and mode == EASY and (reserved != j or shadow <= now):
                    reserved = j
                    shadow = _reserve(
                        j, work, shapes, nodes, free, extra, ends, running, holding, places, used, stamp, out
                    )
                    stamp += holding + 1
                blocked = True
                wait[staying] = j
                staying += 1
                continue
            if late:
                _take(k, shapes, extra, out, 1)
            _take(k, shapes, free, out, 1)
            for r in range(shapes.first[k + 1] - shapes.first[k]):
                places[work.offset[j] + r] = out[r]
            start[j] = now
            done += 1
            queued[k] -= 1
            if queued[k] == 0:
                kinds -= 1
                hopeful -= 1
            _hold(ends, running, holding, now + work.length[j], j)
            holding += 1
        if staying < q:
            for r in range(q, waiting):
                wait[staying + r - q] = wait[r]
        waiting += staying - q
    return start, places


@njit_inner
def _reserve(
    j: int,
    work: Work,
    shapes: Shapes,
    nodes: Nodes,
    free: Free,
    extra: Free,
    ends: Ints,
    running: Ints,
    holding: int,
    places: Ints,
    used: Ints,
    stamp: int,
    out: Ints,
) -> int:
    """The moment at which a job that does not fit now will, as running jobs end; `extra` is what it leaves then."""
    for n in range(len(free.gpus)):
        extra.gpus[n], extra.processors[n], extra.memory[n] = free.gpus[n], free.processors[n], free.memory[n]
    last = holding - 1
    while last >= 0:
        moment = ends[last]
        while last >= 0 and ends[last] == moment:
            other = running[last]
            _take(work.shape[other], shapes, extra, places[work.offset[other] :], -1)
            last -= 1
        stamp += 1
        if _find(work.shape[j], shapes, nodes.order, extra, extra, used, stamp, out):
            _take(work.shape[j], shapes, extra, out, 1)
            return int(moment)
    return 2**62


def ranks(work: Work, gpus: Ints, order: str) -> Floats:
    """The rank of each job in an order of :data:`POLICIES`; of equals the one that was submitted first."""
    length = work.length.astype(np.float64)
    key = {
        "arrival": work.arrival.astype(np.float64),
        "shortest": length,
        "longest": -length,
        "widest": -gpus.astype(np.float64),
        "smallest area": gpus * length,
        "largest area": -gpus * length,
    }[order]
    found = np.empty(len(key))
    found[np.lexsort((np.arange(len(key)), work.arrival, key))] = np.arange(len(key), dtype=np.float64)
    return found


def search(
    work: Work, shapes: Shapes, nodes: Nodes, gpus: Ints, weighted: bool, seconds: float, seed: int
) -> tuple[Ints, Ints, int]:
    """Starts and nodes of the best order found, and how many orders were tried.

    Three orders are each changed at random: the weights of a few jobs grow or shrink, and what is no worse is kept.
    Ends after MOST_ORDERS orders or at the time limit.

    Parameters
    ----------
    weighted : the mean from submission to end counts each job by GPUs times length; else all alike
    """
    rng = np.random.default_rng(seed)
    length = work.length.astype(np.float64)
    begins = [(FITTING, length), (FITTING, gpus * length), (FITTING, length * np.sqrt(gpus))]
    weight = np.ones(len(length))
    if weighted:
        since = work.arrival - work.arrival.min() + 1.0
        begins = [(EASY, since), (EASY, 1 / (gpus * length)), (FITTING, 1 / (gpus * length))]
        weight = gpus * length
    best: tuple[float, Ints, Ints] | None = None
    tried, begun = 0, time.monotonic()
    for number, (mode, key) in enumerate(begins, 1):
        current, value = key, np.inf
        while tried < MOST_ORDERS * number // len(begins):
            new = current
            if value < np.inf:
                new = current.copy()
                chosen = rng.integers(len(new), size=rng.choice([1, 2, 4, 16]))
                new[chosen] *= 2.0 ** rng.uniform(-2, 2, size=len(chosen))
            start, places = schedule(work, shapes, nodes, new, mode)
            total = float(weight @ start)
            tried += 1
            if total <= value:
                current, value = new, total
                if best is None or total < best[0]:
                    best = total, start, places
            if time.monotonic() - begun > seconds * number / len(begins):
                break
    assert best is not None
    return best[1], best[2], tried
