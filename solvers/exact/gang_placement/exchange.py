"""Stage `exchange`: as many gangs as all bins together could hold, handed out by exchange between two bins.

Idea: a linear program over the sums of all bins bounds a component, by its duals in whole numbers. Gangs that have
this bound and leave most free are chosen; bins that hold too much exchange gangs with other bins until none does. Two
bins are filled anew together, in every way of up to twelve of their gangs. Source: ours; the bound is surrogate
relaxation (Glover, 1965). Guarantee: the bound holds for any multipliers; what is found is no more than a decision.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.formulations.gang_placement.scale import Component, components
from schedgap.solvers.exact.gang_placement.bins import Bin, Bins, Floats, Ints, Task, bins_of, seats, whole_devices
from schedgap.solvers.integer_program import IntegerProgram, SearchLimits
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import NO_DEADLINE, Deadline, SolveOptions

SCALE = 2**40
"""Multipliers are whole numbers of these parts."""
FINE = 10**6
"""What all bins have of a resource, in the program that chooses gangs."""
MOST_NODES = 500
"""Nodes of that program's search."""
MOST_GANGS = 20_000
"""Gangs beyond which nothing is handed out."""
MOST_FREE = 12
"""Gangs of two bins of which every way is tried."""
DRAWS = 5_000
"""Random numbers of one run of the kernel, which takes some hundredths of a second; a step takes up to 16."""
FEW_RUNS, MOST_RUNS = 20, 160
"""Runs before there is any other bound, and for the bound of patterns."""
Flags = NDArray[np.bool_]


def exchange_of(instance: GangPlacementInstance, held: Sequence[int]) -> Exchange | None:
    """The stage for the component after those held; None where it does not know the instance."""
    places = bins_of(instance)
    entries = components(instance)[: len(held) + 1]
    if places is None or any(entry.kind != "weight" for entry in entries):
        return None
    return Exchange(instance, places, entries, held)


class Exchange(Task):
    """Sums over all bins: a bound, gangs that have it, and a decision."""

    def __init__(
        self, instance: GangPlacementInstance, places: Bins, entries: Sequence[Component], held: Sequence[int]
    ) -> None:
        super().__init__(instance, places, entries, held)
        fits = [(places.sizes <= free).all(axis=1) for free in places.capacity]
        self.takes: Flags = np.array(fits) & (places.waiting > 0)  # by class of bins and kind
        self.numbers = np.where(self.takes[:, self.kind].any(axis=0), self.numbers, 0)

    def most(self, deadline: Deadline = NO_DEADLINE) -> int | None:
        """What no decision has more than; None where the linear program has no point in time."""
        many, resources = len(self.numbers), self.places.sizes.shape[1]
        rows = [self.places.sizes[self.kind].T, *self.worth[:-1]]
        program = LinearProgram()
        matrix = sparse.csc_matrix(np.vstack([np.reshape(row, (-1, many)) for row in rows]).astype(float))
        low = np.concatenate([np.full(resources, -INFINITY), np.array(self.held, dtype=float)])
        high = np.concatenate([self._total().astype(float), np.full(len(self.held), INFINITY)])
        program.set_matrix(matrix, -self.worth[-1].astype(float), self.numbers.astype(float), low, high)
        solved = program.solve(deadline)
        return None if solved is None else self.bound(np.abs(solved.duals))

    def bound(self, multipliers: Floats) -> int:
        """The bound by multipliers of resources, then of components held: it holds for any that are 0 at least.

        No decision takes more of a resource than all bins have, and none has less of what is held. So a gang is worth
        its weight, with m times what it adds to what is held, less y times what it asks for, where that is above 0.
        """
        scaled = [round(float(value) * SCALE) for value in multipliers]
        y, m = scaled[: self.places.sizes.shape[1]], scaled[self.places.sizes.shape[1] :]
        bound = sum(price * int(free) for price, free in zip(y, self._total(), strict=True))
        bound -= sum(factor * digit for factor, digit in zip(m, self.held, strict=True))
        for c, number in enumerate(self.numbers.tolist()):
            gain = int(self.worth[-1][c]) * SCALE
            gain += sum(factor * int(worth[c]) for factor, worth in zip(m, self.worth, strict=False))
            gain -= sum(price * int(size) for price, size in zip(y, self.places.sizes[self.kind[c]], strict=True))
            bound += number * max(0, gain)
        return bound // SCALE

    def _total(self) -> Ints:
        total: Ints = self.bins @ self.places.capacity
        return total

    def decision(self, target: int, runs: int, options: SolveOptions) -> Solution | None:
        """A decision that has the target, or None."""
        if self.bins.sum() < 2 or self.numbers.sum() > MOST_GANGS:
            return None
        placed = self._chosen(target, options.deadline)
        if placed is None:
            return None
        where = [(b, place) for b, alike in enumerate(self.places.bins) for place in alike]
        bin_of = np.array([b for b, _ in where], dtype=np.int64)
        classes = np.repeat(np.arange(len(self.numbers)), placed)
        sizes = self.places.sizes[self.kind[classes]]
        free = self.places.capacity[bin_of]
        takes = self.takes[bin_of][:, self.kind[classes]].T
        weight = 1.0 / np.maximum(1, self.places.capacity.max(axis=0))
        held_by = _spread(sizes * weight, free * weight, takes)
        rng = np.random.default_rng(options.seed)
        for _ in range(runs):
            draws = rng.integers(0, 2**31, DRAWS)
            done, held_by = exchanged(sizes, free, takes, held_by, weight, draws, MOST_FREE)
            if done:
                return self._handed_out(classes, [where[b][1] for b in held_by.tolist()])
            if options.deadline.passed:
                break
        return None

    def _chosen(self, target: int, deadline: Deadline) -> Ints | None:
        """Gangs of each class that have what is held and the target, and leave of the scarcest resource most."""
        total = self._total()
        used = total > 0
        shares = self.places.sizes[self.kind][:, used] / total[used] * FINE
        many, resources = shares.shape
        rows = sparse.bmat(
            [
                [sparse.csr_matrix(shares.T), sparse.csr_matrix(np.full((resources, 1), -1.0))],
                [sparse.csr_matrix(np.vstack(self.worth).astype(float)), None],
            ],
            format="csc",
        )
        goals = np.array([*self.held, target], dtype=float)
        low = np.concatenate([np.full(resources, -INFINITY), goals])
        high = np.concatenate([np.zeros(resources), np.full(len(goals), INFINITY)])
        cost = np.concatenate([np.zeros(many), np.ones(1)])
        program = IntegerProgram()
        program.set_matrix(rows, cost, np.append(self.numbers, FINE).astype(float), low, high)
        x = program.search(SearchLimits(MOST_NODES, deadline.part(0.25))).x
        if x is None:
            return None
        placed = np.round(x[:many]).astype(np.int64)
        enough = all(int(worth @ placed) >= goal for worth, goal in zip(self.worth, goals.tolist(), strict=True))
        return placed if enough else None

    def _handed_out(self, classes: Ints, places: Sequence[Bin]) -> Solution:
        members = [iter(alike) for alike in self.places.classes.gangs]
        free = whole_devices(self.instance)
        placement = {}
        for c, place in zip(classes.tolist(), places, strict=True):
            gang = self.instance.gangs[next(members[c])]
            placement[gang.id] = list(seats(self.instance, gang, place, free[place.node]))
        return {"placement": placement}


def _spread(shares: Floats, free: Floats, takes: Flags) -> Ints:
    """Large gangs first, each where least is taken then; what a bin does not hold goes there, too."""
    held_by = np.zeros(len(shares), dtype=np.int64)
    rest = free.copy()
    for i in np.argsort(-shares.max(axis=1), kind="stable").tolist():
        room = np.where(takes[i], (rest - shares[i]).min(axis=1), -INFINITY)
        held_by[i] = int(np.argmax(room))
        rest[held_by[i]] -= shares[i]
    return held_by


@njit_cached
def exchanged(
    sizes: Ints, free: Ints, takes: Flags, begin: Ints, weight: Floats, draws: Ints, most_free: int
) -> tuple[bool, Ints]:
    """Whether exchange comes from `begin` to bins that hold what is in them before `draws` end, and what it has then.

    A bin that holds too much is drawn, and another one; both are filled anew together. The way that has least too much
    is taken, of equal ones one that is drawn.
    """
    gangs, resources = sizes.shape
    bins = len(free)
    where, rest = begin.copy(), free.copy()
    for i in range(gangs):
        rest[where[i]] -= sizes[i]
    members = np.zeros(gangs, dtype=np.int64)
    full = np.zeros(bins, dtype=np.int64)
    d = 0
    while True:
        number = 0
        for b in range(bins):
            if rest[b].min() < 0:
                full[number] = b
                number += 1
        if number == 0 or d + most_free + 2 > len(draws):
            return number == 0, where
        a = full[draws[d] % number]
        b = (a + 1 + draws[d + 1] % (bins - 1)) % bins
        d += 2
        many = 0
        for i in range(gangs):
            if (where[i] == a and takes[i, b]) or (where[i] == b and takes[i, a]):
                members[many] = i
                many += 1
        few = min(many, most_free)
        for k in range(few):
            other = k + draws[d] % (many - k)
            d += 1
            members[k], members[other] = members[other], members[k]
        rest_a, rest_b = rest[a].copy(), rest[b].copy()
        best, ties, way, chosen = np.inf, 0, 0, 0
        for step in range(1 << few):  # each way differs from the one before in one gang, as in Gray's code
            if step:
                k = 0
                while step >> k & 1 == 0:
                    k += 1
                way ^= 1 << k
                i = members[k]
                sign = 1 if (where[i] == a) == (way >> k & 1 == 1) else -1
                for r in range(resources):
                    rest_a[r] += sign * sizes[i, r]
                    rest_b[r] -= sign * sizes[i, r]
            excess = 0.0
            for r in range(resources):
                excess += (max(0, -rest_a[r]) + max(0, -rest_b[r])) * weight[r]
            if excess < best:
                best, ties, chosen = excess, 0, way
                if best == 0.0:
                    break
            elif excess == best:
                ties += 1
                if draws[(d + ties) % len(draws)] % (ties + 1) == 0:
                    chosen = way
        for k in range(few):
            if chosen >> k & 1:
                i = members[k]
                old = where[i]
                where[i] = b if old == a else a
                rest[old] += sizes[i]
                rest[where[i]] -= sizes[i]
