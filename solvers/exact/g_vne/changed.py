"""Method ``colgen`` of g-vne under rows and objectives of a user's own, which are rows of the master with duals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.changes import Changes
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.g_vne.instance import GVneInstance, in_ordinary_units
from schedgap.formulations.g_vne.network_tables import tables
from schedgap.solvers.changed_master import ChangedObjective, ChoicesOfColumns
from schedgap.solvers.column_generation import Column, Generated, GenerationStatus
from schedgap.solvers.engines.declarative import Check
from schedgap.solvers.exact.g_vne.colgen import FINE, too_large, utility_unit
from schedgap.solvers.exact.g_vne.node_rules import Rules
from schedgap.solvers.exact.g_vne.own_rows import OwnRows, own_rows
from schedgap.solvers.exact.g_vne.search import RingSearch
from schedgap.solvers.result import Result, SolveOptions

SHARE, SECONDS = 0.4, 60.0
"""Part of the time that is left, and seconds where there is no limit, after which an engine goes on from there."""
NODES = 0.3
"""Thousands of nodes after which it does: what the root leaves open a solver with cuts of its own closes sooner."""


class _ChangedSearch(ChoicesOfColumns[Rules, Column, Floats], RingSearch):
    """Branch and price over rings with a user's rows in the master."""

    def polish(self, root: Generated, attempt: int) -> bool:
        """The integer master, at the root and again with the columns generated since."""
        if root.status not in (GenerationStatus.CONVERGED, GenerationStatus.STALLED) or root.bound is None:
            return False
        if self.worthwhile(root.bound) and self.best.stage("integer master"):
            self.solve_master(root, root.columns if attempt == 0 else self.pool, self.rings.limit)
        return False


def solve_changed(instance: GVneInstance, changes: Changes, options: SolveOptions, check: Check) -> Result | None:
    """The best choice of rings that keeps a user's rows, under the sum of utilities or the user's objective.

    A row is one of the master; its dual is part of what a ring of a size and a worker on a server are charged, so
    pricing stays exact: of rings with the same workers on every server the row counts all alike, and one whose workers
    on a server are neighbours uses no link more often.

    Parameters
    ----------
    check : checker of the changed model: the problem's own, the own rows and the objective

    Returns
    -------
    Result; None where the changes are no sums over sizes and workers on servers (:func:`~.own_rows.own_rows`), or the
    instance is too large for exact pricing. Its bound is valid whatever ended the run.
    """
    user_rows = own_rows(instance, changes)
    if user_rows is None or too_large(instance) is not None:
        return None
    goal = ChangedObjective(changes, user_rows.factor, "colgen")
    limited = replace(options, deadline=options.deadline.part(SHARE, SECONDS), work_limit=NODES)
    search = _search(instance, user_rows, limited, goal.counted(check))
    search.run()
    search.best.info.update({"cuts": len(search.subproblem.cuts), "columns": len(search.pool)})
    return goal.result(search.result())


def _search(
    instance: GVneInstance, user_rows: OwnRows, options: SolveOptions, check: Callable[[Solution], CheckReport]
) -> _ChangedSearch:
    """The search in units in which what a ring may be worth is an ordinary number."""
    if user_rows.worth is None:
        data = tables(instance)
        largest = float(np.where(np.isfinite(data.utility), data.utility, 0.0).max(initial=0.0))
        scaled, unit = in_ordinary_units(instance, largest, FINE)
        step = utility_unit(instance) / unit
        return _ChangedSearch(scaled, options, check, unit=unit, step=step, root_tolerance=1e-9, user_rows=user_rows)
    return _ChangedSearch(instance, options, check, unit=1.0, step=1.0, root_tolerance=1e-9, user_rows=user_rows)
