"""Algorithm 1 of paper 000: bisection on theta, a loop over kappa, what of it need not be run, what it tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from schedgap.formulations.common.instance import Json
from schedgap.formulations.common.numbers import exact
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import Integers, rate_table
from schedgap.formulations.rar_ddls.running import FAR, Workload, solution_of
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.rar_ddls import passes
from schedgap.heuristics.rar_ddls.estimates import Estimates
from schedgap.heuristics.rar_ddls.gpus import new_gpus
from schedgap.heuristics.rar_ddls.passes import Plan, run_pass
from schedgap.solvers.result import NO_DEADLINE, Deadline


@dataclass(frozen=True)
class Outcome:
    """A pass that went through.

    Attributes
    ----------
    theta, kappa : its limits; theta may be infinite
    makespan : slots, from the dynamics
    weight : W_max as a sum of weights
    run : the workload that holds the schedule
    """

    theta: float
    kappa: int
    makespan: int
    weight: int
    run: Workload


@dataclass(frozen=True)
class _Known:
    """How a pass with one kappa ends for every limit in [low, high) and every `beat` up to the one it had."""

    low: int
    high: int
    beat: int
    status: int
    outcome: Outcome | None


@dataclass
class Search:
    """Passes over theta and kappa, none of them run twice.

    Attributes
    ----------
    work, plan, estimates : what is to be scheduled
    policy : as in ``passes``
    literal : run every pass as printed, with none of the accelerations (for counting steps)
    deadline : looked at between the passes of :meth:`bisect`
    stopped : whether it ended a bisection
    passes_run : passes that were run
    attempts : how often Algorithms 2 and 3 looked for GPUs in them
    """

    work: Workload
    plan: Plan
    estimates: Estimates
    policy: int = passes.LEAST_LOADED
    literal: bool = False
    deadline: Deadline = NO_DEADLINE
    stopped: bool = False
    passes_run: int = 0
    attempts: list[int] = field(default_factory=lambda: [0, 0])
    _known: dict[int, list[_Known]] = field(default_factory=dict)

    def one_pass(self, theta: float, kappa: int, beat: int) -> Outcome | None:
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
        outcome = Outcome(theta, kappa, int(facts[passes.MAKESPAN]), weight, run) if status == passes.COMPLETE else None
        if not self.literal:
            high = int(facts[passes.HIGH])
            above = FAR + 1 if high == FAR else high
            self._known.setdefault(kappa, []).append(_Known(weight, above, beat, status, outcome))
        return outcome

    def bisect(self, largest: int, bisection: str, kappas: Sequence[int]) -> tuple[Outcome | None, list[list[int]]]:
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
        best: Outcome | None = None
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


def pass_facts(instance: RarDdlsInstance, guess: Estimates, outcome: Outcome | None) -> dict[str, Json] | None:
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
    instance: RarDdlsInstance, best: Outcome | None, info: dict[str, object], why_nothing: str
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
