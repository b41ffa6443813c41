"""The best rings of all jobs on a general network: distances, layered searches, critical hosts.

Pricing of rings on a general network: shortest paths under the link prices, then a layered search, compiled. A
ring is a closed walk over hosts. Rooted at its host of smallest index, it is a path through layers 0..k, where
going to another host and putting n workers there leads n layers up; ``D[m, t]`` is the cheapest way to have put
m workers with t as the last host. Walks may come back to a host, so that it holds more than its cap. Hosts that
the best walk overfills become critical for its root: which of them were visited is then part of the state
(Righini and Salani, Networks 51, 2008; ng-routes after Baldacci, Mingozzi and Roberti, 2011, are the same
relaxation with memories that fade).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.network_tables import NetworkTables
from schedgap.solvers.exact.g_vne.node_rules import Rules


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
