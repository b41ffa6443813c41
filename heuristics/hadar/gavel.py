"""Method ``gavel``: time fractions by job and type from a linear program, then rounds by priority.

Gavel (Narayanan et al., OSDI 2020) as paper 002 describes it in sections II-A and IV: Y is a matrix of time
fractions, the priority of a job on a type is Y over the rounds received there, and all workers of a job use one
type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Bools, Floats, Ints
from schedgap.formulations.common.compiled import njit_cached, njit_kernel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.numbers import unit_of
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.baselines import PIECE
from schedgap.heuristics.hadar.round_devices import take_type
from schedgap.heuristics.hadar.simulate import (
    RestartDelay,
    State,
    refuse_long_delay,
    run_of,
    simulate,
)
from schedgap.solvers.exact.hadar.bound import warm_up as warm_up_bounds
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import NO_DEADLINE, Deadline

MOST_APART = 480
"""Jobs of an instance, as many as the paper's trace has, up to which the program of ``max-min`` has columns of each.

Beyond, jobs that are equal in it share theirs and get the same fractions, and of all optima that one is taken in which
the jobs together get most, each in units of its equal share. The value is the same: the mean of an optimum over all
exchanges of equal jobs is an optimum.
"""


def time_fractions(
    data: ProgressTables, jobs: Ints, left: Floats, policy: str, by_class: bool = False
) -> tuple[Floats, float]:
    """The fractions Y and the value of a policy's linear program.

    Constraints: ``sum_r Y[j,r] <= 1``; ``sum_j W_j Y[j,r] <= c_r``; Y = 0 where the type cannot hold the gang.
    With progress ``p_j = sum_r Y[j,r] s[j,r]`` a slot (s the share of its work a slot on the type does):

    - ``max-min``: max min_j p_j / p_j(equal shares of the types) times W_j;
    - ``max-sum``: max sum_j sum_r Y[j,r] W_j X[j,r], iterations per unit of time;
    - ``makespan``: min M with ``M p_j >= `` what is left of j's work, solved exactly as max 1/M.

    Parameters
    ----------
    by_class : for ``max-min`` only: equal jobs get the same fractions, see `MOST_APART`

    Returns
    -------
    tuple
        Y (len(jobs), R), and the value: the ratio, the iterations, or M in slots.
    """
    from scipy import sparse  # slow to load

    several, own_class = np.ones(len(jobs)), np.arange(len(jobs))
    if by_class:
        jobs, several, own_class = _classes(data, jobs)
    kinds, n = len(data.types), len(jobs)
    workers = data.workers[jobs].astype(float)
    target = np.array([data.jobs[j].target for j in jobs], dtype=float)
    share = data.type_steps[jobs] / target[:, None]
    fits: Bools = np.logical_and(share > 0, np.less_equal.outer(workers, data.capacity.astype(float)))
    able: Bools = np.asarray(fits.any(axis=1), dtype=np.bool_).reshape(n)
    cost = np.zeros(n * kinds + 1)  # Y by job and type, then the value
    upper = np.append(fits.astype(float).ravel(), INFINITY)
    useful = share * fits
    if policy == "makespan":
        scale = left[jobs] / target
    else:
        scale = (useful * data.capacity).sum(axis=1) / data.capacity.sum() / workers
    progress = np.column_stack((useful, -scale))
    # else HiGHS drops them; they say the same in any unit
    progress /= np.array([unit_of(most, (1e-6, np.inf)) for most in np.abs(progress).max(axis=1).tolist()])[:, None]
    own = np.arange(n * kinds).reshape(n, kinds)
    with_value = np.column_stack((own, np.full(n, n * kinds)))
    # rows: the fractions of a job, and below them its progress; then the devices of each type
    compared = np.logical_and(able, policy != "max-sum")
    of_job = np.arange(n) + np.cumsum(compared) - compared
    count = n + int(compared.sum())
    below = of_job[compared] + 1
    low, high = np.full(count + kinds, -INFINITY), np.ones(count + kinds)
    low[below], high[below], high[count:] = 0.0, INFINITY, data.capacity
    if policy == "max-sum":
        rate = np.array([[_rate(data, int(j), r) for r in range(kinds)] for j in jobs])
        cost[:-1] = -(rate * workers[:, None]).ravel()
        upper[-1] = 0.0
    else:
        cost[-1] = -1.0
    rows = np.repeat(of_job, kinds), np.repeat(below, kinds + 1), np.repeat(count + np.arange(kinds), n)
    places = np.concatenate(rows), np.concatenate((own.ravel(), with_value[compared].ravel(), own.T.ravel()))
    values = np.concatenate((np.ones(n * kinds), progress[compared].ravel(), np.tile(several * workers, kinds)))
    matrix = sparse.csc_matrix((values, places), shape=(count + kinds, n * kinds + 1))
    program = LinearProgram()
    program.set_matrix(matrix, cost, upper, low, high)
    found = program.solve()
    if found is None:
        if able.any():
            raise ModelRefused("gavel: HiGHS finds no time fractions, the jobs' throughputs are too unlike")
        # no job fits any type: the value is unbounded
        return np.zeros((len(own_class), kinds)), 0.0
    values = found.x
    if by_class:
        per_share = several / np.where(able, scale, 1.0)
        values = _then_most(program, upper, values, (per_share[:, None] * useful).ravel())
    fractions = np.where(fits, values[:-1].reshape(n, kinds), 0.0)
    fractions[fractions < 1e-9] = 0.0
    fractions = fractions[own_class]
    if policy == "makespan":
        return fractions, float("inf") if values[-1] <= 0 else 1.0 / float(values[-1])
    return fractions, float(values[-1]) if policy == "max-min" else -found.value


def _then_most(program: LinearProgram, upper: Floats, values: Floats, gain: Floats) -> Floats:
    """The optimum of most gain among those of a solved program; `values` themselves where HiGHS finds none."""
    program.set_box(np.append(np.zeros(len(gain)), values[-1] * (1 - 1e-9)), upper)
    program.set_costs(np.arange(len(gain) + 1), np.append(-gain / gain.max(), 0.0))
    found = program.solve()
    return values if found is None else np.append(found.x[:-1], values[-1])


def _classes(data: ProgressTables, jobs: Ints) -> tuple[Ints, Floats, Ints]:
    """One job of each class, how many are in it, and the class of every job.

    Equal jobs have as many workers and the same units a slot on every type, up to a factor.
    """
    steps = data.type_steps[jobs]
    steps //= np.maximum(np.gcd.reduce(steps, axis=1), 1)[:, None]
    rows = np.column_stack((data.workers[jobs], steps))
    _, first, own_class = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    own_class = own_class.ravel()
    return jobs[first], np.bincount(own_class).astype(float), own_class


def _rate(data: ProgressTables, j: int, kind: int) -> float:
    """X_j^r, from the level that the type's units belong to."""
    job = data.jobs[j]
    where = np.flatnonzero(job.step == job.type_step[kind])
    return float(job.rate[where[0]]) if job.type_step[kind] > 0 and len(where) else 0.0


@njit_cached
def serve_in_order(
    order: Ints,
    job: Ints,
    kind: Ints,
    workers: Ints,
    usable: Bools,
    free: Ints,
    on: Ints,
    where: Ints,
) -> tuple[Ints, Bools]:  # pragma: no cover - compiled
    """The entries that are served in this order, and whether their jobs stay where they were.

    A job is `on` a type, or on -1, and has devices `where` (J, H); both become what they are in this round.
    """
    room = free.sum(axis=0)
    before = on.copy()
    on[:] = -1
    served, stays, count = np.empty_like(order), np.zeros(len(order), dtype=np.bool_), 0
    for e in order:
        j, r = job[e], kind[e]
        if on[j] >= 0 or room[r] < workers[j] or not usable[j, r]:
            continue
        stays[count] = before[j] == r and (where[j] <= free[:, r]).all()
        if not stays[count]:
            where[j] = take_type(free, r, workers[j])
        free[:, r] -= where[j]
        room[r] -= workers[j]
        on[j], served[count] = r, e
        count += 1
    return served[:count], stays[:count]


@njit_kernel
def rounds_in_order(
    y: Floats, received: Floats, gains: Floats, behind: Bools, most: int
) -> int:  # pragma: no cover - compiled
    """For how many rounds, at most so many, priorities y / received do not rise along the entries.

    Equal ones may only follow where they are `behind`; a served entry gains a round in each.
    """
    for passed in range(most):
        before = np.inf
        for i in range(len(y)):
            rounds = received[i] + passed * gains[i]
            priority = y[i] / rounds if rounds > 0 else np.inf
            if priority > before or (priority == before and not behind[i]):
                return passed
            before = priority
    return most


class Rounds:
    """Gavel's round-based mechanism for given fractions.

    Entries (job, type) with Y > 0 are served by priority Y / rounds received there (infinite at none), ties by job
    and then by the larger Y; a job runs on the first type that has room for its whole gang.
    """

    def __init__(self, data: ProgressTables) -> None:
        self.data = data
        self.workers = data.workers
        self.usable: Bools = data.type_steps > 0
        machines, _ = data.machine_capacity.shape
        self.on = np.full(len(data.jobs), -1)
        self.where = np.zeros((len(data.jobs), machines), dtype=np.int64)
        self.order = self.served = np.zeros(0, dtype=np.int64)
        self.set({})

    def set(self, fractions: Mapping[tuple[int, int], float]) -> None:
        """New fractions; rounds received are counted from here on."""
        given = {key: y for key, y in fractions.items() if y > 0}
        self.job, self.kind = np.array(list(given), dtype=np.int64).reshape(-1, 2).T.copy()
        self.fraction = np.array(list(given.values()))
        self.received = np.zeros(len(given))

    def serve(self, state: State) -> dict[int, Ints]:
        """The devices of this round."""
        active = np.zeros(len(self.on), dtype=np.bool_)
        active[state.active] = True
        entries = np.flatnonzero(active[self.job])
        with np.errstate(divide="ignore"):
            priority = -(self.fraction[entries] / self.received[entries])
        order = np.lexsort((-self.fraction[entries], self.job[entries], priority))
        self.order = entries[order]
        free = self.data.machine_capacity.copy()
        places = (self.workers, self.usable, free, self.on, self.where)
        self.served, stays = serve_in_order(self.order, self.job, self.kind, *places)
        self.received[self.served] += 1
        grids: dict[int, Ints] = {}
        for e, stay in zip(self.served.tolist(), stays.tolist(), strict=True):
            j = int(self.job[e])
            if stay:
                grids[j] = state.held[j]
            else:
                grids[j] = np.zeros(free.shape, dtype=np.int64)
                grids[j][:, self.kind[e]] = self.where[j]
        return grids

    def steady(self, state: State, grids: dict[int, Ints], most: int) -> int:
        """Rounds until two priorities cross, at most `most` and PIECE // entries; they are counted as received.

        In the same order every job is served again where it was: it finds the same devices free. Priorities are
        compared in the floats that :meth:`serve` sorts by.
        """
        y = self.fraction[self.order]
        gains = np.zeros(len(self.fraction))
        gains[self.served] = 1.0
        ranks = np.argsort(np.lexsort((-self.fraction, self.job)))[self.order]
        behind = np.append(True, ranks[:-1] < ranks[1:])
        passed = rounds_in_order(y, self.received[self.order], gains[self.order], behind, min(most, PIECE // len(y)))
        self.received[self.served] += passed
        return passed


def gavel(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    policy: Annotated[
        Literal["max-min", "max-sum", "makespan"], Field(description="what the time fractions optimise")
    ] = "max-min",
    restart_delay: RestartDelay = 0.0,
) -> HeuristicRun:
    """Gavel with one of its policies; fractions are computed anew whenever jobs arrive or finish.

    Parameters
    ----------
    policy : ``max-min`` (fairness), ``max-sum`` (throughput) or ``makespan``
    restart_delay : time lost when a job's devices change

    Notes
    -----
    One linear program of J R variables at every change of the job set, O(J R log(J R)) a round. Which optimum of it is
    taken decides the schedule: with up to 480 jobs the vertex that HiGHS comes to; with more, under ``max-min``, equal
    jobs get equal fractions, and of these optima one that gives all jobs together most (two programs by class).
    """
    del seed
    refuse_long_delay("gavel", instance, restart_delay)
    data = tables(instance)
    rounds = Rounds(data)
    by_class = policy == "max-min" and len(data.jobs) > MOST_APART
    programs = 0

    def decide(state: State) -> dict[int, Ints]:
        nonlocal programs
        if state.changed:
            jobs = np.array(state.active, dtype=np.int64)
            fractions, _ = time_fractions(data, jobs, state.missing / state.finer, policy, by_class)
            programs += 1
            entries = np.argwhere(fractions > 0)
            given = fractions[tuple(entries.T)]
            rounds.set({(int(jobs[i]), r): y for (i, r), y in zip(entries.tolist(), given.tolist(), strict=True)})
        return rounds.serve(state)

    return run_of(
        instance,
        simulate(instance, decide, restart_delay, deadline, steady=rounds.steady),
        policy=policy,
        programs=programs,
    )


def warm_up(instance: HadarInstance) -> None:
    """Compile what small instances do not use: the bounds by prices, and gavel's rounds that are passed over."""
    warm_up_bounds(instance)
    rounds_in_order(np.ones(1), np.zeros(1), np.ones(1), np.ones(1, dtype=np.bool_), 1)
