"""Where instances of gpu-sharing come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from schedgap.benchmarks.importers.traces import trace_importers
from schedgap.benchmarks.instances.gpu_sharing.paper import (
    physical,
    simulated,
)
from schedgap.benchmarks.instances.gpu_sharing.quick import ROWS
from schedgap.benchmarks.instances.gpu_sharing.random import contended, pair, small, tiny
from schedgap.benchmarks.instances.gpu_sharing.traces import to_gpu_sharing
from schedgap.catalogue.workload import Drawing, Preset, Workload


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.gpu_sharing import gantt

    return gantt


def _pair_figure() -> Drawing:
    from schedgap.benchmarks.figures.gpu_sharing import pair_curve

    return pair_curve


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "3 or 4 jobs on 2 or 3 GPUs, brute force is possible", tiny),
        Preset(
            "contended",
            "gangs of up to the whole cluster, all there at once, strong interference, tight memory",
            contended,
        ),
        Preset("pair", "two jobs, the second arrives while the first one runs: form and method job-pair", pair),
        Preset("small", "16 jobs on 8 GPUs within 48 slots, meant to be proven by cp", small),
        Preset("table-ii", "30 jobs on 4 x 4 GPUs, after Table II", physical),
        Preset("table-iii", "240 jobs on 16 x 4 GPUs, after Table III", simulated),
        Preset("table-iv", "480 jobs on 16 x 4 GPUs, after Table IV", simulated, {"jobs": 480}),
    ),
    importers=trace_importers(to_gpu_sharing),
    suites=ROWS,
    figure=_figure,
    pair_figure=_pair_figure,
)
