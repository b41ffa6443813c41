"""A g-vne instance as arrays, for the models and the exact methods; the checker does not use it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.substrate import most_multiples

NEAR = 1e-6
"""A quotient this near to a whole number is floored in exact arithmetic."""


LONG = 100
"""Workers of a ring beyond which tables are cut to what there is room for."""


@dataclass(frozen=True)
class NetworkTables:
    """An instance as arrays: V nodes, E directed links, R resources, J jobs, rings of up to K workers."""

    capacity: Floats  # (V, R)
    # tail, head, bandwidth: (E,)
    tail: Ints
    head: Ints
    bandwidth: Floats
    demand: Floats  # (J, R) of one worker; a resource that no server lists makes the job's caps 0
    job_bandwidth: Floats  # (J,)
    longest: Ints  # (J,) N_j, length of the job's utility
    utility: Floats  # (J, K + 1), 0 at size 0, -inf beyond N_j
    cap: Ints  # (J, V) workers of the job that fit on the node alone, at most N_j: the paper's (5)
    wide: Bools  # (J, E) whether one ring edge of the job fits on the link alone
    resources: tuple[str, ...]  # (R,) their names

    @property
    def links(self) -> int:
        """E."""
        return len(self.tail)

    @property
    def nodes(self) -> int:
        """V."""
        return len(self.capacity)

    @property
    def jobs(self) -> int:
        """J."""
        return len(self.demand)

    @cached_property
    def eligible(self) -> Bools:
        """(J, V): at least one worker fits."""
        return self.cap > 0

    @cached_property
    def largest_ring(self) -> Ints:
        """(J,) a ring has no more workers than this, wherever it is: min(N_j, sum of the caps)."""
        found: Ints = np.minimum(self.longest, self.cap.sum(axis=1))
        return found

    @cached_property
    def forest(self) -> Forest | None:
        """The network as a rooted forest, or None where its links, directions aside, form a cycle."""
        return _forest(self)


@dataclass(frozen=True)
class Forest:
    """A network without cycles, rooted."""

    order: Ints  # (V,) nodes, every parent before its children, each tree in depth-first order
    parent: Ints  # (V,) -1 for a root
    # up, down: (V,) the link to the parent and from it, -1 where there is none
    up: Ints
    down: Ints

    @cached_property
    def depth(self) -> Ints:
        """(V,) links between a node and its root."""
        depth = np.zeros(len(self.order), dtype=np.int64)
        for node in self.order:
            if self.parent[node] >= 0:
                depth[node] = depth[self.parent[node]] + 1
        return depth

    @cached_property
    def place(self) -> Ints:
        """(V,) position of each node in `order`."""
        place = np.zeros(len(self.order), dtype=np.int64)
        place[self.order] = np.arange(len(self.order))
        return place

    def path(self, start: int, end: int) -> list[int]:
        """Nodes of the only simple path between two nodes of one tree."""
        left, right = [start], [end]
        while left[-1] != right[-1]:
            if self.depth[left[-1]] >= self.depth[right[-1]]:
                left.append(int(self.parent[left[-1]]))
            else:
                right.append(int(self.parent[right[-1]]))
        return left + right[-2::-1]


@once_per_instance
def tables(instance: GVneInstance) -> NetworkTables:
    """The arrays of an instance, made once per instance object; O(V J R + E J)."""
    return _tables(instance)


def _tables(instance: GVneInstance) -> NetworkTables:
    names = dict.fromkeys([*instance.resources, *(name for job in instance.jobs for name in job.demand)])
    capacity = np.array([[s.resources.get(name, 0.0) for name in names] for s in instance.servers], dtype=float)
    demand = np.array([[job.demand.get(name, 0.0) for name in names] for job in instance.jobs], dtype=float)
    longest = np.array([job.max_workers for job in instance.jobs], dtype=np.int64)
    where = instance.server_index
    cap = np.repeat(longest[:, None], len(capacity), axis=1)
    for r in range(len(names)):
        cap = np.minimum(cap, _quotients(capacity[:, r], demand[:, r], longest))
    if longest.max() > LONG:  # every table grows with it, and no ring has more workers than there is room for
        longest = np.minimum(longest, np.maximum(1, cap.sum(axis=1)))
    utility = np.full((len(longest), int(longest.max()) + 1), -np.inf)
    utility[:, 0] = 0.0
    for j, job in enumerate(instance.jobs):
        utility[j, 1 : longest[j] + 1] = job.utility[: longest[j]]
    bandwidth = np.array([link.bandwidth for link in instance.links], dtype=float)
    job_bandwidth = np.array([job.bandwidth for job in instance.jobs], dtype=float)
    wide = _quotients(bandwidth, job_bandwidth, np.ones_like(longest)) >= 1
    return NetworkTables(
        capacity,
        np.array([where[link.source] for link in instance.links], dtype=np.int64),
        np.array([where[link.target] for link in instance.links], dtype=np.int64),
        bandwidth,
        demand,
        job_bandwidth,
        longest,
        utility,
        cap,
        wide,
        tuple(names),
    )


def _quotients(capacity: Floats, amount: Floats, most: Ints) -> Ints:
    """(J, V) floor(capacity_v / amount_j), at most ``most_j``; quotients near whole numbers exactly."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        q = capacity[None, :] / amount[:, None]
    q = np.where(amount[:, None] > 0, np.minimum(q, most[:, None] + 0.5), most[:, None] + 0.5)
    result = np.floor(q).astype(np.int64)
    known: dict[tuple[float, float], int] = {}
    for j, v in zip(*np.nonzero(np.abs(q - np.rint(q)) <= NEAR * np.maximum(1.0, q)), strict=True):
        pair = (float(capacity[v]), float(amount[j]))
        if pair not in known:
            found = most_multiples(*pair)
            assert found is not None  # an amount of 0 has a quotient in the middle between whole numbers
            known[pair] = found
        result[j, v] = min(int(most[j]), known[pair])
    return result


def _forest(data: NetworkTables) -> Forest | None:
    n = data.nodes
    neighbours: list[dict[int, list[int]]] = [{} for _ in range(n)]
    for e in range(len(data.tail)):
        a, b = int(data.tail[e]), int(data.head[e])
        neighbours[a].setdefault(b, [-1, -1])[0] = e
        neighbours[b].setdefault(a, [-1, -1])[1] = e
    parent, up, down = (np.full(n, -1, dtype=np.int64) for _ in range(3))
    seen = np.zeros(n, dtype=bool)
    order: list[int] = []
    # the busiest node as root keeps trees shallow
    for root in sorted(range(n), key=lambda v: -len(neighbours[v])):
        if seen[root]:
            continue
        seen[root] = True
        stack = [root]
        while stack:
            node = stack.pop()
            order.append(node)
            for other, (out, back) in neighbours[node].items():
                if other == parent[node]:
                    continue
                if seen[other]:
                    return None
                seen[other] = True
                parent[other], up[other], down[other] = node, back, out
                stack.append(other)
    return Forest(np.array(order, dtype=np.int64), parent, up, down)
