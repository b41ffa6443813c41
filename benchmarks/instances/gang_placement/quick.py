"""The part of gang-placement in the suite quick."""

from __future__ import annotations

from schedgap.catalogue.workload import Batch

_WORK = 100.0
"""CP-SAT's deterministic time, more than any of these takes."""


ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 4, exact=("staged", "cbc", "highs", "cpsat"), work_limit=_WORK),
    Batch("quick", "halves", 2, exact=("staged",), work_limit=_WORK),
)
