"""Kueue's topology-aware scheduling: BestFit, LeastFreeCapacity and MostFreeCapacity.

Source: Kueue, KEP-2724 "Topology Aware Scheduling", and the cases of its TestFindTopologyAssignments (what hosts of
equal capacity are tried first). Each group of pods is assigned by itself: the level is the required or preferred one,
domains are counted by the pods that they hold. At the level, BestFit takes the domain with the fewest pods that holds
all; where none does, a required level fails, and a preferred one goes up, at the widest level to several domains, the
largest first. Below, the same among the children of what was chosen. Where there is no level, nodes of the whole
cluster are chosen; Kueue takes LeastFreeCapacity there since v0.15, whatever it does elsewhere. Domains that hold
equally many come by name. Groups are assigned one after another, and must share a domain of a required level: the first
chooses it. (Kueue counts a leader and its workers together before it chooses.)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

from schedgap.formulations.gang_placement.instance import Domain, Gang, GangPlacementInstance
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.gang_placement.cluster import Cluster, Pod, give_back, prefix, run_rule
from schedgap.solvers.result import NO_DEADLINE, Deadline

Profile = Literal["best", "least", "most"]


class _Assignment:
    """One group of a gang on the tree of domains."""

    def __init__(self, cluster: Cluster, gang: Gang, k: int, profile: Profile, inside: Domain, there: Sequence[Pod]):
        self.instance = cluster.instance
        self.profile = profile
        self.deepest = len(self.instance.levels) + 1
        self.count: dict[Domain, int] = {}
        self.nodes: dict[Domain, int] = {}
        for n in range(len(self.instance.nodes)):
            path = self.instance.domain(n, self.deepest)
            if path[: len(inside)] != inside:
                continue
            self.nodes[path] = n
            pods = cluster.most_pods(n, gang.pods[k])
            if gang.per_node is not None:
                pods = min(pods, gang.per_node - sum(pod.node == n for pod in there))
            for depth in range(self.deepest + 1):
                self.count[path[:depth]] = self.count.get(path[:depth], 0) + pods

    def at(self, depth: int, parents: Sequence[Domain] | None = None) -> list[Domain]:
        """Domains of a level, those below `parents` where given."""
        found = [path for path in self.count if len(path) == depth]
        return found if parents is None else [path for path in found if path[:-1] in parents]

    def _holding(self, level: int, wanted: int) -> list[Domain]:
        return [path for path in self.at(level) if self.count[path] >= wanted]

    def choose(self, domains: Sequence[Domain], wanted: int) -> list[tuple[Domain, int]] | None:
        """Domains that together hold all, with the pods of each; None where they do not."""
        turn = 1 if self.profile == "least" else -1
        order = sorted(domains, key=lambda path: (turn * self.count[path], path))
        if self.profile == "least":
            single = [path for path in order if self.count[path] >= wanted]
            order = single[:1] or order
        chosen: list[tuple[Domain, int]] = []
        for position, path in enumerate(order):
            rest = [other for other in order[position:] if self.count[other] >= wanted]
            if rest and self.profile == "best":  # the last domain is the tightest that holds what is left
                path = min(rest, key=lambda other: self.count[other])
            taken = min(wanted, self.count[path])
            if taken:
                chosen.append((path, taken))
                wanted -= taken
            if not wanted:
                return chosen
        return None

    def run(self, level: int, wanted: int, required: bool) -> list[tuple[int, int]] | None:
        """(node, pods) of all pods; None where they do not fit."""
        if not level:  # hosts of the whole cluster
            level, holding = self.deepest, self.at(self.deepest)
        else:
            holding = self._holding(level, wanted)
            while level and not holding and not required:
                level -= 1
                holding = self._holding(level, wanted)
        chosen = self.choose(holding, wanted)
        if chosen is None:
            return None
        while level < self.deepest:
            level += 1
            chosen = self._below(chosen, level)
        return [(self.nodes[path], pods) for path, pods in chosen]

    def _below(self, chosen: Sequence[tuple[Domain, int]], level: int) -> list[tuple[Domain, int]]:
        """Children of all that was chosen, taken together, each at most what its parent has."""
        below: list[tuple[Domain, int]] = []
        for parent, pods in chosen:
            found = self.choose(self.at(level, [parent]), pods)
            assert found is not None  # a domain holds what its children hold together
            below += found
        return below


def _placing(profile: Profile, cluster: Cluster, gang: Gang, number: int) -> list[Pod] | None:
    instance = cluster.instance
    required = instance.depth(gang.required)
    level = required or instance.depth(gang.preferred)
    pods: list[Pod] = []
    inside: Domain = ()
    for k, count in prefix(gang, number):
        where = _Assignment(cluster, gang, k, profile, inside, pods).run(level, count, bool(required))
        if where is None:
            give_back(cluster, gang, pods)
            return None
        for n, there in where:
            for _ in range(there):
                devices = cluster.devices(n, gang.pods[k])
                assert devices is not None
                cluster.take(n, gang.pods[k], devices)
                pods.append(Pod(k, n, devices))
        inside = instance.domain(where[0][0], required)
    return pods


def _run(instance: GangPlacementInstance, profile: Profile, deadline: Deadline) -> HeuristicRun:
    return run_rule(instance, Cluster(instance), partial(_placing, profile), deadline)


def kueue_best_fit(instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE) -> HeuristicRun:
    """BestFit: the largest domains first, the last one the tightest that holds what is left."""
    del seed
    return _run(instance, "best", deadline)


def kueue_least_free(
    instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE
) -> HeuristicRun:
    """LeastFreeCapacity: the tightest domain that holds all, else the smallest domains first."""
    del seed
    return _run(instance, "least", deadline)


def kueue_most_free(
    instance: GangPlacementInstance, *, seed: int = 0, deadline: Deadline = NO_DEADLINE
) -> HeuristicRun:
    """MostFreeCapacity: the largest domains first; the last one is not looked for."""
    del seed
    return _run(instance, "most", deadline)
