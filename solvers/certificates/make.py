"""Makes certificates: of an optimum by a tree, of a bound at any size by what the bound rests on."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import Any

from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.certificates import checker, makers, vipr
from schedgap.solvers.certificates.checker import Verdict
from schedgap.solvers.certificates.linear import Model, Rejected
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

    Raises Rejected: it proves nothing.
    """
    text = certificate if isinstance(certificate, str) else json.dumps(certificate)
    given = None if solution is None else checker.parse(json.dumps(solution))
    return checker.check(plain(instance), checker.parse(text), given)


def as_vipr(instance: Instance, certificate: Mapping[str, Any]) -> str:
    """A certificate as the text of a file of VIPR 1.0.

    Raises Rejected: the certificate proves nothing, or is of a form that VIPR cannot say.
    """
    return vipr.text(plain(instance), checker.parse(json.dumps(certificate)))


def prove(
    instance: Instance,
    # value, solution: of the best schedule known, by the problem's checker; None where there is said to be none
    value: Fraction | None,
    solution: Solution | None,
    effort: Effort = ANY_EFFORT,  # when to give up
    bound: Certificate | None = None,  # the certificate of a bound, {} where none was found; sought where None
    *,
    rows: bool = False,  # only in a form that :mod:`~schedgap.solvers.certificates.vipr` can write
    sense: int | None = None,  # of the problem, 1 minimise, -1 maximise: rules of another sense prove nothing of it
) -> Certificate:
    """A certificate that no schedule is better than `value`, or that there is none at all.

    Returns a certificate that the checker has accepted. Raises Unproven: none was found.
    """
    given = plain(instance)
    if value is not None and (not rows or vipr.says_bounds(given["problem"])):
        if bound is None:
            with suppress(Unproven):
                bound = prove_bound(instance, sense)
        if bound:
            verdict = checker.check(given, checker.parse(json.dumps(bound)))
            if verdict.bound is not None and verdict.sense * (verdict.bound - value) >= 0:
                return bound
    way = getattr(maker_of(given["problem"]), "way", None)
    form, options, grow = ("rows", {}, by_branching) if way is None else way(instance, given, value)
    if rows and (why := vipr.NO_ROWS.get(form)):
        raise Unproven(f'certificates of {given["problem"]} in form "{form}" are {why}')
    try:
        model = checker.model_of(given, form, options)
        _same_sense(model, sense)
        if len(model.names) + len(model.rows) > effort.size:
            raise Unproven(f"the model has {len(model.names)} variables and {len(model.rows)} rows")
        claim, node = grow(model, value, effort)
        found = certificate_of(given, form, options, claim, node)
        checker.check(given, checker.parse(json.dumps(found)))
    except Rejected as fault:
        raise Unproven(str(fault)) from fault
    return found


def other_sense(sense: int) -> str:
    """What is said of rules of another sense."""
    told = "minimise" if sense > 0 else "maximise"
    return f"its rules {told}, the problem does not"


def _same_sense(model: Model, sense: int | None) -> None:
    if sense not in (None, model.sense):
        raise Unproven(other_sense(model.sense))


Grow = Callable[[Model, "Fraction | None", Effort], "tuple[Fraction | None, Node]"]
"""(model, the schedule's value, effort) -> (what is proven, tree)."""
Way = tuple[str, dict[str, Any], Grow]
"""How a tree is made: form, options, and what grows it."""
Leaf = tuple[str, dict[str, Any], dict[str, Any]]
"""Form, options, content."""


def maker_of(problem: str) -> ModuleType | None:
    """The module of ``makers`` that makes a problem's certificates; None for one of another package."""
    name = problem.replace("-", "_")
    if name not in {module.name for module in pkgutil.iter_modules(makers.__path__)}:
        return None
    return importlib.import_module(f"{makers.__name__}.{name}")


def by_branching(model: Model, value: Fraction | None, effort: Effort) -> tuple[Fraction | None, Node]:
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


# Certificates of bounds at any size: the numbers that today's bounds rest on, for the checker to add up again.


def prove_bound(instance: Instance, sense: int | None = None) -> Certificate:
    """A certificate of a bound on the optimum, accepted by the checker.

    Raises Unproven: the problem has no such certificates yet, or none is accepted.
    """
    given = plain(instance)
    best: tuple[Fraction, Certificate] | None = None
    for form, options, content in _leaves(instance, given):
        model = checker.model_of(given, form, options)
        assert model.price is not None
        _same_sense(model, sense)
        try:
            value = model.price(content, {})
        except ValueError:
            continue
        if value is None or (form == "area" and not value):
            continue
        value = checker.Prover(model, None).reached(value)
        if best is None or value > best[0]:
            best = value, certificate_of(given, form, options, model.sense * value, {"prices": content})
        if form == "area":
            break
    if best is None:
        raise Unproven(f"no certificate of a bound for {given['problem']} of this size")
    return best[1]


def _leaves(instance: Instance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound: as the problem's maker says, or the rules of another package."""
    maker = maker_of(given["problem"])
    if maker is not None:
        yield from maker.leaves(instance, given)
        return
    try:
        rules = checker.rules_of(given["problem"])
    except Rejected as fault:
        raise Unproven(str(fault)) from fault
    yield from rules.bounds(given) if hasattr(rules, "bounds") else ()
