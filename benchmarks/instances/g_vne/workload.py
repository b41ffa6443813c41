"""Where instances of g-vne come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedgap.benchmarks.importers.g_vne import import_clos, import_gml
from schedgap.benchmarks.instances.g_vne.random import fat, large_tree, racks, random, small, tiny
from schedgap.benchmarks.instances.g_vne.suites import ROWS
from schedgap.catalogue.workload import Drawing, Importer, Preset, Trial, Workload


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.g_vne import network

    return network


def _families() -> Mapping[str, Callable[[int], Trial]]:
    from schedgap.benchmarks.instances.g_vne.adversarial import FAMILIES

    return FAMILIES


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "2 to 4 servers and jobs on tight links, brute force is possible", tiny),
        Preset("small", "6 servers and 5 jobs, a tree or a graph", small),
        Preset("racks", "one slot of section VI: 50 servers in 2 to 5 racks, sigmoid utilities", racks),
        Preset("fat-tree", "a fat tree of switches with 4 ports: 16 servers", fat),
        Preset("random", "a random graph of 50 servers that relay", random),
        Preset("large-tree", "400 servers in 20 racks, 200 jobs", large_tree),
    ),
    importers=(
        Importer("gml", "a graph in GML, such as those of the Internet Topology Zoo; jobs are drawn", import_gml),
        Importer(
            "clos",
            "hosts below three layers of switches (alibaba-lingjun-dataset-2023, topo.csv); jobs are drawn",
            import_clos,
        ),
    ),
    families=_families,
    suites=ROWS,
    figure=_figure,
)
