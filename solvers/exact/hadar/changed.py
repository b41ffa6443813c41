"""Method ``colgen`` of hadar under rows and objectives of a user's own, which are rows of the master with duals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import in_units, tables
from schedgap.solvers.changed_master import ChangedObjective, ChoicesOfColumns
from schedgap.solvers.column_generation import Generated, GenerationStatus
from schedgap.solvers.engines.declarative import Check
from schedgap.solvers.exact.hadar.colgen import FINE, JobRules, ScheduleSearch, too_large
from schedgap.solvers.exact.hadar.own_rows import OwnRows, own_rows
from schedgap.solvers.exact.hadar.schedules import Prices, Schedule
from schedgap.solvers.result import Result, SolveOptions, Status, Termination
from schedgap.solvers.ruin_and_recreate import Choice

SHARE, SECONDS = 0.5, 60.0
"""Part of the time that is left, and seconds where there is no limit, after which an engine goes on from there."""
NODES = 1.0
"""Thousands of nodes after which it does."""


class _ChangedSearch(ChoicesOfColumns[JobRules, Schedule, Prices], ScheduleSearch):
    """Branch and price over schedules with a user's rows in the master."""

    def start(self) -> None:
        """No schedule at all, or the start; the master gets the columns of the better one."""
        super().start()
        self.accept_start()
        self.add_incumbent()

    def fits_exactly(self, choice: Choice[Schedule]) -> bool:
        """Where the devices suffice, asked of the checker, own rows included."""
        return bool((choice.load <= self.packing.room).all()) and super().fits_exactly(choice)

    def solved_root(self, root: Generated) -> None:
        """The duals are no solution of P3: rows of the user's have some of the prices."""

    def polish(self, root: Generated, attempt: int) -> bool:
        """The integer master, at the root, since cuts that come later are no rows of the root; the compact program."""
        if root.status is GenerationStatus.CONVERGED and root.bound is not None and self.worthwhile(root.bound):
            if attempt == 0 and self.best.stage("integer master"):
                self.solve_master(root, self.master.columns, self.master.upper)
            return super().polish(root, max(attempt, 1))
        return False


def solve_changed(instance: HadarInstance, changes: Changes, options: SolveOptions, check: Check) -> Result | None:
    """The best schedules that keep a user's rows, under the sum of utilities or the user's objective.

    A row is one of the master. Its dual is part of what running in a slot and finishing in it are charged, so pricing
    stays exact. What a choice counts in it depends on the slots alone, so branching on slots ends, as without it.

    Parameters
    ----------
    check : checker of the changed model: the problem's own, the own rows and the objective

    Returns
    -------
    Result; None where the master cannot say the changes (:func:`~.own_rows.own_rows`), or the instance is too large for
    exact pricing. Its bound is valid whatever ended the run.
    """
    user_rows = own_rows(instance, changes)
    data = tables(instance)
    if user_rows is None or too_large(data):
        return None
    if instance.all_jobs_must_finish and not data.possible.all():
        return Result(Status.INFEASIBLE, termination=Termination.PROVEN, solve_seconds=0.0, engine="highs")
    goal = ChangedObjective(changes, user_rows.factor, "colgen")
    limited = replace(options, deadline=options.deadline.part(SHARE, SECONDS), work_limit=NODES)
    search = _search(instance, user_rows, limited, goal.counted(check))
    search.run()
    search.best.info.update({"cuts": len(search.scheduler.cuts.slots), "columns": len(search.master.columns)})
    return goal.result(search.result())


def _search(
    instance: HadarInstance, user_rows: OwnRows, options: SolveOptions, check: Callable[[Solution], CheckReport]
) -> _ChangedSearch:
    """The search in units in which what a schedule may be worth is an ordinary number."""
    scaled, unit = in_units(instance, FINE) if user_rows.worth is None else (instance, 1.0)
    return _ChangedSearch(scaled, options, check, unit, user_rows)
