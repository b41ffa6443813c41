"""Counterexamples: a trial that refutes a guarantee, written as an instance file that shows the failure again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedgap.benchmarks.records import plain
from schedgap.benchmarks.text import refuting
from schedgap.catalogue.registry import all_problems
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.common.files import write_text
from schedgap.formulations.common.instance import Instance
from schedgap.heuristics.common.guarantee import Case, Evaluation, Guarantee
from schedgap.solvers.result import Result, Status


@dataclass(frozen=True)
class Trial:
    """A heuristic on an instance with options, and what is proven about the instance; certified or not.

    `lost` says why it does not count: a user's own heuristic raised, or the checker refused its solution.
    """

    instance: Instance
    family: str
    seed: int
    given: Mapping[str, Any]
    result: Result | None
    case: Case
    certified: bool = False
    lost: str = ""


def instance_size(instance: Instance) -> tuple[int, int]:
    """How large an instance is: entries of its lists, then length of its JSON."""
    data = instance.to_dict()
    data.pop("name", None)
    return _entries(data), len(json.dumps(data))


def _entries(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(_entries(item) for item in value.values())
    if isinstance(value, list):
        return len(value) + sum(_entries(item) for item in value)
    return 0


def repeat_command(
    file: str, instance: Instance, guarantee: Guarantee, given: Mapping[str, object], seed: int
) -> str | None:
    """The command that shows the refutation again; None where the claim is about no method."""
    if guarantee.method is None:
        return None
    problem = all_problems().get(instance.problem_id)
    exact = "..." if problem is None else problem.default_method(instance).id
    options = "".join(f" --set {name}={value}" for name, value in given.items())
    return f"schedgap compare {file} --methods {exact},{guarantee.method} --seed {seed}{options}"


def write_counterexample(path: Path, guarantee: Guarantee, trial: Trial, evaluation: Evaluation) -> None:
    """The instance as a file for ``solve`` and ``compare``; what fails on it stands in keys they ignore."""
    case, result = trial.case, trial.result
    data = trial.instance.to_dict()
    data["name"] = f"counterexample-{guarantee.id}"
    data["note"] = (
        f"{guarantee.source}: {guarantee.statement}. Fails here: {refuting(evaluation.left, evaluation.right)}"
    )
    data["reference_counterexample"] = plain(
        {
            "guarantee": guarantee.id,
            "statement": guarantee.statement,
            "assumptions": guarantee.needs_text,
            "tested": [needed.text for needed in guarantee.needs if needed.fails is not None],
            "left": evaluation.left,
            "right": evaluation.right,
            "reason": evaluation.reason,
            "method": guarantee.method,
            "options": dict(trial.given),
            "family": trial.family,
            "seed": trial.seed,
            "repeat": repeat_command(path.name, trial.instance, guarantee, trial.given, trial.seed),
            "objective": case.objective,
            "optimum": case.optimum,
            "bound": case.bound,
            "run": case.info,
        }
    )
    if result is not None and result.solution is not None:
        data["reference_solution"] = result.solution
    if case.optimum is not None:
        data["reference"] = {"status": str(Status.OPTIMAL), "optimum": case.optimum}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path.parent}: {error.strerror or error}") from None
    write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")
