"""Method ``hadar-rounds``: Algorithms 1 and 2 of paper 002, in a reading that schedules something.

As printed the dynamic program keeps the cheaper of two choices, so the empty set, which costs nothing, is its
optimum, and one job without an allocation ends the recursion for all later ones. Here the sum of payoffs is
maximised, over taking a job with its best allocation or not, by memoised recursion up to a number of jobs, and
greedily by payoff per worker beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_part
from schedgap.formulations.common.machine.ordering import rising_order
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.simulate import (
    Overhead,
    Policy,
    RestartDelay,
    State,
    always,
    never,
    refuse_long_delay,
    run_of,
    simulate,
)
from schedgap.solvers.result import NO_DEADLINE, Deadline


@njit_part
def reprice(
    price: Floats,
    changed: Ints,
    free: Ints,
    capacity: Ints,
    low: Floats,
    high: Floats,
) -> None:  # pragma: no cover - compiled
    """The prices of :func:`prices` where `changed` (H, R) is not 0."""
    machines, kinds = free.shape
    for h in range(machines):
        for r in range(kinds):
            if changed[h, r] != 0 and low[r] > 0:
                used = (capacity[h, r] - free[h, r]) / capacity[h, r]
                price[h, r] = low[r] * (high[r] / low[r]) ** used


@njit_cached
def prices(free: Ints, capacity: Ints, low: Floats, high: Floats) -> Floats:  # pragma: no cover - compiled
    """(H, R) eq. (5): U_min (U_max / U_min)^(gamma / c); 0 where there is no device."""
    price = np.zeros(free.shape)
    reprice(price, capacity, free, capacity, low, high)
    return price


@njit_cached
def worth(left: int, step: int, utility: Floats, slot: int, density: bool) -> float:  # pragma: no cover - compiled
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


@njit_part
def take_on_one(
    free: Ints,
    price: Floats,
    usable: Bools,
    workers: int,
    machine: int,
    taken: Ints,
) -> float:  # pragma: no cover - compiled
    """Put the cheapest usable free devices of a machine into `taken` (R,): their cost, inf where there are too few."""
    kinds = free.shape[1]
    need, cost = workers, 0.0
    paid, last = -1.0, -1  # types are taken by (price, number)
    taken[:] = 0
    while need > 0:
        best = -1
        for r in range(kinds):
            if not usable[r] or free[machine, r] == 0:
                continue
            later = price[machine, r] > paid or (price[machine, r] == paid and r > last)
            if later and (best < 0 or price[machine, r] < price[machine, best]):
                best = r
        if best < 0:
            return np.inf
        taken[best] = min(need, free[machine, best])
        need -= taken[best]
        cost += taken[best] * price[machine, best]
        paid, last = price[machine, best], best
    return cost


class Terms(NamedTuple):
    """The jobs as arrays, and their gangs: as many workers, and types in the same order of speed.

    A gang's jobs are offered the same devices at the same cost.
    """

    capacity: Ints  # (H, R)
    type_steps: Ints  # (J, R)
    utilities: Floats  # (J, 9) in closed form, see ``Worth.row``
    density: bool
    communication: float
    gang: Ints  # (J,)
    workers: Ints  # (G,)
    # (G, R) the set of types that are no slower than this one: a level; -1 where there is none, or an earlier one is it
    level: Ints
    usable: Bools  # (sets, R)

    @classmethod
    def of(cls, data: ProgressTables, density: bool, communication: float) -> Terms:
        """The numbers of an instance's tables."""
        steps = np.array([job.type_step for job in data.jobs], dtype=np.int64)
        shapes: dict[tuple[int, tuple[int, ...]], int] = {}
        sets: dict[tuple[bool, ...], int] = {}
        gang = np.zeros(len(steps), dtype=np.int64)
        for j, own in enumerate(steps.tolist()):
            levels = [-1] * len(own)
            for r, step in enumerate(own):
                if step > 0 and step not in own[:r]:
                    levels[r] = sets.setdefault(tuple(other >= step for other in own), len(sets))
            gang[j] = shapes.setdefault((data.jobs[j].workers, tuple(levels)), len(shapes))
        return cls(
            data.machine_capacity,
            steps,
            np.array([job.worth.row() for job in data.jobs]),
            density,
            communication,
            gang,
            np.array([workers for workers, _ in shapes], dtype=np.int64),
            np.array([levels for _, levels in shapes], dtype=np.int64),
            np.array(list(sets), dtype=np.bool_).reshape(len(sets), steps.shape[1]),
        )


DEPTHS = 64
"""Orders of pools are kept for so many jobs taken in a round: the next round's are often the same."""
ROUND = 2**20
"""More sets of prices than a round has."""


class Offers(NamedTuple):
    """What each gang can get at one set of prices, worked out when it is asked for; two offers a level."""

    made: Ints  # (G,) for which set of prices
    cost: Floats  # (G, 2 R) on the cheapest machine that holds the gang, and spread; inf where there are too few
    grid: Ints  # (G, 2 R, H, R)
    uses: Bools  # (G, 2 R, R) the types in it
    sorted: Ints  # (sets,) for which set of prices
    order: Ints  # (DEPTHS, sets, H R) the pools of a set of types, the cheapest first
    ties: Bools  # (DEPTHS, sets, H R) whether a pool is as cheap as the next one

    @classmethod
    def none(cls, terms: Terms) -> Offers:
        """Nothing worked out yet."""
        gangs, (machines, kinds) = len(terms.workers), terms.capacity.shape
        return cls(
            np.full(gangs, -1),
            np.full((gangs, 2 * kinds), np.inf),
            np.zeros((gangs, 2 * kinds, machines, kinds), dtype=np.int64),
            np.zeros((gangs, 2 * kinds, kinds), dtype=np.bool_),
            np.full(len(terms.usable), -1),
            np.zeros((DEPTHS, len(terms.usable), machines * kinds), dtype=np.int64),
            np.zeros((DEPTHS, len(terms.usable), machines * kinds), dtype=np.bool_),
        )


@njit_part
def pools(
    free: Ints,
    price: Floats,
    usable: Bools,
    order: Ints,
    ties: Bools,
) -> None:  # pragma: no cover - compiled
    """Sort the pools (machine, type) by price; those that are of no use are last.

    Where the order that is there already has the same pools rising and tied, sorting would come to it again.
    """
    machines, kinds = free.shape
    last = machines * kinds - 1
    value = np.empty(last + 1)
    for i in range(last + 1):
        h, r = i // kinds, i % kinds
        value[i] = price[h, r] if usable[r] and free[h, r] > 0 else np.inf
    kept = 0
    while kept < last:
        one, other = value[order[kept]], value[order[kept + 1]]
        if not (one == other if ties[kept] else one < other):
            break
        kept += 1
    if kept < last:
        order[:] = rising_order(value)
        for i in range(last):
            ties[i] = value[order[i]] == value[order[i + 1]]


@njit_part
def take_spread(
    free: Ints,
    price: Floats,
    usable: Bools,
    workers: int,
    order: Ints,
    communication: float,
    taken: Ints,
) -> float:  # pragma: no cover - compiled
    """Put the cheapest usable free devices of all machines into `taken`: their cost, inf where there are too few."""
    kinds = free.shape[1]
    need, cost, spread = workers, 0.0, 0
    taken[:] = 0
    for i in order:
        h, r = i // kinds, i % kinds
        if need == 0 or not usable[r] or free[h, r] == 0:
            break
        spread += taken[h].sum() == 0
        taken[h, r] = min(need, free[h, r])
        need -= taken[h, r]
        cost += taken[h, r] * price[h, r]
    return np.inf if need > 0 else cost + (communication if spread > 1 else 0.0)


@njit_part
def offer(
    terms: Terms, offers: Offers, gang: int, now: int, free: Ints, price: Floats
) -> None:  # pragma: no cover - compiled
    """FIND_ALLOC's allocations: at every bottleneck level on the cheapest machine, and spread over all."""
    machines, kinds = free.shape
    workers, depth = terms.workers[gang], now % DEPTHS
    offers.made[gang] = now
    row = np.empty(kinds, dtype=np.int64)
    for kind in range(kinds):
        level = terms.level[gang, kind]
        if level < 0:
            continue
        usable = terms.usable[level]
        packed, least = -1, np.inf
        for machine in range(machines):
            cost = take_on_one(free, price, usable, workers, machine, row)
            if cost < least:
                packed, least = machine, cost
        grid = offers.grid[gang, 2 * kind]
        if packed >= 0:
            grid[:] = 0
            take_on_one(free, price, usable, workers, packed, grid[packed])
        offers.cost[gang, 2 * kind] = least
        if offers.sorted[level] != now:
            offers.sorted[level] = now
            pools(free, price, usable, offers.order[depth, level], offers.ties[depth, level])
        offers.cost[gang, 2 * kind + 1] = take_spread(
            free,
            price,
            usable,
            workers,
            offers.order[depth, level],
            terms.communication,
            offers.grid[gang, 2 * kind + 1],
        )
        for way in range(2 * kind, 2 * kind + 2):
            for r in range(kinds):
                offers.uses[gang, way, r] = offers.grid[gang, way, :, r].any()


@njit_part
def best_offer(
    terms: Terms, offers: Offers, j: int, left: int, slot: int
) -> tuple[float, int]:  # pragma: no cover - compiled
    """The best payoff of a job over its gang's offers, and which it is; -inf where none pays."""
    gang, best, chosen = terms.gang[j], 0.0, -1
    for way in range(offers.cost.shape[1]):
        cost = offers.cost[gang, way]
        if cost == np.inf:
            continue
        slowest = 0
        for r in range(offers.uses.shape[2]):
            step = terms.type_steps[j, r]
            if offers.uses[gang, way, r] and (slowest == 0 or step < slowest):
                slowest = step
        value = worth(left, slowest, terms.utilities[j], slot, terms.density)
        payoff = value - cost
        if value > 0 and payoff > 0 and (chosen < 0 or payoff > best + 1e-15 * abs(best)):
            best, chosen = payoff, way
    return (best if chosen >= 0 else -np.inf), chosen


@njit_cached
def payoffs(
    jobs: Ints,
    free: Ints,
    low: Floats,
    high: Floats,
    terms: Terms,
    offers: Offers,
    now: int,
    left: Ints,
    slot: int,
) -> tuple[Floats, Ints]:  # pragma: no cover - compiled
    """FIND_ALLOC for each job with these free devices: its best payoff, -inf where nothing pays, and its devices."""
    price = prices(free, terms.capacity, low, high)
    found = np.empty(len(jobs))
    grids = np.zeros((len(jobs), *free.shape), dtype=np.int64)
    for i, j in enumerate(jobs):
        if offers.made[terms.gang[j]] != now:
            offer(terms, offers, terms.gang[j], now, free, price)
        found[i], way = best_offer(terms, offers, j, left[j], slot)
        if way >= 0:
            grids[i] = offers.grid[terms.gang[j], way]
    return found, grids


@njit_cached
def greedy(
    jobs: Ints,
    free: Ints,
    low: Floats,
    high: Floats,
    terms: Terms,
    offers: Offers,
    now: int,
    left: Ints,
    slot: int,
) -> tuple[Ints, Ints]:  # pragma: no cover - compiled
    """Take the job of the largest payoff per worker, again and again; (jobs taken, their devices).

    Prices only rise and devices only go while jobs are taken, so payoffs only fall: a payoff computed earlier is
    an upper bound, and only the job that looks best is computed again.
    """
    taken, most = 0, min(len(jobs), free.sum())
    taken_jobs = np.empty(most, dtype=np.int64)
    grids = np.empty((most, *free.shape), dtype=np.int64)
    score = np.full(len(jobs), -np.inf)
    age = np.zeros(len(jobs), dtype=np.int64)
    way = np.zeros(len(jobs), dtype=np.int64)
    price = prices(free, terms.capacity, low, high)
    looked, i = 0, 0
    while True:
        if looked == len(jobs):
            i = int(np.argmax(score))
            if score[i] == -np.inf:
                break
        else:
            i, looked = looked, looked + 1
        gang = terms.gang[jobs[i]]
        if age[i] == taken and score[i] > -np.inf:
            grids[taken] = offers.grid[gang, way[i]]
            taken_jobs[taken] = jobs[i]
            free -= grids[taken]
            taken += 1
            score[i] = -np.inf
            reprice(price, offers.grid[gang, way[i]], free, terms.capacity, low, high)
            continue
        if offers.made[gang] != now + taken:
            offer(terms, offers, gang, now + taken, free, price)
        payoff, way[i] = best_offer(terms, offers, jobs[i], left[jobs[i]], slot)
        score[i] = payoff / terms.workers[gang]
        age[i] = taken
    return taken_jobs[:taken], grids[:taken]


@njit_cached
def price_ends(jobs: Ints, terms: Terms, left: Ints, slot: int) -> tuple[Floats, Floats]:  # pragma: no cover - compiled
    """(R,) U_min and U_max of eqs. (6) and (7) over the values of one round: T = 1, so U_min = u / (4 C)."""
    kinds = terms.type_steps.shape[1]
    low, high = np.zeros(kinds), np.zeros(kinds)
    for j in jobs:
        value = worth(left[j], terms.type_steps[j].max(), terms.utilities[j], slot, terms.density)
        for r in range(kinds):
            if value > 0 and terms.type_steps[j, r] > 0:
                low[r] = value if low[r] == 0 else min(low[r], value)
                high[r] = max(high[r], value)
    return low / (4.0 * terms.capacity.sum()), high


@dataclass
class Market:
    """The terms of an instance, and what the present prices are."""

    data: ProgressTables
    terms: Terms
    offers: Offers
    rounds: int = 0  # so far
    recursions: int = 0  # states of all recursions so far

    @classmethod
    def of(cls, data: ProgressTables, density: bool, communication: float) -> Market:
        """The market of an instance's tables."""
        terms = Terms.of(data, density, communication)
        return cls(data, terms, Offers.none(terms))

    def take(self, jobs: Ints, free: Ints, left: Ints, slot: int) -> dict[int, Ints]:
        """The greedy choice among `jobs` with these free devices."""
        low, high = price_ends(jobs, self.terms, left, slot)
        self.rounds += 1
        given = (self.terms, self.offers, ROUND * self.rounds)
        taken, grids = greedy(jobs, free.copy(), low, high, *given, left, slot)
        return {int(j): grids[i] for i, j in enumerate(taken)}


class Recursion:
    """Algorithm 2 with payoffs: a job is taken with its best allocation, or not; memo by (job, free devices)."""

    def __init__(self, market: Market, jobs: Ints, left: Ints, slot: int) -> None:
        self.market = market
        self.jobs = jobs
        self.left = left
        self.slot = slot
        self.low, self.high = price_ends(jobs, market.terms, left, slot)
        self.memo: dict[tuple[int, bytes], tuple[float, tuple[tuple[int, Ints], ...]]] = {}
        self.found: dict[bytes, tuple[Floats, Ints]] = {}
        market.rounds += 1

    def best(self, index: int, free: Ints) -> tuple[float, tuple[tuple[int, Ints], ...]]:
        """The largest sum of payoffs of the jobs from `index` on, and who takes what."""
        if index == len(self.jobs) or not free.any():
            return 0.0, ()
        key = (index, free.tobytes())
        if key not in self.memo:
            without = self.best(index + 1, free)
            own, grids = self.payoffs(free, key[1])
            self.memo[key] = without
            if own[index] > 0:
                rest, chosen = self.best(index + 1, free - grids[index])
                if own[index] + rest > without[0]:
                    self.memo[key] = float(own[index] + rest), ((int(self.jobs[index]), grids[index]), *chosen)
        return self.memo[key]

    def payoffs(self, free: Ints, key: bytes) -> tuple[Floats, Ints]:
        """FIND_ALLOC's answers for all jobs with these free devices."""
        if key not in self.found:
            given = (self.low, self.high, self.market.terms, self.market.offers)
            now = ROUND * self.market.rounds + len(self.found)
            self.found[key] = payoffs(self.jobs, free, *given, now, self.left, self.slot)
        return self.found[key]


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
