"""The integer restricted master: the best choice among the schedules generated so far."""

from __future__ import annotations

from collections.abc import Sequence

import highspy
import numpy as np
from numpy.typing import NDArray

from schedgap.solvers.column_generation import Column
from schedgap.solvers.exact.hadar.branching import schedule_of
from schedgap.solvers.exact.hadar.primal import Chosen
from schedgap.solvers.exact.hadar.schedules import Scheduler
from schedgap.solvers.result import Deadline

Floats = NDArray[np.float64]


def integer_master(
    scheduler: Scheduler,
    columns: Sequence[Column],
    must: bool,
    deadline: Deadline,
    node_limit: int = 2000,
    seconds: float = 3.0,
) -> Chosen | None:
    """Solve ``max sum U y`` over the given columns with whole y, with HiGHS; None where nothing was found.

    Parameters
    ----------
    scheduler : the jobs and the rows
    columns : the restricted master's columns
    must : every job has to be chosen (P1)
    deadline, node_limit, seconds : limits
    """
    if not columns:
        return None
    jobs = len(scheduler.data.jobs)
    rows = scheduler.rows()
    solver = highspy.Highs()
    left = deadline.left()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("mip_rel_gap", 0.0),
        ("mip_max_nodes", node_limit),
        ("time_limit", seconds if left is None else max(0.01, min(seconds, 0.1 * left))),
    ):
        solver.setOptionValue(option, value)
    low = np.concatenate([np.full(rows, -highspy.kHighsInf), np.full(jobs, 1.0 if must else -highspy.kHighsInf)])
    capacity = np.tile(scheduler.data.capacity.astype(float), scheduler.horizon)
    high = np.concatenate([capacity, np.ones(jobs)])
    empty = np.zeros(0, dtype=np.int32)
    solver.addRows(rows + jobs, low, high, 0, np.zeros(rows + jobs, np.int32), empty, np.zeros(0))
    starts = np.cumsum([0] + [len(column.rows) + 1 for column in columns])
    index = np.concatenate([np.append(column.rows, rows + column.group) for column in columns]).astype(np.int32)
    value_of = np.concatenate([np.append(column.values, 1.0) for column in columns])
    n = len(columns)
    cost = np.array([-column.objective for column in columns])
    solver.addCols(n, cost, np.zeros(n), np.ones(n), len(index), starts[:-1].astype(np.int32), index, value_of)
    solver.changeColsIntegrality(n, np.arange(n, dtype=np.int32), np.full(n, highspy.HighsVarType.kInteger))
    solver.run()
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    chosen: Chosen = [None] * jobs
    for position in np.flatnonzero(np.array(solver.getSolution().col_value) > 0.5).tolist():
        chosen[columns[position].group] = schedule_of(columns[position])
    return chosen
