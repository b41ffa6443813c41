"""What some gangs cost in one domain of the widest level: domains used, of this level and all below, the node included.

Idea: a content is a number of pods of each gang. Of a domain, all contents with the fewest domains each are those of
its parts, added up, and one domain more for each gang that is there. Source: ours. Guarantee: exact, whole numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.arrays import Ints
from schedgap.formulations.common.compiled import njit_cached

NEVER = 10**6
"""Domains of a content that does not fit."""
MOST_CELLS, MOST_SUMS = 20_000_000, 400_000_000
"""Contents that a table may have, and sums of two contents that are made for one step of it."""


class TooLarge(Exception):
    """Contents are too many."""


class Gang(NamedTuple):
    """A gang with some of its pods, or all.

    Attributes
    ----------
    size : whole devices of a pod
    depth : level below the widest within one domain of which the pods lie; 0 where that does not matter
    pods : pods that lie in the domain
    """

    size: int
    depth: int
    pods: int


@dataclass(frozen=True)
class Tree:
    """A domain: its parts, or as a node its devices that are free.

    Attributes
    ----------
    node : position of the node; -1 where it is no node
    """

    parts: tuple[Tree, ...] = ()
    free: int = 0
    node: int = -1

    @property
    def devices(self) -> tuple[int, ...]:
        """What is free of each node."""
        return tuple(free for part in self.parts for free in part.devices) if self.parts else (self.free,)

    def holds(self, gang: Gang) -> bool:
        """Whether the pods fit where no other gang is, wherever they lie."""
        return sum(free // gang.size for free in self.devices) >= gang.pods


class Inside(NamedTuple):
    """Contents of a domain: pods of each gang, and domains used."""

    pods: Ints
    used: Ints


class Table:
    """Contents of domains with gangs of the given sizes and depths, each with at most as many pods as said."""

    def __init__(self, gangs: Sequence[Gang]) -> None:
        self.sizes = np.array([gang.size for gang in gangs], dtype=np.int64)
        self.depths = np.array([gang.depth for gang in gangs], dtype=np.int64)
        self.most = np.array([gang.pods for gang in gangs], dtype=np.int64)
        self.cells = math.prod(int(most) + 1 for most in self.most)
        if self.cells > MOST_CELLS:
            raise TooLarge
        steps = [math.prod(int(m) + 1 for m in self.most[k + 1 :]) for k in range(len(gangs))]
        self.steps = np.array(steps, dtype=np.int64)
        self.alike = [[k for k, gang in enumerate(gangs) if gang == one] for one in dict.fromkeys(gangs)]

    def held(self, tree: Tree, depth: int) -> Inside:
        """All contents of a domain, `depth` levels below the widest, those of it counted."""
        inside = self._node(tree.free) if not tree.parts else self.together(tree.parts, depth + 1)
        bound = self.depths == depth if depth else np.zeros(len(self.most), dtype=bool)
        whole = ((inside.pods == 0) | (inside.pods == self.most) | ~bound).all(axis=1)
        pods = inside.pods[whole]
        return Inside(pods, inside.used[whole] + (pods > 0).sum(axis=1))

    def together(self, parts: Sequence[Tree], depth: int) -> Inside:
        """All contents of some domains together."""
        return self._listed(self.sums(parts, depth))

    def sums(self, parts: Sequence[Tree], depth: int) -> Ints:
        sums = np.full(self.cells, NEVER)
        sums[0] = 0
        for part in parts:
            sums = self._added(self._listed(sums), self.held(part, depth))
        return sums

    def joined(self, first: Inside, second: Inside) -> Inside:
        """One content of `first` with one of `second`, in every way."""
        return self._listed(self._added(first, second))

    def _added(self, first: Inside, second: Inside) -> Ints:
        """The fewest domains of all sums of two; of gangs that are alike one order is enough."""
        ordered = np.ones(len(first.used), dtype=bool)
        for alike in self.alike:
            ordered &= (np.diff(first.pods[:, alike], axis=1) <= 0).all(axis=1)
        first = Inside(first.pods[ordered], first.used[ordered])
        if len(first.used) * len(second.used) > MOST_SUMS:
            raise TooLarge
        sums = np.full(self.cells, NEVER)
        added(*first, *second, self.most, self.steps, sums)
        for alike in self.alike:
            if len(alike) > 1:
                pods, used = self._listed(sums)
                rest = pods @ self.steps - pods[:, alike] @ self.steps[alike]
                pods = np.sort(pods[:, alike], axis=1)
                np.minimum.at(sums, rest + pods @ self.steps[alike], used)
                used = sums[rest + pods @ self.steps[alike]]
                for order in itertools.permutations(self.steps[alike]):
                    sums[rest + pods @ np.array(order)] = used
        return sums

    def _listed(self, sums: Ints) -> Inside:
        cells = np.flatnonzero(sums < NEVER)
        return Inside(cells[:, None] // self.steps % (self.most + 1), sums[cells])

    def _node(self, free: int) -> Inside:
        pods = np.zeros((1, 0), dtype=np.int64)
        for size, most in zip(self.sizes.tolist(), self.most.tolist(), strict=True):
            numbers = np.arange(min(most, free // size) + 1)
            pods = np.column_stack([np.repeat(pods, len(numbers), axis=0), np.tile(numbers, len(pods))])
            pods = pods[pods @ self.sizes[: pods.shape[1]] <= free]
        return Inside(pods, np.zeros(len(pods), dtype=np.int64))

    def fewest(self, tree: Tree, wanted: Ints) -> Ints:
        """Fewest domains of a domain of the widest level with each of some contents; `NEVER` where they do not fit."""
        half = len(tree.parts) // 2
        first = self.together(tree.parts[:half], 1)
        second = self.sums(tree.parts[half:], 1)
        order = np.argsort(first.used, kind="stable")
        used: Ints = fewest(first.pods[order], first.used[order], second, wanted, self.steps)
        used += (wanted > 0).sum(axis=1)
        used[used > NEVER] = NEVER
        return used

    def layout(self, tree: Tree, depth: int, pods: Ints) -> dict[int, Ints]:
        """Pods of each node where a domain has a content with the fewest domains."""
        if not tree.parts:
            return {tree.node: pods}
        before: list[Ints] = [self.sums((), depth)]
        held = [self.held(part, depth + 1) for part in tree.parts]
        for contents in held:
            before.append(self._added(self._listed(before[-1]), contents))
        nodes: dict[int, Ints] = {}
        for k in range(len(held) - 1, -1, -1):
            inside, used = held[k]
            rest = pods - inside
            fits = np.flatnonzero((rest >= 0).all(axis=1))
            sums = before[k][rest[fits] @ self.steps] + used[fits]
            best = fits[int(np.argmin(sums))]
            nodes |= self.layout(tree.parts[k], depth + 1, inside[best])
            pods = rest[best]
        return nodes


@njit_cached
def added(
    first: Ints, first_used: Ints, second: Ints, second_used: Ints, limits: Ints, steps: Ints, sums: Ints
) -> None:
    """The fewest domains of every sum of two contents that has at limits so many pods of each gang."""
    gangs = len(limits)
    for i in range(len(first_used)):
        for j in range(len(second_used)):
            cell = 0
            for k in range(gangs):
                pods = first[i, k] + second[j, k]
                if pods > limits[k]:
                    cell = -1
                    break
                cell += pods * steps[k]
            if cell >= 0:
                sums[cell] = min(sums[cell], first_used[i] + second_used[j])


@njit_cached
def fewest(first: Ints, first_used: Ints, second: Ints, wanted: Ints, steps: Ints) -> Ints:
    """The fewest domains of each of some contents: one of `first`, in order of their domains, and what is left."""
    least = np.full(len(wanted), 10**6)
    gangs = len(steps)
    for w in range(len(wanted)):
        for i in range(len(first_used)):
            if first_used[i] >= least[w]:
                break
            cell = 0
            for k in range(gangs):
                rest = wanted[w, k] - first[i, k]
                if rest < 0:
                    cell = -1
                    break
                cell += rest * steps[k]
            if cell >= 0:
                least[w] = min(least[w], first_used[i] + second[cell])
    return least
