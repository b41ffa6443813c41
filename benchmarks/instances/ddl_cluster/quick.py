"""The part of ddl-cluster in the suite quick."""

from __future__ import annotations

from schedgap.catalogue.workload import Batch

_PLACED = {
    name: tuple({"placement": placement} for placement in ("lwf", "ls", "ff", "rand"))
    for name in ("srsf-1", "ada-srsf")
}


_JOB_SHOP = ("job-shop", "cbc", "highs")
"""The restriction to one all-reduce at a time, three ways."""


ROWS: tuple[Batch, ...] = (
    Batch("quick", "small", 2, method_settings=_PLACED),
    Batch("quick", "tiny", 4, exact=("cp", *_JOB_SHOP), heuristics=("srsf-1", "srsf-2", "ada-srsf"), work_limit=10.0),
)
