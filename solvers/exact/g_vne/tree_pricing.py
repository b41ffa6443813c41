"""Pricing of rings on a network without cycles: a knapsack over the tree for all sizes at once, compiled.

A ring that visits its hosts in depth-first order uses a tree link once in each direction if and only if it has
workers on both sides, and no ring can do with less. For costs p_v(n) of n workers, link prices w and caps, with
total size k, H_v(m) = min cost of m workers in the subtree of v, its own links included, others being
elsewhere, is a min-plus sum over the children of ``H_c(n) + [n > 0] w_c`` and of ``p_v(n)``, n <= cap_v; the
best ring of k workers costs ``min_v H_v(k)``, v being the highest node it needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_inline


class Tree(NamedTuple):
    """A network without cycles, for compiled code."""

    # order, parent: (V,) of :class:`~schedgap.formulations.g_vne.network_tables.Forest`
    order: Ints
    parent: Ints
    # first, child: children of v are ``child[first[v]:first[v + 1]]``, in the order of `order`
    first: Ints
    child: Ints


class TreePrices(NamedTuple):
    """What rings cost and are worth."""

    node_cost: Floats  # (J, V, K + 1) of so many workers
    # (J, V) of a ring split by the link between v and its parent, both directions; inf where it cannot be
    link_price: Floats
    cap: Ints  # (J, V)
    longest: Ints  # (J,) largest ring
    weight: Floats  # (J, K + 1) worth of a ring by size; -inf for a size that is not wanted
    threshold: Floats  # (J,) rings whose value is above it are traced


class Subtrees(NamedTuple):
    """The sums over subtrees of one job; room to work in."""

    table: Floats  # (V, K + 1) H_v(m), as far as the children are merged
    given: Ints  # (V, K + 1) of m workers below the parent, when v was merged, how many are below v
    size: Ints  # (V,) most workers in the subtree
    merged: Floats  # (K + 1,) a parent's next row
    top: Ints  # (K + 1,) the highest node of the best ring of so many workers
    stack: Ints  # (V, 2) nodes, and workers below them, that are still to be traced


@njit_inline
def _merge(v: int, u: int, price: float, longest: int, work: Subtrees) -> None:
    """Add the subtree of v to that of its parent u: of m workers n are below v, which then costs the link."""
    table, merged, given, size = work.table, work.merged, work.given, work.size
    total = min(longest, size[u] + size[v])
    for m in range(total + 1):
        merged[m] = table[u, m] if m <= size[u] else np.inf
        given[v, m] = 0
    for n in range(1, size[v] + 1):
        extra = table[v, n] + price
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


@njit_inline
def _trace(j: int, k: int, tree: Tree, work: Subtrees, hosts: Ints, counts: Ints) -> None:
    """Write down the best ring of k workers of job j: its hosts and how many each has."""
    stack, size, given = work.stack, work.size, work.given
    found, depth = 0, 1
    stack[0, 0], stack[0, 1] = work.top[k], k
    while depth > 0:
        depth -= 1
        v, m = stack[depth, 0], stack[depth, 1]
        # children were merged from the last one in depth-first order to the first
        for c in range(tree.first[v], tree.first[v + 1]):
            other = tree.child[c]
            if size[other] == 0:
                continue
            n = given[other, m]
            if n > 0:
                stack[depth, 0], stack[depth, 1] = other, n
                depth += 1
                m -= n
        if m > 0:
            hosts[j, k, found], counts[j, k, found] = v, m
            found += 1


@njit_inline
def _price_job(j: int, tree: Tree, prices: TreePrices, work: Subtrees, cost: Floats, hosts: Ints, counts: Ints) -> None:
    """The cheapest rings of one job: from the leaves up, then traced down where they are worth it."""
    longest, table, size = prices.longest[j], work.table, work.size
    for v in range(len(tree.order)):
        size[v] = min(longest, prices.cap[j, v])
        for m in range(size[v] + 1):
            table[v, m] = prices.node_cost[j, v, m]
    for place in range(len(tree.order) - 1, -1, -1):  # children before parents
        v = tree.order[place]
        for m in range(1, size[v] + 1):
            if table[v, m] < cost[j, m]:
                cost[j, m] = table[v, m]
                work.top[m] = v
        if tree.parent[v] >= 0 and size[v] > 0:
            _merge(v, tree.parent[v], prices.link_price[j, v], longest, work)
    for k in range(1, longest + 1):
        if prices.weight[j, k] - cost[j, k] > prices.threshold[j]:
            _trace(j, k, tree, work, hosts, counts)


@njit_inline
def _price_jobs(tree: Tree, prices: TreePrices, work: Subtrees, cost: Floats, hosts: Ints, counts: Ints) -> None:
    """All jobs in turn; the loop stands here because :func:`price_tree` counts references at every call."""
    for j in range(len(cost)):
        _price_job(j, tree, prices, work, cost, hosts, counts)


@njit_cached
def price_tree(tree: Tree, prices: TreePrices) -> tuple[Floats, Ints, Ints]:
    """The cheapest ring of every job and size.

    Returns (J, K + 1) costs, inf where there is none; hosts and counts, (J, K + 1, K) with -1 for none, of those
    traced.

    Notes
    -----
    O(J V K^2).
    """
    jobs, nodes = prices.node_cost.shape[:2]
    most = prices.weight.shape[1] - 1
    cost = np.full((jobs, most + 1), np.inf)
    hosts = np.full((jobs, most + 1, most), -1, dtype=np.int64)
    counts = np.zeros((jobs, most + 1, most), dtype=np.int64)
    work = Subtrees(
        np.empty((nodes, most + 1)),
        np.zeros((nodes, most + 1), dtype=np.int64),
        np.empty(nodes, dtype=np.int64),
        np.empty(most + 1),
        np.empty(most + 1, dtype=np.int64),
        np.empty((nodes, 2), dtype=np.int64),
    )
    _price_jobs(tree, prices, work, cost, hosts, counts)
    return cost, hosts, counts


@njit_cached
def split_links(parent: Ints, hosts: Ints, counts: Ints) -> Ints:
    """Nodes whose link to the parent has workers of the ring on both sides.

    Returns (n,) at most h times the depth of the tree.

    Parameters
    ----------
    parent : (V,)
    hosts, counts : (h,) the ring
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


def warm_up_tree() -> None:
    """Compile both functions, or load them from the cache: the instance that warms a worker may be no tree."""
    one = np.zeros(1, dtype=np.int64)
    root = np.full(1, -1, dtype=np.int64)
    tree = Tree(one, root, np.zeros(2, dtype=np.int64), one[:0])
    ones = np.ones(1, dtype=np.int64)
    flat = np.zeros((1, 1))
    price_tree(tree, TreePrices(np.zeros((1, 1, 2)), flat, ones[:, None], ones, np.zeros((1, 2)), flat[0]))
    split_links(root, one, ones)
