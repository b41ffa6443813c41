"""Method ``hadar-rounds``: Algorithms 1 and 2 of paper 002, in a reading that schedules something.

As printed the dynamic program keeps the cheaper of two choices, so the empty set, which costs nothing, is its
optimum, and one job without an allocation ends the recursion for all later ones. Here the sum of payoffs is
maximised, over taking a job with its best allocation or not, by memoised recursion up to a number of jobs, and
greedily by payoff per worker beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from schedgap.formulations.common.compiled import njit_cached
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.simulate import (
    Overhead,
    Policy,
    RestartDelay,
    State,
    always,
    bottleneck,
    cheapest,
    cost_on_one,
    never,
    refuse_long_delay,
    run_of,
    simulate,
)
from schedgap.solvers.result import NO_DEADLINE, Deadline

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@njit_cached
def prices(free: Ints, capacity: Ints, low: Floats, high: Floats) -> Floats:  # pragma: no cover - compiled
    """(H, R) eq. (5): U_min (U_max / U_min)^(gamma / c); 0 where there is no device."""
    machines, kinds = free.shape
    price = np.zeros((machines, kinds))
    for h in range(machines):
        for r in range(kinds):
            if capacity[h, r] > 0 and low[r] > 0:
                used = (capacity[h, r] - free[h, r]) / capacity[h, r]
                price[h, r] = low[r] * (high[r] / low[r]) ** used
    return price


@njit_cached
def worth(
    left: int, step: int, utility: Floats, slot: int, arrival: int, density: bool
) -> float:  # pragma: no cover - compiled
    """The value of running this round at a rate that is then kept: U(f), or U(f) over the rounds needed.

    `utility` is a row of numbers, see ``Worth.row``.
    """
    if step <= 0:
        return 0.0
    rounds = -(-left // step)
    finish = slot + rounds - 1
    kind, scale, length, whole, part, limit, came, earliest, horizon = utility
    if finish < earliest or finish > horizon:
        return 0.0
    slots = finish - came + 1
    value: float = scale
    if kind == 0:
        value = scale / (slots * length)
    elif kind == 1:
        value = 0.0 if slots > whole else scale * ((whole - slots) + part) / limit
    return value / rounds if density else value


@njit_cached
def find_alloc(
    free: Ints,
    price: Floats,
    workers: int,
    type_step: Ints,
    left: int,
    utility: Floats,
    slot: int,
    arrival: int,
    density: bool,
    communication: float,
) -> tuple[float, Ints]:  # pragma: no cover - compiled
    """FIND_ALLOC: the best payoff over bottleneck levels, on one machine or spread, and its devices (H, R)."""
    machines, kinds = free.shape
    best, chosen = 0.0, np.zeros((machines, kinds), dtype=np.int64)
    found = False
    for kind in range(kinds):  # every distinct rate is a level
        level = type_step[kind]
        if level <= 0:
            continue
        repeated = False
        for earlier in range(kind):
            if type_step[earlier] == level:
                repeated = True
        if repeated:
            continue
        usable = type_step >= level
        # on one machine: the cheapest that holds the whole gang
        packed, packed_cost = -1, np.inf
        for machine in range(machines):
            cost = cost_on_one(free, price, usable, workers, machine)
            if cost < packed_cost:
                packed, packed_cost = machine, cost
        for attempt in range(0 if packed >= 0 else 1, 2):
            machine = packed if attempt == 0 else -1
            taken, cost = cheapest(free, price, usable, workers, machine)
            if cost == np.inf:
                continue
            if machine < 0:
                spread = 0
                for h in range(machines):
                    if taken[h].sum() > 0:
                        spread += 1
                if spread > 1:
                    cost += communication
            value = worth(left, bottleneck(taken, type_step), utility, slot, arrival, density)
            payoff = value - cost
            if value > 0 and payoff > 0 and (not found or payoff > best + 1e-15 * abs(best)):
                best, chosen, found = payoff, taken, True
    return (best if found else -np.inf), chosen


@njit_cached
def greedy(
    jobs: Ints,
    free: Ints,
    capacity: Ints,
    low: Floats,
    high: Floats,
    workers: Ints,
    type_steps: Ints,
    left: Ints,
    utilities: Floats,
    slot: int,
    arrivals: Ints,
    density: bool,
    communication: float,
) -> tuple[Ints, Ints]:  # pragma: no cover - compiled
    """Take the job of the largest payoff per worker, again and again; (jobs taken, their devices).

    Prices only rise and devices only go while jobs are taken, so payoffs only fall: a payoff computed earlier is
    an upper bound, and only the job that looks best is computed again.
    """
    count = len(jobs)
    machines, kinds = free.shape
    taken_jobs = np.empty(count, dtype=np.int64)
    grids = np.zeros((count, machines, kinds), dtype=np.int64)
    taken = 0
    score = np.full(count, -np.inf)
    age = np.zeros(count, dtype=np.int64)
    held = np.zeros((count, machines, kinds), dtype=np.int64)
    price = prices(free, capacity, low, high)
    for i in range(count):
        j = jobs[i]
        payoff, held[i] = find_alloc(
            free, price, workers[j], type_steps[j], left[j], utilities[j], slot, arrivals[j], density, communication
        )
        score[i] = payoff / workers[j]
    while True:
        i = int(np.argmax(score))
        if score[i] == -np.inf:
            break
        j = jobs[i]
        if age[i] == taken:
            free -= held[i]
            grids[taken] = held[i]
            taken_jobs[taken] = j
            taken += 1
            score[i] = -np.inf
            price = prices(free, capacity, low, high)
            continue
        payoff, held[i] = find_alloc(
            free, price, workers[j], type_steps[j], left[j], utilities[j], slot, arrivals[j], density, communication
        )
        score[i] = payoff / workers[j]
        age[i] = taken
    return taken_jobs[:taken], grids[:taken]


@dataclass
class Market:
    """The jobs as arrays, and the prices' ends in a round."""

    data: ProgressTables
    # workers, arrivals: (J,)
    workers: Ints
    arrivals: Ints
    type_steps: Ints  # (J, R)
    utilities: Floats  # (J, 9) in closed form, see ``Worth.row``
    density: bool
    communication: float
    recursions: int = 0  # states of all recursions so far

    @classmethod
    def of(cls, data: ProgressTables, density: bool, communication: float) -> Market:
        """The market of an instance's tables."""
        return cls(
            data,
            np.array([job.workers for job in data.jobs], dtype=np.int64),
            np.array([job.arrival for job in data.jobs], dtype=np.int64),
            np.array([job.type_step for job in data.jobs], dtype=np.int64),
            np.array([job.worth.row() for job in data.jobs]),
            density,
            communication,
        )

    def ends(self, jobs: Ints, left: Ints, slot: int) -> tuple[Floats, Floats]:
        """(R,) U_min and U_max of eqs. (6) and (7) over the values of one round: T = 1, so U_min = u / (4 C)."""
        kinds = len(self.data.types)
        fastest = self.type_steps[jobs].max(axis=1)
        values = np.array(
            [
                worth(int(left[j]), int(step), self.utilities[j], slot, int(self.arrivals[j]), self.density)
                for j, step in zip(jobs, fastest, strict=True)
            ]
        )
        low, high = np.zeros(kinds), np.zeros(kinds)
        for r in range(kinds):
            own = values[(self.type_steps[jobs, r] > 0) & (values > 0)]
            if len(own):
                low[r] = own.min() / (4.0 * float(self.data.capacity.sum()))
                high[r] = own.max()
        return low, high

    def take(self, jobs: Ints, free: Ints, left: Ints, slot: int) -> dict[int, Ints]:
        """The greedy choice among `jobs` with these free devices."""
        low, high = self.ends(jobs, left, slot)
        taken, grids = greedy(
            jobs,
            free.copy(),
            self.data.machine_capacity,
            low,
            high,
            self.workers,
            self.type_steps,
            left,
            self.utilities,
            slot,
            self.arrivals,
            self.density,
            self.communication,
        )
        return {int(j): grids[i] for i, j in enumerate(taken)}


class Recursion:
    """Algorithm 2 with payoffs: a job is taken with its best allocation, or not; memo by (job, free devices)."""

    def __init__(self, market: Market, jobs: Ints, left: Ints, slot: int) -> None:
        self.market = market
        self.jobs = jobs
        self.left = left
        self.slot = slot
        self.low, self.high = market.ends(jobs, left, slot)
        self.memo: dict[tuple[int, bytes], tuple[float, tuple[tuple[int, Ints], ...]]] = {}

    def best(self, index: int, free: Ints) -> tuple[float, tuple[tuple[int, Ints], ...]]:
        """The largest sum of payoffs of the jobs from `index` on, and who takes what."""
        if index == len(self.jobs) or not free.any():
            return 0.0, ()
        key = (index, free.tobytes())
        if key not in self.memo:
            without = self.best(index + 1, free)
            market, j = self.market, int(self.jobs[index])
            payoff, grid = find_alloc(
                free,
                prices(free, market.data.machine_capacity, self.low, self.high),
                int(market.workers[j]),
                market.type_steps[j],
                int(self.left[j]),
                market.utilities[j],
                self.slot,
                int(market.arrivals[j]),
                market.density,
                market.communication,
            )
            self.memo[key] = without
            if payoff > 0:
                rest, chosen = self.best(index + 1, free - grid)
                if payoff + rest > without[0]:
                    self.memo[key] = payoff + rest, ((j, grid), *chosen)
        return self.memo[key]


def hadar_rounds(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    payoff: Annotated[
        Literal["density", "literal"], Field(description="utility over the rounds needed, or the whole utility")
    ] = "density",
    communication: Annotated[
        float, Field(ge=0, le=10**12, description="cost of an allocation on several machines, in units of payoff")
    ] = 0.0,
    restart_delay: RestartDelay = 0.0,
    overhead: Overhead = 0.0,
    preempt: Annotated[
        bool, Field(description="reconsider all jobs in every round, or only waiting ones when jobs change")
    ] = True,
    dp_jobs: Annotated[int, Field(ge=0, le=16, description="up to so many jobs by recursion, beyond greedily")] = 8,
) -> HeuristicRun:
    """Hadar's round-based scheduler.

    In a round every waiting job has candidates, one per bottleneck level and packing (one machine, or spread over
    the cheapest devices); its finish is estimated at the candidate's rate, kept from then on.

    Parameters
    ----------
    payoff : ``density`` compares U(f) divided by the rounds still needed with one round's cost; ``literal``
        compares the whole U(f) with it, as printed
    communication : cost added to an allocation on several machines
    restart_delay, overhead : time lost when a job's devices change (10 s in the paper), and in every round it runs
    preempt : reconsider all jobs in every round, as Algorithm 1 does; otherwise running jobs keep their devices,
        and only when jobs arrive or finish the waiting ones are considered
    dp_jobs : up to so many candidates the sum of payoffs is maximised by recursion, beyond greedily

    Notes
    -----
    Greedy: O((J + taken) R H R log(H R)) a round. The recursion's memo key (job, free devices) is exponential in
    the worst case, Theorem 1 notwithstanding. Source: paper 002, Algorithms 1 and 2, eqs. (5) to (8).
    """
    del seed
    refuse_long_delay("hadar-rounds", instance, restart_delay + overhead)
    market = Market.of(tables(instance), payoff == "density", communication)
    policy = rounds(market, preempt, dp_jobs)
    # without preemption nothing is decided but when jobs arrive or end; payoffs depend on the slot
    steady = never if preempt else always
    simulated = simulate(instance, policy, restart_delay, deadline, overhead=overhead, may_wait=True, steady=steady)
    return run_of(instance, simulated, restart_delay=restart_delay, dp_states=market.recursions)


def rounds(market: Market, preempt: bool, dp_jobs: int) -> Policy:
    """The decisions of :func:`hadar_rounds`."""
    data = market.data

    def policy(state: State) -> dict[int, Ints]:
        kept = {} if preempt else {j: state.held[j] for j in state.active if j in state.held}
        if kept and not state.changed:
            return kept
        free = data.machine_capacity - sum(kept.values(), np.zeros_like(data.machine_capacity))
        jobs = np.array([j for j in state.active if j not in kept], dtype=np.int64)
        if not len(jobs) or not free.any():
            return kept
        remaining = -(-state.missing // state.finer)
        if len(jobs) <= dp_jobs:
            recursion = Recursion(market, jobs, remaining, state.slot)
            chosen = dict(recursion.best(0, free)[1])
            market.recursions += len(recursion.memo)
        else:
            chosen = market.take(jobs, free, remaining, state.slot)
        return {**kept, **chosen}

    return policy
