"""The part of rar-ddls in every suite."""

from __future__ import annotations

from schedgap.benchmarks.descriptors import Batch, Kind, Measurement, Method

_ENGINES = ("cbc", "highs", "cpsat")

_QUICK = (
    Batch("quick", "tiny", 8, exact=("cp", *_ENGINES)),
    Batch("quick", "contended", 8, exact=("cp", *_ENGINES)),
)

ROWS: tuple[Batch | Measurement, ...] = (*_QUICK,)
