"""Makes tree certificates: depth-first branching on linear programs.

The checker's own prover tries every leaf, but a row without terms that cannot hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from schedgap.formulations.common.arrays import Floats
from schedgap.solvers.certificates.checker import Prover
from schedgap.solvers.certificates.linear import GRID, Adder, Box, Model
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import NO_DEADLINE, Deadline

Node = dict[str, Any]

FRACTION = 1e-6
"""Difference to a whole number from which a value counts as fractional."""
_CANDIDATES = 8
"""Variables that are tried before one is branched on."""
_DEEPEST = 400
_NEAR = 1e-8
"""Relative: a bound so little below the target is tried again with exact multipliers."""


class Unproven(Exception):
    """The tree does not close: the limit came first, or the rows allow more than the problem does."""


@dataclass
class Tree:
    """A search for a tree that proves a value.

    Parameters
    ----------
    model : the checker's own model
    target : what is to be proven, for minimisation; None: that there is no schedule
    deadline, max_leaves : when to give up, in time and in leaves
    wanted : what leaves prove if that takes no further split, where it is more than the target
    """

    model: Model
    target: Fraction | None
    deadline: Deadline = NO_DEADLINE
    max_leaves: int = 20_000
    wanted: Fraction | None = None
    leaves: int = 0
    # the least value that a leaf proves, the target or more; None where every leaf is empty
    proven: Fraction | None = None
    _names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = self.model
        self.prover = Prover(model, self.target)
        self.adder = Adder(model)
        self._names = list(model.rows)
        self._scale = np.ones(len(self._names))
        places: tuple[list[int], list[int], list[float]] = ([], [], [])
        right = np.zeros(len(self._names))
        for i, row in enumerate(model.rows.values()):
            largest = max((abs(float(a)) for a in row.terms.values()), default=1.0)
            self._scale[i] = 2.0 ** -round(math.log2(largest))
            right[i] = float(row.right) * self._scale[i]
            for j, a in row.terms.items():
                places[0].append(i)
                places[1].append(j)
                places[2].append(float(a) * self._scale[i])
        self._equal = np.array([row.equal for row in model.rows.values()], dtype=bool)
        self.low = np.array([float(v) for v in model.low])
        self.high = np.array([float(v) for v in model.high])
        self._whole = np.flatnonzero(np.array(model.whole, dtype=bool))
        matrix = sparse.csc_matrix((places[2], (places[0], places[1])), shape=(len(right), len(self.low)))
        self._matrix, self._right = matrix, right
        cost = np.array([float(c) for c in model.cost]) if self.target is not None else np.zeros(len(self.low))
        self._cost = cost
        self._unit = 2.0 ** round(math.log2(float(np.abs(cost).max()))) if cost.any() else 1.0
        self.program = LinearProgram(tolerance=1e-9)
        self.program.set_matrix(matrix, cost / self._unit, self.high, right, np.where(self._equal, right, INFINITY))

    def grow(self) -> Node:
        """The tree.

        Raises Unproven: it does not close.
        """
        for name, row in self.model.rows.items():  # an engine does not see a row without terms where nothing is to find
            if not row.terms and (row.right > 0 or (row.equal and row.right)):
                self.leaves = 1
                return {"infeasible": {name: GRID if row.right > 0 else -GRID}}
        return self._fixed()

    def branched(self) -> Node:
        """The tree by splits alone, without what reduced costs fix.

        Raises Unproven: it does not close.
        """
        return self._node({}, 0)

    def _fixed(self) -> Node:
        """The tree, below what the reduced costs of the root fix."""
        found = self._solve({}) if self.target is not None else None
        if found is None or self._leaf({}, found) is not None:
            return self._node({}, 0)
        multipliers = self.rounded(found[2])
        prover = self.prover if self.wanted is None else Prover(self.model, self.wanted)  # for all that may be claimed
        box = prover.narrowed(multipliers, {}, "root")
        return {"fix": multipliers, "then": self._node(box, 0)} if box else self._node({}, 0)

    def _node(self, box: Box, depth: int) -> Node:
        if self.deadline.passed or self.leaves > self.max_leaves or depth > _DEEPEST:
            raise Unproven("the limit came first")
        found = self._solve(box)
        leaf = self._leaf(box, found)
        if leaf is not None:
            self.leaves += 1
            return leaf
        j = self._choose(box, found)
        name, x = self.model.names[j], None if found is None else found[1][j]
        low, high = self._range(box, j)
        k = (low + high) // 2 if x is None or abs(x - round(x)) <= FRACTION else math.floor(x)
        k = min(max(k, low), high - 1)
        parts = {
            side: self._node({**box, name: bounds}, depth + 1)
            for side, bounds in (("low", (low, k)), ("high", (k + 1, high)))
        }
        return {"split": name, "at": k, **parts}

    def _range(self, box: Box, j: int) -> tuple[int, int]:
        model = self.model
        return box.get(model.names[j]) or (math.ceil(model.low[j]), math.floor(model.high[j]))

    def _solve(self, box: Box) -> tuple[float, Floats, Floats] | None:
        """(value, point, duals) of the box, or None where it is empty."""
        low, high = self.low.copy(), self.high.copy()
        for name, (first, last) in box.items():
            j = self.model.index[name]
            low[j], high[j] = first, last
        self.program.set_box(low, high)
        found = self.program.solve(self.deadline)
        if found is None:
            if self.deadline.passed:
                raise Unproven("the limit came first")
            return None
        return found.value * self._unit, found.x, found.duals * self._scale * self._unit

    def _leaf(self, box: Box, found: tuple[float, Floats, Floats] | None) -> Node | None:
        """The leaf that proves the box, where its multipliers do."""
        if found is None:
            ray = self.program.ray()
            if ray is None:
                return None
            empty: Mapping[str, int]
            for sign in (1, -1):
                largest = float(np.abs(ray).max()) or 1.0
                empty = self.rounded(sign * ray * self._scale / largest)
                if self.adder.bound(empty, box, False) > 0:
                    return {"infeasible": empty}
            return None
        if self.target is None:
            return None
        if found[0] + float(self.model.constant) < float(self.target) - float(self.model.step or 0) - 1e-6 * (
            1 + abs(float(self.target))
        ):
            return None
        multipliers: Mapping[str, Any] = self.rounded(found[2])
        value = self.prover.reached(self.adder.bound(multipliers, box, True))
        wanted = self.target if self.wanted is None else self.wanted
        if value < wanted and float(wanted - value) <= _NEAR * (1 + abs(float(wanted))):
            other = self.exact()
            exactly = self.prover.reached(self.adder.bound(other, box, True))
            if exactly > value:
                multipliers, value = other, exactly
        if value < self.target:
            return None
        self.proven = value if self.proven is None else min(value, self.proven)
        return {"bound": multipliers}

    def exact(self) -> Mapping[str, str]:
        """The multipliers of the last basis as fractions; those of a wrong sign are left out."""
        from flint import fmpq, fmpq_mat

        columns, rows = self.program.basis()
        model = self.model
        listed = list(model.rows.values())
        place = {int(j): k for k, j in enumerate(columns)}
        entries = [[fmpq(0)] * len(rows) for _ in columns]
        for i, row in enumerate(rows.tolist()):
            for j, a in listed[row].terms.items():
                if j in place:
                    entries[place[j]][i] = fmpq(a.numerator, a.denominator)
        right = [[fmpq(model.cost[j].numerator, model.cost[j].denominator)] for j in columns.tolist()]
        if not right:
            return {}
        try:
            solved = fmpq_mat(entries).solve(fmpq_mat(right))
        except ZeroDivisionError:  # the basis is singular in exact numbers
            return {}
        found: dict[str, str] = {}
        for i, row in enumerate(rows.tolist()):
            y = solved[i, 0]
            if y > 0 or (y < 0 and listed[row].equal):
                found[self._names[row]] = f"{y.p}/{y.q}"
        return found

    def rounded(self, duals: Floats) -> Mapping[str, int]:
        """Multipliers on the grid, with the signs that rows allow."""
        whole = np.rint(np.where(self._equal, duals, np.maximum(duals, 0.0)) * GRID)
        return {self._names[i]: int(whole[i]) for i in np.flatnonzero(whole)}

    def _choose(self, box: Box, found: tuple[float, Floats, Floats] | None) -> int:
        """The variable to split."""
        if found is None:
            for j in self._whole.tolist():
                low, high = self._range(box, j)
                if low < high:
                    return j
            raise Unproven("an empty box that no multipliers show")
        value, x, _ = found
        x = x[self._whole]
        distance = np.abs(x - np.rint(x))
        order = np.argsort(-distance, kind="stable")[:_CANDIDATES]
        candidates = [int(self._whole[i]) for i in order if distance[i] > FRACTION]
        if not candidates:
            raise Unproven("the rows allow a better point than any schedule known")
        if len(candidates) == 1:
            return candidates[0]
        best, choice = -1.0, candidates[0]
        for j in candidates:
            low, high = self._range(box, j)
            k = math.floor(found[1][j])
            gains = []
            for bounds in ((low, k), (k + 1, high)):
                other = self._solve({**box, self.model.names[j]: bounds})
                gains.append(1e9 if other is None else max(1e-6, other[0] - value))
            score = min(gains[0], 1e9) * min(gains[1], 1e9)
            if score > best:
                best, choice = score, j
        return choice
