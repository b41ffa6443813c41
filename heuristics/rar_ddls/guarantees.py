"""What paper 000 proves about SJF-BCO, and what holds instead; the proofs are in docs/proofs-rar-ddls.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import cast

import numpy as np

from schedgap.formulations.common.instance import Json
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table, worst_durations
from schedgap.formulations.rar_ddls.running import build_workload
from schedgap.heuristics.common.growth import growth_exponent
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
from schedgap.heuristics.rar_ddls.sjf_bco import Estimates, Search, estimates, make_plan
from schedgap.heuristics.rar_ddls.vertex_coloring import evaluate_coloring

# How the work of Algorithm 1 of paper 000 grows: Theorem 6, measured by counting.

SERVER_GPUS = 8
BASE = {"jobs": 80, "gpus": 64, "n_g": 8, "T": 256}
GROWTH = {"jobs": (40, 80, 160, 320), "gpus": (32, 64, 128, 256), "n_g": (2, 4, 8, 16), "T": (256, 1024, 4096, 16384)}


def sorting_steps(instance: RarDdlsInstance) -> int:
    """Elementary steps of Algorithm 1 as printed, counted as in the proof of Theorem 6: the sorting.

    An attempt of Algorithm 2 sorts N GPUs and counts N log2 N; one of Algorithm 3 sorts S servers and at most N
    GPUs. Attempts are counted in a run with every kappa in 1..n_g and with waiting as printed, none of the
    accelerations; bisection as printed, without the probe of theta = infinity. Every job has to fit the cluster and
    to make progress alone.

    An attempt is made when a job's turn comes and after each exit that it waits for, so at most 2 J in a pass.
    """
    search = _new_search(instance, estimates(instance, "best", 1.0), 1.0, literal=True)
    search.bisect(instance.horizon, "improved", range(1, instance.largest_gang + 1))
    gpus, servers = instance.total_gpus, len(instance.servers)
    second, third = search.attempts
    return round(second * _sort(gpus) + third * (_sort(servers) + _sort(gpus)))


def _new_search(instance: RarDdlsInstance, guess: Estimates, scale: float, literal: bool = False) -> Search:
    """A search that has run no pass; `scale` is lambda of Algorithm 3."""
    work = build_workload(instance)
    order = np.argsort(work.jobs["gang"][:-1], kind="stable").astype(np.int64)
    return Search(work, make_plan(work, guess.weights, order, scale), guess, literal=literal)


def running_time_growth(seed: int) -> Measured:
    """The growth of ``sorting_steps`` in J, N, n_g and T, one at a time, on random instances.

    Exponents are slopes of a least-squares line through (log x, log steps), where x is J, N log2 N, n_g and
    log2 T: Theorem 6, O(n_g J N log N log T), says that each is at most 1. ``normalised`` is the range of
    steps / (n_g J N log2 N log2 T) over all instances: the constant hidden in the O.
    """
    values: dict[str, float] = {}
    constants = []
    for what, sizes in GROWTH.items():
        steps, scale = [], []
        for size in sizes:
            setting = {**BASE, what: size}
            count = sorting_steps(_random_instance(seed, **setting))
            steps.append(count)
            n_log_n = _sort(setting["gpus"])
            scale.append({"jobs": size, "gpus": _sort(size), "n_g": size, "T": math.log2(size)}[what])
            constants.append(count / (setting["n_g"] * setting["jobs"] * n_log_n * math.log2(setting["T"])))
        values[f"exponent_{what}"] = growth_exponent(scale, steps)
    values["normalised_least"], values["normalised_most"] = min(constants), max(constants)
    summary = (
        f"steps grow with exponent {values['exponent_jobs']:.2f} in J, {values['exponent_gpus']:.2f} in N log N, "
        f"{values['exponent_n_g']:.2f} in n_g, {values['exponent_T']:.2f} in log T; "
        f"steps / (n_g J N log N log T) from {min(constants):.2f} to {max(constants):.2f}"
    )
    return Measured(values, summary)


def _sort(length: int) -> float:
    return length * math.log2(max(2, length))


def _random_instance(seed: int, jobs: int, gpus: int, n_g: int, T: int) -> RarDdlsInstance:
    """`jobs` jobs of 1 to n_g GPUs (one of them n_g) and 5 to 20 slots alone, on servers of 8 GPUs."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, n_g + 1, jobs)
    sizes[0] = n_g
    return RarDdlsInstance.parse(
        {
            "problem": "rar-ddls",
            "name": f"growth-{seed}",
            "horizon": T,
            "network": {
                "inter_bandwidth": 1.0,
                "intra_bandwidth": 50.0,
                "contention_scale": 0.5,
                "contention_penalty": 0.2,
                "server_overhead": 0.0005,
            },
            "reduce_speed": 1000.0,
            "servers": [{"id": f"s{s}", "gpus": SERVER_GPUS} for s in range(gpus // SERVER_GPUS)],
            "jobs": [
                {
                    "id": f"j{j}",
                    "gpus": int(size),
                    "iterations": 20 * int(rng.integers(5, 21)),
                    "gradient_size": 0.002,
                    "batch_size": 32,
                    "forward_time": 0.0,
                    "backward_time": 0.045,
                }
                for j, size in enumerate(sizes)
            ],
        }
    )


# theta*_u: the smallest limit for which problem (14)-(16) of paper 000 is feasible, by exhaustive search.


def smallest_limit(
    gangs: Sequence[int],  # G_j of each job, at most `gpus`
    weights: Sequence[int],  # positive
    gpus: int,  # N, identical for this purpose
    nodes: int = 20_000,  # assignments of one job to look at
) -> int | None:
    """The smallest largest load when every job adds its weight to G_j different GPUs.

    ``theta* = min over assignments of max_g sum_{j on g} w_j``, with one weight per job: the optimum of the
    right-hand side of (16) when every such assignment is the placement of some schedule in the set. Returns the limit
    in the unit of the weights, or None where the search did not end within `nodes`.

    Depth first by falling weight; GPUs of equal load are interchangeable, states that were seen are cut, and so
    is every load that does not improve. Exponential.
    """
    order = sorted(range(len(gangs)), key=lambda j: (-weights[j], -gangs[j]))
    area = sum(g * w for g, w in zip(gangs, weights, strict=True))
    floor = max(max(weights), -(-area // gpus))
    loads = [0] * gpus
    for j in order:
        loads.sort()
        for g in range(gangs[j]):
            loads[g] += weights[j]
    best = max(loads)
    seen: set[tuple[int, tuple[int, ...]]] = set()
    looked_at = 0
    stack: list[Iterator[tuple[int, ...]]] = []
    state: tuple[int, ...] = (0,) * gpus
    if best > floor:
        stack.append(_choices(state, gangs[order[0]], weights[order[0]]))
    while stack and best > floor:
        following = next(stack[-1], None)
        if following is None:
            stack.pop()
            continue
        looked_at += 1
        if looked_at > nodes:
            return None
        depth = len(stack)
        if following[-1] >= best or (depth, following) in seen:
            continue
        if depth == len(order):
            best = following[-1]
            continue
        seen.add((depth, following))
        stack.append(_choices(following, gangs[order[depth]], weights[order[depth]]))
    return best


def _choices(loads: tuple[int, ...], gang: int, weight: int) -> Iterator[tuple[int, ...]]:
    """Every way to add `weight` to `gang` of the sorted `loads`, sorted; ways that look the same once."""
    values = sorted(set(loads))
    counts = [loads.count(value) for value in values]
    for taken in itertools.product(*(range(min(count, gang) + 1) for count in counts)):
        if sum(taken) == gang:
            result: list[int] = []
            for value, count, some in zip(values, counts, taken, strict=True):
                result += [value] * (count - some) + [value + weight] * some
            yield tuple(sorted(result))


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
    search = _new_search(instance, guess, case.info["lambda"])
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
