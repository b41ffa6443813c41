"""The certified upper bound of hadar at any size: by slots, by blocks of slots or by prices, as the size allows."""

from __future__ import annotations

import math

from schedgap.formulations.common.instance import once_per_instance
from schedgap.formulations.common.numbers import MAXIMISE
from schedgap.formulations.hadar.instance import HadarInstance
from schedgap.formulations.hadar.tables import ProgressTables, in_units, tables
from schedgap.solvers.column_generation import GenerationLimits, Master
from schedgap.solvers.exact.hadar.block_bound import block_bound
from schedgap.solvers.exact.hadar.event_prices import event_prices
from schedgap.solvers.exact.hadar.schedules import Scheduler

ORDINARY = (0.1, 1e6)
"""Where the largest utility may be so that tolerances of 1e-9 mean what they should."""


SMALL = 1_000
"""Up to so many (job, slot) pairs prices are by slot and schedules exact."""


MEDIUM = 20_000
"""Up to so many, blocks are fine; beyond they are coarse."""


MANY = 1_000_000
"""Beyond so many there are prices between events, too: their work does not grow with slots."""


LARGE = 5_000_000
"""Beyond so many, utilities by slot are not made."""


@once_per_instance
def upper_bound(instance: HadarInstance) -> float | None:
    """A certified upper bound on the utility of P2, and so of P1.

    Small instances: LP(P2) by column generation with exact pricing (its last valid bound, should the iterations
    end first). Larger ones: block prices; beyond :data:`MANY` (job, slot) pairs prices between
    events, and beyond :data:`LARGE` these alone.
    Computed once per instance object; iterations are counted, not timed, so the value is repeatable. Returns ``bound >=
    optimum``; 0 where no job can finish.
    """
    scaled, unit = in_units(instance, ORDINARY)
    return _bound(tables(scaled)) * unit


def warm_up(instance: HadarInstance) -> None:
    """Compile the bounds by prices, or load them from the cache: small instances do not use them."""
    data = tables(instance)
    size = len(data.jobs) * data.horizon
    if size > MANY and data.possible.any():
        event_prices(data, 1)
    if size <= LARGE:
        block_bound(data, 0.2)


def _bound(data: ProgressTables) -> float:
    if not data.possible.any():
        return 0.0
    size = len(data.jobs) * data.horizon
    if size <= SMALL:
        exact = _slot_prices(data)
        if exact is not None:
            return exact
    between = event_prices(data).value if size > MANY else math.inf
    return between if size > LARGE else min(between, block_bound(data, 0.06 if size <= MEDIUM else 0.2).bound)


def _slot_prices(data: ProgressTables) -> float | None:
    """LP(P2), or a valid bound near it; None where a job has too many progress states."""
    scheduler = Scheduler(data, most_states=2_000)
    if not scheduler.exact:
        return None
    master = Master(MAXIMISE, scheduler.capacity_rows(), [False] * len(data.jobs))
    found = master.generate(
        lambda duals, weight: scheduler.price_all(duals, weight, scheduler.free_rules),
        GenerationLimits(iterations=200, tolerance=1e-7),
    )
    # rounding of the sums must not cut an optimum off
    return None if found.bound is None else found.bound * (1 + 1e-9) + 1e-9
