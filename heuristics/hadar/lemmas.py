"""Lemmas 1 and 2 of paper 002, with mu_j as the paper defines it and with mu_j over the schedules that fit.

Before eq. (4) mu_j is the best payoff of all schedules in S_j, which (1a), (1b) and (1e) define, without capacities;
eq. (8) asks for capacities. The two lemmas swap their verdict with this.
"""

from __future__ import annotations

import math
from typing import cast

from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.heuristics.common.guarantee import (
    READING,
    Assumption,
    Case,
    Evaluation,
    Verdict,
    at_most,
    claims,
    not_applicable,
)
from schedgap.heuristics.hadar.conditions import (
    DUAL_LOW,
    FAMILIES,
    NOTHING,
    PRINTED_PRICES,
    ROOM,
    RUN,
    SOMETHING,
    TOO_LARGE,
    TURNED_AWAY,
    UNKNOWN,
)
from schedgap.heuristics.hadar.online import admit


def compared(case: Case, factor: float, what: str) -> Evaluation:
    """``OPT <= factor ALG``; an upper bound instead of OPT can show that it holds, not that it fails."""
    if case.objective is None:
        return not_applicable(NOTHING)
    right = factor * case.objective
    if case.optimum is not None:
        return at_most(case.optimum, right, f"the optimum and {what} times {case.objective:g}")
    if case.bound is not None:
        shown = at_most(case.bound, right, f"an upper bound on the optimum and {what} times {case.objective:g}")
        if shown.verdict is Verdict.HELD:
            return shown
    return not_applicable(UNKNOWN)


def alpha_of_the_run(case: Case) -> float | None:
    """max(1, the largest dD/dP of an admission), the least alpha that Lemma 1 can have."""
    step = case.info.get("max_step")
    return None if step is None else max(1.0, float(step))


def _alpha_of_all(case: Case) -> float:
    """The same with mu_j over all of S_j; infinite where no alpha is large enough."""
    names = ("eta", "price", "umin", "restart_delay", "grid")
    run = admit(cast(HadarInstance, case.instance), **{name: case.options[name] for name in names}, all_schedules=True)
    step = run.info["max_step_all"]
    return math.inf if step is None else max(1.0, float(step))


def _lemma_1(case: Case) -> Evaluation:
    alpha = _alpha_of_all(case)
    if math.isinf(alpha):
        return not_applicable(TURNED_AWAY)
    return compared(case, 2 * alpha, f"2 alpha = 2 max(1, dD/dP) = {2 * alpha:.6g}")


def _fitting_factor(case: Case) -> float | None:
    alpha = alpha_of_the_run(case)
    return None if alpha is None else 2.0 * alpha


def _lemma_1_fitting(case: Case) -> Evaluation:
    factor = _fitting_factor(case)
    if factor is None:
        return not_applicable(TOO_LARGE)
    return compared(case, factor, f"2 alpha = 2 max(1, dD/dP) = {factor:.6g}")


def _step_and_cost(case: Case, alpha: float | None) -> Evaluation:
    cost = case.info.get("allocation_cost")
    if cost is None or alpha is None:
        return not_applicable(TOO_LARGE)
    words = "max(1, dD/dP) and max(1, c dk/(k dgamma)), both the largest of the run"
    return at_most(alpha, max(1.0, float(cost)), words)


_claim = claims("002", "hadar", "hadar-online")


LEAST = Assumption("alpha is the least that the run allows")


ALL = Assumption("mu_j is the best payoff of all schedules of S_j, (1a), (1b), (1e): the definition before eq. (4)")


FITTING = Assumption("mu_j is the best payoff of the schedules that the free devices hold, as in eq. (8)")


_PREMISE = "P_j - P_(j-1) >= (D_j - D_(j-1))/alpha"


LEMMAS = (
    _claim(
        "lemma-1",
        "paper 002, Lemma 1",
        f"{_PREMISE} for every job and D_0 <= OPT/2 imply OPT <= 2 alpha ALG",
        (*RUN, PRINTED_PRICES, ROOM, SOMETHING, DUAL_LOW, ALL, LEAST),
        _lemma_1,
        families=(*FAMILIES, "printed_tiny", "printed_lowhigh"),
    ),
    _claim(
        "lemma-1-fitting",
        "paper 002, Lemma 1 with mu_j as in eq. (8)",
        f"{_PREMISE} for every job and D_0 <= OPT/2 imply OPT <= 2 alpha ALG",
        (*RUN, PRINTED_PRICES, ROOM, SOMETHING, DUAL_LOW, FITTING, LEAST),
        _lemma_1_fitting,
        kind=READING,
        ratio_bound=_fitting_factor,
        lemma=True,
        families=FAMILIES,
    ),
    _claim(
        "lemma-2",
        "paper 002, Lemma 2",
        f"k dgamma >= (c/alpha) dk for every admission implies {_PREMISE} for every job",
        (*RUN, ALL, LEAST),
        lambda case: _step_and_cost(case, _alpha_of_all(case)),
        families=(*FAMILIES, "printed_lowhigh"),
    ),
    _claim(
        "lemma-2-fitting",
        "paper 002, Lemma 2 with mu_j as in eq. (8)",
        f"k dgamma >= (c/alpha) dk for every admission implies {_PREMISE}",
        (*RUN, FITTING, LEAST),
        lambda case: _step_and_cost(case, alpha_of_the_run(case)),
        kind=READING,
        families=(*FAMILIES, "printed_lowhigh", "steps", "lowhigh"),
    ),
)
"""Both readings of both lemmas."""
