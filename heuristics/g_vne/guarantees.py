"""The ledger of paper 004 on one slot: what it claims of g-vne, and what holds instead."""

from __future__ import annotations

import itertools
import math
from typing import Any

from schedgap.formulations.g_vne.instance import GVneInstance
from schedgap.formulations.g_vne.substrate import SubstrateInstance
from schedgap.heuristics.common.guarantee import (
    READING,
    Assumption,
    Case,
    Evaluation,
    Measured,
    Verdict,
    at_most,
    claims,
    not_applicable,
)
from schedgap.heuristics.g_vne.ring_size_bound import ring_size_bound

ROUNDINGS = 1000


CONFIDENCE = 1 - 1e-6
"""Confidence of the interval that refutes the repaired Theorem 8; so strict that hundreds of trials are not one false
alarm."""


CUT_OFF = "a linear program was not solved to its optimum"


SOLVABLE, ROUNDABLE = 600, 50_000
"""Jobs times nodes times ring sizes up to which a claim may solve, or round, an instance again."""


def _size(instance: GVneInstance) -> int:
    return sum(job.max_workers for job in instance.jobs) * len(instance.servers)


def _lp_of(case: Case) -> tuple[GVneInstance, dict[str, Any]]:
    assert isinstance(case.instance, GVneInstance)
    return case.instance, {"lp": case.options["lp"], "ring_sizes": case.options["ring_sizes"]}


SERVERS = 3
"""Servers that Theorem 8 assumes."""


def _instance(case: Case) -> GVneInstance:
    assert isinstance(case.instance, GVneInstance)
    return case.instance


def _beyond_q(case: Case) -> str | None:
    for name, size in case.info["kappa"].items():
        if size > math.ceil(float(case.info["q"][name]) - 1e-9):
            return "a ring was selected that is larger than ceil(q_i)"
    return None


def _few_servers(case: Case) -> str | None:
    assert isinstance(case.instance, SubstrateInstance)
    hosts = sum(1 for server in case.instance.servers if any(amount > 0 for amount in server.resources.values()))
    return None if hosts >= SERVERS else "fewer than three servers"


def _other_utilities(case: Case) -> str | None:
    fine = all(_concave(job.utility) for job in _instance(case).jobs)
    return None if fine else "a utility is not increasing and concave"


def _concave(utility: tuple[float, ...]) -> bool:
    """Whether pi_0 = 0, pi_1, pi_2, ... increases, by less and less."""
    gains = [after - before for before, after in zip((0.0, *utility), utility, strict=False)]
    rounding = 1e-9 * max(utility, default=0.0)
    return all(gain >= 0 for gain in gains) and all(b <= a + rounding for a, b in itertools.pairwise(gains))


def _not_selected(case: Case) -> str | None:
    return None if case.options.get("ring_sizes", "selected") == "selected" else "ring sizes are not selected"


def _not_printed(*, single: bool, target: str | None = None) -> Any:
    def fails(case: Case) -> str | None:
        if target is not None and case.options["target"] != target:
            return f"a third of the other program (target={case.options['target']})"
        if (case.options["tries"] == 1) is not single:
            return "several roundings" if single else "a single rounding"
        return None

    return fails


def _overloads(case: Case) -> str | None:
    return "loads may exceed capacities" if case.info.get("outside_model") else None


CONCAVE = Assumption("utilities pi increase and are concave, as gains of a concave mu do", _other_utilities, shown=True)


THREE = Assumption("at least three servers", _few_servers, shown=True)


SELECTED = Assumption("ring sizes by the program's largest pi chi", _not_selected)


WITHIN_Q = Assumption("ring sizes 1 to ceil(q_i)", _beyond_q, shown=True)


KEPT = Assumption("capacities are kept: a ring that does not fit what is left is refused", _overloads, shown=True)


ONE_ROUNDING = Assumption(
    "a single rounding (u_b = 1); loads may exceed capacities", _not_printed(single=True), shown=True
)


_UNTIL = "roundings until a third of {} is reached and loads are within beta and gamma, u_b = 100 at most"


ROUNDINGS_UNTIL = Assumption(f"{_UNTIL.format('a program')}; loads may exceed capacities", _not_printed(single=False))


A_THIRD_OF_FIXED = Assumption(
    f"{_UNTIL.format('the value of the program with the selected sizes')}; loads may exceed capacities",
    _not_printed(single=False, target="fixed"),
    shown=True,
)


A_THIRD_OF_FIRST = Assumption(
    f"{_UNTIL.format('the value of the relaxation of (12), which is at least the optimum,')}; loads may exceed "
    "capacities",
    _not_printed(single=False, target="first"),
    shown=True,
)


def _lemma_7(case: Case) -> Evaluation:
    """OPT <= Gamma times what rings of the selected sizes are worth, as the proof counts them."""
    if not case.info["lp_complete"]:
        return not_applicable(CUT_OFF)
    if case.optimum is None:
        return not_applicable("the optimum is not proven")
    kappa = case.info["kappa"]
    worth = sum(job.utility[kappa[job.id] - 1] for job in _instance(case).jobs if kappa[job.id])
    gamma = int(case.info["gamma"])
    reason = f"OPT {case.optimum:g}, rings of the selected sizes {worth:g}, Gamma {gamma}; LP {case.info['lp']:g}"
    return at_most(case.optimum, gamma * worth, reason)


def _lemma_7_embeddable(case: Case) -> Evaluation:
    """OPT <= Gamma OPT_fixed."""
    from schedgap.heuristics.g_vne.measured import optimum_of, with_sizes

    if not case.info["lp_complete"]:
        return not_applicable(CUT_OFF)
    if case.optimum is None:
        return not_applicable("the optimum is not proven")
    instance = _instance(case)
    if _size(instance) > SOLVABLE:
        return not_applicable("too large to be solved again with fixed ring sizes")
    fixed = optimum_of(with_sizes(instance, dict(case.info["kappa"])))
    if fixed is None:
        return not_applicable("the optimum with fixed ring sizes is not proven")
    gamma = int(case.info["gamma"])
    reason = f"OPT {case.optimum:g}, with the selected sizes {fixed:g}, Gamma {gamma}; LP {case.info['lp']:g}"
    return at_most(case.optimum, gamma * fixed, reason)


def _lemma_7_lp(case: Case) -> Evaluation:
    """LP <= s LP_fixed."""
    if not case.info["lp_complete"]:
        return not_applicable(CUT_OFF)
    sizes = max(1, int(case.info["sizes_in_lp"]))
    reason = f"LP {case.info['lp']:g}, with the selected sizes {case.info['lp_fixed']:g}, s = {sizes}"
    # the simplex method's own tolerance on both values
    return at_most(case.info["lp"] * (1 - 1e-7), sizes * case.info["lp_fixed"] * (1 + 1e-7), reason)


def _theorem_8(case: Case) -> Evaluation:
    """OPT / 3 <= utility."""
    if not case.info["lp_complete"]:
        return not_applicable(CUT_OFF)
    if case.optimum is None:
        return not_applicable("the optimum is not proven")
    made = int(case.info.get("tries", 1))
    reason = f"{made} roundings give {case.objective:g} of {case.optimum:g}, LP {case.info['lp_fixed']:g}"
    return at_most(case.optimum / 3, case.objective or 0.0, reason)


def _theorem_8_repaired(case: Case) -> Evaluation:
    """1 - 3/(2e) - R V^-3 - E^-3 <= P(a third of W, loads within the rings' factors)."""
    from schedgap.heuristics.g_vne.lp_rs_mde import make_plan
    from schedgap.heuristics.g_vne.rounding_counts import chance_of_third, count_roundings, promised

    instance, settings = _lp_of(case)
    if settings["lp"] != "capped":
        return not_applicable("rings that are not embeddable alone")
    if _size(instance) > ROUNDABLE:
        return not_applicable("too large to be rounded a thousand times again")
    plan = make_plan(instance, **settings)
    mixture = plan.mixture
    if not mixture.columns or mixture.value < float(mixture.utility.max()) * (1 - 1e-9):
        return not_applicable("a ring is worth more than all weighted rings together: some were dropped")
    counts = count_roundings(plan, mixture.value, ROUNDINGS, 0)
    low, high = counts.both.limits(CONFIDENCE)
    third = chance_of_third(mixture, mixture.value)
    bound = max(0.0, promised(instance))
    exact = "" if third is None else f", a third with probability {third:.4f}"
    reason = (
        f"{counts.both.value:.4f} of {ROUNDINGS} roundings, limits {low:.4f} to {high:.4f}{exact}, promised {bound:.4f}"
    )
    # both at once are no more likely than a third alone, whose probability is exact
    return at_most(bound, high if third is None else min(high, third), reason)


def _theorem_10(case: Case) -> Evaluation:
    """OPT <= (3 Gamma + 1) utility, one slot."""
    if not case.info["lp_complete"]:
        return not_applicable(CUT_OFF)
    if case.optimum is None or case.objective is None:
        return not_applicable("the optimum is not proven")
    factor = _theorem_10_factor(case)
    reason = f"OPT {case.optimum:g}, utility {case.objective:g}, Gamma {case.info['gamma']}"
    return at_most(case.optimum, factor * case.objective, reason)


def _theorem_10_factor(case: Case) -> float:
    return 3.0 * int(case.info["gamma"]) + 1.0


def _sandwich(case: Case) -> Evaluation:
    """OPT <= capped LP <= augmented LP."""
    from schedgap.heuristics.g_vne.relaxation import relax

    assert isinstance(case.instance, GVneInstance)
    capped = relax(case.instance, capped=True)
    augmented = relax(case.instance, capped=False)
    if not (capped.complete and augmented.complete) or capped.bound is None or augmented.bound is None:
        return not_applicable(CUT_OFF)
    lower = at_most(
        capped.bound * (1 - 1e-7), augmented.bound, f"capped {capped.bound:g}, augmented {augmented.bound:g}"
    )
    if lower.verdict is Verdict.REFUTED or case.optimum is None:
        return lower
    reason = f"optimum {case.optimum:g}, capped {capped.bound:g}, augmented {augmented.bound:g}"
    return at_most(case.optimum, capped.bound * (1 + 1e-9), reason)


def _elsewhere(case: Case) -> Evaluation:
    del case
    return not_applicable("measured on instances of its own")


def _losses(seed: int) -> Measured:
    from schedgap.heuristics.g_vne.measured import selection_losses

    return selection_losses(seed)


def _frequencies(seed: int) -> Measured:
    from schedgap.heuristics.g_vne.measured import rounding_frequencies

    return rounding_frequencies(seed)


def _growth(seed: int) -> Measured:
    from schedgap.heuristics.g_vne.measured import program_growth

    return program_growth(seed)


_claim = claims("004", "g-vne", "lp-rs-mde")


AS_PRINTED = "lp-rs-mde-printed"
"""Algorithm 2 as published, which the printed claims are about."""


_PRINTED = ("printed_named", "printed_thin", "printed_concave")


GUARANTEES = (
    _claim(
        "lemma-7",
        "paper 004, Lemma 7",
        "sum of pi_(i,kappa_i) >= OPT / Gamma, Gamma = max ceil(q_i)",
        (
            CONCAVE,
            SELECTED,
            WITHIN_Q,
            Assumption("as its proof counts: chi_(i,kappa_i) = 1, whether the rings can be embedded or not"),
        ),
        _lemma_7,
        method=AS_PRINTED,
        families=_PRINTED,
    ),
    _claim(
        "lemma-7-embeddable",
        "paper 004, Lemma 7 as Theorem 10 needs it",
        "OPT with the selected ring sizes >= OPT / Gamma, Gamma = max ceil(q_i)",
        (CONCAVE, SELECTED, WITHIN_Q, Assumption("the rings of the selected sizes are embedded")),
        _lemma_7_embeddable,
        kind=READING,
        method=AS_PRINTED,
        families=_PRINTED,
    ),
    _claim(
        "ring-size-bound",
        "paper 004, section V-B: q_i is an upper bound on the number of workers",
        "OPT <= OPT with rings of at most ceil(q_i) workers",
        (CONCAVE, Assumption("q solves (10) with (2), (4) and (11) relaxed, utilities linear between whole numbers")),
        ring_size_bound,
        method=None,
        families=("ring_sizes", "printed_concave"),
    ),
    _claim(
        "lemma-7-lp",
        "ours",
        "LP_fixed >= LP / s, s = most ring sizes of one job with positive weight",
        (SELECTED, Assumption("between LP values only")),
        _lemma_7_lp,
        families=("tiny", "small", "printed_named", "printed_thin", "printed_concave"),
    ),
    _claim(
        "lemma-7-losses",
        "paper 004, Lemma 7",
        "LP_fixed / LP and OPT_fixed / OPT",
        "networks of two racks",
        _elsewhere,
        method=None,
        measure=_losses,
    ),
    _claim(
        "theorem-8",
        "paper 004, Theorem 8 with u_b = 1",
        "utility >= OPT / 3",
        (THREE, CONCAVE, SELECTED, WITHIN_Q, ONE_ROUNDING),
        _theorem_8,
        kind=READING,
        ratio_bound=lambda _: 3.0,
        method=AS_PRINTED,
        families=("one_rounding_named", "one_rounding_tiny", "one_rounding"),
    ),
    _claim(
        "theorem-8-tries",
        "paper 004, Theorem 8 with a third of the program with the selected sizes",
        "utility >= OPT / 3",
        (THREE, CONCAVE, SELECTED, WITHIN_Q, A_THIRD_OF_FIXED),
        _theorem_8,
        kind=READING,
        ratio_bound=lambda _: 3.0,
        method=AS_PRINTED,
        families=("tries_named", "tries_thin", "tries_tiny", "tries"),
    ),
    _claim(
        "theorem-8-first",
        "paper 004, Theorem 8",
        "utility >= OPT / 3",
        (THREE, CONCAVE, SELECTED, WITHIN_Q, A_THIRD_OF_FIRST),
        _theorem_8,
        ratio_bound=lambda _: 3.0,
        method=AS_PRINTED,
        families=("first_named", "first_thin", "first_tiny", "first"),
    ),
    _claim(
        "theorem-8-frequencies",
        "paper 004, Theorem 8",
        "P(load >= beta C) <= V^-4 on servers, P(load >= gamma C) <= E^-4 on links, utility >= OPT / 3",
        (THREE, Assumption("rings that are embeddable alone")),
        _elsewhere,
        method=None,
        measure=_frequencies,
    ),
    _claim(
        "theorem-8-repaired",
        "ours",
        "P(utility >= W/3, loads within the rings' factors) >= 1 - 3/(2e) - R V^-3 - E^-3",
        "W = weighted utility of the rings, each embeddable alone and worth at most W; tested at level 1e-6",
        _theorem_8_repaired,
        families=("tiny", "small", "thin", "thirds"),
    ),
    _claim(
        "theorem-9",
        "paper 004, Theorem 9",
        "time O((|I| |G_s|)^3 + u_b |I|)",
        "the count of variables leaves out the V copies of the augmented program",
        _elsewhere,
        method=None,
        measure=_growth,
    ),
    _claim(
        "theorem-10-one-slot",
        "paper 004, Theorem 10",
        "utility >= OPT / (3 Gamma + 1), one slot",
        (THREE, CONCAVE, SELECTED, WITHIN_Q, ROUNDINGS_UNTIL),
        _theorem_10,
        ratio_bound=_theorem_10_factor,
        method=AS_PRINTED,
        families=(*_PRINTED, "tries_named", "first_named"),
    ),
    _claim(
        "theorem-10-one-slot-kept",
        "paper 004, Theorem 10 with capacities kept",
        "utility >= OPT / (3 Gamma + 1), one slot",
        (THREE, CONCAVE, SELECTED, WITHIN_Q, KEPT),
        _theorem_10,
        kind=READING,
        ratio_bound=_theorem_10_factor,
        families=_PRINTED,
    ),
    _claim(
        "capped-bound",
        "ours",
        "OPT <= capped LP <= augmented LP",
        "identical workers, servers relay",
        _sandwich,
        method=None,
        families=("tiny", "small", "thin"),
    ),
)
"""Every claim of paper 004 about one slot, and the repaired ones."""
