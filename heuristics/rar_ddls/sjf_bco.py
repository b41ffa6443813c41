"""SJF-BCO, smallest job first with balanced contention and overhead: Algorithms 1 to 3 of paper 000.

``sjf-bco`` is the algorithm as published; ``sjf-bco+`` also compares one more pass, the probe, and has a proven ratio.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.common.options import options_of, parse_settings
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import Integers, rate_table
from schedgap.formulations.rar_ddls.running import FAR, Workload, build_workload, solution_of
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.common.variant import variant
from schedgap.heuristics.rar_ddls import passes
from schedgap.heuristics.rar_ddls.estimates import Estimates, estimates, impossible, require_gpu_arrays
from schedgap.heuristics.rar_ddls.loads import new_gpus
from schedgap.heuristics.rar_ddls.options import LargestTheta, Overestimate, Underestimate
from schedgap.heuristics.rar_ddls.passes import Plan, run_pass
from schedgap.solvers.result import NO_DEADLINE, Deadline


@dataclass(frozen=True)
class CompletedPass:
    """A pass that went through."""

    # theta, kappa: its limits; theta may be infinite
    theta: float
    kappa: int
    makespan: int  # slots, from the dynamics
    weight: int  # W_max as a sum of weights
    run: Workload  # the workload that holds the schedule


@dataclass(frozen=True)
class _KnownEnding:
    """How a pass with one kappa ends for every limit in [low, high) and every `beat` up to the one it had."""

    low: int
    high: int
    beat: int
    status: int
    outcome: CompletedPass | None


@dataclass
class Search:
    """Passes over theta and kappa, none of them run twice."""

    # work, plan, estimates: what is to be scheduled
    work: Workload
    plan: Plan
    estimates: Estimates
    policy: int = passes.LEAST_LOADED  # rule of placement, see ``passes``
    literal: bool = False  # run every pass as printed, with none of the accelerations (for counting steps)
    deadline: Deadline = NO_DEADLINE  # looked at between the passes of :meth:`bisect`
    stopped: bool = False  # whether it ended a bisection
    passes_run: int = 0  # passes that were run
    attempts: list[int] = field(default_factory=lambda: [0, 0])  # how often Algorithms 2 and 3 looked for GPUs in them
    _known: dict[int, list[_KnownEnding]] = field(default_factory=dict)

    def one_pass(self, theta: float, kappa: int, beat: int) -> CompletedPass | None:
        """The pass (theta, kappa), or None where it breaks off or its makespan is not below `beat`.

        An outcome that was known from another theta keeps that theta, and may have a makespan of `beat` or more.
        """
        limit = self.estimates.limit(theta)
        for known in self._known.get(kappa, ()):
            if known.low <= limit < known.high and (known.status != passes.ABANDONED or beat <= known.beat):
                return known.outcome
        run, gpus = self.work.another(), new_gpus(self.work)
        facts = np.zeros(5, dtype=np.int64)
        status = int(run_pass(run, self.plan, gpus, self.policy, kappa, limit, beat, self.literal, facts))
        self.passes_run += 1
        self.attempts[0] += int(facts[passes.ATTEMPTS_2])
        self.attempts[1] += int(facts[passes.ATTEMPTS_3])
        weight = int(facts[passes.LARGEST])
        outcome = (
            CompletedPass(theta, kappa, int(facts[passes.MAKESPAN]), weight, run) if status == passes.COMPLETE else None
        )
        if not self.literal:
            high = int(facts[passes.HIGH])
            above = FAR + 1 if high == FAR else high
            self._known.setdefault(kappa, []).append(_KnownEnding(weight, above, beat, status, outcome))
        return outcome

    def bisect(
        self, largest: int, bisection: str, kappas: Sequence[int]
    ) -> tuple[CompletedPass | None, list[list[int]]]:
        """Algorithm 1, lines 4 to 24, with T + 1 as the makespan of what is infeasible.

        Parameters
        ----------
        largest : T
        bisection : "improved" moves theta down when the makespan improved (as printed), "feasible" when
            some pass was feasible
        kappas : in the order in which they are tried; of equal makespans the first stays

        Returns
        -------
        The best pass, or None; and for each theta that was tried [theta, makespan], where the makespan is
        T + 1 unless the best one so far improved. At the deadline, the best so far.
        """
        best: CompletedPass | None = None
        makespan = largest + 1
        probes = []
        left, right = 1, largest
        while left <= right:
            theta = (left + right) // 2
            improved = feasible = False
            for kappa in kappas:
                if self.deadline.passed:
                    self.stopped = True
                    break
                beat = makespan if feasible or bisection == "improved" else largest + 1
                outcome = self.one_pass(theta, kappa, beat)
                if outcome is None or outcome.makespan > largest:
                    continue
                feasible = True
                # A pass that is known already was compared when it was run: it is never better than the best.
                if outcome.makespan < makespan:
                    best, makespan, improved = outcome, outcome.makespan, True
            if self.stopped:
                if improved:
                    probes.append([theta, makespan])
                break
            probes.append([theta, makespan if improved else largest + 1])
            if improved if bisection == "improved" else feasible:
                right = theta - 1
            else:
                left = theta + 1
        return best, probes


def make_plan(work: Workload, weights: Integers, order: Integers, scale: float, draws: int = 0, seed: int = 0) -> Plan:
    """What all passes of a search have in common.

    Parameters
    ----------
    weights : (J,) what a job adds to the load of its GPUs
    order : (J,) jobs in the order in which they are taken
    scale : lambda of Algorithm 3
    draws, seed : how many random numbers, and their seed
    """
    every = work.jobs[:-1]
    gangs, best, jobs, total = every["gang"], every["best"], every.size, int(work.servers["gpus"].sum())
    longest, area = np.zeros(jobs + 1, dtype=np.int64), np.zeros(jobs + 1, dtype=np.int64)
    longest[:jobs] = np.maximum.accumulate(best[order][::-1])[::-1]
    area[:jobs] = np.cumsum((gangs * best)[order][::-1])[::-1]
    row = np.zeros(jobs + 1, dtype=np.int64)
    np.cumsum(gangs, out=row[1:])
    factor: Fraction = exact(scale)
    need = {int(g): min(total, -(-factor.numerator * int(g) // factor.denominator)) for g in np.unique(gangs)}
    return Plan(
        order=order,
        weights=weights,
        need=np.array([need[g] for g in gangs.tolist()], dtype=np.int64),
        longest=longest,
        area=area,
        row=row,
        draws=np.random.default_rng(seed).random(draws),
    )


def base_info(instance: RarDdlsInstance, largest: int | None, u: float, l: float) -> dict[str, Json]:  # noqa: E741
    """What holds before an algorithm runs: T, u, l, N and n_g."""
    return {
        "T": instance.horizon if largest is None else largest,
        "u": u,
        "l": l,
        "N": instance.total_gpus,
        "n_g": instance.largest_gang,
        "returned": None,
    }


def pass_facts(instance: RarDdlsInstance, guess: Estimates, outcome: CompletedPass | None) -> dict[str, Json] | None:
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
    realised = (outcome.run.jobs["end"] - outcome.run.jobs["start"])[:-1] + 1
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
    instance: RarDdlsInstance, best: CompletedPass | None, info: dict[str, object], why_nothing: str
) -> HeuristicRun:
    """The run of a heuristic whose best pass is `best`.

    The solution is None where there is no such pass or it ends after the horizon; ``info["reason"]`` says so.
    ``info["mean_jct"]`` is the mean completion slot: every job is there in slot 1.
    """
    if best is None:
        return HeuristicRun(None, {**info, "reason": why_nothing})
    if best.makespan > instance.horizon:
        reason = f"the best schedule found ends in slot {best.makespan}, the horizon is {instance.horizon}"
        return HeuristicRun(None, {**info, "reason": reason})
    return HeuristicRun(solution_of(instance, best.run), {**info, "mean_jct": float(best.run.jobs["end"][:-1].mean())})


def sjf_bco(
    instance: RarDdlsInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    T: LargestTheta = None,
    u: Overestimate = 1.0,
    l: Underestimate = 1.0,  # noqa: E741 (the paper's letter)
    lambda_: Annotated[float, Field(ge=1, description="lambda_j of Algorithm 3, for every job")] = 1.0,
    bisection: Annotated[Literal["improved", "feasible"], Field(description="what moves theta down")] = "improved",
    kappa: Annotated[int | None, Field(ge=1, description="only this kappa instead of 1..n_g")] = None,
    rho_hat: Annotated[
        Literal["best", "worst"] | Sequence[int] | Mapping[str, int],
        Field(description="estimated durations: alone, or on the most servers in the worst company"),
    ] = "best",
    probe: Annotated[
        bool, Field(description="also compare the pass with theta = infinity and kappa = n_g, as sjf-bco+ does")
    ] = False,
) -> HeuristicRun:
    """Schedule by SJF-BCO.

    Jobs are taken by (G_j, input order). The head job waits until enough idle GPUs have a load U_g with
    ``U_g + rho_hat_j / u <= theta``: of the whole cluster for G_j <= kappa (Algorithm 2), of the servers with
    the least average load and at least lambda G_j GPUs otherwise (Algorithm 3); it takes those of least
    load, ties by index. theta is bisected in 1..T and every kappa in 1..n_g is tried; real durations come
    from the dynamics.

    Guarantee with `probe` (ours, proven in docs/proofs-rar-ddls.md): with r_j the realised and d_j the best durations
    of the probe, and phi = max_j r_j / d_j,
    ``makespan <= (2 - 1/N) max(sum_j G_j r_j / N, max_j r_j) <= (2 - 1/N) phi T*``. Theorem 5 of the paper claims
    ``n_g phi (u/l) T*`` without it, which is refuted. Raises InputError: an option out of range, or an instance too
    large for arrays over GPUs.

    Parameters
    ----------
    deadline : looked at between passes; it ends the bisection, a probe runs even then, so its guarantee stays
    T : largest theta, and the largest makespan that counts; the horizon where not given
    u, l : error of the estimates, u >= 1 and l in (0, 1]; l enters the guarantees only
    lambda_ : lambda >= 1 of Algorithm 3
    bisection : "improved" moves theta down when the makespan improved, as printed, "feasible" when some pass was
        feasible
    kappa : only this one, also for the probe; below n_g the guarantee does not hold
    rho_hat : estimated durations: "best", contention-free, "worst", on the most servers under the most contention,
        or slots per job, in input order or by id
    probe : compare the pass with theta = infinity and kappa = n_g as well (ours, not in the paper)

    Returns
    -------
    HeuristicRun; the solution is None where nothing was found within T and the horizon (``info["reason"]``).
    ``info``: T, u, l, lambda, bisection, N, n_g, rho_hat; ``theta_probes`` as [theta, makespan] (T + 1: not
    improved); ``bisected``, ``probe`` as in :func:`pass_facts`, None where there is none; ``returned``, which it is,
    and of it theta_tilde, kappa, W_max, makespan and phi; ``probe_within_T``; ``passes_run``;
    ``stopped`` = "time limit" where the deadline ended the bisection.

    Notes
    -----
    Without `probe` the schedule is that of the algorithm as printed, read as the table in docs/rar-ddls.md says. Not
    run: kappas between two job sizes, passes that cannot beat the best one, passes known from another theta. The
    printed algorithm takes O(n_g J N log N log T) (Theorem 6 of the paper).
    """
    given = {"T": T, "u": u, "l": l, "lambda": lambda_, "bisection": bisection, "kappa": kappa}
    parse_settings(
        options_of(sjf_bco), {**given, **({"rho_hat": rho_hat} if isinstance(rho_hat, str) else {})}, "sjf-bco"
    )
    info = base_info(instance, T, u, l)
    info.update({"lambda": lambda_, "bisection": bisection})
    reason = impossible(instance)
    if reason is not None:
        return HeuristicRun(None, {**info, "reason": reason})
    require_gpu_arrays(instance)
    guess = estimates(instance, rho_hat, u)
    work = build_workload(instance)
    order = np.argsort(work.jobs["gang"][:-1], kind="stable").astype(np.int64)
    search = Search(work, make_plan(work, guess.weights, order, lambda_), guess, deadline=deadline)
    # Between two job sizes every kappa means the same; the first of them stays, as in a loop over all.
    kappas = sorted({1, *work.jobs["gang"][:-1].tolist()}) if kappa is None else [kappa]
    bisected, probes = search.bisect(info["T"], bisection, kappas)
    unlimited = search.one_pass(math.inf, kappas[-1], FAR) if probe else None
    if unlimited is not None:
        # It may have been known from a pass whose theta did not bind.
        unlimited = replace(unlimited, theta=math.inf)
    best, returned = bisected, "bisected" if bisected is not None else None
    if unlimited is not None and unlimited.makespan < (info["T"] + 1 if best is None else best.makespan):
        best, returned = unlimited, "probe"
    facts = {"bisected": pass_facts(instance, guess, bisected), "probe": pass_facts(instance, guess, unlimited)}
    info.update(
        {
            "rho_hat": list(guess.rho_hat),
            "theta_probes": probes,
            "passes_run": search.passes_run,
            **facts,
            "probe_compared": probe and kappas[-1] >= instance.largest_gang,
            "probe_within_T": unlimited is not None and unlimited.makespan <= info["T"],
            "returned": returned,
        }
    )
    if search.stopped:
        info["stopped"] = "time limit"
    if returned is not None:
        chosen_pass = facts[returned] or {}
        info["theta_tilde"] = chosen_pass["theta"]
        info.update({name: chosen_pass[name] for name in ("kappa", "W_max", "makespan", "phi")})
    why = f"no pass ends within T = {info['T']} slots"
    if search.stopped:
        why += " before the time limit"
    if probe and unlimited is None:
        why += "; without a limit on loads, rings stall each other for ever"
    return finished(instance, best, info, why)


sjf_bco_plus = variant(
    sjf_bco,
    "sjf-bco+",
    "SJF-BCO repaired: the probe, the pass with theta = infinity and kappa = n_g, is compared too; "
    "``makespan <= (2 - 1/N) phi T*``, phi = max_j r_j / d_j over the probe's durations. See :func:`sjf_bco`.",
    fixed={"probe": True},
)
