"""Where instances of gang-placement come from: presets, families, suites."""

from __future__ import annotations

from schedgap.benchmarks.instances.gang_placement.quick import ROWS
from schedgap.benchmarks.instances.gang_placement.random import FAMILIES, cluster, halves, small_first, tiny
from schedgap.catalogue.workload import Drawing, Preset, Workload


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.gang_placement import devices

    return devices


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
    families=lambda: FAMILIES,
    figure=_figure,
    suites=ROWS,
)
