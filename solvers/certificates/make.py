"""Makes certificates: of an optimum by a tree, of a bound at any size by what the bound rests on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from schedgap.formulations.common.instance import Instance, Solution
from schedgap.solvers.certificates import checker
from schedgap.solvers.certificates.checker import Verdict
from schedgap.solvers.certificates.linear import Model, Rejected
from schedgap.solvers.certificates.tree import Node, Tree, Unproven
from schedgap.solvers.result import NO_DEADLINE, Deadline

Certificate = dict[str, Any]

NEAR = Fraction(1, 10**10)
"""Relative: where values are not multiples of a step, so much less than the schedule's value is asked for first."""
LARGEST = 60_000
"""Variables and rows that a tree's model may have."""


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


def prove(
    instance: Instance, value: Fraction | None, solution: Solution | None, deadline: Deadline = NO_DEADLINE
) -> Certificate:
    """A certificate that no schedule is better than `value`, or that there is none at all.

    Parameters
    ----------
    instance : the instance
    value, solution : of the best schedule known, by the problem's checker; None where there is said to be none
    deadline : when to give up

    Returns
    -------
    A certificate that the checker has accepted.

    Raises
    ------
    Unproven
        None was found.
    """
    given = plain(instance)
    why = "no method knows how"
    for form, options, grow in _ways(instance, given, value):
        try:
            model = checker.model_of(given, form, options)
            if len(model.names) + len(model.rows) > LARGEST:
                raise Unproven(f"the model has {len(model.names)} variables and {len(model.rows)} rows")
            claim, node = grow(model, value, deadline)
            found = certificate_of(given, form, options, claim, node)
            checker.check(given, checker.parse(json.dumps(found)))
            return found
        except (Unproven, Rejected) as fault:
            why = str(fault)
        if deadline.passed:
            break
    raise Unproven(why)


Grow = Callable[[Model, "Fraction | None", Deadline], "tuple[Fraction | None, Node]"]
"""(model, the schedule's value, deadline) -> (what is proven, tree)."""


def _ways(
    instance: Instance, given: dict[str, Any], value: Fraction | None
) -> Iterator[tuple[str, dict[str, Any], Grow]]:
    """Form, options and maker of what may prove it, the cheapest first."""
    problem = given["problem"]
    if problem == "rar-ddls":
        last = given["horizon"] if value is None else int(value) - 1
        if value is not None:
            yield "area", {"horizon": last}, _area(instance)
        yield "rows", {"horizon": last}, _tree
    elif problem == "hadar":
        yield "prices", {}, _prices(instance)
    elif problem == "comm-contention":
        yield "srpt", {}, _given({})
        yield "rows", {}, _tree
    elif problem == "ddl-cluster":
        if value is not None and all(job.get("placement") for job in given["jobs"]):
            yield "rows", {"cutoff": str(value)}, _tree
    else:
        yield "rows", {}, _tree


def _tree(model: Model, value: Fraction | None, deadline: Deadline) -> tuple[Fraction | None, Node]:
    """By branching on linear programs."""
    if value is None:
        return None, Tree(model, None, deadline).grow()
    target = model.sense * value
    if not model.step or model.step < NEAR * (1 + abs(value)):
        tree = Tree(model, target - NEAR * (1 + abs(value)), deadline, wanted=target)
        node = tree.grow()
        return model.sense * min(target, tree.proven if tree.proven is not None else target), node
    return value, Tree(model, target, deadline).grow()


def _prices(instance: Any) -> Grow:
    """By branch and price; of hadar."""

    def grow(model: Model, value: Fraction | None, deadline: Deadline) -> tuple[Fraction | None, Node]:
        from schedgap.solvers.certificates.hadar import PriceTree

        return value, PriceTree(instance, model, None if value is None else -value, deadline).grow()

    return grow


def _given(content: Mapping[str, Any]) -> Grow:
    """One leaf with this content."""

    def grow(model: Model, value: Fraction | None, deadline: Deadline) -> tuple[Fraction | None, Node]:
        assert model.price is not None
        bound = model.price(content, {})
        if value is None or bound is None or bound < model.sense * value:
            raise Unproven("the bound is not the value")
        return value, {"prices": content}

    return grow


def _area(instance: Any) -> Grow:
    """By what runs until the horizon and does not fit; of rar-ddls."""

    def grow(model: Model, value: Fraction | None, deadline: Deadline) -> tuple[Fraction | None, Node]:
        from schedgap.solvers.certificates.rar_ddls import areas

        assert model.price is not None and value is not None
        for content in areas(instance, int(value) - 1):
            try:
                if model.price(content, {}) == value:
                    return value, {"prices": content}
            except ValueError:
                continue
        raise Unproven("no area shows it")

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
