"""Where instances of hadar come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from schedgap.benchmarks.importers.hadar import to_hadar
from schedgap.benchmarks.importers.traces import trace_importers
from schedgap.benchmarks.instances.hadar.mixes import mixes
from schedgap.benchmarks.instances.hadar.random import contended, lowhigh, motivation, nodes, rounds, small, tiny, trace
from schedgap.catalogue.workload import Batch, Preset, Workload
from schedgap.formulations.common.options import named

# The part of hadar in the suite quick.

_ENGINES = ("cbc", "highs", "cpsat")
_WORK = 60.0
"""Far more than any instance of these suites takes: thousands of nodes, or CP-SAT's deterministic time."""
_PRINTED: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "hadar-online": ({},),
    "hadar-rounds": ({"payoff": "literal"},),
}
"""What :attr:`~schedgap.catalogue.method.Method.printed` says of them, a test keeps it so."""
ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 10, exact=("colgen", *_ENGINES), work_limit=_WORK),
    Batch("quick", "contended", 4, exact=("colgen",), settings={"jobs": 5, "horizon": 6}, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("colgen",), work_limit=_WORK),
    Batch("quick", "motivation", 1, exact=("colgen", *_ENGINES), work_limit=_WORK),
    Batch(  # two of the four are inside the paper's assumptions: Theorem 2 is judged as printed
        "quick",
        "lowhigh",
        4,
        exact=("colgen",),
        heuristics=tuple(_PRINTED),
        group="lowhigh, printed settings",
        settings={"gpus": 8, "horizon": 3},
        method_settings=_PRINTED,
        work_limit=_WORK,
    ),
)


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
    families=partial(named, "schedgap.benchmarks.instances.hadar.random:FAMILIES"),
    suites=ROWS,
    figure=partial(named, "schedgap.benchmarks.figures.hadar:devices"),
)
