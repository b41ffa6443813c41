"""What a job costs at least, one that may pause or one that may not, where capacity has a price by slot."""

from __future__ import annotations

import bisect
import heapq

GRID = 2**40


def paused(first: int, work: int, rate: int, edges: list[int], price: list[int], soonest: int = 0) -> int:
    """The least of JCT and cost of a job that may pause, in 2^-120 slots; its work in 2^-40, JCT at least `soonest`.

    The work is cheapest in the cheapest slots up to the last one. That one moves on slot by slot and takes work from
    the dearest there; between two bends of the cost, where only whole slots are exchanged, it is linear.
    """
    if not work:
        return max(1, soonest) * GRID**3
    slot, cost, best = first, 0, None
    taken: list[list[int]] = []  # [-price, work], a heap
    for k in range(bisect.bisect_right(edges, first), len(edges) + 1):
        p = price[k - 1] if 0 < k < len(edges) else 0
        end = edges[k] if k < len(edges) else None
        own = spare = 0
        while end is None or slot < end or spare:
            if work:
                share = work if end is None else min((end - slot) * GRID, work)
                work, own, cost = work - share, own + share, cost + rate * p * share
                slot, spare = slot - (-share // GRID), -share % GRID
            elif not taken or -taken[0][0] <= p:
                break
            else:
                if not spare:
                    whole = taken[0][1] // GRID
                    whole = max(1, whole if end is None else min(whole, end - slot))
                    if slot - first < soonest:  # JCT bends there
                        whole = min(whole, soonest - (slot - first))
                    slot, spare = slot + whole, whole * GRID
                share = min(spare, taken[0][1])
                cost -= rate * (-taken[0][0] - p) * share
                spare, own, taken[0][1] = spare - share, own + share, taken[0][1] - share
                if not taken[0][1]:
                    heapq.heappop(taken)
            if not work and (not spare or not taken or -taken[0][0] <= p):
                spare = 0
                value = max(slot - first, soonest) * GRID**3 + cost
                best = value if best is None else min(best, value)
        if own:
            heapq.heappush(taken, [-p, own])
        slot = slot if end is None else max(slot, end)
        if best is not None and (slot - first) * GRID**3 >= best:
            break
    assert best is not None
    return best


def held(first: int, length: int, rate: int, edges: list[int], price: list[int], before: list[int]) -> int:
    """The least of JCT and cost of a job that runs `length` slots from some slot on, in 2^-80 slots.

    The cost is piecewise linear in the start.
    It bends where the start or the end is an edge.
    """

    def until(slot: int) -> int:
        k = bisect.bisect_right(edges, slot) - 1
        return 0 if k < 0 else before[-1] if k >= len(price) else before[k] + price[k] * (slot - edges[k])

    best = length * GRID**2 + rate * (until(first + length) - until(first))
    for ahead in (0, length):
        for k in range(bisect.bisect_right(edges, first + ahead), len(edges)):
            start = edges[k] - ahead
            least = (start - first + length) * GRID**2
            if least >= best:
                break
            best = min(best, least + rate * (until(start + length) - until(start)))
    return best
