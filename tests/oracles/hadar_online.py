"""hadar-online's choice of a schedule over all slots of the horizon, the plain form of what looks at a window."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from schedgap.formulations.hadar.pricing import Automaton, best_schedules, demand, slot_costs, trace
from schedgap.formulations.hadar.tables import JobTable
from schedgap.heuristics.hadar.online_prices import Prices

Ints = NDArray[np.int64]


def best_plan(
    job: JobTable, machine: Automaton, prices: Prices, fitting: bool = True
) -> tuple[float, float, Ints] | None:
    """(payoff, utility, (T + 1, P) devices) of the best schedule among those that fit, or among all."""
    usable = np.ascontiguousarray(job.allowed[:, prices.kind])
    free = prices.capacity[None, :] - prices.used if fitting else prices.capacity[None]
    horizon = len(job.utility) - 1
    cost, order = slot_costs(prices.price, free, job.workers, usable, job.arrival, horizon)
    permit = np.ones((horizon + 1, job.levels + 1), dtype=np.bool_)
    permit[: job.arrival, 1:] = False
    finish_ok = np.arange(horizon + 1) >= job.earliest
    payoffs, end, level_of, state_of = best_schedules(
        cost, job.utility, machine.following, permit, finish_ok, horizon, 1.0
    )
    finish = int(np.argmax(payoffs))
    if not payoffs[finish] > 1e-12 * float(job.utility[finish]):
        return None
    used = demand(trace(end, level_of, state_of, finish), order, free, job.workers, usable)
    return float(payoffs[finish]), float(job.utility[finish]), used
