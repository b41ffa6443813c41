"""Patterns that prices ask for, where they are too many to be written down.

The linear program of `patterns` is solved by columns: a knapsack finds the pattern that is worth most at its duals, in
whole numbers, so that the bound is counted without rounding: by dynamic programming where bins have one resource, else
by search (`vector_knapsack`), or over the devices of a node that pods share (`device_knapsack`). What bins hold in the
best decision is among the first columns. A decision comes from going down from the program's point: a pattern is used
as often as it says, rounded down, another one once more, and so on; where the program then has less than the bound,
that last pattern is used no more than before. Of shared devices it comes from an integer program over the patterns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import Component, components
from schedgap.solvers.exact.gang_placement.bins import Bin, Bins, Floats, Ints, bins_of
from schedgap.solvers.exact.gang_placement.device_knapsack import (
    DeviceKnapsacks,
    TooLong,
    device_knapsacks_of,
    hand_out,
    held_layouts,
)
from schedgap.solvers.exact.gang_placement.patterns import Master, Patterns, Proven
from schedgap.solvers.exact.gang_placement.vector_knapsack import MOST_MORE, VectorKnapsacks
from schedgap.solvers.integer_program import IntegerProgram, SearchLimits
from schedgap.solvers.linear_program import INFINITY, LinearProgram, Optimum
from schedgap.solvers.result import NO_DEADLINE, Deadline, SolveOptions

MOST_CELLS = 4_000_000
"""Items times capacity of a knapsack beyond which the stage is left out."""
MOST_ROUNDS = 20_000
"""Solves of the linear program, all together."""
MOST_TRIES, MOST_WRONG = 200, 30
"""Times that it goes down, and steps that are taken back on one way."""
SHARE = 0.5
"""Part of the time that is left in which it goes down."""
FEW_NODES = 500
"""Nodes of the integer program's search over patterns of shared devices."""
SLIGHT = 1e-6
"""Largest cost of a pattern when it goes down again."""
NEARLY = 1e-6
"""What is taken as whole, and as worth no more."""


def solve_priced(
    instance: GangPlacementInstance, held: Sequence[int], least: int, options: SolveOptions
) -> Proven | None:
    """The component after those held, a weight: a bound, and a decision that has more than `least` where one was found.

    None where the stage does not know the instance, or knapsacks are too long. ``options.start``: a decision that has
    what is held, and `least`.

    Notes
    -----
    A knapsack takes O(items x capacity), the capacity divided by what all sizes share. Gilmore and Gomory (1961).
    """
    shared = device_knapsacks_of(instance)
    knapsacks = knapsacks_of(instance) if shared is None else None
    entries = components(instance)[: len(held) + 1]
    if any(entry.kind != "weight" for entry in entries):
        return None
    if shared is not None:
        try:
            return Shared(instance, shared, entries, held, least, options.start).proven(options)
        except TooLong:
            return None
    if knapsacks is None:
        return None
    return Pricing(instance, knapsacks, entries, held, least, options.start).proven(options)


def knapsacks_of(instance: GangPlacementInstance) -> Knapsacks | VectorKnapsacks | None:
    """The knapsacks of an instance; None where it has other rules than those of bins, or they are too long."""
    places = bins_of(instance)
    if places is None:
        return None
    several = places.sizes.any(axis=0).sum() > 1
    knapsacks = VectorKnapsacks(places) if several else Knapsacks(places)
    return knapsacks if knapsacks.small else None


def held_patterns(instance: GangPlacementInstance, places: Bins, solution: Solution) -> Iterator[tuple[int, Ints]]:
    """(class of bins, pattern) of what bins hold in a decision: of each placed gang its fewest pods."""
    class_of = {place: b for b, alike in enumerate(places.bins) for place in alike}
    kind_of = {
        instance.gangs[g].id: int(places.kind[c]) for c, members in enumerate(places.classes.gangs) for g in members
    }
    held: dict[Bin, Ints] = {}
    for name, pods in solution["placement"].items():
        if pods:
            first = min(pods, key=lambda pod: pod["group"])
            node = instance.node_index[first["node"]]
            places_of = [Bin(node, device) for device in (*first["devices"][:1], None)]
            place = next(one for one in places_of if one in class_of)
            held.setdefault(place, np.zeros(len(places.sizes), dtype=np.int64))[kind_of[name]] += 1
    for place, pattern in held.items():
        yield class_of[place], pattern


class Knapsacks:
    """Patterns of bins of one resource, by dynamic programming over what is free."""

    def __init__(self, places: Bins) -> None:
        self.places = places
        resource = int(np.flatnonzero(places.sizes.any(axis=0))[0])
        sizes = places.sizes[:, resource]
        share = math.gcd(*sizes.tolist())
        self.sizes = sizes // share
        self.capacity = places.capacity[:, resource] // share
        self.alike: dict[tuple[int, ...], list[int]] = {}  # classes of bins that take the same gangs
        for b, waiting in enumerate(places.waiting):
            self.alike.setdefault(tuple(waiting.tolist()), []).append(b)
        largest = int(self.capacity.max())
        copies = np.minimum(places.waiting.max(axis=0), largest // self.sizes)
        self.small = int(copies.sum()) * largest <= MOST_CELLS

    def best(self, price: Ints) -> Ints:
        """The most that a bin of each class holds at prices of kinds, exactly."""
        best = np.zeros(len(self.capacity), dtype=np.int64)
        for waiting, members in self.alike.items():
            worth, _ = self._filled(price, np.array(waiting), int(self.capacity[members].max()))
            best[members] = worth[self.capacity[members]]
        return best

    def patterns(self, price: Ints, more_than: Ints) -> Iterator[tuple[int, Ints]]:
        """(class of bins, pattern) of some patterns that are worth more than said of their class, the best first."""
        for waiting, members in self.alike.items():
            rest = np.array(waiting)
            for _ in range(MOST_MORE):
                worth, taken = self._filled(price, rest, int(self.capacity[members].max()))
                used = np.zeros(len(rest), dtype=bool)
                for b in members:
                    if worth[self.capacity[b]] > more_than[b]:
                        pattern = self._traced(taken, int(self.capacity[b]))
                        used |= pattern > 0
                        yield b, pattern
                if not used.any():
                    break
                rest = np.where(used, 0, rest)

    def packed(self) -> Iterator[tuple[int, Ints]]:
        """Bin after bin filled as far as what is left goes, the smallest first, as in minimum bin slack."""
        rest = self.places.waiting.max(axis=0)
        for b in np.argsort(self.capacity, kind="stable").tolist():
            for _ in self.places.bins[b]:
                _, taken = self._filled(self.sizes, np.minimum(rest, self.places.waiting[b]), int(self.capacity[b]))
                pattern = self._traced(taken, int(self.capacity[b]))
                rest = rest - pattern
                yield b, pattern

    def _filled(self, price: Ints, waiting: Ints, capacity: int) -> tuple[Ints, list[tuple[int, NDArray[np.bool_]]]]:
        """What is worth most by what is free; and item after item, large ones last, where it is taken."""
        worth = np.zeros(capacity + 1, dtype=np.int64)
        taken: list[tuple[int, NDArray[np.bool_]]] = []
        for j in np.argsort(self.sizes, kind="stable").tolist():
            size = int(self.sizes[j])
            for _ in range(min(int(waiting[j]), capacity // size) if price[j] > 0 else 0):
                better = np.zeros(capacity + 1, dtype=bool)
                with_it = worth[:-size] + price[j]
                better[size:] = with_it > worth[size:]
                worth[size:] = np.maximum(worth[size:], with_it)
                taken.append((j, better))
        return worth, taken

    def _traced(self, taken: Sequence[tuple[int, NDArray[np.bool_]]], free: int) -> Ints:
        pattern = np.zeros(len(self.sizes), dtype=np.int64)
        for j, better in reversed(taken):
            if better[free]:
                pattern[j] += 1
                free -= int(self.sizes[j])
        return pattern


class Pricing(Master):
    """Programs over the patterns that were asked for so far."""

    def __init__(
        self,
        instance: GangPlacementInstance,
        knapsacks: Knapsacks | VectorKnapsacks | DeviceKnapsacks,
        entries: Sequence[Component],
        held: Sequence[int],
        least: int,
        start: Solution | None = None,
    ) -> None:
        self.instance, self.knapsacks = instance, knapsacks
        self.generated: dict[tuple[int, tuple[int, ...]], None] = {}
        known = self._known(start) if start is not None else ()
        for b, pattern in itertools.chain(knapsacks.packed(), known):
            self.generated[b, tuple(pattern.tolist())] = None
        super().__init__(instance, self._table(knapsacks.places), entries, held, least)
        self.relaxed = LinearProgram()
        self.program(self.relaxed, np.arange(len(self.generated)), None)
        self.rounds = 0

    def _known(self, start: Solution) -> Iterator[tuple[int, Ints]]:
        return held_patterns(self.instance, self.knapsacks.places, start)

    def _table(self, places: Bins) -> Patterns:
        bin_of = np.array([b for b, _ in self.generated], dtype=np.int64)
        counts = np.array([pattern for _, pattern in self.generated], dtype=np.int64)
        return Patterns(places, bin_of, counts.reshape(len(bin_of), len(places.sizes)))

    def best(self, price: Ints) -> Ints:
        return self.knapsacks.best(price)

    def proven(self, options: SolveOptions) -> Proven | None:
        """The bound of the linear program, and a decision from its point, in most of the time that is left."""
        solved = self._solved(options.deadline)
        if solved is None:
            return None
        proofs = [self.bound(price, factor) for price, factor in self.prices(solved.duals)]
        target = min(bound // scale for bound, _, scale in proofs)
        decision = self.exchanged(target, options)
        if decision is None and target > self.least:
            decision = self._down(solved, target, options)
        return Proven(max(target, self.least), decision)

    def _solved(self, deadline: Deadline = NO_DEADLINE) -> Optimum | None:
        """The program with all patterns that its duals ask for; None where it has no point, or no time is left."""
        kinds = self.kinds
        while self.rounds < MOST_ROUNDS:
            self.rounds += 1
            solved = self.relaxed.solve(deadline)
            if solved is None:
                return None
            duals = np.abs(solved.duals[: kinds + len(self.bins)])
            scale = 2.0**30 / max(1.0, duals.max())
            price = np.round(duals[:kinds] * scale).astype(np.int64)
            enough = np.ceil((duals[kinds:] + NEARLY) * scale).astype(np.int64)
            fresh = [
                (b, pattern)
                for b, pattern in self.knapsacks.patterns(price, enough)
                if (b, tuple(pattern.tolist())) not in self.generated
            ]
            if not fresh:
                return solved
            self._add(fresh)
        return None

    def _add(self, fresh: Sequence[tuple[int, Ints]]) -> None:
        entries = []
        for b, pattern in fresh:
            self.generated[b, tuple(pattern.tolist())] = None
            rows = np.flatnonzero(pattern)
            entries.append((np.append(rows, self.kinds + b), np.append(-pattern[rows], 1.0).astype(float)))
        many = len(fresh)
        self.relaxed.add_columns(np.zeros(many), np.full(many, INFINITY), entries)

    def _down(self, solved: Optimum | None, target: int, options: SolveOptions) -> dict[str, object] | None:
        """A decision that has the target; None where none was found.

        From the program's point again and again, each time with other costs of patterns, so that its points differ.
        """
        deadline = options.deadline.part(SHARE)
        rng = np.random.default_rng(options.seed)
        for _ in range(MOST_TRIES):
            decision = self._dive(solved, target, deadline)
            if decision is not None or deadline.passed or self.rounds >= MOST_ROUNDS:
                return decision
            self.relaxed.set_box(*self._box())
            patterns = np.arange(len(self.numbers), self.relaxed.columns)
            self.relaxed.set_costs(patterns, rng.random(len(patterns)) * SLIGHT)
            solved = self._solved(deadline)
        return None

    def _box(self) -> tuple[Floats, Floats]:
        high = np.concatenate([self.numbers, np.full(len(self.generated), INFINITY)])
        return np.zeros(len(high)), high

    def _dive(self, solved: Optimum | None, target: int, deadline: Deadline) -> dict[str, object] | None:
        """Pattern after pattern: where the program then has less than the target, it is used no more than before."""
        many, wrong = len(self.numbers), 0
        low, high = self._box()
        last: tuple[Floats, Floats, int, float] | None = None
        while True:
            low, high = self._longer(low, 0.0), self._longer(high, INFINITY)
            if solved is not None and self._worth(solved) > target - 1 + NEARLY:
                used = np.floor(solved.x + NEARLY)
                part = np.where(solved.x - used > NEARLY, solved.x - used, 0.0)
                used[:many] = part[:many] = 0.0
                if not part.any():
                    self.patterns = self._table(self.patterns.places)
                    placed = np.floor(solved.x[:many] + NEARLY).astype(np.int64)
                    kept = np.arange(len(self.generated))
                    return self.decision(placed, kept, np.round(solved.x[many:]).astype(np.int64))
                j = int(np.argmax(part))
                last = (low, high, j, used[j])
                low = np.maximum(low, used)
                low[j] = used[j] + 1
            elif last is not None and wrong < MOST_WRONG and not deadline.passed and self.rounds < MOST_ROUNDS:
                wrong += 1
                low, high, j, ceiling = last
                low, high, last = self._longer(low, 0.0), self._longer(high, INFINITY), None
                high[j] = ceiling
            else:
                return None
            self.relaxed.set_box(low, high)
            solved = self._solved(deadline)

    def _worth(self, solved: Optimum) -> float:
        """The component at a point, whatever patterns cost."""
        return float(self.worth[-1] @ solved.x[: len(self.numbers)])

    def _longer(self, bounds: Floats, value: float) -> Floats:
        """Bounds of all columns that there are now."""
        return np.concatenate([bounds, np.full(self.relaxed.columns - len(bounds), value)])


class Shared(Pricing):
    """Programs over patterns of nodes whose devices are shared."""

    knapsacks: DeviceKnapsacks

    def _known(self, start: Solution) -> Iterator[tuple[int, Ints]]:
        return held_layouts(self.instance, self.knapsacks, start)

    def proven(self, options: SolveOptions) -> Proven | None:
        """The bound of the linear program, and the best decision of an integer program over its patterns."""
        solved = self._solved(options.deadline)
        if solved is None:
            return None
        duals, bins = np.abs(solved.duals), self.kinds + len(self.bins)
        bound, _, scale = self.bound(duals[: self.kinds], duals[bins:])
        target = bound // scale
        if target <= self.least:
            return Proven(max(target, self.least), None)
        self.patterns = self._table(self.places)
        kept = np.arange(len(self.generated))
        search = IntegerProgram()
        self.program(search, kept, None)
        x = search.search(SearchLimits(FEW_NODES, options.deadline.part(SHARE))).x
        if x is None:
            return Proven(target, None)
        whole = np.round(x).astype(np.int64)
        return Proven(target, self.decision(whole[: len(self.numbers)], kept, whole[len(self.numbers) :]))

    def decision(self, placed: Ints, kept: Ints, used: Ints) -> Solution:
        """Gangs of each kind where the layouts of patterns have a place for it."""
        waiting: dict[int, list[int]] = {}
        for g, members in enumerate(self.places.classes.gangs):
            waiting.setdefault(int(self.kind[g]), []).extend(members[: int(placed[g])])
        bins = [iter(alike) for alike in self.places.bins]
        patterns = list(self.generated)
        placement = {}
        for p, times in zip(kept.tolist(), used.tolist(), strict=True):
            b = patterns[p][0]
            for place in itertools.islice(bins[b], times):
                for kind, node, devices in hand_out(self.instance, place, self.knapsacks.layouts[patterns[p]]):
                    if waiting.get(kind):
                        gang = self.instance.gangs[waiting[kind].pop()]
                        placement[gang.id] = [{"group": 0, "node": node, "devices": devices}]
        return {"placement": placement}
