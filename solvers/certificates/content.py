"""What certificates are made of: their content as JSON, and the module that makes those of a problem."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Mapping
from fractions import Fraction
from types import ModuleType
from typing import Any

from schedgap.formulations.common.instance import Instance
from schedgap.solvers.certificates import checker, makers
from schedgap.solvers.certificates.linear import Model
from schedgap.solvers.certificates.tree import Node, Unproven

Certificate = dict[str, Any]


def plain(instance: Instance) -> dict[str, Any]:
    """The instance as the checker reads it."""
    parsed: dict[str, Any] = checker.parse(json.dumps(instance.model_dump(mode="json", by_alias=True)))
    return parsed


def other_sense(sense: int) -> str:
    """What is said of rules of another sense."""
    told = "minimise" if sense > 0 else "maximise"
    return f"its rules {told}, the problem does not"


def same_sense(model: Model, sense: int | None) -> None:
    if sense not in (None, model.sense):
        raise Unproven(other_sense(model.sense))


Leaf = tuple[str, dict[str, Any], dict[str, Any]]
"""Form, options, content."""


def maker_of(problem: str) -> ModuleType | None:
    """The module of ``makers`` that makes a problem's certificates; None for one of another package."""
    name = problem.replace("-", "_")
    if name not in {module.name for module in pkgutil.iter_modules(makers.__path__)}:
        return None
    return importlib.import_module(f"{makers.__name__}.{name}")


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
