"""Where instances of rar-ddls come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from functools import partial

from schedgap.benchmarks.importers.rar_ddls import to_rar_ddls
from schedgap.benchmarks.importers.traces import trace_importers
from schedgap.benchmarks.instances.rar_ddls.random import contended, large, paper, small, tiny
from schedgap.catalogue.workload import Batch, Preset, Workload
from schedgap.formulations.common.options import named

# The part of rar-ddls in the suite quick.

_ENGINES = ("cbc", "highs", "cpsat")
_WORK = 20.0
"""CP-SAT's deterministic time for one solve, far more than any instance of these suites takes."""
_ROOM = {"ample": True}
"""Horizons that cut off no heuristic: means would be over those that happen to end early."""
ROWS: tuple[Batch, ...] = (
    Batch("quick", "paper", 2),
    Batch("quick", "paper", 2, group="paper with 10 servers", settings={"servers": 10}),
    Batch(
        "quick",
        "small",
        6,
        exact=("cp",),
        group="small with 12 jobs",
        settings={**_ROOM, "jobs": 12, "servers": 5},
        work_limit=_WORK,
    ),
    Batch("quick", "small", 4, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("cp",), settings=_ROOM, first=4, work_limit=_WORK),
    Batch("quick", "tiny", 10, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
    Batch("quick", "contended", 10, exact=("cp", *_ENGINES), settings=_ROOM, work_limit=_WORK),
)


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "3 to 4 jobs, brute force is possible", tiny),
        Preset("contended", "tiny, and rings are forced to cross and contend", contended),
        Preset("small", "measured job rates, solved to optimality in seconds", small),
        Preset("paper", "160 jobs on 20 servers, as in section 7", paper),
        Preset("large", "10,000 jobs on 10,000 GPUs", large),
    ),
    importers=trace_importers(to_rar_ddls, throughputs=True, first="rings"),
    families=partial(named, "schedgap.benchmarks.instances.rar_ddls.random:FAMILIES"),
    suites=ROWS,
    figure=partial(named, "schedgap.benchmarks.figures.rar_ddls:gantt"),
)
