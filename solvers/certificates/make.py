"""Makes certificates of an optimum: by the bound where it meets the schedule, else by a tree."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.certificates import checker, rows_only
from schedgap.solvers.certificates.checker import Verdict
from schedgap.solvers.certificates.content import Certificate, certificate_of, maker_of, plain, same_sense
from schedgap.solvers.certificates.linear import Model, Rejected
from schedgap.solvers.certificates.make_bound import prove_bound
from schedgap.solvers.certificates.narrowing import NarrowedTree
from schedgap.solvers.certificates.tree import Node, Tree, Unproven
from schedgap.solvers.result import NO_DEADLINE, Deadline

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


def check(instance: Instance, certificate: Mapping[str, Any] | str, solution: Solution | None = None) -> Verdict:
    """What the checker says; a certificate is an object or JSON text.

    Raises Rejected: it proves nothing.
    """
    text = certificate if isinstance(certificate, str) else json.dumps(certificate)
    given = None if solution is None else checker.parse(json.dumps(solution))
    return checker.check(plain(instance), checker.parse(text), given)


def prove(
    instance: Instance,
    # value, solution: of the best schedule known, by the problem's checker; None where there is said to be none
    value: Fraction | None,
    solution: Solution | None,
    effort: Effort = ANY_EFFORT,  # when to give up
    bound: Certificate | None = None,  # the certificate of a bound, {} where none was found; sought where None
    *,
    rows: bool = False,  # only in a form of rows
    sense: int | None = None,  # the problem's: 1 minimise, -1 maximise; rules of another sense prove nothing
) -> Certificate:
    """A certificate that no schedule is better than `value`, or that there is none at all.

    Returns a certificate that the checker has accepted. Raises Unproven: none was found.
    """
    given = plain(instance)
    if value is not None and (not rows or rows_only.says_bounds(given["problem"])):
        if bound is None:
            with suppress(Unproven):
                bound = prove_bound(instance, sense)
        if bound:
            verdict = checker.check(given, checker.parse(json.dumps(bound)))
            if verdict.bound is not None and verdict.sense * (verdict.bound - value) >= 0:
                return bound
    way = getattr(maker_of(given["problem"]), "way", None)
    form, options, grow = ("rows", {}, by_branching) if way is None else way(instance, given, value)
    if rows and (why := rows_only.NO_ROWS.get(form)):
        raise Unproven(f'certificates of {given["problem"]} in form "{form}" are {why}')
    try:
        model = checker.model_of(given, form, options)
        same_sense(model, sense)
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


Way = tuple[str, dict[str, Any], Grow]
"""How a tree is made: form, options, and what grows it."""


def by_branching(model: Model, value: Fraction | None, effort: Effort) -> tuple[Fraction | None, Node]:
    """A certificate by branching on linear programs."""
    if value is None:
        return None, Tree(model, None, effort.deadline, effort.leaves).grow()
    target = model.sense * value
    if not model.step or model.step < NEAR * abs(value):
        tree = Tree(model, target - NEAR * abs(value), effort.deadline, effort.leaves, wanted=target)
        node = tree.grow()
        return model.sense * min(target, tree.proven if tree.proven is not None else target), node
    kind = NarrowedTree if all(model.whole) else Tree
    return value, kind(model, target, effort.deadline, effort.leaves).grow()
