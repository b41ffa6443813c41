"""Tiresias and YARN-CS, as paper 002 sets them up for comparison (section IV)."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from schedgap.formulations.common.compiled import njit_cached, njit_kernel
from schedgap.formulations.common.errors import ModelRefused
from schedgap.formulations.common.numbers import unit_of
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.simulate import (
    Policy,
    RestartDelay,
    State,
    Steady,
    always,
    refuse_long_delay,
    run_of,
    simulate,
    take_any,
    take_type,
)
from schedgap.solvers.exact.hadar.bound import warm_up as warm_up_bounds
from schedgap.solvers.linear_program import INFINITY, LinearProgram
from schedgap.solvers.result import NO_DEADLINE, Deadline

Ints = NDArray[np.int64]
PIECE = 10**7
"""Priorities that are compared in one go at most: compiled code heeds no deadline and no Ctrl-C."""


def one_type(data: ProgressTables, j: int, free: Ints, kind: int) -> Ints | None:
    """(H, R) a gang on one device type, packed on few machines; None where it does not fit or cannot run there."""
    job = data.jobs[j]
    if job.type_step[kind] == 0:
        return None
    machines = take_type(free, kind, job.workers)
    if not machines.any():
        return None
    grid = np.zeros_like(free)
    grid[:, kind] = machines
    return grid


def tiresias(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    threshold: Annotated[
        float, Field(gt=0, description="device-rounds of service before a job moves to the second queue")
    ] = 60.0,
    restart_delay: RestartDelay = 0.0,
) -> HeuristicRun:
    """Two-queue least attained service, preemptive, without promotion; blind to how fast a type is.

    Jobs whose attained service is below the threshold come first, each queue in order of arrival. A job takes one
    device type, the first in the order of the cluster that has room for its gang.

    Parameters
    ----------
    threshold : device-rounds of service after which a job moves to the second queue
    restart_delay : time lost when a job's devices change

    Notes
    -----
    O(J R H) a round. Source: paper 002, section IV ("two priority queues and its PromoteKnob disabled").
    """
    del seed
    refuse_long_delay("tiresias", instance, restart_delay)
    policy, steady = least_attained(tables(instance), threshold)
    return run_of(instance, simulate(instance, policy, restart_delay, deadline, steady=steady))


def least_attained(data: ProgressTables, threshold: float) -> tuple[Policy, Steady]:
    """The decisions of :func:`tiresias`, and in how many rounds they stay."""
    passing = math.ceil(threshold)  # service is whole
    workers = [job.workers for job in data.jobs]
    arrival = np.array([job.arrival for job in data.jobs], dtype=np.int64)

    def policy(state: State) -> dict[int, Ints]:
        free = data.machine_capacity.copy()
        active = np.array(state.active, dtype=np.int64)
        order = active[np.lexsort((active, arrival[active], state.attained[active] >= passing))]
        grids: dict[int, Ints] = {}
        room = int(free.sum(axis=0).max())
        for j in order.tolist():
            if workers[j] > room:
                continue
            held = state.held.get(j)
            grid = held if held is not None and (held <= free).all() else None
            for kind in range(len(data.types) if grid is None else 0):
                grid = one_type(data, j, free, kind)
                if grid is not None:
                    break
            if grid is not None:
                grids[j] = grid
                free -= grid
                room = int(free.sum(axis=0).max())
                if room == 0:
                    break
        return grids

    def steady(state: State, grids: dict[int, Ints], most: int) -> int:
        """The order of the queues stays until a running job passes the threshold."""
        for j in grids:
            before = int(state.attained[j])
            if before - workers[j] < passing:
                most = min(most, max(0, -((before - passing) // workers[j])))
        return most

    return policy, steady


def yarn_cs(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    backfill: Annotated[bool, Field(description="jobs behind one that does not fit may start")] = False,
    restart_delay: RestartDelay = 0.0,  # time lost in a job's first round
) -> HeuristicRun:
    """First in, first out, never preempted: a job keeps its devices until it is done.

    A gang takes the first free devices it can use, whatever their types, in the order of machines. A job that
    does not fit yet blocks those behind it, unless `backfill`.

    Notes
    -----
    O(J R H) a round. Source: paper 002, section IV.
    """
    del seed
    refuse_long_delay("yarn-cs", instance, restart_delay)
    data = tables(instance)

    waiting: list[tuple[int, int]] = []

    def policy(state: State) -> dict[int, Ints]:
        grids = dict(state.held)
        free = data.machine_capacity - state.used
        for j in state.arrived:
            insort(waiting, (data.jobs[j].arrival, j))
        passed = 0
        while passed < len(waiting) and (room := int(free.sum())) > 0:
            j = waiting[passed][1]
            job = data.jobs[j]
            grid = take_any(free, job.type_step > 0, job.workers) if job.workers <= room else None
            if grid is not None and grid.any():
                grids[j] = grid
                free -= grid
                del waiting[passed]
            elif backfill:
                passed += 1
            else:
                break
        return grids

    return run_of(instance, simulate(instance, policy, restart_delay, deadline, steady=always))


def srpt(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    restart_delay: RestartDelay = 0.0,  # time lost when a job's devices change
) -> HeuristicRun:
    """Shortest remaining processing time first, preemptive, decided when jobs arrive or end.

    Jobs in order of the rounds they still need on their fastest type; each takes the fastest type that has room for
    its gang, and keeps its devices where they are of that type and nobody before it took them.

    Notes
    -----
    O(J log J + J R H) a decision, at most 2 J decisions. It knows the work of the jobs, as clairvoyant policies do.
    """
    del seed
    refuse_long_delay("srpt", instance, restart_delay)
    policy = shortest_remaining(tables(instance))
    return run_of(instance, simulate(instance, policy, restart_delay, deadline, steady=always))


def shortest_remaining(data: ProgressTables) -> Policy:
    """The decisions of :func:`srpt`."""
    workers = [job.workers for job in data.jobs]
    fastest = np.array([max(1, int(job.type_step.max(initial=0))) for job in data.jobs], dtype=np.float64)
    kinds = [np.argsort(-job.type_step, kind="stable").tolist() for job in data.jobs]

    def policy(state: State) -> dict[int, Ints]:
        free = data.machine_capacity.copy()
        active = np.array(state.active, dtype=np.int64)
        order = active[np.argsort(state.missing[active] / fastest[active], kind="stable")]
        grids: dict[int, Ints] = {}
        room = free.sum(axis=0)
        for j in order.tolist():
            if workers[j] > room.max():
                continue
            kind = next((r for r in kinds[j] if data.jobs[j].type_step[r] > 0 and room[r] >= workers[j]), None)
            if kind is None:
                continue
            held = state.held.get(j)
            stays = held is not None and held[:, kind].sum() == workers[j] and bool((held <= free).all())
            grid = held if stays else one_type(data, j, free, kind)
            if grid is not None:
                grids[j] = grid
                free -= grid
                room[kind] -= workers[j]
        return grids

    return policy


# Method ``gavel``: time fractions by job and type from a linear program, then rounds by priority.
#
# Gavel (Narayanan et al., OSDI 2020) as paper 002 describes it in sections II-A and IV: Y is a matrix of time
# fractions, the priority of a job on a type is Y over the rounds received there, and all workers of a job use one
# type.

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

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
    by_class : of ``max-min`` only: equal jobs get the same fractions, see `MOST_APART`

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
