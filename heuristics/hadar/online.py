"""Method ``hadar-online``: the primal-dual algorithm that Theorem 2 of paper 002 is about, with its certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.common.errors import InputError
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import FINEST, JobTable, Tables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.hadar.simulate import Simulated, run_of
from schedgap.solvers.exact.hadar_blocks import price_job
from schedgap.solvers.exact.hadar_pricing import Automaton, automaton, best_schedules, trace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@numba.njit(cache=True)
def _slot_costs(
    price: Floats, free: Ints, usable: Bools, workers: int, first: int
) -> tuple[Floats, Ints]:  # pragma: no cover - compiled
    """(T + 1, L) the cheapest gang by slot and level from pools' free devices, and the pools by price (T + 1, P)."""
    slots, pools = price.shape
    levels = usable.shape[0]
    cost = np.full((slots, levels), np.inf)
    order = np.zeros((slots, pools), dtype=np.int64)
    for t in range(first, slots):
        order[t] = np.argsort(price[t], kind="mergesort")
        for level in range(levels):
            need, total = workers, 0.0
            for p in order[t]:
                if need == 0:
                    break
                if usable[level, p]:
                    taken = min(need, free[t, p])
                    need -= taken
                    total += taken * price[t, p]
            if need == 0:
                cost[t, level] = total
    return cost, order


@dataclass(frozen=True)
class PriceEnds:
    """U_min and U_max of eqs. (6) and (7), and what they come from.

    Attributes
    ----------
    low, high : U_min, U_max, the same for every type
    eta : the scaling factor; None with ``umin="direct"``
    """

    low: float
    high: float
    eta: float | None


def price_ends(instance: HadarInstance, data: Tables, umin: str, eta: str) -> PriceEnds | None:
    """The ends of the prices over the jobs that can finish when alone; None where none can.

    ``U_max`` is the largest utility a schedule can have (a worker is one device). ``direct``:
    ``U_min = u / (4 T C)``, u the smallest positive utility a schedule can have, C all devices. ``printed``:
    ``U_min = (1 / (4 eta)) min_j U_j((T - a_j + 1) L) / (tmax_j W_j)`` with ``eta = max_j C / (tmax_j W_j)``, times T
    for ``eta="horizon"``; tmax_j is in slots, on the slowest usable type.

    Raises
    ------
    InputError
        The printed U_min is 0.
    """
    jobs = [j for j in range(len(data.jobs)) if data.possible[j]]
    if not jobs:
        return None
    horizon = data.horizon
    devices = float(data.capacity.sum())
    high = max(float(data.jobs[j].utility.max()) for j in jobs)
    positive = [float(u) for j in jobs for u in data.jobs[j].utility[data.jobs[j].earliest :] if u > 0]
    if not positive:
        return None
    if umin == "direct":
        return PriceEnds(min(positive) / (4.0 * horizon * devices), high, None)
    slowest = {j: data.jobs[j].target / float(data.jobs[j].type_step[data.jobs[j].type_step > 0].min()) for j in jobs}
    per_device = {j: slowest[j] * data.jobs[j].workers for j in jobs}
    scale = max(devices / per_device[j] for j in jobs) * (horizon if eta == "horizon" else 1.0)
    last = {j: float(data.jobs[j].utility[horizon]) for j in jobs}
    low = min(last[j] / per_device[j] for j in jobs) / (4.0 * scale)
    if low <= 0:
        worst = min(jobs, key=lambda j: last[j])
        raise InputError(
            f"hadar-online: the printed U_min is 0, since job {instance.jobs[worst].id} is worth 0 at the horizon; "
            "use umin=direct"
        )
    return PriceEnds(low, high, scale)


class Prices:
    """k_q(t) of every pool q = (machine, type), as it grows with what is allocated."""

    def __init__(self, data: Tables, ends: PriceEnds, early: bool) -> None:
        self.where = [(h, r) for h in range(len(data.machine_capacity)) for r in range(len(data.types))]
        self.where = [(h, r) for h, r in self.where if data.machine_capacity[h, r] > 0]
        self.kind = np.array([r for _, r in self.where], dtype=np.int64)
        self.capacity = np.array([data.machine_capacity[h, r] for h, r in self.where], dtype=np.int64)
        # w_q: the most that one job can put on the pool in a slot
        self.demand = np.array(
            [
                max([min(job.workers, int(c)) for job in data.jobs if job.type_step[r] > 0], default=1)
                for (_, r), c in zip(self.where, self.capacity, strict=True)
            ],
            dtype=np.int64,
        )
        self.room = np.where(early, self.capacity - self.demand + 1, self.capacity).astype(float)
        self.ends = ends
        self.used = np.zeros((data.horizon + 1, len(self.where)), dtype=np.int64)
        self.rho = ends.high / ends.low
        self.price = np.full(self.used.shape, ends.low)

    def alpha_step(self) -> float:
        """max(1, max over pools and w' <= w of c (rho^(w'/(c - w + 1)) - 1) / w')."""
        largest = 1.0
        for c, w, room in zip(self.capacity, self.demand, self.room, strict=True):
            for step in range(1, int(w) + 1):
                exponent = step / room * math.log(self.rho)
                growth = math.expm1(exponent) if exponent < 700 else math.inf
                largest = max(largest, float(c) * growth / step)
        return largest

    def take(self, used: Ints) -> float:
        """Add (T + 1, P) devices; the rise of sum c k."""
        before = self.price
        self.used = self.used + used
        self.price = self.ends.low * self.rho ** (self.used / self.room[None, :])
        return float((self.capacity[None, :] * (self.price - before)[1:]).sum())


def _usable(job: JobTable, prices: Prices) -> Bools:
    """(L, P) the pools a level may use."""
    return np.ascontiguousarray(job.allowed[:, prices.kind])


def _gang(order: Ints, free: Ints, usable: Bools, workers: int) -> Ints:
    """(P,) the first free usable devices in an order of pools."""
    used = np.zeros(len(free), dtype=np.int64)
    need = workers
    for p in order:
        if usable[p] and need > 0:
            used[p] = min(need, int(free[p]))
            need -= int(used[p])
    return used


def hadar_online(
    instance: HadarInstance,
    *,
    seed: int = 0,
    eta: str = "horizon",
    price: str = "early",
    umin: str = "direct",
    restart_delay: float = 0.0,
    grid: int = 4096,
) -> HeuristicRun:
    """Admit jobs as they arrive, each with the schedule of the largest payoff under exponential prices.

    Guarantee (``price="early"``, ``umin="direct"`` or ``eta="horizon"``, exact best payoffs, no delay)::

        OPT <= (4/3) alpha_step ALG,
        alpha_step = max(1, max over pools and w' <= w of c (rho^(w'/(c-w+1)) - 1) / w'), rho = U_max / U_min

    and always, with k the final prices: ``OPT <= sum c k + sum_j max(0, best payoff of j at k)``.

    Parameters
    ----------
    eta : ``printed`` leaves T out of the scaling factor, ``horizon`` has it (matters with ``umin="printed"``)
    price : exponent gamma / c (``printed``) or gamma / (c - w + 1) (``early``)
    umin : ``direct`` or ``printed``, see :func:`price_ends`
    restart_delay : time lost whenever a job's devices are not those of the slot before; rates are lowered for
        every slot, as if each were new, so that schedules stay sound. The ratio is then to the optimum without it.
    grid : largest number of progress states of a job; beyond it progress is rounded down, and ``exact`` is false

    Returns
    -------
    HeuristicRun
        ``bound`` is the certificate. ``info``: ``u_min``, ``u_max``, ``alpha`` (max(1, ln rho)), ``alpha_step``,
        ``max_step`` (the largest dD/dP of an admission), ``certificate``, ``initial_dual``, ``admitted``, ``exact``.

    Raises
    ------
    InputError
        The printed U_min is 0, or the delay is as long as a slot.

    Notes
    -----
    O(J T (S L + P log P)) for S progress states and P pools. Source: paper 002, (4) to (8), Theorem 2.
    """
    del seed
    data = tables(instance)
    ends = price_ends(instance, data, umin, eta)
    facts: dict[str, Any]
    if ends is None:
        facts = {"certificate": 0.0, "admitted": 0, "exact": True, "alpha": 1.0, "alpha_step": 1.0, "max_step": 0.0}
        return _with_bound(run_of(instance, Simulated(), **facts), 0.0)
    prices = Prices(data, ends, price == "early")
    if restart_delay >= instance.slot_length:
        raise InputError(
            f"hadar-online: restart_delay: must be less than slot_length ({instance.slot_length:g}), "
            f"got {restart_delay:g}"
        )
    slowed = 1.0 - restart_delay / instance.slot_length
    machines: list[Automaton | None] = [
        automaton(_slowed(job, slowed), data.horizon - job.arrival + 1, grid) if possible else None
        for job, possible in zip(data.jobs, data.possible, strict=True)
    ]
    simulated = Simulated()
    initial = float(prices.capacity.sum()) * data.horizon * ends.low
    admitted, max_step = 0, 0.0
    order_of_arrival = sorted(range(len(data.jobs)), key=lambda j: (data.jobs[j].arrival, j))
    for j in order_of_arrival:
        machine = machines[j]
        if machine is None:
            continue
        chosen = _best(data.jobs[j], machine, prices)
        if chosen is None:
            continue
        payoff, worth, used = chosen
        rise = prices.take(used)
        admitted += 1
        max_step = max(max_step, (payoff + rise) / worth)
        for t in np.flatnonzero(used.any(axis=1)):
            cells = np.zeros(data.machine_capacity.shape, dtype=np.int64)
            for p in np.flatnonzero(used[t]):
                cells[prices.where[p]] = used[t, p]
            simulated.grids.setdefault(int(t), {})[j] = cells
        simulated.finish[j] = int(np.max(np.flatnonzero(used.any(axis=1))))
    simulated.rounds = max(simulated.grids, default=0)
    bound = certificate(data, prices, machines if slowed == 1 else [None] * len(machines))
    facts = {
        "u_min": ends.low,
        "u_max": ends.high,
        "eta": ends.eta,
        "alpha": max(1.0, math.log(prices.rho)),
        "alpha_step": prices.alpha_step(),
        "max_step": max_step,
        "certificate": bound,
        "initial_dual": initial,
        "admitted": admitted,
        "exact": slowed == 1 and all(machine is None or machine.exact for machine in machines),
        "restart_delay": restart_delay,
    }
    return _with_bound(run_of(instance, simulated, **facts), bound)


def _with_bound(run: HeuristicRun, bound: float) -> HeuristicRun:
    # widened by what rounding of the sums may have taken away
    return HeuristicRun(run.solution, run.info, bound * (1 + 1e-9))


def _slowed(job: JobTable, factor: float) -> JobTable:
    """The job with every slot's progress times a factor, rounded down in units fine enough for that."""
    if factor == 1:
        return job
    finer = max(1, min(10**6, FINEST // job.target))
    return replace(job, step=np.floor(job.step * finer * factor).astype(np.int64), target=job.target * finer)


def _best(job: JobTable, machine: Automaton, prices: Prices) -> tuple[float, float, Ints] | None:
    """(payoff, utility, (T + 1, P) devices) of the best schedule that fits what is free; None if not positive."""
    usable = _usable(job, prices)
    free = prices.capacity[None, :] - prices.used
    cost, order = _slot_costs(prices.price, free, usable, job.workers, job.arrival)
    horizon = len(job.utility) - 1
    permit = np.ones((horizon + 1, job.levels + 1), dtype=np.bool_)
    permit[: job.arrival, 1:] = False
    finish_ok = np.arange(horizon + 1) >= job.earliest
    payoffs, end, level_of, state_of = best_schedules(
        cost, job.utility, machine.following, permit, finish_ok, horizon, 1.0
    )
    finish = int(np.argmax(payoffs))
    # a tie at zero is a rejection; rounding of sums must not admit it
    if not payoffs[finish] > 1e-12 * max(1.0, float(job.utility[finish])):
        return None
    levels = trace(end, level_of, state_of, finish)
    used = np.zeros_like(prices.used)
    for t in np.flatnonzero(levels):
        used[t] = _gang(order[t], free[t], usable[levels[t] - 1], job.workers)
    return float(payoffs[finish]), float(job.utility[finish]), used


def certificate(data: Tables, prices: Prices, machines: list[Automaton | None]) -> float:
    """sum c k + sum_j max(0, best payoff at the prices k, ignoring what is taken) >= OPT.

    The best payoff is exact where the job's progress states are, and over-estimated by a relaxation (fractions
    of slots) where they are not; the sum bounds the optimum either way.
    """
    total = float((prices.capacity[None, :] * prices.price[1:]).sum())
    slots = np.arange(1, data.horizon + 1)
    unlimited = np.broadcast_to(prices.capacity, prices.used.shape)
    for j, job in enumerate(data.jobs):
        if not data.possible[j]:
            continue
        usable = _usable(job, prices)
        machine = machines[j]
        if machine is not None and machine.exact:
            cost, _ = _slot_costs(prices.price, np.ascontiguousarray(unlimited), usable, job.workers, job.arrival)
            permit = np.ones((data.horizon + 1, job.levels + 1), dtype=np.bool_)
            permit[: job.arrival, 1:] = False
            finish_ok = np.arange(data.horizon + 1) >= job.earliest
            best = float(
                best_schedules(cost, job.utility, machine.following, permit, finish_ok, data.horizon, 1.0)[0].max()
            )
        else:
            best, _, _ = price_job(
                prices.price[1:],
                prices.capacity,
                job.workers,
                usable,
                job.step / float(job.target),
                job.arrival,
                job.earliest,
                job.utility,
                slots,
                np.ones_like(slots),
                np.concatenate([[0], slots - 1]),
                1.0,
            )
        total += max(0.0, float(best))
    return total
