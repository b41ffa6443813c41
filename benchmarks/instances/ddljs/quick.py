"""The part of ddljs in the suite quick."""

from __future__ import annotations

from schedgap.catalogue.workload import Batch

_ENGINES = ("cpsat", "highs", "cbc")


_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""


ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 8, exact=_ENGINES, work_limit=_WORK),
    Batch("quick", "small", 3, exact=("cpsat",), settings={"horizon": 4}, work_limit=_WORK),
)
