"""What the claims about Hadar need, with the tests of it on an instance and a run."""

from __future__ import annotations

from typing import cast

from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.heuristics.common.guarantee import (
    Assumption,
    Case,
)


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
