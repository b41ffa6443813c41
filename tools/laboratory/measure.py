"""One run of one draw: an instance, a method on it, and everything that is measured of the outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from schedgap.benchmarks.instances import make_instance
from schedgap.catalogue.registry import find_method, find_problem
from schedgap.catalogue.run import checker_of, run_method
from schedgap.formulations.common.instance import Instance, Json
from schedgap.formulations.common.numbers import ratio
from schedgap.solvers.result import SolveOptions
from schedgap.tools.laboratory.paper_metrics import measured

WORK = 0.02
"""Repeatable limit of an exact method beside the heuristics (``SolveOptions.work_limit``): 20 nodes of g-vne's
``colgen``, which leave its bound within about 1% of its value where a proof would take minutes."""


@dataclass(frozen=True)
class Run:
    """What runs: a method with its settings on the instances of a preset with its settings."""

    problem: str
    preset: str
    workload: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The same for all runs on the same instances."""
        return json.dumps([self.problem, self.preset, self.workload], sort_keys=True)


@lru_cache(maxsize=2)
def _instance(group: str, seed: int) -> Instance:
    problem, preset, workload = json.loads(group)
    return make_instance(find_problem(problem), preset, seed, workload)


def instance_of(run: Run, seed: int) -> Instance:
    """The instance of a draw; the last ones are kept, since several methods run on each."""
    return _instance(run.group, seed)


def solved(run: Run, seed: int) -> dict[str, Json]:
    """Run the method on the draw and measure what it found.

    Returns
    -------
    dict
        ``objective`` by the checker, ``bound``, ``ratio`` between them (at least 1; None outside the model or
        without a solution), and the problem's own metrics (``metrics.py``). Unknown is None.
    """
    return outcome(run, instance_of(run, seed), seed)


def outcome(run: Run, instance: Instance, seed: int) -> dict[str, Json]:
    """The same on an instance that is there already."""
    problem = find_problem(run.problem)
    options = SolveOptions(seed=seed, threads=1, work_limit=WORK)
    check = checker_of(problem, instance)
    result = run_method(problem, instance, run.method, options, run.settings, check=check)
    outside = find_method(problem, run.method).outside_model or bool(result.info.get("outside_model"))
    return {
        "objective": result.objective,
        "bound": result.bound,
        "ratio": None if outside else ratio(result.objective, result.bound, problem.sense),
        **measured(problem.id, instance, result, run.settings, check),
    }
