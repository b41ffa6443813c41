"""Makes certificates: of an optimum by a tree, of a bound at any size by what the bound rests on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.certificates import checker, vipr
from schedgap.solvers.certificates.checker import Verdict
from schedgap.solvers.certificates.linear import Box, Model, Narrower, Rejected
from schedgap.solvers.certificates.narrowing import NarrowedTree
from schedgap.solvers.certificates.tree import Node, Tree, Unproven
from schedgap.solvers.result import NO_DEADLINE, Deadline

Certificate = dict[str, Any]

NEAR = Fraction(1, 10**10)
"""Relative: where values are not multiples of a step, so much less than the schedule's value is asked for first."""


@dataclass(frozen=True)
class Effort:
    """When to give up: a deadline, the leaves of a tree, and the variables and rows that its model may have."""

    deadline: Deadline = NO_DEADLINE
    leaves: int = 20_000
    size: int = 100_000


ANY_EFFORT = Effort()
FEW = Effort(leaves=60, size=3_000)
"""For sweeps: the same on every run, and done in a second or two."""


def plain(instance: Instance) -> dict[str, Any]:
    """The instance as the checker reads it."""
    parsed: dict[str, Any] = checker.parse(json.dumps(instance.model_dump(mode="json", by_alias=True)))
    return parsed


def check(instance: Instance, certificate: Mapping[str, Any] | str, solution: Solution | None = None) -> Verdict:
    """What the checker says; a certificate is an object or JSON text.

    Raises
    ------
    Rejected
        It proves nothing.
    """
    text = certificate if isinstance(certificate, str) else json.dumps(certificate)
    given = None if solution is None else checker.parse(json.dumps(solution))
    return checker.check(plain(instance), checker.parse(text), given)


def as_vipr(instance: Instance, certificate: Mapping[str, Any]) -> str:
    """A certificate as the text of a file of VIPR 1.0.

    Raises
    ------
    Rejected
        The certificate proves nothing, or is of a form that VIPR cannot say.
    """
    return vipr.text(plain(instance), checker.parse(json.dumps(certificate)))


def prove(
    instance: Instance,
    value: Fraction | None,
    solution: Solution | None,
    effort: Effort = ANY_EFFORT,
    bound: Certificate | None = None,
    *,
    rows: bool = False,
) -> Certificate:
    """A certificate that no schedule is better than `value`, or that there is none at all.

    Parameters
    ----------
    value, solution : of the best schedule known, by the problem's checker; None where there is said to be none
    effort : when to give up
    bound : the certificate of a bound, where it is known
    rows : only in a form that :mod:`~schedgap.solvers.certificates.vipr` can write

    Returns
    -------
    A certificate that the checker has accepted.

    Raises
    ------
    Unproven
        None was found.
    """
    from schedgap.solvers.certificates.bounds import prove_bound

    given = plain(instance)
    if value is not None and (not rows or vipr.says_bounds(given["problem"])):
        try:
            found = prove_bound(instance) if bound is None else bound
            verdict = checker.check(given, checker.parse(json.dumps(found)))
            if verdict.bound is not None and verdict.sense * (verdict.bound - value) >= 0:
                return found
        except Unproven:
            pass
    if given["problem"] == "ddl-cluster" and (value is None or not all(job.get("placement") for job in given["jobs"])):
        raise Unproven("the bound is not the value, and placements are not given")
    form, options, grow = _way(instance, given, value)
    if rows and (why := vipr.NO_ROWS.get(form)):
        raise Unproven(f'certificates of {given["problem"]} in form "{form}" are {why}')
    try:
        model = checker.model_of(given, form, options)
        if len(model.names) + len(model.rows) > effort.size:
            raise Unproven(f"the model has {len(model.names)} variables and {len(model.rows)} rows")
        claim, node = grow(model, value, effort)
        found = certificate_of(given, form, options, claim, node)
        checker.check(given, checker.parse(json.dumps(found)))
    except Rejected as fault:
        raise Unproven(str(fault)) from fault
    return found


Grow = Callable[[Model, "Fraction | None", Effort], "tuple[Fraction | None, Node]"]
"""(model, the schedule's value, effort) -> (what is proven, tree)."""


def _way(instance: Instance, given: dict[str, Any], value: Fraction | None) -> tuple[str, dict[str, Any], Grow]:
    """Form, options and maker of a tree."""
    problem = given["problem"]
    if problem == "rar-ddls":
        return "rows", {"horizon": given["horizon"] if value is None else int(value) - 1}, _tree
    if problem == "hadar":
        return "prices", {}, _prices(instance)
    if problem == "comm-contention":
        return "orders", {}, _orders(given)
    if problem == "gang-placement":
        return "rows", {}, _digits
    return "rows", {"cutoff": str(value)} if problem == "ddl-cluster" else {}, _tree


def _tree(model: Model, value: Fraction | None, effort: Effort) -> tuple[Fraction | None, Node]:
    """By branching on linear programs."""
    if value is None:
        return None, Tree(model, None, effort.deadline, effort.leaves).grow()
    target = model.sense * value
    if not model.step or model.step < NEAR * abs(value):
        tree = Tree(model, target - NEAR * abs(value), effort.deadline, effort.leaves, wanted=target)
        node = tree.grow()
        return model.sense * min(target, tree.proven if tree.proven is not None else target), node
    kind = NarrowedTree if all(model.whole) else Tree
    return value, kind(model, target, effort.deadline, effort.leaves).grow()


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


def _prices(instance: Any) -> Grow:
    """By branch and price; of hadar."""

    def grow(model: Model, value: Fraction | None, effort: Effort) -> tuple[Fraction | None, Node]:
        from schedgap.solvers.certificates.hadar import MOST_LEAVES, PriceTree

        target = None if value is None else -value
        return value, PriceTree(instance, model, target, effort.deadline, min(effort.leaves, MOST_LEAVES)).grow()

    return grow


def _orders(given: dict[str, Any]) -> Grow:
    """By sequences of events; of comm-contention."""

    def grow(model: Model, value: Fraction | None, effort: Effort) -> tuple[Fraction | None, Node]:
        from schedgap.solvers.certificates.orders import OrderTree
        from schedgap.solvers.certificates.rules.comm_contention import constant, orders_of

        assert value is not None  # there is always a schedule
        claim = value - NEAR * abs(value)
        total = (claim - constant(given)) * len(given["tasks"])
        return claim, OrderTree(orders_of(given), total, effort.deadline, effort.leaves).grow()

    return grow


def certificate_of(
    given: Mapping[str, Any], form: str, options: Mapping[str, Any], claim: Fraction | None, node: Node
) -> Certificate:
    """The file's content."""
    return {
        "certificate": checker.VERSION,
        "problem": given["problem"],
        "instance": checker.digest(given),
        "form": form,
        "options": dict(options),
        "claim": "infeasible" if claim is None else str(claim),
        "tree": node,
    }
