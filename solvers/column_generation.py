"""Column generation: a restricted master kept warm in HiGHS, pricing by callback, valid bounds.

The master is ``max (or min) sum c_s y_s`` over columns s, each of one group g, subject to ``lower_i <= sum a_is
y_s <= upper_i`` for every row i and ``sum_{s in g} y_s <= 1`` (or ``= 1``) for every group. For any row duals
pi of the right sign, with value_s = c_s - pi a_s, bound(pi) = sum_i (pi_i upper_i where pi_i > 0, else pi_i
lower_i) + sum_g max(0, max_{s in g} value_s) is an upper bound on the maximum (without the 0 for a group with =
1; mirrored for a minimum). It holds at every iteration, for every pi, as long as the pricing's maximum is exact
or over-estimated. Paper 002, P2 and P3, are the case of jobs as groups and devices in slots as rows; any other
set-packing by schedules, embeddings or paths fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.solvers.linear_program import INFINITY, LinearProgram, Optimum
from schedgap.solvers.result import Deadline

FEASIBLE = 1e-7
"""Artificial slack that counts as none."""


@dataclass(frozen=True)
class RowBounds:
    """``lower <= sum a y <= upper``; equal bounds make an equality, an infinite one is absent."""

    lower: float = -INFINITY
    upper: float = INFINITY


@dataclass(frozen=True)
class Column:
    """One column: its group, its objective coefficient, its sparse entries, and whatever the caller keeps with it."""

    group: int
    objective: float
    rows: Ints
    values: Floats
    payload: Any = None

    @property
    def key(self) -> tuple[int, float, bytes, bytes]:
        """The same for columns that a program cannot tell apart."""
        return self.group, self.objective, self.rows.tobytes(), self.values.tobytes()


@dataclass(frozen=True)
class Priced:
    """What pricing found at some row duals."""

    # (G,) for each group the best ``weight * c_s - duals a_s`` over all its columns, or an optimistic estimate of it
    # (no smaller when maximising, no larger when minimising); -inf (inf) for a group that has no column
    best: Floats
    columns: Sequence[Column]  # columns worth adding; each is added only if it improves on the master's own duals


Pricing = Callable[[Floats, float], Priced]
"""``pricing(duals, weight)``: objective coefficients count `weight` times (0 while looking for feasibility)."""


class GenerationStatus(StrEnum):
    """Why generation stopped."""

    CONVERGED = "converged"
    INFEASIBLE = "infeasible"
    STALLED = "no column improves, yet bound and value differ"
    CUT_OFF = "cut off"
    LIMIT = "limit"


@dataclass(frozen=True)
class Generated:
    """The state at the end of a generation."""

    status: GenerationStatus  # why it stopped
    # the best valid bound on the master over all columns (upper when maximising); None where no pricing was finished,
    # and for an infeasible master
    bound: float | None
    value: float | None  # the objective of the restricted master, None where it is infeasible
    duals: Floats  # (I,) row duals that gave `bound`
    payoffs: Floats  # (G,) the groups' best values at `duals`, at least 0 for groups with ``<= 1``
    columns: tuple[Column, ...]  # columns of the restricted master
    weights: Floats  # (columns,) the restricted master's y
    # master_duals, master_payoffs: the restricted master's own optimal duals of rows and groups
    master_duals: Floats
    master_payoffs: Floats
    iterations: int  # pricings
    # (value, bound) after every pricing; value None while looking for feasibility
    history: tuple[tuple[float | None, float], ...] = ()


@dataclass(frozen=True)
class GenerationLimits:
    """When to stop."""

    deadline: Deadline = field(default_factory=Deadline)  # wall clock
    iterations: int = 100_000  # most pricings
    tolerance: float = 1e-9  # converged when |bound - value| <= tolerance * max(1, |value|)
    # stop as soon as the bound is no better than this (a node that cannot beat the incumbent)
    cutoff: float | None = None
    smoothing: float = 0.5  # alpha in [0, 1): price at alpha * best duals so far + (1 - alpha) * master duals


class Master:
    """A restricted master that stays in memory between solves.

    Parameters
    ----------
    sense : +1 minimise, -1 maximise
    rows : the coupling rows
    must : for each group whether exactly one column has to be chosen (else at most one)
    """

    def __init__(self, sense: int, rows: Sequence[RowBounds], must: Sequence[bool]) -> None:
        self.sign = 1.0 if sense == MAXIMISE else -1.0
        self.lower = np.array([row.lower for row in rows], dtype=float)
        self.upper = np.array([row.upper for row in rows], dtype=float)
        self.must = np.array(must, dtype=bool)
        self.columns: list[Column] = []
        self._cost: list[float] = []
        self.allowed: list[bool] = []
        # primal: new columns leave the basis primal feasible
        self._lp = LinearProgram(primal=True, tolerance=1e-9)
        # groups come first, so that coupling rows can be added later
        self._groups = len(self.must)
        low = np.concatenate([self.must.astype(float), self.lower])
        high = np.concatenate([np.ones(self._groups), self.upper])
        self._lp.add_rows(low, high)
        self._phase_one = False
        self._artificials = self._add_artificials()

    def _add_artificials(self) -> int:
        """One slack per group and per row that zero does not satisfy; they are free only while it is needed."""
        entries = [(group, 1.0) for group in range(self._groups)]
        entries += [(self._groups + int(i), 1.0) for i in np.flatnonzero(self.lower > 0)]
        entries += [(self._groups + int(i), -1.0) for i in np.flatnonzero(self.upper < 0)]
        n = len(entries)
        self._lp.add_columns(np.zeros(n), np.zeros(n), [(np.array([row]), np.array([value])) for row, value in entries])
        return n

    def add(self, columns: Sequence[Column]) -> None:
        """Add columns; all of them are allowed until :meth:`restrict` says otherwise."""
        if not columns:
            return
        n = len(columns)
        costs = np.array([-self.sign * column.objective for column in columns])
        self._lp.add_columns(
            np.zeros(n) if self._phase_one else costs,
            np.full(n, INFINITY),
            [(np.append(c.rows + self._groups, c.group), np.append(c.values, 1.0)) for c in columns],
        )
        self.columns.extend(columns)
        self._cost.extend(costs)
        self.allowed.extend([True] * n)

    def drop(self, keep: Bools) -> None:
        """Forget the columns that are not to be kept; the next solve starts from no basis."""
        gone = np.flatnonzero(~keep)
        if not len(gone):
            return
        self._lp.remove_columns(gone + self._artificials)
        kept = np.flatnonzero(keep)
        self.columns = [self.columns[i] for i in kept]
        self._cost = [self._cost[i] for i in kept]
        self.allowed = [self.allowed[i] for i in kept]

    def add_rows(self, rows: Sequence[RowBounds], entries: Sequence[tuple[Ints, Floats]]) -> None:
        """Add coupling rows that zero satisfies (cuts), with their entries on the columns there are.

        Parameters
        ----------
        rows : the rows; their numbers follow those of the rows there are
        entries : for each row the columns, as positions in `columns`, and the values
        """
        if any(row.lower > 0 or row.upper < 0 for row in rows):
            raise ValueError("a row that zero breaks needs an artificial column: give it to the constructor")
        low, high = np.array([row.lower for row in rows]), np.array([row.upper for row in rows])
        self._lp.add_rows(low, high, [(columns + self._artificials, values) for columns, values in entries])
        self.lower, self.upper = np.append(self.lower, low), np.append(self.upper, high)

    def restrict(self, allowed: Bools, must: Bools) -> None:
        """Allow only these columns, and set which groups must choose one: a node of a search tree."""
        now = np.array(self.allowed, dtype=bool)
        changed = np.flatnonzero(now != allowed)
        if len(changed):
            self._lp.set_upper(changed + self._artificials, np.where(allowed[changed], INFINITY, 0.0))
            self.allowed = allowed.tolist()
        for group in np.flatnonzero(must != self.must):
            self._lp.set_row(int(group), float(must[group]), 1.0)
        self.must = must.copy()

    def _set_phase(self, one: bool) -> None:
        """Phase one minimises the artificial slacks; phase two forbids them."""
        self._phase_one = one
        slack = self._artificials
        needed = np.ones(slack, dtype=bool)
        needed[: len(self.must)] = self.must
        self._lp.set_upper(np.arange(slack), np.where(needed & one, INFINITY, 0.0))
        n = len(self.columns)
        cost = np.concatenate([np.full(slack, 1.0 if one else 0.0), np.zeros(n) if one else np.array(self._cost)])
        self._lp.set_costs(np.arange(slack + n), cost)

    def _state(self, found: Optimum) -> tuple[float, Floats, Floats, Floats]:
        """(internal value to maximise, internal duals, group duals, y) of a solved restricted master."""
        duals = -found.duals
        rows = np.clip(duals[self._groups :], np.where(np.isfinite(self.lower), -INFINITY, 0.0), None)
        rows = np.clip(rows, None, np.where(np.isfinite(self.upper), INFINITY, 0.0))
        return -found.value, rows, duals[: self._groups], found.x[self._artificials :]

    def _row_part(self, duals: Floats) -> float:
        """sum_i pi_i times the bound its sign selects."""
        bounds = np.where(duals > 0, self.upper, self.lower)
        return float(np.sum(duals * np.where(duals == 0, 0.0, bounds)))

    def generate(self, pricing: Pricing, limits: GenerationLimits | None = None) -> Generated:
        """Generate columns until the master is solved over all of them, or a limit.

        With status CONVERGED, `bound` and `value` agree within the tolerance; with any status but INFEASIBLE,
        `bound` is valid: it is what one pricing of all groups proves at its own duals, never the value of the columns.

        Notes
        -----
        Smoothing of duals after Wentges (1997); a mispricing is followed by pricing at the master's own duals.
        """
        limits = limits or GenerationLimits()
        spent = 0
        if self.must.any() or (self.lower > 0).any() or (self.upper < 0).any():
            self._set_phase(True)
            first = self._run(pricing, limits, 0.0, 0)
            spent = first.iterations
            if first.status != GenerationStatus.CONVERGED:
                return first
        if self._phase_one:
            self._set_phase(False)
        return self._run(pricing, limits, 1.0, spent)

    def _run(self, pricing: Pricing, limits: GenerationLimits, weight: float, spent: int) -> Generated:
        """One phase: `weight` 0 looks for feasibility, 1 optimises."""
        best_bound, centre, centre_payoffs = INFINITY, None, np.zeros(len(self.must))
        history: list[tuple[float | None, float]] = []
        value: float | None = None
        weights = np.zeros(0)
        duals, group_duals = np.zeros(len(self.lower)), np.zeros(self._groups)
        smoothing = limits.smoothing
        # what is in the program already and not taken is worth less than its tolerance: it would come again without end
        added: set[tuple[int, float, bytes, bytes]] = set()
        status = GenerationStatus.LIMIT
        while spent < limits.iterations and (found := self._lp.solve(limits.deadline)) is not None:
            value, duals, group_duals, weights = self._state(found)
            if weight == 0.0 and value >= -FEASIBLE:
                status = GenerationStatus.CONVERGED
                break
            at = duals if centre is None or smoothing == 0.0 else smoothing * centre + (1 - smoothing) * duals
            priced = pricing(self.sign * at, weight)
            spent += 1
            payoffs = self._payoffs(self.sign * priced.best, weight)
            bound = self._row_part(at) + float(payoffs.sum())
            if bound < best_bound:
                best_bound, centre, centre_payoffs = bound, at, payoffs
            history.append((self.sign * value if weight else None, self.sign * best_bound))
            ended = self._ended(value, best_bound, weight, limits)
            if ended is not None:
                status = ended
                break
            fresh = [
                column
                for column in priced.columns
                if self._improves(column, duals, group_duals, weight) and column.key not in added
            ]
            added.update(column.key for column in fresh)
            self.add(fresh)
            if not fresh and at is duals:
                near = best_bound - value <= 1e-6 * max(1.0, abs(value))
                status = GenerationStatus.CONVERGED if weight and near else GenerationStatus.STALLED
                break
            # a mispricing at smoothed duals is followed by pricing at the master's own
            smoothing = limits.smoothing if fresh else 0.0
        known = weight > 0 and np.isfinite(best_bound)
        return Generated(
            status=status,
            bound=self.sign * best_bound if known else None,
            value=None if value is None or weight == 0.0 else self.sign * value,
            duals=self.sign * (duals if centre is None else centre),
            payoffs=self.sign * centre_payoffs,
            columns=tuple(self.columns),
            weights=np.append(weights, np.zeros(len(self.columns) - len(weights))),
            master_duals=self.sign * duals,
            master_payoffs=self.sign * group_duals,
            iterations=spent,
            history=tuple(history),
        )

    def _payoffs(self, best: Floats, weight: float) -> Floats:
        """What each group adds to the bound, from its best column."""
        if weight == 0.0:  # a group that must choose has its artificial column, worth -1
            return np.where(self.must, np.maximum(best, -1.0), np.maximum(best, 0.0))
        return np.where(self.must, best, np.maximum(best, 0.0))

    def _ended(self, value: float, bound: float, weight: float, limits: GenerationLimits) -> GenerationStatus | None:
        """Whether value and bound settle the question (internal sense: maximise)."""
        if weight == 0.0:
            return GenerationStatus.INFEASIBLE if bound < -FEASIBLE else None
        if bound - value <= limits.tolerance * max(1.0, abs(value)):
            return GenerationStatus.CONVERGED
        if limits.cutoff is not None and bound <= self.sign * limits.cutoff:
            return GenerationStatus.CUT_OFF
        return None

    def _improves(self, column: Column, duals: Floats, group_duals: Floats, weight: float) -> bool:
        value = weight * self.sign * column.objective - float(duals[column.rows] @ column.values)
        # above what the duals may be off by (1e-9), and above the rounding of large numbers
        return bool(value > group_duals[column.group] + max(1e-9, 1e-11 * abs(weight * column.objective)))
