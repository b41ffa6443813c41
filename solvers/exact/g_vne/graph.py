"""Pricing of rings on a general network: shortest paths under the link prices, then a layered search, compiled.

A ring is a closed walk over hosts. Rooted at its host of smallest index, it is a path through layers 0..k, where
going to another host and putting n workers there leads n layers up; ``D[m, t]`` is the cheapest way to have put m
workers with t as the last host. Walks may come back to a host, so that it holds more than its cap. Hosts that the
best walk overfills become critical for its root: which of them were visited is then part of the state
(Righini and Salani, Networks 51, 2008; ng-routes after Baldacci, Mingozzi and Roberti, 2011, are the
same relaxation with memories that fade).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@njit_cached
def shortest_paths(sources: Ints, first: Ints, link: Ints, head: Ints, price: Floats) -> tuple[Floats, Ints]:
    """Distances and last links from every source, fewest links among equals.

    Parameters
    ----------
    sources : (H,)
    first, link : links out of v are ``link[first[v]:first[v + 1]]``
    head, price : (E,) a price is >= 0, inf where the link must not be used

    Returns
    -------
    (H, V) distances, inf where unreachable, and the last link of each path, -1 for none. O(H (V^2 + E)).
    """
    nodes = len(first) - 1
    distance = np.full((len(sources), nodes), np.inf)
    last = np.full((len(sources), nodes), -1, dtype=np.int64)
    hops = np.empty(nodes, dtype=np.int64)
    done = np.empty(nodes, dtype=np.bool_)
    for i in range(len(sources)):
        done[:] = False
        hops[:] = nodes + 1
        distance[i, sources[i]] = 0.0
        hops[sources[i]] = 0
        while True:
            v = -1
            for u in range(nodes):
                if not done[u] and distance[i, u] < np.inf:
                    near = v < 0 or distance[i, u] < distance[i, v]
                    if near or (distance[i, u] == distance[i, v] and hops[u] < hops[v]):
                        v = u
            if v < 0:
                break
            done[v] = True
            for place in range(first[v], first[v + 1]):
                e = link[place]
                far = distance[i, v] + price[e]
                u = head[e]
                if far == np.inf or done[u]:
                    continue
                if far < distance[i, u] or (far == distance[i, u] and hops[v] + 1 < hops[u]):
                    distance[i, u] = far
                    hops[u] = hops[v] + 1
                    last[i, u] = e
    return distance, last


@njit_cached
def layered(
    root: int, between: Floats, cost_of: Floats, cap: Ints, longest: int, bit: Ints, bits: int
) -> tuple[Floats, Ints]:
    """The cheapest closed walk through `root` and hosts after it, for every size.

    Parameters
    ----------
    root : a host, 0..H-1
    between : (H, H) cost of a ring edge between hosts
    cost_of : (H, K + 1) of so many workers
    cap : (H,) at least 1
    longest : K
    bit : (H,) number of a critical host, -1 for the others
    bits : how many critical hosts there are

    Returns
    -------
    (K + 1,) costs; (K + 1, 2 K) the walk of each size: host and count alternate, -1 ends it.

    Notes
    -----
    O(K H^2 2^bits).
    """
    h = len(cost_of)
    masks = 1 << bits
    best = np.full((longest + 1, h, masks), np.inf)
    before = np.full((longest + 1, h, masks), -1, dtype=np.int64)  # last host before this one
    mask_before = np.zeros((longest + 1, h, masks), dtype=np.int64)
    amount = np.zeros((longest + 1, h, masks), dtype=np.int64)
    cost = np.full(longest + 1, np.inf)
    end = np.full((longest + 1, 2), -1, dtype=np.int64)
    start = 0 if bit[root] < 0 else 1 << bit[root]
    for n in range(1, min(longest, cap[root]) + 1):
        best[n, root, start] = cost_of[root, n]
        amount[n, root, start] = n
    for m in range(1, longest + 1):
        for s in range(root, h):
            for mask in range(masks):
                value = best[m, s, mask]
                if value == np.inf:
                    continue
                closed = value + between[s, root] if s != root else value
                if closed < cost[m]:
                    cost[m] = closed
                    end[m, 0], end[m, 1] = s, mask
                if m == longest:
                    continue
                for t in range(root + 1, h):
                    if t == s:
                        continue
                    after = mask
                    if bit[t] >= 0:
                        if mask >> bit[t] & 1:
                            continue
                        after = mask | 1 << bit[t]
                    step = value + between[s, t]
                    if step == np.inf:
                        continue
                    for n in range(1, min(cap[t], longest - m) + 1):
                        after_step = step + cost_of[t, n]
                        if after_step < best[m + n, t, after]:
                            best[m + n, t, after] = after_step
                            before[m + n, t, after] = s
                            mask_before[m + n, t, after] = mask
                            amount[m + n, t, after] = n
    walk = np.full((longest + 1, 2 * longest), -1, dtype=np.int64)
    for k in range(1, longest + 1):
        if cost[k] == np.inf:
            continue
        m, s, mask, place = k, end[k, 0], end[k, 1], 0
        while s >= 0:
            n = amount[m, s, mask]
            walk[k, place], walk[k, place + 1] = s, n
            place += 2
            s, mask, m = before[m, s, mask], mask_before[m, s, mask], m - n
    return cost, walk


@njit_cached
def all_roots(between: Floats, cost_of: Floats, cap: Ints, longest: int) -> tuple[Floats, Ints]:
    """Costs and walks of every root without critical hosts: (H, K + 1) and (H, K + 1, 2 K); O(K H^3)."""
    h = len(cost_of)
    none = np.full(h, -1, dtype=np.int64)
    cost = np.full((h, longest + 1), np.inf)
    walk = np.full((h, longest + 1, 2 * longest), -1, dtype=np.int64)
    for root in range(h):
        cost[root], walk[root] = layered(root, between, cost_of, cap, longest, none, 0)
    return cost, walk
