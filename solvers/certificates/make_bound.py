"""Certificates of bounds at any size: the numbers that today's bounds rest on, for the checker to add up again."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.instance import Instance
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.content import Certificate, Leaf, certificate_of, maker_of, plain, same_sense
from schedgap.solvers.certificates.linear import Rejected
from schedgap.solvers.certificates.tree import Unproven


def prove_bound(instance: Instance, sense: int | None = None) -> Certificate:
    """A certificate of a bound on the optimum, accepted by the checker.

    Raises Unproven: the problem has no such certificates yet, or none is accepted.
    """
    given = plain(instance)
    best: tuple[Fraction, Certificate] | None = None
    for form, options, content in _leaves(instance, given):
        model = checker.model_of(given, form, options)
        assert model.price is not None
        same_sense(model, sense)
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
