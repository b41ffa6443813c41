"""Orders of blocks tried out by the thousand: simulated annealing in compiled code.

Idea: a block is a job alone or two that share GPUs, and a schedule is an order of blocks, laid out one after another.
Source: simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983). It proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.compiled import njit_inline, njit_kernel

MASK = 2**48 - 1


class WalkTables(NamedTuple):
    """An instance as the walk sees it; time in ticks."""

    # arrival, alone, gpus, wide: by job, as in :class:`~.gangs.Gangs`
    arrival: Ints
    alone: Ints
    gpus: Ints
    wide: Ints
    shared: Ints  # (J, J, 2) ticks from a common start to both finishes; 0 where two jobs may not share
    sizes: Ints  # GPUs of each server


class Order(NamedTuple):
    """Blocks in order: their first job, their second or -1; and in `length[0]` how many they are."""

    first: Ints
    second: Ints
    length: Ints


@njit_kernel
def total_of(tables: WalkTables, order: Order, free: Ints) -> int:
    """The sum of finishes of blocks laid in this order, as :meth:`~.gangs.Gangs.lay` does it; O(J S).

    Parameters
    ----------
    free : (S, most GPUs + 1) working memory: when GPUs become free, in ascending order, and whether it is chosen
    """
    sizes, total = tables.sizes, 0
    free[:] = 0
    for place in range(order.length[0]):
        j, k = order.first[place], order.second[place]
        one, other = tables.alone[j], 0
        start = tables.arrival[j]
        if k >= 0:
            one, other = tables.shared[j, k, 0], tables.shared[j, k, 1]
            start = max(start, tables.arrival[k])
        need = tables.gpus[j]
        if tables.wide[j] == 0:
            start = _on_one_server(sizes, free, start, need, one)
        else:
            start = _on_whole_servers(sizes, free, start, need, max(one, other))
        total += start + one
        if k >= 0:
            total += start + other
    return total


@njit_inline
def _on_one_server(sizes: Ints, free: Ints, ready: int, need: int, length: int) -> int:
    """Hold GPUs of the server that has enough of them first; ties leave the most room. When that is."""
    best, start, room = -1, 0, 0
    for s in range(len(sizes)):
        if sizes[s] < need:
            continue
        begin = max(ready, free[s, need - 1])
        if best >= 0 and begin > start:
            continue
        count = 0
        while count < sizes[s] and free[s, count] <= begin:
            count += 1
        if best < 0 or begin < start or count < room:
            best, start, room = s, begin, count
    place, until = need, start + length
    while place < sizes[best] and free[best, place] < until:
        free[best, place - need] = free[best, place]
        place += 1
    for g in range(place - need, place):
        free[best, g] = until
    return start


@njit_inline
def _on_whole_servers(sizes: Ints, free: Ints, ready: int, need: int, length: int) -> int:
    """Hold the servers that are free first, as many as it takes. When that is."""
    start, remaining, mark = ready, need, free.shape[1] - 1
    while remaining > 0:
        best, least = -1, 0
        for s in range(len(sizes)):
            begin = max(ready, free[s, sizes[s] - 1])
            if free[s, mark] == 0 and (best < 0 or begin < least):
                best, least = s, begin
        free[best, mark] = 1
        start = max(start, least)
        remaining -= sizes[best]
    for s in range(len(sizes)):
        if free[s, mark] == 1:
            free[s, mark] = 0
            for g in range(sizes[s]):
                free[s, g] = start + length
    return start


@njit_inline
def _take_out(order: Order, place: int) -> None:
    """Close the gap that a block leaves."""
    for i in range(place, order.length[0] - 1):
        order.first[i], order.second[i] = order.first[i + 1], order.second[i + 1]
    order.length[0] -= 1


@njit_inline
def _put_in(order: Order, place: int, first: int, second: int) -> None:
    """Make room for a block before `place`."""
    for i in range(order.length[0], place, -1):
        order.first[i], order.second[i] = order.first[i - 1], order.second[i - 1]
    order.first[place], order.second[place] = first, second
    order.length[0] += 1


@njit_inline
def _copy(source: Order, target: Order) -> None:
    target.length[0] = source.length[0]
    for i in range(source.length[0]):
        target.first[i], target.second[i] = source.first[i], source.second[i]


def order_of(blocks: Sequence[Sequence[int]], jobs: int) -> Order:
    """The order of blocks of one or two of so many jobs."""
    first, second = np.full(jobs, -1, dtype=np.int64), np.full(jobs, -1, dtype=np.int64)
    for place, block in enumerate(blocks):
        first[place] = block[0]
        second[place] = block[1] if len(block) > 1 else -1
    return Order(first, second, np.array([len(blocks)], dtype=np.int64))


def blocks_of(order: Order) -> list[tuple[int, ...]]:
    """The blocks of an order."""
    pairs = zip(order.first.tolist(), order.second.tolist(), strict=True)
    return [(j,) if k < 0 else (j, k) for j, k in list(pairs)[: int(order.length[0])]]


@njit_inline
def draw(state: Ints) -> float:
    """A number in [0, 1): the generator of 48 bits of POSIX (drand48)."""
    state[0] = (state[0] * 25214903917 + 11) & MASK
    return float(state[0] / (MASK + 1))


@njit_inline
def _near(place: int, length: int, state: Ints) -> int:
    """Another place, a near one more often."""
    away = max(1, int(length ** draw(state)))
    return min(max(place + (away if draw(state) < 0.5 else -away), 0), length - 1)


@njit_inline
def _paired_anew(tables: WalkTables, order: Order, state: Ints) -> bool:
    """Two blocks exchange partners, or come together, or one is parted; whether there was anything to change."""
    one = int(draw(state) * order.length[0])
    if tables.wide[order.first[one]] == 0:
        return False
    if order.second[one] >= 0 and draw(state) < 0.3:
        parted = order.second[one]
        order.second[one] = -1
        _put_in(order, _near(one, order.length[0], state), parted, -1)
        return True
    other = _near(one, order.length[0], state)
    if other == one or tables.wide[order.first[other]] == 0:
        return False
    j, a = order.first[one], order.second[one]
    k, b = order.first[other], order.second[other]
    if a >= 0 and draw(state) < 0.5:
        j, a = a, j
    if b >= 0 and draw(state) < 0.5:
        k, b = b, k
    if tables.shared[j, k, 0] == 0:
        return False
    order.first[one], order.second[one] = j, k
    if a >= 0 and b >= 0 and tables.shared[a, b, 0] > 0:
        order.first[other], order.second[other] = a, b
    elif a >= 0:
        order.first[other], order.second[other] = a, -1
        if b >= 0:
            _put_in(order, other, b, -1)
    elif b >= 0:
        order.first[other], order.second[other] = b, -1
    else:
        _take_out(order, other)
    return True


@njit_kernel
def walk(
    tables: WalkTables, best: Order, now: Order, trial: Order, free: Ints, moves: int, heat: float, state: Ints
) -> int:
    """Anneal from an order on: blocks change places, jobs change partners.

    Returns the sum of finishes of the best.

    Parameters
    ----------
    best : to begin with, and the best found
    now, trial, free : working memory
    moves : how many are tried
    heat : ticks; worse orders by so much are accepted with probability 1/e at first, by a hundredth at the end
    state : state of the random numbers, changed: one entry, a seed below 2^48 to begin with
    """
    _copy(best, now)
    least = present = total_of(tables, best, free)
    cooling = 0.01 ** (1.0 / max(1, moves))
    for _ in range(moves):
        heat *= cooling
        _copy(now, trial)
        place = int(draw(state) * trial.length[0])
        kind = draw(state)
        if kind < 0.4:
            first, second = trial.first[place], trial.second[place]
            to = _near(place, trial.length[0], state)
            _take_out(trial, place)
            _put_in(trial, to, first, second)
        elif kind < 0.6:
            to = _near(place, trial.length[0], state)
            trial.first[place], trial.first[to] = trial.first[to], trial.first[place]
            trial.second[place], trial.second[to] = trial.second[to], trial.second[place]
        elif not _paired_anew(tables, trial, state):
            continue
        found = total_of(tables, trial, free)
        if found <= present or draw(state) < math.exp((present - found) / heat):
            _copy(trial, now)
            present = found
            if found < least:
                _copy(now, best)
                least = found
    return least
