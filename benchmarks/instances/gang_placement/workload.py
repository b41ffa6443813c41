"""Where instances of gang-placement come from: presets, families, suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedgap.benchmarks.instances.gang_placement.random import cluster, halves, small_first, tiny
from schedgap.catalogue.workload import Batch, Drawing, Preset, Trial, Workload

# The part of gang-placement in the suite quick.

_WORK = 100.0
"""Of CP-SAT's deterministic time, more than any of these takes."""
ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 4, exact=("staged", "cbc", "highs", "cpsat"), work_limit=_WORK),
    Batch("quick", "halves", 2, exact=("staged",), work_limit=_WORK),
)


# Where instances of gang-placement come from: presets, families, suites.


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.gang_placement import devices

    return devices


def _families() -> Mapping[str, Callable[[int], Trial]]:
    from schedgap.benchmarks.instances.gang_placement.random import FAMILIES

    return FAMILIES


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "up to 3 nodes and 3 gangs, every decision can be tried", tiny),
        Preset("cluster", "16 nodes of 8 GPUs in racks and blocks, half taken, 8 gangs", cluster),
        Preset("large", "64 nodes, 20 gangs", cluster, {"nodes": 64, "gangs": 20}),
        Preset("parts", "as cluster, half of the gangs with parts of devices", cluster, {"parts": 0.5}),
        Preset(
            "small-first", "gangs of 4 and 8 on nodes of 4 and 8: small ones on large nodes place 8 of 24", small_first
        ),
        Preset("halves", "gangs of one node each, a knapsack for rules", halves),
    ),
    families=_families,
    figure=_figure,
    suites=ROWS,
)
