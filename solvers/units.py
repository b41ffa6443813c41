"""Searches whose utilities are divided by a unit, told of in the instance's own."""

from __future__ import annotations

from dataclasses import replace

from schedgap.formulations.common.instance import Solution
from schedgap.solvers.result import SolveOptions


def told_in(unit: float, options: SolveOptions) -> SolveOptions:
    """The options for a search whose utilities are divided by `unit`: it tells the instance's own."""
    tell = options.report
    if tell is None or unit == 1.0:
        return options

    def told(solution: Solution | None, objective: float | None, bound: float | None) -> None:
        tell(solution, None if objective is None else objective * unit, None if bound is None else bound * unit)

    return replace(options, report=told)
