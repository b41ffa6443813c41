"""The best choice of at most one generated ring per job that keeps every capacity, by HiGHS."""

from __future__ import annotations

from collections.abc import Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

from schedgap.solvers.column_generation import Column
from schedgap.solvers.result import NO_DEADLINE, Deadline

Floats = NDArray[np.float64]


def best_choice(
    columns: Sequence[Column],
    capacity: Floats,
    jobs: int,
    start: Sequence[int] = (),
    *,
    nodes: int = 10_000,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
) -> list[int]:
    """A multidimensional multiple-choice knapsack over rings.

    Parameters
    ----------
    columns : the rings
    capacity : (I,) of servers' resources and links
    jobs : J; the columns' groups
    start : positions of a choice that keeps the capacities; the answer is at least as good
    nodes : most nodes of the search, which stops at the best choice so far
    seed, deadline : of HiGHS

    Returns
    -------
    Positions of the chosen columns.

    Notes
    -----
    NP-hard; one thread, so that without a deadline the same input gives the same answer.
    """
    if not columns:
        return []
    lp = highspy.HighsLp()
    n, rows = len(columns), len(capacity) + jobs
    lp.num_col_, lp.num_row_ = n, rows
    lp.col_cost_ = np.array([column.objective for column in columns])
    lp.col_lower_, lp.col_upper_ = np.zeros(n), np.ones(n)
    lp.row_lower_ = np.full(rows, -highspy.kHighsInf)
    lp.row_upper_ = np.concatenate([capacity, np.ones(jobs)])
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.integrality_ = [highspy.HighsVarType.kInteger] * n
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.cumsum([0] + [len(column.rows) + 1 for column in columns]).astype(np.int32)
    index = [np.append(column.rows, len(capacity) + column.group) for column in columns]
    lp.a_matrix_.index_ = np.concatenate(index).astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate([np.append(column.values, 1.0) for column in columns])
    solver = highspy.Highs()
    left = deadline.left()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 1e-9),
        ("mip_max_nodes", nodes),
        ("random_seed", seed % 2**31),
        ("mip_feasibility_tolerance", 1e-9),
        ("primal_feasibility_tolerance", 1e-10),
        ("time_limit", highspy.kHighsInf if left is None else max(0.01, left)),
    ):
        solver.setOptionValue(option, value)
    solver.passModel(lp)
    if len(start):
        known = highspy.HighsSolution()
        point = np.zeros(n)
        point[list(start)] = 1.0
        known.col_value = point.tolist()
        solver.setSolution(known)
    solver.run()
    values = np.array(solver.getSolution().col_value)
    found = np.flatnonzero(values > 0.5).tolist() if len(values) == n else []
    return found if _worth(columns, found, capacity) > _worth(columns, start, capacity) else list(start)


def _worth(columns: Sequence[Column], chosen: Sequence[int], capacity: Floats) -> float:
    """The utility of a choice, -1 where it does not keep the capacities or takes two rings of a job."""
    load = np.zeros(len(capacity))
    for place in chosen:
        load[columns[place].rows] += columns[place].values
    groups = [columns[place].group for place in chosen]
    if (load > capacity * (1 + 1e-12)).any() or len(set(groups)) < len(groups):
        return -1.0
    return float(sum(columns[place].objective for place in chosen))
