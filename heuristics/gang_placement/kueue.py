"""Kueue's topology-aware scheduling: BestFit, LeastFreeCapacity and MostFreeCapacity.

Source: Kueue's main after release 0.19 (2026): KEP-2724 "Topology Aware Scheduling", pkg/cache/scheduler/
tas_flavor_snapshot.go, and the cases of its TestFindTopologyAssignments; MostFreeCapacity left with 0.13.
Domains are counted by the pods that they hold. At the required or preferred level, BestFit takes the domain with the
fewest pods that holds all; where none does, a required level fails, and a preferred one goes
up, at the widest level to several domains, the largest first. Below, the same among the children of all that was
chosen. Where there is no level, nodes of the whole cluster are chosen; Kueue takes LeastFreeCapacity there since v0.15,
whatever it does elsewhere. Domains that hold equally many come by name.

A gang of one pod and a group of others is a leader with workers, who are counted together: domains that hold the leader
come first, by the workers that they hold beside it, and it goes where it costs no more workers than can be spared (as
since its pull request 13383). Other groups are assigned one after another, and must share a
domain of a required level: the first chooses it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from schedgap.formulations.gang_placement.instance import MOST_PODS, Domain, Gang, Group
from schedgap.heuristics.gang_placement.cluster import Cluster, Pod, give_back, prefix

Profile = Literal["best", "least", "most"]


@dataclass(eq=False)
class _Room:
    """A domain: the workers that it holds, alone and beside a leader, and whether it holds the leader.

    Once it is chosen, `workers` and `leader` are what it gets. `node` is the position of a node, -1 of wider domains.
    """

    path: Domain
    workers: int
    beside: int
    leader: int
    node: int = -1

    def most(self, leaders: int) -> int:
        """Workers that it holds."""
        return self.beside if leaders else self.workers

    def holds(self, workers: int, leaders: int) -> bool:
        """Whether all of them fit."""
        return self.leader >= leaders and self.most(leaders) >= workers


class _Assignment:
    """Workers of a gang, and its leader where `groups` are two, on the tree of domains inside a domain."""

    def __init__(
        self,
        cluster: Cluster,
        gang: Gang,
        groups: Sequence[int],
        profile: Profile,
        inside: Domain,
        there: Sequence[Pod],
    ) -> None:
        self.cluster, self.gang, self.groups = cluster, gang, groups
        self.profile, self.inside = profile, inside
        self.leaders = len(groups) - 1
        self.deepest = len(cluster.instance.levels) + 1
        self.taken = Counter(pod.node for pod in there)

    def _level(self, depth: int) -> list[_Room]:
        """Domains at a depth inside the one that is given, those that take something."""
        domains = self.cluster.domains(depth)
        return self._rooms(path for path in domains if path[: len(self.inside)] == self.inside)

    def _children(self, place: _Room) -> list[_Room]:
        return self._rooms(self.cluster.children(place.path))

    def _rooms(self, paths: Iterable[Domain]) -> list[_Room]:
        rooms = (self._room(path, self.cluster.domains(len(path))[path]) for path in paths)
        return [room for room in rooms if room.workers or room.leader]

    def _room(self, path: Domain, nodes: Sequence[int]) -> _Room:
        """A domain as its nodes add up; the leader is where it costs the fewest workers."""
        limit, workers = self.gang.per_node or MOST_PODS, self.gang.pods[self.groups[-1]]
        if self.leaders:
            rooms = [self._node(n, limit - self.taken[n], workers) for n in nodes]
        else:
            alone = (min(limit - self.taken[n], self.cluster.room(n, workers)) for n in nodes)
            rooms = [(room, room, 0) for room in alone]
        if len(path) == self.deepest:
            return _Room(path, *rooms[0], nodes[0])
        total = sum(alone for alone, _, _ in rooms)
        lost = [alone - beside for alone, beside, leader in rooms if leader >= self.leaders]
        return _Room(path, total, total - min(lost) if lost else 0, max(leader for _, _, leader in rooms))

    def _node(self, n: int, room: int, workers: Group) -> tuple[int, int, int]:
        """(workers alone, beside the leader, whether it takes the leader) of a node that takes at most `room` pods."""
        cluster, lead = self.cluster, self.gang.pods[self.groups[0]]
        alone = min(room, cluster.room(n, workers))
        devices = cluster.devices(n, lead) if room else None
        if devices is None:
            return alone, alone, 0
        cluster.take(n, lead, devices)
        beside = min(room - 1, cluster.room(n, workers))
        cluster.take(n, lead, devices, -1)
        return alone, beside, 1

    def _order(self, places: Iterable[_Room], leaders: int) -> list[_Room]:
        turn = 1 if self.profile == "least" else -1
        return sorted(places, key=lambda place: (turn * place.most(leaders), place.path))

    def run(self, level: int, workers: int, required: bool) -> list[_Room] | None:
        """Nodes with what each gets; None where they do not fit."""
        at = level or self.deepest
        chosen = self._candidates(at, workers)
        while chosen is None and level and not required and at > 1:
            at -= 1
            chosen = self._candidates(at, workers)
        if chosen is None and required:
            return None
        chosen = chosen or self._order(self._level(at), 0)
        shared = self._share(chosen, workers)
        for _ in range(at, self.deepest):
            if shared is not None:
                below = [child for place in shared if place.workers or place.leader for child in self._children(place)]
                shared = self._share(self._order(below, 0), workers)
        return shared

    def _candidates(self, level: int, workers: int) -> list[_Room] | None:
        """The one domain of a level that is taken because it holds all."""
        order = [p for p in self._order(self._level(level), self.leaders) if p.holds(workers, self.leaders)]
        return [self._tightest(order, workers, self.leaders)] if order else None

    def _tightest(self, order: Sequence[_Room], workers: int, leaders: int) -> _Room:
        """The first that holds all, of BestFit the one that does most tightly."""
        holding = [place for place in order if place.holds(workers, leaders)]
        return min(holding, key=lambda place: place.most(leaders)) if self.profile == "best" else holding[0]

    def _share(self, order: Sequence[_Room], workers: int) -> list[_Room] | None:
        """Share all out: each domain takes what it holds, the last one is the tightest that holds what is left.

        The leader comes first, to the first domain where it costs no more workers than can be spared.
        """
        leaders = self.leaders
        spare = sum(place.workers for place in order) - workers
        led = [place for place in order if place.leader and place.workers - place.beside <= spare][:leaders]
        order = [*led, *(place for place in order if place not in led)]
        chosen: list[_Room] = []
        for at, place in enumerate(order):
            if place.holds(workers, leaders):
                place = self._tightest(order[at:], workers, leaders)
            place.workers, place.leader = min(workers, place.most(leaders)), min(leaders, place.leader)
            chosen.append(place)
            workers, leaders = workers - place.workers, leaders - place.leader
            if not workers and not leaders:
                return chosen
        return None


def assign(profile: Profile, cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
    """Place the first pods of a gang: BestFit, LeastFreeCapacity (the smallest domains first) or MostFreeCapacity."""
    instance = cluster.instance
    required = instance.depth(gang.required)
    level = required or instance.depth(gang.preferred)
    counts = dict(prefix(gang, number))
    led = len(gang.pods) == len(counts) == 2 and gang.pods[0].count == 1
    pods: list[Pod] = []
    inside: Domain = ()
    for groups in [(0, 1)] if led else [(k,) for k in counts]:
        assignment = _Assignment(cluster, gang, groups, profile, inside, pods)
        where = assignment.run(level, counts[groups[-1]], bool(required))
        seats = [(k, place.node) for place in where or () for k in (0,) * (led * place.leader)]
        seats += [(groups[-1], place.node) for place in where or () for _ in range(place.workers)]
        for k, n in seats:
            devices = cluster.devices(n, gang.pods[k])
            if devices is None:  # parts of devices were counted beside a leader on another device
                where = None
                break
            cluster.take(n, gang.pods[k], devices)
            pods.append(Pod(k, n, devices))
        if where is None:
            give_back(cluster, gang, pods)
            return None
        inside = instance.domain(where[0].node, required)
    return pods
