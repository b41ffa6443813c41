"""The part of comm-contention in the suite quick."""

from __future__ import annotations

from schedgap.catalogue.workload import Batch

_WORK = 1000.0
"""Thousands of nodes: more than any instance of these suites takes."""


ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 6, exact=("bb", "highs", "cbc"), settings={"tasks": 3}, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("bb",), settings={"tasks": 7}, work_limit=_WORK),
    Batch("quick", "bursts", 2),
)
