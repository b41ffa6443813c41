"""What a heuristic of rar-ddls tells of its run: the facts that the guarantees are checked with."""

from __future__ import annotations

import math
from typing import Any

from schedgap.formulations.rar_ddls.dynamics import rate_table
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.rar_ddls.search import Outcome
from schedgap.heuristics.rar_ddls.workload import Estimates, Workload, solution_of


def base_info(instance: RarDdlsInstance, largest: int | None, u: float, l: float) -> dict[str, Any]:  # noqa: E741
    """What holds before an algorithm runs: T, u, l, N and n_g."""
    return {
        "T": instance.horizon if largest is None else largest,
        "u": u,
        "l": l,
        "N": instance.total_gpus,
        "n_g": instance.largest_gang,
        "returned": None,
    }


def pass_facts(instance: RarDdlsInstance, guess: Estimates, outcome: Outcome | None) -> dict[str, Any] | None:
    """A pass as its guarantees see it, JSON-compatible; None where it did not go through.

    Returns
    -------
    ``theta`` (None for infinity), ``kappa``, ``makespan`` in slots, ``W_max`` (the largest load, slots),
    ``durations`` (r_j, slots, in input order), ``phi`` = max_j r_j / d_j with the best durations d_j, ``area``
    = sum_j G_j r_j, ``longest`` = max_j r_j, and ``l_realised`` = the largest l <= 1 with l r_j <= rho_hat_j
    for every job.
    """
    if outcome is None:
        return None
    table = rate_table(instance)
    realised = outcome.run.completion - outcome.run.start + 1
    ratio = [rho / r for rho, r in zip(guess.rho_hat, realised.tolist(), strict=True)]
    return {
        "theta": None if math.isinf(outcome.theta) else outcome.theta,
        "kappa": outcome.kappa,
        "makespan": outcome.makespan,
        "W_max": guess.load(outcome.weight),
        "durations": realised.tolist(),
        "phi": float((realised / table.best_duration).max()),
        "area": int((table.gpus * realised).sum()),
        "longest": int(realised.max()),
        "l_realised": min(1.0, *ratio),
    }


def finished(
    instance: RarDdlsInstance, work: Workload, best: Outcome | None, info: dict[str, Any], why_nothing: str
) -> HeuristicRun:
    """The run of a heuristic whose best pass is `best`.

    The solution is None where there is no such pass or it ends after the horizon; ``info["reason"]`` says so.
    """
    if best is None:
        return HeuristicRun(None, {**info, "reason": why_nothing})
    if best.makespan > instance.horizon:
        reason = f"the best schedule found ends in slot {best.makespan}, the horizon is {instance.horizon}"
        return HeuristicRun(None, {**info, "reason": reason})
    run = best.run
    return HeuristicRun(solution_of(instance, run.start, run.servers, run.amounts, run.used, work.row), info)
