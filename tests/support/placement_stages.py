"""Method `staged` of gang-placement with chosen stages against exhaustive search."""

from __future__ import annotations

from typing import Any

from oracles.gang_placement import brute_force

from schedgap.catalogue.registry import find_problem
from schedgap.formulations.gang_placement.instance import GangPlacementInstance
from schedgap.solvers.exact.gang_placement.staged import solve_staged
from schedgap.solvers.result import Result, SolveOptions


def checked_stages(data: dict[str, Any], options: SolveOptions) -> tuple[GangPlacementInstance, Result, float]:
    """An instance, what `staged` says of it, and the optimum; no objective is better than that, and no bound worse."""
    instance = GangPlacementInstance.parse(data)
    result = solve_staged(instance, options)
    best = find_problem("gang-placement").check(instance, brute_force(instance)[1]).value
    assert result.objective is not None and best is not None and result.objective <= best
    assert result.bound is None or result.bound >= best
    return instance, result, best
