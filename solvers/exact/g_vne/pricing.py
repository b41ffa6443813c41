"""The best rings of all jobs, compiled: on a general network, and on one without cycles."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached, njit_inline
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.ring_network import NetworkTables

# What a node of g-vne's branch and price allows.

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

Edge = tuple[int, int, int]
"""A ring edge of a job between two hosts: (job, host, next host)."""


@dataclass(frozen=True)
class Rules:
    """Restrictions on the rings of every job. All of them are kept by the pricing itself, but `at_least`."""

    cap: Ints  # (J, V) most workers of the job on a node
    out: Bools  # (J,) the job is left out
    must: frozenset[int] = frozenset()  # jobs that are embedded
    # (job, node, n): the job has at least n workers on the node; a row of the master, whose dual is part of the node's
    # price
    at_least: tuple[tuple[int, int, int], ...] = ()
    no_edge: frozenset[Edge] = frozenset()  # ring edges that must not occur
    no_link: Mapping[Edge, frozenset[int]] = field(default_factory=dict)  # links that a ring edge must not use


# The best rings of all jobs on a general network: distances, layered searches, critical hosts.

# Pricing of rings on a general network: shortest paths under the link prices, then a layered search, compiled.
#
# A ring is a closed walk over hosts. Rooted at its host of smallest index, it is a path through layers 0..k, where
# going to another host and putting n workers there leads n layers up; ``D[m, t]`` is the cheapest way to have put m
# workers with t as the last host. Walks may come back to a host, so that it holds more than its cap. Hosts that the
# best walk overfills become critical for its root: which of them were visited is then part of the state
# (Righini and Salani, Networks 51, 2008; ng-routes after Baldacci, Mingozzi and Roberti, 2011, are the
# same relaxation with memories that fade).

Floats = NDArray[np.float64]


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

    Returns (K + 1,) costs; (K + 1, 2 K) the walk of each size: host and count alternate, -1 ends it.

    Parameters
    ----------
    root : a host, 0..H-1
    between : (H, H) cost of a ring edge between hosts
    cost_of : (H, K + 1) of so many workers
    cap : (H,) at least 1
    longest : K
    bit : (H,) number of a critical host, -1 for the others
    bits : how many critical hosts there are

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


MOST_CRITICAL = 7
"""Critical hosts of one root; with more, the value of a walk that overfills a host is used: no ring is worth more."""


@dataclass(frozen=True)
class Walk:
    """A ring: hosts in its order, their workers, the links between them. ``overfilled``: a host is above its cap."""

    job: int
    hosts: tuple[int, ...]
    counts: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]
    overfilled: bool


class GraphPricing:
    """Pricing on one network.

    Parameters
    ----------
    data : the instance
    wide : (J, E) links that the job may use
    """

    def __init__(self, data: NetworkTables, wide: Bools) -> None:
        self.data = data
        order = np.argsort(data.tail, kind="stable")
        self.first = np.concatenate([[0], np.cumsum(np.bincount(data.tail, minlength=data.nodes))]).astype(np.int64)
        self.link = order.astype(np.int64)
        self.wide = wide
        self.hosts = np.flatnonzero(data.eligible.any(axis=0)).astype(np.int64)
        self.place = {int(v): i for i, v in enumerate(self.hosts)}
        self.patterns, self.pattern_of = np.unique(wide, axis=0, return_inverse=True)
        self.pattern_of = self.pattern_of.reshape(-1)
        self.relaxed = 0
        """Jobs priced optimistically, by a walk that overfills a host."""

    def price_all(
        self, node: Floats, link: Floats, worth: Floats, longest: Ints, rules: Rules
    ) -> tuple[Floats, list[Walk]]:
        """The best value of each job, or an optimistic one, with its ring, and good rings of other sizes.

        Parameters
        ----------
        node : (J, V, K + 1) cost of so many workers
        link : (E,) price of bandwidth
        worth : (J, K + 1) -inf for sizes that are not wanted
        longest : (J,) 0 for a job that is left out
        """
        distances: dict[int, tuple[Floats, Ints]] = {}
        best = np.full(self.data.jobs, -np.inf)
        walks: list[Walk] = []
        for j in range(self.data.jobs):
            if longest[j] == 0:
                continue
            pattern = int(self.pattern_of[j])
            if pattern not in distances:
                price = np.where(self.patterns[pattern], link, np.inf)
                distances[pattern] = shortest_paths(self.hosts, self.first, self.link, self.data.head, price)
            best[j], found = self.price(j, node[j], link, worth[j], int(longest[j]), distances[pattern], rules)
            walks.extend(found)
        return best, walks

    def price_one(self, j: int, node: Floats, link: Floats, worth: Floats, longest: int, cap: Ints) -> Walk | None:
        """The best ring of one job under its own caps and link prices, inf for a link that it must not use."""
        price = np.where(self.wide[j], link, np.inf)
        unit = shortest_paths(self.hosts, self.first, self.link, self.data.head, price)
        caps = np.zeros((self.data.jobs, len(cap)), dtype=np.int64)
        caps[j] = cap
        rules = Rules(caps, np.zeros(self.data.jobs, dtype=bool))
        _, walks = self.price(j, node, link, worth, longest, unit, rules)
        return walks[0] if walks else None

    def price(
        self,
        j: int,
        node: Floats,
        link: Floats,
        worth: Floats,
        longest: int,
        unit: tuple[Floats, Ints],
        rules: Rules,
    ) -> tuple[float, list[Walk]]:
        """One job: its best value, exact unless more than `MOST_CRITICAL` hosts of a root are critical."""
        places = np.flatnonzero(rules.cap[j, self.hosts] > 0)
        if not len(places):
            return -np.inf, []
        hosts = self.hosts[places]
        width = float(self.data.job_bandwidth[j])
        distance, last = unit
        apart = distance[places][:, hosts]
        between = np.where(np.isfinite(apart), width * np.where(np.isfinite(apart), apart, 0.0), np.inf)
        detours = self._detours(j, hosts, between, link, width, rules)
        price = np.ascontiguousarray(node[hosts, : longest + 1])
        cap = np.ascontiguousarray(rules.cap[j, hosts])
        cost, trace = all_roots(between, price, cap, longest)

        def walk(root_trace: Ints) -> Walk:
            pairs = root_trace[root_trace[:, 0] >= 0][::-1]
            return self._walk(j, hosts, pairs, last[places], detours, cap)

        return self._settle(cost, trace, worth[: longest + 1], between, price, cap, walk)

    def _settle(
        self,
        cost: Floats,
        trace: Ints,
        worth: Floats,
        between: Floats,
        price: Floats,
        cap: Ints,
        walk: Callable[[Ints], Walk],
    ) -> tuple[float, list[Walk]]:
        """Search roots in order of their best value until a ring keeps its caps."""
        longest = len(worth) - 1
        traces = list(trace.reshape(len(price), longest + 1, longest, 2))
        values = worth[None, :] - cost
        critical: list[list[int]] = [[] for _ in range(len(price))]
        tops = values.max(axis=1)
        heap = [(-float(tops[root]), int(root)) for root in np.flatnonzero(np.isfinite(tops))]
        heapq.heapify(heap)
        top = -np.inf
        settled: Walk | None = None
        while heap:
            top, root = -heap[0][0], heap[0][1]
            k = int(np.argmax(values[root]))
            best = walk(traces[root][k])
            if not best.overfilled:
                settled = best
                break
            fresh = self._revisited(traces[root][k], cap)
            if len(critical[root]) + len(fresh) > MOST_CRITICAL:
                self.relaxed += 1
                settled = best
                break
            critical[root] += fresh
            bit = np.full(len(price), -1, dtype=np.int64)
            bit[critical[root]] = np.arange(len(critical[root]))
            renewed, steps = layered(root, between, price, cap, longest, bit, len(critical[root]))
            values[root] = worth - renewed
            traces[root] = steps.reshape(longest + 1, longest, 2)
            heapq.heapreplace(heap, (-float(values[root].max()), root))
        if settled is None:
            return -np.inf, []
        found = [settled]
        for k in range(1, longest + 1):
            root = int(np.argmax(values[:, k]))
            if values[root, k] > 0:  # a ring that is worth nothing at the prices improves no master
                other = walk(traces[root][k])
                if not other.overfilled and other != settled:
                    found.append(other)
        return top, found

    @staticmethod
    def _revisited(steps: Ints, cap: Ints) -> list[int]:
        """Hosts that a walk overfills."""
        total: dict[int, int] = {}
        for host, count in steps:
            if host >= 0:
                total[int(host)] = total.get(int(host), 0) + int(count)
        return [host for host, count in total.items() if count > cap[host]]

    def _walk(
        self,
        j: int,
        hosts: Ints,
        pairs: Ints,
        last: Ints,
        detours: dict[tuple[int, int], tuple[int, ...]],
        cap: Ints,
    ) -> Walk:
        """The ring of a traced walk; consecutive visits with their paths."""
        order = [int(h) for h in pairs[:, 0]]
        counts = [int(n) for n in pairs[:, 1]]
        paths = []
        if len(order) > 1:
            for here, after in zip(order, order[1:] + order[:1], strict=True):
                known = detours.get((here, after))
                paths.append(tuple(self._path(last[here], int(hosts[after]))) if known is None else known)
        overfilled = bool(self._revisited(pairs, cap))
        return Walk(j, tuple(int(hosts[h]) for h in order), tuple(counts), tuple(paths), overfilled)

    def _path(self, last: Ints, target: int) -> Iterator[int]:
        """Links of a shortest path, in order."""
        back = []
        while last[target] >= 0:
            e = int(last[target])
            back.append(e)
            target = int(self.data.tail[e])
        return reversed(back)

    def _detours(
        self, j: int, hosts: Ints, between: Floats, link: Floats, width: float, rules: Rules
    ) -> dict[tuple[int, int], tuple[int, ...]]:
        """Apply the rules on single ring edges: distances changed in `between`, paths returned."""
        where = {int(v): i for i, v in enumerate(hosts)}
        for job, here, after in rules.no_edge:
            if job == j and here in where and after in where:
                between[where[here], where[after]] = np.inf
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        for (job, here, after), forbidden in rules.no_link.items():
            if job != j or here not in where or after not in where or (j, here, after) in rules.no_edge:
                continue
            price = np.where(self.wide[j], link, np.inf)
            price[list(forbidden)] = np.inf
            source = np.array([here], dtype=np.int64)
            distance, last = shortest_paths(source, self.first, self.link, self.data.head, price)
            far = distance[0, after]
            between[where[here], where[after]] = width * far if np.isfinite(far) else np.inf
            if np.isfinite(far):
                found[where[here], where[after]] = tuple(self._path(last[0], after))
        return found


def warm_up(instance: GVneInstance) -> None:
    """Compile the search with critical hosts, or load it from the cache: most instances do not need it."""
    del instance
    between = np.zeros((2, 2), order="F")  # as the searches get it
    layered(0, between, np.zeros((2, 2)), np.ones(2, dtype=np.int64), 1, np.full(2, -1, dtype=np.int64), 0)


# Pricing of rings on a network without cycles: a knapsack over the tree for all sizes at once, compiled.
#
# A ring that visits its hosts in depth-first order uses a tree link once in each direction if and only if it has
# workers on both sides, and no ring can do with less. For costs p_v(n) of n workers,
# link prices w and caps, with total size k,
#
#     H_v(m) = min cost of m workers in the subtree of v, its own links included, others being elsewhere,
#
# is a min-plus sum over the children of ``H_c(n) + [n > 0] w_c`` and of ``p_v(n)``, n <= cap_v; the best ring of k
# workers costs ``min_v H_v(k)``, v being the highest node it needs.


class Tree(NamedTuple):
    """A network without cycles, for compiled code."""

    # order, parent: (V,) of :class:`~schedgap.formulations.g_vne.ring_network.Forest`
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
