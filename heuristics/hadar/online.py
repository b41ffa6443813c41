"""Methods ``hadar-online`` and ``hadar-online+``: the primal-dual algorithm that Theorem 2 of paper 002 is about.

``hadar-online`` has the prices as published, ``hadar-online+`` those with which a theorem holds. Both are certified.
The prices of the printed Algorithms 1 and 2, equation (5), are in ``rounds.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from schedgap.formulations.common.arrays import Bools, Ints
from schedgap.formulations.common.errors import InputError
from schedgap.formulations.hadar.block_pricing import price_job
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.placement import entries_of
from schedgap.formulations.hadar.pricing import Automaton, automaton, best_schedules, demand, slot_costs, trace
from schedgap.formulations.hadar.tables import FINEST, JobTable, ProgressTables, tables
from schedgap.heuristics.common.run import HeuristicRun
from schedgap.heuristics.common.variant import variant
from schedgap.heuristics.hadar.online_prices import Prices, price_ends
from schedgap.heuristics.hadar.simulate import RestartDelay, Simulated, refuse_long_delay, run_of
from schedgap.solvers.result import NO_DEADLINE, Deadline

MOST_BYTES = 2 * 10**9
"""Most memory that the tables by slot may take."""


_BYTES_PER_POOL = 64
"""Prices, devices taken and their copies, by slot and pool."""


_BYTES_PER_STATE = 6
"""What traces a schedule back, by slot and progress state."""


class _TooLargeError(Exception):
    """What traces a schedule back would take more than :data:`MOST_BYTES`."""


_ROUNDING = 1e-12
"""Share of a utility that a payoff has to exceed: sums of floats may be off by so much."""


def _usable(job: JobTable, prices: Prices) -> Bools:
    """(L, P) the pools a level may use."""
    return np.ascontiguousarray(job.allowed[:, prices.kind])


def hadar_online(
    instance: HadarInstance,
    *,
    seed: int = 0,
    deadline: Deadline = NO_DEADLINE,
    eta: Annotated[
        Literal["horizon", "printed"], Field(description="scaling factor of the printed U_min: with T or without")
    ] = "printed",
    price: Annotated[Literal["early", "printed"], Field(description="exponent gamma/(c-w+1) or gamma/c")] = "printed",
    umin: Annotated[Literal["direct", "printed"], Field(description="U_min = u/(4 T C), or eq. (7)")] = "printed",
    restart_delay: RestartDelay = 0.0,
    grid: Annotated[
        int, Field(ge=16, le=100000, description="most progress states of a job; beyond it is not exact")
    ] = 4096,
) -> HeuristicRun:
    """Admit jobs as they arrive, each with the schedule of the largest payoff under exponential prices.

    Guarantee (``price="early"``, ``umin="direct"`` or ``eta="horizon"``, exact best payoffs, no delay)::

        OPT <= (alpha_step + 1/4) ALG,  rho = U_max / U_min,
        alpha_step = max(1, max over pools and w' <= w of c (rho^min(1, w'/(c-w+1)) - 1) / w')

    and always, with k the final prices: ``OPT <= sum c k + sum_j max(0, best payoff of j at k)``. Raises InputError:
    the delay is as long as a slot.

    Parameters
    ----------
    deadline : looked at before every job; those admitted by then stay. The certificate then uses the largest
        utility for the best payoff of a job that is not priced any more
    eta : ``printed`` leaves T out of the scaling factor, ``horizon`` has it (matters with ``umin="printed"``)
    price : exponent gamma / c (``printed``) or gamma / (c - w + 1) (``early``)
    umin : ``direct`` or ``printed``, see :func:`price_ends`
    restart_delay : time lost whenever a job's devices are not those of the slot before; rates are lowered for
        every slot, as if each were new, so that schedules stay sound. The ratio is then to the optimum without it.
    grid : largest number of progress states of a job; beyond it progress is rounded down, and ``exact`` is false

    Returns
    -------
    HeuristicRun
        ``bound`` is the certificate. Nothing where the tables by slot would take more than :data:`MOST_BYTES`,
        or where there are no prices, since U_min is 0 (``reason``). ``info``: ``u_min``, ``u_max``,
        ``alpha`` (max(1, ln rho)), ``alpha_step``, ``max_step`` (the largest dD/dP of an admission),
        ``allocation_cost`` (the largest c dk / (k dgamma), None where nothing was admitted), ``certificate``,
        ``initial_dual``, ``admitted``, ``exact``;
        None for a factor that is too large for a float.

    Notes
    -----
    O(sum_j N_j (S L + P log P)) for windows of N_j slots, S progress states and P pools, and O(T P) for the prices.
    Source: paper 002, (4) to (8), Theorem 2.
    """
    del seed
    return admit(instance, deadline, eta=eta, price=price, umin=umin, restart_delay=restart_delay, grid=grid)


def admit(
    instance: HadarInstance,
    deadline: Deadline = NO_DEADLINE,
    *,
    eta: str,
    price: str,
    umin: str,
    restart_delay: float,
    grid: int,
    all_schedules: bool = False,
    eta_times: float = 1.0,
) -> HeuristicRun:
    """:func:`hadar_online`; on demand with the dual that the paper defines before eq. (4).

    Parameters
    ----------
    all_schedules : ``info`` also has ``max_step_all``, the largest dD/dP of a job where mu_j is the best payoff of any
        schedule of S_j, whether the free devices hold it or not; None where a job with mu_j > 0 is turned away
    eta_times : factor on the printed eta, which the paper only bounds from below
    """
    refuse_long_delay("hadar-online", instance, restart_delay)
    data = tables(instance)
    reason = _too_large(data)
    if reason is not None:
        return HeuristicRun(None, {"reason": reason, "stopped": "too large"})
    try:
        ends = price_ends(instance, data, umin, eta, eta_times)
    except InputError as error:  # the algorithm is not defined here
        return HeuristicRun(None, {"reason": str(error), "stopped": "no prices"})
    facts: dict[str, Any]
    if ends is None:
        facts = {"certificate": 0.0, "admitted": 0, "exact": True, "alpha": 1.0, "alpha_step": 1.0, "max_step": 0.0}
        facts |= {"max_step_all": 0.0} if all_schedules else {}
        return _with_bound(run_of(instance, Simulated(), **facts), 0.0)
    prices = Prices(data, ends, price == "early")
    slowed = 1.0 - restart_delay / instance.slot_length
    machines: list[Automaton | None] = [None] * len(data.jobs)
    stopped = False
    simulated = Simulated()
    initial = float(prices.capacity.sum()) * data.horizon * ends.low
    admitted, max_step, max_step_all = 0, 0.0, 0.0
    order_of_arrival = sorted(range(len(data.jobs)), key=lambda j: (data.jobs[j].arrival, j))
    for j in order_of_arrival:
        if not data.possible[j]:
            continue
        if deadline.passed:
            stopped = True
            break
        machine = automaton(_slowed(data.jobs[j], slowed), data.horizon - data.jobs[j].arrival + 1, grid)
        machines[j] = machine
        try:
            chosen = best_plan(data.jobs[j], machine, prices)
        except _TooLargeError as error:
            return HeuristicRun(None, {"reason": str(error), "stopped": "too large"})
        dual = max(0.0, _payoff(data, prices, machine, j)) if all_schedules else 0.0
        if chosen is None:
            max_step_all = math.inf if dual > _ROUNDING * data.jobs[j].max_utility else max_step_all
            continue
        payoff, worth, used = chosen
        first = data.jobs[j].arrival - 1
        rise = prices.take(used, first)
        max_step_all = max(max_step_all, (dual + rise) / worth)
        admitted += 1
        max_step = max(max_step, (payoff + rise) / worth)
        for t in np.flatnonzero(used.any(axis=1)):
            cells = np.zeros(data.machine_capacity.shape, dtype=np.int64)
            for p in np.flatnonzero(used[t]):
                cells[prices.where[p]] = used[t, p]
            simulated.hold(j, first + int(t), first + int(t), entries_of(instance, data, cells))
        simulated.finish[j] = first + int(np.max(np.flatnonzero(used.any(axis=1))))
    simulated.rounds = max((runs[-1][1] for runs in simulated.runs.values()), default=0)
    bound = certificate(data, prices, machines if slowed == 1 else [None] * len(machines), deadline)
    facts = {
        "u_min": ends.low,
        "u_max": ends.high,
        "eta": ends.eta,
        "alpha": max(1.0, prices.log_rho),
        "alpha_step": _finite(prices.alpha_step()),
        "max_step": _finite(max_step),
        "allocation_cost": None if prices.steepest is None else _finite(prices.steepest),
        "certificate": _finite(bound),
        "initial_dual": initial,
        "admitted": admitted,
        "exact": slowed == 1 and all(machine is None or machine.exact for machine in machines),
        "restart_delay": restart_delay,
    }
    if all_schedules:
        facts["max_step_all"] = _finite(max_step_all)
    if stopped:
        simulated.stopped = "time limit"
    return _with_bound(run_of(instance, simulated, **facts), bound)


hadar_online_plus = variant(
    hadar_online,
    "hadar-online+",
    "``hadar-online`` repaired: prices with the exponent gamma / (c - w + 1) and ``U_min = u / (4 T C)``, with which "
    "``OPT <= (alpha_step + 1/4) ALG``. See :func:`hadar_online`.",
    defaults={"eta": "horizon", "price": "early", "umin": "direct"},
)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _too_large(data: ProgressTables) -> str | None:
    """Why the tables of prices and devices by slot and pool are not made, or None."""
    size = (data.horizon + 1) * _BYTES_PER_POOL * int((data.machine_capacity > 0).sum())
    if size <= MOST_BYTES:
        return None
    return (
        f"hadar-online: prices and schedules over {data.horizon:,} slots take about {size / 1e9:.1f} GB, "
        f"more than {MOST_BYTES / 1e9:.1f} GB; hadar-rounds needs no tables by slot"
    )


def _with_bound(run: HeuristicRun, bound: float) -> HeuristicRun:
    # widened by what rounding of the sums may have taken away
    return replace(run, bound=bound * (1 + 1e-9) if math.isfinite(bound) else None)


def _slowed(job: JobTable, factor: float) -> JobTable:
    """The job with every slot's progress times a factor, rounded down in units fine enough for that."""
    if factor == 1:
        return job
    finer = max(1, min(10**6, FINEST // job.target))
    return replace(job, step=np.floor(job.step * finer * factor).astype(np.int64), target=job.target * finer)


def _window(job: JobTable, machine: Automaton, prices: Prices, fitting: bool) -> tuple[float, int, Callable[[], Ints]]:
    """(best payoff, finish slot, maker of the devices) over the slots that can matter.

    A payoff is never above the utility of its finish slot, and utilities do not rise after the earliest finish. So once
    the utility of the next slot is not above the best payoff, no later finish is better; the first of equal ones is
    taken. Row 0 of the tables is the slot before the arrival.
    """
    usable = _usable(job, prices)
    utility = job.worth.array()
    last = job.earliest
    horizon = len(utility) - 1
    while True:
        rows = slice(job.arrival - 1, last + 1)
        count = last - job.arrival + 1
        if _BYTES_PER_STATE * (count + 1) * machine.states > MOST_BYTES:
            raise _TooLargeError(f"hadar-online: {count:,} slots of a job by {machine.states:,} states of its progress")
        free = prices.capacity[None, :] - prices.used[rows] if fitting else prices.capacity[None]
        cost, order = slot_costs(prices.price[rows], free, job.workers, usable, 1, count)
        permit = np.ones((count + 1, job.levels + 1), dtype=np.bool_)
        permit[0, 1:] = False
        finish_ok = np.arange(job.arrival - 1, last + 1) >= job.earliest
        payoffs, end, level_of, state_of = best_schedules(
            cost, utility[rows], machine.following, permit, finish_ok, count, 1.0
        )
        best = int(np.argmax(payoffs))
        if last >= horizon or utility[last + 1] <= max(0.0, payoffs[best]):
            break
        last = min(horizon, last + count)
    return (
        float(payoffs[best]),
        job.arrival - 1 + best,
        lambda: demand(trace(end, level_of, state_of, best), order, free, job.workers, usable),
    )


def best_plan(job: JobTable, machine: Automaton, prices: Prices) -> tuple[float, float, Ints] | None:
    """(payoff, utility, (N, P) devices from the slot before the arrival on) of the best schedule that fits.

    None where no payoff is positive.
    """
    if not machine.following[0].any():  # a slot's progress is less than a unit of the grid: the job is never done
        return None
    payoff, finish, devices = _window(job, machine, prices, True)
    worth = job.worth.at(finish)
    # a tie at zero is a rejection; rounding of sums must not admit it
    if not payoff > _ROUNDING * worth:
        return None
    return payoff, worth, devices()


def certificate(
    data: ProgressTables, prices: Prices, machines: list[Automaton | None], deadline: Deadline = NO_DEADLINE
) -> float:
    """sum c k + sum_j max(0, best payoff at the prices k, ignoring what is taken) >= OPT.

    The best payoff is exact where the job's progress states are, and over-estimated by a relaxation (fractions
    of slots) where they are not; after the deadline it is taken to be the job's largest utility. The sum bounds
    the optimum in every case.
    """
    total = float((prices.capacity[None, :] * prices.price[1:]).sum())
    for j, job in enumerate(data.jobs):
        if data.possible[j]:
            total += job.max_utility if deadline.passed else max(0.0, _payoff(data, prices, machines[j], j))
    return total


def _payoff(data: ProgressTables, prices: Prices, machine: Automaton | None, j: int) -> float:
    """The best payoff of a job at the present prices, whatever is taken; over-estimated where it is not exact."""
    job = data.jobs[j]
    if machine is not None and machine.exact:
        # where that takes too much memory, the relaxation is above it and bounds as well
        with suppress(_TooLargeError):
            return _window(job, machine, prices, False)[0]
    usable = _usable(job, prices)
    runs = prices.segments()
    best, _, _ = price_job(
        prices.price[runs.start],
        prices.capacity,
        job.workers,
        usable,
        job.step / float(job.target),
        job.arrival,
        job.earliest,
        job.worth.array(),
        runs.start,
        runs.length,
        runs.of_slot,
        1.0,
    )
    return float(best)
