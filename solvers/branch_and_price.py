"""Branch and price, best bound first, for any problem that chooses at most one item a group under shared limits.

The problem says how its relaxation is solved under the rules of a node, which cuts a solution breaks, and what to
branch on; queue, bounds, incumbent, limits and Ctrl-C are here. Values are maximised.
"""

from __future__ import annotations

import heapq
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from schedgap.formulations.common.arrays import Floats
from schedgap.formulations.common.check import CheckReport
from schedgap.formulations.common.errors import Disagreement
from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE, agrees, gap
from schedgap.solvers.column_generation import Column, Generated, GenerationLimits, GenerationStatus
from schedgap.solvers.incumbent import Incumbent
from schedgap.solvers.integer_program import SearchLimits, integer_master
from schedgap.solvers.result import Result, SolveOptions, Termination, clock, package_version
from schedgap.solvers.ruin_and_recreate import Choice, Item, Prices, RuinAndRecreate

Rules = TypeVar("Rules")

LOG_EVERY = 20  # nodes
ROUNDING = 1e-10
"""What sums of floats may be off by, relatively."""
TOLERANCE = 1e-10
"""Relative difference of bound and value at which a relaxation counts as solved."""
MASTER_COLUMNS, MASTER_NODES, MASTER_WORK, MASTER_SHARE = 3_000, 500, 300_000, 0.3
"""Limits of the integer master: columns, nodes, nodes times columns, and part of the time that is left."""
USED = 1e-6
"""Least weight of a column that an incumbent is made from."""


@dataclass(order=True)
class Node(Generic[Rules]):
    """An open node: the best bound first, then the deepest, then the oldest."""

    key: tuple[float, int, int]
    bound: float = field(compare=False)
    depth: int = field(compare=False)
    rules: Rules = field(compare=False)


class BranchAndPrice(ABC, Generic[Rules, Item, Prices]):
    """One search.

    Parameters
    ----------
    options : limits, gap, warm start, reporting; `work_limit` counts thousands of nodes
    choices : makes incumbents
    check : the problem's checker for the instance
    unit : what a value of 1 is worth in the instance's own objective
    step : every value is a whole multiple of it; 0 where that is not known

    Attributes
    ----------
    best : the best solution and the best bound
    incumbent : the best choice of the search's own, None before one is found
    """

    root_rounds: int = 400
    node_rounds: int = 0
    """Rounds of ruin and recreate at the root, and at other nodes whose weights are rounded:"""
    round_every: int = 1
    """one in so many."""
    root_cut_rounds: int = 15
    node_cut_rounds: int = 0
    """Rounds of cuts at the root, and at every other node."""
    again_after: int = 60
    """Nodes after which :meth:`polish` is called again; then twice as many, and so on."""
    prune: float = 5e-10
    """A node whose bound is within this of the incumbent, relatively, is closed; optimal means within 1e-9."""

    def __init__(
        self,
        options: SolveOptions,
        choices: RuinAndRecreate[Item, Prices],
        check: Callable[[Solution], CheckReport],
        *,
        unit: float = 1.0,
        step: float = 0.0,
    ) -> None:
        self.options = options
        self.choices = choices
        self.check = check
        self.unit = unit
        self.step = step
        self.root_tolerance = TOLERANCE
        self.best = Incumbent(MAXIMISE, options, check, unit=unit)
        self.facts = self.best.info
        self.incumbent: Choice[Item] | None = None
        self.nodes = 0
        self.pricings = 0
        self._ended: Termination | None = None

    @abstractmethod
    def root_rules(self) -> Rules:
        """The rules of the root."""

    @abstractmethod
    def start(self) -> None:
        """Find a first incumbent, and columns to begin with."""

    @abstractmethod
    def relax(self, rules: Rules, limits: GenerationLimits) -> Generated:
        """Solve the linear program over all columns that keep the rules."""

    @abstractmethod
    def separate(self, generated: Generated) -> bool:
        """Add the cuts that a solution of the relaxation breaks; whether there are any."""

    @abstractmethod
    def branch(self, rules: Rules, generated: Generated) -> Sequence[Rules] | None:
        """Rules of the children, which lose no better choice and exclude this solution; None where it is whole."""

    @abstractmethod
    def item(self, column: Column) -> Item:
        """What a column stands for."""

    @abstractmethod
    def prices(self, duals: Floats) -> Prices:
        """Prices for incumbents at the relaxation's row duals."""

    @abstractmethod
    def solution_of(self, items: Sequence[Item | None]) -> Solution:
        """A choice as a solution object."""

    def solved_root(self, root: Generated) -> None:
        """Called when the root's relaxation is solved, without cuts yet."""

    @abstractmethod
    def polish(self, root: Generated, attempt: int) -> bool:
        """Look for incumbents by other means, at the root (0) and later; whether nothing better is left."""

    @property
    def value(self) -> float:
        """The value of the best solution, -inf without one."""
        return -math.inf if self.best.objective is None else float(self.best.objective)

    def stopped(self) -> bool:
        """Whether the time is over."""
        return self.best.out_of_time()

    def accept(self, choice: Choice[Item]) -> None:
        """Make a choice the incumbent where it is the best so far."""
        if choice.missing or (self.incumbent is not None and not choice.better_than(self.incumbent)):
            return
        if not self.fits_exactly(choice):
            return
        self.incumbent = choice
        if self.best.improves(choice.worth):
            self.best.accept(self.solution_of(choice.items), choice.worth)

    def fits_exactly(self, choice: Choice[Item]) -> bool:
        """Whether a choice that fits in floats does so in the checker's numbers."""
        del choice
        return True

    def threshold(self) -> float:
        """What a bound has to exceed for its node to be worth a look."""
        if self.best.objective is None:
            return -math.inf
        return self.value + max(self.prune * abs(self.value), self.step * (1 - 1e-6))

    def worthwhile(self, bound: float) -> bool:
        """Whether a better incumbent is worth looking for: the gap is open, and there is time."""
        return bound > self.threshold() and not self.best.within_gap(bound) and not self.stopped()

    def lower(self, bound: float) -> None:
        """Every choice is worth at most `bound`, or no more than the best solution."""
        if bound == -math.inf and self.best.objective is None:
            self.best.infeasible = True
        self.best.tighten(bound, of_better=True)

    def round(self, generated: Generated, rounds: int, *, whole: bool = False) -> None:
        """Incumbents from weights, completed greedily, then improved; only from whole ones without local search."""
        if not (whole or self.options.allows("local search")):
            return
        order = np.argsort(-generated.weights, kind="stable")
        used = [generated.columns[i] for i in order.tolist() if generated.weights[i] > USED]
        prices = self.prices(generated.duals)
        self.accept(self.choices.complete([(column.group, self.item(column)) for column in used], prices))
        if rounds and generated.bound is not None and generated.bound > self.threshold():
            self.improve(prices, rounds)

    def improve(self, prices: Prices, rounds: int) -> None:
        """Ruin and recreate from the incumbent."""
        if self.incumbent is not None:
            self.accept(self.choices.improve(self.incumbent.items, prices, rounds, self.stopped))

    def solve_master(
        self, root: Generated, columns: Sequence[Column], capacity: Floats, known: Sequence[Column] = ()
    ) -> bool:
        """The integer master over the columns that may be part of a better choice, by the root's duals.

        Returns whether a better incumbent was found.

        Parameters
        ----------
        root : its relaxation, solved
        columns : columns to choose from
        capacity : upper limits of the rows
        known : the incumbent's columns, to start from, where there are such
        """
        assert root.bound is not None
        reduced = np.array(
            [c.objective - float(root.duals[c.rows] @ c.values) - root.payoffs[c.group] for c in columns]
        )
        near = np.flatnonzero(reduced > self.value - root.bound)
        if len(near) > MASTER_COLUMNS:
            near = np.sort(near[np.argsort(-reduced[near], kind="stable")[:MASTER_COLUMNS]])
        chosen = [columns[i] for i in near.tolist()]
        present = {id(column) for column in chosen}
        chosen += [column for column in known if id(column) not in present]
        if not chosen:
            return False
        taken = {id(column) for column in known}
        start = [i for i, column in enumerate(chosen) if id(column) in taken]
        remaining = self.options.deadline.remaining()
        limits = SearchLimits(
            max(1, min(MASTER_NODES, MASTER_WORK // len(chosen))),
            seconds=math.inf if remaining is None else MASTER_SHARE * remaining,
            seed=self.options.seed,
        )
        groups, must = self.choices.groups, self.choices.must
        found = integer_master(chosen, capacity, groups, limits, must=must, start=start)
        if found is None:
            return False
        items: list[Item | None] = [None] * groups
        for position in found:
            items[chosen[position].group] = self.item(chosen[position])
        before = self.incumbent
        self.accept(self.choices.choice(items))
        self.best.log("integer master")
        return self.incumbent is not before

    def limits(self, tolerance: float = TOLERANCE) -> GenerationLimits:
        """Limits of a relaxation."""
        cutoff = None if self.best.objective is None else self.threshold()
        return GenerationLimits(self.options.deadline, tolerance=tolerance, cutoff=cutoff)

    def run(self) -> None:
        """Search until proven, a limit or Ctrl-C."""
        try:
            self._ended = self._run()
        except KeyboardInterrupt:
            self.best.interrupted = True

    def result(self) -> Result:
        """What was found.

        Raises Disagreement: the checker does not confirm it.
        """
        self._confirm()
        if self._ended is Termination.PROVEN and not self.best.proven:
            self.facts["reason"] = "what is left between value and bound is the rounding of the linear programs"
        self.facts.update({"nodes": self.nodes, "pricings": self.pricings})
        return self.best.result(self._ended, engine="highs", version=package_version("highspy"))

    def _confirm(self) -> None:
        """The checker's objective in place of the search's, which is a sum of floats, and the bound in its unit."""
        best = self.best
        if best.objective is None or best.solution is None:
            return
        report = self.check(best.solution)
        found = best.in_own(best.objective)
        if not report.feasible or report.objective is None or not agrees(float(report.objective), found or 0.0):
            reason = report.violations[0].message if report.violations else "no violation"
            raise Disagreement(
                f"colgen: {found:g} becomes {report.objective} in the checker: {reason}", solution=best.solution
            )
        objective = float(report.objective)
        if best.bound is not None:
            bound = float(best.bound)
            best.bound = (
                objective if bound <= best.objective else max(objective, (bound + ROUNDING * abs(bound)) * self.unit)
            )
        best.objective, best.unit = objective, 1

    def _run(self) -> Termination | None:
        if self.options.start is not None:
            self.best.propose(self.options.start)
        if self.best.stage("local search"):
            self.start()
        rules = self.root_rules()
        root = self.relax(rules, replace(self.limits(self.root_tolerance), cutoff=None))
        decides = self.best.stage("linear program")
        if root.status is GenerationStatus.INFEASIBLE and (decides or self.options.allows("branch and price")):
            self.best.enter("linear program" if decides else "root node")
            return self._over(-math.inf)
        bound = root.bound
        if bound is None or root.status is GenerationStatus.INFEASIBLE:
            return None
        if decides:
            self.lower(bound)
        self.facts["lp_bound"], self.facts["lp_value"] = self.best.in_own(bound), self.best.in_own(root.value)
        self.facts["lp_gap"] = gap(root.value, bound)
        self.facts["lp_seconds"] = clock() - self.best.began
        self.best.log("linear program")
        self.solved_root(root)
        self.round(root, self.root_rounds)
        if self.worthwhile(bound) and self.best.stage("cuts"):
            root = self.add_cuts(rules, root, self.root_cut_rounds)
            if root.status is GenerationStatus.INFEASIBLE:
                return self._over(-math.inf)
            bound = bound if root.bound is None else root.bound
            self.lower(bound)
            self.facts["cut_bound"] = self.best.in_own(bound)
            self.best.log("cuts")
        if self.worthwhile(bound) and self.polish(root, 0):
            return Termination.PROVEN
        return self._search(root) if self.options.allows("branch and price") else None

    def _over(self, bound: float) -> Termination:
        """Nothing is left to look at, and what was is worth at most `bound`."""
        self.lower(max(bound, self.value))
        return Termination.PROVEN

    def add_cuts(self, rules: Rules, generated: Generated, rounds: int) -> Generated:
        """Add cuts and solve again, up to `rounds` times; the last relaxation with the best bound on the way."""
        best = generated.bound
        for _ in range(rounds):
            if (
                generated.status is not GenerationStatus.CONVERGED
                or best is None
                or best <= self.threshold()
                or self.stopped()
            ):
                break
            if not self.separate(generated):
                break
            generated = self.relax(rules, self.limits())
            if generated.bound is not None:
                best = min(best, generated.bound)
        return generated if generated.status is GenerationStatus.INFEASIBLE else replace(generated, bound=best)

    def _search(self, root: Generated) -> Termination | None:
        numbers = itertools.count()
        assert root.bound is not None
        heap = [Node((-root.bound, 0, next(numbers)), root.bound, 0, self.root_rules())]
        settled = -math.inf  # the largest bound of nodes that are closed, or cannot be branched on
        most = math.inf if self.options.work_limit is None else self.options.work_limit * 1000
        again, attempt = self.again_after, 1
        self.best.enter("root node")
        while heap:
            best = heap[0].bound
            self.lower(max(best, settled))
            if best <= self.threshold():
                settled = max(settled, self._closed(best))
                break
            if self.best.gap_reached or self.stopped() or self.nodes >= most:
                return None
            if self.nodes >= again:
                if self.polish(root, attempt):
                    return Termination.PROVEN
                again, attempt = 2 * again, attempt + 1
                continue
            node = heapq.heappop(heap)
            if node.depth:
                self.best.stage("branch and price")
            self.nodes += 1
            self.best.work = 1e-3 * self.nodes
            generated = self._relaxed(node, root)
            if generated.status is GenerationStatus.INFEASIBLE:
                continue
            bound = node.bound if generated.bound is None else min(node.bound, generated.bound)
            if bound <= self.threshold():
                settled = max(settled, self._closed(bound))
                continue
            if generated.status is GenerationStatus.LIMIT:
                if self.stopped():
                    heapq.heappush(heap, replace(node, key=(-bound, -node.depth, next(numbers)), bound=bound))
                else:
                    settled = max(settled, bound)
                continue
            if self.incumbent is None or (self.nodes - 1) % self.round_every == 0:
                self.round(generated, self.node_rounds)
            children = self.branch(node.rules, generated)
            if children is None:
                self.round(generated, 0, whole=True)
                settled = max(settled, self._closed(bound))
                continue
            for rules in children:
                heapq.heappush(heap, Node((-bound, -(node.depth + 1), next(numbers)), bound, node.depth + 1, rules))
            if self.nodes % LOG_EVERY == 0:
                self.best.log(f"{self.nodes} nodes, {self.pricings} pricings")
        return self._over(settled)

    def _relaxed(self, node: Node[Rules], root: Generated) -> Generated:
        if node.depth == 0 and self.root_tolerance <= TOLERANCE:
            return root
        generated = self.relax(node.rules, self.limits())
        return self.add_cuts(node.rules, generated, self.node_cut_rounds if self.options.allows("cuts") else 0)

    def _closed(self, bound: float) -> float:
        """What a node that is closed may still hold: nothing above the incumbent where values are multiples."""
        whole = self.step * (1 - 1e-6) > self.prune * abs(self.value)
        return self.value if whole and bound <= self.threshold() else bound
