"""Where instances of ddl-cluster come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from schedgap.benchmarks.importers.traces import trace_importers
from schedgap.benchmarks.instances.ddl_cluster.quick import ROWS
from schedgap.benchmarks.instances.ddl_cluster.random import paper, small, tiny
from schedgap.benchmarks.instances.ddl_cluster.traces import to_ddl_cluster
from schedgap.catalogue.workload import Drawing, Preset, Workload


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.ddl_cluster import gantt

    return gantt


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "2 or 3 placed jobs of 1 or 2 GPUs, one or two iterations in whole seconds", tiny),
        Preset("small", "12 jobs of 1 to 4 GPUs on 4 x 2 GPUs, the models of Table III, up to 60 iterations", small),
        Preset("paper", "160 jobs on 16 x 4 V100, arrivals over 1,200 s (paper 001, section V-A)", paper),
        Preset("large", "1,000 jobs in the same proportions on 128 x 4 V100", paper, {"jobs": 1000, "servers": 128}),
    ),
    importers=trace_importers(to_ddl_cluster),
    suites=ROWS,
    figure=_figure,
)
