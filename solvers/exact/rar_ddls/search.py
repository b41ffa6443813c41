"""Local search of method ``cp``: annealed greedy schedules, for an upper bound before and between the models.

Idea: build greedy schedules by the thousand and simulate each with its contention. Source: simulated annealing over
orders and rules. It proves nothing: jobs start only in slot 1 or after completions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.formulations.rar_ddls.running import build_workload, placements
from schedgap.formulations.rar_ddls.schedule import (
    CROSS_ALONE,
    CROSS_ANY,
    NEVER_CROSS,
    RULES,
    Choices,
    scratch_for,
    uniform_choices,
)
from schedgap.solvers.exact.rar_ddls.annealing import anneal
from schedgap.solvers.exact.rar_ddls.best_schedule import BestSchedule
from schedgap.solvers.result import NO_DEADLINE, Deadline

_LEG = 10**8
"""Size of one uninterrupted leg, in units of J^2 S; about a tenth of a second."""


_LONGEST_RUN = 20_000


_MANY_JOBS = 2_000


_LARGEST_TABLE = 4 * 10**7


_COST = 1.5e-7
"""Work of one schedule in `refine`, about its seconds, over the number of jobs."""


_FIRST = 250
"""Schedules of its first annealing, over the number of jobs; each pair of further ones takes twice as many."""


_COOL = 0.015
"""Heat it begins with, in targets."""


_LOOK = 0.1
"""Work after which it looks at the clock."""


_UNLIMITED = 2.0
"""Work it does without any limit."""


class _Plan(NamedTuple):
    """How an annealing goes."""

    leg: int  # schedules after which the clock is looked at
    heat: float  # at first, in targets
    towards: float  # where the target lies between the bound (0) and the best makespan less one (1)
    source: str = ""  # who is told to have found a schedule
    ends: Deadline = NO_DEADLINE  # when it ends at the latest


class LocalSearch:
    """Annealing over job orders and placement rules; every schedule found is run and checked for real.

    Jobs start in slot 1 or after completions only, so the optimum may not be among them; it proves nothing.

    Parameters
    ----------
    seed : seed of all randomness; runs that build the same number of schedules are equal
    """

    def __init__(self, instance: RarDdlsInstance, seed: int) -> None:
        table = rate_table(instance)
        self._rng = np.random.default_rng(seed)
        self._duration = table.best_duration.astype(np.float64)
        self._gpus = table.gpus
        self._jobs, self._servers = table.gpus.size, len(instance.servers)
        width = int(min(table.n_max, max(8, 2 * int(table.fewest_servers.max()))))
        depth = int(min(table.p_max, 16))
        self.too_large = self._jobs * (width + 1) * (depth + 1) > _LARGEST_TABLE
        if self.too_large:
            return
        self._work = build_workload(instance, width, depth)
        self._best = self._work.another()
        self._scratch = scratch_for(self._work)
        self._size = self._jobs * self._jobs * self._servers

    def run(self, incumbent: BestSchedule, effort: float) -> None:
        """Search until `effort` is spent, the bound is met or the time is up.

        Parameters
        ----------
        incumbent : receives every better schedule
        effort : roughly tenths of a second: 10^8 / (J^2 S) schedules, but at most 1000 J, for each

        Notes
        -----
        Compiled; the clock is looked at about ten times a second (once per schedule beyond thousands of jobs).
        """
        if self.too_large:
            return
        remaining = max(1, min(int(effort * _LEG / self._size), int(effort * 1000 * self._jobs)))
        plan = _Plan(max(1, _LEG // self._size), heat=0.1, towards=1.0)
        while remaining > 0 and not incumbent.finished():
            remaining -= max(1, self._annealed(incumbent, self._random_choices(), min(remaining, _LONGEST_RUN), plan))

    def refine(self, incumbent: BestSchedule, share: float) -> None:
        """Anneal for makespans half way between the bound and the best one, in a share of what is left.

        Each annealing begins where the last one ended, the first with the largest jobs, none of which crosses. Only
        the first has the bound for a target: with it many jobs end a little late and few on time, and with the best
        makespan less one nothing drives them far.

        Parameters
        ----------
        incumbent : with a schedule and a bound; receives every better schedule, says what is left, counts the work
        share : share of the remaining seconds or work
        """
        if self.too_large:
            return
        one = _COST * self._jobs
        work, seconds = incumbent.work_left(share), incumbent.seconds_left(share)
        if work is None:
            work = _UNLIMITED if seconds is None else math.inf
        ends = NO_DEADLINE if seconds is None else NO_DEADLINE.capped(seconds)
        plan = _Plan(max(1, int(_LOOK / one)), _COOL, 0.0, "orders", ends)
        order = np.argsort(-self._duration * np.sqrt(self._gpus), kind="stable")
        choices, tried, turn = uniform_choices(self._work, order, NEVER_CROSS, 0), 0, 0
        while tried * one < work and not ends.passed and not incumbent.finished():
            total = int(min(_FIRST * self._jobs * 2 ** (turn // 2), max(1, work / one - tried)))
            built = self._annealed(incumbent, choices, total, plan._replace(towards=0.5 if turn else 0.0))
            incumbent.work += one * built
            tried, turn = tried + max(1, built), turn + 1
        incumbent.info["orders tried"] = tried

    def _annealed(self, incumbent: BestSchedule, choices: Choices, total: int, plan: _Plan) -> int:
        """One annealing of `total` schedules from `choices`, which change in place; how many were built."""
        step, cost, target = 0, math.inf, -1
        while step < total and not incumbent.finished() and not plan.ends.passed:
            low, best, before = incumbent.lower, incumbent.makespan, target
            target = max(low, 1 if best is None else min(best - 1, low + int(plan.towards * (best - low))))
            limit = max(2 * target, incumbent.ceiling) if best is not None else 2**60
            leg = (step, min(total - step, plan.leg), total)
            cost = cost if target == before else math.inf
            shortest, built, cost = anneal(
                self._work, choices, self._scratch, self._best, target, limit, leg, plan.heat * target, cost, self._rng
            )
            step += built
            if 0 <= shortest <= incumbent.ceiling:
                start = self._best.jobs["start"][:-1].tolist()
                incumbent.propose_schedule(start, placements(self._best), plan.source)
            if not math.isfinite(cost):
                break
        return step

    def _random_choices(self) -> Choices:
        rng, jobs = self._rng, self._jobs
        power = 0.5 * int(rng.integers(3))
        key = self._duration * self._gpus.astype(np.float64) ** power * rng.uniform(0.8, 1.25, jobs)
        order = np.argsort(-key, kind="stable")
        if jobs > _MANY_JOBS:  # waiting for a server is quick to decide, and near the bound at such sizes
            cross = np.full(jobs, NEVER_CROSS)
        else:
            cross = rng.choice([NEVER_CROSS, CROSS_ALONE, CROSS_ANY], jobs)
        rule = rng.integers(0, RULES, jobs)
        return uniform_choices(self._work, order, cross, rule)
