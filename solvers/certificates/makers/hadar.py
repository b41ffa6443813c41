"""Certificates of hadar: a tree whose leaves are prices, and one leaf of them for a bound at any size.

``rules/hadar.py`` says what either proves.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables, in_units, tables
from schedgap.solvers.certificates.checker import Prover
from schedgap.solvers.certificates.content import Leaf
from schedgap.solvers.certificates.linear import GRID, Box, Model
from schedgap.solvers.certificates.make import Effort, Way
from schedgap.solvers.certificates.tree import Node, Unproven
from schedgap.solvers.column_generation import GenerationLimits, Master
from schedgap.solvers.exact.hadar.block_bound import block_bound
from schedgap.solvers.exact.hadar.bound import LARGE, MANY, MEDIUM, ORDINARY
from schedgap.solvers.exact.hadar.branching import Pool, branch
from schedgap.solvers.exact.hadar.event_prices import event_prices
from schedgap.solvers.exact.hadar.schedules import Rules, Scheduler
from schedgap.solvers.result import NO_DEADLINE, Deadline

JobRules = tuple[Rules, ...]

MOST_LEAVES = 5_000
_DEEPEST = 100
"""Variables that are split at most from the root to a leaf."""


class PriceTree:
    """Branch and price, with every leaf tried by the checker.

    Parameters
    ----------
    instance, model : the instance, and the checker's model of the form ``prices``
    target : for minimisation, so minus the utility; None: that not all jobs can finish
    """

    def __init__(
        self,
        instance: HadarInstance,
        model: Model,
        target: Fraction | None,
        deadline: Deadline = NO_DEADLINE,
        most: int = MOST_LEAVES,
    ) -> None:
        self.model, self.target, self.deadline, self.max_leaves = model, target, deadline, most
        self.prover = Prover(model, target)
        self.data = tables(instance)
        self.must = instance.all_jobs_must_finish
        self.scheduler = Scheduler(self.data)
        self.master = Master(MAXIMISE, self.scheduler.capacity_rows(), [self.must] * len(self.data.jobs))
        self.pool = Pool(len(self.data.jobs))
        self.leaves = 0

    def grow(self) -> Node:
        """The tree.

        Raises Unproven: it does not close.
        """
        free = self.scheduler.free_rules
        return self._node(tuple(rule.finishing(rule.finish, True) if self.must else rule for rule in free), {})

    def _node(self, rules: JobRules, box: Box) -> Node:
        if self.deadline.passed or self.leaves > self.max_leaves or len(box) > _DEEPEST:
            raise Unproven("the limit came first")
        allowed = self.pool.allowed(self.master.columns, rules, self.scheduler.free_rules)
        self.master.restrict(allowed, np.array([rule.must for rule in rules], dtype=bool))
        found = self.master.generate(
            lambda duals, weight: self.scheduler.price_all(duals, weight, rules), GenerationLimits(self.deadline, 500)
        )
        for duals in (found.duals, found.master_duals):
            leaf = self._leaf(duals, box)
            if leaf is not None:
                self.leaves += 1
                return leaf
        parts = branch(self.scheduler, rules, found.columns, found.weights)
        if parts is None:
            raise Unproven("nothing is left to split")
        return self._split(rules, parts, box)

    def _leaf(self, duals: Any, box: Box) -> Node | None:
        """The leaf of these duals, where it proves the box."""
        assert self.model.price is not None
        if duals is None:
            return None
        leaf = self.leaf(duals)
        for given in (leaf, {**leaf, "worthless": True}):
            try:
                value = self.model.price(given, box)
            except ValueError:
                continue
            if value is None or (self.target is not None and self.prover.reached(value) >= self.target):
                return {"prices": given}
        return None

    def leaf(self, duals: Any) -> dict[str, Any]:
        """Prices on the grid."""
        lines = np.rint(self.scheduler.prices(duals).devices * GRID)
        blocks: list[list[Any]] = []
        for t in range(1, self.data.horizon + 1):
            line = {kind: int(p) for kind, p in zip(self.data.types, lines[t], strict=True) if p}
            if not blocks or blocks[-1][1] != line:
                blocks.append([t, line])
        return {"blocks": blocks}

    def _split(self, rules: JobRules, parts: Any, box: Box) -> Node:
        """Which split of the checker's variables the two children are."""
        (j,) = [j for j, rule in enumerate(rules) if rule is not parts[0][j] or rule is not parts[1][j]]
        one, two = parts[0][j], parts[1][j]
        if (one.permit != two.permit).any():
            ((t, c),) = np.argwhere(rules[j].permit & ~two.permit).tolist()
            name, low, high, k = f"at[{j},{t},{c}]", parts[1], parts[0], 0
            ranges = ((0, 0), (1, 1))
        else:
            k = one.last
            name, low, high = f"finish[{j}]", parts[0], parts[1]
            first, last = box.get(name) or (self.data.jobs[j].arrival, self.data.horizon + (not self.must))
            ranges = ((first, k), (k + 1, last))
        return {
            "split": name,
            "at": k,
            "low": self._node(low, {**box, name: ranges[0]}),
            "high": self._node(high, {**box, name: ranges[1]}),
        }


def leaves(instance: HadarInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    del given
    yield "prices", {}, {"edges": [1, 2], "types": {}, "finishes": 200}  # every job at its best
    scaled, unit = in_units(instance, ORDINARY)
    data = tables(scaled)
    size = len(data.jobs) * data.horizon
    if size > MANY and data.possible.any():
        yield "prices", {}, _between(data, unit)
    if size <= LARGE:
        yield "prices", {}, _blocks(data, unit)


def way(instance: HadarInstance, given: dict[str, Any], value: Fraction | None) -> Way:
    """The way by branch and price."""
    del given, value

    def grow(model: Model, value: Fraction | None, effort: Effort) -> tuple[Fraction | None, Node]:
        target = None if value is None else -value
        return value, PriceTree(instance, model, target, effort.deadline, min(effort.leaves, MOST_LEAVES)).grow()

    return "prices", {}, grow


def _between(data: ProgressTables, unit: float) -> dict[str, Any]:
    """Prices of hadar between events, in the instance's own unit."""
    found = event_prices(data)
    lines = np.rint(found.prices * unit * GRID)
    types = {kind: [int(p) for p in line] for kind, line in zip(data.types, lines, strict=True)}
    return {"edges": found.edges.tolist(), "types": types, "finishes": found.finishes}


def _blocks(data: ProgressTables, unit: float) -> dict[str, Any]:
    """Block prices of hadar, in the instance's own unit."""
    priced = block_bound(data, 0.06 if len(data.jobs) * data.horizon <= MEDIUM else 0.2)
    lines = np.rint(np.maximum(priced.prices, 0.0) * unit * GRID)
    blocks = [
        [int(first), {kind: int(p) for kind, p in zip(data.types, line, strict=True) if p}]
        for first, line in zip(priced.starts, lines, strict=True)
    ]
    return {"blocks": blocks, "fractions": True, "whole": list(priced.whole)}
