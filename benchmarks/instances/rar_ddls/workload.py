"""Where instances of rar-ddls come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedgap.benchmarks.importers.traces import trace_importers
from schedgap.benchmarks.instances.rar_ddls.quick import ROWS
from schedgap.benchmarks.instances.rar_ddls.random import contended, large, paper, small, tiny
from schedgap.benchmarks.instances.rar_ddls.traces import to_rar_ddls
from schedgap.catalogue.workload import Drawing, Preset, Trial, Workload


def _families() -> Mapping[str, Callable[[int], Trial]]:
    from schedgap.benchmarks.instances.rar_ddls.families import FAMILIES

    return FAMILIES


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.rar_ddls import gantt

    return gantt


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "3 to 4 jobs, brute force is possible", tiny),
        Preset("contended", "tiny, and rings are forced to cross and contend", contended),
        Preset("small", "measured job rates, solved to optimality in seconds", small),
        Preset("paper", "160 jobs on 20 servers, as in section 7", paper),
        Preset("large", "10,000 jobs on 10,000 GPUs", large),
    ),
    importers=trace_importers(to_rar_ddls, throughputs=True, first="rings"),
    families=_families,
    suites=ROWS,
    figure=_figure,
)
