"""Linear programs from arrays: the one place that sets HiGHS up for them.

    min cost x,  low <= A x <= high,  lower <= x <= upper

A program stays in memory: after a change of columns, rows, costs or bounds it is solved again from the last basis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.arrays import Floats, Ints
from schedgap.solvers.result import NO_DEADLINE, Deadline

if TYPE_CHECKING:  # slow to load
    from scipy import sparse


INFINITY = float("inf")
"""HiGHS's infinity: no bound."""

Entries = Sequence[tuple[Ints, Floats]]
"""For each row its columns and their coefficients; or for each column its rows."""

_PRIMAL_SIMPLEX = 4
_REACHED = ("kOptimal", "kIterationLimit")
_WITHOUT_OPTIMUM = ("kInfeasible", "kUnbounded", "kUnboundedOrInfeasible", "kTimeLimit")


@dataclass(frozen=True)
class Optimum:
    """An optimal solution."""

    value: float  # cost x
    x: Floats  # (columns,)
    duals: Floats  # (rows,) what the value rises by for each unit that the row's active side rises by


class LinearProgram:
    """A program without columns and rows at first, not in parallel, so that the same calls give the same answers.

    Parameters
    ----------
    primal : solve by the primal simplex method, for programs that columns are added to
    tolerance : tolerance of rows and of reduced costs; None is HiGHS's own, 1e-7
    """

    def __init__(self, *, primal: bool = False, tolerance: float | None = None) -> None:
        import highspy  # so that what only lists methods loads no engine

        self._engine = highspy
        self._highs: Any = highspy._core._Highs()  # says nothing when it is made; the types of 1.16 lack getDualRay
        self._set("output_flag", False)
        # Not one thread: HiGHS refuses another number than that of whoever ran it in this thread before.
        self._set("parallel", "off")
        if primal:
            self._set("simplex_strategy", _PRIMAL_SIMPLEX)
        if tolerance is not None:
            self._set("primal_feasibility_tolerance", tolerance)
            self._set("dual_feasibility_tolerance", tolerance)

    def _set(self, option: str, value: bool | int | float | str) -> None:
        if self._highs.setOptionValue(option, value) != self._engine.HighsStatus.kOk:
            raise ValueError(f"HiGHS does not take {option} = {value!r}")

    @property
    def columns(self) -> int:
        """How many there are."""
        return int(self._highs.getNumCol())

    @property
    def rows(self) -> int:
        """How many there are."""
        return int(self._highs.getNumRow())

    def add_columns(self, cost: Floats, upper: Floats, entries: Entries = ()) -> None:
        """Add columns with lower bound 0 and their entries in the rows there are."""
        n = len(cost)
        starts, index, values = _packed(entries, n)
        self._highs.addCols(n, cost, np.zeros(n), _bounded(upper), len(index), starts, index, values)

    def add_rows(self, low: Floats, high: Floats, entries: Entries = ()) -> None:
        """Add rows with their entries in the columns there are."""
        n = len(low)
        starts, index, values = _packed(entries, n)
        self._highs.addRows(n, _bounded(low), _bounded(high), len(index), starts, index, values)

    def set_matrix(self, matrix: sparse.csc_matrix, cost: Floats, upper: Floats, low: Floats, high: Floats) -> None:
        """Make this the whole program: rows between `low` and `high`, columns between 0 and `upper`."""
        lp = self._engine.HighsLp()
        lp.num_row_, lp.num_col_ = matrix.shape
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(len(cost)), _bounded(upper)
        lp.row_lower_, lp.row_upper_ = _bounded(low), _bounded(high)
        lp.a_matrix_.format_ = self._engine.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
        self._highs.passModel(lp)

    def remove_columns(self, which: Ints) -> None:
        """Remove columns; the next solve starts from no basis."""
        self._highs.deleteCols(len(which), which.astype(np.int32))

    def set_costs(self, which: Ints, cost: Floats) -> None:
        """Change costs."""
        self._highs.changeColsCost(len(which), which.astype(np.int32), cost)

    def set_upper(self, which: Ints, upper: Floats) -> None:
        """Change upper bounds of columns."""
        n = len(which)
        self._highs.changeColsBounds(n, which.astype(np.int32), np.zeros(n), _bounded(upper))

    def set_box(self, lower: Floats, upper: Floats) -> None:
        """Change the bounds of all columns."""
        n = len(lower)
        self._highs.changeColsBounds(n, np.arange(n, dtype=np.int32), _bounded(lower), _bounded(upper))

    def ray(self) -> Floats | None:
        """Multipliers of the rows that show that the program of the last solve is infeasible, where there are some."""
        found = self._highs.getDualRay()
        ray = np.array(found[2], dtype=float)
        return ray if found[1] and np.isfinite(ray).all() else None

    def basis(self) -> tuple[Ints, Ints]:
        """Columns in the basis of the last solve, and the rows that are not: as many of each."""
        found, basic = self._highs.getBasis(), self._engine.HighsBasisStatus.kBasic
        columns = [j for j, status in enumerate(found.col_status) if status == basic]
        rows = [i for i, status in enumerate(found.row_status) if status != basic]
        return np.array(columns, dtype=np.int64), np.array(rows, dtype=np.int64)

    def set_row(self, row: int, low: float, high: float) -> None:
        """Change the bounds of a row."""
        self._highs.changeRowBounds(row, max(low, -INFINITY), min(high, INFINITY))

    def solve(self, deadline: Deadline = NO_DEADLINE) -> Optimum | None:
        """Solve from the last basis.

        Returns
        -------
        None where no optimum is known: the program is infeasible or unbounded, the deadline came first, or HiGHS
        gives up (numbers that are too unlike), also without the last basis. So None proves nothing.
        """
        if deadline.passed:
            return None
        self._limit(deadline)
        status = self._run()
        if status != "kOptimal" and status not in _WITHOUT_OPTIMUM:
            self._highs.clearSolver()
            status = self._run()
        if status not in ("kOptimal", "kModelEmpty"):
            return None
        solution = self._highs.getSolution()
        value = float(self._highs.getInfo().objective_function_value)
        found = Optimum(value, np.array(solution.col_value), np.array(solution.row_dual))
        # HiGHS takes costs of 1e20 and more as infinite, and so are the duals then.
        finite = all(np.isfinite(part).all() for part in (value, found.x, found.duals))
        return found if finite else None

    def remember(self) -> None:
        """Keep the basis of the last solve for :meth:`probe`."""
        self._basis = self._highs.getBasis()

    def probe(self, most: int) -> float | None:
        """Solve from the remembered basis for at most so many iterations of the dual simplex method.

        Returns the objective that was reached, no more than the least value; infinity where the program is infeasible;
        None where nothing is known.
        """
        self._highs.setBasis(self._basis)
        self._set("simplex_iteration_limit", most)
        status = self._run()
        self._set("simplex_iteration_limit", np.iinfo(np.int32).max)
        if status in ("kInfeasible", "kUnboundedOrInfeasible"):
            return INFINITY
        return float(self._highs.getInfo().objective_function_value) if status in _REACHED else None

    def _limit(self, deadline: Deadline, most: float = INFINITY) -> None:
        """Give the next run the time that is left, at most `most` seconds."""
        remaining = deadline.remaining()
        if remaining is not None:
            most = max(0.01, min(most, remaining))
        # HiGHS counts its run time over the life of the object
        self._set("time_limit", INFINITY if most == INFINITY else self._highs.getRunTime() + most)

    def _run(self) -> str:
        self._highs.run()
        return str(self._highs.getModelStatus().name)


def solve_once(
    matrix: sparse.csc_matrix,
    cost: Floats,
    upper: Floats,
    low: Floats,
    high: Floats,
    deadline: Deadline = NO_DEADLINE,
) -> Optimum | None:
    """Solve one program that is not changed afterwards; see :meth:`LinearProgram.solve`."""
    program = LinearProgram()
    program.set_matrix(matrix, cost, upper, low, high)
    return program.solve(deadline)


def _packed(entries: Entries, count: int) -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    """Starts, indices and values of `count` rows or columns; no entries at all are empty ones."""
    if not entries:
        return np.zeros(count, np.int32), np.zeros(0, np.int32), np.zeros(0)
    starts = np.cumsum([0] + [len(index) for index, _ in entries])
    index = np.concatenate([index for index, _ in entries])
    values = np.concatenate([values for _, values in entries])
    return starts[:-1].astype(np.int32), index.astype(np.int32), values.astype(float)


def _bounded(values: Floats) -> Floats:
    """HiGHS's own infinity for ours."""
    return np.clip(values, -INFINITY, INFINITY)
