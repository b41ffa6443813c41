"""Pricing of rings on a network without cycles: a knapsack over the tree for all sizes at once, compiled.

A ring that visits its hosts in depth-first order uses a tree link once in each direction if and only if it has
workers on both sides, and no ring can do with less. For costs p_v(n) of n workers,
link prices w and caps, with total size k,

    H_v(m) = min cost of m workers in the subtree of v, its own links included, others being elsewhere,

is a min-plus sum over the children of ``H_c(n) + [n > 0] w_c`` and of ``p_v(n)``, n <= cap_v; the best ring of k
workers costs ``min_v H_v(k)``, v being the highest node it needs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit_cached
def price_tree(
    order: Ints,
    parent: Ints,
    first: Ints,
    child: Ints,
    node_cost: Floats,
    link_price: Floats,
    cap: Ints,
    longest: Ints,
    weight: Floats,
    threshold: Floats,
) -> tuple[Floats, Ints, Ints]:
    """The cheapest ring of every job and size.

    Parameters
    ----------
    order, parent : (V,) of :class:`~schedgap.formulations.g_vne.tables.Forest`
    first, child : children of v are ``child[first[v]:first[v + 1]]``, in the order of `order`
    node_cost : (J, V, K + 1) of so many workers
    link_price : (J, V) of a ring split by the link between v and its parent, both directions; inf where it cannot be
    cap : (J, V)
    longest : (J,) largest ring
    weight : (J, K + 1) worth of a ring by size; -inf for a size that is not wanted
    threshold : (J,) rings whose value is above it are traced

    Returns
    -------
    (J, K + 1) costs, inf where there is none; hosts and counts, (J, K + 1, K) with -1 for none, of those traced.

    Notes
    -----
    O(J V K^2).
    """
    jobs, nodes = node_cost.shape[:2]
    most = weight.shape[1] - 1
    cost = np.full((jobs, most + 1), np.inf)
    hosts = np.full((jobs, most + 1, most), -1, dtype=np.int64)
    counts = np.zeros((jobs, most + 1, most), dtype=np.int64)
    table = np.empty((nodes, most + 1))
    given = np.zeros((nodes, most + 1), dtype=np.int64)
    size = np.empty(nodes, dtype=np.int64)
    merged = np.empty(most + 1)
    top = np.empty(most + 1, dtype=np.int64)
    stack = np.empty((nodes, 2), dtype=np.int64)
    for j in range(jobs):
        k_max = longest[j]
        for v in range(nodes):
            size[v] = min(k_max, cap[j, v])
            for m in range(size[v] + 1):
                table[v, m] = node_cost[j, v, m]
        for place in range(nodes - 1, -1, -1):
            v = order[place]
            for m in range(1, size[v] + 1):
                if table[v, m] < cost[j, m]:
                    cost[j, m] = table[v, m]
                    top[m] = v
            u = parent[v]
            if u < 0 or size[v] == 0:
                continue
            w = link_price[j, v]
            total = min(k_max, size[u] + size[v])
            for m in range(total + 1):
                merged[m] = table[u, m] if m <= size[u] else np.inf
                given[v, m] = 0
            for n in range(1, size[v] + 1):
                extra = table[v, n] + w
                if extra == np.inf:
                    continue
                for m in range(n, min(total, size[u] + n) + 1):
                    value = table[u, m - n] + extra
                    if value < merged[m]:
                        merged[m] = value
                        given[v, m] = n
            for m in range(total + 1):
                table[u, m] = merged[m]
            size[u] = total
        for k in range(1, k_max + 1):
            if not weight[j, k] - cost[j, k] > threshold[j]:
                continue
            found = 0
            depth = 1
            stack[0, 0], stack[0, 1] = top[k], k
            while depth > 0:
                depth -= 1
                v, m = stack[depth, 0], stack[depth, 1]
                # children were merged from the last one in depth-first order to the first
                for c in range(first[v], first[v + 1]):
                    other = child[c]
                    if size[other] == 0:
                        continue
                    n = given[other, m]
                    if n > 0:
                        stack[depth, 0], stack[depth, 1] = other, n
                        depth += 1
                        m -= n
                if m > 0:
                    hosts[j, k, found] = v
                    counts[j, k, found] = m
                    found += 1
    return cost, hosts, counts


@njit_cached
def split_links(parent: Ints, hosts: Ints, counts: Ints) -> Ints:
    """Nodes whose link to the parent has workers of the ring on both sides.

    Parameters
    ----------
    parent : (V,)
    hosts, counts : (h,) the ring

    Returns
    -------
    (n,) at most h times the depth of the tree.
    """
    total = counts.sum()
    below = {np.int64(-1): np.int64(0)}
    for i in range(len(hosts)):
        v = hosts[i]
        while v >= 0:
            if v in below:
                below[v] += counts[i]
            else:
                below[v] = counts[i]
            v = parent[v]
    found = [v for v, n in below.items() if v >= 0 and n < total]
    return np.array(found, dtype=np.int64)


def warm_up() -> None:
    """Compile both functions, or load them from the cache: the instance that warms a worker may be no tree."""
    one = np.zeros(1, dtype=np.int64)
    root = np.full(1, -1, dtype=np.int64)
    price_tree(
        one, root, np.zeros(2, dtype=np.int64), one[:0], np.zeros((1, 1, 2)), np.zeros((1, 1)),
        np.ones((1, 1), dtype=np.int64), np.ones(1, dtype=np.int64), np.zeros((1, 2)), np.zeros(1),
    )  # fmt: skip
    split_links(root, one, np.ones(1, dtype=np.int64))
