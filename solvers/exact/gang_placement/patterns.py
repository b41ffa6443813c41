"""Stage `patterns`: what a bin holds as columns, where every gang lies on one node and a bin is a node or a device.

Idea: a pattern says how many gangs of each kind a bin holds, where no further one fits. Where there are few enough, all
are written down, and their linear program is a bound. A pattern whose reduced cost shows that no better decision uses
it is left out of the integer program. Source: cutting stock by Gilmore and Gomory (1961). Guarantee: the bound is
counted again in whole numbers from the duals.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from schedgap.formulations.common.instance import Solution, once_per_instance
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import Component, components
from schedgap.solvers.exact.gang_placement.bins import Bins, Floats, Ints, Task, bins_of, seats, whole_devices
from schedgap.solvers.exact.gang_placement.exchange import MOST_RUNS, Exchange
from schedgap.solvers.integer_program import IntegerAnswer, IntegerProgram, SearchLimits
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import SolveOptions

MOST_PATTERNS = 30_000
"""Patterns beyond which the stage is left out."""
MOST_COLUMNS = 6_000
"""Patterns beyond which there is no integer program: with 95,000 HiGHS passed its limit of time by minutes."""
MOST_STEPS = 100_000
"""Sets of pods that are looked at for them."""
MOST_NODES = 20_000
"""Nodes of the integer program's search."""
MOST_RATES = 1_000
"""Prices by size that are compared."""
SHARE = 0.25
"""Part of the time that is left in which bins exchange gangs."""
LARGEST_SUM = 2**60
"""Largest sum in the bound, in whole numbers of 64 bits."""


@dataclass(frozen=True)
class Patterns:
    """Bins and kinds with some patterns, or all.

    Attributes
    ----------
    bin_of : class of bins of each pattern
    counts : gangs of each pattern and kind
    """

    places: Bins
    bin_of: Ints
    counts: Ints


class Proven(NamedTuple):
    """What the patterns say of one component: no decision has more than `bound`; a decision, if one was looked for."""

    bound: int
    decision: Solution | None


@once_per_instance
def patterns_of(instance: GangPlacementInstance) -> Patterns | None:
    """All patterns of an instance; None where it has other rules than those of bins, or too many.

    Notes
    -----
    O(steps x kinds), at most 100,000 steps.
    """
    places = bins_of(instance)
    if places is None:
        return None
    bin_of: list[int] = []
    counts: list[Ints] = []
    steps = itertools.count()
    for b, (waiting, capacity) in enumerate(zip(places.waiting, places.capacity, strict=True)):
        for pattern in _maximal(places.sizes, capacity, waiting, steps):
            if pattern is None or len(counts) >= MOST_PATTERNS:
                return None
            bin_of.append(b)
            counts.append(pattern)
    table = np.array(counts, dtype=np.int64).reshape(len(counts), len(places.sizes))
    return Patterns(places, np.array(bin_of, dtype=np.int64), table)


def _maximal(sizes: Ints, capacity: Ints, waiting: Ints, steps: Iterator[int]) -> Iterator[Ints | None]:
    """Every set of gangs that a bin holds and that no further one fits; None at the end where there were too many."""
    share = (sizes / np.maximum(1, capacity)).sum(axis=1)
    order = np.argsort(-share, kind="stable")
    sizes, waiting = sizes[order], waiting[order]
    back = np.argsort(order)
    stack: list[tuple[int, Ints, Ints]] = [(0, capacity, np.zeros(len(sizes), dtype=np.int64))]
    while stack:
        if next(steps) > MOST_STEPS:
            yield None
            return
        first, room, pods = stack.pop()
        fitting = np.flatnonzero((sizes <= room).all(axis=1) & (pods < waiting))
        if not len(fitting):
            yield pods[back]
        for j in fitting[fitting >= first].tolist():
            more = pods.copy()
            more[j] += 1
            stack.append((j, room - sizes[j], more))


def solve_patterns(
    instance: GangPlacementInstance, held: Sequence[int], least: int, options: SolveOptions
) -> Proven | None:
    """The component after those held, a weight: a bound, and a decision that has more than `least` where one was found.

    None where the stage does not know the instance.
    """
    patterns = patterns_of(instance)
    entries = components(instance)[: len(held) + 1]
    if patterns is None or any(entry.kind != "weight" for entry in entries):
        return None
    return Master(instance, patterns, entries, held, least).proven(options)


class Master(Task):
    """Programs over all patterns: gangs of each class that are placed, then bins with each pattern."""

    def __init__(
        self,
        instance: GangPlacementInstance,
        patterns: Patterns,
        entries: Sequence[Component],
        held: Sequence[int],
        least: int,
    ) -> None:
        super().__init__(instance, patterns.places, entries, held)
        self.patterns, self.entries, self.least = patterns, entries, least

    def program(self, program: LinearProgram, kept: Ints, least: int | None) -> None:
        """Rows: kinds, bins, components held, and the goal where it has to be `least`."""
        many, kinds, bins = len(self.numbers), self.kinds, len(self.bins)
        goals = self.worth if least is not None else self.worth[:-1]
        placed = sparse.coo_matrix((np.ones(many), (self.kind, np.arange(many))), shape=(kinds, many))
        taken = sparse.csr_matrix(-self.patterns.counts[kept].T)
        members = self.patterns.bin_of[kept], np.arange(len(kept))
        where = sparse.coo_matrix((np.ones(len(kept)), members), shape=(bins, len(kept)))
        blocks = [[placed, taken], [None, where]]
        blocks += [[sparse.csr_matrix(worth.astype(float)), None] for worth in goals]
        low = np.concatenate([np.full(kinds + bins, -INFINITY), self.held, [] if least is None else [least]])
        high = np.concatenate([np.zeros(kinds), self.bins, np.full(len(goals), INFINITY)])
        cost = np.concatenate([-self.worth[-1], np.zeros(len(kept))])
        upper = np.concatenate([self.numbers, np.full(len(kept), INFINITY)])
        program.set_matrix(sparse.bmat(blocks, format="csc"), cost, upper, low, high)

    def proven(self, options: SolveOptions) -> Proven | None:
        """The bound of the linear program, then what an integer program finds that has it, or one less, and so on.

        The more a decision has to have, the fewer patterns may be in it.
        """
        everything = np.arange(len(self.patterns.bin_of))
        program = LinearProgram()
        self.program(program, everything, None)
        solved = program.solve(options.deadline)
        if solved is None:
            return None
        proofs = [self.bound(price, factor) for price, factor in self.prices(solved.duals)]
        target = min(bound // scale for bound, _, scale in proofs)
        decision = self.exchanged(target, options)
        if decision is not None:
            return Proven(target, decision)
        while target > self.least and not options.deadline.passed:
            rooms = [reduced <= bound - target * scale for bound, reduced, scale in proofs]
            kept = np.flatnonzero(np.logical_and.reduce(rooms))
            if len(kept) > MOST_COLUMNS:
                break
            answer = self._search(kept, target, options)
            if answer.x is not None:
                x = np.round(answer.x).astype(np.int64)
                return Proven(target, self.decision(x[: len(self.numbers)], kept, x[len(self.numbers) :]))
            if not answer.complete:
                break
            target -= 1
        return Proven(max(target, self.least), None)

    def exchanged(self, target: int, options: SolveOptions) -> Solution | None:
        """A decision that has the bound, by exchange between bins; None where it is known or none was found."""
        if target <= self.least:
            return None
        exchange = Exchange(self.instance, self.places, self.entries, self.held)
        return exchange.decision(target, MOST_RUNS, replace(options, deadline=options.deadline.part(SHARE)))

    def _search(self, kept: Ints, target: int, options: SolveOptions) -> IntegerAnswer:
        """A decision of some patterns that has at least so much; the engine's own limit of time is half of the rest."""
        search = IntegerProgram()
        self.program(search, kept, target)
        return search.search(SearchLimits(MOST_NODES, options.deadline.part(0.5)))

    def prices(self, duals: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Prices of kinds, and factors of components held: those of the linear program, and by size.

        Where every gang fits in the sum of sizes, prices of the linear program may be 0; by size, patterns that leave
        room are seen to be worse.
        """
        kinds, bins = self.kinds, len(self.bins)
        yield np.abs(duals[:kinds]), np.abs(duals[kinds + bins :])
        for share in self.shares.T if not self.held else ():
            each, worth = share[self.kind], self.worth[-1].astype(float)
            rates = np.unique(worth[each > 0] / each[each > 0])[::-1][:MOST_RATES]
            filled = np.zeros(bins)
            np.maximum.at(filled, self.patterns.bin_of, self.patterns.counts @ share)
            gains = np.maximum(0.0, worth - rates[:, None] * each) @ self.numbers
            totals = rates * float(self.bins @ filled) + gains
            if len(rates):  # the highest rate of those with the least bound
                rate = rates[int(np.argmax(totals <= totals.min() * (1 + 1e-12)))]
                yield rate * share, np.zeros(0)

    def bound(self, price: Floats, factor: Floats) -> tuple[int, Ints, int]:
        """(bound, by pattern what it is worth less than the best of its bins, what 1 is in these whole numbers).

        For any prices y >= 0 of kinds and factors m >= 0 of components held: bins hold at most the best pattern at y
        each, a gang is worth what its weights are above its kind's price, and m times what is held is there already.
        """
        heaviest = max(float(price.max(initial=0.0)), *(float(worth.max(initial=1)) for worth in self.worth), 1.0)
        # A bin holds at most all gangs, so that the sum over bins is at most this, whatever the prices.
        total = heaviest * (1 + factor.sum()) * (int(self.numbers.sum()) + 1) * (int(self.bins.sum()) + 2)
        scale = 1 << max(0, min(40, (LARGEST_SUM // (1 + int(total))).bit_length() - 2))
        y, m = np.round(price * scale).astype(np.int64), [round(float(value) * scale) for value in factor]
        best = self.best(y)
        gain = self.worth[-1] * scale - y[self.kind]
        for share, own in zip(m, self.worth[:-1], strict=True):
            gain = gain + share * own
        bound = int(self.bins @ best) + int(self.numbers @ np.maximum(0, gain))
        bound -= sum(share * digit for share, digit in zip(m, self.held, strict=True))
        return bound, best[self.patterns.bin_of] - self.patterns.counts @ y, scale

    def best(self, price: Ints) -> Ints:
        """The most that a bin of each class holds at prices of kinds."""
        best = np.zeros(len(self.bins), dtype=np.int64)
        np.maximum.at(best, self.patterns.bin_of, self.patterns.counts @ price)
        return best

    def decision(self, placed: Ints, kept: Ints, used: Ints) -> Solution:
        """Gangs of each kind on the places that patterns have for it."""
        classes = self.patterns.places.classes
        waiting: dict[int, list[int]] = {}
        for g, members in enumerate(classes.gangs):
            waiting.setdefault(int(self.kind[g]), []).extend(members[: int(placed[g])])
        bins = [iter(alike) for alike in self.patterns.places.bins]
        free = whole_devices(self.instance)
        placement = {}
        for p, times in zip(kept.tolist(), used.tolist(), strict=True):
            for place in itertools.islice(bins[int(self.patterns.bin_of[p])], times):
                for j, count in enumerate(self.patterns.counts[p].tolist()):
                    for _ in range(min(count, len(waiting.get(j, ())))):
                        gang = self.instance.gangs[waiting[j].pop()]
                        placement[gang.id] = list(seats(self.instance, gang, place, free[place.node]))
        return {"placement": placement}
