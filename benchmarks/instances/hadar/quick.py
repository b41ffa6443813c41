"""The part of hadar in the suite quick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedgap.catalogue.workload import Batch

_ENGINES = ("cbc", "highs", "cpsat")


_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""


_PRINTED: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "hadar-online": ({},),
    "hadar-rounds": ({"payoff": "literal"},),
}
"""What :attr:`~schedgap.catalogue.method.Method.printed` says of them, a test keeps it so."""


ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 10, exact=("colgen", *_ENGINES), work_limit=_WORK),
    Batch("quick", "contended", 4, exact=("colgen",), settings={"jobs": 5, "horizon": 6}, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("colgen",), work_limit=_WORK),
    Batch("quick", "motivation", 1, exact=("colgen", *_ENGINES), work_limit=_WORK),
    Batch(  # two of the four are inside the paper's assumptions: Theorem 2 is judged as printed
        "quick",
        "lowhigh",
        4,
        exact=("colgen",),
        heuristics=tuple(_PRINTED),
        group="lowhigh, printed settings",
        settings={"gpus": 8, "horizon": 3},
        method_settings=_PRINTED,
        work_limit=_WORK,
    ),
)
