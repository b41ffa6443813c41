"""What paper 002 proves about Hadar and HadarE, and what holds instead; the proofs are in docs/proofs-hadar.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from schedgap.formulations.hadar.forked import node_speeds
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.heuristics.common.guarantee import Case, Evaluation, Guarantee, Verdict, at_most, not_applicable
from schedgap.heuristics.hadar.forking import utilisation_by_copies
from schedgap.heuristics.hadar.growth import recursion_growth

TOO_LARGE = "the bound is too large for a float"
NOTHING = "no schedule was returned"
LONGEST_CHAIN = 2000
"""Slots of work on the slowest node up to which Theorem 3's chain is simulated."""
EQUAL = 1e-9
"""Two utilisations that differ by less, relatively, are equal."""
UNKNOWN = "neither the optimum nor a bound that decides is known"


def _at_least(case: Case, factor: float, what: str) -> Evaluation:
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


def _is_p2(case: Case) -> str | None:
    if cast(HadarInstance, case.instance).all_jobs_must_finish:
        return "about P2; in this instance every job must finish"
    if case.info.get("restart_delay"):
        return "about runs without a restart delay"
    if case.info.get("stopped"):
        return f"the run was stopped ({case.info['stopped']}) before every job was decided"
    return None


def _printed_factor(case: Case) -> float | None:
    alpha = case.info.get("alpha")
    return None if alpha is None else 2.0 * float(alpha)


def _theorem_2(case: Case) -> Evaluation:
    wrong = _is_p2(case)
    if wrong:
        return not_applicable(wrong)
    if any(case.options.get(name) != "printed" for name in ("price", "umin", "eta")):
        return not_applicable("about the printed prices: price=printed, umin=printed, eta=printed (without T)")
    if not case.info.get("exact", False):
        return not_applicable("best payoffs were not exact")
    return _at_least(case, cast(float, _printed_factor(case)), f"2 alpha = {_printed_factor(case):.6g}")


def _repaired_factor(case: Case) -> float | None:
    step = case.info.get("alpha_step")
    return None if step is None else 4.0 / 3.0 * float(step)


def _repaired_assumptions(case: Case) -> str | None:
    wrong = _is_p2(case)
    if wrong:
        return wrong
    options = case.options
    if options.get("price") != "early":
        return "needs price=early"
    if options.get("umin") != "direct" and options.get("eta") != "horizon":
        return "needs umin=direct or eta=horizon"
    return None if case.info.get("exact", False) else "best payoffs were not exact"


def _theorem_2_repaired(case: Case) -> Evaluation:
    wrong = _repaired_assumptions(case)
    if wrong:
        return not_applicable(wrong)
    factor, seen = _repaired_factor(case), case.info.get("max_step")
    if factor is None:
        return not_applicable(TOO_LARGE)
    words = "" if seen is None else f" (largest dD/dP seen {seen:.6g})"
    return _at_least(case, factor, f"(4/3) alpha_step = {factor:.6g}{words}")


def _measured_step(case: Case) -> float | None:
    step = case.info.get("max_step")
    return None if step is None else 4.0 / 3.0 * max(1.0, float(step))


def _theorem_2_run(case: Case) -> Evaluation:
    wrong = _repaired_assumptions(case)
    if wrong:
        return not_applicable(wrong)
    factor = _measured_step(case)
    if factor is None:
        return not_applicable(TOO_LARGE)
    return _at_least(case, factor, f"(4/3) max(1, dD/dP) = {factor:.6g}")


def _certificate(case: Case) -> Evaluation:
    bound = case.info.get("certificate")
    if bound is None:
        return not_applicable(TOO_LARGE if "certificate" in case.info else "no certificate was computed")
    if case.optimum is None:
        return not_applicable("the optimum is not known")
    return at_most(case.optimum, float(bound), "the optimum and sum c k + sum max(0, payoff)")


def _chain_data(case: Case) -> tuple[list[float], int] | str:
    """(CRU^1..CRU^(n+1), n), or why there is none."""
    instance = cast(HadarInstance, case.instance)
    speed = node_speeds(instance) * instance.slot_length
    nodes = speed.shape[1]
    if any(job.arrival > 1 for job in instance.jobs):
        return "about a batch: all jobs present at the start"
    if nodes < 2 or (speed <= 0).any():
        return "about nodes that can each run every job, two at least"
    work = np.array([job.work for job in instance.jobs], dtype=float)
    if float(work.sum()) / float(speed.min()) > LONGEST_CHAIN:
        return f"utilisation is simulated for at most {LONGEST_CHAIN} slots of work on the slowest node"
    return utilisation_by_copies(work, speed, nodes + 1), nodes


def _theorem_3(case: Case) -> Evaluation:
    data = _chain_data(case)
    if isinstance(data, str):
        return not_applicable(data)
    cru, nodes = data
    unequal = _more_copies(cru, nodes)
    if unequal is not None:
        return unequal
    # strict: one copy below any number between, that below n copies; with two nodes one copy below two
    first, between, last = cru[0], range(2, nodes), cru[nodes - 1]
    pairs = [(first, cru[x - 1], 1, x) for x in between] + [(cru[x - 1], last, x, nodes) for x in between]
    left, right, fewer, more = max(pairs or [(first, last, 1, nodes)], key=lambda pair: pair[0] / pair[1])
    reason = f"CRU^{fewer} = {left:.6g} has to be less than CRU^{more} = {right:.6g}"
    if left >= right * (1 - 1e-12):
        return Evaluation(Verdict.REFUTED, left, right, reason)
    return Evaluation(Verdict.HELD, left, right, reason)


def _more_copies(cru: list[float], nodes: int) -> Evaluation | None:
    """The refutation of CRU^n = CRU^(n+1), or None where they are equal but for rounding."""
    last, beyond = cru[nodes - 1], cru[nodes]
    if abs(last - beyond) <= EQUAL * max(last, beyond):
        return None
    reason = f"CRU^{nodes} = {last:.6g} has to equal CRU^{nodes + 1} = {beyond:.6g}"
    return Evaluation(Verdict.REFUTED, max(last, beyond), min(last, beyond), reason)


def _theorem_3_single(case: Case) -> Evaluation:
    if len(cast(HadarInstance, case.instance).jobs) != 1:
        return not_applicable("about one job")
    data = _chain_data(case)
    if isinstance(data, str):
        return not_applicable(data)
    cru, nodes = data
    unequal = _more_copies(cru, nodes)
    if unequal is not None:
        return unequal
    return at_most(max(cru[: nodes - 1]), cru[nodes - 1], "the largest CRU^x, x < n, and CRU^n")


def _theorem_1(_: Case) -> Evaluation:
    return not_applicable("about growth: measured on instances of its own")


def _claim(id: str, source: str, statement: str, assumptions: str, evaluate: Any, **more: Any) -> Guarantee:
    return Guarantee(f"002-{id}", "hadar", source, statement, assumptions, evaluate, **more)


def _families(*names: str) -> Mapping[str, Any]:
    return {"families": names}


_EXACT = "P2; no restart delay; the best payoff is exact"
_EARLY = (
    "price exponent gamma/(c - w + 1) with w >= any demand on the pool in a slot; U_max >= every utility; "
    "U_min = u/(4 T C), u the smallest positive utility (or eq. (7), eta with T)"
)

GUARANTEES: tuple[Guarantee, ...] = (
    _claim(
        "theorem-1",
        "paper 002, Theorem 1",
        "Algorithm 2 decides a round in polynomial time",
        "the memo key is (job, free devices): distinct keys are counted",
        _theorem_1,
        method="hadar-rounds",
        measure=recursion_growth,
    ),
    _claim(
        "theorem-2",
        "paper 002, Theorem 2",
        "OPT <= 2 alpha ALG, alpha = max(1, ln U_max/U_min)",
        f"{_EXACT}; prices, U_min and eta as printed",
        _theorem_2,
        method="hadar-online",
        ratio_bound=_printed_factor,
        hint=_families("printed_lowhigh", "printed_tiny", "printed_named"),
    ),
    _claim(
        "theorem-2-repaired",
        "ours",
        "OPT <= (4/3) alpha_step ALG",
        f"{_EXACT}; {_EARLY}",
        _theorem_2_repaired,
        method="hadar-online",
        kind="repaired",
        ratio_bound=_repaired_factor,
        hint=_families("tiny", "lowhigh", "horizon_tiny", "contended", "named"),
    ),
    _claim(
        "theorem-2-run",
        "ours",
        "OPT <= (4/3) max(1, largest dD/dP of the run) ALG",
        f"{_EXACT}; {_EARLY}",
        _theorem_2_run,
        method="hadar-online",
        kind="repaired",
        ratio_bound=_measured_step,
        hint=_families("tiny", "lowhigh", "horizon_tiny", "contended", "named"),
    ),
    _claim(
        "certificate",
        "ours",
        "OPT <= sum c k + sum_j max(0, best payoff of j at the final prices k)",
        "none: any prices; payoffs exact or over-estimated, occupancy ignored",
        _certificate,
        method="hadar-online",
        kind="repaired",
        hint=_families("tiny", "lowhigh", "printed_tiny", "printed_lowhigh", "contended", "named", "printed_named"),
    ),
    _claim(
        "theorem-3",
        "paper 002, Theorem 3",
        "CRU^1 < CRU^x < CRU^n = CRU^(n+j), 1 < x < n copies",
        "n nodes that can run every job; a batch; steps split over the copies that are scheduled",
        _theorem_3,
        hint=_families("nodes", "one_job", "forked_named"),
    ),
    _claim(
        "theorem-3-single-job",
        "ours",
        "one job on its x fastest nodes, steps split by speed: CRU^x <= CRU^n = CRU^(n+j)",
        "one job; n nodes that can run it",
        _theorem_3_single,
        kind="repaired",
        hint=_families("one_job"),
    ),
)
"""The rows of the ledger for paper 002."""
