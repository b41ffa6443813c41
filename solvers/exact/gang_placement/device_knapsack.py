"""Patterns of nodes whose devices are shared: what a node holds of single pods with parts of its devices, by prices.

Idea: dynamic programming over the devices of a node. Of what the first devices hold, only contents are kept beside
which no other is worth as much and leaves as much of every other resource; the same for the parts of one device, by
thousandths. Source: ours, after multi-objective knapsacks by dominance (Nemhauser and Ullmann, 1969). Guarantee: exact,
in whole numbers, where any number of pods of a kind may be taken, which allows more than there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.common.instance import Solution, once_per_instance
from schedgap.formulations.gang_placement.instance import WHOLE, GangPlacementInstance
from schedgap.solvers.exact.gang_placement.bins import Bin, Bins, Ints, shared_nodes

MOST_SUMS, MOST_KEPT = 2_000_000, 4_000
"""Contents that are made at one set of prices, and those kept at one step, beyond which knapsacks are too long."""
MOST_MORE = 8
"""Patterns of one class of nodes that a round adds."""
Layout = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
"""Kinds on some devices of a node, a step each: (places of the devices, the most free first; kinds)."""


class TooLong(Exception):
    """Contents are too many."""


class Contents(NamedTuple):
    """What can be held, what is worth most first, and none that another one dominates.

    Attributes
    ----------
    worth, used : price, and what it takes of each other resource
    pods : kinds of each
    """

    worth: Ints
    used: Ints
    pods: list[tuple[int, ...]]


class Nodes(NamedTuple):
    """The same of the first devices of a node, with the place of each pod."""

    worth: Ints
    used: Ints
    layouts: list[Layout]


class DeviceKnapsacks:
    """Patterns of nodes with several devices that single pods share.

    Attributes
    ----------
    devices : what is free of the devices of a node of each class, the most first
    layouts : where its pods lie, of each pattern
    """

    def __init__(self, instance: GangPlacementInstance, places: Bins) -> None:
        self.places = places
        self.gpu, self.sizes, self.capacity = places.sizes[:, 0], places.sizes[:, 1:], places.capacity[:, 1:]
        self.devices = [tuple(instance.nodes[n].gpus[d] for d in _order(instance, n)) for n in _first(places)]
        self.layouts: dict[tuple[int, tuple[int, ...]], Layout] = {}
        self.alike: dict[tuple[bool, ...], list[int]] = {}  # classes of nodes that take the same kinds
        for b, waiting in enumerate(places.waiting):
            self.alike.setdefault(tuple((waiting > 0).tolist()), []).append(b)

    def packed(self) -> Iterator[tuple[int, Ints]]:
        """No pattern: what the best decision holds comes first."""
        yield from ()

    def best(self, price: Ints) -> Ints:
        """What no node of each class holds more than, at prices of kinds."""
        best = np.zeros(len(self.capacity), dtype=np.int64)
        for b, front, fitting in self._filled(price):
            best[b] = front.worth[fitting[0]]
        return best

    def patterns(self, price: Ints, more_than: Ints) -> Iterator[tuple[int, Ints]]:
        """(class of nodes, pattern) of some patterns of each class that are worth more than said, the best first."""
        for b, front, fitting in self._filled(price):
            for at in fitting[front.worth[fitting] > more_than[b]][:MOST_MORE].tolist():
                yield b, self.keep(b, front.layouts[at])

    def keep(self, b: int, layout: Layout) -> Ints:
        """The pattern of a layout, which is remembered."""
        pattern = np.zeros(len(self.gpu), dtype=np.int64)
        for _, kinds in layout:
            np.add.at(pattern, list(kinds), 1)
        self.layouts.setdefault((b, tuple(pattern.tolist())), layout)
        return pattern

    def _filled(self, price: Ints) -> Iterator[tuple[int, Nodes, Ints]]:
        """(class of nodes, contents at most as large as its largest node, those that fit)."""
        for takes, members in self.alike.items():
            kinds = np.flatnonzero(np.array(takes) & (price > 0))
            fronts = _Fronts(price, kinds, self.gpu, self.sizes, self.capacity[members].max(axis=0))
            for b in members:
                front = fronts.held(self.devices[b])
                yield b, front, np.flatnonzero((front.used <= self.capacity[b]).all(axis=1))


class _Fronts:
    """Contents of nodes at prices of some kinds."""

    def __init__(self, price: Ints, kinds: Ints, gpu: Ints, sizes: Ints, most: Ints) -> None:
        self.price, self.gpu, self.sizes, self.most, self.sums = price, gpu, sizes, most, 0
        self.whole = [int(k) for k in kinds if gpu[k] >= WHOLE]
        self.parts = self._useful(kinds[(gpu[kinds] > 0) & (gpu[kinds] < WHOLE)])
        self.none = Contents(np.zeros(1, dtype=np.int64), np.zeros((1, len(most)), dtype=np.int64), [()])
        alone = self._any_number([int(k) for k in kinds if gpu[k] == 0])
        self.known: dict[tuple[int, ...], Nodes] = {
            (): Nodes(alone.worth, alone.used, [(((), pods),) for pods in alone.pods])
        }
        self.levels = self._levels()
        self.devices: dict[int, Contents] = {}

    def held(self, devices: tuple[int, ...]) -> Nodes:
        """Contents of devices of which so much is free, the most first."""
        if devices not in self.known:
            last, count = devices[-1], len(devices)
            steps: list[tuple[Nodes, Contents, tuple[int, ...]]] = [
                (self.held(devices[:-1]), self._device(last), (count - 1,))
            ]
            for k in self.whole if last == WHOLE else ():
                wide = int(self.gpu[k]) // WHOLE
                if 1 < wide <= count:
                    steps.append((self.held(devices[:-wide]), self._one(k), tuple(range(count - wide, count))))
            worth, used, made = self._summed([(before, more) for before, more, _ in steps])
            layouts = [
                (*steps[s][0].layouts[i], (steps[s][2], steps[s][1].pods[j]))
                if steps[s][1].pods[j]
                else steps[s][0].layouts[i]
                for s, i, j in made
            ]
            self.known[devices] = Nodes(worth, used, layouts)
        return self.known[devices]

    def _one(self, k: int) -> Contents:
        return Contents(self.price[k : k + 1], self.sizes[k : k + 1], [(k,)])

    def _useful(self, parts: Ints) -> list[int]:
        """Parts beside which no other is worth as much and asks for as little."""
        asked = np.column_stack([self.gpu[parts], self.sizes[parts]])
        order = np.lexsort((asked.sum(axis=1), -self.price[parts]))
        kept: list[int] = parts[order[undominated(asked[order], len(order))]].tolist()
        return kept

    def _any_number(self, kinds: Sequence[int]) -> Contents:
        """All that pods without devices come to."""
        total = self._joined([(self.none, self.none), *((self.none, self._one(k)) for k in kinds)])
        while True:
            more = self._joined([(total, total)])
            if np.array_equal(more.worth, total.worth) and np.array_equal(more.used, total.used):
                return total
            total = more

    def _levels(self) -> dict[int, Contents]:
        """What parts come to, by the thousandths that they take together."""
        share = math.gcd(*(int(self.gpu[k]) for k in self.parts)) or WHOLE
        levels = {0: self.none}
        for total in range(share, WHOLE + 1, share):
            ways = [(levels[rest], self._one(k)) for k in self.parts if (rest := total - int(self.gpu[k])) in levels]
            if ways:
                levels[total] = self._joined(ways)
        return levels

    def _device(self, free: int) -> Contents:
        """What one device holds: parts, or one pod where all of it is free."""
        if free not in self.devices:
            ways = [(self.none, level) for total, level in self.levels.items() if total <= free]
            ways += [(self.none, self._one(k)) for k in self.whole if free == WHOLE == self.gpu[k]]
            self.devices[free] = self._joined(ways)
        return self.devices[free]

    def _joined(self, ways: Sequence[tuple[Contents, Contents]]) -> Contents:
        worth, used, made = self._summed(ways)
        return Contents(worth, used, [ways[s][0].pods[i] + ways[s][1].pods[j] for s, i, j in made])

    def _summed(
        self, ways: Sequence[tuple[Contents | Nodes, Contents]]
    ) -> tuple[Ints, Ints, list[tuple[int, int, int]]]:
        """One of each first with one of each second: price and use of what is kept, and (way, first, second) of it."""
        lengths = [len(first.worth) * len(second.worth) for first, second in ways]
        self.sums += sum(lengths)
        if self.sums > MOST_SUMS:
            raise TooLong
        worth = np.concatenate([np.add.outer(first.worth, second.worth).ravel() for first, second in ways])
        tables = [first.used[:, None] + second.used for first, second in ways]
        used = np.vstack([table.reshape(size, len(self.most)) for table, size in zip(tables, lengths, strict=True)])
        fits = np.flatnonzero((used <= self.most).all(axis=1))
        order = fits[np.lexsort((used[fits].sum(axis=1), -worth[fits]))]
        kept = order[undominated(used[order], MOST_KEPT + 1)]
        if len(kept) > MOST_KEPT:
            raise TooLong
        begins = np.concatenate([[0], np.cumsum(lengths)])
        which = np.searchsorted(begins, kept, side="right") - 1
        seconds = np.array([len(second.worth) for _, second in ways])[which]
        first, second = np.divmod(kept - begins[which], seconds)
        made = list(zip(which.tolist(), first.tolist(), second.tolist(), strict=True))
        return worth[kept], used[kept], made


@once_per_instance
def device_knapsacks_of(instance: GangPlacementInstance) -> DeviceKnapsacks | None:
    """The knapsacks of an instance; None where bins are known otherwise, or its rules are others."""
    places = shared_nodes(instance)
    return None if places is None else DeviceKnapsacks(instance, places)


def held_layouts(
    instance: GangPlacementInstance, knapsacks: DeviceKnapsacks, solution: Solution
) -> Iterator[tuple[int, Ints]]:
    """(class of nodes, pattern) of what nodes hold in a decision: of each placed gang its first pod."""
    places = knapsacks.places
    kind_of = {instance.gangs[g].id: int(places.kind[c]) for c, alike in enumerate(places.classes.gangs) for g in alike}
    held: dict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
    for name, pods in solution["placement"].items():
        first = next((pod for pod in pods if pod["group"] == 0), None)
        if first is not None:
            n = instance.node_index[first["node"]]
            at = _order(instance, n)
            held.setdefault(n, []).append((tuple(at.index(d) for d in first["devices"]), (kind_of[name],)))
    for b, alike in enumerate(places.bins):
        for place in alike:
            if place.node in held:
                yield b, knapsacks.keep(b, tuple(held[place.node]))


def hand_out(instance: GangPlacementInstance, place: Bin, layout: Layout) -> Iterator[tuple[int, str, list[int]]]:
    """(kind, node, devices) of each pod of a layout on a node."""
    at = _order(instance, place.node)
    for places, kinds in layout:
        for kind in kinds:
            yield kind, instance.nodes[place.node].id, [at[p] for p in places]


def _first(places: Bins) -> list[int]:
    return [alike[0].node for alike in places.bins]


def _order(instance: GangPlacementInstance, n: int) -> list[int]:
    """Devices of a node, the most free first."""
    gpus = instance.nodes[n].gpus
    return sorted(range(len(gpus)), key=lambda d: -gpus[d])


@njit_cached
def undominated(used: NDArray[np.int64], limit: int) -> NDArray[np.bool_]:
    """The first rows, at most so many, that are not in every column at least as large as one of these before them."""
    many, columns = used.shape
    flags = np.zeros(many, dtype=np.bool_)
    kept = np.zeros(many, dtype=np.int64)
    number = 0
    for i in range(many):
        if number == limit:
            break
        free = True
        for k in range(number):
            above = True
            for r in range(columns):
                if used[kept[k], r] > used[i, r]:
                    above = False
                    break
            if above:
                free = False
                break
        if free:
            flags[i] = True
            kept[number] = i
            number += 1
    return flags
