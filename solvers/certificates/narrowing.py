"""Makes trees whose boxes are narrowed by rows and by reduced costs at every node, for models of whole variables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached
from schedgap.solvers.certificates.linear import Box, Narrower
from schedgap.solvers.certificates.tree import FRACTION, Node, Tree, Unproven
from schedgap.solvers.linear_program import INFINITY, LinearProgram

_SLACK = 1e-7
"""A row counts as broken, and a bound as narrowed, only beyond this: the checker, which is exact, narrows no less."""
_ROUNDS = 5
_WORTH = 5
"""Variables that reduced costs have to narrow for another round at the same node."""
_OF_A_FAMILY = 3
"""Variables of every family that are probed."""
_DEEPEST = 300
"""Nodes one below the other, so that a file can be written and read."""
_ITERATIONS = 60
_ADDED = 200
_CLOSED = 100.0
"""What a side that is closed at once counts as, in steps of the objective."""


@dataclass(frozen=True)
class _Rows:
    """Rows a x >= b, equalities twice, by row and by column."""

    start: Ints
    column: Ints
    value: Floats
    right: Floats
    column_start: Ints
    rows: Ints

    @classmethod
    def of(cls, matrix: sparse.csr_matrix, right: Floats, equal: Bools) -> _Rows:
        both = sparse.vstack([matrix, -matrix[equal]]).tocsr()
        by_column = both.tocsc()
        parts = (both.indptr, both.indices, by_column.indptr, by_column.indices)
        start, column, column_start, rows = (part.astype(np.int64) for part in parts)
        return cls(start, column, both.data, np.concatenate([right, -right[equal]]), column_start, rows)

    def narrow(self, low: Floats, high: Floats, changed: Ints | None = None) -> bool:
        """Narrow in place until nothing changes; whether something is left."""
        count = len(self.right)
        if changed is None:
            first = np.arange(count)
        else:
            parts = [self.rows[self.column_start[j] : self.column_start[j + 1]] for j in changed.tolist()]
            first = np.unique(np.concatenate([*parts, np.zeros(0, dtype=np.int64)]))
        queue, waiting = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
        queue[: len(first)], waiting[first] = first, True
        found: bool = _narrow(
            self.start, self.column, self.value, self.right, self.column_start, self.rows, low, high, queue, waiting,
            len(first),
        )  # fmt: skip
        return found


def _narrow_rows(
    start: Ints,
    column: Ints,
    value: Floats,
    right: Floats,
    column_start: Ints,
    rows: Ints,
    low: Floats,
    high: Floats,
    queue: Ints,
    waiting: Bools,
    count: int,
) -> bool:
    head, size = 0, len(queue)
    while count > 0:
        i = queue[head]
        head, count = (head + 1) % size, count - 1
        waiting[i] = False
        slack = -right[i]
        for k in range(start[i], start[i + 1]):
            slack += value[k] * (high[column[k]] if value[k] > 0 else low[column[k]])
        if slack < -_SLACK:
            return False
        for k in range(start[i], start[i + 1]):
            a, j = value[k], column[k]
            if a > 0:
                bound = math.ceil(high[j] - slack / a - _SLACK)
                if bound <= low[j]:
                    continue
                low[j] = bound
            else:
                bound = math.floor(low[j] - slack / a + _SLACK)
                if bound >= high[j]:
                    continue
                high[j] = bound
            if low[j] > high[j]:
                return False
            for q in range(column_start[j], column_start[j + 1]):
                if not waiting[rows[q]]:
                    waiting[rows[q]] = True
                    queue[(head + count) % size] = rows[q]
                    count += 1
    return True


_narrow = njit_cached(_narrow_rows)


@dataclass
class NarrowedTree(Tree):
    """A tree as :class:`Tree` makes it, for models all of whose variables are whole, with narrowing at every node.

    Below the root, what its reduced costs and the rows leave is a program of its own, small enough for thousands of
    solves; rows enter it where a solution breaks them. At a node, reduced costs and rows narrow in turn; the variable
    to split is chosen by probing some of every family.
    """

    _free: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def _fixed(self) -> Node:
        if self.target is None or not all(self.model.whole):
            return super()._fixed()
        found = self._solve({})
        if found is None or self._leaf({}, found) is not None:
            return self._node({}, 0)
        multipliers = self.rounded(found[2])
        box = Narrower(self.model).narrow(self.prover.narrowed(multipliers, {}, "root"))
        below: Node = {}
        if box is not None:
            self._reduce(box)
            below = self._narrowed(self._low.copy(), self._high.copy(), None, 0)
        return {"fix": multipliers, "then": {"narrow": below}}

    def _reduce(self, box: Box) -> None:
        """The program of what is left in the box: without fixed variables, and without rows that the bounds imply."""
        model = self.model
        low, high = self.low.copy(), self.high.copy()
        for name, (first, last) in box.items():
            low[model.index[name]], high[model.index[name]] = first, last
        matrix, right = self._matrix.tocsr(), self._right
        cost = self._cost
        while True:  # a variable that only rows want small, and that costs nothing less there, is at its least value
            terms = matrix.tocoo()
            least = np.where(terms.data > 0, low[terms.col], high[terms.col]) * terms.data
            open_row = (np.bincount(terms.row, least, matrix.shape[0]) < right - _SLACK) | self._equal
            wants = (terms.data > 0) & open_row[terms.row]
            wanted = np.bincount(terms.col[wants | (self._equal[terms.row])], minlength=len(low)) > 0
            idle = ~wanted & (cost >= 0) & (low < high)
            if not idle.any():
                break
            high[idle] = low[idle]
        self._free = np.flatnonzero(low < high)
        fixed = low.copy()
        fixed[self._free] = 0.0
        part = matrix[:, self._free]
        keep = np.flatnonzero(open_row & (np.diff(part.indptr) > 0))
        self._part, self._needs, self._both = part[keep], (right - matrix @ fixed)[keep], self._equal[keep]
        self._row_names = [self._names[i] for i in keep.tolist()]
        self._row_scale = self._scale[keep]
        self._steps = cost[self._free] / float(model.step or 1)
        self._base = (float(cost @ fixed) + float(model.constant)) / float(model.step or 1)
        self._top = float((self.target or 0) / (model.step or 1)) - 1  # the last value below the target
        self._low, self._high = low[self._free], high[self._free]
        self._root = box
        self._by_rows = _Rows.of(self._part, self._needs, self._both)
        names = [model.names[j].partition("[")[0] for j in self._free.tolist()]
        self._families = [
            np.array([i for i, name in enumerate(names) if name == family], dtype=np.int64)
            for family in sorted(dict.fromkeys(names), key=names.count)
        ]
        self.program = LinearProgram(tolerance=1e-9)
        rows = np.flatnonzero(self._both)
        self._inside = self._both.copy()
        self._order = rows.tolist()
        needs = self._needs[rows]
        self.program.set_matrix(self._part[rows].tocsc(), self._steps, self._high, needs, needs)

    def _narrowed(self, low: Floats, high: Floats, changed: Ints | None, depth: int) -> Node:
        """The tree of a box that is not yet narrowed."""
        if self.deadline.passed or self.leaves > self.max_leaves or depth > _DEEPEST:
            raise Unproven("the limit came first")
        fixes: list[dict[str, int]] = []
        for _ in range(_ROUNDS):
            if not self._by_rows.narrow(low, high, changed):
                return self._ended(fixes, {})
            found = self._relaxed(low, high)
            if found is None:
                ray = self._empty(low, high)
                if ray is not None:
                    return self._ended(fixes, {"infeasible": ray})
                break
            value, _, duals = found
            multipliers = self._multipliers(duals)
            if value > self._top + FRACTION:
                return self._ended(fixes, {"bound": multipliers})
            reduced = self._steps - self._part[self._order].T @ duals
            most = np.floor((self._top - value + _SLACK) / np.maximum(np.abs(reduced), 1e-9))
            up, down = (reduced > _SLACK) & (low + most < high), (reduced < -_SLACK) & (high - most > low)
            changed = np.flatnonzero(up | down)
            if not len(changed):
                break
            high[up], low[down] = (low + most)[up], (high - most)[down]
            fixes.append(multipliers)
            if len(changed) < _WORTH:
                if not self._by_rows.narrow(low, high, changed):
                    return self._ended(fixes, {})
                break
        if fixes and (low == high).all():  # the point itself closes it
            return _wrapped(fixes, self._narrowed(low, high, None, depth + 1 + len(fixes)))
        j, k = self._split(low, high, found)
        name = self.model.names[int(self._free[j])]
        sides = {}
        for side in ("low", "high"):
            first, last = low.copy(), high.copy()
            if side == "low":
                last[j] = k
            else:
                first[j] = k + 1
            sides[side] = self._narrowed(first, last, np.array([j]), depth + 1 + len(fixes))
        return _wrapped(fixes, {"split": name, "at": k, **sides})

    def _ended(self, fixes: list[dict[str, int]], leaf: Node) -> Node:
        self.leaves += 1
        return _wrapped(fixes, leaf)

    def _relaxed(self, low: Floats, high: Floats) -> tuple[float, Floats, Floats] | None:
        """(value in steps, point, duals) of the program with every row that its solution would break; None: empty."""
        while True:
            self.program.set_box(low, high)
            found = self.program.solve(self.deadline)
            if found is None:
                if self.deadline.passed:
                    raise Unproven("the limit came first")
                return None
            broken = np.where(self._inside, 0.0, self._needs - self._part @ found.x)
            rows = np.argsort(-broken, kind="stable")[:_ADDED]
            rows = rows[broken[rows] > FRACTION]
            if found.value + self._base > self._top + FRACTION or not len(rows):
                return found.value + self._base, found.x, found.duals
            part = self._part[rows]
            entries = [
                (part.indices[a:b].astype(np.int64), part.data[a:b])
                for a, b in zip(part.indptr[:-1], part.indptr[1:], strict=True)
            ]
            self.program.add_rows(self._needs[rows], np.full(len(rows), INFINITY), entries)
            self._inside[rows] = True
            self._order.extend(rows.tolist())

    def _multipliers(self, duals: Floats, unit: float | None = None) -> dict[str, int]:
        """Multipliers by row on the grid."""
        step = float(self.model.step or 1) if unit is None else unit
        order = np.array(self._order, dtype=np.int64)
        allowed = np.where(self._both[order], duals, np.maximum(duals, 0.0))
        whole = np.rint(allowed * self._row_scale[order] * step * 2.0**40)
        return {self._row_names[order[i]]: int(whole[i]) for i in np.flatnonzero(whole)}

    def _empty(self, low: Floats, high: Floats) -> dict[str, int] | None:
        """Multipliers that show that the box is empty."""
        ray = self.program.ray()
        if ray is None:
            return None
        box = dict(self._root)
        for j, first, last in zip(self._free.tolist(), low.tolist(), high.tolist(), strict=True):
            box[self.model.names[j]] = (int(first), int(last))
        for sign in (1, -1):
            multipliers = self._multipliers(sign * ray / (float(np.abs(ray).max()) or 1.0), 1.0)
            if self.adder.bound(multipliers, box, False) > 0:
                return multipliers
        return None

    def _split(self, low: Floats, high: Floats, found: tuple[float, Floats, Floats] | None) -> tuple[int, int]:
        """The variable to split, and where: of those probed the one whose sides gain most, or where one side is closed.

        Small families come first: where nothing gains, what is decided with one of theirs is more.
        """
        best, choice = -1.0, -1
        if found is not None:
            value, x, _ = found
            distance = np.abs(x - np.rint(x))
            if distance.max(initial=0.0) <= FRACTION and (np.rint(x) >= low).all() and (np.rint(x) <= high).all():
                raise Unproven("the rows allow a better point than any schedule known")
            distance[(np.floor(x) < low) | (np.floor(x) + 1 > high)] = 0.0  # narrowed since
            self.program.remember()
        for family in self._families if found is not None else ():
            for j in family[np.argsort(-distance[family], kind="stable")[:_OF_A_FAMILY]].tolist():
                if distance[j] <= FRACTION or best >= _CLOSED**2:
                    break
                gains = []
                for first, last in ((low[j], math.floor(x[j])), (math.floor(x[j]) + 1, high[j])):
                    gains.append(self._gain(low, high, j, first, last, value))
                score = gains[0] * gains[1] if max(gains) < _CLOSED else _CLOSED**2
                if score > best:
                    best, choice = score, j
        if choice >= 0:
            return choice, math.floor(x[choice])
        several = np.flatnonzero(low < high)
        if not len(several):
            raise Unproven("a box of one point that no multipliers close")
        return int(several[0]), int((low[several[0]] + high[several[0]]) // 2)

    def _gain(self, low: Floats, high: Floats, j: int, first: float, last: float, value: float) -> float:
        """What the bound gains, in steps, where variable j is in first..last."""
        low, high = low.copy(), high.copy()
        low[j], high[j] = first, last
        if not self._by_rows.narrow(low, high, np.array([j])):
            return _CLOSED
        self.program.set_box(low, high)
        reached = self.program.probe(_ITERATIONS)
        if reached is None:
            return 1e-3
        return _CLOSED if reached + self._base > self._top + FRACTION else max(reached + self._base - value, 1e-3)


def _wrapped(fixes: list[dict[str, int]], node: Node) -> Node:
    for multipliers in reversed(fixes):
        node = {"fix": multipliers, "then": node}
    return node
