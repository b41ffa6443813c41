"""Where instances of hadar come from: presets, families, mixes, traces, suites, figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedgap.benchmarks.importers.traces import trace_importers
from schedgap.benchmarks.instances.hadar.mixes import mixes
from schedgap.benchmarks.instances.hadar.quick import ROWS
from schedgap.benchmarks.instances.hadar.random import contended, lowhigh, motivation, nodes, rounds, small, tiny, trace
from schedgap.benchmarks.instances.hadar.traces import to_hadar
from schedgap.catalogue.workload import Drawing, Preset, Trial, Workload


def _families() -> Mapping[str, Callable[[int], Trial]]:
    from schedgap.benchmarks.instances.hadar.families import FAMILIES

    return FAMILIES


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.hadar import devices

    return devices


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "2 to 4 jobs on 2 to 4 devices, brute force is possible", tiny),
        Preset(
            "small",
            "three device types, more work than devices; the defaults are proven in a second, 16 x 20 in a minute",
            small,
        ),
        Preset("contended", "gangs that fit only by mixing device types", contended),
        Preset("trace", "480 jobs on 60 devices of 15 nodes, 400 rounds of 6 minutes, as in section IV", trace),
        Preset("rounds", "one round with many waiting jobs; one node of 4 devices for every 32", rounds),
        Preset("motivation", "section II-A's example: three jobs, 2 V100, 3 P100, 1 K80", motivation),
        Preset("lowhigh", "one pool, jobs worth little first and much later", lowhigh),
        Preset("mixes", "section VI: a mix of 1 to 12 jobs on five machines of one device, AWS or testbed", mixes),
        Preset("nodes", "nodes of one device, each of its own type: what HadarE forks", nodes),
    ),
    importers=trace_importers(to_hadar, throughputs=True),
    families=_families,
    suites=ROWS,
    figure=_figure,
)
