"""Certificates of gang-placement: prices of what nodes hold, and a tree digit by digit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.solvers.certificates.content import Leaf
from schedgap.solvers.certificates.linear import Box, Model, Narrower
from schedgap.solvers.certificates.make import Effort, Way
from schedgap.solvers.certificates.tree import Node, Tree
from schedgap.solvers.exact.gang_placement.merged import node_prices


def leaves(instance: GangPlacementInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    del given
    for leaf in node_prices(instance):
        yield "prices", {}, leaf


def way(instance: GangPlacementInstance, given: dict[str, Any], value: Fraction | None) -> Way:
    """Rows, with a digit for each component of the score."""
    del instance, given, value
    return "rows", {}, _digits


def _digits(model: Model, value: Fraction | None, effort: Effort) -> tuple[Fraction | None, Node]:
    """Component by component: with those before it as they are, none has more of the next one."""
    assert value is not None  # to place nothing is always feasible
    digits, left = [], int(value)
    for name in sorted((name for name in model.names if name.startswith("digit[")), key=lambda name: int(name[6:-1])):
        worth = int(abs(model.cost[model.index[name]]))
        digits.append((name, left // worth))
        left %= worth
    node: Node = {"bound": {}}
    for k, (name, digit) in reversed(list(enumerate(digits))):
        if digit > 0:
            node = {"split": name, "at": digit - 1, "low": {"bound": {}}, "high": node}
        if digit < model.high[model.index[name]]:
            held: Box = {other: (own, own) for other, own in digits[:k]}
            above = _nothing_above(model, held, name, digit, effort)
            node = {"split": name, "at": digit, "low": node, "high": above}
    return value, node


def _nothing_above(model: Model, held: Box, name: str, digit: int, effort: Effort) -> Node:
    """A proof, by a tree that has the one digit as its objective, that its box is empty above a value of the digit."""
    box = Narrower(model).narrow({**held, name: (digit + 1, int(model.high[model.index[name]]))})
    if box is None:
        return {"narrow": {}}
    part = replace(model, low=list(model.low), high=list(model.high), cost=[Fraction(0)] * len(model.cost))
    part.cost[model.index[name]] = part.step = Fraction(1)
    part.cost[model.index[name]] *= -1
    for variable, (low, high) in box.items():
        if variable != name:
            part.low[model.index[variable]], part.high[model.index[variable]] = Fraction(low), Fraction(high)
    return {"narrow": _emptied(Tree(part, Fraction(-digit), effort.deadline, effort.leaves).branched())}


def _emptied(node: Node) -> Node:
    """A tree of bounds as a tree of empty boxes: what bounds a digit leaves nothing where the digit is more."""
    if "split" in node:
        return {**node, "low": _emptied(node["low"]), "high": _emptied(node["high"])}
    return {"infeasible": node["bound"]} if "bound" in node else node
