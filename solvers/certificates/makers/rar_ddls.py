"""Certificates of rar-ddls: what may show that its jobs do not fit a horizon (form ``area``), and rows."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from schedgap.formulations.rar_ddls.bounds import _across, _families, _Load, lower_bound
from schedgap.formulations.rar_ddls.instance import RarDdlsInstance
from schedgap.formulations.rar_ddls.rates import rate_table
from schedgap.solvers.certificates.content import Leaf
from schedgap.solvers.certificates.make import Way, by_branching

MOST_MARGINS = 48


def areas(instance: RarDdlsInstance, horizon: int) -> Iterator[dict[str, Any]]:
    """Leaves to try, likely ones first: the longest job, dual feasible functions over the middle, large gangs."""
    table = rate_table(instance)
    longest = int(table.best_duration.argmax())
    yield {"job": longest}
    load = _Load.of(table)
    moments = np.unique(np.concatenate([[0], load.slots, horizon - load.slots]))
    moments = moments[(moments >= 0) & (2 * moments < horizon)]
    if moments.size > MOST_MARGINS:
        moments = moments[np.linspace(0, moments.size - 1, MOST_MARGINS).astype(np.int64)]
    for family in _families(load.gangs, instance.total_gpus):
        weights = {str(g): int(w) for g, w in zip(load.gangs, family.weights, strict=True)}
        for margin in moments.tolist():
            if family.overfilled(load, margin, horizon):
                yield {"weights": weights, "margin": margin}
    sizes = np.sort(np.array([server.gpus for server in instance.servers], dtype=np.int64))[::-1]
    across = _across(table, sizes)
    for g in np.unique(table.gpus).tolist():
        for j in np.flatnonzero((table.gpus >= g) & (table.gpus <= sizes[0])).tolist():
            factor = Fraction(int(table.gpus[j]) * int(across[j] - table.best_duration[j]), int(table.best_duration[j]))
            yield {"gang": g, "factor": str(factor)}


def leaves(instance: RarDdlsInstance, given: dict[str, Any]) -> Iterator[Leaf]:
    """What may prove today's bound."""
    bound = lower_bound(instance)
    if bound is not None:
        horizon = min(given["horizon"], int(bound) - 1)
        for content in areas(instance, horizon):
            yield "area", {"horizon": horizon}, content


def way(instance: RarDdlsInstance, given: dict[str, Any], value: Fraction | None) -> Way:
    """Rows of the schedules that end a slot earlier."""
    del instance
    return "rows", {"horizon": given["horizon"] if value is None else int(value) - 1}, by_branching
