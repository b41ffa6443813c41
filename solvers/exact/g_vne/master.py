"""The integer master of g-vne: a multidimensional knapsack over the rings generated so far."""

from __future__ import annotations

from collections.abc import Sequence

import highspy
import numpy as np

from schedgap.solvers.column_generation import Column
from schedgap.solvers.exact.g_vne.primal import Choice
from schedgap.solvers.result import SolveOptions

NODES = 500
"""Most nodes of HiGHS."""
COLUMN_NODES = 300_000
"""Most nodes times columns."""
SHARE = 0.3
"""Of the time that is left."""


def integer_master(
    limits: Sequence[float], jobs: int, columns: Sequence[Column], known: Choice, options: SolveOptions
) -> Choice | None:
    """At most one ring for each job, within the rows' limits, of the largest total utility.

    Parameters
    ----------
    limits : of the rows
    jobs : how many groups there are
    columns : the rings
    known : the best choice so far, to start from
    options : seed and deadline

    Returns
    -------
    None where no choice was found within the nodes and 0.3 of the time left.
    """
    there = {id(column) for column in columns}
    columns = [*columns, *(column for column in known if column is not None and id(column) not in there)]
    if not columns:
        return None
    taken = {id(column) for column in known if column is not None}
    solver = highspy.Highs()
    left = options.deadline.left()
    for option, setting in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", options.seed % 2**31),
        ("mip_rel_gap", 1e-9),
        ("mip_max_nodes", max(1, min(NODES, COLUMN_NODES // len(columns)))),
        ("mip_feasibility_tolerance", 1e-9),
        ("primal_feasibility_tolerance", 1e-9),
        ("time_limit", highspy.kHighsInf if left is None else max(0.05, SHARE * left)),
    ):
        solver.setOptionValue(option, setting)
    rows = len(limits)
    top = np.concatenate([np.array(limits), np.ones(jobs)])
    count = rows + jobs
    none = np.zeros(0, dtype=np.int32)
    bottom = np.full(count, -highspy.kHighsInf)
    solver.addRows(count, bottom, top, 0, np.zeros(count, np.int32), none, np.zeros(0))
    starts = np.cumsum([0] + [len(column.rows) + 1 for column in columns])
    index = np.concatenate([np.append(column.rows, rows + column.group) for column in columns]).astype(np.int32)
    entries = np.concatenate([np.append(column.values, 1.0) for column in columns])
    n = len(columns)
    cost = np.array([-column.objective for column in columns])
    solver.addCols(n, cost, np.zeros(n), np.ones(n), len(index), starts[:-1].astype(np.int32), index, entries)
    solver.changeColsIntegrality(n, np.arange(n, dtype=np.int32), np.full(n, highspy.HighsVarType.kInteger))
    start = highspy.HighsSolution()
    start.col_value = [float(id(column) in taken) for column in columns]
    solver.setSolution(start)
    solver.run()
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    choice: Choice = [None] * jobs
    load = np.zeros(rows)
    for place in np.flatnonzero(np.array(solver.getSolution().col_value) > 0.5).tolist():
        column = columns[place]
        choice[column.group] = column
        load[column.rows] += column.values
    return choice if np.all(load <= np.array(limits) * (1 + 1e-12)) else None
