"""What paper 000 proves about SJF-BCO, and what holds instead; the proofs are in docs/proofs-rar-ddls.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import cast

import numpy as np

from schedgap.formulations.common.instance import Json
from schedgap.formulations.rar_ddls.durations import worst_durations
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table
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
from schedgap.heuristics.rar_ddls.estimates import estimates
from schedgap.heuristics.rar_ddls.running_time import new_search, running_time_growth
from schedgap.heuristics.rar_ddls.smallest_limit import smallest_limit
from schedgap.heuristics.rar_ddls.vertex_coloring import evaluate_coloring

LARGEST_ASSIGNMENT = 40
"""Lemma 4 is evaluated when all jobs together ask for at most so many GPUs: theta* takes exhaustive search."""


Facts = Mapping[str, Json]


def _instance(case: Case) -> RarDdlsInstance:
    return cast(RarDdlsInstance, case.instance)


def _printed(case: Case) -> Facts | None:
    """The pass that Algorithm 1 as printed returns (without the probe); None where the time limit ended it."""
    return None if case.info.get("stopped") else cast("Facts | None", case.info.get("bisected"))


def _probe(case: Case) -> Facts | None:
    """The probe, where it was among the passes compared and went through."""
    return cast("Facts | None", case.info.get("probe")) if case.info.get("probe_compared") else None


NO_PRINTED = "Algorithm 1 found no schedule within T, or the time limit ended it"


NO_PROBE = "the pass with theta = infinity and kappa = n_g was not compared, or never ends"


NOTHING = "no schedule was returned"


def _other_network(case: Case) -> str | None:
    network = _instance(case).network
    inside = network.contention_scale <= 1 and network.server_overhead <= 1
    return None if inside else "contention_scale or server_overhead is above 1"


def _other_bisection(case: Case) -> str | None:
    if case.options.get("bisection", "improved") != "improved":
        return "another bisection: bisection=feasible"
    return None if case.options.get("kappa") is None else "a single kappa"


def _estimate_off(case: Case) -> str | None:
    constants = _paper_constants(case)
    return constants if isinstance(constants, str) else None


def _no_schedule(case: Case) -> str | None:
    return NO_PRINTED if _printed(case) is None else None


def _single_gpus(case: Case) -> str | None:
    return "n_g = 1" if case.info["n_g"] < 2 else None


def _no_probe(case: Case) -> str | None:
    return NO_PROBE if _probe(case) is None else None


def _paper_constants(case: Case) -> tuple[float, float, float] | str:
    """(phi, u, l) as section 5 and Lemma 4 define them, or why there are none.

    phi is the largest ratio of two durations of one job, with contention up to max_s O_s as the paper estimates
    it; u is the option; l is the option, or less where l rho <= rho_hat needs it.
    """
    if "rho_hat" not in case.info:
        return "the run ended before anything was estimated"
    instance = _instance(case)
    worst, best = worst_durations(instance), rate_table(instance).best_duration
    if not np.isfinite(worst).all():
        return "phi is infinite: a job makes no progress under the largest contention"
    rho_hat = np.array(case.info["rho_hat"], dtype=np.float64)
    u = float(case.info["u"])
    if (rho_hat > u * best * (1 + 1e-12)).any():
        return "rho_hat <= u rho does not hold for every schedule"
    return float((worst / best).max()), u, min(float(case.info["l"]), float((rho_hat / worst).min()))


def _to_optimum(case: Case, makespan: float, factor: float) -> Evaluation:
    """``makespan <= factor T*``; with a lower bound instead of T* it can be shown to hold, not to fail."""
    if case.optimum is not None:
        return at_most(makespan, factor * case.optimum, f"{factor:.6g} times the optimum {case.optimum:g}")
    if case.bound is not None:
        shown = at_most(makespan, factor * case.bound, f"{factor:.6g} times the lower bound {case.bound:g}")
        if shown.verdict is Verdict.HELD:
            return shown
    return not_applicable("the optimum is not known")


def _lemma_2(case: Case) -> Evaluation:
    facts = cast(Facts, _printed(case))
    # W_max <= theta always holds, so equality is theta <= W_max.
    return at_most(facts["theta"], facts["W_max"], "theta and W_max, which are said to be equal")


def _lemma_2_tightest(case: Case) -> Evaluation:
    """Every pass at the least limit that a bisection on feasibility finds has a largest load of it, rounded up."""
    if "rho_hat" not in case.info:
        return not_applicable("the run ended before anything was estimated")
    instance, largest = _instance(case), int(case.info["T"])
    guess = estimates(instance, case.info["rho_hat"], float(case.info["u"]))
    search = new_search(instance, guess, case.info["lambda"])
    theta, loads = 0, list[int]()
    low, high = 1, largest
    while low <= high:
        middle = (low + high) // 2
        passes = [search.one_pass(middle, kappa, largest + 1) for kappa in range(1, instance.largest_gang + 1)]
        feasible = [math.ceil(Fraction(p.weight, guess.scale) / guess.u) for p in passes if p and p.makespan <= largest]
        if feasible:
            theta, loads, high = middle, feasible, middle - 1
        else:
            low = middle + 1
    if not loads:
        return not_applicable(NO_PRINTED)
    if max(loads) > theta:
        return at_most(max(loads), theta, "the largest W_max of a pass at theta~, rounded up, and theta~")
    return at_most(theta, min(loads), "theta~ and the smallest W_max of a pass at it, rounded up")


def _lemma_2_repaired(case: Case) -> Evaluation:
    facts = cast(Facts, _printed(case))
    return at_most(facts["W_max"], facts["theta"], "W_max and theta")


def _lemma_3(case: Case) -> Evaluation:
    facts = cast(Facts, _printed(case))
    return at_most(facts["makespan"], case.info["n_g"] * facts["W_max"], "makespan and n_g W_max")


def _lemma_3_repaired(case: Case) -> Evaluation:
    returned, probe = case.info.get("returned"), _probe(case)
    if returned is None:
        return not_applicable(NOTHING)
    gangs = case.info["n_g"] > 1
    if gangs and probe is None:
        return not_applicable(NO_PROBE)
    facts: Facts = case.info[returned]
    # The pass whose durations the estimates have to bound: for gangs the proof is about the probe.
    durations = cast("Facts", probe) if gangs else facts
    low = min(float(case.info["l"]), durations["l_realised"])
    factor = (2 - 1 / case.info["N"] if gangs else 1.0) * case.info["u"] / low
    reason = f"makespan and {factor:.6g} W_max, with l = {low:.6g}"
    return at_most(facts["makespan"], factor * facts["W_max"], reason)


def _lemma_4(case: Case) -> Evaluation:
    facts, instance = cast(Facts, _printed(case)), _instance(case)
    phi, u, low = cast(tuple[float, float, float], _paper_constants(case))
    gangs = [job.gpus for job in instance.jobs]
    if sum(gangs) > LARGEST_ASSIGNMENT:
        return not_applicable(f"theta* is computed for at most {LARGEST_ASSIGNMENT} GPUs asked for, here {sum(gangs)}")
    if worst_durations(instance).sum() > case.info["T"]:
        return not_applicable("T is too short for every assignment to be the placement of a schedule")
    guess = estimates(instance, case.info["rho_hat"], case.info["u"])
    weight = smallest_limit(gangs, guess.weights.tolist(), instance.total_gpus)
    if weight is None:
        return not_applicable("the search for theta* did not end within its nodes")
    star = guess.load(weight)
    right = phi * u / low * star
    return at_most(facts["theta"], right, f"theta and phi (u/l) theta*, phi = {phi:.6g}, theta* = {star:.6g}")


def _printed_factor(case: Case) -> float | None:
    constants = _paper_constants(case)
    if isinstance(constants, str):
        return None
    phi, u, low = constants
    return float(case.info["n_g"] * phi * u / low)


def _theorem_5(case: Case) -> Evaluation:
    return _to_optimum(case, cast(Facts, _printed(case))["makespan"], cast(float, _printed_factor(case)))


def _gang_factor(case: Case) -> float | None:
    probe = _probe(case)
    if probe is None:
        return None
    return float(case.info["n_g"] * probe["phi"] * case.info["u"] / case.info["l"])


def _theorem_5_gang(case: Case) -> Evaluation:
    if case.objective is None:
        return not_applicable(NOTHING)
    return _to_optimum(case, case.objective, cast(float, _gang_factor(case)))


def _repaired_factor(case: Case) -> float | None:
    probe = _probe(case)
    return None if probe is None else float((2 - 1 / case.info["N"]) * probe["phi"])


def _theorem_5_repaired(case: Case) -> Evaluation:
    if case.objective is None:
        return not_applicable(NOTHING)
    return _to_optimum(case, case.objective, cast(float, _repaired_factor(case)))


def _theorem_5_area(case: Case) -> Evaluation:
    if case.objective is None:
        return not_applicable(NOTHING)
    probe, gpus = cast(Facts, _probe(case)), case.info["N"]
    right = (2 - 1 / gpus) * max(probe["area"] / gpus, probe["longest"])
    return at_most(case.objective, right, "makespan and (2 - 1/N) max(sum G_j r_j / N, max r_j)")


def _elsewhere(what: str) -> Callable[[Case], Evaluation]:
    return lambda _: not_applicable(what)


_claim = claims("000", "rar-ddls", "sjf-bco")


REPAIRED = "sjf-bco+"
"""With the probe, which the proofs of the repaired claims need."""


NETWORK = Assumption("xi_1 and xi_2 are at most 1 (the paper has them positive, and 0 as the limit)", _other_network)


PRINTED = Assumption(
    "the bisection as printed: theta goes down where the makespan improves, else up; every kappa is tried",
    _other_bisection,
)


SCHEDULE = Assumption("Algorithm 1 as printed returns a schedule", _no_schedule)


ESTIMATE = Assumption(
    "l rho <= rho_hat <= u rho for every schedule, 0 < l <= 1 <= u; phi = max_j of the largest ratio of two "
    "durations rho_j",
    _estimate_off,
)


PROBED = Assumption(
    "the pass with theta = infinity and kappa = n_g (the probe) is among those compared, and ends", _no_probe
)


GANGS = Assumption("n_g >= 2", _single_gpus)


REALISED = Assumption("r_j: realised durations of the probe; d_j: best durations")


_ALGORITHM_1 = (NETWORK, PRINTED, SCHEDULE, ESTIMATE)


GUARANTEES = (
    _claim(
        "theorem-1",
        "paper 000, Theorem 1: the reduction of its proof",
        "makespan of the reduced instance = chromatic number",
        (Assumption("unit jobs on fixed GPU sets: about that variant, not about rar-ddls, where GPU sets are chosen"),),
        _elsewhere("about graphs: the reduced instance fixes GPU sets"),
        kind=READING,
        method=None,
        sample=evaluate_coloring,
    ),
    _claim(
        "lemma-2",
        "paper 000, Lemma 2",
        "W_max = theta~",
        _ALGORITHM_1,
        _lemma_2,
        families=("single_gpu", "estimates", "contended"),
    ),
    _claim(
        "lemma-2-tightest",
        "paper 000, Lemma 2, with theta~ the tightest limit that is feasible",
        "W_max, rounded up to whole slots, = theta~",
        (
            NETWORK,
            Assumption(
                "theta~ is the least limit that bisection finds feasible: it goes down where a pass with some kappa "
                "ends within T, else up; W_max is that of any pass at theta~ that ends within T"
            ),
        ),
        _lemma_2_tightest,
        kind=READING,
        families=("single_gpu", "estimates", "contended"),
    ),
    _claim(
        "lemma-2-repaired",
        "ours",
        "W_max <= theta~",
        (SCHEDULE,),
        _lemma_2_repaired,
        families=("single_gpu", "estimates", "contended"),
    ),
    _claim(
        "lemma-3",
        "paper 000, Lemma 3",
        "makespan <= n_g W_max",
        _ALGORITHM_1,
        _lemma_3,
        families=("estimates", "contended"),
    ),
    _claim(
        "lemma-3-repaired",
        "ours",
        "makespan <= (2 - 1/N) (u/l) W_max for n_g >= 2, (u/l) W_max for n_g = 1",
        (Assumption(f"one rho_hat per job; l r_j <= rho_hat_j for its realised r_j; for n_g >= 2, {PROBED.text}"),),
        _lemma_3_repaired,
        method=REPAIRED,
        families=("estimates", "single_gpu", "contended", "worst_ratio"),
    ),
    _claim(
        "lemma-4",
        "paper 000, Lemma 4",
        "theta~ <= phi (u/l) theta*_u",
        (*_ALGORITHM_1, Assumption("theta*_u is the optimum of (14) to (16)")),
        _lemma_4,
        families=("single_gpu", "contended"),
    ),
    _claim(
        "theorem-5",
        "paper 000, Theorem 5",
        "makespan <= n_g phi (u/l) T*",
        _ALGORITHM_1,
        _theorem_5,
        ratio_bound=_printed_factor,
        families=("single_gpu", "contended", "worst_ratio"),
    ),
    _claim(
        "theorem-5-gang",
        "ours",
        "makespan <= n_g phi (u/l) T*, phi = max_j r_j / d_j",
        (GANGS, PROBED, REALISED),
        _theorem_5_gang,
        ratio_bound=_gang_factor,
        method=REPAIRED,
        families=("contended", "worst_ratio", "gangs"),
    ),
    _claim(
        "theorem-5-repaired",
        "ours",
        "makespan <= (2 - 1/N) phi T*, phi = max_j r_j / d_j",
        (PROBED, REALISED),
        _theorem_5_repaired,
        ratio_bound=_repaired_factor,
        method=REPAIRED,
        families=("single_gpu", "gangs", "contended", "worst_ratio"),
    ),
    _claim(
        "theorem-5-area",
        "ours",
        "makespan <= (2 - 1/N) max(sum_j G_j r_j / N, max_j r_j)",
        (PROBED, REALISED),
        _theorem_5_area,
        method=REPAIRED,
        families=("single_gpu", "gangs", "contended", "worst_ratio"),
    ),
    _claim(
        "theorem-6",
        "paper 000, Theorem 6",
        "running time O(n_g J N log N log T)",
        (Assumption("sorting counts, as in the printed proof"),),
        _elsewhere("about growth: measured on instances of its own"),
        measure=running_time_growth,
    ),
)
"""The rows of the ledger for paper 000."""
