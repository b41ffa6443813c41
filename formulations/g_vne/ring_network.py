"""Rings placed one after the other into a network: what is left of servers and links, and a greedy search.

For every problem whose jobs are rings of workers on a :class:`SubstrateInstance` (g-vne, ddljs).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Json, Solution
from schedgap.formulations.g_vne.substrate import MOST_WORKERS, SubstrateInstance

SLACK = 5e-10
"""Relative tolerance of capacities: half of the checker's, which leaves room for rounding in sums of floats."""


MOST_STARTS = 16
"""Servers from which a ring over several servers is tried to be closed, unless the caller says otherwise."""


@dataclass(frozen=True)
class Need:
    """What a job asks of the network for each worker and each ring edge."""

    demand: NDArray[np.float64]  # (R,) of one worker, in the network's order of resources
    bandwidth: float  # bandwidth of one use of a link
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
