"""Where instances of comm-contention come from: presets, families, importers, suites, figure."""

from __future__ import annotations

from schedgap.benchmarks.instances.comm_contention.quick import ROWS
from schedgap.benchmarks.instances.comm_contention.random import FAMILIES, adadual_trap, bursts, newcomer, small, tiny
from schedgap.catalogue.workload import Drawing, Preset, Workload


def _figure() -> Drawing:
    from schedgap.benchmarks.figures.comm_contention import rates

    return rates


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
    families=lambda: FAMILIES,
    suites=ROWS,
    figure=_figure,
)
