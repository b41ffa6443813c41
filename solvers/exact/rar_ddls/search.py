"""Local search of method ``cp``: annealed greedy schedules, for an upper bound before and between the models."""

from __future__ import annotations

import math

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
from schedgap.solvers.exact.rar_ddls.incumbent import BestSchedule

_LEG = 10**8
"""Size of one uninterrupted leg, in units of J^2 S; about a tenth of a second."""
_LONGEST_RUN = 20_000
_MANY_JOBS = 2_000
_LARGEST_TABLE = 4 * 10**7


class LocalSearch:
    """Annealing over job orders and placement rules; every schedule found is run and checked for real.

    Jobs start in slot 1 or after completions only, so the optimum may not be among them; it proves nothing.

    Parameters
    ----------
    instance : the instance
    seed : of all randomness; runs that build the same number of schedules are equal
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
        left = max(1, min(int(effort * _LEG / self._size), int(effort * 1000 * self._jobs)))
        while left > 0 and not incumbent.finished():
            choices = self._random_choices()
            total = min(left, _LONGEST_RUN)
            step, cost = 0, math.inf
            while step < total and not incumbent.finished():
                leg = (step, min(total - step, max(1, _LEG // self._size)), total)
                target = max(incumbent.lower, 1 if incumbent.makespan is None else incumbent.makespan - 1)
                limit = max(2 * target, incumbent.ceiling) if incumbent.makespan is not None else 2**60
                shortest, built, cost = anneal(
                    self._work,
                    choices,
                    self._scratch,
                    self._best,
                    target,
                    limit,
                    leg,
                    0.1 * target,
                    cost,
                    self._rng,
                )
                step += built
                if 0 <= shortest <= incumbent.ceiling:
                    self._propose(incumbent)
                if not math.isfinite(cost):
                    break
            left -= max(1, step)

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

    def _propose(self, incumbent: BestSchedule) -> None:
        incumbent.propose_schedule(self._best.jobs["start"][:-1].tolist(), placements(self._best))
