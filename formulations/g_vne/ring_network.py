"""A g-vne instance as arrays, and rings placed one after the other into its network."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Json, Solution, once_per_instance
from schedgap.formulations.common.substrate import MOST_WORKERS, SubstrateInstance, most_multiples
from schedgap.formulations.g_vne.instance import GVneInstance

# A g-vne instance as arrays, for the models and the exact methods; the checker does not use it.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

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


# Rings placed one after the other into a network: what is left of servers and links, and a greedy search.
#
# For every problem whose jobs are rings of workers on a :class:`SubstrateInstance` (g-vne, ddljs).

SLACK = 5e-10
"""Relative tolerance of capacities: half of the checker's, which leaves room for rounding in sums of floats."""
MOST_STARTS = 16
"""Servers from which a ring over several servers is tried to be closed, unless the caller says otherwise."""


@dataclass(frozen=True)
class Need:
    """What a job asks of the network for each worker and each ring edge."""

    demand: NDArray[np.float64]  # (R,) of one worker, in the network's order of resources
    bandwidth: float  # of one use of a link
    hostable: bool  # False where it asks for a resource that no server has


@dataclass(frozen=True)
class Ring:
    """An embedded ring by positions of nodes: ``workers`` in ring order, ``routes[k]`` from worker k to the next."""

    workers: tuple[int, ...]
    routes: tuple[tuple[int, ...], ...]

    def uses(self) -> list[tuple[int, int]]:
        """Every use of a link, as a pair of nodes; a link used twice is there twice."""
        return [pair for route in self.routes for pair in itertools.pairwise(route)]


class RingNetwork:
    """A network on which rings are placed and taken away again.

    Parameters
    ----------
    instance : servers and links; jobs are not looked at

    Notes
    -----
    Memory O(servers * resources + links).
    """

    def __init__(self, instance: SubstrateInstance) -> None:
        self.ids = [server.id for server in instance.servers]
        self.resources = instance.resources
        self.capacity = np.array(
            [[server.resources.get(name, 0.0) for name in self.resources] for server in instance.servers], dtype=float
        ).reshape(len(self.ids), len(self.resources))
        self.used = np.zeros_like(self.capacity)
        self.link_index = instance.link_index
        self.bandwidth = [link.bandwidth for link in instance.links]
        self.load = [0.0] * len(self.bandwidth)
        self.out: list[list[tuple[int, int]]] = [[] for _ in self.ids]
        for (source, target), link in self.link_index.items():
            self.out[source].append((target, link))

    def reset(self) -> None:
        """Take all rings away."""
        self.used[:] = 0.0
        self.load = [0.0] * len(self.bandwidth)

    def need(self, demand: Mapping[str, float], bandwidth: float) -> Need:
        """A job's demand in this network's order of resources."""
        known = set(self.resources)
        hostable = not any(amount > 0 and name not in known for name, amount in demand.items())
        amounts = np.array([demand.get(name, 0.0) for name in self.resources], dtype=float)
        return Need(amounts, bandwidth, hostable)

    def room(self, need: Need) -> NDArray[np.int64]:
        """How many workers of a job each node can still host, at most the longest ring there may be: (S,)."""
        if not need.hostable:
            return np.zeros(len(self.ids), dtype=np.int64)
        asked = need.demand > 0
        remaining = self.capacity[:, asked] * (1 + SLACK) - self.used[:, asked]
        most = np.floor(np.maximum(remaining, 0.0) / need.demand[asked]).min(axis=1)
        fits: NDArray[np.int64] = np.minimum(most, MOST_WORKERS).astype(np.int64)
        return fits

    def place(self, need: Need, size: int, most_starts: int = MOST_STARTS) -> Ring | None:
        """Find room for a ring greedily and occupy it.

        One server where one can host all workers (the one with least room to spare). Otherwise workers go to a
        server, then to the nearest one with room that links with enough bandwidth left lead to, until all are
        placed, and a path back closes the ring. Servers with most room are tried first as the start. Returns the ring,
        or None where none was found (there may be one).

        Parameters
        ----------
        need : the job
        size : workers
        most_starts : how many starts to try

        Notes
        -----
        O(most_starts * hosts of a ring * links).
        """
        room = np.minimum(self.room(need), size)
        if int(room.sum()) < size:
            return None
        if int(room.max()) == size:
            whole = np.flatnonzero(room == size)
            spare = self.room(need)[whole]
            ring: Ring | None = _together(int(whole[int(spare.argmin())]), size)
        else:
            ring = None
            starts = [int(s) for s in np.argsort(-room, kind="stable")[:most_starts] if room[s] > 0]
            for start in starts:
                ring = self._around(need, size, room.tolist(), start)
                if ring is not None:
                    break
        if ring is not None:
            self.occupy(need, ring)
        return ring

    def occupy(self, need: Need, ring: Ring, sign: int = 1) -> None:
        """Take what a ring uses (or, with `sign` -1, give it back)."""
        for host in ring.workers:
            self.used[host] += sign * need.demand
        for pair in ring.uses():
            self.load[self.link_index[pair]] += sign * need.bandwidth

    def release(self, need: Need, ring: Ring) -> None:
        """Take a placed ring away; what is left of rounding never goes below nothing."""
        self.occupy(need, ring, -1)
        np.maximum(self.used, 0.0, out=self.used)
        for pair in ring.uses():
            link = self.link_index[pair]
            self.load[link] = max(0.0, self.load[link])

    def fits(self, need: Need, ring: Ring) -> bool:
        """Whether a ring (placed anywhere, by any method) fits what is left."""
        hosts, counts = np.unique(np.array(ring.workers), return_counts=True)
        if (self.room(need)[hosts] < counts).any():
            return False
        extra: dict[int, float] = {}
        for pair in ring.uses():
            link = self.link_index[pair]
            extra[link] = extra.get(link, 0.0) + need.bandwidth
        return all(self._passes(link, amount) for link, amount in extra.items())

    def solution_of(self, ring: Ring) -> dict[str, Json]:
        """The ring as it stands in a solution file."""
        names = self.ids
        return {
            "workers": [names[host] for host in ring.workers],
            "routes": [[names[node] for node in route] for route in ring.routes],
        }

    def _passes(self, link: int, amount: float) -> bool:
        return self.load[link] + amount <= self.bandwidth[link] * (1 + SLACK)

    def _around(self, need: Need, size: int, room: list[int], start: int) -> Ring | None:
        """A ring that starts at this server and goes on to the nearest servers with room."""
        taken: dict[int, float] = {}
        workers: list[int] = []
        routes: list[tuple[int, ...]] = []
        here = start
        while True:
            count = min(room[here], size - len(workers))
            room[here] -= count
            workers.extend([here] * count)
            routes.extend([(here,)] * (count - 1))
            missing = size - len(workers)
            path = self._nearest(need.bandwidth, taken, here, room if missing else None, start, missing)
            if path is None:
                return None
            for pair in itertools.pairwise(path):
                link = self.link_index[pair]
                taken[link] = taken.get(link, 0.0) + need.bandwidth
            routes.append(tuple(path))
            if not missing:
                return Ring(tuple(workers), tuple(routes))
            here = path[-1]

    def _nearest(
        self, bandwidth: float, taken: dict[int, float], source: int, room: list[int] | None, goal: int, missing: int
    ) -> list[int] | None:
        """A path with fewest links to the goal, or (with `room`) to a nearest server with most useful room."""
        before = {source: -1}
        layer = [source]
        while layer:
            following: list[int] = []
            for node in layer:
                for target, link in self.out[node]:
                    if target not in before and self._passes(link, taken.get(link, 0.0) + bandwidth):
                        before[target] = node
                        following.append(target)
            found = -1
            if room is None:
                found = goal if goal in before and before[goal] >= 0 else -1
            else:
                best = 0
                for node in following:
                    useful = min(room[node], missing)
                    if useful > best:
                        best, found = useful, node
            if found >= 0:
                return _path(before, found)
            layer = following
        return None


def rings_of(instance: SubstrateInstance, solution: Solution) -> dict[int, Ring]:
    """The rings of a solution of g-vne, or of one slot of ddljs, by job, as positions of nodes."""
    where, jobs = instance.server_index, instance.job_index
    return {
        jobs[name]: Ring(
            tuple(where[host] for host in ring["workers"]),
            tuple(tuple(where[node] for node in route) for route in ring["routes"]),
        )
        for name, ring in solution["rings"].items()
    }


def _together(host: int, size: int) -> Ring:
    """All workers on one server: a ring edge is a route of one node; a single worker has none."""
    return Ring((host,) * size, ((host,),) * (size if size > 1 else 0))


def _path(before: Mapping[int, int], node: int) -> list[int]:
    path = [node]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return path[::-1]


# Contiguous workers, simple routes: neither loses anything where servers relay.


def contiguous_ring(workers: Sequence[int], routes: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """The same workers on every server, those of one server next to each other, no link used more often.

    The ring is a closed walk; all workers of a server move to its first visit and the other visits relay. Cycles of
    the joined walks are cut.

    Parameters
    ----------
    workers : the host of each position
    routes : the node path from each position to the next, around; empty for a ring of one

    Returns
    -------
    Hosts and routes in the same form, every route simple. O(length of the walk). Needs servers that relay.
    """
    size = len(workers)
    if size == 1:
        return list(workers), []
    first = [a for a in range(size) if workers[a] not in workers[:a]]
    hosts: list[int] = []
    paths: list[list[int]] = []
    for place, a in enumerate(first):
        until = first[place + 1] if place + 1 < len(first) else size + first[0]
        walk = [workers[a]]
        for step in range(a, until):
            walk.extend(routes[step % size][1:])
        count = sum(host == workers[a] for host in workers)
        hosts.extend([workers[a]] * count)
        paths.extend([[workers[a]]] * (count - 1))
        paths.append(without_cycles(walk))
    return hosts, paths


def without_cycles(walk: Sequence[int]) -> list[int]:
    """A simple path with the walk's ends, along its links: what lies between two visits of a node is cut."""
    path: list[int] = []
    place: dict[int, int] = {}
    for node in walk:
        if node in place:
            for gone in itertools.islice(path, place[node] + 1, None):
                del place[gone]
            del path[place[node] + 1 :]
        else:
            place[node] = len(path)
            path.append(node)
    return path
