"""Where instances of comm-contention come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedgap.benchmarks.instances.comm_contention.random import adadual_trap, bursts, newcomer, small, tiny
from schedgap.catalogue.workload import Batch, Drawing, Preset, Trial, Workload

# The part of comm-contention in the suite quick.

_WORK = 1000.0
"""Thousands of nodes: more than any instance of these suites takes."""
ROWS: tuple[Batch, ...] = (
    Batch("quick", "tiny", 6, exact=("bb", "highs", "cbc"), settings={"tasks": 3}, work_limit=_WORK),
    Batch("quick", "small", 4, exact=("bb",), settings={"tasks": 7}, work_limit=_WORK),
    Batch("quick", "bursts", 2),
)


# Where instances of comm-contention come from: presets, families, importers, suites, figure.


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.comm_contention import rates

    return rates


def _families() -> Mapping[str, Callable[[int], Trial]]:
    from schedgap.benchmarks.instances.comm_contention.random import FAMILIES

    return FAMILIES


WORKLOAD = Workload(
    presets=(
        Preset("tiny", "2 to 4 tasks, every order of events can be tried", tiny),
        Preset("small", "8 tasks of 1 to 40 units, for proofs", small),
        Preset("bursts", "60 messages of Table III in 6 bursts on the paper's link", bursts),
        Preset(
            "adadual-trap",
            "one large, one middling and many tiny tasks: AdaDUAL's ratio grows with their number",
            adadual_trap,
        ),
        Preset("newcomer", "tasks that are there at 0 and one smaller one that comes later", newcomer),
    ),
    families=_families,
    suites=ROWS,
    figure=_figure,
)
