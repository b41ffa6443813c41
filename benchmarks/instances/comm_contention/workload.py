"""Where instances of comm-contention come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schedgap.benchmarks.instances.comm_contention.random import adadual_trap, bursts, newcomer, small, tiny
from schedgap.benchmarks.instances.comm_contention.suites import ROWS
from schedgap.catalogue.workload import Drawing, Preset, Trial, Workload


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
