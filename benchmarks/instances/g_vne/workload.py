"""Where instances of g-vne come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from schedgap.benchmarks.instances.g_vne.network_files import network_importers
from schedgap.benchmarks.instances.g_vne.quick import ROWS
from schedgap.benchmarks.instances.g_vne.random import fat, large_tree, on_substrate, racks, random, small, tiny
from schedgap.catalogue.workload import Drawing, Preset, Trial, Workload


def _families() -> Mapping[str, Callable[[int], Trial]]:
    from schedgap.benchmarks.instances.g_vne.families import FAMILIES

    return FAMILIES


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.g_vne import network

    return network


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "2 to 4 servers and jobs on tight links, brute force is possible", tiny),
        Preset("small", "6 servers and 5 jobs, a tree or a graph", small),
        Preset("racks", "one slot of section VI: 50 servers in 2 to 5 racks, sigmoid utilities", racks),
        Preset("fat-tree", "a fat tree of switches with 4 ports: 16 servers", fat),
        Preset("random", "a random graph of 50 servers that relay", random),
        Preset("large-tree", "400 servers in 20 racks, 200 jobs", large_tree),
    ),
    importers=network_importers(on_substrate, partial(on_substrate, jobs=200, workers=16)),
    families=_families,
    suites=ROWS,
    figure=_figure,
)
