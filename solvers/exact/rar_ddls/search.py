"""The best schedule and bound of one instance of rar-ddls, and the local search that improves it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from schedgap.formulations.common.compiled import njit_cached, njit_part
from schedgap.formulations.common.instance import Solution, parsed
from schedgap.formulations.common.numbers import MINIMISE
from schedgap.formulations.rar_ddls.bounds import is_infeasible, lower_bound
from schedgap.formulations.rar_ddls.check import check
from schedgap.formulations.rar_ddls.dynamics import simulate
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance, RarDdlsSolution
from schedgap.formulations.rar_ddls.job_options import JobOptions
from schedgap.formulations.rar_ddls.rates import Integers, rate_table
from schedgap.formulations.rar_ddls.running import Workload, build_workload, placements
from schedgap.formulations.rar_ddls.schedule import (
    ANY_RING,
    CROSS_ALONE,
    CROSS_ANY,
    NEVER_CROSS,
    RULES,
    Choices,
    Scratch,
    list_schedule,
    scratch_for,
    uniform_choices,
)
from schedgap.solvers.incumbent import Incumbent, Number
from schedgap.solvers.result import NO_DEADLINE, Deadline, SolveOptions

# The best schedule and bound of one instance of rar-ddls while methods ``cp`` and ``lns`` work on it.

Placement = Sequence[Mapping[int, int]]
"""By job position: GPUs by server position."""


class BestSchedule(Incumbent):
    """The incumbent, whose objective is the makespan in slots; there is none beyond the horizon.

    Parameters
    ----------
    instance, options : what is solved
    """

    def __init__(self, instance: RarDdlsInstance, options: SolveOptions) -> None:
        super().__init__(MINIMISE, options, partial(parsed(check, RarDdlsSolution), instance), whole=True)
        self.instance = instance
        self.horizon = instance.horizon
        self._jobs = [job.id for job in instance.jobs]
        self._servers = [server.id for server in instance.servers]

    def begin(self) -> bool:
        """The simple bound, and whether there can be a schedule at all."""
        reason = is_infeasible(self.instance)
        if reason is None:
            self.tighten(int((self.stage("bound") and lower_bound(self.instance)) or 1))
        else:
            self.impossible(reason)
        return reason is None

    @property
    def makespan(self) -> int | None:
        """The objective."""
        return None if self.objective is None else int(self.objective)

    @property
    def lower(self) -> int:
        """The bound; 0 before there is one."""
        return 0 if self.bound is None else int(self.bound)

    @property
    def ceiling(self) -> int:
        """The makespan that a schedule worth finding has at most: the best known less one, or the horizon."""
        return self.horizon if self.objective is None else int(self.objective) - 1

    def tighten(self, bound: Number | None, *, of_better: bool = True) -> bool:
        """Keep a lower bound on the makespan of every schedule that is better than the incumbent."""
        better = super().tighten(bound, of_better=of_better)
        if self.objective is None and self.lower > self.horizon:
            self.infeasible = True
        return better

    def propose_schedule(self, start: Sequence[int], placement: Placement, source: str = "") -> int | None:
        """As :meth:`propose`, with first slots (counted from 1) and placements by position."""
        solution = self.as_solution(start, placement)
        makespan = simulate(self.instance, solution["start"], solution["placement"]).makespan
        if makespan is None or makespan > self.ceiling:
            return None
        objective = self.propose(solution, source)
        return None if objective is None else int(objective)

    def as_solution(self, start: Sequence[int], placement: Placement) -> Solution:
        """The bare solution object."""
        return {
            "start": {name: int(slot) for name, slot in zip(self._jobs, start, strict=True)},
            "placement": {
                name: {self._servers[s]: int(gpus) for s, gpus in sorted(placed.items()) if gpus}
                for name, placed in zip(self._jobs, placement, strict=True)
            },
        }


# What a job needs, in slots by how it runs: whole-number inequalities that every schedule satisfies.

MOST_LABELS = 3
"""Grades of contention that are distinguished; the last stands for all heavier ones."""

_LONGEST_HULL = 600
_LARGEST_FIGURE = 10**8


@dataclass(frozen=True)
class Need:
    """One inequality of job `job`: sum over labels of slots * value >= amount."""

    job: int  # position
    values: tuple[int, ...]  # by label: 0 on one server, i = 1, 2, ... across servers in grade i of contention
    amount: int  # right-hand side


def contention_grades(instance: RarDdlsInstance) -> list[int]:
    """The smallest p of every grade of contention: 1, and each p at which some job's rate drops; three at most.

    Grades are merged upwards: the rate of the smallest p, which is the highest, stands for the whole grade.
    """
    table = rate_table(instance)
    rates = table.rates(
        np.arange(table.gpus.size)[:, None],
        np.maximum(2, table.fewest_servers)[:, None],
        np.arange(table.p_max + 1)[None, :],
    )
    drops = (np.flatnonzero((rates[:, 2:] < rates[:, 1:-1]).any(axis=0)) + 2).tolist()
    return [1, *drops[: MOST_LABELS - 1]]


def job_needs(options: Sequence[JobOptions], grades: Sequence[int]) -> list[Need]:
    """Inequalities for every job that can complete; at least one each.

    With rates v_1 >= v_2 >= ... of the grades, whole numbers k_i of slots with sum v_i k_i >= F satisfy every
    inequality of the hull of such (k_1, k_2), lifted to k_3; a job on one server takes exactly d slots. Both are
    joined into one inequality that holds whichever the job does.
    """
    return [need for j, option in enumerate(options) for need in _needs(j, option, grades)]


def _needs(job: int, option: JobOptions, grades: Sequence[int]) -> list[Need]:
    d = option.local_duration if option.local else 0
    if not option.modes:
        return [Need(job, (1,) + (0,) * len(grades), d)] if d else []
    best = [mode for mode in option.modes if mode.spread_class == 0]
    rates = [max((m.rate for m in best if m.level >= p), default=best[-1].rate) for p in grades]
    shortest = min(option.shortest, d) if d else option.shortest
    needs = [Need(job, (1,) * (1 + len(grades)), shortest)]
    for values, amount in _hull(option.iterations, rates):
        if d:
            joined = Need(job, (amount, *(value * d for value in values)), amount * d)
        else:
            joined = Need(job, (0, *values), amount)
        if max(joined.values) <= _LARGEST_FIGURE >= joined.amount:
            needs.append(joined)
    return list(dict.fromkeys(needs))


def _hull(iterations: int, rates: list[int]) -> list[tuple[tuple[int, ...], int]]:
    """(values, amount) with values . k >= amount for all whole k >= 0 with rates . k >= iterations."""
    longest = -(-iterations // min((rate for rate in rates if rate), default=1))
    if longest > _LONGEST_HULL or len(rates) == 1:
        d = -(-iterations // rates[0])
        plain = (tuple(rates), iterations)
        return [((1,), d)] if len(rates) == 1 else [plain]
    slow = rates[1]
    points = []
    for second in range((-(-iterations // slow) if slow else 0) + 1):
        points.append((max(0, -(-(iterations - slow * second) // rates[0])), second))
    corners: list[tuple[int, int]] = []
    for point in sorted(points):
        while len(corners) >= 2 and _turn(corners[-2], corners[-1], point) <= 0:
            corners.pop()
        corners.append(point)
    edges = [(a[1] - b[1], b[0] - a[0]) for a, b in pairwise(corners)]
    found = []
    for (first, second), (x, y) in zip(edges, corners, strict=False):
        amount = first * x + second * y
        if first >= 0 and second >= 0 and amount > 0:
            found.append(_lifted(iterations, rates, (first, second), amount))
    if not found:  # one corner: contention stalls the job, so that only slots without it count
        found = [((1,) + (0,) * (len(rates) - 1), corners[0][0])]
    return found


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _lifted(iterations: int, rates: list[int], values: tuple[int, int], amount: int) -> tuple[tuple[int, ...], int]:
    """Give slots of the third grade the smallest value that keeps the inequality valid."""
    if len(rates) == 2:
        return values, amount
    scale = max(1, 1000 // amount)
    first, second, amount = values[0] * scale, values[1] * scale, amount * scale
    third = 0
    if rates[2]:
        k = np.arange(1, -(-iterations // rates[2]) + 1)
        remaining = np.maximum(0, iterations - rates[2] * k)[:, None]
        seconds = np.arange(-(-iterations // rates[1]) + 1)[None, :]
        firsts = np.maximum(0, -(-(remaining - rates[1] * seconds) // rates[0]))
        least = (first * firsts + second * seconds).min(axis=1)
        third = int(np.max(-(-(amount - least) // k), initial=0))
    return (first, second, max(0, third)), amount


# Local search of method ``cp``: annealed greedy schedules, for an upper bound before and between the models.

# Annealing over the choices that a greedy schedule of rar-ddls is built from; compiled.

NEAR = 15
"""Places of the order over which half of the exchanges and moves go at most: the rest of the schedule stays alike."""


@njit_part
def _change(choices: Choices, servers: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """One random change; returns what :func:`_undo` needs."""
    jobs = choices.order.size
    a = int(rng.integers(0, jobs))
    b = int(rng.integers(0, jobs))
    if rng.random() < 0.5:
        b = min(jobs - 1, max(0, a + int(rng.integers(-NEAR, NEAR + 1))))
    kind = int(rng.integers(0, 10))
    old = 0
    if kind < 3:
        choices.order[a], choices.order[b] = choices.order[b], choices.order[a]
    elif kind < 6:
        _move(choices.order, a, b)
    elif kind == 6:
        old = choices.cross[a]
        choices.cross[a] = rng.integers(0, 3)
    elif kind == 7:
        old = choices.rule[a]
        choices.rule[a] = rng.integers(0, RULES)
    elif kind == 8:
        old = choices.holds[a]
        choices.holds[a] = 1 - old
    else:
        old = choices.likes[a]
        choices.likes[a] = rng.integers(0, servers) if rng.random() < 0.6 else servers
    return kind, a, b, old


@njit_part
def _move(order: Integers, source: int, target: int) -> None:
    job = order[source]
    step = 1 if source < target else -1
    for k in range(source, target, step):
        order[k] = order[k + step]
    order[target] = job


@njit_part
def _undo(choices: Choices, kind: int, a: int, b: int, old: int) -> None:
    if kind < 3:
        choices.order[a], choices.order[b] = choices.order[b], choices.order[a]
    elif kind < 6:
        _move(choices.order, b, a)
    elif kind == 6:
        choices.cross[a] = old
    elif kind == 7:
        choices.rule[a] = old
    elif kind == 8:
        choices.holds[a] = old
    else:
        choices.likes[a] = old


@njit_part
def _excess(work: Workload, makespan: int, target: int) -> float:
    """GPU slots after `target`, and a little for the makespan itself: 0 once the target is met."""
    total = 0.5 * max(0, makespan - target)
    for j in range(work.jobs.size - 1):
        if work.jobs[j].end > target:
            total += work.jobs[j].gang * (work.jobs[j].end - target)
    return total


@njit_cached
def anneal(
    work: Workload,
    choices: Choices,  # where to begin; changed in place, the last accepted ones at the end
    scratch: Scratch,
    best: Workload,  # receives the schedule of smallest makespan
    target: int,
    limit: int,  # schedules longer than this are refused
    leg: tuple[int, int, int],  # first step, steps of this leg, steps of the whole run; a step builds one schedule
    heat: float,  # temperature of the first step in GPU slots, falling quadratically to 0
    # cost of `choices`; infinity where they were not built yet, and step 0 then leaves them as they are
    current: float,
    rng: np.random.Generator,
) -> tuple[int, int, float]:
    """A leg of annealing towards a makespan of `target` slots; stops as soon as it is met.

    Returns (smallest makespan of this leg or -1, schedules built, cost of `choices`).
    """
    shortest = -1
    first, steps, total = leg
    for step in range(first, first + steps):
        kind, a, b, old = -1, 0, 0, 0
        if step > 0:
            kind, a, b, old = _change(choices, work.servers.size - 1, rng)
        makespan = list_schedule(work, choices, scratch, limit, ANY_RING)
        accepted = False
        if makespan >= 0:
            if shortest < 0 or makespan < shortest:
                shortest = makespan
                best.jobs[:] = work.jobs
                best.entries[:] = work.entries
                if shortest <= target:
                    return shortest, step + 1 - first, current
            cost = _excess(work, makespan, target)
            temperature = heat * (1 - step / total) ** 2 + 1e-9
            if cost <= current or rng.random() < math.exp((current - cost) / temperature):
                current = cost
                accepted = True
        if not accepted and step > 0:
            _undo(choices, kind, a, b, old)
    return shortest, steps, current


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
        share : of the seconds or the work that are left
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
