"""Branch and price over rings.

Idea: a column is a whole ring of a job; cuts, branching and dives close what the linear program leaves. Source: paper
004's program (12) to (19), which it relaxes and rounds; solving it exactly is ours. Guarantee: the bound holds at
every node; `optimal` where it meets the value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.branch_and_price import BranchAndPrice
from schedgap.solvers.column_generation import (
    Column,
    Generated,
    GenerationLimits,
    GenerationStatus,
    Master,
    Priced,
)
from schedgap.solvers.exact.g_vne.branching import allowed, branch
from schedgap.solvers.exact.g_vne.diving import dive
from schedgap.solvers.exact.g_vne.node_rules import Rules
from schedgap.solvers.exact.g_vne.own_rows import OwnRows
from schedgap.solvers.exact.g_vne.ring_choices import SLACK, RingChoices
from schedgap.solvers.exact.g_vne.subproblem import RingSubproblem
from schedgap.solvers.result import Result, SolveOptions, Termination
from schedgap.solvers.ruin_and_recreate import Choice

CUT_SIZE = 30_000
"""Jobs times nodes beyond which the LP is too large to be solved again and again."""


DIVE_JOBS = 10
"""With fewer jobs branching is as quick."""
COMPACT_NODES = 500
"""Nodes of HiGHS in the compact program's first try; the limit grows with ours."""
COMPACT_SHARE = 0.5
"""Part of the time that is left which a try takes at most."""


class RingSearch(BranchAndPrice[Rules, Column, Floats]):
    """Branch and price on an instance.

    Parameters
    ----------
    options : limits, seed, warm start, reporting
    check : the checker for the instance in its own units
    unit : what a utility of 1 is worth there
    step : every utility is a multiple of it; 0 where that is not known
    root_tolerance : relative difference of bound and value at which the root's LP is left
    user_rows : rows and worth of a user's own
    program : the instance by its integer program, within limits; None, or an answer of None, where that is not asked
    """

    again_after = 40
    prune = 8e-10
    """With what rounding adds to a bound at the end, optimal means within 1e-9."""

    def __init__(
        self,
        instance: GVneInstance,
        options: SolveOptions,
        check: Callable[[Solution], CheckReport],
        *,
        unit: float,
        step: float,
        root_tolerance: float,
        user_rows: OwnRows | None = None,
        program: Callable[[SolveOptions], Result | None] | None = None,
    ) -> None:
        self.subproblem = RingSubproblem(instance, user_rows=user_rows)
        self.rings = RingChoices(self.subproblem, options.seed)
        super().__init__(options, self.rings, check, unit=unit, step=step)
        data = self.subproblem.data
        self.root_rounds = min(self.root_rounds, 40 * data.jobs)
        self.root_cut_rounds = self.root_cut_rounds if data.jobs * data.nodes <= CUT_SIZE else 0
        self.root_tolerance = root_tolerance
        self.pool: list[Column] = []
        self.program = program

    def root_rules(self) -> Rules:
        """All rings."""
        return self.subproblem.free_rules

    def start(self) -> None:
        """A first choice at no prices."""
        first = self.rings.complete([], np.zeros(len(self.subproblem.rows)))
        self.accept(first)
        self.pool.extend(ring for ring in first.items if ring is not None)

    def relax(self, rules: Rules, limits: GenerationLimits) -> Generated:
        """LP over all rings that keep the rules."""
        must = [j in rules.must for j in range(self.subproblem.data.jobs)]
        master = Master(MAXIMISE, self.subproblem.rows_of(rules), must)
        master.add([self.subproblem.ruled(column, rules) for column in self.pool if allowed(column.payload, rules)])
        known = len(master.columns)

        def pricing(duals: Floats, weight: float) -> Priced:
            self.pricings += 1
            priced = self.subproblem.price_all(duals, weight, rules)
            if not rules.at_least:
                return priced
            return Priced(priced.best, [self.subproblem.ruled(column, rules) for column in priced.columns])

        generated = master.generate(pricing, limits)
        self.pool.extend(self.item(column) for column in master.columns[known:])
        return generated

    def separate(self, generated: Generated) -> bool:
        """Add the cuts that the weights break as rows; all rings so far are made anew with their entries in them."""
        if not self.subproblem.separate(generated.columns, generated.weights):
            return False
        self.pool = [self.subproblem.column(column.payload) for column in self.pool]
        self.rings.renew()
        if self.incumbent is not None:
            rings = [None if ring is None else self.subproblem.column(ring.payload) for ring in self.incumbent.items]
            self.incumbent = self.rings.choice(rings)
        return True

    def branch(self, rules: Rules, generated: Generated) -> Sequence[Rules] | None:
        """On jobs, workers on a server, ring edges and their links."""
        return branch(self.subproblem, rules, generated.columns, generated.weights)

    def item(self, column: Column) -> Column:
        """The column without its entries in rules' rows."""
        keep = column.rows < len(self.subproblem.rows)
        return column if keep.all() else replace(column, rows=column.rows[keep], values=column.values[keep])

    def fits_exactly(self, choice: Choice[Column]) -> bool:
        """Asked of the checker where a sum in floats meets its limit but for rounding."""
        clear = choice.load <= self.rings.limit * (1 - SLACK)
        return bool(np.all(clear)) or self.check(self.solution_of(choice.items)).feasible

    def prices(self, duals: Floats) -> Floats:
        """The prices of capacities and cuts."""
        return duals[: len(self.subproblem.rows)]

    def solution_of(self, items: Sequence[Column | None]) -> Solution:
        """Workers and routes."""
        return self.subproblem.solution([column.payload for column in items if column is not None])

    def polish(self, root: Generated, attempt: int) -> bool:
        """At the root diving; then the integer master, again with the columns found since."""
        if root.status not in (GenerationStatus.CONVERGED, GenerationStatus.STALLED) or root.bound is None:
            return False
        asked = self.options.stages is not None  # one stage alone may be asked of any instance
        if attempt == 0 and (asked or self.subproblem.data.jobs >= DIVE_JOBS) and self.best.stage("dive"):
            items, load = dive(self.subproblem, self.rings, root, self.options.deadline)
            absent = [j for j, ring in enumerate(items) if ring is None]
            self.rings.insert(items, load, absent, root.duals)
            self.accept(self.rings.choice(items))
            self.improve(root.duals, type(self).root_rounds)
        if self.worthwhile(root.bound) and self.best.stage("integer master"):
            known = [] if self.incumbent is None else [ring for ring in self.incumbent.items if ring is not None]
            self.solve_master(root, root.columns if attempt == 0 else self.pool, self.rings.limit, known)
        begins = attempt or (asked and self.options.allows("compact program"))
        if not begins or not self.worthwhile(root.bound) or not self.best.stage("compact program"):
            return False
        return self._solve_compactly(COMPACT_NODES * 4 ** max(0, attempt - 1))

    def _solve_compactly(self, nodes: int) -> bool:
        """The integer program of flows, whose cuts see what rings of equal worth hide; whether it closes the gap."""
        limits = replace(
            self.options,
            deadline=self.options.deadline.part(COMPACT_SHARE),
            work_limit=1e-3 * nodes,
            start=self.best.solution,
            report=None,
            stages=None,
        )
        result = None if self.program is None else self.program(limits)
        if result is None:
            return False
        if result.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if result.solution is not None:
            self.best.propose(result.solution)
        if result.bound is not None:
            self.lower(float(result.bound) / self.unit)
        self.best.log("compact program")
        return self.best.proven
