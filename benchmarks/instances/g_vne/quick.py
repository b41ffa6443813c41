"""The part of g-vne in the suite quick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedgap.catalogue.workload import Batch

_ENGINES = ("cbc", "highs", "cpsat")


_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""


_VARIANTS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "lp-rs-mde": (
        {},
        {"lp": "augmented"},
        {"variant": "mdk"},
        {"variant": "mdk", "ring_sizes": "free"},
    )
}
"""Algorithm 2 repaired, with the printed program, and what is left out of it; as published it is another method."""


ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 5, exact=("colgen", *_ENGINES), method_settings=_VARIANTS, work_limit=_WORK),
    Batch(
        "quick",
        "small",
        3,
        exact=("colgen",),
        method_settings=_VARIANTS,
        settings={"servers": 5, "jobs": 4},
        work_limit=_WORK,
    ),
)
