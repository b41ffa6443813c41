"""Where instances of gpu-sharing come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from schedgap.benchmarks.importers.gpu_sharing import to_gpu_sharing
from schedgap.benchmarks.importers.traces import trace_importers
from schedgap.benchmarks.instances.gpu_sharing.paper import physical, simulated
from schedgap.benchmarks.instances.gpu_sharing.random import contended, pair, small, tiny
from schedgap.catalogue.workload import Batch, Drawing, Preset, Workload

# The part of gpu-sharing in the suite quick.

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


# Where instances of gpu-sharing come from: presets, families, importers, suites, figure.


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.gpu_sharing import gantt

    return gantt


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
)
