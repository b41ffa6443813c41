"""What the jobs that run in one slot are worth at most at prices, gangs as a whole: compiled.

GPUs one by one say too little of gangs: two that need 12 of 16 GPUs can only run together where they share 8 of them,
and each goes at the pace of its worst partner, on all of its GPUs.
"""

from __future__ import annotations

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inner, njit_part
from schedgap.formulations.common.machine.ordering import rising_order

ALONE, SHARED, OUT = 0, 1, 2


@njit_inner
def _pace(order: Ints, choice: Ints, gpus: Ints, slow: Floats, total: int, rate: Floats) -> bool:
    """Whether these jobs may run together, and the best rate of each, 0 of those that are out.

    Those that share have at least one partner each, the best of them in the best case; a GPU that is shared has two of
    them, one of which is not the largest.
    """
    alone, shared, largest = 0, 0, 0
    for q in range(len(choice)):
        j = order[q]
        rate[j] = 1.0 if choice[q] == ALONE else 0.0
        if choice[q] == ALONE:
            alone += gpus[j]
        elif choice[q] == SHARED:
            shared += gpus[j]
            largest = max(largest, gpus[j])
            for p in range(len(choice)):
                if p != q and choice[p] == SHARED:
                    rate[j] = max(rate[j], 1.0 / slow[j, order[p]])
    return bool(alone + shared - min(shared // 2, shared - largest) <= total)


@njit_part
def _most(
    worth: Floats, gpus: Ints, slow: Floats, least: Floats, total: int, nodes: int, best_rate: Floats
) -> tuple[float, int]:  # pragma: no cover - compiled
    """At least what the jobs that run in a slot are worth, and the nodes of its search; `best_rate`, (J,), the rates.

    Every job is alone on its GPUs, shares some, or is out, the dearest per GPU first. What follows is worth no more
    than where every shared GPU is half a one; that is the answer where so many nodes do not suffice.
    """
    rate, count = np.empty(len(worth)), 0
    for j in range(len(worth)):
        rate[j] = -worth[j] / gpus[j]
        if worth[j] > 0:
            count += 1
    order = rising_order(rate)
    room = 2 * total
    beyond = np.zeros((count + 1, room + 1))
    for q in range(count - 1, -1, -1):
        j = order[q]
        for free in range(room + 1):
            value = beyond[q + 1, free]
            if free >= 2 * gpus[j]:
                value = max(value, beyond[q + 1, free - 2 * gpus[j]] + worth[j])
            if free >= gpus[j]:
                value = max(value, beyond[q + 1, free - gpus[j]] + worth[j] / least[j])
            beyond[q, free] = value
    choice, used, value = np.empty(count, np.int64), np.zeros(count + 1, np.int64), np.zeros(count + 1)
    for q in range(count):
        choice[q] = -1
    for j in range(len(worth)):
        rate[j] = best_rate[j] = 0.0
    best, q, seen = 0.0, 0, 0
    while q >= 0 and count > 0:
        if q == count:
            if _pace(order, choice, gpus, slow, total, rate):
                found = 0.0
                for j in range(len(worth)):
                    found += worth[j] * rate[j]
                if found > best:
                    best = found
                    for j in range(len(worth)):
                        best_rate[j] = rate[j]
            q -= 1
            continue
        choice[q] += 1
        if choice[q] > OUT:
            choice[q] = -1
            q -= 1
            continue
        seen += 1
        if seen > nodes:
            return float(beyond[0, room]), seen
        j = order[q]
        need = 2 * gpus[j] if choice[q] == ALONE else gpus[j] if choice[q] == SHARED else 0
        gain = worth[j] if choice[q] == ALONE else worth[j] / least[j] if choice[q] == SHARED else 0.0
        free = room - used[q] - need
        if free < 0 or value[q] + gain + beyond[q + 1, free] <= best:
            continue
        used[q + 1], value[q + 1] = used[q] + need, value[q] + gain
        q += 1
    return best, seen


@njit_cached
def worth_together(
    prices: Floats, gpus: Ints, slow: Floats, total: int, width: Floats, nodes: int, rate: Floats
) -> tuple[float, int]:  # pragma: no cover - compiled
    """At least what all slots are worth, and the nodes of all searches.

    Parameters
    ----------
    prices : (J, B) of what each job does at full rate in a slot of each bucket
    slow : (J, J) slowdown of the row's job beside the column's, inf where they cannot share
    width : (B,) slots of the buckets
    nodes : most nodes of the search of one bucket
    rate : (J, B) becomes the rates of the best sets
    """
    count, buckets = prices.shape
    least, worth, of_bucket = np.empty(count), np.empty(count), np.zeros(count)
    for j in range(count):
        least[j] = slow[j, 0]
        for k in range(1, count):
            least[j] = min(least[j], slow[j, k])
        least[j] = max(1.0, least[j])
    total_worth, seen = 0.0, 0
    for k in range(buckets):
        for j in range(count):
            worth[j] = prices[j, k]
        value, more = _most(worth, gpus, slow, least, total, nodes, of_bucket)
        total_worth += value * width[k]
        seen += more
        for j in range(count):
            rate[j, k] = of_bucket[j]
    return total_worth, seen
