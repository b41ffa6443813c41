"""P3's solution: prices of devices, payoffs of jobs, and the two checks that make them optimal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schedgap.formulations.common.instance import Json
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.solvers.column_generation import (
    Generated,
)
from schedgap.solvers.exact.hadar.schedules import Rules, Scheduler


def duals_report(
    instance: HadarInstance, scheduler: Scheduler, root: Generated, rules: Sequence[Rules]
) -> dict[str, Json]:
    """Prices k^r(t), payoffs mu_j, and how far they are from solving P3 together with the LP's weights.

    A type has the same price on every machine, as the problem has no locality. Residuals, all 0 in exact
    arithmetic:

    - ``dual_infeasibility``: max_j (best payoff at the prices - mu_j), from exact pricing over all schedules;
    - ``strong_duality``: |sum c k + sum mu - LP value|;
    - ``row_slackness``: max over (type, slot) of price times unused devices;
    - ``column_slackness``: max over columns of weight times (mu_j - payoff);
    - ``job_slackness``: max over jobs of mu_j times the share that is not chosen (P2).

    Returns ``prices`` {type: (T,) list}, ``payoffs`` {job: mu}, ``duality`` {residual: value}.
    """
    data = scheduler.data
    duals = np.maximum(root.master_duals, 0.0)
    price = scheduler.prices(duals)
    mu = np.array(root.master_payoffs, dtype=float)
    if not instance.all_jobs_must_finish:
        mu = np.maximum(mu, 0.0)
    used = np.zeros(scheduler.rows())
    share = np.zeros(len(data.jobs))
    column_slackness = 0.0
    for column, weight in zip(root.columns, root.weights, strict=True):
        if weight > 0:
            np.add.at(used, column.rows, weight * column.values)
            share[column.group] += weight
            payoff = column.objective - float(duals[column.rows] @ column.values)
            column_slackness = max(column_slackness, float(weight) * abs(mu[column.group] - payoff))
    capacity = np.tile(data.capacity.astype(float), scheduler.horizon)
    infeasible = 0.0
    for j in range(len(data.jobs)):
        payoff_by_slot, _ = scheduler.best(j, price, rules[j])
        best = float(payoff_by_slot.max())
        if np.isfinite(best):
            infeasible = max(infeasible, best - float(mu[j]))
    value = float(root.value or 0.0)
    return {
        "prices": {
            kind: [float(x) for x in price.devices[1:, position]] for position, kind in enumerate(instance.types)
        },
        "payoffs": {job.id: float(m) for job, m in zip(instance.jobs, mu, strict=True)},
        "residuals": {
            "dual_infeasibility": infeasible,
            "strong_duality": abs(float(capacity @ duals) + float(mu.sum()) - value),
            "row_slackness": float(np.max(duals * np.maximum(0.0, capacity - used), initial=0.0)),
            "column_slackness": column_slackness,
            "job_slackness": float(np.max(np.abs(mu) * np.abs(1 - share), initial=0.0)),
        },
    }
