"""The part of gpu-sharing in the suite quick."""

from __future__ import annotations

from schedgap.catalogue.workload import Batch

_ENGINES = ("cbc", "highs", "cpsat")


_WORK = 60.0
"""CP-SAT's deterministic time for one solve."""


_AMPLE = {"ample": True}
"""Horizons that cut off no heuristic: means would be over those that happen to end early."""


ROWS: tuple[Batch, ...] = (
    Batch("quick", "table-iii", 2),
    Batch("quick", "small", 4, exact=("cp",), group="10 jobs", settings={"jobs": 10, **_AMPLE}, work_limit=_WORK),
    Batch(
        "quick", "tiny", 6, exact=("cp", *_ENGINES), settings={"slots": 3, "arrivals": 2, **_AMPLE}, work_limit=_WORK
    ),
)
