"""One run of branch and price over rings."""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.instance import Solution
from schedgap.formulations.common.numbers import MAXIMISE, gap
from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.solvers.column_generation import Column, Generated, Limits, Master, Outcome, Priced
from schedgap.solvers.exact.g_vne.branching import allowed, branch
from schedgap.solvers.exact.g_vne.dive import dive
from schedgap.solvers.exact.g_vne.master import integer_master
from schedgap.solvers.exact.g_vne.primal import Choice, Improver
from schedgap.solvers.exact.g_vne.rules import Rules
from schedgap.solvers.exact.g_vne.space import Space
from schedgap.solvers.result import SolveOptions, Termination

Floats = NDArray[np.float64]

PRUNE = 1.001e-9
"""A node whose bound is within this of the incumbent, relatively, is closed: limits give way by 1e-9, as the checker's
do, so bounds are larger by as much where a limit is tight."""
ROUNDING = 1e-10
"""What sums of floats may be off by, relatively."""
TOLERANCE = 1e-10
"""Relative difference of a linear program's bound and value at which its columns suffice."""
ROOT_ROUNDS = 400
"""Rounds of ruin and recreate at the root."""
CUT_ROUNDS = 15
"""Rounds of cuts at the root."""
CUT_SIZE = 30_000
"""Jobs times nodes beyond which the LP is too large to be solved again and again."""
DIVE_JOBS = 10
"""With fewer jobs branching is as quick."""
KNAPSACK_AGAIN = 40
"""Nodes after which the integer master is tried again, with the columns found since; then four times as many."""
KNAPSACK_COLUMNS = 3_000
"""Largest integer master."""


@dataclass(order=True)
class Node:
    """An open node: the best bound first, the deepest among equals."""

    key: float
    depth: int
    number: int
    bound: float = field(compare=False)
    rules: Rules = field(compare=False)


class Search:
    """Branch and price on an instance.

    Parameters
    ----------
    instance : the instance
    options : limits, seed, warm start, reporting
    unit : every utility is a multiple of it; 0 where that is not known
    root_tolerance : relative difference of bound and value at which the root's LP is left
    """

    def __init__(self, instance: GVneInstance, options: SolveOptions, unit: float, root_tolerance: float) -> None:
        self.options = options
        self.unit = unit
        self.root_tolerance = root_tolerance
        self.space = Space(instance)
        self.improver = Improver(self.space, options.seed)
        self.pool: list[Column] = []
        self.choice: Choice = [None] * self.space.data.jobs
        self.value = 0.0
        self.nodes = 0
        self.pricings = 0
        self.facts: dict[str, Any] = {}

    @property
    def stopped(self) -> bool:
        """Whether the time is over."""
        return self.options.deadline.passed

    def offer(self, choice: Choice) -> None:
        """Keep a choice of rings if it is the best so far."""
        value = self.improver.value(choice)
        if value > self.value + 1e-12 * max(1.0, abs(value)):
            self.choice, self.value = list(choice), value
            if self.options.report is not None:
                self.options.report(self.solution(), value, None)

    def solution(self) -> Solution:
        """The best choice as a solution object."""
        return self.space.solution([column.payload for column in self.choice if column is not None])

    def threshold(self) -> float:
        """What a bound has to exceed for its node to be worth a look."""
        return self.value + max(PRUNE * self.value, self.unit * (1 - 1e-6))

    def relax(self, rules: Rules, limits: Limits) -> tuple[Generated, Master]:
        """LP over all rings that keep the rules."""
        must = [j in rules.must for j in range(self.space.data.jobs)]
        master = Master(MAXIMISE, self.space.rows_of(rules), must)
        master.add([self.space.ruled(column, rules) for column in self.pool if allowed(column.payload, rules)])
        known = len(master.columns)

        def pricing(duals: Floats, weight: float) -> Priced:
            self.pricings += 1
            priced = self.space.price_all(duals, weight, rules)
            if not rules.at_least:
                return priced
            return Priced(priced.best, [self.space.ruled(column, rules) for column in priced.columns])

        generated = master.generate(pricing, limits)
        own = len(self.space.rows)
        for column in master.columns[known:]:
            keep = column.rows < own
            self.pool.append(
                column
                if keep.all()
                else Column(column.group, column.objective, column.rows[keep], column.values[keep], column.payload)
            )
        return generated, master

    def run(self) -> tuple[float | None, Termination]:
        """Search until proven, or a limit: the bound, and why it stopped."""
        began = time.monotonic()
        self.start()
        limits = Limits(deadline=self.options.deadline, tolerance=self.root_tolerance)
        root, master = self.relax(self.space.free_rules, limits)
        if root.bound is None:
            return None, Termination.TIME_LIMIT
        self.facts["lp_seconds"] = time.monotonic() - began
        self.facts["lp_bound"] = root.bound
        self.facts["lp_value"] = root.value
        self.facts["lp_gap"] = gap(root.value, root.bound)
        if self.options.report is not None:
            self.options.report(None, None, root.bound)
        self.round(root, master, min(ROOT_ROUNDS, 40 * self.space.data.jobs))
        bound = root.bound
        if self.worthwhile(bound):
            root, master, bound = self.tighten(root, master, limits)
            if root.bound is None:  # the time was over before the first pricing
                return bound, Termination.TIME_LIMIT
        if self.worthwhile(bound) and self.space.data.jobs >= DIVE_JOBS:
            choice = dive(self.space, self.improver, master.columns, root, self.options.deadline)
            load = self.improver.load(choice)
            absent = [j for j, column in enumerate(choice) if column is None]
            self.improver.insert(choice, load, absent, root.duals)
            self.offer(choice)
            self.offer(self.improver.improve(self.choice, root.duals, ROOT_ROUNDS, lambda: self.stopped))
        if self.worthwhile(bound):
            self.knapsack(root, master.columns)
        return self.branch_and_price(replace(root, bound=bound), master)

    def worthwhile(self, bound: float) -> bool:
        """Whether a better choice is worth looking for: the gap is open, and there is time."""
        return bound > self.threshold() and not self.gap_reached(bound) and not self.stopped

    def tighten(self, root: Generated, master: Master, limits: Limits) -> tuple[Generated, Master, float]:
        """Cuts at the root: its LP, and the best bound on the way (the fact ``cut_bound``)."""
        best = root.bound
        assert best is not None
        rounds = CUT_ROUNDS if self.space.data.jobs * self.space.data.nodes <= CUT_SIZE else 0
        for _ in range(rounds):
            if root.outcome != Outcome.CONVERGED or best <= self.threshold() or self.stopped:
                break
            if not self.space.separate(master.columns, root.weights):
                break
            self.pool = [self.space.column(column.payload) for column in self.pool]
            self.choice = [None if c is None else self.space.column(c.payload) for c in self.choice]
            self.improver.renew()
            root, master = self.relax(self.space.free_rules, limits)
            best = best if root.bound is None else min(best, root.bound)
        self.facts["cut_bound"] = best
        self.facts["cuts"] = len(self.space.cuts)
        return root, master, best

    def start(self) -> None:
        """A first choice at no prices."""
        self.offer(self.improver.greedy([], np.zeros(len(self.space.rows))))
        self.pool.extend(column for column in self.choice if column is not None)

    def round(self, generated: Generated, master: Master, rounds: int) -> None:
        """Choices from fractional weights, completed and improved."""
        duals = generated.duals[: len(self.space.rows)]
        order = np.argsort(-generated.weights, kind="stable")
        wanted = [self.plain(master.columns[i]) for i in order if generated.weights[i] > 1e-6]
        choice = self.improver.greedy(wanted, duals)
        self.offer(choice)
        if rounds and generated.bound is not None and generated.bound > self.threshold():
            self.offer(self.improver.improve(self.choice, duals, rounds, lambda: self.stopped))

    def plain(self, column: Column) -> Column:
        """A column without its entries in rules' rows."""
        keep = column.rows < len(self.space.rows)
        if keep.all():
            return column
        return Column(column.group, column.objective, column.rows[keep], column.values[keep], column.payload)

    def knapsack(self, root: Generated, columns: list[Column]) -> None:
        """The integer master over the columns that may be part of a better choice, by the root's duals."""
        assert root.bound is not None
        slack = root.bound - self.value
        reduced = np.array(
            [c.objective - float(root.duals[c.rows] @ c.values) - root.payoffs[c.group] for c in columns]
        )
        near = np.flatnonzero(reduced > -slack)
        if len(near) > KNAPSACK_COLUMNS:
            near = np.sort(near[np.argsort(-reduced[near], kind="stable")[:KNAPSACK_COLUMNS]])
        chosen = integer_master(
            [row.upper for row in self.space.rows],
            self.space.data.jobs,
            [columns[i] for i in near],
            self.choice,
            self.options,
        )
        if chosen is not None:
            self.offer(chosen)

    def branch_and_price(self, root: Generated, master: Master) -> tuple[float, Termination]:
        """Best bound first; the root's LP is solved already."""
        numbers = itertools.count()
        assert root.bound is not None
        heap = [Node(-root.bound, 0, next(numbers), root.bound, self.space.free_rules)]
        limit = None if self.options.work_limit is None else self.options.work_limit * 1000
        unsettled = -np.inf  # the largest bound of nodes that could not be branched on
        closed = -np.inf  # the largest bound of nodes that were closed by the tolerance
        termination = Termination.PROVEN
        again = KNAPSACK_AGAIN
        solved: tuple[Generated, Master] | None = (root, master)
        if root.outcome not in (Outcome.CONVERGED, Outcome.STALLED):
            return root.bound, Termination.TIME_LIMIT
        while heap:
            best = heap[0].bound
            if best <= self.threshold():
                closed = max(closed, best)
                break
            if self.gap_reached(best):
                termination = Termination.GAP_LIMIT
                break
            if self.stopped or (limit is not None and self.nodes >= limit):
                termination = Termination.TIME_LIMIT if self.stopped else Termination.WORK_LIMIT
                break
            node = heapq.heappop(heap)
            self.nodes += 1
            if solved is None or (node.depth == 0 and self.root_tolerance > TOLERANCE):
                limits = Limits(deadline=self.options.deadline, tolerance=TOLERANCE, cutoff=self.threshold())
                solved = self.relax(node.rules, limits)
            generated, master = solved
            solved = None
            if generated.outcome == Outcome.INFEASIBLE:
                continue
            bound = node.bound if generated.bound is None else min(node.bound, generated.bound)
            if generated.outcome == Outcome.CUT_OFF or bound <= self.threshold():
                closed = max(closed, min(bound, self.threshold()))
                continue
            if generated.outcome == Outcome.LIMIT:
                heapq.heappush(heap, Node(-bound, -node.depth, next(numbers), bound, node.rules))
                continue
            self.round(generated, master, 0)
            pair = branch(self.space, node.rules, master.columns, generated.weights)
            if pair is None:
                if bound > self.threshold():
                    unsettled = max(unsettled, bound)
                continue
            if self.nodes == again:
                self.knapsack(root, self.pool)
                again *= 4
            for rules in pair:
                heapq.heappush(heap, Node(-bound, -(node.depth + 1), next(numbers), bound, rules))
            if self.options.report is not None and self.nodes % 20 == 0:
                self.options.report(None, None, max(bound, heap[0].bound))
        left = max(heap[0].bound if heap else -np.inf, unsettled)
        if left > self.threshold() and termination is Termination.PROVEN:
            termination = Termination.FINISHED
        if left > self.threshold():
            closed = max(closed, left)
        # where utilities are multiples of a unit, what is closed holds nothing better than the choice there was
        elif self.unit * (1 - 1e-6) > PRUNE * self.value:
            closed = self.value
        return max(closed, self.value), termination

    def gap_reached(self, bound: float) -> bool:
        """Whether the gap that was asked for is reached."""
        found = gap(self.value, bound)
        return self.options.relative_gap > 0 and found is not None and found <= self.options.relative_gap
