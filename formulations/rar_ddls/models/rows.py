"""The variables of the time-indexed model, and the few ways in which rows are added to it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import pulp

Terms = list[tuple[pulp.LpVariable, float]]


@dataclass
class Variables:
    """By job j, server s, slot t, mode m, class c and level l; see ``build_ilp``."""

    local: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    spread: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    run: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    kind: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    share: dict[tuple[int, int], pulp.LpVariable] = field(default_factory=dict)
    held: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    ring: dict[tuple[int, int, int, int], pulp.LpVariable] = field(default_factory=dict)
    few: dict[tuple[int, int, int], pulp.LpVariable] = field(default_factory=dict)
    used: dict[int, pulp.LpVariable] = field(default_factory=dict)


@dataclass
class Frame:
    """The model as it grows.

    Attributes
    ----------
    sizes : (S,) GPUs of the servers
    slots : H
    load : GPUs by server and slot; `active`: 1 while job j is active in slot t
    """

    problem: pulp.LpProblem
    variables: Variables
    sizes: list[int]
    slots: int
    load: defaultdict[tuple[int, int], Terms] = field(default_factory=lambda: defaultdict(list))
    active: defaultdict[tuple[int, int], Terms] = field(default_factory=lambda: defaultdict(list))

    def binary(self, name: str) -> pulp.LpVariable:
        """A new 0/1 variable."""
        return pulp.LpVariable(name, 0, 1, pulp.LpInteger)

    def at_most(self, terms: Terms, limit: int) -> None:
        """sum of terms <= limit."""
        self._row(terms, pulp.LpConstraintLE, limit)

    def at_least(self, terms: Terms, limit: int) -> None:
        """sum of terms >= limit."""
        self._row(terms, pulp.LpConstraintGE, limit)

    def equal(self, terms: Terms, value: int) -> None:
        """sum of terms = value."""
        self._row(terms, pulp.LpConstraintEQ, value)

    def impossible(self, name: str) -> None:
        """A row that nothing meets: the instance is infeasible, and so is the model."""
        self.at_least([(pulp.LpVariable(f"impossible_{name}", 0, 0, pulp.LpInteger), 1.0)], 1)

    def _row(self, terms: Terms, sense: int, value: int) -> None:
        expression = pulp.LpAffineExpression(terms)
        self.problem.addConstraint(pulp.LpConstraint(expression, sense, None, float(value)))
