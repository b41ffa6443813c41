"""What paper 004 proves about GADGET over the horizon, and what holds instead; proofs are in docs/proofs-ddljs.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from schedgap.formulations.ddljs.reach import reaches
from schedgap.formulations.ddljs.utility import gain, utility
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
from schedgap.heuristics.ddljs.constraint_9 import CONSTRAINT_9, ddljs_instance
from schedgap.heuristics.g_vne.guarantees import THREE

UNKNOWN = "neither the optimum nor a bound that decides is known"


NOT_CONCAVE = "a utility is not concave, or is negative or falls"


ALL_CONCAVE = "every utility is concave"


NOTHING = "no schedule was returned"


def _concave(case: Case) -> bool:
    """Whether utilities are as section IV-3 has them: concave, and neither negative nor falling."""
    return all(job.concave and job.rising for job in ddljs_instance(case).jobs)


def _base(case: Case) -> float:
    """f(0): what all jobs are worth before anything runs."""
    return float(sum(utility(job, 0) for job in ddljs_instance(case).jobs))


def _slots(case: Case) -> int:
    """T: slots from the first arrival on."""
    instance = ddljs_instance(case)
    return instance.horizon - min(job.arrival for job in instance.jobs) + 1


def _optimum_at_most(case: Case, right: float, reason: str, base: float = 0.0) -> Evaluation:
    """``OPT - base <= right``; an upper bound instead of OPT can show that it holds, not that it fails."""
    if case.optimum is not None:
        return at_most(case.optimum - base, right, reason, abs(case.optimum))
    if case.bound is not None:
        shown = at_most(case.bound - base, right, f"{reason} (with an upper bound on OPT)", abs(case.bound))
        if shown.verdict is Verdict.HELD:
            return shown
    return not_applicable(UNKNOWN)


def _alpha(case: Case) -> float | None:
    """The proven quality of every slot of the run; None where it is unknown or 0."""
    alpha = case.info.get("alpha")
    return None if not alpha else float(alpha)


def _not_concave(case: Case) -> str | None:
    return None if _concave(case) else NOT_CONCAVE


def _all_concave(case: Case) -> str | None:
    if all(job.concave for job in ddljs_instance(case).jobs):
        return ALL_CONCAVE
    return None if all(job.rising for job in ddljs_instance(case).jobs) else "a utility is negative or falls"


def _other_ranges(case: Case) -> str | None:
    for job in ddljs_instance(case).jobs:
        shape = job.utility
        if shape.kind != "sigmoid" or shape.steepness is None or shape.midpoint is None:
            return "a utility that is no sigmoid"
        inside = 50 <= job.efficiency <= 500 and 1 <= shape.scale <= 100
        if not (inside and 0 < shape.steepness < 1 and 300 <= shape.midpoint <= 3000):
            return "a job outside of the printed ranges"
    return None


def _inexact(case: Case) -> str | None:
    return None if case.info.get("exact") else "slots were not solved exactly"


def _no_alpha(case: Case) -> str | None:
    return "the quality of a slot is unknown, or 0" if _alpha(case) is None else None


def _arrivals(case: Case) -> str | None:
    return "jobs arrive over time" if len({job.arrival for job in ddljs_instance(case).jobs}) > 1 else None


def _other_inner(case: Case) -> str | None:
    inner = str(case.options.get("inner", ""))
    return None if inner.startswith("lp-rs-mde") else "slots are not solved by Algorithm 2 with capacities kept"


def _rounded(single: bool) -> Callable[[Case], str | None]:
    def fails(case: Case) -> str | None:
        if not case.info.get("outside_model"):
            return "slots are not solved by Algorithm 2 as published"
        if (case.options["tries"] == 1) is not single:
            return "several roundings" if single else "a single rounding"
        return None

    return fails


CONCAVE = Assumption("every mu_i is concave, non-decreasing, mu_i(0) >= 0", _not_concave, shown=True)


SIGMOID = Assumption("sigmoid utilities, as in the paper's experiments", _all_concave)


PRINTED_RANGES = Assumption(
    "zeta in [50, 500], lambda_1 in [1, 100], lambda_2 in (0, 1), lambda_3 in [300, 3000], every utility a sigmoid",
    _other_ranges,
)


STATIC = Assumption("the network does not change")


EXACT = Assumption("slots are solved exactly", _inexact)


ALPHA = Assumption("every slot within alpha of its best; alpha is what the run proves", _no_alpha)


TOGETHER = Assumption("all jobs arrive together", _arrivals)


AS_PUBLISHED = Assumption(
    "Algorithm 2 in every slot, loads may exceed capacities, u_b = 100; Gamma = max ceil(q_i)", _rounded(single=False)
)


ONE_ROUNDING = Assumption(
    "Algorithm 2 in every slot, loads may exceed capacities, u_b = 1; Gamma = max ceil(q_i)", _rounded(single=True)
)


ALGORITHM_2 = Assumption("Algorithm 2 in every slot, with capacities kept; Gamma = max ceil(q_i)", _other_inner)


def _printed_factor(case: Case) -> float | None:
    alpha = _alpha(case)
    return None if alpha is None else (1 + alpha) / alpha


def _theorem_6(case: Case) -> Evaluation:
    if case.objective is None:
        return not_applicable(NOTHING)
    factor = cast(float, _printed_factor(case))
    return _optimum_at_most(
        case,
        factor * case.objective,
        f"the optimum and (1 + 1/alpha) {case.objective:.6g}, alpha {_alpha(case):.6g}",
    )


def greedy_factor(slots: int, alpha: float = 1.0) -> float:
    """((1 + alpha) T - alpha) / (alpha T): 2 - 1/T for exact slots."""
    return ((1 + alpha) * slots - alpha) / (alpha * slots)


def _repaired_factor(case: Case) -> float | None:
    return greedy_factor(_slots(case))


def _alpha_factor(case: Case) -> float | None:
    alpha = _alpha(case)
    return None if alpha is None else greedy_factor(_slots(case), alpha)


def _repaired(case: Case) -> Evaluation:
    if case.objective is None:
        return not_applicable(NOTHING)
    base, slots = _base(case), _slots(case)
    gained = case.objective - base
    return _optimum_at_most(case, greedy_factor(slots) * gained, f"OPT and (2 - 1/{slots}) {gained:.6g}", base)


def _alpha_form(case: Case) -> Evaluation:
    if case.objective is None:
        return not_applicable(NOTHING)
    base, slots, alpha = _base(case), _slots(case), cast(float, _alpha(case))
    gained = case.objective - base
    reason = f"OPT and ((1 + a) T - a) / (a T) {gained:.6g}, T {slots}, a {alpha:.6g}"
    return _optimum_at_most(case, greedy_factor(slots, alpha) * gained, reason, base)


def _batch_factor(case: Case) -> float | None:
    slots = _slots(case)
    return 1 / (1 - (1 - 1 / slots) ** slots)


def _batch(case: Case) -> Evaluation:
    if case.objective is None:
        return not_applicable(NOTHING)
    base, slots = _base(case), _slots(case)
    gained = case.objective - base
    factor = cast(float, _batch_factor(case))
    return _optimum_at_most(case, factor * gained, f"OPT and {gained:.6g} / (1 - (1 - 1/{slots})^{slots})", base)


def _less_a_gain(which: Callable[[list[float]], float], name: str) -> Callable[[Case], Evaluation]:
    def evaluate(case: Case) -> Evaluation:
        if case.objective is None:
            return not_applicable(NOTHING)
        base = _base(case)
        gained, less = case.objective - base, which(list(case.info["gains"]))
        return _optimum_at_most(case, 2 * gained - less, f"OPT and 2 * {gained:.6g} - {name} {less:.6g}", base)

    return evaluate


def _lemma_5(case: Case) -> Evaluation:
    worst: tuple[float, float, float, str] | None = None
    for job, reach in zip(ddljs_instance(case).jobs, reaches(ddljs_instance(case)), strict=True):
        if reach.max_work < 2:
            continue
        steps = gain(job, np.arange(reach.max_work), 1)
        rise = steps[1:] - steps[:-1]
        at = int(rise.argmax())
        part = float(rise[at]) / (float(steps[at + 1]) or 1.0)  # jobs are worth more and less
        if worst is None or part > worst[0]:
            text = f"job {job.id}: worker-slot {at + 2} adds {steps[at + 1]:.6g}, the one before {steps[at]:.6g}"
            worst = (part, float(steps[at + 1]), float(steps[at]), text)
    if worst is None:
        return not_applicable("no job can have two worker-slots")
    return at_most(worst[1], worst[2], worst[3])


def _theorem_10(case: Case) -> Evaluation:
    if case.objective is None:
        return not_applicable(NOTHING)
    factor = cast(float, _theorem_10_factor(case))
    reason = f"the optimum and (3 Gamma + 1) {case.objective:.6g}, Gamma {case.info['gamma']}"
    return _optimum_at_most(case, factor * case.objective, reason)


def _theorem_10_probability(case: Case) -> Evaluation:
    from schedgap.heuristics.ddljs.overload import likeliest_overloads

    instance = ddljs_instance(case)
    found = likeliest_overloads(instance)
    if isinstance(found, str):
        return not_applicable(found)
    judged = []
    for kind, count in (("server", len(instance.servers)), ("link", len(instance.links))):
        if count:
            allowed = -math.expm1(instance.horizon * math.log1p(-(float(count) ** -4))) if count > 1 else 1.0
            chance, row = found[kind].chance, found[kind].row
            text = f"the likeliest overload of a {kind} in some slot {row or ''} and 1 - (1 - {count}^-4)^T"
            judged.append(at_most(chance, allowed, text))
    return max(judged, key=lambda one: (one.verdict is Verdict.REFUTED, one.tightness or 0.0))


def _theorem_10_factor(case: Case) -> float | None:
    gamma = case.info.get("gamma")
    return None if gamma is None else 3.0 * int(gamma) + 1.0


_claim = claims("004", "ddljs", "gadget")


_CONCAVE = ("tight", "concave", "knapsack", "batch", "tight_batch", "named_concave")


GUARANTEES = (
    _claim(
        "lemma-5",
        "paper 004, Lemma 5",
        "F is submodular: more worker-slots before add no more after",
        (CONCAVE,),
        _lemma_5,
        method=None,
        families=("concave", "knapsack", "named_concave"),
    ),
    _claim(
        "lemma-5-sigmoid",
        "paper 004, Lemma 5 with the utilities of section VI",
        "F is submodular",
        (SIGMOID, PRINTED_RANGES),
        _lemma_5,
        kind=READING,
        method=None,
        families=("sections_vi", "late"),
    ),
    _claim(
        "theorem-6",
        "paper 004, Theorem 6",
        "ALG >= alpha / (alpha + 1) OPT",
        (CONCAVE, STATIC, ALPHA),
        _theorem_6,
        ratio_bound=_printed_factor,
        families=(*_CONCAVE, "rounding"),
    ),
    _claim(
        "theorem-6-sigmoid",
        "paper 004, Theorem 6 with the utilities of section VI",
        "ALG >= alpha / (alpha + 1) OPT",
        (SIGMOID, PRINTED_RANGES, STATIC, ALPHA),
        _theorem_6,
        kind=READING,
        ratio_bound=_printed_factor,
        families=("sections_vi", "late"),
    ),
    _claim(
        "theorem-6-repaired",
        "ours",
        "ALG >= T / (2 T - 1) OPT, both less f(0)",
        (CONCAVE, STATIC, EXACT),
        _repaired,
        ratio_bound=_repaired_factor,
        families=_CONCAVE,
    ),
    _claim(
        "theorem-6-alpha",
        "ours",
        "ALG >= alpha T / ((1 + alpha) T - alpha) OPT, both less f(0)",
        (CONCAVE, STATIC, ALPHA),
        _alpha_form,
        ratio_bound=_alpha_factor,
        families=("rounding", "rounding_tight", "tight", "concave"),
    ),
    _claim(
        "theorem-6-max-gain",
        "ours",
        "OPT <= 2 ALG - largest gain of a slot, both less f(0)",
        (CONCAVE, STATIC, EXACT),
        _less_a_gain(max, "max gain"),
        families=_CONCAVE,
    ),
    _claim(
        "theorem-6-last-gain",
        "ours",
        "OPT <= 2 ALG - gain of the last slot, both less f(0)",
        (CONCAVE, EXACT, Assumption("on any network, tried on those that do not change only")),
        _less_a_gain(lambda gains: gains[-1], "last gain"),
        families=_CONCAVE,
    ),
    _claim(
        "theorem-6-batch",
        "ours",
        "ALG >= (1 - (1 - 1/T)^T) OPT, both less f(0)",
        (CONCAVE, STATIC, EXACT, TOGETHER),
        _batch,
        ratio_bound=_batch_factor,
        families=("batch", "tight_batch"),
    ),
    _claim(
        "theorem-10",
        "paper 004, Theorem 10",
        "ALG >= OPT / (3 Gamma + 1)",
        (CONCAVE, THREE, STATIC, AS_PUBLISHED),
        _theorem_10,
        method="gadget-printed",
        ratio_bound=_theorem_10_factor,
        families=("printed_named", "printed_thin", "rounding", "conflicts"),
    ),
    _claim(
        "theorem-10-one-rounding",
        "paper 004, Theorem 10 with u_b = 1",
        "ALG >= OPT / (3 Gamma + 1)",
        (CONCAVE, THREE, STATIC, ONE_ROUNDING),
        _theorem_10,
        kind=READING,
        method="gadget-printed",
        ratio_bound=_theorem_10_factor,
        families=("conflicts_once",),
    ),
    _claim(
        "theorem-10-kept",
        "paper 004, Theorem 10 with capacities kept",
        "ALG >= OPT / (3 Gamma + 1)",
        (CONCAVE, THREE, STATIC, ALGORITHM_2),
        _theorem_10,
        kind=READING,
        ratio_bound=_theorem_10_factor,
        families=("printed_named", "printed_thin", "rounding"),
    ),
    *CONSTRAINT_9,
    _claim(
        "theorem-10-probability",
        "paper 004, Theorem 10: the probabilities",
        "P(some slot loads a server with beta C or more) <= 1 - (1 - V^-4)^T; a link with gamma C: 1 - (1 - E^-4)^T",
        (
            CONCAVE,
            THREE,
            STATIC,
            Assumption("one rounding a slot (u_b = 1) of Algorithm 2's program, ring by ring independent"),
        ),
        _theorem_10_probability,
        method=None,
        families=("crowded", "concave", "printed_thin"),
    ),
)
"""The rows of the ledger for paper 004 over the horizon."""
