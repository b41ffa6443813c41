"""What paper 002 proves about Hadar, and what holds instead; the proofs are in docs/proofs-hadar.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.hadar.check import check
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.solution import HadarSolution
from schedgap.formulations.hadar.tables import tables
from schedgap.heuristics.common.guarantee import (
    READING,
    Assumption,
    Case,
    Evaluation,
    Measured,
    at_most,
    not_applicable,
)
from schedgap.heuristics.hadar.conditions import (
    ALL_RECONSIDERED,
    EARLY,
    FAMILIES,
    FREE_MOVES,
    NO_DELAY,
    NOT_STOPPED,
    NOTHING,
    P2,
    PRINTED_PRICES,
    ROOM,
    RUN,
    SMALL,
    SOMETHING,
    TOO_LARGE,
    UNKNOWN,
)
from schedgap.heuristics.hadar.hadare_guarantees import HADARE, claim
from schedgap.heuristics.hadar.lemmas import LEMMAS, alpha_of_the_run, compared
from schedgap.heuristics.hadar.online import admit
from schedgap.heuristics.hadar.online_prices import price_ends
from schedgap.solvers.result import SolveOptions, Status

JOBS = tuple(range(2, 13))
"""Waiting jobs of a round in which the recursion's memo keys are counted."""


POOLS = 200
"""Pools in one sample of Lemma 3."""


SLOPE = 1e-8
"""Relative error allowed to a slope from differences."""


P1_WORK = 20.0
"""Repeatable limit of solving P1."""


def _printed_factor(case: Case) -> float | None:
    alpha = case.info.get("alpha")
    return None if alpha is None else 2.0 * float(alpha)


def _theorem_2(case: Case) -> Evaluation:
    return compared(case, cast(float, _printed_factor(case)), f"2 alpha = {_printed_factor(case):.6g}")


ETAS = (1.0, 1.5, 2.0, 4.0, 10.0, 1e2, 1e3, 1e6, 1e12, 1e50, 1e100, 1e200, 1e280)
"""Factors on the least eta that eq. (7) allows: 1/eta is bounded from above alone."""


def _theorem_2_eta(case: Case) -> Evaluation:
    """2 alpha ALG with the eta of :data:`ETAS` that does best; refuted where none does."""
    if case.optimum is None:
        return not_applicable(UNKNOWN)
    instance = cast(HadarInstance, case.instance)
    options = {name: case.options[name] for name in ("eta", "price", "umin", "restart_delay", "grid")}
    sides = []
    for times in ETAS:
        run = admit(instance, **options, eta_times=times)
        if run.solution is None or "alpha" not in run.info:
            return not_applicable(NOTHING)
        report = check(instance, HadarSolution.parse(run.solution))
        sides.append((2.0 * float(run.info["alpha"]) * float(report.objective or 0.0), times))
    best, times = max(sides)
    return at_most(case.optimum, best, f"the optimum and the largest 2 alpha ALG, eta {times:g} times the least")


def _rounds_factor(case: Case) -> float | None:
    """2 alpha by eqs. (6) and (7) as printed; None where there are no such prices."""
    instance = cast(HadarInstance, case.instance)
    try:
        ends = price_ends(instance, tables(instance), "printed", "printed")
    except InputError:
        return None
    return None if ends is None else 2.0 * max(1.0, math.log(ends.high) - math.log(ends.low))


def _theorem_2_rounds(case: Case) -> Evaluation:
    factor = _rounds_factor(case)
    if factor is None:
        return not_applicable("no U_min above 0: no job can finish, or one is worth nothing at the horizon")
    return compared(case, factor, f"2 alpha = {factor:.6g}")


def _repaired_factor(case: Case) -> float | None:
    step = case.info.get("alpha_step")
    return None if step is None else float(step) + 0.25


def _theorem_2_repaired(case: Case) -> Evaluation:
    factor, seen = _repaired_factor(case), case.info.get("max_step")
    if factor is None:
        return not_applicable(TOO_LARGE)
    words = "" if seen is None else f" (largest dD/dP seen {seen:.6g})"
    return compared(case, factor, f"alpha_step + 1/4 = {factor:.6g}{words}")


def _measured_factor(case: Case) -> float | None:
    alpha = alpha_of_the_run(case)
    return None if alpha is None else alpha + 0.25


def _theorem_2_run(case: Case) -> Evaluation:
    factor = _measured_factor(case)
    if factor is None:
        return not_applicable(TOO_LARGE)
    return compared(case, factor, f"max(1, dD/dP) + 1/4 = {factor:.6g}")


def _lemma_3(seed: int) -> Evaluation:
    """c dk <= alpha k dgamma along the whole price curve, alpha = ln(U_max/U_min), for `POOLS` random pools."""
    rng = np.random.default_rng(seed)
    devices = rng.integers(1, 65, POOLS).astype(float)
    low = np.exp(rng.uniform(-8, 2, POOLS))
    log_rho = rng.uniform(1, 25, POOLS)
    taken = rng.uniform(0, 1, POOLS) * devices
    price = low * np.exp(log_rho * taken / devices)
    # the slope by a symmetric difference, whose relative error is (log_rho h / c)^2 / 6
    step = 1e-4 * devices / log_rho
    after, before = (low * np.exp(log_rho * (taken + sign * step) / devices) for sign in (1, -1))
    left, right = devices * (after - before) / (2 * step), log_rho * price
    worst = int(np.argmax(left / right))
    words = f"c dk/dgamma and ln(U_max/U_min) k, c {devices[worst]:.0f}, U_max/U_min {math.exp(log_rho[worst]):.3g}"
    return at_most(float(left[worst]) * (1 - SLOPE), float(right[worst]), words)


def _allocation_cost(case: Case) -> Evaluation:
    cost, alpha = case.info.get("allocation_cost"), case.info.get("alpha")
    if cost is None or alpha is None:
        return not_applicable("nothing was admitted" if case.info.get("admitted") == 0 else TOO_LARGE)
    return at_most(float(cost), float(alpha), "the largest c dk/(k dgamma) of an admission, and alpha")


def _allocation_cost_repaired(case: Case) -> Evaluation:
    cost, step = case.info.get("allocation_cost"), case.info.get("alpha_step")
    if cost is None or step is None:
        return not_applicable("nothing was admitted" if case.info.get("admitted") == 0 else TOO_LARGE)
    return at_most(float(cost), float(step), "the largest c dk/(k dgamma) of an admission, and alpha_step")


def _initial_dual(part: float) -> Callable[[Case], Evaluation]:
    def evaluate(case: Case) -> Evaluation:
        if case.optimum is None:
            return not_applicable("the optimum is not known")
        if case.info.get("initial_dual") is None:
            return not_applicable("no job can finish with positive utility: there are no prices")
        return at_most(float(case.info["initial_dual"]), part * case.optimum, f"D_0 and {part:g} OPT")

    return evaluate


def _must_finish(case: Case) -> float | str:
    """The optimum of P1, where every job has to finish; or why it is not known."""
    from schedgap.solvers.exact.hadar.colgen import solve_colgen

    data = {**case.instance.to_dict(), "all_jobs_must_finish": True}
    found = solve_colgen(HadarInstance.parse(data), SolveOptions(threads=1, work_limit=P1_WORK))
    if found.status is Status.INFEASIBLE:
        return "P1 has no solution: not every job can finish"
    if found.status is not Status.OPTIMAL or found.objective is None:
        return "the optimum of P1 is not known"
    return float(found.objective)


def _equivalence(printed: bool) -> Callable[[Case], Evaluation]:
    def evaluate(case: Case) -> Evaluation:
        if case.optimum is None:
            return not_applicable("the optimum of P2 is not known")
        every = _must_finish(case)
        if isinstance(every, str):
            return not_applicable(every)
        if printed:
            return at_most(case.optimum, every, "the optima of P2 and of P1, which are said to be equal")
        return at_most(every, case.optimum, "the optima of P1 and of P2")

    return evaluate


def _certificate(case: Case) -> Evaluation:
    bound = case.info.get("certificate")
    if bound is None:
        return not_applicable(TOO_LARGE if "certificate" in case.info else "no certificate was computed")
    if case.optimum is None:
        return not_applicable("the optimum is not known")
    return at_most(case.optimum, float(bound), "the optimum and sum c k + sum max(0, payoff)")


def waiting_jobs(count: int, seed: int) -> HadarInstance:
    """`count` jobs of 1 to 3 workers that all fit at once on machines of three types, none like another."""
    rng = np.random.default_rng(seed)
    kinds = ("V100", "P100", "K80")
    return HadarInstance.parse(
        {
            "problem": "hadar",
            "name": f"waiting-{count}-{seed}",
            "horizon": 40,
            "slot_length": 1.0,
            "machines": [{"id": f"h{h}", "gpus": dict.fromkeys(kinds, 2)} for h in range(count)],
            "jobs": [
                {
                    "id": f"j{j}",
                    "arrival": 1,
                    "workers": int(rng.integers(1, 4)),
                    "epochs": int(rng.integers(10, 60)),
                    "iterations_per_epoch": 1,
                    "throughput": {kind: int(rng.integers(2, 12)) for kind in kinds},
                    "utility": {"kind": "effective-throughput", "weight": 1.0},
                }
                for j in range(count)
            ],
        }
    )


def recursion_growth(seed: int) -> Measured:
    """Distinct memo keys (job, free devices) of one round with 2 to 12 waiting jobs that all fit.

    Theorem 1 counts n H R keys. ``doubling`` is the slope of log2(keys) over n by least squares: 0 would be
    polynomial (up to logarithms), 1 is a doubling with every job.
    """
    # loads numba, which naming the guarantees has no need of
    from schedgap.heuristics.hadar.rounds import Market, Recursion

    keys = []
    for count in JOBS:
        instance = waiting_jobs(count, seed + count)
        data = tables(instance)
        market = Market.of(data, True, 0.0)
        remaining = np.array([job.target for job in data.jobs], dtype=np.int64)
        recursion = Recursion(market, np.arange(count), remaining, 1)
        recursion.best(0, data.machine_capacity.copy())
        keys.append(len(recursion.memo))
    slope = float(np.polyfit(JOBS, np.log2(keys), 1)[0])
    values = {"doubling": slope, "keys_first": float(keys[0]), "keys_last": float(keys[-1])}
    listed = ", ".join(f"{n}: {k}" for n, k in zip(JOBS, keys, strict=True))
    return Measured(values, f"memo keys grow like 2^({slope:.2f} n); by jobs: {listed}")


def _theorem_1(_: Case) -> Evaluation:
    return not_applicable("about growth: measured on instances of its own")


_ONLINE = ("tiny", "lowhigh", "horizon_tiny", "contended", "named", "steps")


GUARANTEES = (
    claim(
        "theorem-1",
        "paper 002, Theorem 1",
        "Algorithm 2 decides a round in polynomial time",
        (Assumption("the memo key is (job, free devices): distinct keys are counted"),),
        _theorem_1,
        method="hadar-rounds",
        measure=recursion_growth,
    ),
    claim(
        "equivalence",
        "paper 002, section III-B: P1 and P2 are equivalent",
        "OPT(P1) = OPT(P2)",
        (P2, Assumption("utilities are not negative and do not grow with the completion time")),
        _equivalence(printed=True),
        families=("equivalence_named", "tiny", "contended"),
    ),
    claim(
        "equivalence-repaired",
        "ours",
        "OPT(P1) <= OPT(P2), where P1 has a solution",
        (P2,),
        _equivalence(printed=False),
        families=("equivalence_named", "tiny", "contended"),
    ),
    *LEMMAS,
    claim(
        "lemma-3",
        "paper 002, Lemma 3",
        "the price curve satisfies k dgamma >= (c/alpha) dk, alpha = ln(U_max/U_min), for small dgamma",
        (Assumption("prices by eq. (5), U_max/U_min >= e"),),
        lambda _: not_applicable("about price curves, not about instances"),
        sample=_lemma_3,
        per_sample=(POOLS, "pools"),
    ),
    claim(
        "allocation-cost",
        "paper 002, before eq. (9): Definition 1 holds with Lemma 3's alpha",
        "k dgamma >= (c/alpha) dk for every admission, alpha = max(1, ln U_max/U_min)",
        (*RUN, PRINTED_PRICES, ROOM),
        _allocation_cost,
        method="hadar-online",
        families=FAMILIES,
    ),
    claim(
        "allocation-cost-repaired",
        "ours",
        "k dgamma >= (c/alpha_step) dk for every admission",
        (P2, NO_DELAY, NOT_STOPPED),
        _allocation_cost_repaired,
        method="hadar-online+",
        families=_ONLINE,
    ),
    claim(
        "initial-dual",
        "paper 002, eq. (9)",
        "D_0 <= OPT/2",
        (*RUN, PRINTED_PRICES, ROOM, SOMETHING),
        _initial_dual(0.5),
        method="hadar-online",
        families=FAMILIES,
    ),
    claim(
        "initial-dual-repaired",
        "ours",
        "D_0 <= OPT/4",
        (P2, NO_DELAY, EARLY),
        _initial_dual(0.25),
        method="hadar-online+",
        families=_ONLINE,
    ),
    claim(
        "theorem-2",
        "paper 002, Theorem 2",
        "OPT <= 2 alpha ALG, alpha = max(1, ln U_max/U_min)",
        (*RUN, PRINTED_PRICES, ROOM, SOMETHING),
        _theorem_2,
        method="hadar-online",
        ratio_bound=_printed_factor,
        families=FAMILIES,
    ),
    claim(
        "theorem-2-eta",
        "paper 002, Theorem 2 with any eta that the inequality of eq. (7) allows",
        "some eta has OPT <= 2 alpha ALG (tried up to 1e280 times the least)",
        (*RUN, PRINTED_PRICES, ROOM, SOMETHING),
        _theorem_2_eta,
        kind=READING,
        method="hadar-online",
        families=FAMILIES,
    ),
    claim(
        "theorem-2-small",
        "paper 002, Theorem 2 where a demand less than the capacity is a small one",
        "OPT <= 2 alpha ALG, alpha = max(1, ln U_max/U_min)",
        (*RUN, PRINTED_PRICES, SMALL, SOMETHING),
        _theorem_2,
        kind=READING,
        method="hadar-online",
        ratio_bound=_printed_factor,
        families=("printed_small",),
    ),
    claim(
        "theorem-2-rounds",
        "paper 002, Theorem 2 for the algorithm that is evaluated",
        "OPT <= 2 alpha ALG, alpha = max(1, ln U_max/U_min)",
        (
            P2,
            NO_DELAY,
            NOT_STOPPED,
            ALL_RECONSIDERED,
            FREE_MOVES,
            ROOM,
            SOMETHING,
            Assumption("Algorithms 1 and 2 in our reading: as printed the recursion schedules nothing"),
        ),
        _theorem_2_rounds,
        kind=READING,
        method="hadar-rounds",
        ratio_bound=_rounds_factor,
        families=("roomy", "roomy_literal", "one_against_many", "many_against_one"),
    ),
    claim(
        "theorem-2-repaired",
        "ours",
        "OPT <= (alpha_step + 1/4) ALG",
        (*RUN, EARLY),
        _theorem_2_repaired,
        method="hadar-online+",
        ratio_bound=_repaired_factor,
        families=_ONLINE,
    ),
    claim(
        "theorem-2-run",
        "ours",
        "OPT <= (max(1, largest dD/dP of the run) + 1/4) ALG",
        (*RUN, EARLY),
        _theorem_2_run,
        method="hadar-online+",
        ratio_bound=_measured_factor,
        families=_ONLINE,
    ),
    claim(
        "certificate",
        "ours",
        "OPT <= sum c k + sum_j max(0, best payoff of j at the final prices k)",
        (P2, Assumption("any prices; payoffs exact or over-estimated, occupancy ignored")),
        _certificate,
        method="hadar-online+",
        families=(*_ONLINE, *FAMILIES, "printed_tiny", "printed_lowhigh"),
    ),
    *HADARE,
)
"""The rows of the ledger for paper 002."""
