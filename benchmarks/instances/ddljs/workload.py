"""Where instances of ddljs come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedgap.benchmarks.importers.traces import trace_importers
from schedgap.benchmarks.instances.ddljs.quick import ROWS
from schedgap.benchmarks.instances.ddljs.random import on_substrate, paper, small, tiny
from schedgap.benchmarks.instances.ddljs.traces import to_ddljs
from schedgap.benchmarks.instances.g_vne.network_files import network_importers
from schedgap.catalogue.workload import Drawing, Preset, Trial, Workload


def _families() -> Mapping[str, Callable[[int], Trial]]:
    from schedgap.benchmarks.instances.ddljs.families import FAMILIES

    return FAMILIES


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.ddljs import worker_slots

    return worker_slots


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "1 to 3 servers, 2 or 3 jobs, 2 to 4 slots: brute force is possible", tiny),
        Preset("small", "4 servers in two racks, 4 jobs, 5 slots, links that hold few rings", small),
        Preset(
            "paper",
            "section VI: 50 servers in 2 to 5 racks, 200 slots, sigmoid utilities; `jobs` varies in Figure 4",
            paper,
        ),
        Preset(
            "figure-5",
            "section VI with few GPUs and many jobs: `gpu_factor` varies",
            paper,
            {"jobs": 300, "gpu_factor": 0.5, "steepness": 0.01},
        ),
        Preset(
            "figure-6",
            "section VI with narrow links: `bandwidth_factor` varies",
            paper,
            {"jobs": 300, "bandwidth_factor": 0.05, "steepness": 0.01},
        ),
        Preset(
            "figure-7",
            "a cluster whose slots are solved exactly: `gadget` with one inner method and another",
            paper,
            {"servers": 10, "racks": 2, "jobs": 40, "horizon": 50, "bandwidth_factor": 0.1, "utilities": "sqrt"},
        ),
    ),
    importers=(*network_importers(on_substrate), *trace_importers(to_ddljs)),
    families=_families,
    suites=ROWS,
    figure=_figure,
)
