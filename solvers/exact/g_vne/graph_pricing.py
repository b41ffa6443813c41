"""The best rings of all jobs on a general network: distances, layered searches, critical hosts."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.tables import Tables
from schedgap.solvers.exact.g_vne.graph import all_roots, layered, shortest_paths
from schedgap.solvers.exact.g_vne.rules import Rules

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_CRITICAL = 7
"""Critical hosts of one root; with more, the relaxed value is used."""


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

    def __init__(self, data: Tables, wide: Bools) -> None:
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
