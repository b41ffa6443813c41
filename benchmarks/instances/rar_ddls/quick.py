"""The part of rar-ddls in the suite quick."""

from __future__ import annotations

from schedgap.catalogue.workload import Batch

_ENGINES = ("cbc", "highs", "cpsat")


_WORK = 20.0
"""CP-SAT's deterministic time for one solve, far more than any instance of these suites takes."""


_ROOM = {"ample": True}
"""Horizons that cut off no heuristic: means would be over those that happen to end early."""


ROWS: tuple[Batch, ...] = (
    Batch("quick", "paper", 2),
    Batch("quick", "paper", 2, group="paper with 10 servers", settings={"servers": 10}),
    Batch(
        "quick",
        "small",
        6,
        exact=("cp",),
        group="small with 12 jobs",
        settings={**_ROOM, "jobs": 12, "servers": 5},
        work_limit=_WORK,
    ),
    Batch("quick", "small", 4, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("cp",), settings=_ROOM, first=4, work_limit=_WORK),
    Batch("quick", "tiny", 10, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
    Batch("quick", "contended", 10, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
)
