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
from schedgap.heuristics.hadar.online import admit

# What the claims about Hadar need, with the tests of it on an instance and a run.


def _instance(case: Case) -> HadarInstance:
    return cast(HadarInstance, case.instance)


def _not_p2(case: Case) -> str | None:
    return "every job must finish" if _instance(case).all_jobs_must_finish else None


def _delayed(case: Case) -> str | None:
    return "a restart delay" if case.info.get("restart_delay") else None


def _stopped(case: Case) -> str | None:
    stopped = case.info.get("stopped")
    return f"stopped: {stopped}" if stopped else None


def _rounded(case: Case) -> str | None:
    return None if case.info.get("exact", False) else "best payoffs were not exact"


def _other_prices(case: Case) -> str | None:
    wrong = [name for name in ("price", "umin", "eta") if case.options.get(name) != "printed"]
    return f"not printed: {', '.join(wrong)}" if wrong else None


def _not_early(case: Case) -> str | None:
    options = case.options
    if options.get("price") != "early":
        return "needs price=early"
    if options.get("umin") != "direct" and options.get("eta") != "horizon":
        return "needs umin=direct or eta=horizon"
    return None


def _too_wide(case: Case) -> str | None:
    instance = _instance(case)
    for job in instance.jobs:
        for machine in instance.machines:
            for kind, count in machine.gpus.items():
                if job.throughput.get(kind, 0.0) > 0 and 0 < count <= job.workers:
                    return "a job asks for as many devices as a machine has of a type, or more"
    return None


def _not_small(case: Case) -> str | None:
    instance = _instance(case)
    for job in instance.jobs:
        for machine in instance.machines:
            for kind, count in machine.gpus.items():
                if job.throughput.get(kind, 0.0) > 0 and 0 < count < 10 * job.workers:
                    return "a job asks for more than a tenth of a machine's devices of a type"
    return None


def _nothing_accepted(case: Case) -> str | None:
    return "the optimum accepts no job" if case.optimum is not None and case.optimum <= 0 else None


def _dual_high(case: Case) -> str | None:
    start = case.info.get("initial_dual")
    if start is None:
        return "there are no prices"
    known = case.optimum if case.optimum is not None else case.bound
    return None if known is None or start <= known / 2 else "D_0 is above OPT/2"


def _kept(case: Case) -> str | None:
    return None if case.options.get("preempt", True) else "running jobs keep their devices"


def _communication(case: Case) -> str | None:
    return "allocations on several machines cost more" if case.options.get("communication") else None


P2 = Assumption("problem P2: jobs may be rejected", _not_p2)
NO_DELAY = Assumption("no time is lost when a job's devices change", _delayed)
NOT_STOPPED = Assumption("the run decided every job", _stopped)
EXACT = Assumption("the best payoff on arrival is exact, eq. (4)", _rounded)
PRINTED_PRICES = Assumption("prices, U_min and eta as printed, eqs. (5) to (7), with w_j^r = 1 in (6)", _other_prices)
EARLY = Assumption(
    "price exponent gamma/(c - w + 1) with w >= any demand on the pool in a slot; U_max >= every utility; "
    "U_min = u/(4 T C), u the smallest positive utility (or eq. (7), eta with T)",
    _not_early,
)
ROOM = Assumption(
    "a job's demand is less than the capacity: of every machine's devices of a type it can use",
    _too_wide,
    shown=True,
)
SMALL = Assumption("a job asks for at most a tenth of every machine's devices of a type it can use", _not_small)
SOMETHING = Assumption("the optimum accepts a job", _nothing_accepted)
DUAL_LOW = Assumption("D_0 <= OPT/2", _dual_high)
ALL_RECONSIDERED = Assumption("every round reconsiders all jobs, as Algorithm 1 does", _kept)
FREE_MOVES = Assumption("no cost of communication, which P1 and P2 do not have", _communication)


TOO_LARGE = "the bound is too large for a float"
NOTHING = "no schedule was returned"
UNKNOWN = "neither the optimum nor a bound that decides is known"
TURNED_AWAY = "a job with mu_j > 0 is turned away: no alpha meets the premise"
FAMILIES = ("printed_named", "printed_roomy")
RUN = (P2, NO_DELAY, NOT_STOPPED, EXACT)


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
