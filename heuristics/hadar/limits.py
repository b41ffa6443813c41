"""How large a schedule may get, and when a run has to stop to be written and scored in time."""

from __future__ import annotations

from schedgap.solvers.result import Deadline

MOST_ENTRIES = 2_000_000
MOST_BYTES = 1 << 30
"""Most (job, slot) pairs of a schedule, and most bytes of its device grids; a run that needs more is stopped."""

SECONDS_PER_ENTRY = 1e-4
"""What a (job, slot) pair costs after the last round: the solution object, metrics and the checker, twice in rationals.
30 to 90 microseconds measured."""


def short_of_time(deadline: Deadline, entries: int) -> bool:
    """Whether it is time to stop, so that a schedule with so many (job, slot) pairs can still be written and scored."""
    left = deadline.left()
    return left is not None and left <= entries * SECONDS_PER_ENTRY
